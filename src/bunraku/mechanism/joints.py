"""Joints of the public interface. A joint is an immutable value: its degrees of freedom and passive parameters.

Every joint takes, per degree of freedom (one number for all, or one each):

    armature         rotor inertia seen at the joint [kg m^2, kg]
    damping          torque = -damping * v
    stiffness, rest  torque = -stiffness * (q - rest); Spherical: on the rotation vector from the neutral pose
    lower, upper     limits of q; Spherical: `upper` is the largest turn from the neutral pose
    limit_stiffness  makes the limits act, as one-sided springs; without it they are information only
    limit_damping    damping while beyond a limit

Joints of one degree of freedom (Revolute, Prismatic, Helical; also in a Compound) take three more, which are laws of
the contact problem, not forces that follow from the state:

    friction         Coulomb friction: the largest friction torque or force [N m, N]; it sticks and slides
    hard_limits      True makes `lower` and `upper` rigid stops
    restitution      of these stops: 0 (no bounce) to 1 (no loss)

and two of their drive, which are information, for controllers (`Mechanism.effort`, `Mechanism.clip_torques`):

    effort           largest torque or force of the drive [N m, N]
    speed            largest rate of the joint that it is made for [rad/s, m/s]

A joint is read-only; `Mechanism.with_joint` returns a mechanism with other parameters.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bunraku.checks import as_number, as_vector, hint
from bunraku.errors import ModelError, ReadOnlyError
from bunraku.mechanism.readonly import read_only
from bunraku.plan import fields as f
from bunraku.plan.elements import ORIGIN, Element, element_rows, rotation_from_z

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

PASSIVE = ("armature", "damping", "stiffness", "rest", "lower", "upper", "limit_stiffness", "limit_damping")
"""Names of the passive parameters, in the order of the columns of `dof_f`."""

DEFAULTS = {"armature": 0.0, "damping": 0.0, "stiffness": 0.0, "rest": 0.0, "lower": -np.inf, "upper": np.inf,
            "limit_stiffness": 0.0, "limit_damping": 0.0}


LAWS = ("friction", "hard_limits", "restitution")
"""Names of the parameters of the contact problem, in the order of the columns of `Joint.laws`; 0 by default."""
FRICTION, HARD, RESTITUTION = range(3)

DRIVE = ("effort", "speed")
"""Names of the parameters of the drive, in the order of the columns of `Joint.drive`; infinite by default."""
PARAMETERS = (*PASSIVE, *LAWS, *DRIVE)

_DEFAULT_ROW = np.array([[DEFAULTS[name] for name in PASSIVE]])


_REMEDY = ("the numbers of a joint are read-only; m = m.with_joint(name, upper=2.0) returns a mechanism with the "
           "change: of lower, upper, damping, stiffness, ..., or joint=bk.Revolute(...) for another joint")


class _Sealing(type):
    """Metaclass of joints: immutable after construction."""

    def __call__(cls, *args, **options):
        joint = super().__call__(*args, **options)
        for name, value in vars(joint).items():
            if isinstance(value, np.ndarray):
                joint.__dict__[name] = read_only(value, _REMEDY)
        joint.__dict__["_sealed"] = True
        return joint


class Joint(metaclass=_Sealing):
    """Base of all joints. The passive parameters are attributes to read: a number, or an array if there are several."""

    nq: ClassVar[int]
    nv: ClassVar[int]
    springs: ClassVar[bool] = True
    default_actuated = True
    has_laws: ClassVar[bool] = False  # whether it may have friction and hard limits

    def __init__(self, **passive: Any) -> None:
        self.passive = np.repeat(_DEFAULT_ROW, self.nv, axis=0)
        self.laws = np.zeros((self.nv, len(LAWS)))
        self.drive = np.full((self.nv, len(DRIVE)), np.inf)
        for name, value in passive.items():
            if name in LAWS and not self.has_laws:
                raise ModelError(f"{type(self).__name__} has no {name}: friction and hard limits belong to joints of "
                                 "one degree of freedom (Revolute, Prismatic, Helical, also in a Compound)")
            if name in DRIVE and not self.has_laws:
                raise ModelError(f"{type(self).__name__} has no {name}: limits of drives belong to joints of one "
                                 "degree of freedom (Revolute, Prismatic, Helical, also in a Compound)")
            if name not in PARAMETERS:
                known = PARAMETERS if self.has_laws else PASSIVE
                meant = hint(name, known, close=True) or f"; it takes {', '.join(known)}"
                raise ModelError(f"{type(self).__name__} has no parameter {name!r}{meant}")
            if value is not None:
                self._set(name, value)
        if passive:
            self._check_passive()
            if self.laws.any():
                self._check_laws()
            for name, column in zip(DRIVE, self.drive.T, strict=True):
                if not np.all(column >= 0.0):
                    raise ModelError(f"{type(self).__name__}: {name} must not be negative, but is {column.tolist()}")

    def __setattr__(self, name, value):
        if "_sealed" in self.__dict__:
            raise ReadOnlyError(f"joints are read-only: m = m.with_joint(name, {name}={value!r}) returns a mechanism "
                                "with the change")
        super().__setattr__(name, value)

    def __getattr__(self, name):
        if name in DEFAULTS and "passive" in self.__dict__:
            column = self.passive[:, PASSIVE.index(name)]
            return float(column[0]) if self.nv == 1 else column.copy()
        if name in LAWS and "laws" in self.__dict__:
            column = self.laws[:, LAWS.index(name)]
            if name == "hard_limits":
                column = column != 0.0
            return column[0].item() if self.nv == 1 else column.copy()
        if name in DRIVE and "drive" in self.__dict__:
            column = self.drive[:, DRIVE.index(name)]
            return float(column[0]) if self.nv == 1 else column.copy()
        raise AttributeError(f"{type(self).__name__!r} joints have no attribute {name!r}"
                             f"{hint(name, [*PARAMETERS, *self.__dict__], close=True)}")

    def _set(self, name, value):
        if name == "hard_limits" and not isinstance(value, (bool, np.bool_)):
            raise ModelError(f"{type(self).__name__}: hard_limits must be True or False, not {value!r}")
        names, table = ((LAWS, self.laws) if name in LAWS else (DRIVE, self.drive) if name in DRIVE else
                        (PASSIVE, self.passive))
        at = names.index(name)
        try:
            table[:, at] = np.asarray(value, float)
        except (TypeError, ValueError):
            several = f" or {self.nv} numbers" if self.nv > 1 else ""
            raise ModelError(f"{type(self).__name__}: {name} must be one number{several}, not {value!r}") from None

    def _check_passive(self):
        values = dict(zip(PASSIVE, self.passive.T, strict=True))
        for name in ("armature", "damping", "stiffness", "limit_stiffness", "limit_damping"):
            if not np.all(np.isfinite(values[name])) or np.any(values[name] < 0):
                raise ModelError(f"{type(self).__name__}: {name} must be finite and not negative, "
                                 f"but is {values[name].tolist()}")
        if not np.all(np.isfinite(values["rest"])):
            raise ModelError(f"{type(self).__name__}: rest must be finite, not {values['rest'].tolist()}")
        if not np.all(values["lower"] <= values["upper"]):
            raise ModelError(f"{type(self).__name__}: lower limit {values['lower'].tolist()} lies above upper limit "
                             f"{values['upper'].tolist()}; exchange them, or leave one out")

    def _check_laws(self):
        (friction, hard, restitution), what = self.laws[0], type(self).__name__
        if not (np.isfinite(friction) and friction >= 0.0):
            raise ModelError(f"{what}: friction must be finite and not negative (a torque in N m, or a force in N), "
                             f"but is {friction}")
        if not 0.0 <= restitution <= 1.0:
            raise ModelError(f"{what}: restitution must be 0 (no bounce) to 1 (no loss), not {restitution}")
        if restitution and not hard:
            raise ModelError(f"{what}: restitution is that of hard limits; give hard_limits=True as well")
        if hard and np.isinf([self.lower, -self.upper]).all():
            raise ModelError(f"{what}: hard_limits=True needs limits; give lower=, upper= or both")
        if hard and (self.limit_stiffness or self.limit_damping):
            raise ModelError(f"{what}: limits are either hard (hard_limits=True) or springs (limit_stiffness, "
                             "limit_damping), not both")

    def changed(self, **changes) -> Self:
        """A joint like this one with other parameters: passive ones, friction, hard_limits, axis, normal, at, pitch."""
        own = self._geometry()
        for name in changes:
            if name not in own and name not in PARAMETERS:
                known = [*own, *(PARAMETERS if self.has_laws else PASSIVE)]
                meant = hint(name, known, close=True) or f"; it takes {', '.join(known)}"
                raise ModelError(f"{type(self).__name__} has no parameter {name!r}{meant}")
        passive = {name: column for name, column in zip(PASSIVE, self.passive.T, strict=True)
                   if np.any(column != DEFAULTS[name])}
        return type(self)(**{**own, **self.given_laws(), **self.given_drive(), **passive, **changes})

    def given_laws(self) -> dict[str, Any]:
        """{name: value} of friction, hard_limits and restitution that differ from their defaults."""
        if not self.has_laws or not self.laws.any():
            return {}
        return {name: getattr(self, name) for name in LAWS if getattr(self, name)}

    def given_drive(self) -> dict[str, Any]:
        """{name: value} of effort and speed that are limited."""
        return {name: getattr(self, name) for name, column in zip(DRIVE, self.drive.T, strict=True)
                if np.isfinite(column).any()}

    def _geometry(self) -> dict[str, object]:
        """The arguments of the constructor that are not passive parameters."""
        return {}

    def elements(self) -> list[Element]:
        """The joint as a sequence of elementary joints."""
        raise NotImplementedError

    @cached_property
    def rows(self) -> np.ndarray:
        """The elements as `build` reads them."""
        return element_rows(self.elements())

    def neutral(self) -> list[float]:
        return [0.0] * self.nq

    def _arguments(self) -> str:
        return ""

    def __repr__(self):
        extra = []
        for k, name in enumerate(PASSIVE):
            column = self.passive[:, k]
            if np.any(column != DEFAULTS[name]):
                value = column.tolist() if len(set(column)) > 1 else float(column[0])
                extra.append(f"{name}={value}")
        extra += [f"{name}={value}" for name, value in (self.given_laws() | self.given_drive()).items()]
        return f"{type(self).__name__}({', '.join(filter(None, [self._arguments(), *extra]))})"


def _axis(what: str, axis) -> np.ndarray:
    vector = as_vector(f"{what}: the axis", axis)
    length = np.linalg.norm(vector)
    if length < 1e-12:
        raise ModelError(f"{what}: the axis must not be zero; give a direction such as (0, 0, 1)")
    return vector if abs(length - 1.0) < 1e-15 else vector / length  # a unit vector stays as it is, to the last bit


def _show(vector) -> str:
    return "(" + ", ".join(f"{x:g}" for x in vector) + ")"


class _Screw(Joint):
    """One degree of freedom along or about an axis through a point of the joint frame (the origin unless `at`)."""

    nq = nv = 1
    has_laws = True
    angular: float
    linear: float

    def __init__(self, axis: ArrayLike, *, at: ArrayLike | None = None, **passive: Any) -> None:
        super().__init__(**passive)
        self.axis = _axis(type(self).__name__, axis)
        try:
            self.at = ORIGIN if at is None else np.array(at, float)
        except (TypeError, ValueError):
            self.at = np.empty(0)
        if self.at.shape != (3,) or not np.all(np.isfinite(self.at)):
            raise ModelError(f"{type(self).__name__}: `at` must be three finite numbers, not {at!r}")

    def elements(self):
        kind = f.REVOLUTE if (self.angular, self.linear) == (1.0, 0.0) else f.SCREW
        return [Element(kind, self.axis, self.at, self.angular, self.linear, 1, 1)]

    def _geometry(self):
        return {"axis": self.axis, "at": self.at}

    def _arguments(self):
        return _show(self.axis) + ("" if not self.at.any() else f", at={_show(self.at)}")


class Revolute(_Screw):
    """A hinge: one angle about `axis`."""

    angular, linear = 1.0, 0.0


class Prismatic(_Screw):
    """A slider: one length along `axis`."""

    angular, linear = 0.0, 1.0


class Helical(_Screw):
    """A screw: one angle about `axis`, sliding `pitch` metres per radian."""

    angular = 1.0

    def __init__(self, axis: ArrayLike, pitch: float, *, at: ArrayLike | None = None, **passive: Any) -> None:
        super().__init__(axis, at=at, **passive)
        self.linear = as_number("Helical: the pitch", pitch)

    def _geometry(self):
        return {**super()._geometry(), "pitch": self.linear}

    def _arguments(self):
        return f"{super()._arguments()}, pitch={self.linear:g}"


class Cylindrical(Joint):
    """A shaft in a sleeve: length along `axis`, angle about it."""

    nq = nv = 2

    def __init__(self, axis: ArrayLike, **passive: Any) -> None:
        super().__init__(**passive)
        self.axis = _axis("Cylindrical", axis)

    def elements(self):
        return [Element(f.SCREW, self.axis, ORIGIN, 0.0, 1.0, 1, 1),
                Element(f.REVOLUTE, self.axis, ORIGIN, 1.0, 0.0, 1, 1)]

    def _geometry(self):
        return {"axis": self.axis}

    def _arguments(self):
        return _show(self.axis)


class Planar(Joint):
    """Sliding on a plane: x, y and the angle about `normal`.

    For normal z, x and y are the parent's; for another normal they are turned with it the short way from z.
    """

    nq = nv = 3

    def __init__(self, normal: ArrayLike, **passive: Any) -> None:
        super().__init__(**passive)
        self.normal = _axis("Planar", normal)

    def elements(self):
        turn = rotation_from_z(self.normal)
        return [Element(f.SCREW, turn[:, 0], ORIGIN, 0.0, 1.0, 1, 1),
                Element(f.SCREW, turn[:, 1], ORIGIN, 0.0, 1.0, 1, 1),
                Element(f.REVOLUTE, self.normal, ORIGIN, 1.0, 0.0, 1, 1)]

    def _geometry(self):
        return {"normal": self.normal}

    def _arguments(self):
        return _show(self.normal)


class Spherical(Joint):
    """A ball: orientation as quaternion w x y z, angular velocity in child axes."""

    nq, nv = 4, 3

    def _check_passive(self):
        super()._check_passive()
        for name in ("stiffness", "upper", "limit_stiffness", "limit_damping"):
            if len(set(self.passive[:, PASSIVE.index(name)])) > 1:
                raise ModelError(f"Spherical: {name} must be one number; it is the same about all axes")
        if np.any(self.passive[:, PASSIVE.index("rest")]):
            raise ModelError("Spherical: rest must be 0; turn the joint frame (rotation) instead")
        if np.any(self.passive[:, PASSIVE.index("upper")] < 0):
            raise ModelError("Spherical: upper must not be negative; it is the largest turn from the neutral pose")
        if np.any(self.passive[:, PASSIVE.index("lower")] != -np.inf):
            raise ModelError("Spherical: has no lower limit, because a ball turns about any axis; `upper` is the "
                             "largest turn from the neutral pose, and bk.Compound of hinges has limits for each")

    def elements(self):
        return [Element(f.SPHERICAL, np.array([0.0, 0.0, 1.0]), ORIGIN, 0.0, 0.0, 4, 3)]

    def neutral(self):
        return [1.0, 0.0, 0.0, 0.0]


class Free(Joint):
    """No connection: position in parent axes and quaternion; linear and angular velocity in child axes."""

    nq, nv = 7, 6
    default_actuated = False

    def _check_passive(self):
        super()._check_passive()
        for name in ("stiffness", "limit_stiffness", "limit_damping", "rest", "lower", "upper"):
            if np.any(self.passive[:, PASSIVE.index(name)] != DEFAULTS[name]):
                raise ModelError(f"Free: has no {name}, because nothing holds the link; use Mechanism.add_spring "
                                 "between two points, or a joint that has one")

    def elements(self):
        return [Element(f.FREE, np.array([0.0, 0.0, 1.0]), ORIGIN, 0.0, 0.0, 7, 6)]

    def neutral(self):
        return [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


class Compound(Joint):
    """Several one-degree-of-freedom joints in a row, each in the frame the previous ones have moved.

    Takes Revolute, Prismatic and Helical joints, each with its own axis, point (`at`) and passive parameters.
    """

    def __init__(self, *screws: _Screw) -> None:
        if not screws:
            raise ModelError("Compound needs at least one joint; for none use Fixed()")
        for screw in screws:
            if not isinstance(screw, _Screw):
                raise ModelError(f"Compound takes Revolute, Prismatic and Helical joints, not {screw!r}")
        self.screws = screws
        self.nq = self.nv = len(screws)  # type: ignore[misc]
        super().__init__()
        self.passive = np.array([screw.passive[0] for screw in screws])
        self.laws = np.array([screw.laws[0] for screw in screws])
        self.drive = np.array([screw.drive[0] for screw in screws])

    def changed(self, **changes):
        """A joint like this one with other passive parameters: one number for all, or one for each freedom."""
        for name, value in changes.items():
            if np.ndim(value) > 1 or (np.ndim(value) == 1 and len(value) != self.nv):
                raise ModelError(f"Compound: {name} must be one number or {self.nv} numbers, not {value!r}")
        return Compound(*[screw.changed(**{name: value if np.ndim(value) == 0 else value[k]
                                           for name, value in changes.items()}) for k, screw in enumerate(self.screws)])

    def elements(self):
        return [element for screw in self.screws for element in screw.elements()]

    def __repr__(self):
        return f"Compound({', '.join(map(repr, self.screws))})"


class Fixed(Joint):
    """No freedom: the two links are one body."""

    nq = nv = 0
    default_actuated = False

    def __init__(self, **passive: Any) -> None:
        if passive:
            raise ModelError(f"Fixed has no {next(iter(passive))!r}, because nothing moves in it; take another joint, "
                             "such as bk.Revolute(...)")
        super().__init__()

    def elements(self):
        return []


def as_joint(what: str, joint) -> Joint:
    """A joint argument, checked; None is a Fixed joint."""
    joint = Fixed() if joint is None else joint
    if isinstance(joint, type) and issubclass(joint, Joint):
        raise ModelError(f"{what}: joint must be a joint such as bk.Revolute((0, 0, 1)), not the class "
                         f"bk.{joint.__name__}; call it")
    if not isinstance(joint, Joint):
        raise ModelError(f"{what}: joint must be a joint such as bk.Revolute((0, 0, 1)), not {joint!r}")
    return joint
