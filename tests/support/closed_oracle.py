"""Dense oracle for the dynamics of a `Closed` structure; shares no code with the package.

Unknown are the accelerations y of the joints and of the connections, and six components F of the force in every
connection (on link b, at b's joint frame's origin, world axes). A loop is closed when the pose of b's frame is the same
by way of b and by way of a and the connection; both are carried with two exact time derivatives, so that

    H y = g + A^T F        H: mass matrix, and the connections' rotors;  g: drives and passive forces, less what v needs
    A y = d                A: velocity of b's frame seen from b, less that seen by way of a

No complement of the connection's freedoms is ever formed. A may lack rank: A y = d is then solved in the range of A and
the remainder is reported; y is the only one that fits H on A's null space; F is the smallest in the norm
|force|^2 + |moment / length|^2, drive included, summed over all connections.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import oracle
from closed import Closed
from oracle import at_rest, onward, own_torque, placed, six

RANK = 1e-9  # of the largest singular value


@dataclass
class Loops:
    """The connections at a state. Columns of A: tree velocities, then those of the connections in order."""

    A: np.ndarray            # (6k, nv + nc)
    drift: np.ndarray        # (6k,) relative acceleration at zero y
    gap: np.ndarray          # (6k,) how far the loops are open
    frames: list             # (R, x) of b's joint frame of each connection
    q: list                  # coordinates of each connection
    v: np.ndarray            # (nc,) their rates


def carried(at, link, nv):
    return at.carried[link] if link >= 0 else at_rest(nv)


def tie_coordinates(tie, T, guess):
    """The coordinates of a connection whose frames are T apart, near a guess: Gauss-Newton on the pose."""
    if tie.kind == "fixed":
        return np.empty(0)
    if tie.kind in ("spherical", "free"):
        turn = quaternion(T[:3, :3])
        return turn if tie.kind == "spherical" else np.concatenate([T[:3, 3], turn])
    q = np.array(guess, float)
    for _ in range(30):
        X, _, _, U = onward(at_rest(tie.nv), tie, q, np.zeros(tie.nv), 0)
        dq = np.linalg.lstsq(six(U, X[:3, :3]).T, six(T - X, X[:3, :3]), rcond=None)[0]
        q += dq
        if np.abs(dq).max() < 1e-11:  # quadratic: the next one would be nothing
            break
    return q


def quaternion(R):
    """By the eigenvector of its largest eigenvalue (Davenport)."""
    K = np.empty((4, 4))
    K[0, 0], K[1:, 1:] = np.trace(R), R + R.T - np.trace(R) * np.eye(3)
    K[0, 1:] = K[1:, 0] = 2 * oracle.unskew(R)
    return np.linalg.eigh(K)[1][:, -1]


def loops(closed: Closed, q, v, at=None) -> Loops:
    """`at`: the motion of the tree, if it is known."""
    nv, nc = closed.m.nv, sum(tie.nv for tie in closed.ties)
    at = oracle.motion(closed, q, v) if at is None else at
    sides, coordinates, first = [], [], nv
    for tie, guess in zip(closed.ties, closed.guesses, strict=True):
        a = placed(carried(at, tie.a, nv), tie.position_a, tie.rotation_a)
        b = placed(carried(at, tie.b, nv), tie.position_b, tie.rotation_b)
        c = tie_coordinates(tie, np.linalg.solve(a[0], b[0]), guess)
        sides.append((tie, a, b, c, first))
        coordinates.append(c)
        first += tie.nv
    A, gap, frames = np.zeros((6 * len(sides), nv + nc)), [], []
    for k, (tie, a, b, c, first) in enumerate(sides):
        X, _, _, U = onward(wider(a, nc), tie, c, np.zeros(tie.nv), first)
        R = b[0][:3, :3]
        A[6 * k:6 * k + 6] = (six(wider(b, nc)[3], R) - six(U, R)).T
        gap.append(six(b[0] - X, R))
        frames.append((R, b[0][:3, 3]))
    if not v.any():
        return Loops(A, np.zeros(len(A)), np.ravel(gap), frames, coordinates, np.zeros(nc))
    rates = -np.linalg.lstsq(A[:, nv:], A[:, :nv] @ v, rcond=None)[0] if nc else np.empty(0)
    drift = []
    for tie, a, b, c, first in sides:
        a = onward(wider(a, nc), tie, c, rates[first - nv:first - nv + tie.nv], first)
        drift.append(six(b[2], b[0][:3, :3]) - six(a[2], b[0][:3, :3]))
    return Loops(A, np.ravel(drift), np.ravel(gap), frames, coordinates, rates)


def wider(carried, nc):
    X, X1, X2, U = carried
    return X, X1, X2, np.concatenate([U, np.zeros((nc, 4, 4))])


class Constraint:
    """A y = d, its ranges and null spaces; rows are scaled so that the norm of multipliers is the one meant."""

    def __init__(self, A, d, length=1.0):
        self.scale = np.tile([1.0, 1.0, 1.0, length, length, length], len(A) // 6 + 1)[:len(A)]
        U, s, Vt = np.linalg.svd(A * self.scale[:, None])
        self.rank = int(np.sum(s > RANK * s.max(initial=0.0)))
        self.condition = s[0] / s[self.rank - 1] if self.rank else 1.0
        self.U, self.s, self.Vt = U, s[:self.rank], Vt
        within = U.T @ (d * self.scale)
        self.particular = Vt[:self.rank].T @ (within[:self.rank] / self.s)
        self.inconsistent = np.abs(within[self.rank:]).max(initial=0.0) / max(1.0, np.abs(d).max(initial=0.0))
        self.null = Vt[self.rank:].T            # directions the constraints leave free
        self.redundant = U[:, self.rank:]       # forces that do nothing

    def solve(self, H, g):
        """y, and the smallest multipliers: H y = g + A^T F."""
        Z = self.null
        y = self.particular.copy()
        if Z.shape[1]:
            y += Z @ np.linalg.solve(Z.T @ H @ Z, Z.T @ (g - H @ y))
        F = self.U[:, :self.rank] @ ((self.Vt[:self.rank] @ (H @ y - g)) / self.s)
        return y, F * self.scale


@dataclass
class ClosedAnswer:
    a: np.ndarray            # joint accelerations
    links: np.ndarray        # (n, 6) accelerations of link frames
    forces: dict             # {joint or connection: 6}, at the child side's frame, in its axes
    a_ties: np.ndarray       # accelerations of the connections
    tau: np.ndarray          # what drives each joint and connection, passive forces not included
    constraints: int         # rows the connections stand for
    rank: int                # independent ones among them
    condition: float
    indeterminate: dict      # {connection: directions of its force that are not determined}
    inconsistent: float      # how badly the constraints contradict each other, relative
    residual: float          # of the torques, after every link's Newton-Euler equations have been solved again


def solve(closed: Closed, q, v, tau=None, external=None, prescribed=None, passive=True, length=1.0) -> ClosedAnswer:
    """tau: nv or nv + nc numbers. prescribed: {index in the long tau: acceleration}, in place of that torque."""
    nv = closed.m.nv
    at = oracle.motion(closed, q, v)
    ring = loops(closed, q, v, at)
    assert np.abs(ring.gap).max(initial=0.0) < 1e-8, "the loops are open"
    nc = len(ring.v)
    drive = np.zeros(nv + nc)
    drive[:0 if tau is None else len(tau)] = [] if tau is None else tau
    H, g = inertia(closed, q, nc, passive), drive.copy()
    g[:nv] -= oracle.solve(closed, q, v, a=np.zeros(nv), external=external, passive=passive).tau
    if passive:
        g[nv:] += tie_torques(closed, ring)
    told = sorted(prescribed or {})
    pick = np.eye(nv + nc)[told]
    A = np.concatenate([ring.A, pick])
    d = np.concatenate([-ring.drift, [prescribed[j] for j in told]])
    g[told] -= drive[told]
    constraint = Constraint(A, d, length)
    y, F = constraint.solve(H, g)
    wrenches, multipliers = F[:6 * len(closed.ties)].reshape(-1, 2, 3), F[6 * len(closed.ties):]
    drive[told] = multipliers
    pushed = {part.name: np.zeros(6) for part in closed.parts}
    for tie, (force, moment), (_, x) in zip(closed.ties, wrenches, ring.frames, strict=True):
        for link, sign in ((tie.b, 1.0), (tie.a, -1.0)):
            if link >= 0:
                arm = x - at.x[link]
                pushed[closed.parts[link].name] += sign * np.concatenate([force, moment + np.cross(arm, force)])
    for name, wrench in (external or {}).items():
        pushed[name] = pushed[name] + wrench
    again = oracle.solve(closed, q, v, a=y[:nv], external=pushed, passive=passive)
    forces = dict(again.forces)
    for tie, wrench, (R, _) in zip(closed.ties, wrenches, ring.frames, strict=True):
        forces[tie.name] = (wrench @ R).ravel()
    size = max(1.0, np.abs(again.tau).max(initial=0.0), np.abs(F).max(initial=0.0))
    rows = sum(6 - tie.nv for tie in closed.ties)
    return ClosedAnswer(y[:nv], again.links, forces, y[nv:], drive, rows, constraint.rank - nc - len(told),
                        constraint.condition, indeterminate(closed, constraint), constraint.inconsistent,
                        np.abs(again.tau - drive[:nv]).max(initial=0.0) / size)


def inertia(closed, q, nc, passive=True):
    nv = closed.m.nv
    H = np.zeros((nv + nc, nv + nc))
    H[:nv, :nv] = oracle.mass_matrix(closed, q)
    if passive:
        H[range(nv, nv + nc), range(nv, nv + nc)] = [row["armature"] for tie in closed.ties for row in tie.passive]
    else:
        H[:nv, :nv] -= np.diag(oracle.armature(closed))
    return H


def tie_torques(closed, ring):
    out, i = [], 0
    for tie, c in zip(closed.ties, ring.q, strict=True):
        out += own_torque(tie, c, ring.v[i:i + tie.nv])
        i += tie.nv
    return np.array(out)


def indeterminate(closed, constraint):
    """In how many directions each connection's force is open."""
    return {tie.name: int(np.linalg.matrix_rank(constraint.redundant[6 * k:6 * k + 6], tol=1e-6))
            for k, tie in enumerate(closed.ties) if constraint.redundant.shape[1]}


