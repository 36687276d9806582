"""Tasks by name: a mechanism, where it starts, what is observed, what is rewarded, and when an episode ends.

Those here follow Gymnasium's environments of the same name: classic control (Pendulum-v1, CartPole-v1 with a continuous
force, Acrobot-v1 with a continuous torque) and MuJoCo (version 5); `legged_tasks.py` has others. Functions take all
copies at once, as arrays with a leading axis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bunraku.checks import hint
from bunraku.envs.figures import Figure, figure
from bunraku.envs.gripping_hands import Hands
from bunraku.errors import NamingError
from bunraku.mechanism import Mechanism, Prismatic, Revolute
from bunraku.runs.actuation import Actuation
from bunraku.simulation import Worlds

Array = np.ndarray


class Moved(NamedTuple):
    """One step of all copies."""

    q: Array         # (n, nq) after it
    v: Array         # (n, nv)
    before: Array    # (n, nq) q before it
    action: Array    # (n, nu)
    seconds: float   # its length


@dataclass(frozen=True, eq=False)
class Task:
    """A task for copies of a mechanism."""

    name: str
    mechanism: Mechanism
    step: float                               # [s] of the solver
    substeps: int                             # of a step of the environment
    limit: int                                # steps of an episode, after which it is truncated
    low: Array                                # (nu,) least action
    high: Array                               # (nu,) largest
    torques: Callable[[Array], Array]         # (n, nv) of actions (n, nu) within their range
    start: Callable[[Array], tuple[Array, Array]]  # (q, v) from numbers (n, nq + nv) of [0, 1)
    observe: Callable[..., Any]               # (n, size) of q and v; or a function for `bk.Worlds(observe=...)`
    reward: Callable[[Moved], Array]          # (n,)
    ends: Callable[[Array, Array], Array]     # (n,) whether q and v end an episode
    size: int = 0                             # numbers that `observe` writes, if it is one for `bk.Worlds`
    motors: Actuation | None = None           # makes torques of those that `torques` gives
    hands: Hands | None = None                # that hold and let go; they take the last actions, one each

    def worlds(self, n: int, seed: int = 0, workers: int | None = None) -> Worlds:
        """Copies of the mechanism at the middle of all starts."""
        q, v = self.start(np.full((1, self.mechanism.nq + self.mechanism.nv), 0.5))
        watched: dict[str, Any] = {"observe": self.observe, "observation_size": self.size} if self.size else {}
        holding: dict[str, Any] = {"own_connections": True, "params": self.hands.memory} if self.hands else {}
        return Worlds(self.mechanism, n, self.step, self.substeps, q=q[0], v=v[0], seed=seed, workers=workers,
                      warn=False, actuation=self.motors, **watched, **holding)

    def begin(self, w: Worlds, which=None) -> None:
        """Put copies, by default all, at starts drawn from their random streams."""
        q, v = self.start(w.random(which, self.mechanism.nq + self.mechanism.nv))
        w.reset(which, q, v, overlapping=True)
        if self.hands:
            w.params[slice(None) if which is None else which] = self.hands.memory

    def move(self, w: Worlds, action: Array) -> None:
        """A step with actions (n, nu) within their range."""
        if self.hands:
            self.hands.act(w, action[:, -len(self.hands.links):] > 0.0)
        w.step(self.torques(action))

    def seen(self, w: Worlds) -> Array:
        """(n, size) observation of all copies."""
        return w.observe() if self.size else self.observe(w.q, w.v)


def task(name: str) -> Task:
    """A task by its name in TASKS."""
    if name not in TASKS:
        raise NamingError(f"there is no task {name!r}{hint(name, tuple(TASKS))}")
    return TASKS[name]()


def never(q: Array, v: Array) -> Array:
    return np.zeros(len(q), bool)


def spread(middle: Array, nv: int, width: Array, numbers: Array) -> tuple[Array, Array]:
    """Coordinates and velocities evenly within `width` (nq + nv) on both sides of a pose at rest."""
    moved = (2.0 * numbers - 1.0) * width
    return middle + moved[:, :len(middle)], moved[:, len(middle):len(middle) + nv]


def on_joint(joint: int, nv: int, action: Array) -> Array:
    tau = np.zeros((len(action), nv))
    tau[:, joint] = action[:, 0]
    return tau


# -- classic control -----------------------------------------------------------------------------------------------


def pendulum() -> Task:
    """A rod of 1 m and 1 kg that is to be swung up and held upright, q = 0."""
    m = Mechanism(gravity=(0, 0, -10.0), name="pendulum")
    m.add_link("rod", joint=Revolute((0, 1, 0)), mass=1.0, com=(0, 0, 0.5), inertia=(1 / 12, 1 / 12, 0))

    def reward(x: Moved) -> Array:
        angle = (x.q[:, 0] + np.pi) % (2 * np.pi) - np.pi
        return -(angle**2 + 0.1 * x.v[:, 0] ** 2 + 0.001 * x.action[:, 0] ** 2)

    return Task("pendulum", m, 0.01, 5, 200, np.array([-2.0]), np.array([2.0]), partial(on_joint, 0, 1),
                partial(spread, np.zeros(1), 1, np.array([np.pi, 1.0])),
                lambda q, v: np.column_stack([np.cos(q[:, 0]), np.sin(q[:, 0]), v[:, 0]]), reward, never)


def cart_pole() -> Task:
    """A pole that is to be balanced on a cart pushed by up to 10 N."""
    m = Mechanism(gravity=(0, 0, -9.8), name="cart-pole")
    m.add_link("cart", joint=Prismatic((1, 0, 0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_link("pole", "cart", Revolute((0, 1, 0)), mass=0.1, com=(0, 0, 0.5), inertia=(0.1 / 12, 0.1 / 12, 0))
    return Task("cart-pole", m, 0.005, 4, 500, np.array([-10.0]), np.array([10.0]), partial(on_joint, 0, 2),
                partial(spread, np.zeros(2), 2, np.full(4, 0.05)),
                lambda q, v: np.column_stack([q[:, 0], v[:, 0], q[:, 1], v[:, 1]]),
                lambda x: np.ones(len(x.q)),
                lambda q, v: (np.abs(q[:, 0]) > 2.4) | (np.abs(q[:, 1]) > np.radians(12)))


def acrobot() -> Task:
    """Two links of 1 m, a motor of 1 N m between them; the tip is to be swung to 1 m above the upper end."""
    m = Mechanism(gravity=(0, 0, -9.8), name="acrobot")
    centre, inertia = (0, 0, -0.5), (1.0, 1.0, 1.0)
    m.add_link("upper", joint=Revolute((0, 1, 0)), mass=1.0, com=centre, inertia=inertia)
    m.add_link("lower", "upper", Revolute((0, 1, 0)), position=(0, 0, -1), mass=1.0, com=centre, inertia=inertia)

    def high(q: Array, v: Array) -> Array:
        return -np.cos(q[:, 0]) - np.cos(q[:, 0] + q[:, 1]) > 1.0

    return Task("acrobot", m, 0.01, 20, 500, np.array([-1.0]), np.array([1.0]), partial(on_joint, 1, 2),
                partial(spread, np.zeros(2), 2, np.full(4, 0.1)),
                lambda q, v: np.column_stack([np.cos(q), np.sin(q), v])[:, [0, 2, 1, 3, 4, 5]],
                lambda x: np.where(high(x.q, x.v), 0.0, -1.0), high)


# -- figures of Gymnasium ------------------------------------------------------------------------------------------


def runs(name: str, f: Figure, substeps: int, noise: tuple[float, float], observe, cost: float, healthy: float = 0.0,
         forward: float = 1.0, ends=never, parts: int = 1) -> Task:
    """A figure that is rewarded for its way along x, for being healthy, and pays for the squares of its actions."""
    m = f.mechanism
    width = np.concatenate([np.full(m.nq, noise[0]), np.full(m.nv, noise[1])])

    def start(numbers: Array) -> tuple[Array, Array]:
        q, v = spread(f.start, m.nv, width, numbers)
        return m.integrate(q, np.zeros(m.nv)), v  # quaternions of unit length

    def reward(x: Moved) -> Array:
        paid = cost * (x.action**2).sum(axis=1)
        return forward * (x.q[:, 0] - x.before[:, 0]) / x.seconds + healthy - paid

    return Task(name, m, f.step / parts, substeps * parts, 1000, f.low, f.high, f.torques, start, observe, reward, ends)


def _planar(most: float, q: Array, v: Array) -> Array:
    return np.concatenate([q[:, 1:], np.clip(v, -most, most)], axis=1)


def _floating(q: Array, v: Array) -> Array:
    return np.concatenate([q[:, 2:], v], axis=1)


def hopper() -> Task:
    def ends(q: Array, v: Array) -> Array:
        state = np.abs(np.concatenate([q[:, 2:], v], axis=1)).max(axis=1)
        return ~((state < 100.0) & (q[:, 1] > 0.7) & (np.abs(q[:, 2]) < 0.2))

    return runs("hopper", figure("hopper"), 4, (5e-3, 5e-3), partial(_planar, 10.0), 1e-3, 1.0, ends=ends)


def half_cheetah() -> Task:
    return runs("half-cheetah", figure("half-cheetah"), 5, (0.1, 0.1), partial(_planar, np.inf), 0.1)


def walker() -> Task:
    def ends(q: Array, v: Array) -> Array:
        return ~((q[:, 1] > 0.8) & (q[:, 1] < 2.0) & (np.abs(q[:, 2]) < 1.0))

    return runs("walker", figure("walker"), 4, (5e-3, 5e-3), partial(_planar, 10.0), 1e-3, 1.0, ends=ends)


def ant() -> Task:
    def ends(q: Array, v: Array) -> Array:
        return ~((q[:, 2] >= 0.2) & (q[:, 2] <= 1.0))

    return runs("ant", figure("ant"), 5, (0.1, 0.1), _floating, 0.5, 1.0, ends=ends)


def humanoid() -> Task:
    def ends(q: Array, v: Array) -> Array:
        return ~((q[:, 2] > 1.0) & (q[:, 2] < 2.0))

    return runs("humanoid", figure("humanoid"), 5, (0.01, 0.01), _floating, 0.1, 5.0, 1.25, ends, parts=2)


# -- legged figures of `bk.models` -----------------------------------------------------------------------------------


def _legged(name: str) -> Task:
    from bunraku.envs import legged_tasks

    return getattr(legged_tasks, name)()


TASKS: dict[str, Callable[[], Task]] = {
    "pendulum": pendulum, "cart-pole": cart_pole, "acrobot": acrobot, "hopper": hopper, "half-cheetah": half_cheetah,
    "walker": walker, "ant": ant, "humanoid": humanoid, "quadruped": partial(_legged, "quadruped"),
    "hopping-leg": partial(_legged, "hopping_leg"), "monkey-bars": partial(_legged, "monkey_bars")}
