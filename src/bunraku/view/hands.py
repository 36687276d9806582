"""What people do to a simulation in the viewer: pull, connect, cut, undo, move a suspension.

Every act is a call that a script could make: `sim.pull`, `sim.connect`, `sim.cut`, `Guide.to`. Methods answer requests
of the page, in the thread that owns the simulation; arguments come from anywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bunraku.mechanism import Fixed, Prismatic, Revolute, Spherical
from bunraku.mechanism.links import GROUND
from bunraku.simulation import Simulation, watching
from bunraku.view.drawing import Drawing, hit
from bunraku.view.panel import Panel
from bunraku.view.solids import Solid
from bunraku.view.source import Live

UNDONE = 50            # changes that can be undone
PULL, CONNECT, CUT = "pull", "connect two links", "cut a joint"
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
JOINTS = {"Spherical": Spherical(), "Fixed": Fixed(),
          **{f"Revolute {name}": Revolute(axis) for name, axis in AXES.items()},
          **{f"Prismatic {name}": Prismatic(axis) for name, axis in AXES.items()}}  # axes as the world's are now
HINTS = {PULL: "Drag a link to pull it.",
         CONNECT: "Click two links to connect them where they are; the same link twice holds it to the ground.",
         CUT: "Click the mark of a joint or connection to cut it."}


class Grip(NamedTuple):
    """A link that a pointer holds."""

    client: int
    link: str
    point: np.ndarray  # in the link's frame


class Hands:
    """Gestures on a simulation that is drawn."""

    def __init__(self, source: Live, drawing: Drawing, panel: Panel, playing: Callable[[], bool]):
        self.source, self.drawing, self.panel, self._playing = source, drawing, panel, playing
        self.mode, self.joint = PULL, "Spherical"
        self.grip: Grip | None = None
        self.first: str | None = None                  # of two links to connect
        self.guides = watching.guides(source.simulation)
        self._done: deque[watching.Moment] = deque(maxlen=UNDONE)
        for name, guide in self.guides.items():
            drawing.screen.guide(name, guide.q[:3], guide.q[3:])

    @property
    def answers(self) -> dict[str, Callable]:
        """{request: method}."""
        return {"mode": self.choose_mode, "joint": self.choose_joint, "grab": self.grab, "drag": self.drag,
                "drop": self.drop, "click": self.click, "mark": self.cut, "undo": self.undo, "guide": self.guide}

    @property
    def hint(self) -> str:
        return HINTS[self.mode]

    def begin_anew(self) -> None:
        """Let go of everything and forget what could be undone: before the simulation is reset."""
        self._let_go()
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
            self._let_go()

    def _let_go(self) -> None:
        if self.grip is not None:
            (_, link, _), self.grip = self.grip, None
            if link in watching.pulled(self.source.simulation):
                self.source.simulation.release(link)

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
        """Connect two links where they are; the joint is at the point that was clicked, its axes are the world's."""
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
        self._let_go()
        self.source.restore(self._done[-1])
        self._done.pop()
        self.panel.say("undone")

    # -- guides

    def guide(self, name, position, wxyz) -> None:
        """Move a suspension to where its gizmo was put."""
        if name in self.guides:
            target = np.array([*position, *wxyz], float)
            if np.isfinite(target).all() and np.linalg.norm(target[3:]) > 0.5:
                self.guides[name].to(target, 0.3)
