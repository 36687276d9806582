"""Benchmark of dynamics: comparison with Pinocchio and MuJoCo in one run, share of the machine's peak, and scaling.

Nothing is timed before all three libraries give the same accelerations. Contestants are timed one after the other in
every round. Ratios, and the verdicts on them, compare best with best: the moments when nothing else used the machine;
medians over rounds are in the JSON. Models are the two of MODELS with the scaling of chains, or model files instead.
What each line measures:

    pin.aba, pin.rnea, pin.crba   one call from Python with Pinocchio's defaults, states in turn
    ... WORLD                     pin.aba with its other convention, usually the faster
    pin.abaInParallel             Pinocchio's loop in C++, on one thread: no call from Python for each state
    mujoco.mj_forward             one call from Python, constraints, contacts and sensors off, state set beforehand
    one call from Python          bk.forward_dynamics(m, q, v, tau), states in turn
    inside compiled code          the same kernel from a compiled loop over states
    batch                         one call with (B, n) arrays, everything included, divided by B
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.flops import forward_dynamics_flops
from bunraku.bench.peers import MuJoCo, Pinocchio, required
from bunraku.bench.timing import Contestant, Progress, each, race, speedup
from bunraku.entries.one_by_one import forward_in_turn
from bunraku.errors import BunrakuError, ModelError

MODELS: dict[str, Callable[[], bk.Mechanism]] = {"humanoid": lambda: bk.models.humanoid(),
                                                "human": lambda: bk.models.human(48)}
BATCH = 4096
IN_TURN = 64          # states that single calls go through
DERIVED = 256         # states of a batch of derivatives
WORLD = "pin.aba, WORLD"
AGREEMENT = 1e-8      # relative; nothing is timed with less
TARGETS = {"python": 2.0, "compiled": 4.0, "batch": 15.0, "derivatives": 1.0, "derivatives of batches": 8.0,
           "exponent": 1.05, "memory": 1024.0, "residual": 1e-8, "returned": 1e-12}
NEARLY_STRAIGHT = (1e-3, 1e-2)  # [rad] spread of the joint angles of chains that are
SPACE = ((0, 1, 0), (1, 0, 0))  # axes of chains


@dataclass
class Options:
    """How long to measure."""

    seconds: float = 8.0                              # per model and quantity
    links: tuple[int, ...] = (100, 1000, 10_000, 100_000, 1_000_000)
    rounds: int = 9                                   # of scaling

    @classmethod
    def quick(cls):
        return cls(seconds=1.2, links=(100, 1000, 10_000), rounds=5)


def run(options: Options | None = None, quiet: bool = False, files: dict[Path, bk.Mechanism] | None = None) -> dict:
    """All results as plain data; `report.text` formats them.

    `files`, as `bunraku.bench.model_files` reads them, are measured in place of MODELS, and then no chains.
    """
    options = options or Options()
    required("pinocchio")
    required("mujoco")
    mechanisms = ({str(path): (path.name, m) for path, m in files.items()} if files else
                  {name: (m.name, m) for name, m in ((name, build()) for name, build in MODELS.items())})
    progress = Progress(2 + 4 * len(mechanisms) + (0 if files else len(options.links) + 1), quiet)
    try:
        progress("peak of one core")
        peak = machine.peak_flops()
        progress.done()
        fields = {name: _field(title, m, progress) for name, (title, m) in mechanisms.items()}
        progress("counting operations")
        flops = forward_dynamics_flops(mechanisms)
        progress.done()
        models = {name: _model(field, flops[name], peak, options, progress) for name, field in fields.items()}
        scaling = None if files else _scaling(options, progress)
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "peak_gflops": peak / 1e9, "batch": BATCH,
            "models": models, "scaling": scaling, "targets": target_lines(models, scaling)}


# -- models beside the peers ---------------------------------------------------------------------------------------


def random_states(m, count, seed=0, spread=0.7):
    rng = np.random.default_rng(seed)
    q = m.integrate(np.tile(m.neutral(), (count, 1)), spread * rng.normal(size=(count, m.nv)))
    return q, rng.normal(size=(count, m.nv)), 10.0 * rng.normal(size=(count, m.nv))


@dataclass
class Field:
    """A model and its peers, which agree."""

    title: str
    mechanism: bk.Mechanism
    pinocchio: Pinocchio
    mujoco: MuJoCo | None
    refused: str | None  # why MuJoCo is not there
    states: tuple[np.ndarray, np.ndarray, np.ndarray]
    agreement: dict[str, float]


def _field(title, m, progress) -> Field:
    progress(f"{title}: do all agree?")
    pinocchio, mujoco, refused = Pinocchio(m), None, None
    try:
        mujoco = MuJoCo(m)
    except ModelError as error:
        refused = str(error)
    states = random_states(m, BATCH)
    field = Field(title, m, pinocchio, mujoco, refused, states, check_agreement(m, pinocchio, mujoco, *states))
    progress.done()
    return field


def _model(field: Field, flops, peak, options, progress) -> dict:
    m, pinocchio, states, races = field.mechanism, field.pinocchio, field.states, {}
    for what, contestants in (("forward dynamics", _forward(m, pinocchio, field.mujoco, states)),
                              ("inverse dynamics", _inverse(m, pinocchio, states)),
                              ("mass matrix", _matrix(m, pinocchio, states)),
                              ("derivatives of forward dynamics", _derivatives(m, pinocchio, states, True)),
                              ("derivatives of inverse dynamics", _derivatives(m, pinocchio, states, False))):
        progress(f"{field.title}: {what}")
        race(contestants, options.seconds)
        races[what] = [_row(c, contestants, flops if what == "forward dynamics" else None, peak) for c in contestants]
        progress.done()
    return {"title": field.title, "bodies": m.plan().bodies, "dof": m.nv, "flops": flops,
            "agreement": field.agreement, "refused_by_mujoco": field.refused, "races": races}


def check_agreement(m, pinocchio, mujoco, q, v, tau) -> dict[str, float]:
    """Largest relative difference of accelerations; an error if they differ too much to be the same mechanism.

    `mujoco` may be None.
    """
    batch = bk.forward_dynamics(m, q, v, tau, workers=1)
    inverse, matrix = bk.inverse_dynamics(m, q[:IN_TURN], v[:IN_TURN], batch[:IN_TURN]), bk.mass_matrix(m, q[:IN_TURN])
    worst = {"pin.aba": 0.0, "mj_forward": 0.0, "one call": 0.0, "pin.rnea": 0.0, "pin.crba": 0.0,
             "pin.compute..Derivatives": 0.0}
    if mujoco is None:
        del worst["mj_forward"]

    def compare(key, ours, theirs):
        worst[key] = max(worst[key], float(np.abs(ours - theirs).max() / np.abs(theirs).max()))

    pin, order = pinocchio.pin, pinocchio.order_v
    for k in range(IN_TURN):
        compare("pin.aba", batch[k], pinocchio.forward(q[k], v[k], tau[k]))
        if mujoco is not None:
            compare("mj_forward", batch[k], mujoco.forward(q[k], v[k], tau[k]))
        compare("one call", bk.forward_dynamics(m, q[k], v[k], tau[k]), batch[k])
        theirs = pin.rnea(pinocchio.model, pinocchio.data, pinocchio.q(q[k]), pinocchio.v(v[k]),
                          pinocchio.v(batch[k]))
        compare("pin.rnea", inverse[k], pinocchio.back(theirs))
        theirs = pin.crba(pinocchio.model, pinocchio.data, pinocchio.q(q[k]))
        compare("pin.crba", np.triu(matrix[k][np.ix_(order, order)]), np.triu(theirs))
        args = pinocchio.model, pinocchio.data, pinocchio.q(q[k]), pinocchio.v(v[k])
        d, inverse_d = bk.derivatives(m, q[k], v[k], tau[k]), bk.inverse_derivatives(m, q[k], v[k], batch[k])
        for found, expected in ((d, pin.computeABADerivatives(*args, pinocchio.v(tau[k]))),
                                (inverse_d, pin.computeRNEADerivatives(*args, pinocchio.v(batch[k])))):
            for by in range(2):
                compare("pin.compute..Derivatives", found[by][np.ix_(order, order)], expected[by])
    if not max(worst.values()) < AGREEMENT:
        raise BunrakuError(f"{m.name}: the libraries disagree, so there is nothing to compare: {worst}")
    return worst


def _row(c: Contestant, contestants, flops, peak) -> dict:
    by_label = {other.label: other for other in contestants}
    row = {"label": c.label, "best_us": 1e6 * c.best, "median_us": 1e6 * c.median}
    if c.against:
        row["against"] = c.against
        row["speedup"], row["speedup_median"] = speedup(by_label[c.against], c)
        if WORLD in by_label:
            row["speedup_world"] = speedup(by_label[WORLD], c)[0]
    if c.label.startswith("bunraku") and flops and "cores" not in c.label:
        row["gflops"] = flops / c.best / 1e9
        row["share_of_peak"] = flops / c.best / peak
    if c.target is not None:
        row["target"], row["met"] = c.target, speedup(by_label[c.against], c)[0] >= c.target
    return row


def _forward(m, pinocchio, mujoco, states):
    q, v, tau = states
    few = [x[:IN_TURN].copy() for x in states]
    pin, model, data = pinocchio.pin, pinocchio.model, pinocchio.data
    theirs = (pinocchio.q(few[0]), pinocchio.v(few[1]), pinocchio.v(few[2]))
    columns = [np.asfortranarray(x.T) for x in (pinocchio.q(q), pinocchio.v(v), pinocchio.v(tau))]
    pool, out = pin.ModelPool(model, 1), np.empty((m.nv, BATCH), order="F")
    plan, loop = m.plan(), forward_in_turn.load().call
    a, work, nothing = np.empty((IN_TURN, m.nv)), np.empty(plan.work_size), np.empty(0)
    against = "pin.aba"
    contestants = [
        Contestant("pin.aba", each(functools.partial(pin.aba, model, data), *theirs), IN_TURN),
        Contestant(WORLD, each(functools.partial(pin.aba, model, data), *theirs, [pin.Convention.WORLD] * IN_TURN),
                   IN_TURN, against=against),
        Contestant("pin.abaInParallel, one thread", lambda: pin.abaInParallel(1, pool, *columns, out), BATCH,
                   against=against),
        *([] if mujoco is None else [_mj_forward(mujoco, q[0], v[0], tau[0], against)]),
        Contestant("bunraku, one call from Python", each(functools.partial(bk.forward_dynamics, m), *few), IN_TURN,
                   target=TARGETS["python"], against=against),
        Contestant("bunraku, inside compiled code",
                   lambda: loop(plan.arrays, *few, nothing, a, work), IN_TURN,
                   target=TARGETS["compiled"], against=against),
        Contestant(f"bunraku, batch of {BATCH}, one core", lambda: bk.forward_dynamics(m, q, v, tau, workers=1), BATCH,
                   target=TARGETS["batch"], against=against),
    ]
    cores = machine.available()
    if cores > 1:
        contestants.append(Contestant(f"bunraku, batch of {BATCH}, {cores} cores",
                                      lambda: bk.forward_dynamics(m, q, v, tau), BATCH, against=against))
    return contestants


def _mj_forward(mujoco, q, v, tau, against):
    mujoco.forward(q, v, tau)
    mj_forward, model, data = mujoco.mujoco.mj_forward, mujoco.model, mujoco.data
    return Contestant("mujoco.mj_forward", lambda: mj_forward(model, data), 1, against=against)


def _inverse(m, pinocchio, states):
    q, v, a = states
    few = [x[:IN_TURN].copy() for x in states]
    theirs = (pinocchio.q(few[0]), pinocchio.v(few[1]), pinocchio.v(few[2]))
    rnea = functools.partial(pinocchio.pin.rnea, pinocchio.model, pinocchio.data)
    against = "pin.rnea"
    return [
        Contestant("pin.rnea", each(rnea, *theirs), IN_TURN),
        Contestant("bunraku, one call from Python", each(functools.partial(bk.inverse_dynamics, m), *few), IN_TURN,
                   against=against),
        Contestant(f"bunraku, batch of {BATCH}, one core", lambda: bk.inverse_dynamics(m, q, v, a, workers=1), BATCH,
                   against=against),
    ]


def _matrix(m, pinocchio, states):
    q = states[0]
    few = q[:IN_TURN].copy()
    crba = functools.partial(pinocchio.pin.crba, pinocchio.model, pinocchio.data)
    against = "pin.crba"
    return [
        Contestant("pin.crba", each(crba, pinocchio.q(few)), IN_TURN),
        Contestant("bunraku, one call from Python", each(functools.partial(bk.mass_matrix, m), few), IN_TURN,
                   against=against),
        Contestant(f"bunraku, batch of {BATCH}, one core", lambda: bk.mass_matrix(m, q, workers=1), BATCH,
                   against=against),
    ]


def _derivatives(m, pinocchio, states, forward):
    """Of forward dynamics by torques, or of inverse dynamics by accelerations; batches are smaller: results are big."""
    many = [x[:DERIVED].copy() for x in states]
    few = [x[:IN_TURN] for x in many]
    pin = pinocchio.pin
    name, theirs, ours = (("pin.computeABADerivatives", pin.computeABADerivatives, bk.derivatives) if forward else
                          ("pin.computeRNEADerivatives", pin.computeRNEADerivatives, bk.inverse_derivatives))
    return [
        Contestant(name, each(functools.partial(theirs, pinocchio.model, pinocchio.data), pinocchio.q(few[0]),
                              pinocchio.v(few[1]), pinocchio.v(few[2])), IN_TURN),
        Contestant("bunraku, one call from Python", each(functools.partial(ours, m), *few), IN_TURN, against=name,
                   target=TARGETS["derivatives"]),
        Contestant(f"bunraku, batch of {DERIVED}, one core", lambda: ours(m, *many, workers=1), DERIVED, against=name,
                   target=TARGETS["derivatives of batches"]),
    ]


# -- long chains ---------------------------------------------------------------------------------------------------


def _scaling(options: Options, progress) -> dict:
    """Cost per link over the length of a chain, its exponent, work memory, and digits left at 10^4 links."""
    loop, chains = forward_in_turn.load().call, {}
    for n in options.links:
        progress(f"chain of {n} links")
        m = bk.models.chain(n, axes=SPACE)
        q, v, tau = random_states(m, 1, spread=0.3)
        plan = m.plan()
        arguments = plan.arrays, q, v, tau, np.empty(0), np.empty((1, m.nv)), np.empty(plan.work_size)
        loop(*arguments)
        chains[n] = (m, arguments)
        progress.done()
    progress("cost per link")
    times: dict[int, list[float]] = {n: [] for n in chains}
    for _ in range(options.rounds):
        for n, (_m, arguments) in chains.items():
            repeats = max(1, 100_000 // n)
            start = time.perf_counter()
            for _ in range(repeats):
                loop(*arguments)
            times[n].append((time.perf_counter() - start) / repeats)
    logs = np.log([times[n] for n in chains])
    exponents = np.polyfit(np.log(list(chains)), logs, 1)[0]
    chain = chains[10_000][0]
    result = {
        "chains": [{"links": n, "ms": 1e3 * float(np.median(t)), "ns_per_link": 1e9 * float(np.median(t)) / n,
                    "bytes_per_link": 8.0 * chains[n][0].plan().work_size / n,
                    **_returned(chains[n][0], n)} for n, t in times.items()],
        "exponent": float(np.median(exponents)),
        **_round_trip(chain),
    }
    progress.done()
    return result


def _returned(m, n) -> dict:
    """Of chains of up to 10^5 links: torques in a random pose, and nearly straight."""
    if n > 100_000:
        return {"returned": None, "returned_straight": None}
    return {"returned": round_trip(m), "returned_straight": max(round_trip(m, spread) for spread in NEARLY_STRAIGHT)}


def round_trip(m: bk.Mechanism, spread: float = 0.3) -> float:
    """Round trip of forward and inverse dynamics with default settings: the largest difference of torques, relative to
    the largest torque or bias; torques of random accelerations. `spread`: of the joint angles [rad]."""
    q, v, _ = (x[0] for x in random_states(m, 1, spread=spread))
    tau = bk.inverse_dynamics(m, q, v, np.random.default_rng(1).normal(size=m.nv))
    back = bk.inverse_dynamics(m, q, v, bk.forward_dynamics(m, q, v, tau))
    return float(np.abs(back - tau).max() / max(np.abs(tau).max(),
                                                np.abs(bk.inverse_dynamics(m, q, v, np.zeros(m.nv))).max()))


def _round_trip(m) -> dict:
    """Residuals of the round trip of forward and inverse dynamics.

    residual           worst joint, relative to its torque; torques of random accelerations
    residual_small     relative to the largest; random torques of 10 N m, a billionth of what such a chain carries
    residual_rounding  change of the latter by rounding the accelerations to doubles alone
    """
    q, v, small = (x[0] for x in random_states(m, 1, spread=0.3))
    rng = np.random.default_rng(1)
    tau = bk.inverse_dynamics(m, q, v, rng.normal(size=m.nv))
    back = bk.inverse_dynamics(m, q, v, bk.forward_dynamics(m, q, v, tau))
    a = bk.forward_dynamics(m, q, v, small)
    back_small = bk.inverse_dynamics(m, q, v, a)
    # Torques are affine in the accelerations, so a large change shows what half a unit in the last place does
    change = bk.inverse_dynamics(m, q, v, a * rng.uniform(-1.0, 1.0, m.nv)) - bk.inverse_dynamics(m, q, v, 0.0 * a)
    return {"residual": float((np.abs(back - tau) / np.abs(tau)).max()),
            "residual_small": float(np.abs(back_small - small).max() / np.abs(small).max()),
            "residual_rounding": float(2.0**-53 * np.abs(change).max() / np.abs(small).max())}


def target_lines(models, scaling) -> list[dict]:
    """Every target, the measured value, and whether it is met."""
    rows = [{"what": f"{model['title']}: {what}, {row['label'].removeprefix('bunraku, ')}", "measured": row["speedup"],
             "target": row["target"], "unit": f"x {row['against']}", "met": row["met"]}
            for model in models.values() for what, race in model["races"].items() for row in race if "target" in row]
    if scaling is None:
        return rows
    for what, measured, target, unit in (
            ("cost per link: exponent", scaling["exponent"], TARGETS["exponent"], ""),
            ("work memory per link", max(c["bytes_per_link"] for c in scaling["chains"]), TARGETS["memory"], "bytes"),
            ("inverse dynamics returns tau, of the largest",
             max(c[key] or 0.0 for c in scaling["chains"] for key in ("returned", "returned_straight")),
             TARGETS["returned"], "relative"),
            ("10000 links: inverse dynamics returns tau", scaling["residual"], TARGETS["residual"], "relative")):
        rows.append({"what": what, "measured": measured, "target": target, "unit": unit, "met": measured <= target})
    return rows
