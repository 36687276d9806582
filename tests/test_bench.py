"""The benchmark compares like with like: peers give our accelerations, operations are counted, targets judged."""

import numpy as np
import pytest

import bunraku as bk
from bunraku import cli
from bunraku.bench import files, report
from bunraku.bench.flops import forward_dynamics_flops
from bunraku.bench.timing import Contestant, race, speedup
from robots import needs_robots

TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def branching():
    """Links added breadth first, a turned and shifted Free joint, skew axes, a Fixed link: all one could mix up."""
    m = bk.Mechanism(gravity=(1.0, -2.0, -9.0))
    solid = {"mass": 1.3, "com": (0.1, -0.05, 0.2), "inertia": np.diag([0.02, 0.03, 0.025])}
    m.add_link("root", joint=bk.Free(), position=(0.3, 0.1, 1.0), rotation=TURN, **solid)
    m.add_link("a", "root", bk.Revolute((1, 2, -2)), position=(0, 0.2, 0), rotation=TURN.T, **solid)
    m.add_link("b", "root", bk.Spherical(), position=(0, -0.2, 0.1), rotation=TURN, **solid)
    m.add_link("fixed", "a", bk.Fixed(), position=(0.1, 0, 0), rotation=TURN, **solid)
    m.add_link("c", "fixed", bk.Revolute((0, 0, -1)), position=(0.1, 0, 0), **solid)
    m.add_link("d", "b", bk.Revolute((0, 1, 0)), position=(0.1, 0, 0), **solid)
    return m


def sliding():
    """Sliders, hinges beside the origin, several joints in a row, a Fixed link without mass."""
    m = bk.Mechanism()
    solid = {"mass": 1.3, "com": (0.1, -0.05, 0.2), "inertia": np.diag([0.02, 0.03, 0.025])}
    m.add_link("world", joint=bk.Free(), **solid)
    m.add_link("a", "world", bk.Prismatic((1, 2, -2)), position=(0, 0.2, 0), rotation=TURN, **solid)
    m.add_link("b", "a", bk.Compound(bk.Revolute((0, 1, 1), at=(0.1, 0.2, 0)), bk.Prismatic((1, 0, 0)),
                                     bk.Revolute((0, 0, -1), at=(0, 0, 0.3))), position=(0, 0, 0.2), **solid)
    m.add_link("frame", "world", bk.Fixed(), position=(0, 0, 0.1), rotation=TURN)
    m.add_link("c", "frame", bk.Revolute((1, 0, 0), at=(0, 0.1, 0.1)), **solid)
    return m


@pytest.mark.parametrize("build", [branching, sliding, bk.models.humanoid, lambda: bk.models.human(48)])
@pytest.mark.parametrize("peer", ["pinocchio", "mujoco"])
def test_peers_give_our_accelerations(peer, build):
    pytest.importorskip(peer)
    from bunraku.bench import peers

    m = build()
    rng = np.random.default_rng(3)
    q, v, tau = m.integrate(m.neutral(), rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)
    other = {"pinocchio": peers.Pinocchio, "mujoco": peers.MuJoCo}[peer](m)
    a = bk.forward_dynamics(m, q, v, tau)
    assert np.abs(other.forward(q, v, tau) - a).max() < 1e-10 * np.abs(a).max()


def test_peers_refuse_what_they_cannot_match():
    pytest.importorskip("pinocchio")
    from bunraku.bench.peers import Pinocchio

    with pytest.raises(bk.ModelError, match="dampers"):
        Pinocchio(bk.models.chain(2, damping=0.1))


def test_operations_are_counted_and_grow_with_the_model():
    counts = forward_dynamics_flops(["humanoid", "human"])
    assert 400 < counts["humanoid"] / 34 < 900
    assert counts["human"] > 0


def test_race_times_every_contestant():
    slow = Contestant("slow", lambda: sum(range(20_000)), 1)
    fast = Contestant("fast", lambda: sum(range(1_000)), 1)
    race([slow, fast], 0.02)
    assert len(slow.times) == len(fast.times) >= 7
    assert speedup(slow, fast)[0] > 5.0


def test_report_shows_verdicts():
    targets = [{"what": "batch", "measured": 16.0, "target": 15.0, "unit": "x pin.aba", "met": True},
               {"what": "exponent", "measured": 1.2, "target": 1.05, "unit": "", "met": False}]
    page = report.text({
        "bunraku": "0", "batch": 4096, "peak_gflops": 80.0, "models": {}, "targets": targets,
        "machine": {"date": "2026-11-15T20:58+00:00", "processor": "P", "cores": 2, "lanes": 8, "system": "linux",
                    "python": "3", "versions": {"numba": "0", "numpy": "2"}},
        "scaling": {"chains": [], "exponent": 1.2, "residual": 1e-9, "residual_small": 1e-5,
                    "residual_rounding": 1e-5}})
    assert "PASS  batch" in page
    assert "MISS  exponent" in page
    assert "1 of 2 targets met" in page


# -- model files -----------------------------------------------------------------------------------------------------

SLIDER = """<robot name="slider">
  <link name="base"><inertial><mass value="2"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="frame"/>
  <link name="hand"><inertial><origin xyz="0 .1 0"/><mass value="1"/>
    <inertia ixx=".01" iyy=".01" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="frame"/><axis xyz="0 0 1"/>
    <dynamics damping="3" friction="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="{parent}"/><child link="hand"/><axis xyz="1 0 2"/>
    <origin xyz="0 0 1" rpy=".1 .2 .3"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
    <dynamics damping="3"/></joint>
</robot>"""


