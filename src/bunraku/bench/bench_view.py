"""Benchmark of the viewer: cost of a frame, in Python and in the browser, and slow-down of a watched simulation.

    Python per frame     poses of all links and what is sent: processor time of the thread that shows; beside it that of
                         the whole process, in which viser's thread writes to one client
    browser script       JavaScript per drawn frame in Chromium: processor time of the page's thread, and wall time, in
                         which software GL and others wait for the same cores. Left out where Chromium or Playwright is
                         missing
    simulation           the human figure of 48 degrees of freedom as fast as it goes, with 60 frames a second to one
                         client and without, in turn; wall time
    slice                1/60 s of simulated time after a second and after an hour: medians of many
    connect, cut         from the request to the frame that shows it
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.report import painter, target_lines
from bunraku.bench.timing import Progress
from bunraku.errors import ViewerError
from bunraku.view.drawing import quaternions
from bunraku.view.gestures import CUT
from bunraku.view.stage import FRAME, Stage

LIMITS = {"chain of 50": (0.5, 5.0), "chain of 500": (1.0, 12.0)}  # most milliseconds in Python, and of script
SLOWER, SLICE, CLICK = 1.10, 1.10, 50.0      # most: times without viewer; times after a second; milliseconds
SOFTWARE_GL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox")
CLIENT = """
import sys, msgspec, viser
from viser import _messages
from websockets.sync.client import connect
with connect(sys.argv[1], subprotocols=["viser-v" + viser.__version__], max_size=None, proxy=None) as page:
    page.send(msgspec.msgpack.encode(_messages.ViewerCameraMessage(
        wxyz=(1.0, 0, 0, 0), position=(0.0, 0, 5), fov=1.0, near=0.1, far=10.0, image_height=100, image_width=100,
        look_at=(0.0, 0, 0), up_direction=(0.0, 0, 1)).as_serializable_dict()))
    try:
        while True:
            page.recv()
    except Exception:
        pass
