"""The unknowns of an identification: names, the given model's values with their spread, and mechanisms from values.

Ten inertial parameters of each link, and damping, friction (Coulomb) and armature of each freedom of a joint. All are
linear in the torques. A fit uses u instead, values = given + T u: changes relative to the given model, for links in
the metric of a pseudo-inertia, tr((P^-1 dP)^2), so that neither units nor frames matter. P is that of a ball as large
as the link: u = 1 is a change by the whole mass, by the whole moment of inertia, or by about the radius of gyration.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.checks import hint
from bunraku.errors import ModelError, NamingError
from bunraku.identification import pseudo_inertia
from bunraku.mechanism import Compound, Free, Mechanism
from bunraku.mechanism.coordinate_names import coordinate_names
from bunraku.mechanism.joints import FRICTION
from bunraku.plan import fields as f

OF_LINKS = ("mass", "mx", "my", "mz", "ixx", "ixy", "iyy", "ixz", "iyz", "izz")
OF_JOINTS = ("damping", "friction", "armature")
FIT = ("inertia", *OF_JOINTS)
LEAST_MASS = 1e-3  # of the mechanism: of a massless link whose inertia is asked for


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Columns of the regressor: ten for each of `links`, then one for each of `freedoms`."""

    mechanism: Mechanism
    names: list[str]
    links: list[int]                   # by index
    freedoms: list[tuple[str, int]]    # (damping, friction or armature; index in v)
    given: np.ndarray                  # values of the given model, made positive definite
    own: np.ndarray                    # values of the given model as they are
    T: np.ndarray                      # (p, p) scales of the changes u

    @property
    def count(self) -> int:
        return len(self.names)

    def matrices(self, values) -> list[np.ndarray]:
        """Pseudo-inertias of the links."""
        return [pseudo_inertia.matrix(values[10 * i:10 * i + 10]) for i in range(len(self.links))]

    def mechanism_of(self, values) -> Mechanism:
        """The given mechanism with other values."""
        m = self.mechanism
        for i, link in enumerate(self.links):
            mass, com, inertia = pseudo_inertia.body(values[10 * i:10 * i + 10])
            m = m.with_link(m.links[link].name, mass=mass, com=com, inertia=inertia)
        changes: dict[str, dict[str, np.ndarray]] = {}
        first = 10 * len(self.links)
        for (what, k), value in zip(self.freedoms, values[first:], strict=True):
            name, place = _joint_of(self.mechanism, k)
            joint = self.mechanism.joint(name)
            if what not in changes.setdefault(name, {}):
                changes[name][what] = np.array(_numbers(joint, what))
            changes[name][what][place] = value
        for name, change in changes.items():
            joint = m.joint(name)
            one = joint.nv == 1 and not isinstance(joint, Compound)
            m = m.with_joint(name, joint=joint.changed(**{what: float(x[0]) if one else x
                                                          for what, x in change.items()}))
        return m


def unknowns(mechanism: Mechanism, fit, links, joints, moves: np.ndarray, scales: dict[str, np.ndarray]) -> Unknowns:
    """The unknowns that are asked for.

    moves   (links,) whether a link's inertia has any effect on the torques
    scales  {damping, friction, armature: (nv,) of the size of the torque}, where the given model has none
    """
    m = mechanism
    names: list[str] = []
    given: list[np.ndarray] = []
    own: list[np.ndarray] = []
    of_links = _links(m, links, moves) if "inertia" in fit else []
    blocks = []
    for i in of_links:
        link = m.links[i]
        P, ball = pseudo_inertia.solid(link, LEAST_MASS * m.mass)
        about_origin = link.inertia + link.mass * (link.com @ link.com * np.eye(3) - np.outer(link.com, link.com))
        names += [f"{link.name}.{part}" for part in OF_LINKS]
        given.append(pseudo_inertia.parameters(P))
        own.append(np.concatenate(([link.mass], link.mass * link.com,
                                   about_origin[pseudo_inertia.ROWS, pseudo_inertia.COLUMNS])))
        blocks.append(np.stack([pseudo_inertia.parameters(dP) for dP in pseudo_inertia.directions(ball)], axis=1))
    freedoms, labels = [], [name.removesuffix(".tau") for name in coordinate_names(m).tau]
    spread = []
    for name in _joints(m, joints) if set(fit) - {"inertia"} else []:
        joint, first = m.joint(name), m.v_slice(name).start
        for what in OF_JOINTS:
            if what in fit and (what != "friction" or joint.has_laws or isinstance(joint, Compound)):
                for place, value in enumerate(_numbers(joint, what)):
                    k = first + place
                    names.append(f"{labels[k]}.{what}")
                    freedoms.append((what, k))
                    given.append(np.array([value]))
                    own.append(np.array([value]))
                    spread.append(max(value, scales[what][k]))
    if not names:
        raise ModelError(f"identify: nothing to find in {m.name}: no link or joint that moves is among those asked for")
    T = np.zeros((len(names), len(names)))
    for i, block in enumerate(blocks):
        T[10 * i:10 * i + 10, 10 * i:10 * i + 10] = block
    rest = np.arange(10 * len(blocks), len(names))
    T[rest, rest] = spread
    return Unknowns(m, names, of_links, freedoms, np.concatenate(given), np.concatenate(own), T)


def _links(m: Mechanism, links, moves) -> list[int]:
    if links is None:
        return [i for i, link in enumerate(m.links) if moves[i] and link.mass > 0.0]
    found = []
    for name in [links] if isinstance(links, str) else links:
        i = m.find_link(name, "identify: link")
        if i < 0 or not moves[i]:
            raise ModelError(f"identify: link {name!r} has no effect on the torques in this motion, so its inertia "
                             "cannot be found; leave it out of links, or record a motion that moves it")
        found.append(i)
    return sorted(set(found))


def _joints(m: Mechanism, joints) -> list[str]:
    if joints is None:
        return [link.joint_name for link in m.links if link.joint.nv and not isinstance(link.joint, Free)]
    found = []
    for name in [joints] if isinstance(joints, str) else joints:
        if name in m.connections:
            raise ModelError(f"identify: {name!r} is a connection; friction and armature are found of joints of the "
                             "tree")
        link = m.links[m.find_joint(name, "identify: ")]
        if not link.joint.nv:
            raise ModelError(f"identify: joint {link.joint_name!r} is fixed, so it has neither friction nor armature; "
                             "leave it out of joints")
        found.append(link.joint_name)
    return list(dict.fromkeys(found))


def as_fit(fit) -> tuple[str, ...]:
    """The argument `fit`, checked."""
    fit = (fit,) if isinstance(fit, str) else tuple(fit)
    for what in fit:
        if what not in FIT:
            raise NamingError(f"identify: fit takes {', '.join(map(repr, FIT))}, not {what!r}{hint(what, FIT, True)}")
    return fit


def _numbers(joint, what: str) -> np.ndarray:
    """One for each freedom of a joint."""
    if what == "friction":
        return joint.laws[:, FRICTION]
    return joint.passive[:, {"damping": f.DAMPING, "armature": f.ARMATURE}[what]]


def _joint_of(m: Mechanism, k: int) -> tuple[str, int]:
    """The joint of an index in v, and which of its freedoms."""
    for link in m.links:
        where = m.v_slice(link.joint_name)
        if where.start <= k < where.stop:
            return link.joint_name, k - where.start
    raise IndexError(k)
