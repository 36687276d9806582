"""Benchmark of inverse kinematics: success and time on random reachable poses, beside pink and mink in one run.

Poses are those of coordinates spread over the joints' ranges, so every one can be reached. Every solver starts from the
same coordinates (the middle of the ranges) and, as long as it fails, from the same further ones. What each line
measures:

    one call from Python    bk.inverse_kinematics(m, {link: (R, p)}), poses in turn
    compiled, one core      one call with all poses, workers=1, divided by their number
    pink, mink              `solve_ik` of a frame task with limits, step after step, until the error is below 1e-5
                            [m, rad] or STEPS have gone by; then the next start. Solver: daqp. Fewer poses
    TRAC-IK                 published by its authors for robot arms (C++, their hardware), to 1e-5

Milliseconds are processor time of one core; batches of all poses on all cores are wall time. bunraku's poses count as
reached below 1e-9. The platform (6-UPS: six legs of a universal joint, a slide and a ball each) is posed by its plate;
the figure reaches with a hand while both feet are held.
"""

from __future__ import annotations

import importlib
import logging
import time
import warnings
from dataclasses import dataclass

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench import model_files as files
from bunraku.bench.timing import Progress
from bunraku.errors import LoadWarning

ARMS = (("ur5_robot.urdf", "ee_link"), ("panda.urdf", "panda_link8"), ("talos_reduced.urdf", "arm_left_7_link"))
TRAC_IK = {"success": (0.993, 1.0), "ms": (0.22, 0.58)}
TARGETS = {"faster": 5.0, "seconds": 1.0, "exact": 1e-12}
REACHED, STEPS, STARTS = 1e-5, 100, 10  # of the peers
PEERS = ("pink", "mink")


