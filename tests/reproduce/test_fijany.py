"""`bunraku reproduce fijany`, shortened: counts beside those of the paper, step by step."""

import json

import pytest

from bunraku import cli
from bunraku.reproduce import fijany


def test_counts_are_made_of_the_listed_steps_and_near_the_papers(tmp_path, capsys):
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


def test_the_page_shows_the_papers_counts(capsys):
    assert cli.main(["reproduce", "fijany", "--quick"]) == 0
    said = capsys.readouterr().out
    for figure in ("644 + 535", "1192 + 948", "244 + 254", "208 + 188", "256 + 261", "340 + 280"):
        assert figure in said
    assert "m 68 n^2 - 8 n  " in said  # not "8 n m"
    assert "Kane's equation" in said
    assert max(map(len, said.splitlines())) <= fijany.WIDTH
