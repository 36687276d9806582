"""Identification of a mechanism's parameters from recorded motion and torque: the public function and its result.

Torques are linear in masses, first moments, inertias, friction and rotor inertias. A weighted least-squares fit with
regularisation towards the given model finds them, each link physically consistent (`fit.py`); `base_parameters.py` says
which combinations the motion determines. Cost: one regressor for each sample, one QR factorisation of all equations for
each of about five weightings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import t as student

from bunraku.checks import as_number, as_positive, hint
from bunraku.errors import ModelError, ShapeError, StateError
from bunraku.evaluate import inertial_regressor
from bunraku.identification.base_parameters import Identifiable, identifiable
from bunraku.identification.equations import Equations, Recording, close_loops, equations
from bunraku.identification.fit import Fit
from bunraku.identification.fit import fit as fit_to
from bunraku.identification.recording import recording
from bunraku.identification.unknowns import FIT, Unknowns, as_fit, unknowns
from bunraku.mechanism import Free, Mechanism
from bunraku.mechanism.coordinate_names import coordinate_names
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.mechanism.named import Named

STILL = 1e-4   # of the fastest joint's rate: a joint below it does not move
SLOW = 0.02    # of a joint's largest rate: below it Coulomb friction may stick
AT_BOUND = 0.01  # of what the torques can tell from zero: friction and armature below it are zero
SCARCE = 2     # equations for each combination to be found, at least


@dataclass(frozen=True, eq=False)
class Identification:
    """Result of `bk.identify`."""

    mechanism: Mechanism           # the given one with the parameters found
    parameters: dict[str, float]   # "upper.mass", ".mx" (mass times com), ".ixx" (about the origin), "knee.damping"
    deviation: dict[str, float]    # their standard deviations
    covariance: np.ndarray         # of the parameters, in the order of `parameters`
    identifiable: Identifiable     # the combinations that the data determine
    residual: np.ndarray           # (samples, nv) measured minus computed torques [N m, N]; NaN where left out
    noise: np.ndarray              # (nv,) standard deviations of the torque errors, as estimated
    samples: int
    freedom: float = field(repr=False)  # equations less the parameters that they determine

    def bounds(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """{name: (lower, upper)}: confidence bounds of each parameter, taken one at a time."""
        if not 0.0 < as_number("level", level) < 1.0:
            raise ModelError(f"level must be between 0 and 1, such as 0.95, not {level!r}")
        reach = float(student.ppf(0.5 + 0.5 * level, self.freedom))
        return Named({name: (value - reach * self.deviation[name], value + reach * self.deviation[name])
                      for name, value in self.parameters.items()}, _unknown(self.parameters))

    def __repr__(self):
        return (f"Identification of {self.mechanism.name}: {len(self.parameters)} parameters from {self.samples} "
                f"samples, {self.identifiable.rank} combinations determined")

    def __str__(self):
        wide = max(map(len, self.parameters))
        lines = [repr(self), f"{'parameter':<{wide}} {'value':>12} {'deviation':>11}  from data"]
        lines += [f"{name:<{wide}} {value:12.5g} {self.deviation[name]:11.2g} {self.identifiable.from_data[name]:9.0%}"
                  for name, value in self.parameters.items()]
        labels = [name.removesuffix(".tau") for name in coordinate_names(self.mechanism).tau]
        known = [f"{name} {x:.3g}" for name, x in zip(labels, self.noise, strict=False) if np.isfinite(x)]
        return "\n".join([*lines, f"torque noise: {', '.join(known)}"])


def identify(mechanism: Mechanism, q, v=None, a=None, tau=None, *, fit: Iterable[str] = FIT,
             links: Iterable[str] | None = None, joints: Iterable[str] | None = None, t=None,
             cutoff: float | None = None, external: Mapping | None = None, unmeasured: Iterable[str] = (),
             spread: float = 2.0, slow: float = SLOW) -> Identification:
    """Inertial parameters, joint friction and rotor inertias that explain recorded torques; trees and loops.

    q, v, a     samples of the motion, (n, nq) and (n, nv). With times `t` [s] in place of v and a, these are
                derivatives of a spline through q. q may also be a `bk.Motion`, a trajectory or a simulation
    tau         (n, nv) torques of the joints, zero where there is no drive; nv + nc with drives of connections. A
                trajectory with recorded torques has them
    fit         any of "inertia", "damping", "friction" (Coulomb), "armature"; by default all
    links       whose inertia is fitted; by default all that move and have mass
    joints      whose damping, friction and armature are fitted; by default all but Free ones
    cutoff      [Hz] with t: q and both sides of the equations are low-pass filtered, and only samples that are
                independent of each other are kept
    external    {link: wrench (n, 6)} measured forces, as in `bk.inverse_dynamics`
    unmeasured  joints whose torque is unknown, such as the Free joint of a robot on feet without force plates; their
                equations are left out
    spread      standard deviation of the given model, as a fraction of each mass, moment of inertia and radius of
                gyration: smaller values keep the fit closer to the model
    slow        fraction of a joint's largest rate below which its friction may stick; these equations are left out

    Where connections close loops, samples are first moved to the nearest closed state, and constraint forces drop out.
    Bounds follow from the residuals, taken as independent errors of the torques of each joint; errors of q, v and a
    count only as far as they show there.
    """
    m, fit = as_mechanism(mechanism), as_fit(fit)
    m.plan()
    spread = as_positive("spread", spread)
    recorded = close_loops(m, recording(m, q, v, a, tau, t, cutoff, external, unmeasured))
    if len(recorded.q) == 0:
        raise ShapeError("identify: there are no samples")
    regressor = inertial_regressor(m, recorded.q, recorded.v, recorded.a)
    moves = np.abs(regressor.reshape(-1, len(m.links), 10)).max(axis=(0, 2)) > 0.0
    if set(fit) - {"inertia"}:
        joints = _moving(m, recorded, joints)
    sizes = _sizes(recorded)
    found = unknowns(m, fit, links, joints, moves, _scales(m, recorded, sizes))
    system = equations(found, recorded, regressor, _too_slow(m, found, recorded, slow))
    samples, count = len(system.y), int(system.M.any(axis=2).sum())
    if count <= SCARCE * found.count and count <= SCARCE * _rank(system.A @ found.T):
        raise ShapeError(f"identify: {samples} samples make {count} equations, too few for "
                         f"{_rank(system.A @ found.T)} combinations of {found.count} parameters; record more samples, "
                         "or fit fewer parameters (fit=, links=, joints=)")
    result = fit_to(found, system, spread, sizes[system.noisy])
    combinations = identifiable(found, result, spread, recorded.measured)
    if combinations.rank == 0:
        raise StateError(f"identify: this motion of {m.name} needs no torque that depends on the parameters asked for; "
                         "record one in which its joints move, fast and slow, one by one and together")
    return _result(found, system, result, combinations, spread)


def _result(found: Unknowns, system: Equations, result: Fit, combinations: Identifiable, spread) -> Identification:
    """The fit by names."""
    samples, nv = len(system.y), found.mechanism.nv
    residual, noise, of_joints = np.full((samples, nv), np.nan), np.full(nv, np.nan), system.noisy < nv
    used = system.M[:, :, of_joints].any(axis=1)
    residual[:, system.noisy[of_joints]] = np.where(used, result.errors[:, of_joints], np.nan)
    noise[system.noisy[of_joints]] = result.deviation[of_joints]
    alone = np.diag(found.T) / np.sqrt(np.sum(result.R**2, axis=0) + spread**-2)  # deviations while others are fixed
    at_bound = (np.arange(found.count) >= 10 * len(found.links)) & (result.values < AT_BOUND * alone)
    values = np.where(at_bound, 0.0, result.values)
    parameters, deviation = (Named(dict(zip(found.names, x.tolist(), strict=True)), _unknown(found.names))
                             for x in (values, np.sqrt(np.maximum(np.diag(result.covariance), 0.0))))
    return Identification(found.mechanism_of(values), parameters, deviation, result.covariance, combinations, residual,
                          noise, samples, result.freedom)


def _unknown(names) -> Callable[[object], str]:
    return lambda name: f"there is no parameter {name!r} in this identification{hint(name, list(names))}"


def _rank(A) -> int:
    return int(np.linalg.matrix_rank(A.reshape(-1, A.shape[-1]), rtol=1e-9))


def _moving(m: Mechanism, recorded: Recording, joints) -> Iterable[str]:
    """The joints asked for, all of which must move."""
    names = [link.joint_name for link in m.links if link.joint.nv and not isinstance(link.joint, Free)] \
        if joints is None else [joints] if isinstance(joints, str) else list(joints)
    rates = np.abs(recorded.v).max(axis=0)
    for name in names:
        if name in m.connections:
            continue
        m.find_joint(name, "identify: ")
        own = rates[m.v_slice(name)]
        if own.size and own.max() <= STILL * rates.max(initial=0.0):
            others = [x for x in names if rates[m.v_slice(x)].max(initial=0.0) > STILL * rates.max()]
            raise StateError(f"identify: joint {name!r} does not move in this recording, so its friction and armature "
                             f"cannot be found; record a motion that moves it, or leave it out: joints={others!r}")
    return names


def _sizes(recorded: Recording) -> np.ndarray:
    """Size of each torque [N m, N]; of those that are zero, that of the others."""
    size = np.sqrt(np.mean(recorded.tau**2, axis=0))
    return np.where(size > 0.0, size, size.max(initial=0.0) or 1.0)


def _scales(m: Mechanism, recorded: Recording, sizes) -> dict[str, np.ndarray]:
    """Damping, friction and armature that would explain the whole torque of a joint."""
    size = sizes[:m.nv]
    rate, change = (np.sqrt(np.mean(x**2, axis=0)) for x in (recorded.v, recorded.a))
    rate, change = (np.maximum(x, STILL * x.max(initial=0.0) + 1e-12) for x in (rate, change))
    return {"damping": size / rate, "friction": size, "armature": size / change}


def _too_slow(m: Mechanism, found, recorded: Recording, slow: float) -> np.ndarray:
    """(n, nv): joints with Coulomb friction that may stick."""
    has = m.coulomb_friction() > 0.0
    for what, k in found.freedoms:
        has[k] |= what == "friction"
    return has & (np.abs(recorded.v) <= slow * np.abs(recorded.v).max(axis=0))
