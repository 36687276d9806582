"""Checkpoints: a simulation continues from its file bit by bit, or the file is rejected."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import bunraku as bk
from bunraku.integrate.rkf import METHOD as OWN
from bunraku.simulation.records import storage
from hanging import go_on, hanging, knowledge, swing

SOLVERS = {"gear": {}, "bdf": {"max_order": 3}, "implicit": {}, "tsit5": {}, "rk4": {"step": 2e-3},
           "symplectic_euler": {"step": 1e-3}}


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_simulation_goes_on_from_its_file_to_the_last_bit(tmp_path, solver):
    sim = hanging(solver, **SOLVERS[solver])
    sim.run(0.1)
    again = bk.Simulation.load(sim.save(tmp_path / "half way"), actuation=swing)
    assert knowledge(again) == knowledge(sim)
    assert go_on(again) == go_on(sim)
    assert len(sim.trajectory.segments) == 3
    assert list(sim.mechanism.connections) == ["connection1"]  # an automatic name, as if nothing had been in between


def test_a_method_of_ones_own_and_baumgarte_are_in_the_file_too(tmp_path):
    sim = bk.Simulation(bk.models.four_bar(), solver=OWN, baumgarte=20.0, rtol=1e-5, max_step=0.01)
    sim.run(0.2)
    again = bk.Simulation.load(sim.save(tmp_path / "half way"))
    sim.run(0.4)
    again.run(0.4)
    assert knowledge(again) == knowledge(sim)
    assert max(np.diff(again.trajectory.t)) <= 0.01 * (1 + 1e-9)


@pytest.mark.parametrize("solids", [False, True])
def test_limits_of_the_step_are_in_the_file(tmp_path, solids):
    """Also both the same with a solver that chooses its steps; and where solids limit the step, so that they do not
    pass through each other."""
    m, limits = bk.models.chain(2), {"max_step": 1e-3, "min_step": 0.0 if solids else 1e-3}
    if solids:
        m = two_balls()
    sim = bk.Simulation(m, **limits)
    sim.run(0.01)
    again = bk.Simulation.load(sim.save(tmp_path / "half way"))
    sim.run(0.05)
    again.run(0.05)
    assert knowledge(again) == knowledge(sim)
    assert sim.stats.steps >= 50


def two_balls():
    m = bk.Mechanism()
    for name in ("below", "above"):
        m.add_link(name, "ground", bk.Free(), mass=1.0, inertia=0.004 * np.eye(3))
        m.add_shape(name, bk.Sphere(0.1), position=(0.0, 0.0, 5.0 * (name == "above")))
    return m


def test_another_process_goes_on_to_the_last_bit(tmp_path):
    path = tmp_path / "half way.npz"
    first = f"sim = c.hanging(); sim.run(0.1); sim.save({str(path)!r}); print(c.marks(c.go_on(sim)))"
    second = f"print(c.marks(c.go_on(bk.Simulation.load({str(path)!r}, actuation=c.swing))))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = [subprocess.run([sys.executable, "-c", f"import bunraku as bk, hanging as c\n{code}"], capture_output=True,
                           text=True, check=True, timeout=900, env=environment).stdout for code in (first, second)]
    assert told[0] == told[1]
    assert "right_hand" in told[0]


def watched(sim, seen):
    """The same conditions and actions, on any simulation."""
    def note(what, end=False):
        def action(sim):
            seen.append((what, sim.t))
            return end
        return action

    sim.when(lambda t, q, v: np.sin(200 * t - 0.5), note("beat"), name="beat", repeat=True)
    sim.when(bk.force_above("grip", 10.0), note("force"))
    sim.when(lambda t, q, v: t - 0.12, note("late", end=True), name="late")
    sim.when(lambda t, q, v: t - 0.05, lambda sim: (seen.append("saved"), sim.save(sim.file))[0], name="keep")


def test_conditions_go_on_by_name_also_from_a_file_that_an_action_wrote(tmp_path):
    sim, seen = hanging(), []
    sim.file = tmp_path / "by an action.npz"
    watched(sim, seen)
    sim.run(0.2)
    assert seen[-1][0] == "late"
    then = seen[seen.index("saved") + 1:]
    again, after = bk.Simulation.load(sim.file, swing), []
    again.file = tmp_path / "never written.npz"
    assert again.t == pytest.approx(0.05)
    watched(again, after)
    again.run(0.2)
    assert after == then
    assert {entry[0] for entry in seen} == {"beat", "force", "late", "s"}
    assert [entry[0] for entry in after] == ["beat", "beat", "late"]  # "force" happens once only
    assert not again.file.exists()
    assert knowledge(again) == knowledge(sim)


def test_a_condition_that_was_watched_is_not_lost_in_silence(tmp_path):
    sim = hanging()
    sim.when(lambda t, q, v: t - 0.15, lambda sim: True, name="late")
    sim.run(0.1)
    path = sim.save(tmp_path / "watched")
    again = bk.Simulation.load(path, swing)
    with pytest.raises(bk.SimulationError, match="active conditions 'late'"):
        again.run(0.2)
    second = bk.Simulation.load(again.save(tmp_path / "not run"), swing)  # still known there
    with pytest.raises(bk.SimulationError, match="'late'"):
        second.run(0.2)
    assert bk.Simulation.load(path, swing, forget=["late"]).run(0.2).t[-1] == 0.2
    with pytest.raises(bk.NamingError, match="did you mean 'late'"):
        bk.Simulation.load(path, swing, forget=["later"])


def test_functions_are_asked_for(tmp_path):
    sim = hanging()
    path = sim.save(tmp_path / "start")
    with pytest.raises(bk.ModelError, match=r"start\.npz: the simulation had the actuation 'swing'.*actuation=swing"):
        bk.Simulation.load(path)
    free = bk.Simulation(bk.models.chain(2)).save(tmp_path / "free")
    with pytest.raises(bk.ModelError, match="had no actuation"):
        bk.Simulation.load(free, swing)
    with pytest.raises(bk.ModelError, match="actuation must be a function"):
        bk.Simulation.load(path, 3)


def test_half_a_step_is_not_saved(tmp_path):
    def meddle(t, q, v):
        sim.save(tmp_path / "half a step")
        return np.zeros(2)

    sim = bk.Simulation(bk.models.chain(2), actuation=meddle)
    with pytest.raises(bk.SimulationError, match="a step is under way"):
        sim.run(0.1)
    assert not list(tmp_path.iterdir())


def test_another_mechanism_is_refused(tmp_path):
    m = bk.models.chain(3)
    sim = bk.Simulation(m)
    sim.run(0.1)
    path = sim.save(tmp_path / "chain")
    assert bk.Simulation.load(path, mechanism=m).t == 0.1
    with pytest.raises(bk.ModelError, match=r"chain\.npz is of another mechanism: its links are 'link0', 'link1'"):
        bk.Simulation.load(path, mechanism=bk.models.chain(4))
    m.gravity = (0, 0, -1.62)
    with pytest.raises(bk.ModelError, match="its gravity is"):
        bk.Simulation.load(path, mechanism=m)


def rewritten(path, target, change):
    """The file with a changed header or arrays."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))
    change(header, arrays)
    return storage.write(target, header, arrays)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    sim = bk.Simulation(bk.models.chain(3), v=np.ones(3), solver="bdf")
    sim.when(lambda t, q, v: t - 9.0, print, name="late")
    sim.run(0.1)
    return sim.save(tmp_path_factory.mktemp("chain") / "chain")


