"""Dense oracle for the dynamics of a `Tree`, from first principles; shares no code with the package.

Kinematics: every pose is a 4x4 matrix carried with its first and second time derivative by the product rule; no
spatial algebra, no recursion of velocities. Dynamics: every link on its own under Newton's and Euler's laws, with six
unknown accelerations, six unknown components of the force in its joint, and the joint's accelerations; one linear
system for all of them at once. Vectors of six are (linear, angular) or (force, moment), world axes, at link origins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structures import Tree, skew


def unskew(A):
    return 0.5 * np.stack([A[..., 2, 1] - A[..., 1, 2], A[..., 0, 2] - A[..., 2, 0], A[..., 1, 0] - A[..., 0, 1]], -1)


def motion_matrix(linear, angular):
    """4x4 matrix V of a velocity in moving axes: dT/dt = T V."""
    V = np.zeros((4, 4))
    V[:3, :3], V[:3, 3] = skew(angular), linear
    return V


def quaternion_matrix(p):
    w, u = p[0], skew(p[1:])
    return np.eye(3) + 2 * (w * u + u @ u) / (p @ p)


def steps(part, q):
    """The joint as steps: the transformation of each, and the motion matrix of each of its degrees of freedom."""
    T = np.eye(4)
    if part.kind == "spherical":
        T[:3, :3] = quaternion_matrix(q)
        return [(T, [motion_matrix(np.zeros(3), e) for e in np.eye(3)])]
    if part.kind == "free":
        T[:3, :3], T[:3, 3] = quaternion_matrix(q[3:]), q[:3]
        return [(T, [motion_matrix(e[:3], e[3:]) for e in np.eye(6)])]
    return [screw_step(screw, x) for screw, x in zip(part.screws, q, strict=True)]


def screw_step(screw, x):
    K = skew(screw.axis)
    angle = screw.angular * x
    R = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, screw.at - R @ screw.at + screw.linear * x * screw.axis
    slide = screw.linear * screw.axis - screw.angular * K @ screw.at
    return T, [motion_matrix(slide, screw.angular * screw.axis)]


@dataclass
class Motion:
    """Where links are and how they move."""

    R: np.ndarray          # (n, 3, 3)
    x: np.ndarray          # (n, 3)
    velocity: np.ndarray   # (n, 6)
    drift: np.ndarray      # (n, 6) acceleration at zero joint acceleration
    J: np.ndarray          # (n, 6, nv)
    carried: list          # what `onward` made of each link


def at_rest(nv):
    """The ground, as `onward` carries it: pose, its two time derivatives, its derivative by each of nv velocities."""
    return np.eye(4), np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((nv, 4, 4))


def placed(carried, position, rotation):
    """The same for a frame fixed on it."""
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = rotation, position
    return tuple(part @ place for part in carried)


def onward(carried, part, q, v, first):
    """The same beyond a joint, whose velocities are number `first` and following."""
    X, X1, X2, U = carried
    i = 0
    for T, columns in steps(part, q):
        V = sum(c * r for c, r in zip(columns, v[i:i + len(columns)], strict=True))
        U = U @ T
        for column in columns:
            U[first + i] += X @ T @ column
            i += 1
        X, X1, X2 = X @ T, X1 @ T + X @ T @ V, X2 @ T + 2 * X1 @ T @ V + X @ T @ V @ V
    return X, X1, X2, U


def six(D, R):
    """(linear, angular) of the derivative D of a pose with rotation R."""
    return np.concatenate([D[..., :3, 3], unskew(D[..., :3, :3] @ np.swapaxes(R, -1, -2))], axis=-1)


def motion(tree: Tree, q, v) -> Motion:
    nv = tree.m.nv
    links, i_v = [], 0
    for part, q_j, v_j in by_joint(tree, q, v):
        above = links[part.parent] if part.parent >= 0 else at_rest(nv)
        links.append(onward(placed(above, part.position, part.rotation), part, q_j, v_j, i_v))
        i_v += part.nv
    X, X1, X2, U = (np.array(a) for a in zip(*links, strict=True))
    R = X[:, :3, :3]
    return Motion(R, X[:, :3, 3], six(X1, R), six(X2, R), six(U, R[:, None]).transpose(0, 2, 1), links)


def newton_euler(part, R, velocity):
    """6x6 inertia at the link's origin and the force that velocities need."""
    c, I, w = R @ part.com, R @ part.inertia @ R.T, velocity[3:]
    C = skew(c)
    N = np.block([[part.mass * np.eye(3), -part.mass * C], [part.mass * C, I - part.mass * C @ C]])
    centripetal = part.mass * np.cross(w, np.cross(w, c))
    return N, np.concatenate([centripetal, np.cross(c, centripetal) + np.cross(w, I @ w)])


