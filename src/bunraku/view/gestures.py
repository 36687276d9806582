"""User interaction with a simulation in the viewer: pull, hold and turn, connect, cut, undo.

Every interaction is a public call: `sim.pull`, `sim.connect`, `sim.cut`, `Guide.to`. Methods handle requests of the
page, in the thread that owns the simulation; arguments are not trusted.

A link is pulled at a point by the pointer (`Grip`), or held by a gizmo in six degrees of freedom (`Hold`). Gamepads and
3-D mice (`device.py`) move the target of the link that is held, else that of the first suspension with a guide.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from bunraku.mechanism import Fixed, Prismatic, Revolute, Spherical
from bunraku.mechanism.links import GROUND
from bunraku.simulation import Simulation, watching
from bunraku.view.drawing import Drawing, hit
from bunraku.view.panel import Panel
from bunraku.view.solids import Solid
from bunraku.view.source import Live

UNDONE = 50            # changes that can be undone
SPEED, TURN_SPEED = 0.6, 1.5  # of devices: radii of the first view, radians, per simulated second
LEASH, TURN_LEASH = 1.0, 2.0  # most distance of a link that is held from its target, likewise; less than a half turn
STALE = 0.5            # [s] after which a device that is silent stops; pages report ten times a second at least
GUIDED = 0.3           # [s] in which a suspension follows
PULL, MOVE, CONNECT, CUT = "pull", "hold and turn a link", "connect two links", "cut a joint"
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
JOINTS = {"Spherical": Spherical(), "Fixed": Fixed(),
          **{f"Revolute {name}": Revolute(axis) for name, axis in AXES.items()},
          **{f"Prismatic {name}": Prismatic(axis) for name, axis in AXES.items()}}  # axes as the world's are now
HINTS = {PULL: "Drag a link to pull it.",
         MOVE: "Click a link to hold it; move and turn it by its gizmo, gamepad or 3-D mouse. Click again to let go.",
         CONNECT: "Click two links to connect them where they are; the same link twice holds it to the ground.",
         CUT: "Click the mark of a joint or connection to cut it."}


class Grip(NamedTuple):
    """A link that a pointer holds."""

    client: int
    link: str
    point: np.ndarray  # in the link's frame


@dataclass
class Hold:
    """A link that is held in six degrees of freedom, and its target in the world."""

    link: str
    point: np.ndarray      # in the link's frame: its centre of mass
    position: np.ndarray
    rotation: Rotation


class Hands:
    """Gestures on a displayed simulation."""

    def __init__(self, source: Live, drawing: Drawing, panel: Panel, playing: Callable[[], bool]):
        self.source, self.drawing, self.panel, self._playing = source, drawing, panel, playing
        self.mode, self.joint = PULL, "Spherical"
        self.grip: Grip | None = None
        self.hold: Hold | None = None
        self.first: str | None = None                  # of two links to connect
        self.guides = watching.guides(source.simulation)
        self._steering: dict[int, tuple[float, np.ndarray]] = {}  # page: when it was heard, velocities
        self._done: deque[watching.Moment] = deque(maxlen=UNDONE)
        for name, guide in self.guides.items():
            drawing.screen.guide(name, guide.q[:3], guide.q[3:])

    @property
    def answers(self) -> dict[str, Callable]:
        """{request: method}."""
        return {"mode": self.choose_mode, "joint": self.choose_joint, "grab": self.grab, "drag": self.drag,
                "drop": self.drop, "click": self.click, "mark": self.cut, "undo": self.undo, "guide": self.guide,
                "target": self.aim, "release": self.let_go, "steer": self.steer, "plug": self.plug,
                "unplug": self.unplug}

    @property
    def hint(self) -> str:
        return HINTS[self.mode]

    def begin_anew(self) -> None:
        """Release all links and clear the undo history, before the simulation is reset."""
        self.let_go()
        self.first = None
        self.drawing.choose(None)
        self._done.clear()

    def choose_mode(self, value) -> None:
        self.mode, self.first = (value if value in HINTS else PULL), None
        self.panel.say("")
        self.drawing.choose(None)
        self.drawing.offer_cuts(self.mode == CUT)

    def choose_joint(self, value) -> None:
        if value in JOINTS:
            self.joint = value

    # -- pull

    def grab(self, client, batch, instance, point) -> None:
        solid = self.drawing.shapes.find(batch, instance)
        if solid is None or solid.link == GROUND or self.grip is not None:
            return
        if self.hold is not None and self.hold.link == solid.link:
            self.panel.say(f"{solid.link} is held: move and turn its gizmo")
            return
        rotation, position = self.drawing.place(solid.link)
        self.grip = Grip(client, solid.link, rotation.T @ (np.asarray(point, float) - position))
        if not self._playing():
            self.panel.say("Paused: press Play to pull.")

    def drag(self, client, target) -> None:
        target = np.asarray(target, float)
        if self.grip is not None and self.grip.client == client and np.isfinite(target).all():
            self.source.simulation.pull(self.grip.link, self.grip.point, target)

    def drop(self, client, _=None) -> None:
        if self.grip is not None and self.grip.client == client:
            self._end_pull(self.grip.link)
            self.grip = None

    def let_go(self) -> None:
        """Release all links that are pulled or held."""
        for held in (self.grip, self.hold):
            if held is not None:
                self._end_pull(held.link)
        self.grip = self.hold = None
        self.drawing.screen.let_go()

    def _end_pull(self, link: str) -> None:
        if link in watching.pulled(self.source.simulation):
            self.source.simulation.release(link)

    # -- hold and turn

    def _take(self, link: str) -> None:
        """Hold a link at its present pose; release it if it is held."""
        again = self.hold is not None and self.hold.link == link
        self.let_go()
        if again:
            self.panel.say("")
        elif link == GROUND:
            self.panel.say("The ground does not move.")
        elif any(self.source.mechanism.link(link).joint_name == joint or link == joint for joint in self.guides):
            self.panel.say(f"{link} is moved by its own gizmo, and by gamepads and 3-D mice while no link is held")
        else:
            (rotation, position), point = self.drawing.place(link), self.source.mechanism.link(link).com
            self.hold = Hold(link, point, position + rotation @ point, Rotation.from_matrix(rotation))
            self.drawing.screen.take(self.drawing.shapes.radius(link, point))
            self._pull_held()
            self.panel.say(f"{link} is held: move and turn its gizmo; click it again to let go"
                           f"{'' if self._playing() else '. Paused: press Play to move it.'}")

    def aim(self, position, wxyz) -> None:
        """The target of the link that is held, from its gizmo."""
        pose = _pose(position, wxyz)
        if self.hold is not None and pose is not None:
            self.hold.position, self.hold.rotation = pose[:3], Rotation.from_quat(pose[3:], scalar_first=True)
            self._pull_held(shown=False)

    def _pull_held(self, shown: bool = True) -> None:
        hold = self.hold
        assert hold is not None
        self.source.simulation.pull(hold.link, hold.point, hold.position, rotation=hold.rotation.as_matrix())
        if shown:
            self.drawing.screen.hand(hold.position, hold.rotation.as_quat(scalar_first=True))

    # -- devices

    def plug(self, name) -> None:
        """Update the list of devices of a page."""
        what = self.hold.link if self.hold is not None else next(iter(self.guides), None)
        moves = f"it moves {what}" if what else f"choose “{MOVE}” and click a link"
        self.panel.say(f"{name}: {moves}" if name else "No gamepad or 3-D mouse is connected any more.")

    def steer(self, page, linear, angular) -> None:
        """Velocities commanded by the devices of a page, world axes, from -1 to 1."""
        velocity = np.array([*linear, *angular], float)
        if velocity.shape == (6,) and np.isfinite(velocity).all():
            self._steering[page] = (time.monotonic(), np.clip(velocity, -1.0, 1.0))

    def unplug(self, page) -> None:
        self._steering.pop(page, None)

    def move(self, seconds: float) -> None:
        """Move targets with the commanded velocities over this simulated time [s]."""
        now = time.monotonic()
        heard = [velocity for at, velocity in self._steering.values() if now - at < STALE]
        step = seconds * np.clip(np.sum(heard, axis=0), -1.0, 1.0) if heard else np.zeros(6)
        if not step.any():
            return
        shift, turn = SPEED * self.drawing.reach * step[:3], Rotation.from_rotvec(TURN_SPEED * step[3:])
        if self.hold is not None:
            self._move_held(self.hold, shift, turn)
        elif self.guides:
            name, guide = next(iter(self.guides.items()))
            turned = (turn * Rotation.from_quat(guide.q[3:], scalar_first=True)).as_quat(scalar_first=True)
            guide.to(np.concatenate([guide.q[:3] + shift, turned]), GUIDED)
            self.drawing.screen.guide(name, guide.q[:3], guide.q[3:])

    def _move_held(self, hold: Hold, shift: np.ndarray, turn: Rotation) -> None:
        """Move the target of the held link; its distance from a link that cannot follow is limited."""
        rotation, origin = self.drawing.place(hold.link)
        there, left = origin + rotation @ hold.point, Rotation.from_matrix(rotation).inv()
        position, turned = hold.position + shift, turn * hold.rotation
        if math.dist(position, there) < max(LEASH * self.drawing.reach, math.dist(hold.position, there)):
            hold.position = position
        if (left * turned).magnitude() < max(TURN_LEASH, (left * hold.rotation).magnitude()):
            hold.rotation = turned
        self._pull_held()

    # -- connect and cut

    def click(self, batch, instance, origin, direction) -> None:
        solid = self.drawing.shapes.find(batch, instance)
        if solid is None or self.source.looked_at is not None:
            return
        if self.mode == CUT:
            mark = self.drawing.mark_near(origin, direction)
            if mark is None:
                self.panel.say(HINTS[CUT])
            else:
                self.cut(mark)
        elif self.mode == MOVE:
            self._take(solid.link)
        elif self.mode == PULL:
            self.panel.say(f"{solid.link}: drag it to pull it")
        elif self.first is None:
            self.first = solid.link
            self.panel.say(f"{solid.link}: now click the other link, or this one again to hold it to the ground")
            self.drawing.choose(solid.link)
        else:
            a, self.first = self.first, None
            self.drawing.choose(None)
            self._connect("ground" if a == solid.link else a, solid, origin, direction)

    def _connect(self, a: str, solid: Solid, origin, direction) -> None:
        """Connect two links at their present poses; the joint is at the clicked point, with world axes."""
        rotation, position = self.drawing.place(solid.link)
        eye, ray = np.asarray(origin, float) - position, np.asarray(direction, float)
        point = hit(solid, rotation.T @ eye, rotation.T @ ray)
        made = self._change(lambda sim: sim.connect(a, solid.link, JOINTS[self.joint], position_b=point,
                                                    rotation_b=rotation.T))
        self.panel.say(f"{a} and {solid.link} are connected: {made.name}, {self.joint}")

    def cut(self, index) -> None:
        """Cut the joint or connection of a mark."""
        if not 0 <= index < len(self.drawing.marks):
            return
        name = self.drawing.marks[index]
        if self.mode != CUT:
            self.panel.say(f"{name}: a connection; choose “{CUT}” to cut it")
            return
        self._change(lambda sim: sim.cut(name))
        self.panel.say(f"{name} is cut")

    def _change(self, do: Callable[[Simulation], object]):
        """A change of structure that can be undone."""
        before = self.source.moment()
        result = do(self.source.simulation)
        self._done.append(before)
        self.source.forget()
        return result

    def undo(self) -> None:
        if not self._done:
            self.panel.say("There is nothing to undo.")
            return
        self.let_go()
        self.source.restore(self._done[-1])
        self._done.pop()
        self.panel.say("undone")

    # -- guides

    def guide(self, name, position, wxyz) -> None:
        """Move a suspension to the pose of its gizmo."""
        pose = _pose(position, wxyz)
        if name in self.guides and pose is not None:
            self.guides[name].to(pose, GUIDED)


def _pose(position, wxyz) -> np.ndarray | None:
    """(7,) pose from a gizmo; None if it is invalid."""
    pose = np.array([*position, *wxyz], float)
    return pose if pose.shape == (7,) and np.isfinite(pose).all() and np.linalg.norm(pose[3:]) > 0.5 else None
