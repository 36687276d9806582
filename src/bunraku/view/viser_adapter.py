"""Adapter to viser: a page with a 3-D scene and a panel of controls.

Callbacks run in viser's thread; they do nothing but `ask(name, *arguments)`. Every group of like solids is one batched
node: a frame is one message per group.

The server and its guard are `viser_server.py`.
"""

from __future__ import annotations

import contextlib
import io
import socket
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bunraku.errors import MissingExtra
from bunraku.view import device
from bunraku.view.contact_drawing import SLIDES, STICKS
from bunraku.view.filmstrip import FAINT, INK, KINETIC, OTHERS, PAPER, POTENTIAL
from bunraku.view.page_access import Guard, listen
from bunraku.view.panel import ENERGY, LOOP_ERROR, ORDER, STEP
from bunraku.view.solids import ball, rgba
from bunraku.view.viser_server import serve

try:
    import viser
    from viser import _messages
except ImportError as error:
    raise MissingExtra('the viewer needs viser: pip install "bunraku[view]"') from error

FOV = 0.62                # [rad]
FARTHEST = 160.0          # [m]: depth of the paper behind everything, the largest that viser sends
Ask = Callable[..., None]


class Batch(NamedTuple):
    """Solids of one shape."""

    vertices: np.ndarray   # (n, 3)
    faces: np.ndarray      # (m, 3)
    colours: np.ndarray    # (k, 3): of each of them, 0 to 255
    opacity: float
    links: np.ndarray      # (k,): rows of the poses


class Look(NamedTuple):
    """Initial camera and floor."""

    centre: np.ndarray
    away: np.ndarray       # direction of view
    size: float            # radius of what shall be seen [m]
    floor: float           # height [m]


class Texts(NamedTuple):
    """Names of controls: the same on the page and in requests."""

    title: str
    modes: Sequence[str]
    joints: Sequence[str]
    shown: dict[str, bool]       # what can be shown, and whether it is at first
    live: bool                   # a simulation, not a recording


