"""Tasks of the legged figures of `bk.models`: a quadruped that runs, a closed-chain leg that hops, a climber on monkey
bars.

Motors of the quadruped and the climber are given angles, and hold them by a spring and a damper within the `effort` of
their joints; those of the leg are given torques.
"""

from __future__ import annotations

import numpy as np

from bunraku import models
from bunraku.envs.gripping_hands import Hands
from bunraku.envs.tasks import Array, Moved, Task, spread
from bunraku.mechanism import Revolute
from bunraku.models.legged import LEG_EFFORT, LEG_SPEED
from bunraku.simulation import actuation

# -- a quadruped ---------------------------------------------------------------------------------------------------

SWING = 0.6  # [rad] of each joint from where it stands, by an action of 1


@actuation
def _hold_legs(t, q, v, params, tau):
    for j in range(6, len(v)):
        tau[j] = min(max(60.0 * (tau[j] - q[j + 1]) - 1.5 * v[j], -25.0), 25.0)


def quadruped() -> Task:
    """Run along x; an episode ends when the body turns over or touches the ground."""
    m = models.quadruped()
    width = np.concatenate([np.full(m.nq, 0.02), np.full(m.nv, 0.05)])
    middle = m.neutral()

    def start(numbers: Array) -> tuple[Array, Array]:
        q, v = spread(middle, m.nv, width, numbers)
        q[:, 2] += 0.05
        return m.integrate(q, np.zeros(m.nv)), v

    def torques(action: Array) -> Array:
        tau = np.zeros((len(action), m.nv))
        tau[:, 6:] = SWING * action
        return tau

    def ends(q: Array, v: Array) -> Array:
        upright = 1.0 - 2.0 * (q[:, 4] ** 2 + q[:, 5] ** 2)
        return ~((upright > 0.5) & (q[:, 2] > -0.2))

    def reward(x: Moved) -> Array:
        return (x.q[:, 0] - x.before[:, 0]) / x.seconds + 0.5 - 0.02 * (x.action**2).sum(axis=1)

    return Task("quadruped", m, 0.002, 10, 1000, np.full(12, -1.0), np.full(12, 1.0), torques, start,
                lambda q, v: np.concatenate([q[:, 2:], v], axis=1), reward, ends, motors=_hold_legs)


# -- a leg with a closed chain -------------------------------------------------------------------------------------


@actuation
def _direct_current(t, q, v, params, tau):
    for j in (2, 4):
        tau[j] = max(min(tau[j], LEG_EFFORT * (1.0 - v[j] / LEG_SPEED)), -LEG_EFFORT * (1.0 + v[j] / LEG_SPEED))
        tau[j] = max(min(tau[j], LEG_EFFORT), -LEG_EFFORT)


def hopping_leg() -> Task:
    """Hop along x; an episode ends when the body is nearly on the ground. Actions are torques, as parts of the
    `effort` of the two motors, which give less the faster they turn and none at their `speed`."""
    m = models.hopping_leg()
    joints = np.array([m.v_slice(name).start for name in ("front", "rear")])
    effort, middle = m.effort[joints], m.neutral()
    width = np.concatenate([np.full(m.nq, 0.0), np.full(m.nv, 0.05)])
    width[:2] = 0.01

    def start(numbers: Array) -> tuple[Array, Array]:
        q, v = spread(middle, m.nv, width, numbers)
        q[:, 1] += 0.03
        v[:, 2:] = 0.0  # of the chain, which is closed
        return q, v

    def torques(action: Array) -> Array:
        tau = np.zeros((len(action), m.nv))
        tau[:, joints] = effort * action
        return tau

    def reward(x: Moved) -> Array:
        return (x.q[:, 0] - x.before[:, 0]) / x.seconds + 0.2 - 0.02 * (x.action**2).sum(axis=1)

    return Task("hopping-leg", m, 0.001, 10, 500, np.full(2, -1.0), np.full(2, 1.0), torques, start,
                lambda q, v: np.concatenate([q[:, 1:], v], axis=1), reward, lambda q, v: q[:, 1] < -0.2,
                motors=_direct_current)


# -- monkey bars ---------------------------------------------------------------------------------------------------

