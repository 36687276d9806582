"""Costs of this machine: operations of the engine (`workers/engine.py`), timed one by one, and messages of two threads.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bunraku.entries.part_entries import part_one, repeat
from bunraku.evaluate.schedules import Schedule
from bunraku.mechanism import Cylindrical, Free, Joint, Mechanism, Planar, Prismatic, Revolute, Spherical
from bunraku.plan import fields as f
from bunraku.plan.chunk_plan import Division
from bunraku.scheduling import Costs
from bunraku.workers.mail import yield_address
from bunraku.workers.threads import Team

LINKS = 128            # of a chain
SECONDS = 2e-3         # of one look at an operation
LOOKS = 5              # of which the best counts
ROUND_TRIPS = 2000
KINDS: dict[str, Joint] = {
    "revolute": Revolute((0, 1, 0)), "prismatic": Prismatic((0, 1, 0)), "cylindrical": Cylindrical((0, 1, 0)),
    "planar": Planar((0, 0, 1)), "spherical": Spherical(), "free": Free()}


@functools.cache
def measured_costs() -> Costs:
    """Costs measured once per process, in about a second. Fields that are not measured are named in `assumed`."""
    stated = Costs()
    bodies = dict(stated.bodies)
    for kind, joint in KINDS.items():
        times = Timed(_chain(joint), []).seconds
        passes = [times(f.DO_OUTWARD), times(f.DO_INWARD), times(f.DO_DOWN)]
        bodies[kind] = (*(max(x, 1e-9) / LINKS for x in passes), stated.bodies[kind][3])
    bodies["helical"] = bodies["prismatic"]
    plain = sum(bodies["revolute"][:3])
    chain = _chain(KINDS["revolute"])
    two, star = Timed(chain, [f"link{LINKS - 1}"]), Timed(*_star())
    four = Timed(chain, [f"link{k * LINKS // 4}" for k in (1, 2, 3)])  # of which the upper two are joined first
    path = LINKS - 1
    far = (two.seconds(f.DO_FAR, f.DO_DOWN_FAR) + path * bodies["revolute"][0]) / (path * plain)
    latency, per_float = message_seconds()
    return replace(
        stated, bodies=bodies, far=max(far, 1.0), source="measured",
        follow=two.seconds(f.DO_ACROSS) / (path * bodies["revolute"][0]), join=two.seconds(f.DO_JOIN),
        join_far=four.seconds(f.DO_JOIN_OPEN), split=two.seconds(f.DO_SPLIT), add=star.seconds(f.DO_ADD),
        chunk=two.seconds(f.DO_BEGIN, f.DO_CLOSED, f.DO_GROUND) / 3, latency=latency, per_float=per_float,
        assumed=("row", "pass 4"))  # taken from the stated costs


class Timed:
    """One worker with a divided mechanism, for timing single operations."""

    def __init__(self, mechanism: Mechanism, cuts: Sequence[str]):
        rng = np.random.default_rng(0)
        plan = mechanism.plan()
        assembly = Schedule(mechanism, cuts=cuts).assembly(plan)
        assert assembly is not None
        chunks = len(assembly.worker)
        team = Team(Division(plan, assembly._replace(worker=np.zeros(chunks, np.int64), waits=np.zeros(chunks, bool))))
        part, self.arrays = team.parts[0], team.arrays[0]
        q = mechanism.integrate(mechanism.neutral(), 0.1 * rng.normal(size=plan.nv))[part.q_index]
        v, tau = 0.1 * rng.normal(size=plan.nv), rng.normal(size=plan.nv)
        self.arguments = q, v, tau, np.empty(plan.nv), np.empty(part.plan.work_size + plan.nv)
        repeat.call(part_one.address, self.arrays, *self.arguments, 3)
        self.base = self._time(self.arrays.ops[:0])

    def seconds(self, *operations: int) -> float:
        """Total time of all operations of these kinds [s]."""
        ops = self.arrays.ops
        return max(self._time(ops[np.isin(ops[:, 0], operations)]) - self.base, 1e-12)

    def _time(self, ops) -> float:
        arrays, count, best = self.arrays._replace(ops=np.ascontiguousarray(ops)), 10, np.inf
        for look in range(LOOKS + 1):
            start = time.perf_counter()
            repeat.call(part_one.address, arrays, *self.arguments, count)
            lasted = (time.perf_counter() - start) / count
            if look:
                best = min(best, lasted)
            count = max(10, int(SECONDS / LOOKS / max(lasted, 1e-9)))
        return best


def message_seconds(sizes: tuple[int, int] = (f.EDGE_VELOCITY, f.EDGE_FAR)) -> tuple[float, float]:
    """Seconds of a message between two threads, and of every float in it."""
    m = _chain(KINDS["revolute"], 4)
    assembly = Schedule(m, cuts=["link2"]).assembly(m.plan())
    assert assembly is not None
    team = Team(Division(m.plan(), assembly._replace(worker=np.arange(2), waits=np.zeros(2, bool))))
    short, long = (min(_one_way(team, floats) for _ in range(LOOKS)) for floats in sizes)
    per_float = max(long - short, 0.0) / (sizes[1] - sizes[0])
    return max(short - sizes[0] * per_float, 1e-9), per_float


def _one_way(team: Team, floats: int) -> float:
    """Half of a round trip between two otherwise idle threads [s]."""
    there, back = 0, 1  # boxes
    orders = (((f.DO_POST, 0, floats, there, 0), (f.DO_TAKE, 0, floats, back, 0)),
              ((f.DO_TAKE, 0, floats, there, 0), (f.DO_POST, 0, floats, back, 0)))
    mail = np.zeros(1024)
    mail.view(np.int64)[f.MAIL_YIELD] = yield_address()
    calls = []
    for part, arrays, ops in zip(team.parts, team.arrays, orders, strict=True):
        nq, nv = part.plan.nq, part.plan.nv
        boxes = np.array([[128, 0], [512, 0]], np.int64)
        calls.append((arrays._replace(ops=np.array(ops, np.int32), boxes=boxes, mail=mail), np.zeros(nq), np.zeros(nv),
                      np.zeros(nv), np.empty(nv), np.zeros(part.plan.work_size + f.EDGE_FAR)))
    start = time.perf_counter()
    team.run(lambda k: repeat.call(part_one.address, *calls[k], ROUND_TRIPS))
    return (time.perf_counter() - start) / (2 * ROUND_TRIPS)


def _chain(joint: Joint, links: int = LINKS) -> Mechanism:
    m = Mechanism()
    for i in range(links):
        m.add_link(f"link{i}", f"link{i - 1}" if i else "ground", joint, position=(0.0, 0.0, -0.2), mass=1.0,
                   com=(0.0, 0.0, -0.1), inertia=(0.01, 0.01, 0.005))
    return m


def _star() -> tuple[Mechanism, list[str]]:
    """A link that carries three, and the cuts that make each a chunk."""
    m = _chain(KINDS["revolute"], 1)
    for i in range(3):
        m.add_link(f"arm{i}", "link0", KINDS["revolute"], position=(0.1 * i, 0.0, -0.2), mass=1.0, com=(0.0, 0.0, -0.1),
                   inertia=(0.01, 0.01, 0.005))
    return m, [f"arm{i}" for i in range(3)]
