"""The scene of the viewer: nodes for the links, marks at joints and connections, arrows of forces, colours.

`Shapes` are the solids of a mechanism, grouped by form; `Drawing` shows a source (`source.py`) on a screen
(`viser_adapter.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bunraku.entries.kinematics_entries import observation
from bunraku.errors import BunrakuError, ContactError
from bunraku.evaluate import dynamics, schedule
from bunraku.mechanism import Free, Mechanism
from bunraku.mechanism.links import GROUND
from bunraku.view.contact_drawing import arrows, floor_height, vector
from bunraku.view.figure import FIXTURE, Camera, Figure
from bunraku.view.filmstrip import OTHERS, TONES
from bunraku.view.solids import Solid, rgba, solids
from bunraku.view.source import Live, Playback

FORCES, LOOPS, WORKERS, CONTACTS = "forces in joints", "connections", "schedule by worker", "contact forces"
CHOSEN = "#f2c14e"     # of a link that was clicked, and of joints that can be cut


class Shapes:
    """Solids of all links, grouped by equal shape, and the poses of links; the ground is last."""

    def __init__(self, mechanism: Mechanism):
        self.solids = solids(mechanism)
        self.names = list(mechanism.link_names)
        self.rows = {name: k for k, name in enumerate([*self.names, GROUND])}
        self.groups = _alike(self.solids)
        self.tones = [np.array([_bytes(s.colour) for s in group], np.uint8) for group in self.groups]
        self._of: dict[str, list[Solid]] = {}
        for solid in self.solids:
            self._of.setdefault(solid.link, []).append(solid)

    def find(self, batch: int, instance: int) -> Solid | None:
        """The solid that a request names; None if it does not exist: requests are not trusted."""
        if 0 <= batch < len(self.groups) and 0 <= instance < len(self.groups[batch]):
            return self.groups[batch][instance]
        return None

    def nearest(self, link: int, place: np.ndarray) -> list[float]:
        """Distances of a point of a link to the surfaces of its solids."""
        return [float(np.linalg.norm(s.vertices - place, axis=1).min()) for s in self._of.get(self.names[link], ())]

    def radius(self, link: str, place: np.ndarray) -> float:
        """Largest distance of the surface of a link from a point in it."""
        far = [float(np.linalg.norm(s.vertices - place, axis=1).max()) for s in self._of.get(link, ())]
        return max(far, default=0.0)

    def batches(self) -> list[tuple]:
        """(vertices, faces, colours, opacity, rows of links) of every group."""
        return [(group[0].vertices, group[0].faces, tones, group[0].colour[3],
                 np.array([self.rows[s.link] for s in group]))
                for group, tones in zip(self.groups, self.tones, strict=True)]

    @staticmethod
    def poses(mechanism: Mechanism, q) -> tuple[np.ndarray, np.ndarray]:
        """Rotations (rows, 3, 3) and positions (rows, 3) of links and ground."""
        links, _ = observation(mechanism.plan(), q)
        rotations = np.concatenate([links[:, :9].reshape(-1, 3, 3), np.eye(3)[None]])
        return rotations, np.vstack([links[:, 9:12], np.zeros(3)])


class Drawing:
    """The scene of a source on a screen."""

    def __init__(self, screen, source: Live | Playback, shapes: Shapes, figure: Figure, reach: float,
                 say: Callable[[str], None]):
        self.screen, self.source, self.shapes, self.say = screen, source, shapes, say
        self.reach, self._figure = reach, figure       # radius of the first view [m]
        self.shown = shown_at_first(source)
        self.frames = 0                                # shown so far
        self.drawn: Mechanism | None = None            # whose marks are shown
        self.marks: list[str] = []                     # names of joints and connections
        self.cutting = False                           # whether joints have marks
        self.chosen: str | None = None                 # link that stands out
        self.rotations, self.positions = shapes.poses(source.mechanism, source.state[0])

    def draw(self) -> None:
        """Draw a frame."""
        mechanism, q, v = self.source.shown()
        self.rotations, self.positions = self.shapes.poses(mechanism, q)
        self.screen.show(quaternions(self.rotations), self.positions.astype(np.float32))
        self._draw_marks(mechanism)
        if self.frames % 3 == 0:
            self._draw_forces(mechanism, q, v)
        self.frames += 1

    def show(self, name: str, on: bool) -> None:
        """Show or hide forces, connections, the schedule."""
        if name in self.shown:
            self.shown[name] = on
        self.drawn = None
        if not on:
            self._hide(name)
        if name in (FORCES, CONTACTS):
            self._fade()
        if name == WORKERS:
            self._colour()

    def offer_cuts(self, on: bool) -> None:
        """Show or hide marks at joints, for cutting."""
        self.cutting, self.drawn = on, None
        self._fade()

    def choose(self, link: str | None) -> None:
        """Highlight a link; None: no link."""
        self.chosen = link
        self._colour()

    def place(self, link: str) -> tuple[np.ndarray, np.ndarray]:
        """Rotation and position of a link as shown."""
        k = self.shapes.rows[link]
        return self.rotations[k], self.positions[k]

    def mark_near(self, origin, direction) -> int | None:
        """The mark that a ray meets; it may be hidden in a link."""
        if not self.marks:
            return None
        away = self._points - np.asarray(origin, float)
        miss = np.linalg.norm(np.cross(away, np.asarray(direction, float)), axis=1)
        nearest = int(miss.argmin())
        return nearest if miss[nearest] < 1.3 * self._radii[nearest] else None

    # -- marks

    def _draw_marks(self, mechanism: Mechanism) -> None:
        """Marks: joints while one can be cut, connections if they are shown."""
        changed = mechanism is not self.drawn
        if changed:
            self.drawn = mechanism
            self._connections = list(mechanism.connections.values()) if self.shown[LOOPS] or self.cutting else []
            self._joints = [] if not self.cutting else [k for k, link in enumerate(mechanism.links)
                                                        if link.parent >= 0 or not isinstance(link.joint, Free)]
            self.marks = [c.name for c in self._connections] + [mechanism.links[k].joint_name for k in self._joints]
            sites = [(c.link_a, c.position_a, c.link_b, c.position_b) for c in self._connections]
            sites += [(mechanism.links[k].parent, mechanism.links[k].position, k, np.zeros(3)) for k in self._joints]
            self._radii = np.array([self._radius(*site) for site in sites])
            if not self.marks:
                self.screen.mark(np.zeros((0, 3)))
        if self.marks:
            at = [c.position_b if c.link_b < 0 else self.positions[c.link_b] + self.rotations[c.link_b] @ c.position_b
                  for c in self._connections]
            points = np.concatenate([np.reshape(at, (-1, 3)), self.positions[self._joints]]).astype(np.float32)
            tones = np.array([_bytes(rgba(OTHERS[0]))] * len(at) + [_bytes(rgba(CHOSEN))] * len(self._joints), np.uint8)
            self.screen.mark(points, *((tones, self._radii) if changed else ()))
            self._points = points

    def _radius(self, a: int, place_a, b: int, place_b) -> float:
        """Radius of a mark, large enough to be visible outside the links around it."""
        near = [far for k, place in ((a, place_a), (b, place_b)) if k >= 0 for far in self.shapes.nearest(k, place)]
        return float(np.clip(1.35 * min(near, default=0.0), 0.02 * self.reach, 0.05 * self.reach))

    # -- arrows

    def _draw_forces(self, mechanism: Mechanism, q, v) -> None:
        """Arrows of joints and contacts."""
        for name, draw in ((FORCES, lambda: self.screen.arrows(self.forces(mechanism, q, v))),
                           (CONTACTS, lambda: self.screen.contacts(*self._contact_arrows(mechanism)))):
            if self.shown.get(name):
                try:
                    draw()
                except ContactError:  # at this moment
                    self._hide(name)
                except BunrakuError as error:
                    self._hide(name)
                    self.say(f"{name}: {error}")

    def _hide(self, name: str) -> None:
        if name == FORCES:
            self.screen.arrows(np.zeros((0, 2, 3)))
        elif name == CONTACTS:
            self.screen.contacts(np.zeros((0, 2, 3)), np.zeros((0, 2, 3)))

    def _contact_arrows(self, mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
        """(n, 2, 3) each: arrows of contacts that stick, and of those that slide."""
        found = arrows(self.source.contacts()) if mechanism.may_touch() else []
        size, fixtures = self._figure.size, self._figure.fixtures
        drawn = [(a.point, a.point + vector(a.force, mechanism, size, fixtures), a.sliding) for a in found]
        long = [(tail, tip, slides) for tail, tip, slides in drawn if (tail != tip).any()]
        sticking, sliding = (np.array([(a, b) for a, b, slides in long if slides == which]).reshape(-1, 2, 3)
                             for which in (False, True))
        return sticking, sliding

    def forces(self, mechanism: Mechanism, q, v) -> np.ndarray:
        """Arrows of the forces on the child links of joints and connections, scaled by the total weight."""
        found = dynamics(mechanism, q, v, **self.source.acting(mechanism, q, v)).forces
        size = 0.4 * self.reach / (9.81 * max(mechanism.mass, 1e-9))
        pushes = []
        for k, link in enumerate(mechanism.links):
            pushes.append((self.positions[k], self.rotations[k] @ found[link.joint_name][:3]))
        for name, c in mechanism.connections.items():
            rotation, position = ((np.eye(3), np.zeros(3)) if c.link_b < 0
                                  else (self.rotations[c.link_b], self.positions[c.link_b]))
            pushes.append((position + rotation @ c.position_b, rotation @ c.rotation_b @ found[name][:3]))
        points = np.array([(at, at + size * force) for at, force in pushes])
        long = np.linalg.norm(points[:, 1] - points[:, 0], axis=1)
        return points[long > 0.01 * self.reach]

    # -- colours

    def _fade(self) -> None:
        """Make links transparent while arrows or joint marks are shown, which are inside the links."""
        self.screen.fade(self.shown[FORCES] or self.shown.get(CONTACTS, False) or self.cutting)

    def _colour(self) -> None:
        """Set the colours of all links: by side, or by worker; the chosen one is highlighted."""
        tones = [given.copy() for given in self.shapes.tones]
        workers = self._workers() if self.shown.get(WORKERS) else {}
        palette = [_bytes(rgba(c)) for c in (*OTHERS, *TONES.values())]
        for group, colours in zip(self.shapes.groups, tones, strict=True):
            for k, solid in enumerate(group):
                if solid.link in workers:
                    colours[k] = palette[workers[solid.link] % len(palette)]
                if solid.link == self.chosen:
                    colours[k] = _bytes(rgba(CHOSEN))
        self.screen.colour(tones)

    def _workers(self) -> dict[str, int]:
        """{link: its worker}, of the simulation's own schedule or else of one for two workers."""
        assert isinstance(self.source, Live)
        used = self.source.simulation.schedule or schedule(self.source.mechanism, workers=2, exactly=True)
        self.say(f"schedule: {len(used.chunks)} chunks, {used.workers} workers"
                 f"{'' if self.source.simulation.schedule else ' (as it would be; this simulation is not cut)'}")
        return {link: worker for links, worker in zip(used.chunks, used.chunk_workers, strict=True) for link in links}


