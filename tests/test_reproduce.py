"""Experiments of the papers run again, shortened: both methods agree, and the figures are there."""

import json

import pytest

from bunraku import cli


def test_yn_hrp(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert cli.main(["reproduce", "yn-hrp", "--quick", "--json", "--out", str(tmp_path / "new")]) == 0
    result = json.loads(capsys.readouterr().out)
    figure = result["figure"]
    assert (figure["dof"], figure["steps"]) == (34, 200)
    assert figure["largest_difference"] < 1e-6     # one trajectory by two methods
    assert figure["right_foot_raised_m"] > 0.03    # let go, it rises
    assert figure["loop_gap_m"] < 5e-3
    assert all(row["difference"] < 1e-9 for row in result["scaling"])
    assert result["scaling"][-1]["ratio"] < 1.0    # in a chain of 48 degrees of freedom it pays
    assert (tmp_path / "new" / "yn-hrp.png").stat().st_size > 10_000


def test_yn_hrp_in_words(capsys):
    assert cli.main(["reproduce", "yn-hrp", "--quick"]) == 0
    said = capsys.readouterr().out
    assert "6.8" in said
    assert "17.0" in said


def test_fijany(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert cli.main(["reproduce", "fijany", "--quick", "--json", "--out", str(tmp_path / "new")]) == 0
    result = json.loads(capsys.readouterr().out)
    table = {(row["method"], row["processors"]): row for row in result["table"]}
    for key, row in table.items():
        name = f"{ {'vneb': 'VN-EB', 'vcrb': 'VCR-B'}[key[0]]} { {'1': 'SA', 'n': 'PPA', 'n^2': 'PA'}[key[1]]}"
        for k, part in enumerate(("mul", "add")):  # the steps that are listed are all of either total
            for who, total in (("ours", row["counted"]), ("paper", row["paper"])):
                assert sum(step[who] * step[part] for step in result["steps"][name]) == total[k]
            assert abs(row["counted"][k] - row["paper"][k]) < 0.11 * row["paper"][k]
        if key[1] == "1":  # pairs cost what they cost in the paper
            assert row["general"]["n^2"] == row["paper_general"]["n^2"]
    assert table["vneb", "n"]["general"]["n"] == table["vneb", "n"]["paper_general"]["n"]
    assert table["vcrb", "n"]["general"]["n"] == table["vcrb", "n"]["paper_general"]["n"]
    for method in ("vneb", "vcrb"):  # more processors, fewer steps
        totals = [sum(table[method, p]["counted"]) for p in ("1", "n", "n^2")]
        assert totals == sorted(totals, reverse=True)
    assert (tmp_path / "new" / "fijany.png").stat().st_size > 10_000


def test_fijany_in_words(capsys):
    assert cli.main(["reproduce", "fijany", "--quick"]) == 0
    said = capsys.readouterr().out
    for figure in ("644 + 535", "1192 + 948", "244 + 254", "208 + 188", "256 + 261", "340 + 280"):
        assert figure in said