class Screen:
    """The page: the display of a `Stage`, and the user's requests."""

    def __init__(self, batches: Sequence[Batch], look: Look, texts: Texts, ask: Ask, host: str, port: int,
                 guides: Sequence[str] = ()):
        listener = listen(host, port)
        self.port = int(listener.getsockname()[1])
        guard = Guard(host, self.port)
        name = "127.0.0.1" if host in ("127.0.0.1", "localhost") else f"[{host}]" if ":" in host else host
        if host in ("0.0.0.0", "::"):
            name = socket.gethostname()
        self.url = f"http://{name}:{self.port}/" + (f"?token={guard.token}" if guard.token else "")
        self._ask, self._away = ask, look.away
        self._server = serve(listener, guard, texts.title, self._from_device)
        self._size, self._batches = look.size, list(batches)
        self._scenery(look)
        self._nodes = [self._node(k, batch) for k, batch in enumerate(batches)]
        self._overlays()
        self._gizmos = {name: self._gizmo(f"/guides/{name}", "guide", name) for name in guides}
        self._hand = self._gizmo("/hand", "target")
        self._hand.visible = False
        self._controls(texts)

    @property
    def watched(self) -> bool:
        """Whether a client is connected."""
        return bool(self._server._connected_clients)

    def close(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            self._server.stop()

    # -- scene

    def _scenery(self, look: Look):
        scene, camera = self._server.scene, self._server.initial_camera
        self._server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="medium",
                                         brand_color=_bytes(POTENTIAL))
        scene.set_up_direction("+z")
        distance = look.size * 1.12 / np.sin(0.5 * FOV)
        if distance + 4 * look.size < FARTHEST:
            scene.set_background_image(np.full((2, 2, 3), _bytes(PAPER), np.uint8), format="png",
                                       depth=np.full((2, 2), FARTHEST))
        scene.configure_default_lights(False)
        scene.configure_environment_map(None)
        right = np.cross(look.away, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        scene.add_light_hemisphere("/lights/sky", sky_color=_bytes(PAPER), ground_color=_bytes("#b9ae9c"),
                                   intensity=1.3)
        scene.add_light_directional("/lights/above", color=(255, 250, 240), intensity=1.1, cast_shadow=True)
        lamp = look.centre + look.size * (np.array([0.0, 0.0, 5.0]) - 6 * look.away - 7 * right)
        scene.add_light_point("/lights/lamp", color=(255, 240, 220), intensity=1.5, decay=0.0, cast_shadow=False,
                              position=(float(lamp[0]), float(lamp[1]), float(lamp[2])))
        cell = 10.0 ** np.floor(np.log10(max(look.size, 1e-3)) + 0.25)
        scene.add_grid("/floor", infinite_grid=True, plane="xy", cell_size=0.5 * cell, section_size=2.5 * cell,
                       cell_color=_bytes(FAINT), section_color=_bytes("#b3ab9b"), cell_thickness=0.6,
                       section_thickness=0.9, fade_distance=22 * look.size, fade_strength=1.6, shadow_opacity=0.16,
                       position=(0.0, 0.0, look.floor))
        aim = look.centre + 0.25 * look.size * right  # the panel covers the right
        camera.look_at = aim
        camera.position = aim - look.away * distance
        camera.fov = FOV

    def _node(self, k: int, batch: Batch):
        n = len(batch.links)
        shadow = sum(len(b.links) for b in self._batches) <= 100
        node = self._server.scene.add_batched_meshes_simple(
            f"/links/{k}", batch.vertices, batch.faces, batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (n, 1)),
            batched_positions=np.zeros((n, 3)), batched_colors=batch.colours, lod="off", cast_shadow=shadow,
            receive_shadow=shadow, opacity=None if batch.opacity >= 1 else batch.opacity)

        async def drag(event):
            if event.phase == "start" and event.instance_index is not None:
                self._ask("grab", event.client_id, k, int(event.instance_index), event.start_position)
            self._ask("drop" if event.phase == "end" else "drag", event.client_id, event.end_position)

        async def click(event):
            if event.instance_index is not None:
                self._ask("click", k, int(event.instance_index), event.ray_origin, event.ray_direction)

        node.on_drag("left")(drag)
        node.on_click(click)
        return node

    def _overlays(self):
        """Marks at joints and connections, arrows of forces: created empty."""
        scene, one = self._server.scene, np.zeros((1, 3))
        vertices, faces = ball()
        self._marks = scene.add_batched_meshes_simple(
            "/marks", vertices, faces, batched_wxyzs=np.array([[1.0, 0, 0, 0]]),
            batched_positions=one, batched_scales=np.ones(1), batched_colors=np.zeros((1, 3), np.uint8), lod="off",
            cast_shadow=False, receive_shadow=False, visible=False)

        async def click(event):
            if event.instance_index is not None:
                self._ask("mark", int(event.instance_index))

        self._marks.on_click(click)
        self._arrows, *self._contacts = (
            scene.add_arrows(f"/{name}", np.zeros((1, 2, 3)), _bytes(colour), visible=False,
                             shaft_radius=0.007 * self._size, head_radius=0.018 * self._size,
                             head_length=0.04 * self._size)
            for name, colour in (("forces", OTHERS[1]), ("sticks", STICKS), ("slides", SLIDES)))

    def _gizmo(self, path: str, request: str, *arguments):
        """A gizmo that sends `request` when it is moved or turned."""
        gizmo = self._server.scene.add_transform_controls(path, scale=0.35 * self._size, depth_test=False)

        async def moved(event):
            if event.client_id is not None and event.phase == "update":
                self._ask(request, *arguments, tuple(event.target.position), tuple(event.target.wxyz))

        gizmo.on_update(moved)
        return gizmo

    def show(self, wxyz: np.ndarray, positions: np.ndarray) -> None:
        """Show the poses of all links: (links, 4) and (links, 3) of float32. One message per batch."""
        queue = self._server._websock_server.queue_message
        with self._server.atomic():
            for node, batch in zip(self._nodes, self._batches, strict=True):
                queue(_messages.SceneNodeUpdateMessage(node.name, {"batched_wxyzs": wxyz[batch.links],
                                                                   "batched_positions": positions[batch.links]}))

    def colour(self, colours: Sequence[np.ndarray]) -> None:
        """Change the colours of all batches."""
        for node, given in zip(self._nodes, colours, strict=True):
            node.batched_colors = given

    def fade(self, on: bool) -> None:
        """Make links transparent."""
        for node, batch in zip(self._nodes, self._batches, strict=True):
            node.opacity = 0.35 * batch.opacity if on else None if batch.opacity >= 1 else batch.opacity

    def mark(self, positions: np.ndarray, colours: np.ndarray | None = None, radii: np.ndarray | None = None) -> None:
        """Marks at these points; colours and radii if they or their number have changed."""
        node = self._marks
        if not len(positions):
            node.visible = False
            return
        with self._server.atomic():
            if colours is not None:
                node.batched_wxyzs = np.tile((1.0, 0.0, 0.0, 0.0), (len(positions), 1))
                node.batched_colors, node.batched_scales = colours, radii
            node.batched_positions = positions
            node.visible = True

    def arrows(self, points: np.ndarray) -> None:
        """Draw arrows (n, 2, 3), start and end points; an empty array hides them."""
        _fill(self._arrows, points)

    def contacts(self, sticking: np.ndarray, sliding: np.ndarray) -> None:
        """Draw arrows of contact forces, likewise."""
        for node, points in zip(self._contacts, (sticking, sliding), strict=True):
            _fill(node, points)

    def guide(self, name: str, position, wxyz) -> None:
        """Move a gizmo to its joint."""
        self._gizmos[name].position, self._gizmos[name].wxyz = position, wxyz

    def take(self, radius: float) -> None:
        """Show a gizmo for a link of this radius: its handles must extend beyond the link, which would intercept
        the pointer."""
        self._hand.scale, self._hand.visible = max(0.35 * self._size, 1.7 * radius), True

    def hand(self, position, wxyz) -> None:
        """Move the gizmo to the target of the held link."""
        self._hand.position, self._hand.wxyz = position, wxyz

    def let_go(self) -> None:
        """Hide it."""
        if self._hand.visible:
            self._hand.visible = False

    # -- devices

    async def _from_device(self, connection) -> None:
        """Receive the devices of one page until it is closed."""
        key, known = id(connection), ""
        try:
            async for text in connection:
                try:
                    devices = device.read(text)
                except (ValueError, RecursionError):
                    break
                if device.name(devices) != known:
                    known = device.name(devices)
                    self._ask("plug", known)
                right, away, up = self._view()
                asked = device.motion(devices)
                self._ask("steer", key, *(a * right + b * away + c * up for a, b, c in (asked[:3], asked[3:])))
        finally:
            self._ask("unplug", key)

    def _view(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """To the right, away and up as seen by the camera that was moved last."""
        cameras = []
        for client in self._server.get_clients().values():
            with contextlib.suppress(AssertionError):  # it has not told where it is
                cameras.append((client.camera.update_timestamp, client.camera.look_at - client.camera.position))
        away = np.array(max(cameras, key=lambda row: row[0])[1] if cameras else self._away, float)
        away[2] = 0.0
        length = np.linalg.norm(away)
        away = away / length if length > 1e-6 else np.array([0.0, 1.0, 0.0])
        up = np.array([0.0, 0.0, 1.0])
        return np.cross(away, up), away, up

    # -- panel

    def _controls(self, texts: Texts):
        gui, ask = self._server.gui, self._ask
        self._status = gui.add_markdown("")
        with gui.add_folder("Play"):
            self._play = gui.add_button("Pause", icon=viser.Icon.PLAYER_PAUSE)
            self._button(self._play, "play")
            moves = gui.add_button_group("", ("Step", "Reset") if texts.live else ("Reset",),
                                         hint="one sixtieth of a second; back to the start")
            moves.on_click(self._asked(lambda value: ask(str(value).lower())))
            self._value(gui.add_slider("speed", 0.05, 4.0, 0.05, 1.0), "speed")
            self._time: Any = gui.add_slider("time [s]", 0.0, 1.0, 0.001, 0.0, hint="look at what is recorded")
            self._value(self._time, "scrub")
        if texts.live:
            with gui.add_folder("Hands"):
                group = gui.add_dropdown("click", tuple(texts.modes), hint="dragging a link pulls it, in every mode")
                self._value(group, "mode")
                self._value(gui.add_dropdown("joint", tuple(texts.joints), hint="connects the two links"), "joint")
                self._button(gui.add_button("Let go", hint="of the link that is held"), "release")
                self._button(gui.add_button("Undo", hint="structure and state before the last change"), "undo")
        with gui.add_folder("Show"):
            for name, on in texts.shown.items():
                box = gui.add_checkbox(name, on)
                box.on_update(self._asked(lambda value, name=name: ask("show", name, bool(value))))
        self._plots: dict[str, Any] = {}
        with gui.add_folder("Plots", expand_by_default=False):
            self._plot(ENERGY, ("kinetic", "potential", "total"), (KINETIC, POTENTIAL, INK))
            if texts.live:
                self._plot(LOOP_ERROR, ("loop error",), (OTHERS[0],))
                self._plot(STEP, ("step",), (OTHERS[1],))
                self._plot(ORDER, ("order",), (OTHERS[2],))

    def _asked(self, do):
        async def changed(event):
            if event.client_id is not None:  # not by ourselves
                do(event.target.value)

        return changed

    def _value(self, handle, name: str):
        handle.on_update(self._asked(lambda value: self._ask(name, value)))

    def _button(self, handle, name: str):
        async def clicked(_):
            self._ask(name)

        handle.on_click(clicked)

    def _plot(self, name: str, curves, colours):
        series: tuple = ({"label": "t"}, *({"label": curve, "stroke": colour, "width": 1.5, "points": {"show": False}}
                                           for curve, colour in zip(curves, colours, strict=True)))
        self._plots[name] = self._server.gui.add_uplot(
            tuple(np.zeros(2) for _ in series), series, title=name, height=130, scales={"x": {"time": False}},
            legend={"show": len(curves) > 1}, padding=(4, 12, 0, 0))

    def tell(self, text: str, playing: bool, t: float, span: tuple[float, float], scrubbing: bool) -> None:
        """The status line and the state of the controls."""
        if self._status.content != text:
            self._status.content = text
        label = "Pause" if playing else "Play"
        if self._play.label != label:
            self._play.label, self._play.icon = label, getattr(viser.Icon, f"PLAYER_{label.upper()}")
        first, last = (round(end, 3) for end in span)
        if last > first:
            if self._time.min != first:
                self._time.min = first
            if self._time.max != last:
                self._time.max = last
            if not scrubbing and abs(self._time.value - t) > 5e-4:
                self._time.value = t

    def plot(self, name: str, *columns: np.ndarray) -> None:
        """Curves over the first column."""
        if name in self._plots and len(columns[0]) > 1:
            self._plots[name].data = tuple(columns)


def _fill(node, points: np.ndarray) -> None:
    """Arrows of a node."""
    node.visible = bool(len(points))
    if len(points):
        node.points = points


def _bytes(colour: str) -> tuple[int, int, int]:
    red, green, blue, _ = rgba(colour)
    return round(255 * red), round(255 * green), round(255 * blue)