BARS, SPACING = 12, 0.3              # [m]
LOW = np.array([-1.6, -2.6, -0.1, -2.6, -0.1])     # [rad] hip, left shoulder and elbow, right shoulder and elbow
HIGH = np.array([0.5, 2.6, 2.6, 2.6, 2.6])
STIFF = np.array([80.0, 150.0, 120.0, 150.0, 120.0])  # [N m/rad]
DAMP = np.array([4.0, 6.0, 2.5, 6.0, 2.5])            # [N m s/rad]
EFFORT = np.array([40.0, 40.0, 30.0, 40.0, 30.0])     # [N m]
ARM = 0.3


@actuation
def _hold_arms(t, q, v, params, tau):
    for k in range(5):
        wanted = STIFF[k] * (tau[3 + k] - q[3 + k]) - DAMP[k] * v[3 + k]
        tau[3 + k] = min(max(wanted, -EFFORT[k]), EFFORT[k])


def _climbing(t, q, v, params, out):
    """Angles (6), velocities (8), whether each hand holds (2), both hands and the shoulders seen from the bar after
    the last one that was held (6): x, z."""
    out[:6] = q[2:]
    out[6:14] = v
    bar, x, z = SPACING * min(params[2] + 1.0, BARS - 1.0), q[0], q[1] - 2.0 * ARM
    for hand in range(2):
        upper = q[2] + q[4 + 2 * hand]
        lower = upper + q[5 + 2 * hand]
        out[14 + hand] = 1.0 if params[hand] >= 0.0 else 0.0
        out[16 + 2 * hand] = x + ARM * (np.sin(upper) + np.sin(lower)) - bar
        out[17 + 2 * hand] = z + ARM * (np.cos(upper) + np.cos(lower))
    out[20], out[21] = x - bar, z


def monkey_bars() -> Task:
    """Climb along bars, hand over hand: from the first two of twelve to the last. Actions are five angles and two
    hands, which close above 0; an episode ends when the figure falls."""
    m = models.climber()
    bars = np.column_stack([SPACING * np.arange(BARS), np.zeros(BARS), np.zeros(BARS)])
    hands, at = ("left_forearm", "right_forearm"), (0.0, 0.0, ARM)
    middle = m.neutral()
    place = np.array([0.5 * SPACING, 0.15])
    middle[:2] = place
    for k, (hand, first) in enumerate((("left", 4), ("right", 6))):
        middle[first:first + 2] = reaching(bars[k, [0, 2]] - (place - (0.0, 2.0 * ARM)))
        y = 0.14 if hand == "left" else -0.14
        m.connect("ground", hands[k], Revolute((0, 1, 0)), name=f"{hand}_hand", position_a=bars[k] + (0.0, y, 0.0),
                  position_b=at)
    width = np.zeros(m.nq + m.nv)
    width[2:4] = 0.1  # pitch and hip
    rail = Hands(hands, ("left_hand", "right_hand"), at, bars, (0, 1, 0), 0.03, (0, 1))

    def start(numbers: Array) -> tuple[Array, Array]:
        q, v = spread(middle, m.nv, width, numbers)
        q[:, [4, 6]] -= q[:, [2]]  # hands stay where they are
        return q, v

    def torques(action: Array) -> Array:
        tau = np.zeros((len(action), m.nv))
        tau[:, 3:] = 0.5 * (LOW + HIGH) + 0.5 * (HIGH - LOW) * action[:, :5]
        return tau

    def reward(x: Moved) -> Array:
        return (x.q[:, 0] - x.before[:, 0]) / x.seconds - 0.01 * (x.action[:, :5] ** 2).sum(axis=1)

    return Task("monkey-bars", m, 0.002, 10, 1500, np.full(7, -1.0), np.full(7, 1.0), torques,
                start, _climbing, reward, lambda q, v: q[:, 1] < -1.0,
                size=22, motors=_hold_arms, hands=rail)


def reaching(way) -> np.ndarray:
    """Angles of shoulder and elbow, without the body's pitch, that put a hand at `way` (x, z) from the shoulder, or as
    near as the arm can."""
    distance = min(float(np.hypot(*way)), 2.0 * ARM - 1e-6)
    elbow = 2.0 * np.arccos(distance / (2.0 * ARM))
    return np.array([np.arctan2(way[0], way[1]) - 0.5 * elbow, elbow])
