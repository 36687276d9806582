"""The benchmark of worlds: steps of many figures, with contact and without, beside MuJoCo's rollout and Gymnasium.

Humanoid, ant and half-cheetah from the files of Gymnasium, each from states after a second of random controls, which
are new in every step of `SUBSTEPS` steps. All on one core and with the same step: the file's, for the humanoid half of
it, which its explicit dampers need. Contestants are timed one after the other in every round.

    bk.Worlds, in one call        T steps by one call: the long rollout
    bk.Worlds, a call a step      T calls
    mujoco.rollout                one call, one thread, Euler, otherwise the file's options
    VectorEnv                     gymnasium's environments of the same figure, in sequence, observations included; with
                                  its own time step, counted by steps of MuJoCo

Nothing is timed before accelerations agree with MuJoCo's at random states and controls.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.peers import required, rotation_of
from bunraku.bench.report import WIDE, painter, target_lines
from bunraku.bench.timing import Contestant, Progress, race
from bunraku.envs.figures import Figure, figure
from bunraku.errors import BunrakuError

FIGURES = {"humanoid": 2, "ant": 1, "half-cheetah": 1}  # parts of the file's step
NAMES = {"humanoid": "Humanoid-v5", "ant": "Ant-v5", "half-cheetah": "HalfCheetah-v5"}
SUBSTEPS = 5
AGREES = 1e-9
TARGETS = {"contact": 5.0, "free": 20.0, "call": 1.05}
WHOLE, CALLS, ROLLOUT, VECTOR = "bk.Worlds, in one call", "bk.Worlds, a call a step", "mujoco.rollout", "VectorEnv"


@dataclass
class Options:
    """How long to measure."""

    seconds: float = 6.0   # per race
    copies: int = 1024
    theirs: int = 32       # copies of MuJoCo
    steps: int = 10        # of SUBSTEPS steps
    settle: float = 1.0    # [s] of random motion before

    @classmethod
    def quick(cls):
        return cls(seconds=1.0, copies=256, theirs=8, steps=5)


# -- MuJoCo --------------------------------------------------------------------------------------------------------


def model_of(f: Figure, step: float, touching: bool):
    mujoco = required("mujoco")
    model = mujoco.MjModel.from_xml_path(str(f.path))
    model.opt.timestep, model.opt.integrator = step, mujoco.mjtIntegrator.mjINT_EULER
    if not touching:
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    return model


def velocities(q, v, back: bool = False) -> np.ndarray:
    """MuJoCo's velocities of ours, or back: those of a free root are linear ones in world axes."""
    v = v.copy()
    if q.shape[-1] > v.shape[-1]:
        for k in range(len(q)):
            R = rotation_of(q[k, 3:7])
            v[k, :3] = (R.T if back else R) @ v[k, :3]
    return v


def disagreement(name: str, count: int = 8) -> float:
    """Largest difference of accelerations from MuJoCo's, relative to the largest; without contact and ranges."""
    mujoco, f, rng = required("mujoco"), figure(name, touching=False), np.random.default_rng(0)
    m = f.mechanism
    for link in m.links:
        if isinstance(link.joint, bk.Revolute | bk.Compound):
            m = m.with_joint(link.joint_name, limit_stiffness=0.0, limit_damping=0.0)
    model = model_of(f, f.step, False)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data, worst = mujoco.MjData(model), 0.0
    for _ in range(count):
        q, v = m.integrate(f.start, 0.3 * rng.normal(size=m.nv)), rng.normal(size=m.nv)
        control = rng.uniform(f.low, f.high)
        data.qpos[:], data.ctrl[:] = q, control
        data.qvel[:] = velocities(q[None], v[None])[0]
        mujoco.mj_forward(model, data)
        theirs = velocities(q[None], data.qacc[None], back=True)[0]
        if m.nq > m.nv:
            theirs[:3] -= np.cross(v[3:6], v[:3])
        ours = bk.forward_dynamics(m, q, v, f.torques(control))
        worst = max(worst, float(np.abs(ours - theirs).max() / np.abs(ours).max()))
    return worst


class Rolled:
    """Copies under `mujoco.rollout`, which go on from where the last call has left them."""

    def __init__(self, f: Figure, step: float, touching: bool, q, v, steps: int):
        self.model, self.rollout = model_of(f, step, touching), required("mujoco.rollout")
        self.data = required("mujoco").MjData(self.model)
        self.state = np.concatenate([np.zeros((len(q), 1)), q, velocities(q, v)], axis=1)
        rng, shape = np.random.default_rng(1), (len(q), steps, len(f.gear))
        self.control = np.repeat(rng.uniform(f.low, f.high, shape), SUBSTEPS, axis=1)
        self.out = np.zeros((len(q), steps * SUBSTEPS, self.state.shape[1]))
        self.sensors = np.zeros((len(q), steps * SUBSTEPS, self.model.nsensordata))

    def __call__(self):
        self.rollout.rollout(self.model, self.data, self.state, self.control, state=self.out,
                             sensordata=self.sensors)