def weight(part, R, gravity):
    force = part.mass * gravity
    return np.concatenate([force, np.cross(R @ part.com, force)])


def rotation_vector(p):
    p = p if p[0] >= 0 else -p
    sine = np.linalg.norm(p[1:])
    return p[1:] * (2 * np.arctan2(sine, p[0]) / sine if sine > 0 else 0.0)


def joint_coordinates(part, q):
    """The coordinates that springs and limits see: q itself, or the rotation vector; a Free joint has neither."""
    if part.kind == "spherical":
        return rotation_vector(q)
    return np.zeros(6) if part.kind == "free" else q


def passive_torque(tree, q, v):
    """Torques of joint springs, dampers and limits."""
    return np.array([torque for joint in by_joint(tree, q, v) for torque in own_torque(*joint)])


def own_torque(part, q, v):
    """Torques of one joint's springs, dampers and limits."""
    x = joint_coordinates(part, q)
    length = np.linalg.norm(x)
    out = []
    for row, x_d, v_d in zip(part.passive, x, v, strict=True):
        torque = -row["stiffness"] * (x_d - row["rest"]) - row["damping"] * v_d
        if part.kind == "spherical":
            over = max(length - row["upper"], 0.0)
            beyond = over * x_d / length if over > 0 else 0.0
        else:
            over = beyond = max(x_d - row["upper"], 0.0) - max(row["lower"] - x_d, 0.0)
        if row["limit_stiffness"] > 0 and over != 0:
            torque -= row["limit_stiffness"] * beyond + row["limit_damping"] * v_d
        out.append(torque)
    return out


def by_joint(tree, q, v):
    i_q = i_v = 0
    for part in tree.parts:
        yield part, q[i_q:i_q + part.nq], v[i_v:i_v + part.nv]
        i_q, i_v = i_q + part.nq, i_v + part.nv


def armature(tree):
    return np.array([row["armature"] for part in tree.parts for row in part.passive])


def spring_wrenches(tree, at: Motion):
    """Forces of the point springs on the links, and the energy in them."""
    wrench, energy = np.zeros((len(tree.parts), 6)), 0.0
    for spring in tree.springs:
        ends = []
        for link, point in ((spring["a"], spring["position_a"]), (spring["b"], spring["position_b"])):
            arm = at.R[link] @ point if link >= 0 else point
            x = arm + (at.x[link] if link >= 0 else 0.0)
            rate = at.velocity[link, :3] + np.cross(at.velocity[link, 3:], arm) if link >= 0 else np.zeros(3)
            ends.append((link, arm, x, rate))
        (_, _, x_a, v_a), (_, _, x_b, v_b) = ends
        length = np.linalg.norm(x_b - x_a)
        along = (x_b - x_a) / length
        stretch = length - spring["rest_length"]
        pull = spring["stiffness"] * stretch + spring["damping"] * along @ (v_b - v_a)
        energy += 0.5 * spring["stiffness"] * stretch**2
        for (link, arm, _, _), force in zip(ends, (pull * along, -pull * along), strict=True):
            if link >= 0:
                wrench[link] += np.concatenate([force, np.cross(arm, force)])
    return wrench, energy


@dataclass
class Answer:
    a: np.ndarray            # joint accelerations
    links: np.ndarray        # (n, 6) accelerations of link frames
    forces: dict             # {joint: 6}, at the link's origin in link axes
    tau: np.ndarray          # what drives each joint, passive forces not included


