"""The stage: a simulation or a recording in a browser, to watch, stop, pull, connect and cut.

One thread owns the simulation: it handles requests, simulates a slice of 1/60 s and shows the poses of the links, in
turn. The page (`viser_adapter`) only queues requests. The stage plays; the scene is `drawing.py`, texts and plots are
`panel.py`, gestures are `gestures.py`.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
import webbrowser
from queue import Empty, SimpleQueue

from bunraku.errors import BunrakuError, ShapeError, ViewerError
from bunraku.mechanism import Mechanism
from bunraku.simulation import Simulation, Trajectory, watching
from bunraku.terminal import terminable
from bunraku.view.drawing import Drawing, Shapes, first_look, shown_at_first
from bunraku.view.figure import Figure
from bunraku.view.gestures import HINTS, JOINTS, Hands
from bunraku.view.panel import Panel
from bunraku.view.source import Live, Playback

FRAME = 1.0 / 60.0     # [s]
PATIENCE = 0.3         # [s] for a slice: a simulation that crawls must let requests in
WAITING = 1000         # requests: a client that sends more is not heard
PORT = 8080
CONTINUOUS = ("drag", "target", "guide", "steer")  # requests by the dozen: texts need not follow at once


class Stage:
    """An open viewer: `url` is its address, `close()` ends it; in a notebook it displays itself."""

    def __init__(self, what: Simulation | Trajectory | Mechanism, *, host: str = "127.0.0.1", port: int | None = None,
                 title: str | None = None, playing: bool = True):
        if isinstance(what, Mechanism):
            what = Simulation(what)
        if not isinstance(what, (Simulation, Trajectory)):
            raise ShapeError(f"view shows a Simulation, a Trajectory or a Mechanism, not {type(what).__name__}")
        self.source: Live | Playback = Live(what) if isinstance(what, Simulation) else Playback(what)
        self.title = title or self.source.mechanism.name
        self.playing, self.speed = playing, 1.0
        self._requests: SimpleQueue = SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self.clock = time.perf_counter                 # of the time budget of a slice [s]
        self._share = 1.0                              # of a slice, if the simulation is slower than its clock
        self._pace = 0.0                               # simulated seconds per second
        self._began = 0.0                              # when the present slice did [s]
        self._dirty = True                             # whether something has changed since the last frame
        self.screen, self.drawing, self.panel = self._open(host, port)
        self.url = self.screen.url
        self.hands = (Hands(self.source, self.drawing, self.panel, lambda: self.playing)
                      if isinstance(self.source, Live) else None)
        self._answers = {"play": self._on_play, "step": self._on_step, "reset": self._on_reset,
                         "speed": self._on_speed, "scrub": self._on_scrub, "show": self.drawing.show,
                         **(self.hands.answers if self.hands else {})}
        self.draw()

    def _open(self, host: str, port: int | None):
        """The page and its parts."""
        from bunraku.view import viser_adapter as adapter

        source, mechanism = self.source, self.source.mechanism
        shapes, figure = Shapes(mechanism), Figure(mechanism)
        look = adapter.Look(*first_look(figure, shapes, source.state[0]))
        texts = adapter.Texts(self.title, tuple(HINTS), tuple(JOINTS), shown_at_first(source), source.live)
        guides = tuple(watching.guides(source.simulation)) if isinstance(source, Live) else ()
        batches = [adapter.Batch(*batch) for batch in shapes.batches()]
        open_ = lambda at: adapter.Screen(batches, look, texts, self.ask, host, at, guides)  # noqa: E731
        try:
            screen = open_(PORT if port is None else port)
        except ViewerError:
            if port is not None:
                raise
            screen = open_(0)  # no port was asked for: any will do
        panel = Panel(screen, source)
        return screen, Drawing(screen, source, shapes, figure, look.size, panel.say), panel

    # -- ask, from any thread ----------------------------------------------------------------------------------------

    def ask(self, name: str, *arguments) -> None:
        """Queue a request; the thread that owns the simulation answers it before its next slice."""
        if self._requests.qsize() < WAITING:
            self._requests.put((name, arguments))

    @property
    def waiting(self) -> int:
        """Requests that are not answered yet."""
        return self._requests.qsize()

    def start(self) -> Stage:
        """Run in a separate thread, which owns the simulation until `close`."""
        self._thread = threading.Thread(target=self._quietly, name="bunraku view", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Close the viewer; the simulation keeps its present state."""
        self._closing.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        self.screen.close()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return (f'<iframe src="{self.url}" width="100%" height="560" style="border:none" '
                'allow="fullscreen; gamepad"></iframe>')

    def __repr__(self):
        return f"viewer of {self.title} at {self.url}"

    # -- go on ---------------------------------------------------------------------------------------------------------

    def _quietly(self):
        try:
            self.run()
        except BaseException as error:  # raised again by close(), in the caller's thread
            self._failure = error
            self.panel.say(f"stopped: {error}")
            self._tell()

    def run(self) -> None:
        """Answer, simulate and show until `close`, in the thread that calls."""
        halt = lambda: self._closing.is_set() or self.clock() - self._began > PATIENCE  # noqa: E731
        with self.source.halted_by(halt) if isinstance(self.source, Live) else contextlib.nullcontext():
            while not self._closing.is_set():
                begin = time.perf_counter()
                if self.screen.watched or self.drawing.frames > 1:
                    self.turn()
                else:  # the simulation waits until a client is connected
                    self._answer()
                self._closing.wait(max(0.0, FRAME - (time.perf_counter() - begin)))

    def turn(self) -> None:
        """Requests, a slice of the simulation, a frame."""
        begin = self.clock()
        self._answer()
        if self.playing:
            self._slice(FRAME * self.speed * self._share)
            wall = self.clock() - begin
            self._share = max(self._share / 2, 1 / 64) if wall > 2 * FRAME else min(1.25 * self._share, 1.0)
            self._pace += 0.05 * (FRAME * self.speed * self._share / max(wall, FRAME) - self._pace)
        if self._dirty and self.screen.watched:
            self.draw()
        if self.panel.due():
            self._tell()

    def draw(self) -> None:
        """A frame."""
        self.drawing.draw()
        self._dirty = False

    def _tell(self) -> None:
        self.panel.tell(self.playing, self._pace, self.hands.hint if self.hands else "")

    def _slice(self, seconds: float) -> None:
        self._began = self.clock()
        try:
            if self.hands:
                self.hands.move(seconds)
            more = self.source.advance(seconds)
        except BunrakuError as error:
            more = False
            self.panel.say(f"stopped at {self.source.t:.3f} s: {error}")
        self.playing, self._dirty = more, True

    def _answer(self) -> None:
        for _ in range(WAITING):
            try:
                name, arguments = self._requests.get_nowait()
            except Empty:
                return
            try:
                self._answers[name](*arguments)
            except BunrakuError as error:
                self.panel.say(str(error))
            except (TypeError, ValueError, LookupError, OverflowError):  # nothing that our page would send
                self.panel.say(f"ignored an invalid request: {name}")
            self._dirty = True
            if name not in CONTINUOUS:
                self.panel.hurry()

    # -- requests ------------------------------------------------------------------------------------------------------

    def _on_play(self) -> None:
        self.playing = not self.playing
        self.source.look_at(None)
        if self.playing and not self.source.live and self.source.t >= self.source.span()[1]:
            self.source.reset()
        self.panel.say("")

    def _on_step(self) -> None:
        self.source.look_at(None)
        self._slice(FRAME * self.speed)
        self.playing = False

    def _on_reset(self) -> None:
        if self.hands:
            self.hands.begin_anew()
        self.source.reset()
        self.panel.begin_anew()
        self.panel.say("")

    def _on_speed(self, value) -> None:
        if math.isfinite(value):
            self.speed = min(max(float(value), 0.0), 16.0)

    def _on_scrub(self, value) -> None:
        if math.isfinite(value):
            self.playing = False
            self.source.look_at(float(value))