# -- races ---------------------------------------------------------------------------------------------------------


def contestants(name: str, touching: bool, options: Options) -> tuple[list[Contestant], bk.Worlds]:
    f, n, steps = figure(name, touching), options.copies, options.steps
    step, rng = f.step / FIGURES[name], np.random.default_rng(0)
    w = bk.Worlds(f.mechanism, n, step, SUBSTEPS, q=f.start, workers=1)
    for _ in range(round(options.settle / (step * SUBSTEPS))):
        w.step(f.torques(rng.uniform(f.low, f.high, (n, len(f.gear)))))
        w.reset(~w.running)
    tau = f.torques(rng.uniform(f.low, f.high, (n, steps, len(f.gear))))
    each = [np.ascontiguousarray(tau[:, k]) for k in range(steps)]

    def calls():
        for row in each:
            w.step(row)
        if not w.running.all():
            w.reset(~w.running)

    def whole():
        w.step(tau)
        if not w.running.all():
            w.reset(~w.running)

    few = slice(0, options.theirs)
    rolled = Rolled(f, step, touching, w.q[few], w.v[few], steps)
    rows = [Contestant(WHOLE, whole, n * steps * SUBSTEPS), Contestant(CALLS, calls, n * steps * SUBSTEPS),
            Contestant(ROLLOUT, rolled, options.theirs * steps * SUBSTEPS)]
    if touching:
        gymnasium = required("gymnasium")
        many = gymnasium.make_vec(NAMES[name], num_envs=8, vectorization_mode="sync")
        many.reset(seed=0)
        many.action_space.seed(0)
        frames = many.envs[0].unwrapped.frame_skip
        rows.append(Contestant(VECTOR, lambda: many.step(many.action_space.sample()), 8 * frames))
    return rows, w


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data; `text` formats them."""
    options, progress, races = options or Options(), Progress(2 * len(FIGURES), quiet), {}
    try:
        agrees = {name: disagreement(name) for name in FIGURES}
        if max(agrees.values()) > AGREES:
            raise BunrakuError(f"accelerations differ from MuJoCo's, so there is nothing to compare: {agrees}")
        for name in FIGURES:
            for touching in (True, False):
                title = f"{name}, {'contact' if touching else 'without contact'}"
                progress(title)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # copies that stop begin anew
                    rows, w = contestants(name, touching, options)
                    race(rows, options.seconds)
                races[title] = {"bytes": w.bytes_each, "step": figure(name).step / FIGURES[name], "rows": [
                    {"label": c.label, "best_us": 1e6 * c.best, "median_us": 1e6 * c.median, "steps": 1.0 / c.best}
                    for c in rows]}
                progress.done()
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "copies": options.copies,
            "load": os.getloadavg()[0], "agreement": agrees, "races": races, "targets": _verdicts(races)}


def _verdicts(races) -> list[dict]:
    targets = []
    for title, result in races.items():
        best = {row["label"]: row["best_us"] for row in result["rows"]}
        least = TARGETS["free" if "without" in title else "contact"]
        for peer in (ROLLOUT, VECTOR):
            if peer in best:
                ratio = best[peer] / best[CALLS]
                targets.append({"what": f"{title}: steps a second, against {peer}", "measured": ratio, "target": least,
                                "unit": "x", "met": ratio >= least})
        ratio = best[CALLS] / best[WHOLE]
        targets.append({"what": f"{title}: a call a step, against one call", "measured": ratio,
                        "target": TARGETS["call"], "unit": "of it", "met": ratio <= TARGETS["call"]})
    return targets


# -- in words ------------------------------------------------------------------------------------------------------


def text(result: dict, colour: bool = False) -> str:
    """Tables of times, then every target with what was measured."""
    paint, on = painter(colour), result["machine"]
    lines = [paint("1", f"bunraku {result['bunraku']} beside MuJoCo {on['versions'].get('mujoco', '?')}: "
                        f"{result['copies']} figures on one core"),
             machine.line(on), f"load of the machine {result['load']:.1f}",
             "accelerations agree with MuJoCo's to "
             + ", ".join(f"{gap:.0e} ({name})" for name, gap in result["agreement"].items())]
    for title, found in result["races"].items():
        lines += ["", paint("4", f"  {title:<{WIDE}}{'best us':>9}{'median':>9}{'steps/s':>12}")]
        lines += [f"  {row['label']:<{WIDE}}{row['best_us']:9.3f}{row['median_us']:9.3f}{row['steps']:12.0f}"
                  for row in found["rows"]]
        lines.append(f"  {found['bytes'] / 1000:.1f} kB for a copy; steps of {1e3 * found['step']:g} ms")
    lines += ["", "  us: for a step of one copy", "", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)
