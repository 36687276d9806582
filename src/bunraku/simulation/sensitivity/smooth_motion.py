"""The smooth motion between two events, and its linear model at any of its times.

A structure, contact modes and everything that acts make it smooth: x' = A x + B p for changes x = (small move, change
of v) of the state and p of the parameters, with A and B as in `bk.linearise`, feedback of the actuation included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_fields import OPEN, SLIDING
from bunraku.entries import derivative_entries
from bunraku.entries.closed_derivatives import ClosedDerivatives, closed_derivatives
from bunraku.errors import ModelError, NamingError
from bunraku.evaluate.contact_derivatives import ContactDerivatives, contact_derivatives, friction_derivative
from bunraku.evaluate.contact_workspace import Acts, Touching
from bunraku.evaluate.linear_models import turned_by
from bunraku.evaluate.parameter_derivatives import Parameter, as_parameter, torque_derivatives
from bunraku.mechanism import Mechanism
from bunraku.simulation.sensitivity.slopes import slopes

if TYPE_CHECKING:
    from bunraku.simulation.running import Running

OF_SHAPES = ("friction", "restitution")
PARAMS = "params"


class Wanted(NamedTuple):
    """Parameters, in the order of their columns."""

    mechanical: list[tuple[int, Parameter]]  # first column, of those that change torques
    shapes: list[tuple[int, str, str]]       # column, what, name of the shape
    params: list[tuple[int, int]]            # column, index among the parameters of the actuation
    names: list[str]

    @classmethod
    def of(cls, mechanism: Mechanism, given, params: int) -> Wanted:
        """From the user's list."""
        wanted = cls([], [], [], [])
        for parameter in given:
            k = len(wanted.names)
            if not isinstance(parameter, str) and len(parameter) == 2 and parameter[0] == PARAMS:
                if not 0 <= int(parameter[1]) < params:
                    raise ModelError(f"{parameter}: the actuation has {params} parameters")
                wanted.params.append((k, int(parameter[1])))
                wanted.names.append(f"params[{parameter[1]}]")
            elif (not isinstance(parameter, str) and len(parameter) == 2 and parameter[0] in OF_SHAPES
                  and parameter[1] in mechanism.shapes):
                wanted.shapes.append((k, *parameter))
                wanted.names.append(f"{parameter[0]} of {parameter[1]!r}")
            else:
                made = as_parameter(mechanism, parameter)
                wanted.mechanical.append((k, made))
                wanted.names.extend(made.names)
        return wanted