# -- open --------------------------------------------------------------------------------------------------------------


def view(what: Simulation | Trajectory | Mechanism, *, host: str = "127.0.0.1", port: int | None = None,
         block: bool | None = None, browser: bool | None = None, title: str | None = None,
         playing: bool = True) -> Stage:
    """Show a simulation in a browser, to watch it, pull links, connect and cut; or play a recording.

    host      the address to listen on. Unless it is loopback, the page opens only with the token in its url
    port      8080 if it is free, else any other
    block     whether to return only on Ctrl-C or SIGTERM; None: yes, except in notebooks. While it
              is open the viewer owns the simulation; after `close()` the simulation may be used again, with its
              present time and structure
    browser   whether to open a browser; None: if there is a display, but not in notebooks
    playing   whether the simulation runs at once

    In a notebook the result, if it is the last line of a cell, is the page itself.
    """
    notebook = "ipykernel" in sys.modules
    stage = Stage(what, host=host, port=port, title=title, playing=playing)
    if browser or (browser is None and not notebook and _display()):
        webbrowser.open(stage.url)
    if block is None:
        block = not notebook
    if not block:
        return stage.start()
    try:
        with terminable() as how:
            print(f"bunraku: {stage.title} at {stage.url} ({how} ends)", file=sys.stderr, flush=True)
            stage.run()
    except KeyboardInterrupt:
        pass
    finally:
        stage.close()
    return stage


def _display() -> bool:
    """Whether there is a display for a browser."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
