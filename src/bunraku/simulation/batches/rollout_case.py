"""Rollouts as the function of an ensemble: cases of one mechanism are simulated together, in lanes where possible."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from bunraku.checks import as_array, as_finite, hint
from bunraku.errors import ModelError, NamingError, ShapeError, SimulationError, StateError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.describe import describe, rebuild
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.simulation.batches.rollout import Rollout, rollout
from bunraku.simulation.closing import neutral_start

KEYS = ("q", "v", "params", "mechanism")
OF_EACH = ("q", "v", "reached", "steps", "rejected", "evaluations", "loop_error", "loop_drift")  # fields of a Rollout
FIRST = 64        # cases of the first batches: whole lanes


class RolloutCase:
    """A function for `bk.ensemble`: simulates a case, a dict with any of q, v and params, and returns its `Rollout`.

    mechanism   of all cases; or a dict of mechanisms by name, of which a case names one: {"mechanism": "tall", ...}
    settings    those of `bk.rollout`, the same for all cases: until or times, solver, step, rtol, atol, actuation, ...

    Cases of one mechanism are simulated many at a time: with "rk4" and "symplectic_euler" in SIMD lanes. The result of
    a case does not depend on those beside it. An actuation must be at the top level of a module if other processes are
    to find it.
    """

    def __init__(self, mechanism: Mechanism | Mapping[str, Mechanism], **settings):
        named = mechanism if isinstance(mechanism, Mapping) else {"": mechanism}
        self.mechanisms = {name: as_mechanism(m) for name, m in named.items()}
        if not self.mechanisms:
            raise ModelError("RolloutCase: no mechanism is given")
        wrong = [name for name in ("q", "v", "params", "workers", "progress") if name in settings]
        if wrong:
            raise ModelError(f"RolloutCase: {wrong[0]} is not a setting: "
                             + ("cases have it" if wrong[0] in KEYS else "bk.ensemble decides that"))
        self._settings = settings
        self.__name__ = f"rollout of {', '.join(m.name for m in self.mechanisms.values())}"

    @functools.cached_property
    def data(self) -> bytes:
        """Plain data for other processes and for comparison with files; functions by name."""
        settings: dict[str, Any] = {}
        for name, value in self._settings.items():
            if name == "solver" and not isinstance(value, str):
                raise ModelError("RolloutCase: a solver of one's own cannot be sent to other processes; name one, or "
                                 "use executor=concurrent.futures.ThreadPoolExecutor() without a file")
            if callable(value):
                settings[name] = {"function": _place(value)}
            else:
                settings[name] = value.tolist() if isinstance(value, np.ndarray) else value
        return json.dumps([{name: describe(m) for name, m in self.mechanisms.items()}, settings],
                          default=_plain).encode()

    def __reduce__(self):
        return _revived, (self.data,)

    # -- cases ---------------------------------------------------------------------------------------------------------

    def group(self, case) -> tuple:
        """Key of a case; cases with the same key are simulated together."""
        if not isinstance(case, Mapping) or not set(case) <= set(KEYS):
            what = next((f"has {key!r}{hint(key, KEYS)}" for key in case if key not in KEYS),
                        "") if isinstance(case, Mapping) else f"is {case!r:.80}"
            raise ShapeError(f"a case of a rollout is a dict with any of q, v, params and mechanism; this one {what}")
        name = case.get("mechanism", "")
        if name not in self.mechanisms:
            raise NamingError(f"there is no mechanism {name!r}{hint(name, list(self.mechanisms))}" if name else
                              "the case does not name its mechanism: " + ", ".join(map(repr, self.mechanisms)))
        return name, np.size(case["params"]) if "params" in case else None

    def __call__(self, case) -> Rollout:
        (answer,) = self.batch([case])
        if isinstance(answer, Exception):
            raise answer
        return replace(answer, mechanism=self.mechanisms[cast(str, answer.mechanism)].copy().locked())

    def batch(self, cases) -> list[Rollout | Exception]:
        """A rollout or an error for each case; rollouts hold the name of the mechanism instead of the mechanism."""
        answers: list[Rollout | Exception] = [SimulationError("not computed")] * len(cases)
        groups: dict[tuple, list[int]] = {}
        for k, case in enumerate(cases):
            try:
                key = self.group(case)
                self._state(self.mechanisms[key[0]], case)
                groups.setdefault(key, []).append(k)
            except (ModelError, ShapeError) as error:
                answers[k] = error
        for (name, _), members in groups.items():
            for k, answer in zip(members, self._together(name, [cases[k] for k in members]), strict=True):
                answers[k] = answer
        return answers

    def _state(self, m: Mechanism, case) -> tuple[np.ndarray, ...]:
        q = as_array("q", case["q"] if "q" in case else neutral_start(m))
        v = as_array("v", case.get("v", np.zeros(m.nv)))
        params = as_finite("params", case.get("params", ()), infinite=True)
        for what, array, size in (("q", q, m.nq), ("v", v, m.nv), ("params", params, params.size)):
            if array.shape != (size,):
                raise ShapeError(f"{what} of a case has shape {array.shape}; it must be ({size},)")
        return q, v, params

    def _together(self, name: str, cases) -> list[Rollout | Exception]:
        m = self.mechanisms[name]
        states = [self._state(m, case) for case in cases]
        if len(states) == 1:
            states *= 2  # a single state would not be in lanes, and round differently
        q, v, params = (np.array(x) for x in zip(*states, strict=True))
        given: dict = {"params": params} if "params" in cases[0] else {}
        reasons: dict[int, Exception] = {}
        try:
            whole = rollout(m, q, v, workers=1, progress=False, **self._settings, **given)
        except SimulationError as error:
            if not isinstance(error.result, Rollout):
                return [error] * len(cases)
            whole = error.result
            for k in whole.failed:
                if k < len(cases):
                    reasons[k] = self._reason(m, states[k], given)
        except (ModelError, ShapeError, StateError) as error:
            return [error] * len(cases)
        return [reasons.get(k) or _one(whole, k, name) for k in range(len(cases))]

    def _reason(self, m, state, given) -> Exception:
        """Error text of one case, from the error of a batch."""
        q, v, params = state
        try:
            rollout(m, q, v, workers=1, progress=False, **self._settings, **({"params": params} if given else {}))
        except SimulationError as error:
            return error
        return SimulationError("the run stopped in lanes only")


def _one(whole: Rollout, k: int, name: str) -> Rollout:
    """One state of a batch, with its mechanism by name: small enough to be sent."""
    each: dict[str, Any] = {part: getattr(whole, part)[k].copy() for part in OF_EACH}
    return Rollout(mechanism=cast(Mechanism, name), t=whole.t, failed=(), workers=whole.workers,
                   wall_time=whole.wall_time / len(whole.q), **each)


def _plain(value):
    return value.item() if isinstance(value, np.generic) else list(value)


def _place(function) -> list[str]:
    """Module and name by which another process finds a function."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module is None or name is None or "<" in name or _found(module, name) is not function:
        raise ModelError(f"RolloutCase: other processes cannot find the actuation {name or function!r}: define it at "
                         "the top level of a module")
    return [module, name]


def _found(module: str, name: str):
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@functools.lru_cache(maxsize=8)
def _revived(data: bytes) -> RolloutCase:
    """Reconstruct in another process; cached, so that it is built once."""
    mechanisms, settings = json.loads(data)
    for name, value in settings.items():
        if isinstance(value, dict):
            module, function = value["function"]
            __import__(module)
            settings[name] = _found(module, function)
    made = {name: rebuild(m) for name, m in mechanisms.items()}
    return RolloutCase(made.get("", made), **settings)