def impact(closed: Closed, q, v, length=1.0):
    """Velocity after every connection has become rigid, and {connection: impulse}, as `solve` gives forces."""
    nv = closed.m.nv
    ring = loops(closed, q, np.zeros(nv))
    H = inertia(closed, q, len(ring.v))
    before = np.concatenate([v, np.zeros(len(ring.v))])
    constraint = Constraint(ring.A, np.zeros(len(ring.A)), length)
    after, P = constraint.solve(H, H @ before)
    impulses = {tie.name: (P[6 * k:6 * k + 6].reshape(2, 3) @ ring.frames[k][0]).ravel()
                for k, tie in enumerate(closed.ties)}
    return after[:nv], impulses


def jacobian(closed: Closed, q):
    """Rows that must vanish on v: A with the connections' own velocities taken out."""
    ring = loops(closed, q, np.zeros(closed.m.nv))
    A, S = ring.A[:, :closed.m.nv], ring.A[:, closed.m.nv:]
    if S.shape[1]:
        U, s, _ = np.linalg.svd(S)
        A = U[:, int(np.sum(s > RANK * s[0])):].T @ A
    return A


def consistent(closed: Closed, q, v):
    """The nearest velocity that keeps the loops closed."""
    J = jacobian(closed, q)
    return v - np.linalg.pinv(J, rcond=RANK) @ (J @ v) if J.size else v


def potential(closed: Closed, q):
    """Energy in the springs and limits of connections."""
    ring = loops(closed, q, np.zeros(closed.m.nv))
    energy = 0.0
    for tie, c in zip(closed.ties, ring.q, strict=True):
        x = oracle.joint_coordinates(tie, c)
        for row, x_d in zip(tie.passive, x, strict=True):
            over = max(x_d - row["upper"], 0.0) - max(row["lower"] - x_d, 0.0) if tie.kind != "spherical" else 0.0
            energy += 0.5 * row["stiffness"] * (x_d - row["rest"])**2 + 0.5 * row["limit_stiffness"] * over**2
        if tie.kind == "spherical":
            over = max(np.linalg.norm(x) - tie.passive[0]["upper"], 0.0)
            energy += 0.5 * tie.passive[0]["limit_stiffness"] * over**2
    return energy
