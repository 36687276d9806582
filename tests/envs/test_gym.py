"""Environments of Gymnasium: its checker passes, episodes begin and end as it says, equations are the textbook's."""

import numpy as np
import pytest

import bunraku as bk

pytest.importorskip("gymnasium")
pytest.importorskip("mujoco")

import gymnasium
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from bunraku.envs.gym import Env, VectorEnv, identifier
from bunraku.envs.tasks import TASKS, task


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TASKS)
def test_the_checker_passes_and_observations_are_in_their_space(name):
    pytest.importorskip("matplotlib")
    check_env(Env(name, render_mode="rgb_array"))
    many = VectorEnv(name, 11)
    many.reset(seed=3)
    many.action_space.seed(0)
    for _ in range(30):
        seen, reward, *_ = many.step(many.action_space.sample())
        assert seen in many.observation_space
        assert np.isfinite(reward).all()
    picture = many.picture(10)
    assert picture.dtype == np.uint8
    assert picture.shape == (360, 480, 3)
    assert picture.std() > 1.0


@pytest.mark.parametrize("name", ["cart-pole", "hopper"])
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(name):
    ends = []
    for workers in (1, 2):
        many = VectorEnv(name, 40, workers=workers)
        many.reset(seed=5)
        rng = np.random.default_rng(0)
        for _ in range(60):
            seen = many.step(rng.uniform(many.task.low, many.task.high, (40, len(many.task.low))))[0]
        ends.append(seen)
    assert (ends[0] == ends[1]).all()


def falls(**settings):
    """A pole that falls after some steps, and one that is held for longer."""
    many = VectorEnv("cart-pole", 2, **settings)
    many.reset(seed=0)
    return many


def test_an_episode_begins_in_the_next_step():
    many = falls()
    for _ in range(500):
        seen, reward, terminated, truncated, _ = many.step(np.array([[10.0], [0.0]]))
        assert (reward == 1.0).all()
        if terminated[0]:
            break
    assert terminated.tolist() == [True, False]
    assert abs(seen[0, 2]) > np.radians(12)
    other = seen[1].copy()
    seen, reward, terminated, truncated, _ = many.step(np.array([[10.0], [0.0]]))
    assert reward.tolist() == [0.0, 1.0]
    assert not terminated.any()
    assert np.abs(seen[0]).max() <= 0.05
    assert (seen[1] != other).any()
    assert many.worlds.t[0] == 0.0


def test_an_episode_begins_in_the_same_step():
    many = falls(autoreset_mode=AutoresetMode.SAME_STEP)
    terminated = np.zeros(2, bool)
    while not terminated.any():
        seen, _, terminated, _, info = many.step(np.array([[10.0], [0.0]]))
    assert abs(info["final_obs"][0][2]) > np.radians(12)
    assert info["final_obs"][1] is None
    assert info["_final_obs"].tolist() == [True, False]
    assert np.abs(seen[0]).max() <= 0.05


def test_without_autoreset_copies_are_reset_by_a_mask():
    many = falls(autoreset_mode=AutoresetMode.DISABLED)
    terminated = np.zeros(2, bool)
    while not terminated.any():
        _, _, terminated, _, _ = many.step(np.array([[10.0], [0.0]]))
    with pytest.raises(bk.ShapeError, match=r"copies \[0\] are over"):
        many.step(np.zeros((2, 1)))
    seen, _ = many.reset(options={"reset_mask": terminated})
    assert np.abs(seen[0]).max() <= 0.05
    many.step(np.zeros((2, 1)))
    with pytest.raises(bk.ShapeError, match="2 bools"):
        many.reset(options={"reset_mask": [True]})


def test_episodes_are_truncated_and_copies_that_diverge_are_marked():
    many = VectorEnv("pendulum", 2)
    many.reset(seed=0)
    for k in range(200):
        *_, truncated, info = many.step(np.zeros((2, 1)))
        assert truncated.all() == (k == 199)
    many.step(np.zeros((2, 1)))
    many.worlds.reset([1], [0.0], [1e200])
    seen, reward, terminated, _, info = many.step(np.zeros((2, 1)))
    assert terminated.tolist() == [False, True]
    assert info["diverged"].tolist() == [False, True]
    assert np.isfinite(seen).all()
    many.step(np.zeros((2, 1)))
    assert many.worlds.running.all()


def test_bad_actions_are_refused():
    many = VectorEnv("pendulum", 3)
    many.reset()
    with pytest.raises(bk.ShapeError, match=r"\(3, 1\)"):
        many.step(np.zeros(3))
    with pytest.raises(bk.ShapeError, match="of copy 1"):
        many.step([[0.0], [np.nan], [0.0]])
    with pytest.raises(bk.NamingError, match="pendulum"):
        VectorEnv("pendulun")
    with pytest.raises(bk.ShapeError, match="rgb_array"):
        VectorEnv("pendulum", render_mode="human")


def test_names_are_known_to_gymnasium():
    assert identifier("half-cheetah") == "bunraku/HalfCheetah-v0"
    assert gymnasium.make("bunraku/Pendulum-v0").reset(seed=0)[0].shape == (3,)
    assert gymnasium.make_vec("bunraku/Pendulum-v0", num_envs=3).reset(seed=0)[0].shape == (3, 3)


# -- the textbook's equations --------------------------------------------------------------------------------------


def test_the_pendulum_is_gymnasiums():
    m = task("pendulum").mechanism
    a = bk.forward_dynamics(m, [0.7], [0.3], [1.5])
    np.testing.assert_allclose(a, 3 * 10.0 / 2 * np.sin(0.7) + 3 * 1.5, rtol=1e-13)


def test_the_cart_pole_is_gymnasiums():
    theta, rate, force, mass, pole, half = 0.3, 0.8, 4.0, 1.1, 0.1, 0.5
    push = (force + pole * half * rate**2 * np.sin(theta)) / mass
    turn = (9.8 * np.sin(theta) - np.cos(theta) * push) / (half * (4 / 3 - pole * np.cos(theta) ** 2 / mass))
    slide = push - pole * half * turn * np.cos(theta) / mass
    a = bk.forward_dynamics(task("cart-pole").mechanism, [0.2, theta], [0.1, rate], [force, 0.0])
    np.testing.assert_allclose(a, [slide, turn], rtol=1e-12)


def test_the_acrobot_is_the_textbooks():
    q1, q2, v1, v2, torque, g = 0.4, -0.7, 0.5, 0.9, 0.6, 9.8  # [Sutton and Barto, Reinforcement Learning, sec. 11.3]
    d1 = 0.25 + (1 + 0.25 + np.cos(q2)) + 2
    d2 = 0.25 + 0.5 * np.cos(q2) + 1
    phi2 = 0.5 * g * np.cos(q1 + q2 - np.pi / 2)
    phi1 = -0.5 * v2**2 * np.sin(q2) - v2 * v1 * np.sin(q2) + 1.5 * g * np.cos(q1 - np.pi / 2) + phi2
    a2 = (torque + d2 / d1 * phi1 - 0.5 * v1**2 * np.sin(q2) - phi2) / (0.25 + 1 - d2**2 / d1)
    a1 = -(d2 * a2 + phi1) / d1
    a = bk.forward_dynamics(task("acrobot").mechanism, [q1, q2], [v1, v2], [0.0, torque])
    np.testing.assert_allclose(a, [a1, a2], rtol=1e-12)
