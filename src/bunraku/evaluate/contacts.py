"""Where a mechanism touches itself and its surroundings, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from bunraku.checks import as_floats, as_size
from bunraku.contact import contact_fields as c
from bunraku.entries.kinematics_entries import observation
from bunraku.errors import ModelError, ShapeError
from bunraku.evaluate.contact_resultants import Resultant, resultants
from bunraku.mechanism import Mechanism
from bunraku.mechanism.links import GROUND
from bunraku.mechanism.mechanism import as_mechanism

if TYPE_CHECKING:
    from bunraku.contact.contact_arrays import ContactArrays

MARGIN = 1e-3
"""[m] Shapes that are closer are in contact, unless `contacts` is told otherwise."""
LISTED = 20
ORIGIN = 9
"""Place of a link's origin in its state (`algorithms/body_motion.py`)."""
MODES = ("open", "sticking", "sliding")


class Contact(NamedTuple):
    """A contact point of two shapes that touch or are within the margin; world axes."""

    pair: tuple[str, str]     # names of the shapes, a and b
    links: tuple[str, str]    # names of their links
    point: np.ndarray         # half-way between the surfaces [m]
    normal: np.ndarray        # unit vector from b to a: a force along it pushes a away
    gap: float                # between the surfaces, negative if they overlap [m]
    friction: float           # of the pair
    restitution: float
    force: np.ndarray | None = None  # on a, world axes [N]; None where forces were not asked for
    mode: str | None = None          # "open", "sticking" or "sliding"; likewise
    moment: np.ndarray | None = None  # on a, of torsional and rolling friction, world axes [N m]; likewise

    @property
    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """The points of the surfaces of a and b."""
        half = 0.5 * self.gap * self.normal
        return self.point + half, self.point - half


class Contacts(Sequence[Contact]):
    """The contacts of one state, the smallest gap first."""

    def __init__(self, mechanism: Mechanism, q: np.ndarray, found: np.ndarray, margin: float,
                 forces: np.ndarray | None = None, modes: np.ndarray | None = None, residual: float = 0.0,
                 arrays: ContactArrays | None = None, resistance: np.ndarray | None = None,
                 moments: np.ndarray | None = None):
        """`arrays` with the list of the pairs of `found`; unless given, that of the mechanism. `resistance`: (nv,)
        torques and forces of the joints by their friction and hard limits, which belong to the same problem; `moments`:
        those of torsional and rolling friction, if there is any."""
        self.mechanism, self.margin, self.q = mechanism, margin, q
        self.resistance = np.zeros(mechanism.nv) if resistance is None else resistance
        rows = np.flatnonzero(found[:, c.FOUND_GAP] <= margin)
        self._rows = rows[np.argsort(found[rows, c.FOUND_GAP], kind="stable")]
        self._found = found[self._rows]
        self._forces = None if forces is None else forces[self._rows]
        self._moments = None if forces is None else np.zeros_like(forces) if moments is None else moments
        self._moments = None if self._moments is None else self._moments[self._rows]
        self._modes = None if modes is None else modes[self._rows]
        self.residual = residual  # of the contact problem, relative: see docs/contact.md
        self._shapes, own, _ = mechanism.contact_pairs()
        self._arrays = own if arrays is None else arrays

    @property
    def gap(self) -> np.ndarray:
        """(n,) [m]."""
        return self._found[:, c.FOUND_GAP].copy()

    @property
    def point(self) -> np.ndarray:
        """(n, 3) [m]."""
        return self._found[:, c.FOUND_POINT:c.FOUND_POINT + 3].copy()

    @property
    def normal(self) -> np.ndarray:
        """(n, 3)."""
        return self._found[:, c.FOUND_NORMAL:c.FOUND_NORMAL + 3].copy()

    @property
    def force(self) -> np.ndarray:
        """(n, 3) on the first shape of each pair, world axes [N]."""
        if self._forces is None:
            raise ModelError("bk.contacts(m, q) is geometry; forces are in bk.dynamics(m, q, v, tau).contacts")
        return self._forces.copy()

    @property
    def moment(self) -> np.ndarray:
        """(n, 3) on the first shape of each pair, by torsional and rolling friction, world axes [N m]."""
        if self._moments is None:
            raise ModelError("bk.contacts(m, q) is geometry; moments are in bk.dynamics(m, q, v, tau).contacts")
        return self._moments.copy()

    @property
    def mode(self) -> list[str]:
        """Mode of each contact: "open", "sticking" or "sliding"."""
        if self._modes is None:
            raise ModelError("bk.contacts(m, q) is geometry; modes are in bk.dynamics(m, q, v, tau).contacts")
        return [MODES[mode] for mode in self._modes]

    @property
    def pair(self) -> list[tuple[str, str]]:
        """Names of the shapes of each contact."""
        return [contact.pair for contact in self]

    @property
    def resultants(self) -> dict[tuple[str, str], Resultant]:
        """{(link a, link b): net wrench on a by b, and centre of pressure} of all links in contact."""
        if self._forces is None:
            raise ModelError("bk.contacts(m, q) is geometry; forces are in bk.dynamics(m, q, v, tau).contacts")
        return resultants(self)

    def add_to(self, wrenches: np.ndarray) -> None:
        """Add the contact wrenches at the links' origins to (links, 6), in place."""
        origins = observation(self.mechanism.plan("tree"), self.q)[0][:, ORIGIN:ORIGIN + 3]
        links = np.array([shape.link for shape in self._shapes])
        pairs = self._arrays.pair_i[self._arrays.contact_i[self._rows, c.CONTACT_PAIR]]
        point, force, moment = self._found[:, c.FOUND_POINT:c.FOUND_POINT + 3], self._forces, self._moments
        if force is None or moment is None:
            return
        for side, sign in ((c.PAIR_A, 1.0), (c.PAIR_B, -1.0)):
            link = links[pairs[:, side]]
            on = np.flatnonzero(link >= 0)
            if on.size:
                link, push = link[on], sign * force[on]
                x, y, z = (point[on] - origins[link]).T
                fx, fy, fz = push.T
                mx, my, mz = (sign * moment[on]).T
                np.add.at(wrenches, link, np.array([fx, fy, fz, y * fz - z * fy + mx, z * fx - x * fz + my,
                                                    x * fy - y * fx + mz]).T)

    def __len__(self):
        return len(self._rows)

    @overload
    def __getitem__(self, k: int) -> Contact: ...

    @overload
    def __getitem__(self, k: slice) -> list[Contact]: ...

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        row, number = self._found[k], self._rows[k]
        pair = self._arrays.pair_i[self._arrays.contact_i[number, c.CONTACT_PAIR]]
        shapes = self._shapes[pair[c.PAIR_A]], self._shapes[pair[c.PAIR_B]]
        names = [*self.mechanism.link_names, GROUND]
        surface = self._arrays.contact_f[number]
        return Contact((shapes[0].name, shapes[1].name), (names[shapes[0].link], names[shapes[1].link]),
                       row[c.FOUND_POINT:c.FOUND_POINT + 3].copy(), row[c.FOUND_NORMAL:c.FOUND_NORMAL + 3].copy(),
                       float(row[c.FOUND_GAP]), float(surface[c.FRICTION]), float(surface[c.RESTITUTION]),
                       None if self._forces is None else self._forces[k].copy(),
                       None if self._modes is None else MODES[self._modes[k]],
                       None if self._moments is None else self._moments[k].copy())

    def __repr__(self):
        if not self:
            return f"no contacts within {self.margin:g} m"
        lines = [f"{len(self)} contact{'s' * (len(self) > 1)} within {self.margin:g} m"]
        for pair, _, point, normal, gap, _, _, force, mode, _ in self[:LISTED]:
            place, towards = (", ".join(f"{x + 0.0:.4g}" for x in np.round(v, 9)) for v in (point, normal))
            acts = "" if force is None else (f", {mode}, force (" + ", ".join(f"{x + 0.0:.4g}" for x in
                                                                               np.round(force, 9)) + ") N")
            lines.append(f"  {pair[0]} - {pair[1]}: gap {gap:.3g} m at ({place}), normal ({towards}){acts}")
        if len(self) > LISTED:
            lines.append(f"  ... and {len(self) - LISTED} more")
        return "\n".join(lines)


