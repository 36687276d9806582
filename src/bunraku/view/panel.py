"""The panel of the viewer: the status text, and plots of energy, loop error, step and order."""

from __future__ import annotations

import math
import re
import time
from collections import deque

import numpy as np

from bunraku.evaluate import constraints
from bunraku.simulation import Simulation, watching
from bunraku.view.source import Live, Playback

ENERGY, LOOP_ERROR, STEP, ORDER = "energy [J]", "log10 of loop error [m, rad]", "step [ms]", "order"
TELL = 0.25            # [s] between two updates of texts and plots
KEPT = 400             # points of a plot


class Panel:
    """Texts and plots beside the scene."""

    def __init__(self, screen, source: Live | Playback):
        self.screen, self.source = screen, source
        self.message = ""                        # takes the place of the hint
        self._told = -math.inf                   # when texts were last updated [s]
        self._curves: deque = deque(maxlen=KEPT)
        self._steps = (source.t, 0)              # time and steps at the last point of the plots
        if isinstance(source, Playback):
            self._plot_recording(source)

    def say(self, text: str) -> None:
        """A message, shown at once."""
        self.message = text
        self.hurry()

    def hurry(self) -> None:
        """Update texts in this turn."""
        self._told = -math.inf

    def due(self) -> bool:
        """Whether it is time to `tell`."""
        return time.perf_counter() - self._told > TELL

    def begin_anew(self) -> None:
        """The source was reset."""
        self._steps = (self.source.t, self._steps[1])

    def tell(self, playing: bool, pace: float, hint: str) -> None:
        """Update texts, controls and plots. pace: simulated seconds per second."""
        self._told = time.perf_counter()
        looked_at = self.source.looked_at
        t = self.source.t if looked_at is None else looked_at
        state = f"{pace:.2f} of real time" if playing else "paused" if looked_at is None else "recorded"
        self.screen.tell(f"**t = {t:.3f} s** · {state}\n\n{_plain(self.message or hint)}", playing, t,
                         self.source.span(), looked_at is not None)
        if isinstance(self.source, Live) and playing:
            self._plot(self.source.simulation)

    def _plot(self, sim: Simulation) -> None:
        kinetic, potential = sim.mechanism.energy(sim.q, sim.v)
        gap = np.abs(constraints(sim.mechanism, sim.q).gap).max(initial=0.0)
        before, steps = self._steps
        step = 1e3 * (sim.t - before) / max(sim.stats.steps - steps, 1)
        self._steps = (sim.t, sim.stats.steps)
        if self._curves and sim.t < self._curves[-1][0]:
            self._curves.clear()
        self._curves.append((sim.t, kinetic, potential, kinetic + potential, gap, step, float(watching.order(sim))))
        t, kinetic, potential, total, gap, step, order = np.array(self._curves).T
        self.screen.plot(ENERGY, t, kinetic, potential, total)
        self.screen.plot(LOOP_ERROR, t, np.log10(np.maximum(gap, 1e-18)))
        self.screen.plot(STEP, t, step)
        self.screen.plot(ORDER, t, order)

    def _plot_recording(self, source: Playback) -> None:
        t, kinetic, potential = source.trajectory.energy()
        some = np.unique(np.linspace(0, len(t) - 1, KEPT).astype(int))
        self.screen.plot(ENERGY, t[some], kinetic[some], potential[some], (kinetic + potential)[some])


def _plain(text: str) -> str:
    """Text escaped for Markdown: names come from files."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(text.split()))
