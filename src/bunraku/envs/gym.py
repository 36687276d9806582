"""Environments of Gymnasium on `Worlds`: `VectorEnv` steps all copies in compiled code, `Env` is one of them.

    gymnasium.make_vec("bunraku/Hopper-v0", num_envs=64)      or  VectorEnv("hopper", 64)
    gymnasium.make("bunraku/Hopper-v0")                       or  Env("hopper")

Copies begin anew as Gymnasium's modes of autoreset say: in the step after the last one of an episode (NEXT_STEP), in
the same step, with the last observation in info["final_obs"] (SAME_STEP), or by `reset` with a mask (DISABLED).
A copy that diverges has terminated; info["diverged"] marks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bunraku.envs.tasks import TASKS, Moved, Task, task
from bunraku.errors import MissingExtra, ShapeError

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise MissingExtra('environments of Gymnasium need it: pip install "bunraku[gym]"') from error

if TYPE_CHECKING:
    from bunraku.view.picture import Picture

PIXELS = 480  # width of a picture


class VectorEnv(gymnasium.vector.VectorEnv):
    """Copies of a task that step together; `worlds` are the `bk.Worlds` behind it.

    Actions beyond their range are clipped. Observations are float64, and new arrays in every step.
    """

    def __init__(self, name: str | Task, num_envs: int = 1, *, render_mode: str | None = None,
                 autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP, workers: int | None = None):
        self.task = own = name if isinstance(name, Task) else task(name)
        _check_render_mode(render_mode)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.worlds = own.worlds(num_envs, workers=workers)
        size = own.seen(self.worlds).shape[1]
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float64)
        self.single_action_space = spaces.Box(own.low.astype(np.float32), own.high.astype(np.float32))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.seconds = own.step * own.substeps
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": max(1, round(1.0 / self.seconds)),
                         "autoreset_mode": self.autoreset_mode}
        self._done, self._steps = np.zeros(num_envs, bool), np.zeros(num_envs, np.int64)
        self._pictures: list[Picture] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin an episode in every copy, or in those of options["reset_mask"]."""
        if seed is not None or self._np_random is None:  # without a seed, a new one
            super().reset(seed=seed)
            self.worlds.reseed(int(self.np_random.integers(1 << 62)) if seed is None else seed)
        mask = (options or {}).get("reset_mask")
        if mask is not None and (np.shape(mask) != (self.num_envs,) or np.asarray(mask).dtype != bool):
            raise ShapeError(f"reset_mask must be an array of {self.num_envs} bools")
        self._begin(np.ones(self.num_envs, bool) if mask is None else np.asarray(mask))
        return self._observation(), {}

    def step(self, actions):
        """(observations, rewards, terminations, truncations, infos)"""
        own, w = self.task, self.worlds
        action = np.asarray(actions, float)
        if action.shape != (self.num_envs, len(own.low)):
            raise ShapeError(f"actions have shape {action.shape}; they must be ({self.num_envs}, {len(own.low)})")
        action = np.clip(action, own.low, own.high)
        begin = self._done.copy()
        if begin.any():
            if self.autoreset_mode == AutoresetMode.DISABLED:
                raise ShapeError(f"episodes of copies {np.flatnonzero(begin)[:5].tolist()} are over: reset them, with "
                                 "options={'reset_mask': mask}")
            w.stop(begin)
        before = w.q.copy()
        own.move(w, action)
        if begin.any():
            self._begin(begin)
        diverged = ~w.running | ~(np.isfinite(w.q).all(axis=1) & np.isfinite(w.v).all(axis=1))
        q, v = w.q, w.v
        if diverged.any():
            q, v = (np.where(diverged[:, None], 0.0, x) for x in (q, v))
            before = np.where(diverged[:, None], 0.0, before)
        reward = np.where(begin | diverged, 0.0, own.reward(Moved(q, v, before, action, self.seconds)))
        self._steps[~begin] += 1
        terminated = (own.ends(q, v) | diverged) & ~begin
        truncated = (self._steps >= own.limit) & ~terminated & ~begin
        self._done = terminated | truncated
        info: dict[str, Any] = {"diverged": diverged, "_diverged": diverged} if diverged.any() else {}
        seen = np.where(diverged[:, None], 0.0, own.seen(w))
        if self._done.any() and self.autoreset_mode == AutoresetMode.SAME_STEP:
            last = np.full(self.num_envs, None, dtype=object)
            for k in np.flatnonzero(self._done):
                last[k] = seen[k].copy()
            info |= {"final_obs": last, "_final_obs": self._done.copy(), "final_info": {}, "_final_info":
                     self._done.copy()}
            self._begin(self._done.copy())
            seen = self._observation()
        return seen, reward, terminated, truncated, info

    def _begin(self, which) -> None:
        """New episodes."""
        copies = np.flatnonzero(which)
        self.task.begin(self.worlds, copies)
        self._done[copies], self._steps[copies] = False, 0

    def _observation(self) -> np.ndarray:
        return self.task.seen(self.worlds)

    def render(self):
        """A tuple of pictures (height, width, 3), one of each copy; None without render_mode="rgb_array"."""
        return tuple(self.picture(k) for k in range(self.num_envs)) if self.render_mode == "rgb_array" else None

    def picture(self, k: int) -> np.ndarray:
        """A picture of copy k."""
        from bunraku.view.picture import Picture

        if not self._pictures:
            self._pictures = [Picture(self.task.mechanism, self.worlds.q[0], PIXELS)]
        return self._pictures[0].draw(self.worlds.q[k])

    def close_extras(self, **kwargs) -> None:
        self._pictures.clear()


class Env(gymnasium.Env):
    """One copy of a task."""

    def __init__(self, name: str | Task, render_mode: str | None = None):
        self.vector = VectorEnv(name, 1, render_mode=render_mode, autoreset_mode=AutoresetMode.DISABLED, workers=1)
        self.render_mode = render_mode
        self.metadata = {name: self.vector.metadata[name] for name in ("render_modes", "render_fps")}
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        seen, info = self.vector.reset(seed=seed)
        return seen[0], info

    def step(self, action):
        seen, reward, terminated, truncated, info = self.vector.step(np.asarray(action, float)[None])
        return seen[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), {k: x[0] for k, x in info.items()}

    def render(self):
        return self.vector.picture(0) if self.render_mode == "rgb_array" else None


def _check_render_mode(mode: str | None) -> None:
    if mode not in (None, "rgb_array"):
        raise ShapeError(f"render_mode must be 'rgb_array' or None, not {mode!r}; bk.view shows a simulation live")


def identifier(name: str) -> str:
    """Name of a task among those of Gymnasium: "half-cheetah" is "bunraku/HalfCheetah-v0"."""
    return f"bunraku/{''.join(part.capitalize() for part in name.split('-'))}-v0"


def register() -> None:
    """Make the tasks known to `gymnasium.make` and `make_vec`; an installed bunraku does so by itself."""
    for name in TASKS:
        if identifier(name) not in gymnasium.registry:
            gymnasium.register(identifier(name), "bunraku.envs.gym:Env", kwargs={"name": name},
                               vector_entry_point="bunraku.envs.gym:VectorEnv", disable_env_checker=True)


register()