"""


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    frames: int = 300         # of each mechanism
    seconds: float = 6.0      # of the browser
    rounds: int = 12          # of the simulation with and without viewer
    simulated: float = 2.0    # [s] of each round
    hour: float = 3600.0      # [s] simulated
    changes: int = 20         # of structure

    @classmethod
    def quick(cls):
        return cls(frames=120, seconds=3.0, rounds=6, simulated=1.0, hour=360.0, changes=8)


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """Everything, as plain numbers."""
    options = options or Options()
    progress = Progress(2 * len(MECHANISMS) + 3, quiet)
    result: dict = {"bunraku": bk.__version__, "machine": machine.describe(), "frames": []}

    def measured(what, function, *args):
        progress(what)
        found = function(*args)
        progress.done()
        return found

    try:
        for name, build in MECHANISMS.items():
            row = {"name": name, **measured(f"{name} in Python", in_python, build(), options)}
            row |= measured(f"{name} in the browser", in_browser, build(), options)
            result["frames"].append(row)
        result["simulation"] = measured("simulation", watched, options)
        result["slice"] = measured("an hour", long, options)
        result["changes"] = measured("connect and cut", changes, options)
    finally:
        progress.close()
    return {**result, "targets": _verdicts(result)}


# -- frames ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def client(stage: Stage):
    """A viewer client in its own process."""
    process = subprocess.Popen([sys.executable, "-c", CLIENT, stage.url.replace("http", "ws")],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30.0
        while not stage.screen.watched:
            if time.monotonic() > end or process.poll() is not None:
                raise ViewerError("the client of the benchmark cannot connect to the viewer")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def unlike(n: int) -> bk.Mechanism:
    """A chain of links with different shapes: a node for each, the worst case for the viewer."""
    m = bk.Mechanism(name=f"{n} shapes")
    for i in range(n):
        length = 0.2 + 0.1 * i / n
        m.add_link(f"link{i}", f"link{i - 1}" if i else "ground", bk.Revolute((0, 1, 0)),
                   position=(0, 0, -(0.2 + 0.1 * (i - 1) / n) if i else 0.0), mass=1.0, com=(0, 0, -0.5 * length),
                   inertia=(0.02, 0.02, 0.01))
    return m


MECHANISMS = {"chain of 50": lambda: bk.models.chain(50), "chain of 500": lambda: bk.models.chain(500),
              "human figure": lambda: bk.models.human(dof=48), "50 shapes": lambda: unlike(50),
              "500 shapes": lambda: unlike(500)}


class Wave:
    """Poses of a waving mechanism, without a simulation."""

    def __init__(self, mechanism: bk.Mechanism):
        self.mechanism = mechanism
        self.stage = Stage(self.mechanism, port=0, playing=False)
        direction = np.random.default_rng(0).normal(size=mechanism.nv) * 2.0 / np.sqrt(mechanism.nv)
        self.states = [mechanism.integrate(mechanism.neutral(), direction * np.sin(0.05 * k)) for k in range(126)]
        self.k = 0

    def frame(self) -> None:
        """As the stage does it."""
        self.k += 1
        rotations, positions = self.stage.drawing.shapes.poses(self.mechanism, self.states[self.k % len(self.states)])
        self.stage.screen.show(quaternions(rotations), positions.astype(np.float32))


def in_python(mechanism: bk.Mechanism, options: Options) -> dict:
    """Milliseconds of the processor per frame at 60 frames a second: of the thread that shows, and of the process."""
    wave = Wave(mechanism)
    own, whole = [], []
    with wave.stage, client(wave.stage):
        time.sleep(0.5)
        begin = time.perf_counter()
        for k in range(options.frames):
            start, all_ = time.thread_time(), time.process_time()
            wave.frame()
            own.append(time.thread_time() - start)
            time.sleep(max(0.0, begin + (k + 1) * FRAME - time.perf_counter()))
            whole.append(time.process_time() - all_)
    return {"links": len(mechanism.links), "nodes": len(wave.stage.drawing.shapes.groups),
            "python_ms": 1e3 * float(np.median(own)), "process_ms": 1e3 * float(np.median(whole))}


def in_browser(mechanism: bk.Mechanism, options: Options) -> dict:
    """Milliseconds of script per drawn frame, and frames drawn per second; None where there is no browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {"script_ms": None, "script_wall_ms": None, "drawn": None}
    if chromium is None:
        return {"script_ms": None, "script_wall_ms": None, "drawn": None}
    wave = Wave(mechanism)
    with wave.stage, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(SOFTWARE_GL))
        page = browser.new_page(viewport={"width": 800, "height": 600})
        page.goto(wave.stage.url)
        while not wave.stage.screen.watched:
            page.wait_for_timeout(50)
        page.wait_for_timeout(2000)
        session = page.context.new_cdp_session(page)
        page.evaluate("() => { window.drawn = 0; const f = () => { window.drawn++; requestAnimationFrame(f) };"
                      " requestAnimationFrame(f) }")

        def script(domain: str) -> tuple[float, float]:
            """Milliseconds of script per drawn frame by a clock of the browser, and frames drawn per second."""
            session.send("Performance.enable", {"timeDomain": domain})
            before, begin = _script(session), time.perf_counter()
            drawn = page.evaluate("window.drawn")
            while time.perf_counter() - begin < options.seconds:
                wave.frame()
                page.wait_for_timeout(1e3 * FRAME)
            drawn = max(page.evaluate("window.drawn") - drawn, 1)
            spent, lasted = _script(session) - before, time.perf_counter() - begin
            session.send("Performance.disable")
            return 1e3 * spent / drawn, drawn / lasted

        wall, _ = script("timeTicks")
        processor, drawn = script("threadTicks")
        browser.close()
    return {"script_ms": processor, "script_wall_ms": wall, "drawn": drawn}


def _script(session) -> float:
    """Seconds of script so far."""
    return next(row["value"] for row in session.send("Performance.getMetrics")["metrics"]
                if row["name"] == "ScriptDuration")


# -- simulation --------------------------------------------------------------------------------------------------------


def figure() -> bk.Simulation:
    """The human figure that tumbles freely."""
    m = bk.models.human(dof=48)
    m.gravity = (0.0, 0.0, 0.0)
    return bk.Simulation(m, v=np.random.default_rng(1).normal(size=m.nv), record=None, progress=False)


def watched(options: Options) -> dict:
    """Slow-down of a simulation while a client is connected, at 60 frames per second."""
    sim = figure()
    start = sim.q.copy(), sim.v.copy()
    times: dict[bool, list[float]] = {False: [], True: []}
    with Stage(sim, port=0, playing=False) as stage, client(stage):
        for k in range(2 * options.rounds + 2):
            look = bool(k % 2)
            sim.set_state(*start, t=0.0)
            begin = shown = time.perf_counter()
            while sim.t < options.simulated:
                sim.advance(sim.t + FRAME)
                now = time.perf_counter()
                if look and now - shown >= FRAME:
                    stage.draw()
                    shown = now
            times[look].append(time.perf_counter() - begin)
    without, with_ = (np.array(times[look][1:]) for look in (False, True))
    return {"slower": float(np.median(with_ / without)), "real_time": options.simulated / float(np.median(without))}


