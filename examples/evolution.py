"""Train a policy in minutes on a laptop: random search over thousands of episodes, with NumPy and bunraku alone.

    python examples/evolution.py FOLDER --seeds 3 --minutes 3     writes the policy, all returns and the learning curve
    python examples/evolution.py FOLDER --play                    draws a film of the policy, and records an episode
    python examples/evolution.py FOLDER --view                    shows the policy in the viewer, where it can be pushed

Every generation tries each of some directions in the space of policies forwards and backwards, one copy of the worlds
for each, and moves the policy along those that paid most, weighted by the difference [Mania, Guy and Recht 2018,
augmented random search]. A policy is a matrix times the observation, in units of its spread so far.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.envs.tasks import Moved, task

BEST = 4                    # one direction in so many is used
NOISE, RATE = 0.03, 0.02
BONUS = {"hopper": 1.0, "walker": 1.0, "ant": 1.0, "humanoid": 5.0, "quadruped": 0.5, "hopping-leg": 0.2}  # see below


class Spread:
    """Mean and spread of all observations so far."""

    def __init__(self, size):
        self.count, self.mean, self.squares = 1e-4, np.zeros(size), np.full(size, 1e-4)

    def add(self, seen):
        count, mean = len(seen), seen.mean(axis=0)
        total, away = self.count + count, mean - self.mean
        self.squares += ((seen - mean) ** 2).sum(axis=0) + away**2 * self.count * count / total
        self.mean, self.count = self.mean + away * count / total, total

    def scaled(self, seen):
        return (seen - self.mean) / np.sqrt(self.squares / self.count + 1e-8)


def returns(own, w, policies, spread, seed, bonus=0.0, shown=None):
    """Returns of an episode of each copy with its own policy (n, nu, size), and the steps taken.

    `bonus` is taken off the reward of a step: one for not falling would keep the figure standing.
    """
    w.reseed(seed)
    own.begin(w)
    total, steps = np.zeros(w.n), 0
    for k in range(own.limit):
        going, before = w.running, w.q.copy()
        if not going.any():
            break
        seen = own.seen(w)
        if k % 8 == 0:
            spread.add(seen[going])
        action = np.clip(np.einsum("nij,nj->ni", policies, spread.scaled(seen)), own.low, own.high)
        action[~going] = 0.0
        own.move(w, action)
        reward = own.reward(Moved(w.q, w.v, before, action, own.step * own.substeps)) - bonus
        total += np.where(going & w.running, reward, 0.0)
        steps += int(going.sum())
        w.stop(own.ends(w.q, w.v))
        if shown and k % 4 == 0:
            shown(w)
    return total, steps


def train(own, seed, minutes, bonus, directions=64):
    """(policy, spread, rows of (minutes, million steps, return)) of one seed."""
    w, few, rng = own.worlds(2 * directions), own.worlds(8), np.random.default_rng(seed)
    nu, size = len(own.low), own.seen(few).shape[1]
    policy, spread, rows, steps, generation = np.zeros((nu, size)), Spread(size), [], 0, 0
    begin = time.perf_counter()
    while True:
        passed = (time.perf_counter() - begin) / 60.0
        if generation % 10 == 0 or passed > minutes:
            score = returns(own, few, np.repeat(policy[None], 8, axis=0), spread, 10**9 + seed)[0].mean()
            rows.append((passed, steps / 1e6, score))
            print(f"seed {seed}: {passed:5.2f} min {steps / 1e6:7.2f} M steps, mean return {score:8.1f}", flush=True)
        if passed > minutes:
            return policy, spread, rows
        ways = rng.normal(size=(directions, nu, size))
        tried = np.concatenate([policy + NOISE * ways, policy - NOISE * ways])
        paid, taken = returns(own, w, tried, spread, 1_000_003 * seed + generation, bonus)
        there, back = paid[:directions], paid[directions:]
        best = np.argsort(np.maximum(there, back))[-(directions // BEST):]
        scale = np.concatenate([there[best], back[best]]).std() + 1e-8
        policy += RATE / (len(best) * scale) * np.einsum("k,kij->ij", there[best] - back[best], ways[best])
        steps, generation = steps + taken, generation + 1


def draw(curves, name, path):
    """The learning curves of all seeds."""
    from matplotlib.figure import Figure

    page = Figure(figsize=(7, 4))
    axes = page.add_subplot()
    for seed, rows in enumerate(curves):
        minutes, _, score = np.array(rows).T
        axes.plot(minutes, score, label=f"seed {seed}")
    axes.set(xlabel="minutes on two cores", ylabel="mean return of 8 episodes", title=name)
    axes.legend()
    page.savefig(path, dpi=120)
    print(path)


def kept(folder):
    """Task, policy and spread of a folder."""
    found = np.load(folder / "policy.npz")
    own, spread = task(str(found["task"])), Spread(len(found["mean"]))
    spread.mean, spread.squares, spread.count = found["mean"], found["squares"], float(found["count"])
    return own, found["policy"], spread


def simulated(own, policy, spread):
    """A simulation that the policy moves, for the viewer and for recordings. Tasks without hands."""
    m, w = own.mechanism, own.worlds(1)
    own.begin(w)
    period, held = own.step * own.substeps, {"at": -1.0, "tau": np.zeros(m.nv)}

    def drive(t, q, v):
        if not held["at"] <= t < held["at"] + (1.0 - 1e-9) * period:
            action = policy @ spread.scaled(own.observe(q[None], v[None])[0])
            held["at"], held["tau"] = t, own.torques(np.clip(action, own.low, own.high)[None])[0]
        tau = held["tau"].copy()
        if own.motors:
            own.motors(t, q, v, np.zeros(0), tau)
        return tau

    return bk.Simulation(m, w.q[0], w.v[0], solver="symplectic_euler", step=own.step, actuation=drive, record=60.0)


def play(folder, seconds=4.0):
    """A film of an episode with the policy of a folder, and a recording for the viewer."""
    from PIL import Image

    from bunraku.view.picture import Picture

    own, policy, spread = kept(folder)
    w, frames = own.worlds(1), []
    picture = Picture(own.mechanism, w.q[0], 480)
    total, steps = returns(own, w, policy[None], spread, 0,
                           shown=lambda w: frames.append(Image.fromarray(picture.draw(w.q[0]))))
    frames[0].save(folder / "policy.gif", save_all=True, append_images=frames[1:250], duration=30, loop=0)
    sim = simulated(own, policy, spread)
    sim.run(seconds)
    print(f"return of {steps} steps: {total[0]:.0f}\n{folder / 'policy.gif'}\n"
          f"bunraku view {sim.trajectory.save(folder / 'episode.npz')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", default="hopper")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--directions", type=int, default=64, help="tried in a generation")
    parser.add_argument("--minutes", type=float, default=0.02, help="of each seed")
    parser.add_argument("--play", action="store_true", help="draw a film of the policy in the folder instead")
    parser.add_argument("--view", action="store_true", help="show the policy in the folder in the viewer, to push it")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    if options.play:
        play(options.folder)
        return
    if options.view:
        bk.view(simulated(*kept(options.folder)))
        return
    own, bonus = task(options.task), BONUS.get(options.task, 0.0)
    found = [train(own, seed, options.minutes, bonus, options.directions) for seed in range(options.seeds)]
    policy, spread, _ = max(found, key=lambda one: one[2][-1][2])
    np.savez(options.folder / "policy.npz", policy=policy, mean=spread.mean, squares=spread.squares,
             count=spread.count, task=options.task)
    rows = [(seed, *row) for seed, (_, _, rows) in enumerate(found) for row in rows]
    np.savetxt(options.folder / "returns.csv", rows, delimiter=",", header="seed,minutes,steps,return", comments="")
    draw([rows for _, _, rows in found], options.task, options.folder / "returns.png")


if __name__ == "__main__":
    main()
