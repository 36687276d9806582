"""Messages between threads: boxes in shared memory, each with one sender and one receiver.

A sender copies its floats into the box and then raises the box's count; the receiver waits for the count it expects and
copies them out. A box is free again when its next message is due, because between two messages in a box at least one
goes the other way over the same edge. Waiting is SPINS looks, then giving up the processor between looks: a bare spin
costs up to 340 us where other processes want the core. MAIL_ABORT not zero ends all waiting.
Cost: about 0.2 us from core to core.
"""

from __future__ import annotations

import ctypes
import functools

from llvmlite import ir
from numba import types
from numba.core.typing.templates import signature

from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.instructions import instruction

SPINS = 300
INT64, INT32 = ir.IntType(64), ir.IntType(32)


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
    """Let another thread run: a call of sched_yield."""


@instruction(give_up_processor)
def _give_up_processor(address):
    def call(builder, address):
        kind = ir.FunctionType(INT32, [])
        builder.call(builder.inttoptr(address, kind.as_pointer()), [])
    return signature(types.void, types.int64), call


@inline
def post(source, place, count, box, boxes, mail):
    """Send floats source[place : place + count]."""
    o, number = boxes[box, f.BOX_PLACE], boxes[box, f.BOX_COUNT] + 1
    for k in range(count):
        mail[o + f.BOX_HEAD + k] = source[place + k]
    boxes[box, f.BOX_COUNT] = number
    write_count(mail, o, number)


@inner
def wait_for(mail, place, number):
    """Until the count at the place is there; whether it is."""
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
    if not wait_for(mail, o, number):
        return False
    for k in range(count):
        target[place + k] = mail[o + f.BOX_HEAD + k]
    boxes[box, f.BOX_COUNT] = number
    return True
