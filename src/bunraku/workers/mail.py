"""Messages between workers: boxes, each with one sender and one receiver.

Between threads a box is shared memory: a sender copies its floats into the box and then raises the box's count; the
receiver waits for the count it expects and copies them out. A box is free again when its next message is due, because
between two messages in a box at least one goes the other way over the same edge. A receiver polls SPINS times, then
yields the processor between polls: pure spinning costs up to 340 us if other processes need the core. A nonzero
MAIL_ABORT ends all waiting. Cost: about 0.2 us from core to core.

Between processes MPI carries the same floats, by the addresses of its functions: a sender copies into its own box and
starts a nonblocking send from there, which has completed long before the box is reused. Cost: about a microsecond.
"""

from __future__ import annotations

import ctypes
import functools

from llvmlite import ir
from numba import types

from bunraku.compiler.numba_inside import signature
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.instructions import INT64, instruction
from bunraku.spatial.lanes import INT32

SPINS = 300


@functools.cache
def yield_address() -> int:
    """Address of the C library's sched_yield, kept in the mail (machine code refers to nothing outside)."""
    try:
        return ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):  # not on every system: spin only
        return 0


def read_count(mail, i):
    """The count at place i of the mail; all that was written before it was raised is seen."""
    return int(mail.view("int64")[i])


@instruction(read_count)
def _read_count(mail, i):
    def read(builder, data, i):
        place = builder.bitcast(builder.gep(data, [i]), INT64.as_pointer())
        return builder.load_atomic(place, "acquire", 8)
    return signature(types.int64, mail, types.intp), read


def write_count(mail, i, value):
    """Set the count at place i, after all that was written before."""
    mail.view("int64")[i] = value


@instruction(write_count)
def _write_count(mail, i, value):
    def write(builder, data, i, value):
        builder.store_atomic(value, builder.bitcast(builder.gep(data, [i]), INT64.as_pointer()), "release", 8)
    return signature(types.void, mail, types.intp, types.int64), write


def give_up_processor(address):
    """Yield the processor to another thread (sched_yield)."""


@instruction(give_up_processor)
def _give_up_processor(address):
    def call(builder, address):
        kind = ir.FunctionType(INT32, [])
        builder.call(builder.inttoptr(address, kind.as_pointer()), [])
    return signature(types.void, types.int64), call


def call_mpi(function, a, b, c, d, e, g, h):
    """A function of MPI by its address. Addresses, handles and 32-bit numbers are all handed over as words."""


@instruction(call_mpi)
def _call_mpi(function, *arguments):
    def call(builder, function, *arguments):
        kind = ir.FunctionType(INT32, [INT64] * 7)
        return builder.sext(builder.call(builder.inttoptr(function, kind.as_pointer()), arguments), INT64)
    return signature(types.int64, *[types.int64] * 8), call


@inner
def send_by_mpi(o, count, box, boxes, mail):
    """Start to send the `count` floats in a box at `o` of the mail."""
    at = mail.ctypes.data
    send, kind, team = read_count(mail, f.MAIL_SEND), read_count(mail, f.MAIL_DOUBLE), read_count(mail, f.MAIL_TEAM)
    call_mpi(send, at + 8 * (o + f.BOX_HEAD), count, kind, boxes[box, f.BOX_OTHER], boxes[box, f.BOX_EDGE], team,
             at + 8 * o)
    write_count(mail, f.MAIL_FLOATS, read_count(mail, f.MAIL_FLOATS) + count)


@inner
def free_box(o, mail):
    """Wait until the message before has left the box."""
    at = mail.ctypes.data
    call_mpi(read_count(mail, f.MAIL_WAIT), at + 8 * o, at + 8 * f.MAIL_STATUS, 0, 0, 0, 0, 0)


@inner
def receive_by_mpi(target, place, count, box, boxes, mail):
    call_mpi(read_count(mail, f.MAIL_RECEIVE), target.ctypes.data + 8 * place, count, read_count(mail, f.MAIL_DOUBLE),
             boxes[box, f.BOX_OTHER], boxes[box, f.BOX_EDGE], read_count(mail, f.MAIL_TEAM),
             mail.ctypes.data + 8 * f.MAIL_STATUS)


@inline
def post(source, place, count, box, boxes, mail):
    """Send floats source[place : place + count]."""
    o, number, by_mpi = boxes[box, f.BOX_PLACE], boxes[box, f.BOX_COUNT] + 1, read_count(mail, f.MAIL_SEND) != 0
    if by_mpi and number > 1:
        free_box(o, mail)
    for k in range(count):
        mail[o + f.BOX_HEAD + k] = source[place + k]
    boxes[box, f.BOX_COUNT] = number
    if by_mpi:
        send_by_mpi(o, count, box, boxes, mail)
    else:
        write_count(mail, o, number)


@inner
def wait_for(mail, place, number):
    """Wait until the count at this place is reached; False if the team has given up."""
    spins = 0
    while read_count(mail, place) < number:
        spins += 1
        if spins > SPINS:
            if read_count(mail, f.MAIL_ABORT) != 0:
                return False
            address = read_count(mail, f.MAIL_YIELD)
            if address != 0:
                give_up_processor(address)
    return True


@inline
def take(target, place, count, box, boxes, mail):
    """Receive floats into target[place : place + count]; False if the team has given up."""
    o, number = boxes[box, f.BOX_PLACE], boxes[box, f.BOX_COUNT] + 1
    if read_count(mail, f.MAIL_SEND) != 0:
        receive_by_mpi(target, place, count, box, boxes, mail)
        return True
    if not wait_for(mail, o, number):
        return False
    for k in range(count):
        target[place + k] = mail[o + f.BOX_HEAD + k]
    boxes[box, f.BOX_COUNT] = number
    return True