def slider(folder, parent="frame", izz=".01"):
    path = folder / "slider.urdf"
    path.write_text(SLIDER.format(parent=parent, izz=izz))
    return path


def agreement(path):
    """Of the libraries on a file, and why MuJoCo is not among them."""
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    from bunraku.bench import dynamics, peers

    m, _notes = files.read(path)
    try:
        mujoco, refused = peers.MuJoCo(m), ""
    except bk.ModelError as error:
        mujoco, refused = None, str(error)
    return dynamics.check_agreement(m, peers.Pinocchio(m), mujoco, *dynamics.random_states(m, 64)), refused


def test_libraries_agree_on_a_slider_but_mujoco_wants_mass_everywhere(tmp_path):
    worst, refused = agreement(slider(tmp_path))
    assert max(worst.values()) < 1e-9
    assert "mj_forward" not in worst
    assert "'frame'" in refused


def test_mujoco_refuses_inertias_of_no_body(tmp_path):
    worst, refused = agreement(slider(tmp_path, izz=".05"))
    assert max(worst.values()) < 1e-9
    assert refused


@needs_robots
@pytest.mark.parametrize("name", ["talos_reduced.urdf", "human_description/robots/human.urdf"])
def test_libraries_agree_on_robots(name):
    worst, refused = agreement(files.find(name))
    assert max(worst.values()) < 1e-9
    assert bool(refused) == ("human" in name)


def test_files_are_measured_without_passive_forces(tmp_path):
    path = slider(tmp_path)
    m, notes = files.read(path)
    with pytest.warns(bk.LoadWarning, match="friction"):
        assert bk.load(path).joint("slide").passive[0, 1] == 3.0
    assert not any(link.joint.passive[:, :3].any() for link in m.links)
    assert m.joint("slide").passive[0, 4:6].tolist() == [-1.0, 1.0]
    assert any("friction" in note for note in notes)
    assert forward_dynamics_flops([str(path)])[str(path)] > 100


def test_command_takes_files(tmp_path, monkeypatch, capsys):
    from bunraku.bench import dynamics

    got = {}
    monkeypatch.setattr(dynamics, "run", lambda options, quiet, files: got.update(files) or {})
    path = slider(tmp_path)
    assert cli.main(["bench", "dynamics", "--json", "--model", str(path), "--model", str(path)]) == 0
    assert [(p, m.nv) for p, m in got.items()] == [(path, 8)]
    said = capsys.readouterr()
    assert said.out == "{}\n"
    assert said.err.count("\n") == 1
    assert "slider.urdf" in said.err


@pytest.mark.parametrize("name", ["no_such_robot.urdf", "/no/such/robot.urdf"])
def test_command_says_which_file_is_missing(name, capsys):
    assert cli.main(["bench", "dynamics", "--model", name]) == 1
    said = capsys.readouterr().err
    assert f"bunraku: {name}: there is no such" in said


# -- structures with loops -------------------------------------------------------------------------------------------


@needs_robots
@pytest.mark.parametrize("held", [1, 4])
def test_limbs_held_give_pinocchios_accelerations(held):
    pytest.importorskip("pinocchio")
    from bunraku.bench import structure

    m = files.read(files.find(structure.ROBOT))[0]
    assert m.nv == 38
    limbs, twin = structure.LIMBS[:held], m.copy()
    structure.hold(twin, limbs)
    states = structure.held_states(twin, 8)
    worst = structure._agreement(twin, structure.Limbs(m, limbs), *states)
    assert worst["thorough"] < 1e-9
    assert worst["residual"] < 1e-8


def test_structure_benchmark_in_words():
    from bunraku.bench import structure_report

    rows = [{"label": "pin.constraintDynamics", "best_us": 18.0, "median_us": 20.0},
            {"label": "bunraku, one call from Python", "best_us": 6.0, "median_us": 7.0, "against": "pin",
             "speedup": 3.0, "speedup_median": 2.9, "target": 2.0, "met": True}]
    scaling = {"exponent": 1.0, "rows": [{"size": 10, "links": 10, "constraints": 6, "ms": 0.1, "us_per_link": 10.0,
                                          "bytes_per_link": 450.0, "again": 0.45}]}
    page = structure_report.text({
        "bunraku": "0", "machine": {"date": "2026-11-15T20:58+00:00", "processor": "P", "cores": 2, "lanes": 8,
                                    "python": "3", "versions": {"numba": "0"}},
        "robots": [{"robot": "talos", "held": 2, "dof": 38, "constraints": 12, "rows": rows,
                    "agreement": dict.fromkeys(("pin.constraintDynamics", "thorough", "batch", "residual",
                                                "residual_pin", "residual_thorough"), 1e-12)}],
        "schedules": [], "changes": [{"name": "connect", "best_us": 90.0, "median_us": 100.0}],
        "scaling": {"two_loops": scaling, "four_bars": scaling},
        "targets": [{"what": "connect", "measured": 90.0, "target": 500.0, "unit": "us", "met": True}]})
    assert "2 limbs held to the ground: 12 constraints" in page
    assert "3.00  PASS" in page
    assert page.count("45%") == 2
    assert "1 of 1 targets met" in page