def test_another_version_is_refused(chain, tmp_path):
    for change in ({"version": "0.0.9"}, {"format": 1}):
        path = rewritten(chain, tmp_path / "old", lambda header, arrays, change=change: header.update(change))
        with pytest.raises(bk.ModelError, match=r"old\.npz was written by bunraku"):
            bk.Simulation.load(path)


def test_checkpoints_and_trajectories_are_told_apart(chain, tmp_path):
    with pytest.raises(bk.ModelError, match=r"is a checkpoint, not a trajectory: bk\.Simulation\.load reads it"):
        bk.load_trajectory(chain)
    trajectory = bk.Simulation.load(chain, forget=["late"]).trajectory.save(tmp_path / "motion")
    with pytest.raises(bk.ModelError, match=r"is a trajectory, not a checkpoint: bk\.load_trajectory reads it"):
        bk.Simulation.load(trajectory)


@pytest.mark.parametrize("change", [
    lambda h, a: a["memory tally"].__setitem__(7, 40), lambda h, a: a["memory tally"].__setitem__(8, -1),
    lambda h, a: a["memory clock"].__setitem__(2, np.nan), lambda h, a: a["memory clock"].__setitem__(0, -1.0),
    lambda h, a: a["memory pivots"].__setitem__(0, 10**9), lambda h, a: a["memory rows"].__setitem__((0, 0), np.inf),
    lambda h, a: a.update({"memory rows": a["memory rows"][:-1]}), lambda h, a: a.pop("memory matrix"),
    lambda h, a: a.update({"memory tally": a["memory tally"].astype(float)}), lambda h, a: a.pop("params"),
    lambda h, a: a["t0"].__setitem__(1, -1.0), lambda h, a: h["watches"][0].update(times="never"),
    lambda h, a: h["stats"].update(steps="many"), lambda h, a: h.update(solver="magic"), lambda h, a: h.pop("hold"),
    lambda h, a: h.update(mechanisms=[]), lambda h, a: h.update(settings=[1e-6, -1.0, None]),
    lambda h, a: a.update({"memory tolerance": -a["memory tolerance"]}), lambda h, a: h.update(impulses={"x": [1]}),
])
def test_numbers_that_compiled_code_could_not_do_with_are_refused(chain, tmp_path, change):
    with pytest.raises(bk.ModelError, match=r"tampered\.npz is not a checkpoint that bunraku wrote, or it is damaged"):
        bk.Simulation.load(rewritten(chain, tmp_path / "tampered", change))


def test_a_schedule_with_costs_of_its_own_is_kept(tmp_path):
    """Other chunks would give other bits."""
    m = bk.models.human(dof=34)
    chosen = bk.schedule(m, 2, method="jung", costs={"cmptm": 1e-6, "roitm": 1e-7})
    sim = bk.Simulation(m, workers=2, schedule=chosen)
    sim.save(tmp_path / "a.npz")
    again = bk.Simulation.load(tmp_path / "a.npz")
    again.run(0.001)
    assert again.schedule.chunks == chosen.chunks
    assert again.schedule.chunk_workers == chosen.chunk_workers
