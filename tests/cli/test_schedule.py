"""bunraku schedule: models by name or file, words, JSON, pictures."""

import json

import pytest

from bunraku import cli


def told(capsys, *arguments):
    assert cli.main(["schedule", *arguments]) == 0
    return capsys.readouterr().out


def test_a_schedule_in_words(capsys):
    out = told(capsys, "chain:1000", "--workers", "4")
    assert "4 of 4" in out
    assert "predicted speed-up" in out
    assert "assumed: row" in out


def test_json_has_everything(capsys):
    report = json.loads(told(capsys, "mobile", "--workers", "8", "--json", "--what-if"))
    assert sum(len(chunk["links"]) for chunk in report["chunks"]) == 455
    assert report["workers"] <= report["asked"] == 8
    assert [x["workers"] for x in report["what_if"]][-1] == 10**6
    assert report["costs"]["source"] == "stated"


@pytest.mark.parametrize(("model", "name"), [
    ("human:34", "human 34"), ("human", "human 34"), ("mobile:2:3:4", "mobile of 15"), ("humanoid", "humanoid"),
    ("chain:5:spherical", "chain of 5"), ("four_bar", "four-bar linkage"), ("chain_held:12", "chain of 12")])
def test_models_by_name(capsys, model, name):
    assert told(capsys, model).startswith(name)


def test_a_file(capsys, tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text('<robot name="arm"><link name="base"/><link name="upper"><inertial><mass value="1"/>'
                    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
                    '<joint name="j" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>'
                    '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>')
    assert "arm" in told(capsys, str(file), "--base", "fixed")


def test_exactly_uses_all(capsys):
    assert "3 of 3" in told(capsys, "human:48", "--workers", "3", "--exactly")


def test_the_distribution_of_jung(capsys):
    """A chain is never divided; of the mobile whole branches go to other workers."""
    report = json.loads(told(capsys, "mobile", "--workers", "4", "--method", "jung", "--json", "--what-if"))
    assert [chunk["worker"] for chunk in report["chunks"]] == [0, 1, 2, 3]
    assert {len(chunk["links"]) % 5 for chunk in report["chunks"]} == {0}
    assert report["method"] == "jung"
    assert report["what_if"][-1]["used"] <= 81
    assert "1 of 4: no branch is worth" in told(capsys, "chain:50", "--workers", "4", "--method", "jung")


def test_a_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    assert "wrote" in told(capsys, "human:34", "--plot", str(tmp_path / "s.png"))
    assert (tmp_path / "s.png").stat().st_size > 10_000


@pytest.mark.parametrize(("arguments", "words"), [
    (["chian:5"], "did you mean 'chain'"), (["chain"], "none of the forms of chain"), (["chain:0"], "number of links"),
    (["chain:5", "--workers", "0"], "workers must be a whole number"), (["mobile:3"], "mobile:S:L:O"),
    (["human:5"], "dof must be one of"), (["none.urdf"], "no such file"),
    (["mobile", "--method", "jungg"], "did you mean 'jung'"),
    (["mobile", "--method", "jung", "--exactly"], "leave out exactly")])
def test_refused_by_name(capsys, arguments, words):
    assert cli.main(["schedule", *arguments]) == 1
    assert words in capsys.readouterr().err
