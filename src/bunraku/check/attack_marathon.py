"""Structure changes, one after the other, in a moving mechanism. Each is checked: every link keeps its pose,
velocities change by the impulses alone, kinetic energy does not grow, loops are closed, and accelerations are those of
a dense solution of the equations of motion with all constraints. A run may stop where the loops are at a singular
configuration, and nowhere else."""

from __future__ import annotations

import numpy as np

from bunraku.check import Case
from bunraku.check.structures import Builder, joint_of, rotation
from bunraku.errors import SimulationError
from bunraku.evaluate import constraints, forward_dynamics, inverse_dynamics, kinematics, mass_matrix
from bunraku.simulation import Simulation

TITLE = "random connects and cuts in motion: places, impulses, energy, loops and accelerations checked after each"
UNIT = "structure changes"
SEEDS, SHORT = 4_000, 40
LIMIT = 300.0
CHANGES = 25          # of one case
MOST = 4              # connections at a time
ALIKE = 1e-9          # places and velocities of links, relative
ENERGY = 1e-12        # gain of kinetic energy at a connection, relative
AGREE = 1e-9          # accelerations, of the largest
KEPT, DROPPED = 1e-3, 1e-11  # singular values of constraints that are independent, and that are not, for certain
NEAR_SINGULAR = 1e-5  # as ALIKE, where some constraints are neither
KINDS = ("revolute", "prismatic", "cylindrical", "spherical", "planar", "fixed", "helical")


