"""Benchmarks of model files: libraries agree on them, and the command says what it cannot take."""

import pytest

import bunraku as bk
from bunraku import cli
from bunraku.bench import model_files as files
from bunraku.bench import report
from bunraku.bench.flops import forward_dynamics_flops
from robots import needs_robots
from verdicts import check_verdicts

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
    from bunraku.bench import bench_dynamics as dynamics
    from bunraku.bench import peers

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
    from bunraku.bench import bench_dynamics as dynamics

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


def test_a_file_is_timed_beside_its_peers_and_judged(tmp_path, monkeypatch):
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    from bunraku.bench import bench_dynamics as dynamics

    monkeypatch.setattr(dynamics, "BATCH", dynamics.IN_TURN)
    monkeypatch.setitem(dynamics.TARGETS, "python", 1e9)
    monkeypatch.setitem(dynamics.TARGETS, "batch", 1e-9)
    path = slider(tmp_path)
    result = dynamics.run(dynamics.Options(seconds=0.05), quiet=True, files={path: files.read(path)[0]})
    assert [target["met"] for target in result["targets"]][:3:2] == [False, True]
    check_verdicts(report.text(result), result["targets"])