def solve(tree: Tree, q, v, tau=None, a=None, external=None, prescribed=None, passive=True) -> Answer:
    """Everything at once: given tau, or a; `prescribed` {velocity index: acceleration} replaces single torques."""
    at = motion(tree, q, v)
    n, nv = len(tree.parts), tree.m.nv
    known = np.zeros((n, 6))
    if passive:
        known += spring_wrenches(tree, at)[0]
    for k, part in enumerate(tree.parts):
        known[k] += weight(part, at.R[k], tree.m.gravity)
        if external and part.name in external:
            known[k] += external[part.name]
    own = passive_torque(tree, q, v) if passive else np.zeros(nv)
    rotor = armature(tree) if passive else np.zeros(nv)

    # unknowns: 6n link accelerations, 6n joint forces, nv joint accelerations, nv torques
    A = np.zeros((12 * n + 2 * nv, 12 * n + 2 * nv))
    b = np.zeros(len(A))
    f0, a0, t0 = 6 * n, 12 * n, 12 * n + nv
    i_v = 0
    for k, part in enumerate(tree.parts):
        rows = slice(6 * k, 6 * k + 6)
        N, bias = newton_euler(part, at.R[k], at.velocity[k])
        A[rows, rows] = N                                       # N a_k - f_k + (forces on children) = known - bias
        A[rows, f0 + 6 * k:f0 + 6 * k + 6] = -np.eye(6)
        b[rows] = known[k] - bias
        if part.parent >= 0:
            p = 6 * part.parent
            A[p:p + 3, f0 + 6 * k:f0 + 6 * k + 3] = np.eye(3)
            A[p + 3:p + 6, f0 + 6 * k:f0 + 6 * k + 3] = skew(at.x[k] - at.x[part.parent])
            A[p + 3:p + 6, f0 + 6 * k + 3:f0 + 6 * k + 6] = np.eye(3)
        rows = slice(f0 + 6 * k, f0 + 6 * k + 6)
        A[rows, 6 * k:6 * k + 6] = np.eye(6)                    # a_k - J_k qdd = drift_k
        A[rows, a0:a0 + nv] = -at.J[k]
        b[rows] = at.drift[k]
        for j in range(i_v, i_v + part.nv):                     # S_j . f_k + rotor qdd_j - tau_j = own_j
            A[a0 + j, f0 + 6 * k:f0 + 6 * k + 6] = at.J[k][:, j]
            A[a0 + j, a0 + j] = rotor[j]
            A[a0 + j, t0 + j] = -1.0
            b[a0 + j] = own[j]
        i_v += part.nv
    for j in range(nv):                                         # what is given
        if a is not None or (prescribed and j in prescribed):
            A[t0 + j, a0 + j], b[t0 + j] = 1.0, a[j] if a is not None else prescribed[j]
        else:
            A[t0 + j, t0 + j], b[t0 + j] = 1.0, 0.0 if tau is None else tau[j]
    x = np.linalg.solve(A, b)
    x += np.linalg.solve(A, b - A @ x)
    wrench = x[f0:a0].reshape(n, 2, 3)
    forces = {part.joint_name: (wrench[k] @ at.R[k]).ravel() for k, part in enumerate(tree.parts)}
    return Answer(x[a0:t0], x[:f0].reshape(n, 6), forces, x[t0:])


def mass_matrix(tree, q) -> np.ndarray:
    """Sum of J^T N J, and armature."""
    at = motion(tree, q, np.zeros(tree.m.nv))
    M = np.diag(armature(tree))
    for k, part in enumerate(tree.parts):
        M = M + at.J[k].T @ newton_euler(part, at.R[k], at.velocity[k])[0] @ at.J[k]
    return M


def close(actual, expected, tolerance=1e-9):
    """Equal within the tolerance, relative to the largest number expected."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"shapes {actual.shape}, {expected.shape}"
    size = max(1.0, np.abs(expected).max(initial=0.0))
    error = np.abs(actual - expected).max(initial=0.0) / size
    assert error <= tolerance, f"relative error {error:.2e}"


def close_forces(actual, expected, tolerance=1e-9):
    """Dictionaries of wrenches, relative to the largest of all."""
    assert list(actual) == list(expected)
    close(np.array(list(actual.values())), np.array(list(expected.values())), tolerance)