def contacts(mechanism: Mechanism, q, margin: float = MARGIN, workers: int | None = None) -> Contacts | list[Contacts]:
    """All points at which shapes are closer than `margin` [m], the smallest gap first; for a batch a list of these.

    Geometry only: no forces follow from it. Shapes come from `add_shape` and `add_plane`; two shapes may touch unless
    their masks or `exclude` say otherwise, or their links are neighbours.
    """
    m, margin = as_mechanism(mechanism), as_size("contacts: margin", margin, ShapeError)
    if not m.shapes:
        raise ModelError(f"{m.name} has no shapes, so nothing can touch; use m.add_shape(link, bk.Sphere(0.1)) and "
                         "m.add_plane()")
    from bunraku.contact.contact_entries import found_contacts
    from bunraku.evaluate.near_contacts import contacts_near

    q = as_floats("q", q, m.nq)
    if q.ndim == 1:
        arrays, found = contacts_near(m, q, margin)
        return Contacts(m, q, found, margin, arrays=arrays)
    pairs = m.contact_pairs()
    if pairs.complete:
        found = found_contacts(m.plan("tree"), pairs.arrays, q, margin, workers)
        return [Contacts(m, *each, margin) for each in zip(q, found, strict=True)]
    return [Contacts(m, each, found, margin, arrays=arrays) for each in q
            for arrays, found in [contacts_near(m, each, margin)]]


def no_contacts(mechanism: Mechanism, q) -> Contacts:
    """The empty list of contacts of a mechanism without contact pairs."""
    return Contacts(mechanism, q, np.zeros((0, c.FOUND)), MARGIN, np.zeros((0, 3)), np.zeros(0, np.int64))


def with_contacts(mechanism: Mechanism, touching: Contacts | list[Contacts], pushed):
    """External forces on links (6 each) with those of contacts added."""
    several = isinstance(touching, list)
    states = touching if isinstance(touching, list) else [touching]
    total = np.zeros((len(states), 6 * len(mechanism.links))) + (0.0 if pushed is None else pushed)
    for state, acting in zip(total, states, strict=True):
        if len(acting):
            acting.add_to(state.reshape(-1, 6))
    return total if several else total[0]


def without_contact(mechanism: Mechanism) -> Mechanism:
    """The mechanism without contact."""
    def make() -> Mechanism:
        twin = mechanism.copy()
        twin.shapes, twin.frictionless, twin.joint_laws = type(mechanism.shapes)(), True, False
        twin.contact_changed()
        return twin

    return mechanism.kept("untouched", make)