class Marathon:
    """A simulation whose structure is changed at random."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        builder = Builder(self.rng, "planar" if self.rng.random() < 0.3 else "mixed", int(self.rng.integers(3, 8)))
        m = builder.m
        self.sim = Simulation(m, builder.q, self.rng.normal(size=m.nv), solver="tsit5", rtol=1e-6, progress=False)
        self.worst: dict[str, float] = {}
        self.ended = False

    def note(self, what: str, error: float, limit: float) -> None:
        """Keep the largest error of each kind; one beyond its limit ends the case."""
        self.worst[what] = max(self.worst.get(what, 0.0), float(error))
        if not error <= limit:
            events = "; ".join(event.text for event in self.sim.trajectory.events[-3:])
            raise AssertionError(f"{what}: {error:.3g} > {limit:g} at t = {self.sim.t:.6g} s after {events}")

    def change(self) -> None:
        """One connection made or cut, or one joint of the tree cut."""
        rng, sim = self.rng, self.sim
        if rng.random() < 0.3:
            try:
                sim.run(until=sim.t + 0.01 * rng.random())
            except SimulationError:
                if clear_rank(constraints(sim.mechanism, sim.q, sim.v).jacobian):
                    raise
                self.worst["runs that stop at a singular configuration, in a case"] = 1.0
                self.ended = True
                return
        before, v = kinematics(sim.mechanism, sim.q, sim.v), sim.v
        held = list(sim.mechanism.connections)
        bound = [link.joint_name for link in sim.mechanism.links
                 if not (link.parent < 0 and type(link.joint).__name__ == "Free")]
        choice = rng.random()
        if held and (choice < 0.35 or len(held) >= MOST):
            sim.cut(held[rng.integers(len(held))])
            self.check_cut(before)
        elif bound and choice < 0.45:
            sim.cut(bound[rng.integers(len(bound))])
            self.check_cut(before)
        else:
            names = ["ground", *sim.mechanism.link_names]
            a, b = (names[k] for k in rng.choice(len(names), 2, replace=False))
            sim.connect(a, b, joint_of(rng, KINDS[rng.integers(len(KINDS))]), position_b=0.3 * rng.normal(size=3),
                        rotation_b=rotation(rng))
            self.check_connected(before, v)
        if rng.random() < 0.5:
            self.check_accelerations()

    def compare(self, before, velocities: bool) -> None:
        now = kinematics(self.sim.mechanism, self.sim.q, self.sim.v)
        for name, (R, x) in before.poses.items():
            turned, moved = now.poses[name]
            self.note("places", max(np.abs(turned - R).max(), np.abs(moved - x).max() / (1.0 + np.abs(x).max())), ALIKE)
            if velocities:
                old = before.velocities[name]
                self.note("velocities", np.abs(now.velocities[name] - old).max() / (1.0 + np.abs(old).max()), ALIKE)

    def check_cut(self, before) -> None:
        self.compare(before, velocities=True)

    def check_connected(self, before, old) -> None:
        """Poses are kept; M (v - v_before) is the generalised impulse of the connections; energy does not grow."""
        sim = self.sim
        m, q, v = sim.mechanism, sim.q, sim.v
        self.compare(before, velocities=False)
        M = mass_matrix(m, q)
        now = kinematics(m, q)
        gained = M @ (v - old)
        pushed, size = np.zeros(m.nv), 1.0 + np.abs(M) @ (np.abs(v) + np.abs(old))
        for name, impulse in sim.impulses.items():
            connection = m.connections[name]
            R, x = (now.poses[m.links[connection.link_b].name] if connection.link_b >= 0
                    else (np.eye(3), np.zeros(3)))
            turn, origin = R @ connection.rotation_b, x + R @ connection.position_b
            wrench = np.concatenate([turn @ impulse[:3], turn @ impulse[3:]])
            for link, sign in ((connection.link_b, 1.0), (connection.link_a, -1.0)):
                if link >= 0:
                    R, x = now.poses[m.links[link].name]
                    J = now.jacobian(m.links[link].name, R.T @ (origin - x))
                    pushed += sign * J.T @ wrench
                    size += np.abs(J.T) @ np.abs(wrench)
        found = constraints(m, q, v)
        limit = ALIKE if clear_rank(found.jacobian) else NEAR_SINGULAR
        what = "impulse balance" if limit == ALIKE else "impulse balance near singular configurations"
        self.note(what, (np.abs(gained - pushed) / size).max(initial=0.0), limit)
        was, is_now = 0.5 * old @ M @ old, 0.5 * v @ M @ v
        self.note("energy gained", (is_now - was) / (was + 1e-9), ENERGY)
        self.note("gaps", np.abs(found.gap).max(initial=0.0), ALIKE)
        self.note("velocities of gaps", np.abs(found.rates).max(initial=0.0) / (1.0 + np.abs(old).max(initial=0.0)),
                  ALIKE)

    def check_accelerations(self) -> None:
        """M a + h = tau + J^T f, J a + bias = 0, solved densely."""
        m, q, v = self.sim.mechanism, self.sim.q, self.sim.v
        found = constraints(m, q, v)
        if not clear_rank(found.jacobian):
            return  # near a singular configuration there is nothing to compare with
        U, s, Vt = np.linalg.svd(found.jacobian)
        tau = self.rng.normal(size=m.nv)
        tree = m.copy()
        for name in m.connections:
            tree.cut(name)
        M, h = mass_matrix(m, q), inverse_dynamics(tree, q, v, np.zeros(m.nv))
        rank = int(np.sum(s > max(KEPT * s.max(initial=0.0), 1e-12)))
        free = Vt[rank:].T
        a = -Vt[:rank].T @ ((U.T[:rank] @ found.bias) / s[:rank])
        if free.shape[1]:
            a = a + free @ np.linalg.solve(free.T @ M @ free, free.T @ (tau - h - M @ a))
        got = forward_dynamics(m, q, v, tau)
        size = 1.0 + np.abs(a).max(initial=0.0) + np.abs(found.bias).max(initial=0.0)
        self.note("accelerations", np.abs(got - a).max(initial=0.0) / size, AGREE)


def clear_rank(jacobian) -> bool:
    """Whether the rank of the constraints is numerically unambiguous."""
    values = np.linalg.svd(jacobian, compute_uv=False)
    part = values / max(values.max(initial=0.0), 1e-300)
    return not np.any((part < KEPT) & (part > DROPPED))


def case(seed: int) -> Case:
    """A mechanism and CHANGES changes of its structure."""
    marathon = Marathon(seed)
    done = 0
    while done < CHANGES and not marathon.ended:
        marathon.change()
        done += 1
    return Case(done, marathon.worst)