def shown_at_first(source: Live | Playback) -> dict[str, bool]:
    """Items that can be shown or hidden, with their initial visibility."""
    return {LOOPS: True, FORCES: False, **({WORKERS: False} if source.live else {}),
            **({CONTACTS: False} if source.mechanism.may_touch() else {})}


# -- geometry ----------------------------------------------------------------------------------------------------------


def quaternions(rotations: np.ndarray) -> np.ndarray:
    """(n, 4) of float32, w x y z, of matrices (n, 3, 3)."""
    R = rotations
    a, b, c = R[:, 0, 0], R[:, 1, 1], R[:, 2, 2]
    four = np.empty((len(R), 4, 4))  # 4 q q^T: its row with the largest diagonal is a multiple of q
    four[:, 0, 0], four[:, 1, 1] = 1 + a + b + c, 1 + a - b - c
    four[:, 2, 2], four[:, 3, 3] = 1 - a + b - c, 1 - a - b + c
    skew, even = R - R.transpose(0, 2, 1), R + R.transpose(0, 2, 1)
    four[:, 0, 1] = four[:, 1, 0] = skew[:, 2, 1]
    four[:, 0, 2] = four[:, 2, 0] = skew[:, 0, 2]
    four[:, 0, 3] = four[:, 3, 0] = skew[:, 1, 0]
    four[:, 1, 2] = four[:, 2, 1] = even[:, 0, 1]
    four[:, 1, 3] = four[:, 3, 1] = even[:, 0, 2]
    four[:, 2, 3] = four[:, 3, 2] = even[:, 1, 2]
    rows = np.arange(len(R))
    largest = np.diagonal(four, axis1=1, axis2=2).argmax(axis=1)
    q = four[rows, largest]
    return (q / np.sqrt(np.einsum("ij,ij->i", q, q))[:, None]).astype(np.float32)


