"""Human figures with 16, 34 or 48 degrees of freedom, of any height and mass.

Segments: masses, lengths, centres of mass and radii of gyration are the men's values of P. de Leva, Adjustments to
Zatsiorsky-Seluyanov's segment inertia parameters, J. Biomechanics 29 (1996), table 4. Breadths and the height of the
ankle: D. A. Winter, Biomechanics and Motor Control of Human Movement, fig. 4.1 (after Drillis and Contini).
de Leva gives no shoulder girdle and no toes: each is a part of its segment (`GIRDLE`, `TOES`: assumptions), cut out
so that the figures of 34 and 48 degrees of freedom weigh the same in the same pose.
Joints: [YN02, table 2] and [YN-HRP] for 34 and 48, [YN99, fig. 13] for 16.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bunraku.checks import as_positive
from bunraku.errors import ModelError
from bunraku.mechanism import Box, Capsule, Fixed, Free, Joint, Mechanism, Revolute, Sphere, Spherical
from bunraku.models.solid_inertias import FIGURE, Solid, box, gyrated, thickness


class Segment(NamedTuple):
    """Length [mm] in de Leva's men, who are 1.741 m tall; share of body mass; centre of mass from the upper end and
    radii of gyration as shares of length."""

    length: float
    mass: float
    com: float
    sagittal: float
    transverse: float
    longitudinal: float


SEGMENTS = {
    "head": Segment(242.9, 0.0694, 0.5002, 0.303, 0.315, 0.261),             # vertex to cervicale
    "upper_trunk": Segment(242.1, 0.1596, 0.5066, 0.505, 0.320, 0.465),      # cervicale to xiphion
    "middle_trunk": Segment(215.5, 0.1633, 0.4502, 0.482, 0.383, 0.468),     # xiphion to navel
    "lower_trunk": Segment(145.7, 0.1117, 0.6115, 0.615, 0.551, 0.587),      # navel to the middle of the hips
    "upper_arm": Segment(281.7, 0.0271, 0.5772, 0.285, 0.269, 0.158),
    "forearm": Segment(268.9, 0.0162, 0.4574, 0.276, 0.265, 0.121),
    "hand": Segment(187.9, 0.0061, 0.3624, 0.288, 0.235, 0.184),             # wrist to the tip of the third finger
    "thigh": Segment(422.2, 0.1416, 0.4095, 0.329, 0.329, 0.149),
    "shank": Segment(440.3, 0.0433, 0.4395, 0.251, 0.246, 0.102),            # knee to ankle
    "foot": Segment(258.1, 0.0137, 0.4415, 0.257, 0.245, 0.124),             # heel to tip of the toes
}
HIP_TO_SHOULDER = 515.5   # [mm], de Leva
HALF_SHOULDERS = 0.129    # of stature, Winter
HALF_HIPS = 0.050         # of stature: between hip centres, not Winter's outer breadth
ANKLE_HEIGHT = 0.039      # of stature, Winter
HEEL = 0.25               # of the foot's length: heel behind the ankle
STERNUM = 0.012           # of stature: inner end of the clavicle from the middle
GIRDLE = 0.012            # of body mass: one clavicle, shoulder blade and what moves with them
FOOT_WIDTH = 0.055        # of stature, Winter
TOES, TOES_FROM = 0.12, 0.72  # of the foot's mass; where they begin, of its length from the heel

# Which joints each figure has; what is not named is fixed
BALLS = {
    16: ("shoulder", "hip"),
    34: ("waist", "neck", "shoulder", "hip", "ankle"),
    48: ("waist", "neck", "clavicle", "shoulder", "wrist", "hip", "ankle"),
}
HINGES = {16: ("elbow", "knee"), 34: ("elbow", "knee"), 48: ("elbow", "knee", "toes")}

# Positive turns bend the elbow and the knee and raise the toes
AXES = {"elbow": (0.0, -1.0, 0.0), "knee": (0.0, 1.0, 0.0), "toes": (0.0, -1.0, 0.0)}
RANGES = {"elbow": (-0.05, 2.5), "knee": (-0.05, 2.4), "toes": (-0.5, 1.0)}                                 # [rad]
TURNS = {"waist": 0.9, "neck": 1.1, "clavicle": 0.5, "shoulder": 3.05, "wrist": 1.3, "hip": 2.2, "ankle": 0.9}
STIFFNESS = {"wrist": 20.0, "toes": 20.0, "neck": 60.0, "clavicle": 200.0}  # of limits [N m/rad]; others 300
LIMIT_DAMPING = 0.02  # [s], of limits, times their stiffness


HEIGHTS = 0.3, 3.0  # [m] heights of people, with a wide margin
MASSES = 0.5, 700.0  # [kg]


def human(dof: int = 34, *, height: float = 1.75, mass: float = 70.0, limits: bool = False,
          damping: float = 0.0) -> Mechanism:
    """A human figure, standing on the plane z = 0 with hanging arms at the neutral position; x forward, y left, z up.

    dof      48  waist, neck, clavicles, shoulders, wrists, hips, ankles (spherical), elbows, knees, toes (hinges)
             34  without clavicles, wrists and toes; both numbers count the 6 of the pelvis, which floats
             16  shoulders, elbows, hips and knees only; here the 6 of the pelvis are additional (nv = 22)
    height, mass   [m, kg]
    limits   joints resist beyond their natural range, as springs; without it the range is information only
    damping  of every joint [N m s/rad]

    Every figure has the same links (the 48 one also clavicles and toes) under the same names: where it has no joint,
    they are Fixed. Contact shapes touch the ground and other objects, but not each other. The pelvis's frame lies
    between the hips; q of its Free joint is relative to the standing position. Sources of the numbers: see the module.
    Joints are called "waist", "neck", "left_shoulder", "right_knee", ...
    """
    if dof not in BALLS:
        raise ModelError(f"human: dof must be one of {', '.join(map(str, BALLS))}, not {dof!r}")
    body = Body(_within("human: height", height, HEIGHTS, "m", {100.0: "cm", 1000.0: "mm"}),
                _within("human: mass", mass, MASSES, "kg", {1000.0: "g"}))
    m = Mechanism(name=f"human {dof}")

    def joint(name: str) -> Joint:
        if name in BALLS[dof]:
            return Spherical(upper=TURNS[name], damping=damping, **_limit(name, limits))
        if name in HINGES[dof]:
            lower, upper = RANGES[name]
            return Revolute(AXES[name], lower=lower, upper=upper, damping=damping, **_limit(name, limits))
        return Fixed()

    def add(name, parent, how, position, solid):
        m.add_link(name, parent, joint(how.split("_")[-1]), joint_name=how, position=position, mass=solid.mass,
                   com=solid.com, inertia=solid.inertia)

    split = dof == 48  # clavicles and toes of their own
    m.add_link("pelvis", joint=Free(), joint_name="root", position=(0.0, 0.0, body.hip_height), **body.pelvis._asdict())
    add("chest", "pelvis", "waist", (0.0, 0.0, body.length("lower_trunk")),
        body.chest - body.girdle(1) - body.girdle(-1) if split else body.chest)
    add("head", "chest", "neck", (0.0, 0.0, body.chest_length), body.head)
    sides = (("left", 1), ("right", -1))
    for side, y in sides:
        shoulder = np.array([0.0, y * body.half_shoulders, body.shoulder_height])
        above = "chest"
        if split:
            inner = body.sternum(y)
            add(f"{side}_clavicle", "chest", f"{side}_clavicle", inner, body.girdle(y).seen_from(inner))
            above, shoulder = f"{side}_clavicle", shoulder - inner
        add(f"{side}_upper_arm", above, f"{side}_shoulder", shoulder, body.limb("upper_arm"))
        add(f"{side}_forearm", f"{side}_upper_arm", f"{side}_elbow", body.end("upper_arm"), body.limb("forearm"))
        add(f"{side}_hand", f"{side}_forearm", f"{side}_wrist", body.end("forearm"), body.hand)
    for side, y in sides:
        hip = (0.0, y * body.half_hips, 0.0)
        add(f"{side}_thigh", "pelvis", f"{side}_hip", hip, body.limb("thigh"))
        add(f"{side}_shank", f"{side}_thigh", f"{side}_knee", body.end("thigh"), body.limb("shank"))
        foot, toes, ball = body.foot, body.toes, body.ball_of_foot
        add(f"{side}_foot", f"{side}_shank", f"{side}_ankle", body.end("shank"), foot - toes if split else foot)
        if split:
            add(f"{side}_toes", f"{side}_foot", f"{side}_toes", ball, toes.seen_from(ball))
    _add_shapes(m, body, split)
    return m


def _add_shapes(m: Mechanism, body: Body, split: bool) -> None:
    """Shapes for contact: limbs as thick as they are drawn, soles at the height of the ankle below it."""
    head = 0.5 * body.length("head")
    m.add_shape("head", Sphere(head), (0.0, 0.0, head), **FIGURE)
    r = thickness(m.link("chest").mass, body.chest_length)
    m.add_shape("chest", Capsule(r, body.chest_length - 2.0 * r), (0.0, 0.0, 0.5 * body.chest_length), **FIGURE)
    m.add_shape("pelvis", Capsule(0.5 * body.length("lower_trunk"), 2.0 * body.half_hips),
                (0.0, 0.0, 0.5 * body.length("lower_trunk")), ((1, 0, 0), (0, 0, 1), (0, -1, 0)), **FIGURE)
    foot, height = body.length("foot"), body.ankle_height
    width, rear = FOOT_WIDTH * height / ANKLE_HEIGHT, TOES_FROM * foot if split else foot
    for side in ("left", "right"):
        for name in ("upper_arm", "forearm", "hand", "thigh", "shank"):
            length = body.length(name)
            r = thickness(m.link(f"{side}_{name}").mass, length)
            m.add_shape(f"{side}_{name}", Capsule(r, length - 2.0 * r), (0.0, 0.0, -0.5 * length), **FIGURE)
        m.add_shape(f"{side}_foot", Box(rear, width, height), (0.5 * rear - HEEL * foot, 0.0, -0.5 * height), **FIGURE)
        if split:
            m.add_shape(f"{side}_toes", Box(foot - rear, width, 0.5 * height), (0.5 * (foot - rear), 0.0, 0.0),
                        **FIGURE)


def _within(what: str, value, bounds, unit: str, others: dict[float, str]) -> float:
    """A number in the human range; otherwise an error that suggests the probable unit."""
    number = as_positive(what, value)
    if bounds[0] <= number <= bounds[1]:
        return number
    meant = next((f"; {number:g} {name} are {what.split()[-1]}={number / scale:g}" for scale, name in others.items()
                  if bounds[0] <= number / scale <= bounds[1]), "")
    raise ModelError(f"{what} must be {bounds[0]:g} to {bounds[1]:g} {unit}, not {value!r}{meant}")


def _limit(name, limits):
    k = STIFFNESS.get(name, 300.0) if limits else 0.0
    return {"limit_stiffness": k, "limit_damping": LIMIT_DAMPING * k}


class Body:
    """Lengths and solids of a person; each solid in the frame of its link at the neutral position."""

    def __init__(self, height: float, mass: float):
        stacked = sum(SEGMENTS[name].length for name in ("head", "upper_trunk", "middle_trunk", "lower_trunk", "thigh",
                                                         "shank"))
        # Stacked upright the segments overshoot the stature by two per cent: scale them so that the height is right
        self.per_mm = (1.0 - ANKLE_HEIGHT) * height / stacked
        self.mass = mass
        self.ankle_height = ANKLE_HEIGHT * height
        self.hip_height = self.ankle_height + self.length("shank") + self.length("thigh")
        self.half_hips, self.half_shoulders = HALF_HIPS * height, HALF_SHOULDERS * height
        self.chest_length = self.length("middle_trunk") + self.length("upper_trunk")
        self.shoulder_height = HIP_TO_SHOULDER * self.per_mm - self.length("lower_trunk")  # above the waist
        self._inner = STERNUM * height
        self.pelvis = self.limb("lower_trunk", top=self.length("lower_trunk"))
        self.chest = (self.limb("middle_trunk", top=self.length("middle_trunk"))
                      + self.limb("upper_trunk", top=self.chest_length))
        self.head = self.limb("head", top=self.length("head"))
        self.hand = self._flat_hand()
        self.foot = self._foot()
        foot = self.length("foot")
        self.ball_of_foot = np.array([(TOES_FROM - HEEL) * foot, 0.0, -0.75 * self.ankle_height])
        size = np.array([(1.0 - TOES_FROM) * foot, FOOT_WIDTH * height, 0.3 * self.ankle_height])
        self.toes = box(TOES * self.foot.mass, size, self.ball_of_foot + np.array([0.5 * size[0], 0.0, 0.0]))

    def length(self, name) -> float:
        return SEGMENTS[name].length * self.per_mm

    def end(self, name):
        """Lower end of a hanging segment, from its upper end."""
        return (0.0, 0.0, -self.length(name))

    def limb(self, name, top=0.0) -> Solid:
        """A segment along z whose upper end is at height `top`."""
        s, length = SEGMENTS[name], self.length(name)
        return gyrated(s.mass * self.mass, (0.0, 0.0, top - s.com * length),
                       np.multiply((s.sagittal, s.transverse, s.longitudinal), length))

    def _flat_hand(self) -> Solid:
        """Palms face the thighs: the hand is broad along x, so its largest moment of inertia is about y."""
        s, length = SEGMENTS["hand"], self.length("hand")
        return gyrated(s.mass * self.mass, (0.0, 0.0, -s.com * length),
                       np.multiply((s.transverse, s.sagittal, s.longitudinal), length))

    def _foot(self) -> Solid:
        """The foot lies along x, so its longitudinal axis is x."""
        s, length = SEGMENTS["foot"], self.length("foot")
        return gyrated(s.mass * self.mass, ((s.com - HEEL) * length, 0.0, -0.6 * self.ankle_height),
                       np.multiply((s.longitudinal, s.transverse, s.sagittal), length))

    def sternum(self, y) -> np.ndarray:
        """Inner end of a clavicle, in the chest's frame."""
        return np.array([0.0, y * self._inner, self.shoulder_height])

    def girdle(self, y) -> Solid:
        """A shoulder girdle, in the chest's frame."""
        inner, outer = self._inner, self.half_shoulders
        size = (0.6 * (outer - inner), outer - inner, 0.4 * (outer - inner))
        return box(GIRDLE * self.mass, size, (0.0, 0.5 * y * (inner + outer), self.shoulder_height))