@dataclass
class Options:
    """How many poses."""

    poses: int = 1000
    many: int = 10_000
    few: int = 100  # for the peers

    @classmethod
    def quick(cls):
        return cls(poses=200, many=2000, few=20)


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data."""
    options = options or Options()
    progress = Progress(len(ARMS) + 2, quiet)
    try:
        arms = []
        for name, link in ARMS:
            progress(name)
            arms.append(_arm(name, link, options))
            progress.done()
        progress("platform")
        platform = _platform(options)
        progress.done()
        progress("figure")
        figure = _figure(options)
        progress.done()
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "trac_ik": TRAC_IK, "targets": TARGETS,
            "arms": arms, "platform": platform, "figure": figure}


def _load(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)
        return bk.load(str(files.find(name)), base="fixed")


def _arm(name, link, options) -> dict:
    m = _load(name)
    above, k = [], m.link_names.index(link)
    while k >= 0:
        above.append(m.links[k].joint)
        k = m.links[k].parent
    lower, upper = _ranges(m)
    rng = np.random.default_rng(0)
    Q = lower + rng.random((options.many, m.nq)) * (upper - lower)
    R, p = bk.poses(m, Q)[link]
    bk.inverse_kinematics(m, {link: (R[0], p[0])})
    one, seconds = _timed(lambda: [bk.inverse_kinematics(m, {link: (R[i], p[i])}) for i in range(options.poses)])
    one_ms = 1e3 * seconds / options.poses
    batch, seconds = _timed(lambda: bk.inverse_kinematics(m, {link: (R, p)}, workers=1))
    batch_ms = 1e3 * seconds / options.many
    start = time.perf_counter()
    bk.inverse_kinematics(m, {link: (R, p)})
    seconds = time.perf_counter() - start
    peers = {}
    for peer in PEERS:
        try:
            importlib.import_module(peer)
        except ImportError:
            continue
        logging.disable(logging.WARNING)  # one line for every step at a limit
        peers[peer] = _of_peer({"pink": _Pink, "mink": _Mink}[peer](m, link), R, p, lower, upper, options)
        logging.disable(logging.NOTSET)
    success, batch_success = float(np.mean([r.success for r in one])), float(batch.success.mean())
    faster = {"TRAC-IK": TRAC_IK["ms"][0] / batch_ms, **{name: peer["ms"] / one_ms for name, peer in peers.items()}}
    best = max([TRAC_IK["success"][0], *(peer["success"] for peer in peers.values())])
    return {"title": m.name, "link": link, "joints": sum(joint.nv for joint in above), "success": success,
            "ms": one_ms, "worst": float(np.max([r.error.max() for r in one if r.success])),
            "many": options.many, "batch_success": batch_success, "batch_ms": batch_ms, "batch_seconds": seconds,
            "peers": peers, "faster": faster,
            "met": bool(min(faster.values()) >= TARGETS["faster"] and seconds < TARGETS["seconds"]
                        and min(success, batch_success) >= best - 1.5 / options.poses)}


def _timed(function):
    """The result, and seconds of processor time of one run out of as many as take 0.2 s."""
    start, runs = time.process_time(), 0
    while time.process_time() - start < 0.2:
        result = function()
        runs += 1
    return result, (time.process_time() - start) / runs


def _ranges(m, most_wide=np.pi):
    """Ranges of the coordinates, no wider than from minus to plus `most_wide`."""
    lower, upper = np.empty(m.nq), np.empty(m.nq)
    for link in m.links:
        where = m.q_slice(link.joint_name)
        if link.joint.nv:
            least, most = np.maximum(link.joint.lower, -most_wide), np.minimum(link.joint.upper, most_wide)
            lower[where], upper[where] = least, most
    for coupling in m.couplings.values():
        led, leader = m.q_slice(coupling.joint), m.q_slice(coupling.to)
        lower[led] = coupling.ratio * lower[leader] + coupling.offset
        upper[led] = coupling.ratio * upper[leader] + coupling.offset
    return lower, upper


class _Pink:
    """A frame task of pink, on the same tree."""

    def __init__(self, m, link):
        import pink
        import pinocchio as pin

        from bunraku.bench.peers import Pinocchio

        self.pin, self.pink = pin, pink
        bare = files.bare(m)
        self.peer = peer = Pinocchio(bare)
        joint, frame = peer.carrier[m.link_names.index(link)]
        peer.model.addFrame(pin.Frame("tip", joint, 0, frame, pin.FrameType.OP_FRAME))
        lower, upper = _ranges(m, 1e3)
        peer.model.lowerPositionLimit = peer.q(lower)
        peer.model.upperPositionLimit = peer.q(upper)
        peer.model.velocityLimit = np.full(m.nv, 1e3)
        self.data = peer.model.createData()
        self.task = pink.FrameTask("tip", position_cost=1.0, orientation_cost=1.0, lm_damping=1e-3)

    def aim(self, R, p):
        self.task.set_target(self.pin.SE3(R, p))

    def begin(self, q):
        self.configuration = self.pink.Configuration(self.peer.model, self.data, self.peer.q(q))

    def error(self):
        x = self.task.compute_error(self.configuration)
        return max(np.linalg.norm(x[:3]), np.linalg.norm(x[3:]))

    def step(self):
        velocity = self.pink.solve_ik(self.configuration, [self.task], 1.0, solver="daqp", safety_break=False)
        self.configuration.integrate_inplace(velocity, 1.0)


class _Mink:
    """A frame task of mink, on the same tree."""

    def __init__(self, m, link):
        import mink

        from bunraku.bench.peers import MuJoCo

        self.mink = mink

        class Limited(MuJoCo):
            def add_shapes(self, m, bodies):
                bodies[m.link_names.index(link)].add_site(name="tip")

        self.peer = Limited(files.bare(m))
        model = self.peer.model
        lower, upper = _ranges(m, 1e3)
        model.jnt_limited[:] = True
        model.jnt_range[:, 0], model.jnt_range[:, 1] = self.peer.q(lower), self.peer.q(upper)
        self.task = mink.FrameTask("tip", "site", position_cost=1.0, orientation_cost=1.0, lm_damping=1e-3)
        self.configuration = mink.Configuration(model)
        self.limits = [mink.ConfigurationLimit(model)]

    def aim(self, R, p):
        self.task.set_target(self.mink.SE3.from_rotation_and_translation(self.mink.SO3.from_matrix(R), p))

    def begin(self, q):
        self.configuration.update(self.peer.q(q))

    def error(self):
        x = self.task.compute_error(self.configuration)
        return max(np.linalg.norm(x[:3]), np.linalg.norm(x[3:]))

    def step(self):
        velocity = self.mink.solve_ik(self.configuration, [self.task], 1.0, solver="daqp", limits=self.limits)
        self.configuration.integrate_inplace(velocity, 1.0)


def _of_peer(peer, R, p, lower, upper, options) -> dict:
    """Success and time of a peer, which is stepped until it reaches a pose."""
    starts = np.random.default_rng(1).random((STARTS, len(lower)))
    starts[0] = 0.5
    reached, steps, begin = 0, 0, time.process_time()
    for k in range(options.few):
        peer.aim(R[k], p[k])
        for part in starts:
            peer.begin(lower + part * (upper - lower))
            done = False
            for _ in range(STEPS):
                if peer.error() < REACHED:
                    done = True
                    break
                try:
                    peer.step()
                except Exception as error:  # its QP has no solution: the next start
                    if "olution" not in f"{type(error).__name__} {error}":
                        raise
                    break
                steps += 1
            if done:
                reached += 1
                break
    return {"success": reached / options.few, "ms": 1e3 * (time.process_time() - begin) / options.few,
            "steps": steps / options.few, "poses": options.few}


def platform() -> tuple[bk.Mechanism, np.ndarray]:
    """6-UPS, and its coordinates with the plate 1 m above the ground."""
    turn = 2.0 * np.pi / 3.0 * np.repeat(np.arange(3), 2)
    below, above = turn + np.tile([-0.2, 0.2], 3), turn + np.pi / 3 + np.tile([-0.8, 0.8], 3)
    base = np.stack([np.cos(below), np.sin(below), 0 * below], axis=1)
    plate = 0.6 * np.stack([np.cos(above), np.sin(above), 0 * above], axis=1)
    m, home = bk.Mechanism(name="6-UPS"), np.array([0.0, 0.0, 1.0])
    m.add_link("plate", joint=bk.Free(), mass=5.0, inertia=(0.1, 0.1, 0.2))
    for k in range(6):
        leg = plate[k] + home - base[k]
        length = np.linalg.norm(leg)
        z = leg / length
        x = np.cross([0, 1, 0], z) / np.linalg.norm(np.cross([0, 1, 0], z))
        m.add_link(f"cross {k}", joint=bk.Revolute((1, 0, 0)), position=base[k],
                   rotation=np.stack([x, np.cross(z, x), z], axis=1), mass=0.1, inertia=(1e-3,) * 3)
        m.add_link(f"leg {k}", f"cross {k}", bk.Revolute((0, 1, 0)), mass=1.0, inertia=(0.02, 0.02, 1e-3))
        m.add_link(f"rod {k}", f"leg {k}", bk.Prismatic((0, 0, 1)), position=(0, 0, length), mass=0.5,
                   inertia=(0.01, 0.01, 1e-3))
        m.connect(f"rod {k}", "plate", bk.Spherical(), position_b=plate[k])
    q0 = m.neutral()
    q0[:3] = home
    return m, q0


def _platform(options) -> dict:
    m, q0 = platform()
    rng = np.random.default_rng(0)
    p = q0[:3] + rng.uniform(-0.25, 0.25, (options.poses, 3))
    turned = m.copy()
    for name in list(turned.connections):
        turned.cut(name)
    Q = np.array([turned.integrate(q0, np.r_[0, 0, 0, phi, np.zeros(m.nv - 6)])
                  for phi in rng.uniform(-0.4, 0.4, (options.poses, 3))])
    R = bk.poses(turned, Q)["plate"][0]
    bk.inverse_kinematics(m, {"plate": (R[0], p[0])}, q0)
    start = time.perf_counter()
    r = bk.inverse_kinematics(m, {"plate": (R, p)}, q0)
    seconds = time.perf_counter() - start
    worst = float(max(r.error.max(), r.gap.max()))
    return {"poses": options.poses, "success": float(r.success.mean()), "worst": worst,
            "us": 1e6 * seconds / options.poses, "met": bool(r.success.all() and worst < TARGETS["exact"])}


def _figure(options) -> dict:
    m = bk.models.human(dof=34)
    q0, feet = m.neutral(), ["left_foot", "right_foot"]
    hand = bk.poses(m, q0)["left_hand"][1]
    goals = hand + np.random.default_rng(0).uniform(-0.3, 0.3, (options.poses, 3))
    bk.inverse_kinematics(m, {"left_hand": goals[0]}, q0, hold=feet)
    start = time.perf_counter()
    r = bk.inverse_kinematics(m, {"left_hand": goals}, q0, hold=feet)
    seconds = time.perf_counter() - start
    return {"poses": options.poses, "success": float(r.success.mean()), "us": 1e6 * seconds / options.poses,
            "worst": float(r.error[r.success].max())}


def text(result: dict) -> str:
    """The result as a page."""
    on, trac = result["machine"], result["trac_ik"]
    lines = [f"bunraku {result['bunraku']}: inverse kinematics of random reachable poses", machine.line(on), ""]
    lines += [f"  {'':<44}{'success':>9}{'ms a pose':>11}"]
    for arm in result["arms"]:
        lines += [f"{arm['title']}, {arm['link']}, {arm['joints']} joints",
                  f"  {'bunraku, one call from Python':<44}{100 * arm['success']:8.1f}%{arm['ms']:11.4f}",
                  f"  {'bunraku, compiled, one core':<44}{100 * arm['batch_success']:8.1f}%{arm['batch_ms']:11.4f}"
                  f"   ({arm['many']} poses on {on['cores']} cores: {arm['batch_seconds']:.2f} s)"]
        lines += [f"  {name + ', ' + str(peer['poses']) + ' poses':<44}{100 * peer['success']:8.1f}%{peer['ms']:11.3f}"
                  for name, peer in arm["peers"].items()]
        lines += [f"  {'TRAC-IK, published':<44}{100 * trac['success'][0]:.1f}-{100 * trac['success'][1]:.0f}%"
                  f"{trac['ms'][0]:8.2f}-{trac['ms'][1]:.2f}",
                  "  times as fast: " + ", ".join(f"{x:.1f} ({name})" for name, x in arm["faster"].items())
                  + f": {_verdict(arm['met'])} (at least {result['targets']['faster']:g}; success not worse; all poses "
                  f"in {result['targets']['seconds']:g} s)"]
    platform, figure = result["platform"], result["figure"]
    lines += ["", f"6-UPS platform, {platform['poses']} poses: {100 * platform['success']:.1f} % reached, largest "
              f"error and gap {platform['worst']:.1e}, {platform['us']:.0f} us a pose: {_verdict(platform['met'])} "
              f"(all to {result['targets']['exact']:g})",
              f"figure on held feet, {figure['poses']} places for a hand: {100 * figure['success']:.1f} % reached, "
              f"{figure['us']:.0f} us each"]
    return "\n".join(lines)


def _verdict(met: bool) -> str:
    return "PASS" if met else "MISS"