def hit(solid: Solid, origin: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """First intersection of a ray with a solid, in the link's frame; the solid's centre if the ray narrowly misses
    it."""
    a, b, c = solid.vertices[solid.faces].transpose(1, 0, 2)
    ab, ac = b - a, c - a
    across = np.cross(direction, ac)
    det = np.einsum("ij,ij->i", ab, across)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = origin - a
        u = np.einsum("ij,ij->i", away, across) / det
        other = np.cross(away, ab)
        w = other @ direction / det
        far = np.einsum("ij,ij->i", other, ac) / det
        met = (u >= 0) & (w >= 0) & (u + w <= 1) & (far > 0) & (det != 0)
    if not met.any():
        return 0.5 * (solid.vertices.min(axis=0) + solid.vertices.max(axis=0))
    return origin + far[met].min() * direction


def _alike(found: list[Solid]) -> list[list[Solid]]:
    """Solids of equal shape and opacity."""
    groups: dict[tuple, list[Solid]] = {}
    for solid in found:
        key = (solid.vertices.shape, np.round(solid.vertices, 6).tobytes(), solid.faces.tobytes(), solid.colour[3])
        groups.setdefault(key, []).append(solid)
    return list(groups.values())


def first_look(figure: Figure, shapes: Shapes, q) -> tuple:
    """Centre, direction, radius and floor of the first view."""
    found, rows, (rotations, positions) = shapes.solids, shapes.rows, shapes.poses(figure.mechanism, q)
    corners = [positions[rows[s.link]] + s.vertices[[*s.vertices.argmin(axis=0), *s.vertices.argmax(axis=0)]]
               @ rotations[rows[s.link]].T for s in found] or [np.zeros((1, 3))]
    moving = [c for c, s in zip(corners, found, strict=False) if s.side != FIXTURE] or corners
    points = np.concatenate(moving)
    low, high = points.min(axis=0), points.max(axis=0)
    centre, floor = 0.5 * (low + high), float(low[2])
    size = 0.5 * float(np.linalg.norm(high - low))
    if figure.anchored:  # what hangs can swing
        anchor = np.mean(figure.anchors, axis=0)
        reach = float(np.linalg.norm(points - anchor, axis=1).max())
        floor = min(floor, float(anchor[2]) - reach)
        centre, size = anchor - (0.0, 0.0, 0.35 * reach), max(size, 0.85 * reach)
    level = floor_height(figure.mechanism)
    return (centre, Camera(azimuth=-35.0, elevation=12.0).away, max(size, 1e-3),
            floor - 0.02 * size if level is None else level)


def _bytes(colour) -> tuple[int, int, int]:
    red, green, blue = (round(255 * float(c)) for c in colour[:3])
    return red, green, blue
