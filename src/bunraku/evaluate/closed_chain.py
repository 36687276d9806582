"""Inverse dynamics of closed chains by virtual work: actuator torques for given accelerations.

Idea: cut the loops; the tree's torques tau_O follow from Newton-Euler. A closed chain moves by fewer, generalised
coordinates G, v = W v_G, and its actuators by v_A = S v_G. The same virtual work gives W^T tau_O = S^T tau_A, which is
solved for tau_A. Reference: [YN99] sec. 2, eqs. 1-10. Cost: one inverse dynamics, O(rows^2 nv) for W, O(nv^3) to solve.

Actuators are the joints and connections whose `actuated` is true. Springs and dampers act by themselves: they are not
part of tau_A, in joints or in connections.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bunraku.checks import aligned
from bunraku.entries.closed_solution import refuse_open
from bunraku.entries.constraint_entries import Demands, choose, demands
from bunraku.entries.explain import several
from bunraku.entries.inverse_entries import inverse_dynamics
from bunraku.errors import ActuationError, ModelError, StateError
from bunraku.evaluate.constraints import one_state, parts
from bunraku.evaluate.kinematics import kinematics
from bunraku.evaluate.loop_closure import project
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan import fields as f
from bunraku.tolerances import (
    ACCELERATION_FLOOR,
    ACTUATED,
    FITS_LOOPS,
    ONLY_TURNS,
    POSE_NEARBY,
    UNDRIVEN,
    UNDRIVEN_FLOOR,
    WORTH_NAMING,
)

Label = tuple[str, int]  # joint or connection, and which of its degrees of freedom


@dataclass(frozen=True, eq=False)
class ClosedChain:
    """A mechanism with loops in one state, in generalised coordinates chosen automatically.

    `generalised` are independent joint velocities, which determine all others: v = W v_G. `actuators` can be
    driven, v_A = S v_G. Labels are (joint or connection, index of its degree of freedom).
    """

    generalised: list[Label]
    dependent: list[Label]
    actuators: list[Label]
    G: np.ndarray         # (g,) places of the generalised coordinates in v
    A: np.ndarray         # (actuators,) places of the actuators in tau: joints, then freedoms of connections
    W: np.ndarray         # (nv, g)
    S: np.ndarray         # (actuators, g)
    freedom: int          # g = nv - rank: mobility, what the loops leave in this state [YN99, eq. 6]
    redundant: int        # actuators more than needed (their torques are not unique), 0 if none
    undriven: int         # freedoms that no actuator moves, 0 if fully actuated
    constraints: int      # rows of all connections
    rank: int             # of them independent
    at_rest: np.ndarray   # (nv,) accelerations that keep the loops closed while the generalised ones are zero
    found: Demands = field(repr=False)
    names: dict[str, slice] = field(repr=False)  # rows of each connection
    mechanism: Mechanism = field(repr=False)
    q: np.ndarray = field(repr=False)

    def accelerations(self, a_G) -> np.ndarray:
        """Accelerations of all joints for given ones of the generalised coordinates, loops kept closed."""
        return self.at_rest + self.W @ np.asarray(a_G, float)  # [YN99, eqs. 1, 9], differentiated

    def consistent(self, a) -> np.ndarray:
        """Accelerations that keep the loops closed: those of the generalised coordinates as in a, the others computed
        from them."""
        return self.accelerations(np.asarray(a, float)[self.G])

    def torques(self, tau_O) -> np.ndarray:
        """Actuator torques with the same virtual work as the tree's torques tau_O; of minimum norm if not unique.

        As long as tau: one per joint velocity (then one per freedom of connections, if any of those is actuated), zero
        where not actuated. An ActuationError if the actuators cannot produce the motion.
        """
        tau_O = np.asarray(tau_O, float) - self.found.own  # springs and dampers of connections act by themselves
        tau_G = self.W.T @ tau_O                           # [YN99, eq. 3]
        left, values, right, driven = _drive(self.S, self.W)
        tau_A = left[:, :driven] @ ((right[:driven] @ tau_G) / values[:driven])  # [YN99, eq. 4], minimum norm
        missing = tau_G - self.S.T @ tau_A                 # [YN99, eq. 4]
        size = float((np.abs(self.W.T) @ np.abs(tau_O)).max(initial=0.0))
        if np.abs(missing).max(initial=0.0) > UNDRIVEN * size + UNDRIVEN_FLOOR:
            self._refuse(missing)
        nv, nc = self.found.ways.shape
        tau = np.zeros(nv + nc if self.A.max(initial=-1) >= nv else nv)
        tau[self.A] = tau_A
        return tau

    def _refuse(self, missing):
        order = np.argsort(-np.abs(missing))
        shown = [f"{missing[k]:.4g} at {_named(self.generalised[k])}" for k in order[:3]
                 if abs(missing[k]) > WORTH_NAMING * abs(missing[order[0]])]
        few = (f"{self.freedom} degree{'s' * (self.freedom != 1)} of freedom and {len(self.A)} "
               f"actuator{'s' * (len(self.A) != 1)}, which leave {self.undriven} undriven")
        if self.undriven and self._singular():
            link, way, turns = self._lost(missing)
            raise ActuationError(
                f"singular pose: the actuators cannot {'turn' if turns else 'move'} {link!r} "
                f"{'about' if turns else 'in direction'} ({', '.join(f'{x:.3g}' for x in way)}) (world axes); a "
                f"generalised force of {', '.join(shown)} is left ({few}). Elsewhere they can: pass through this pose "
                "with an acceleration that needs no force there, or make another joint `actuated`")
        raise ActuationError(
            f"underactuated: the actuators cannot produce this motion; a generalised force of {', '.join(shown)} is "
            f"left ({few}). Make more joints `actuated`, or ask for a motion that needs no force there")

    def _singular(self) -> bool:
        """Whether the pose is singular: the rank of the actuation is higher at nearby poses."""
        for sign in (1.0, -1.0):
            for way in self.W.T:
                try:
                    q = project(self.mechanism, self.mechanism.integrate(self.q, sign * POSE_NEARBY * way))
                    if _closed_chain(self.mechanism, self.mechanism.plan(), q, None).undriven < self.undriven:
                        return True
                except StateError:
                    continue
        return False

    def _lost(self, missing) -> tuple[str, np.ndarray, bool]:
        """(link, direction, whether it is a rotation): the largest motion caused by the force that the actuators cannot
        balance."""
        _, _, right, driven = _drive(self.S, self.W)
        still = right[driven:]                              # generalised velocities that move no actuator
        speeds = self.W @ (still.T @ (still @ missing))
        moved = kinematics(self.mechanism, self.q, speeds).velocities
        link, velocity = max(moved.items(), key=lambda item: np.linalg.norm(item[1][:3]))
        turns = bool(np.linalg.norm(velocity[:3]) < ONLY_TURNS * np.linalg.norm(speeds))
        if turns:
            link, velocity = max(moved.items(), key=lambda item: np.linalg.norm(item[1][3:]))
        way = velocity[3:] if turns else velocity[:3]
        way = way / max(np.linalg.norm(way), 1e-300)
        return link, np.round(way, 3) + 0.0, turns

    def check(self, a):
        """A StateError unless these accelerations keep every loop closed."""
        left = self.found.columns.T @ a + self.found.bias
        size = np.abs(self.found.columns.T) @ np.abs(a) + np.abs(self.found.bias) + self.found.size + ACCELERATION_FLOOR
        share = np.abs(left) / size.max(initial=ACCELERATION_FLOOR)
        if share.max(initial=0.0) <= FITS_LOOPS:
            return
        worst = int(np.argmax(share))
        name = next(name for name, where in self.names.items() if where.start <= worst < where.stop)
        raise StateError(
            f"these accelerations open the loop at connection {name!r}: its two sides would accelerate apart by "
            f"{np.linalg.norm(left[self.names[name]]):.3g} (m/s^2, rad/s^2). Take a from bk.forward_dynamics, or make "
            "it fit: bk.closed_chain(m, q, v).consistent(a)")


def _drive(S, W):
    """Singular value decomposition S = left diag(values) right, and the rank of S."""
    left, values, right = np.linalg.svd(S)
    return left, values, right, int(np.sum(values > ACTUATED * np.abs(W).max(initial=0.0)))


def _named(label: Label) -> str:
    return f"{label[0]!r}" + (f"[{label[1]}]" if label[1] else "")


def closed_chain(mechanism: Mechanism, q, v=None) -> ClosedChain:
    """Generalised coordinates, W = d(joints)/d(generalised) and S = d(actuators)/d(generalised) of one state [YN99].

    v matters only to `accelerations` and `consistent` (0 if not given).
    """
    one_state(q, v)
    if not as_mechanism(mechanism).constrained:
        raise ModelError(f"{mechanism.name} has no connections and no couplings, so it is no closed chain: every joint "
                         "is a generalised coordinate, and bk.inverse_dynamics takes it")
    return _closed_chain(mechanism, mechanism.plan(), q, v)


def _closed_chain(mechanism, plan, q, v) -> ClosedChain:
    found = demands(plan, q, v)
    dependent, G, H = choose(found.columns)  # [YN99, eqs. 7-10]
    W = np.zeros((plan.nv, len(G)))
    W[G, np.arange(len(G))] = 1.0  # [YN99, eq. 1]
    W[dependent] = H  # [YN99, eqs. 9-10]
    labels, rows = _labels(mechanism), []
    A: list[int] = []
    for link in mechanism.links:
        if link.actuated:
            where = mechanism.v_slice(link.joint_name)
            A += range(where.start, where.stop)
            rows.append(W[where])
    for name, where in parts(plan, f.FIRST_FREEDOM, f.FREEDOMS).items():
        if name in mechanism.connections and mechanism.connections[name].actuated:
            A += range(plan.nv + where.start, plan.nv + where.stop)
            rows.append(found.ways[:, where].T @ W)
    S = np.concatenate([np.zeros((0, len(G))), *rows])  # [YN99, eq. 2]
    driven = _drive(S, W)[3]
    a = np.linalg.lstsq(found.columns[dependent].T, -found.bias, rcond=None)[0] if len(dependent) else np.zeros(0)
    at_rest = np.zeros(plan.nv)
    at_rest[dependent] = a
    return ClosedChain([labels[k] for k in G], [labels[k] for k in dependent], [labels[k] for k in A], G,
                       np.array(A, int), W, S, len(G), len(A) - driven, len(G) - driven, plan.loops.rows,
                       len(dependent), at_rest, found, parts(plan, f.FIRST_ROW, f.ROWS), mechanism,
                       np.array(q, float))


def _labels(mechanism) -> list[Label]:
    """A label for every entry of tau: joints, then connections."""
    joints = [(link.joint_name, link.joint.nv) for link in mechanism.links]
    connections = [(c.name, c.joint.nv) for c in mechanism.connections.values()]
    return [(name, k) for name, count in [*joints, *connections] for k in range(count)]


def against_friction(mechanism: Mechanism, v, a) -> np.ndarray:
    """Torques that overcome the Coulomb friction of joints: of the sign of v, or of a where v is zero."""
    v, a = np.asarray(v, float), np.asarray(a, float)
    return mechanism.coulomb_friction() * np.where(v != 0.0, np.sign(v), np.sign(a))


def closed_inverse_dynamics(mechanism: Mechanism, plan, q, v, a, external=None, passive=True) -> np.ndarray:
    """Actuator torques of one state or a batch, for plans with loops; `external` is None or (links * 6) per state.

    nv numbers, or nv + nc if some connection with freedom is actuated. States that fail in a batch are named in one
    error.
    """
    tau_O = inverse_dynamics(plan, q, v, a, external, None)  # [YN99] step 2
    if passive and mechanism.has_joint_laws():
        tau_O = tau_O + against_friction(mechanism, v, a)
    batch, (q, v, a) = aligned(("q", q, plan.nq), ("v", v, plan.nv), ("a", a, plan.nv))
    if batch is None:
        return _one(mechanism, plan, q, v, a, tau_O)
    width = plan.nv + (plan.loops.freedoms if any(c.actuated and c.joint.nv for c in mechanism.connections.values())
                       else 0)
    tau, wrong = np.full((batch, width), np.nan), {}
    for k in range(batch):
        try:
            tau[k] = _one(mechanism, plan, q[k], v[k], a[k], tau_O[k])
        except StateError as error:
            wrong[k] = error
    if wrong:
        kind = ActuationError if all(isinstance(e, ActuationError) for e in wrong.values()) else StateError
        raise kind(several([k in wrong for k in range(batch)], wrong.get), states=list(wrong), result=tau)
    return tau


def _one(mechanism, plan, q, v, a, tau_O):
    refuse_open(plan, q)
    chain = _closed_chain(mechanism, plan, q, v)
    chain.check(a)
    return chain.torques(tau_O)