def long(options: Options) -> dict:
    """Slices after a second and after an hour of a motion that repeats itself."""
    sim = bk.Simulation(bk.models.chain(3), q=[0.3, 0.0, 0.0], record=10.0, progress=False)
    sim.advance(1.0)
    early = _slices(sim)
    while sim.t < options.hour:
        sim.advance(sim.t + FRAME)
    late = _slices(sim)
    return {"after_a_second_us": 1e6 * early, "after_us": 1e6 * late, "ratio": late / early, "simulated": options.hour}


def _slices(sim: bk.Simulation, n: int = 1200) -> float:
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        sim.advance(sim.t + FRAME)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def changes(options: Options) -> dict:
    """Milliseconds from a click to the frame that shows its effect."""
    stage = Stage(figure(), port=0).start()
    worst: dict[str, list[float]] = {"cut": [], "undo": [], "connect": []}
    with stage, client(stage):
        stage.ask("mode", CUT)
        time.sleep(0.3)

        def until_shown(*request) -> float:
            before, begin = stage.source.mechanism, time.perf_counter()
            stage.ask(*request)
            while stage.drawing.drawn is before or stage.drawing.drawn is None:
                time.sleep(2e-4)
                if time.perf_counter() - begin > 10.0:
                    raise ViewerError(f"{request[0]}: not shown within 10 s ({stage.panel.message})")
            return 1e3 * (time.perf_counter() - begin)

        wrist = stage.source.mechanism.link("left_hand").joint_name
        for _ in range(options.changes):
            worst["cut"].append(until_shown("mark", stage.drawing.marks.index(wrist)))
            worst["undo"].append(until_shown("undo"))
        stage.ask("mode", "connect two links")
        groups = stage.drawing.shapes.groups
        hands = [next((b, i) for b, group in enumerate(groups) for i, s in enumerate(group) if s.link == name)
                 for name in ("left_hand", "right_hand")]
        for _ in range(options.changes):
            stage.ask("click", *hands[0], (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
            worst["connect"].append(until_shown("click", *hands[1], (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)))
            worst["undo"].append(until_shown("undo"))
    return {name: {"median_ms": float(np.median(times)), "worst_ms": max(times)} for name, times in worst.items()}


# -- words -------------------------------------------------------------------------------------------------------------


def _verdicts(result) -> list[dict]:
    found = []

    def judge(what, measured, target, unit):
        found.append({"what": what, "measured": measured, "target": target, "unit": unit, "met": measured <= target})

    for row in result["frames"]:
        if row["name"] in LIMITS:
            python, script = LIMITS[row["name"]]
            judge(f"Python per frame, {row['name']}", row["python_ms"], python, "ms")
            if row["script_ms"] is not None:
                judge(f"script per drawn frame, {row['name']}", row["script_ms"], script, "ms")
    judge("simulation with a viewer", result["simulation"]["slower"], SLOWER, "of without")
    judge(f"slice after {result['slice']['simulated'] / 3600:g} h", result["slice"]["ratio"], SLICE, "of early")
    for name in ("connect", "cut"):
        judge(f"{name}: click to frame", result["changes"][name]["median_ms"], CLICK, "ms")
    return found


HEADER = (f"  {'':<14}{'links':>6}{'nodes':>7}{'showing ms':>12}{'process ms':>12}{'script ms':>11}{'wall ms':>9}"
          f"{'drawn/s':>9}")


def text(result: dict, colour: bool = False) -> str:
    """Frames, simulation, changes; then the targets."""
    paint = painter(colour)
    on, sim, cut = result["machine"], result["simulation"], result["changes"]
    lines = [paint("1", f"bunraku {result['bunraku']}: the viewer"),
             machine.line(on), "",
             paint("1", "frames") + "  60 a second, to one client; a node per shape; Chromium with software GL", "",
             paint("4", HEADER)]
    for row in result["frames"]:
        script = f"{'-':>11}{'-':>9}{'-':>9}"
        if row["script_ms"] is not None:
            script = f"{row['script_ms']:>11.1f}{row['script_wall_ms']:>9.1f}{row['drawn']:>9.0f}"
        lines.append(f"  {row['name']:<14}{row['links']:>6}{row['nodes']:>7}{row['python_ms']:>12.2f}"
                     f"{row['process_ms']:>12.2f}{script}")
    if any(row["script_ms"] is None for row in result["frames"]):
        lines.append("  script not measured: needs Chromium (apt-get install chromium) and pip install playwright")
    lines += ["", paint("1", "simulation") + f"  human figure, 48 degrees of freedom: {sim['real_time']:.0f} times "
              f"real time alone, {100 * (sim['slower'] - 1):+.1f} % of time with a viewer", "",
              paint("1", "changes") + "  click to frame, ms, median and worst: " + "; ".join(
                  f"{name} {row['median_ms']:.0f}, {row['worst_ms']:.0f}" for name, row in cut.items()),
              "", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)