class Motion:
    """The motion of a simulation from its present state to the next event."""

    def __init__(self, run: Running, wanted: Wanted, frozen: frozenset[int]):
        """`frozen`: parameters of the actuation that an action has set."""
        acting = run.acting
        self.mechanism, self.wanted, self.frozen = run.mechanism, wanted, frozen
        self.plan, self.start = run.mechanism.plan(), run.t
        self.own, self.params = acting.own, acting.params.copy()
        self.forces, self.functions = acting.array.copy(), list(acting.functions)
        if acting.pulls or acting.courses:
            raise ModelError("sensitivities do not support pulls and prescribed joints")
        self.modes = self.mark = None
        self.touching: Touching | None = None
        if run.contact is not None:
            if run.contact.touching.has_moments:
                raise ModelError("sensitivities do not support contacts with torsional or rolling friction")
            touch = run.contact.touching.touch
            self.modes, self.mark = touch.modes.copy(), touch.mark.copy()
            if (self.modes != OPEN).any():
                self.touching = workspace(run.mechanism)

    # -- what acts ---------------------------------------------------------------------------------------------------

    def torque(self, t: float, q, v, params=None) -> np.ndarray:
        tau = np.zeros(self.mechanism.nv + self.mechanism.nc)
        if self.own is not None:
            given = self.own.torque(t, q, v, self.params if params is None else params, len(tau))
            tau[:len(given)] = given
        return tau

    def feedback(self, t: float, q, v) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives of the torques by coordinates, velocities and parameters of the actuation."""
        mechanism, count = self.mechanism, len(self.params)
        if self.own is None:
            nothing = np.zeros((mechanism.nv + mechanism.nc, mechanism.nv))
            return nothing, nothing, np.zeros((len(nothing), count))
        return (slopes(lambda move: self.torque(t, mechanism.integrate(q, move), v), mechanism.nv),
                slopes(lambda more: self.torque(t, q, v + more), mechanism.nv),
                slopes(lambda more: self.torque(t, q, v, self.params + more), count if self.wanted.params else 0))

    def pushed(self, t: float) -> np.ndarray:
        """Forces on links, in kernel form."""
        forces = self.forces.copy()
        for link, _, function in self.functions:
            forces[6 * link:6 * link + 6] = function(t)
        return forces

    # -- the linear model --------------------------------------------------------------------------------------------

    def acceleration(self, t: float, q, v) -> np.ndarray:
        return self._derivatives(np.array([t]), q[None], v[None], self.torque(t, q, v)[None])[0][0]

    def model(self, t, q, v) -> tuple[np.ndarray, np.ndarray]:
        """(A (times, 2 nv, 2 nv), B (times, 2 nv, parameters)) at states of this motion."""
        nv, count = self.mechanism.nv, len(t)
        tau = np.array([self.torque(*state) for state in zip(t, q, v, strict=True)])
        a, da_dq, da_dv, da_dtau = self._derivatives(t, q, v, tau)
        B = np.zeros((count, 2 * nv, len(self.wanted.names)))
        if self.own is not None:
            for k in range(count):
                by_q, by_v, by_params = self.feedback(float(t[k]), q[k], v[k])
                da_dq[k] += da_dtau[k] @ by_q
                da_dv[k] += da_dtau[k] @ by_v
                for column, index in self.wanted.params:
                    if index not in self.frozen:
                        B[k, nv:, column] = da_dtau[k] @ by_params[:, index]
        for column, parameter in self.wanted.mechanical:
            if self.knows(parameter):
                dtau = torque_derivatives(self.mechanism, q, v, a, [parameter])
                B[:, nv:, column:column + len(parameter.names)] = -da_dtau[..., :dtau.shape[-2]] @ dtau
        for column, what, name in self.wanted.shapes:
            if what == "friction" and self.touching is not None:
                for k in range(count):
                    B[k, nv:, column] = self._by_friction(name, float(t[k]), q[k], v[k], tau[k])
        A = np.zeros((count, 2 * nv, 2 * nv))
        A[:, :nv, :nv] = -turned_by(self.plan, v)
        A[:, :nv, nv:] = np.eye(nv)
        A[:, nv:, :nv], A[:, nv:, nv:] = da_dq, da_dv
        return A, B

    def knows(self, parameter: Parameter) -> bool:
        """Whether what the parameter belongs to exists in this structure."""
        try:
            as_parameter(self.mechanism, (parameter.what, parameter.name) if parameter.name else parameter.what)
        except NamingError:
            return False
        return True

    def _derivatives(self, t, q, v, tau):
        """a, da_dq, da_dv, da_dtau of several states."""
        nv, plan = self.mechanism.nv, self.plan
        pushed = np.array([self.pushed(float(when)) for when in t]) if self.forces.size else None
        if self.touching is None and plan.loops is None:
            a, by = derivative_entries.forward_derivatives(plan, q, v, tau[:, :nv], pushed, None)
            return a, by[0], by[1], by[2]
        found: list[ContactDerivatives | ClosedDerivatives] = []
        for k in range(len(t)):
            if self.touching is not None:
                found.append(contact_derivatives(self.in_modes(), *self.state(t[k], q[k], v[k], tau[k])))
            else:
                push = None if pushed is None else pushed[k]
                found.append(closed_derivatives(plan, q[k].copy(), v[k].copy(), tau[k, :nv].copy(),
                                                tau[k, nv:].copy(), push))
        return tuple(np.array([getattr(d, name) for d in found]) for name in ("a", "da_dq", "da_dv", "da_dtau"))

    # -- contact -----------------------------------------------------------------------------------------------------

    def in_modes(self, modes=None) -> Touching:
        """The workspace, in the modes of this motion."""
        if self.touching is None:
            self.touching = workspace(self.mechanism)
        touch = self.touching.touch
        touch.modes[:] = self.modes if modes is None else modes
        touch.mark[:] = self.mark
        return self.touching

    def state(self, t: float, q, v, tau=None) -> tuple[np.ndarray, np.ndarray, Acts]:
        """A state with what acts there, as contact workspaces take it."""
        tau = self.torque(t, q, v) if tau is None else tau
        nv, forces = self.mechanism.nv, self.pushed(t)
        return np.ascontiguousarray(q), np.ascontiguousarray(v), Acts(tau[:nv].copy(), tau[nv:].copy(), forces)

    def _by_friction(self, name: str, t: float, q, v, tau) -> np.ndarray:
        touching = self.in_modes()
        of = of_shape(touching, "friction", name)
        of[self.modes != SLIDING] = 0.0
        return friction_derivative(touching, *self.state(t, q, v, tau), of)


def workspace(mechanism: Mechanism) -> Touching:
    """For contacts, kept with the mechanism."""
    return mechanism.kept("sensitivity", lambda: Touching(mechanism))


def of_shape(touching: Touching, what: str, name: str) -> np.ndarray:
    """(contacts,) derivative of a contact's friction or restitution by that of a shape."""
    arrays, shapes = touching.arrays, touching.mechanism.contact_pairs().shapes
    out = np.zeros(touching.contacts)
    for k in range(touching.joints, touching.contacts):
        pair = arrays.pair_i[arrays.contact_i[k, c.CONTACT_PAIR]]
        own = [shapes[pair[place]] for place in (c.PAIR_A, c.PAIR_B)]
        if name not in (own[0].name, own[1].name):
            continue
        mine, other = own if own[0].name == name else own[::-1]
        if what == "restitution":
            out[k] = float(mine.restitution > other.restitution)
        elif mine.friction > 0.0:
            out[k] = 0.5 * np.sqrt(other.friction / mine.friction)
    return out

