"""`bunraku reproduce` of experiments with several workers, shortened: the papers' numbers, measured and predicted."""

import itertools
import json

import numpy as np
import pytest

import bunraku as bk
from bunraku import cli
from bunraku.entries.pool import available
from bunraku.reproduce import jung_fig10, mobiles, speedups, yn02_machine, yn02_table1, yn02_table2


def shown(name, folder, capsys):
    """The result of a quick run, with its picture drawn."""
    pytest.importorskip("matplotlib")
    assert cli.main(["reproduce", name, "--quick", "--json", "--out", str(folder)]) == 0
    assert (folder / f"{name}.png").stat().st_size > 10_000
    return json.loads(capsys.readouterr().out)


def check_labels(rows, key):
    """What is measured had a core for every worker; everything is predicted."""
    for row in rows:
        workers = int(str(row[key]).split()[0].rstrip("*"))
        assert (row["measured_us"] is not None) == (workers <= available())
        assert row["predicted_us"] > 0
        if workers == 1:
            assert row["measured_speedup"] == row["predicted_speedup"] == 1.0
            serial = row["measured_us"]
        elif row["measured_us"] is not None:
            assert row["measured_speedup"] == pytest.approx(serial / row["measured_us"], rel=1e-12)


def test_table_1_has_the_papers_chains_and_longer_ones(tmp_path, capsys):
    result = shown("yn02-table1", tmp_path, capsys)
    rows = {(row["links"], row["processes"]): row for row in result["table"]}
    assert rows[32, "1"]["paper_ms"] == 6.08
    assert rows[32, "4*"]["paper_ms"] == 3.16
    assert (8, "8") not in rows
    assert rows[32, "4*"]["sizes"] == [9, 7, 7, 9]
    longer = {(row["links"], row["processes"]): row for row in result["longer"]}
    assert longer[1024, "4*"]["sizes"] == [288, 224, 224, 288]
    for found in (rows, longer):
        check_labels(found.values(), "processes")
        assert all(found[n, yn02_table1.CHOSEN]["predicted_us"] <= 1.001 * found[n, "4"]["predicted_us"]
                   for n, name in found if name == yn02_table1.CHOSEN)
    assert longer[1024, "8"]["predicted_speedup"] > longer[1024, "2"]["predicted_speedup"] > 1.2


def test_table_1_at_the_papers_costs_is_predicted_from_two_of_its_rows():
    found = yn02_table1.at_paper_costs()
    rows = {(row["links"], row["processes"]): row for row in found["rows"]}
    assert len(rows) == sum(map(len, yn02_table1.PAPER.values()))
    for (n, processes), row in rows.items():
        if processes == "1":
            assert row["ms"] == pytest.approx(row["paper_ms"], rel=1e-12) == row["ms_repeating"]
        else:
            assert row["ms_repeating"] == pytest.approx(row["paper_ms"], rel=0.15), (n, processes)
            assert row["ms"] < row["ms_repeating"]
    assert rows[32, "2"]["speedup_repeating"] == pytest.approx(1.55, rel=0.05)
    for n in (16, 32):   # the paper saves 7 % by uneven shares
        for key in ("ms", "ms_repeating"):
            assert 0.05 < 1.0 - rows[n, "4*"][key] / rows[n, "4"][key] < 0.2
    joint = list(found["joint_ms"].values())
    assert max(joint) < 1.07 * min(joint)    # a cost per joint fits all three chains of row 1


def test_a_chain_of_one_cluster_by_hand():
    cluster = yn02_machine.Cluster(joint=1.0, latency=0.0, rate=np.inf)
    far, last = yn02_machine.weight(2), yn02_machine.weight(0)
    assert cluster.seconds([8]) == pytest.approx(6 + last)
    assert cluster.seconds([4, 4]) == pytest.approx(3 + last)                 # 3 joints each, then the one between
    assert cluster.seconds([2, 2, 2, 2]) == pytest.approx(far + 1 + last)     # an end and a middle, then both halves
    assert cluster.seconds([3, 1, 1, 3]) == pytest.approx(2 + 1 + last)


def test_a_speed_up_is_the_quotient_of_the_times_beside_it():
    rng = np.random.default_rng(0)
    times = {name: rng.uniform(1.0, 3.0, 9) for name in ("serial", "2", "copies")}
    found = speedups._rates(times, 100)
    assert found["2"]["speedup"] == found["serial"]["us"] / found["2"]["us"]
    assert found["copies"]["speedup"] == pytest.approx(2.0 * times["serial"].min() / times["copies"].min())


def test_table_2_has_figures_alone_and_hand_in_hand(tmp_path, capsys):
    result = shown("yn02-table2", tmp_path, capsys)
    assert [(row["dof"], row["processes"], row["paper_ms"]) for row in result["table"]] == [
        (34, 1, 3.66), (34, 2, 2.49), (34, 4, 2.22), (48, 1, 4.85), (48, 2, 2.93), (48, 4, 2.49)]
    check_labels(result["table"], "processes")
    check_labels(result["hand_in_hand"]["rows"], "workers")
    assert result["hand_in_hand"]["apart"] < 1e-10
    go = result["letting_go"]
    assert [phase["hands"] for phase in go["phases"]] == [2, 1, 0]
    assert go["bitwise"]                                        # two chunks on one worker and on two, through both cuts
    assert go["apart"] < 1e-10


def test_figures_hold_the_hands_of_their_neighbours():
    m, q = yn02_table2.hand_in_hand(3)
    assert (len(m.connections), m.nv) == (2, 3 * 34)
    assert np.abs(bk.constraints(m, q).gap).max() < 1e-12
    pelvis = [bk.poses(m, q)[f"pelvis {k}"][1] for k in range(3)]
    assert all(np.linalg.norm(b - a) > 1.0 for a, b in itertools.pairwise(pelvis))  # side by side


def test_the_two_mobiles_of_fig_10_are_those_of_the_text():
    assert (mobiles.SMALL.joints, mobiles.LARGE.joints) == (455, 4100)
    assert mobiles.SMALL.joints / mobiles.SMALL.depth == pytest.approx(30, rel=0.02)
    assert mobiles.LARGE.joints / mobiles.LARGE.depth == pytest.approx(200, rel=0.03)
    estimates = mobiles.SMALL.estimates(1000)
    assert estimates[0] == pytest.approx(455 * 0.4e-3)          # one processor: all bodies one after the other
    assert estimates[0] / estimates.min() == pytest.approx(10, rel=0.02)
    assert np.argmin(estimates) + 1 <= 81                       # the breadth of the tree


def test_the_family_of_fig_8_follows_a_logarithm(tmp_path, capsys):
    result = shown("jung-fig8", tmp_path, capsys)
    assert result["rows"][-1]["joints"] == 455
    shapes = mobiles.family()
    fit = speedups.logarithm([x.joints for x in shapes], [x.depth for x in shapes])
    assert len(shapes) >= 6
    assert fit["off"] < 0.03
    assert fit["off_linear"] > 4 * fit["off"]


def test_a_logarithm_is_recognised():
    x = np.array([10.0, 100.0, 1000.0, 10_000.0])
    y = 2.0 + 3.0 * np.log(x)
    straight = np.polyval(np.polyfit(x, y, 1), x)
    assert speedups.logarithm(x, y) == pytest.approx(
        {"a": 2.0, "b": 3.0, "off": 0.0, "off_linear": np.abs(straight - y).max() / y.max()}, abs=1e-9)


def test_fig_9_has_times_over_joints(tmp_path, capsys):
    result = shown("jung-fig9", tmp_path, capsys)
    last = result["rows"][-1]
    assert last["jung_1_ms"] == pytest.approx(182.0)
    assert last["jung_plenty_ms"] <= last["jung_20_ms"]
    assert last["chunks_plenty_ms"] <= 1.05 * last["jung_plenty_ms"]
    assert (last["measured_2_us"] is None) == (available() < 2)
    assert last["measured_1_us"] > result["rows"][0]["measured_1_us"]


def test_fig_10_ends_where_the_paper_says(tmp_path, capsys):
    (mobile,) = shown("jung-fig10", tmp_path, capsys)["mobiles"]
    at = dict(zip(mobile["processors"], range(4), strict=True))
    assert mobile["jung"][at[81]] == pytest.approx(mobile["paper"]["most"], rel=0.02)
    assert all(a >= 0.99 * b for a, b in zip(mobile["chunks"], mobile["jung"], strict=True))
    assert mobile["measured"][at[20]] is None
    assert max(mobile["chunks"] + mobile["here"]) < mobile["bound"]


def test_pages_label_what_is_measured_and_predicted(capsys):
    assert cli.main(["reproduce", "jung-fig10", "--quick"]) == 0
    said = capsys.readouterr().out
    for words in ("measured", "predicted", "not above 10", "Costs:", jung_fig10.SMALL.joints):
        assert str(words) in said


def test_on_busy_cores_stated_times_of_messages_are_taken_and_that_is_said(monkeypatch):
    monkeypatch.setattr(speedups, "message_seconds", lambda sizes: (5e-6, 1e-8))
    monkeypatch.setattr(speedups, "PAUSE", 0.0)
    costs = speedups.idle_costs()
    assert costs.latency == 0.3e-6
    assert "stated" in speedups.told(costs.to_dict())
    monkeypatch.setattr(speedups, "message_seconds", lambda sizes: (0.2e-6, 2e-9))
    assert speedups.idle_costs().latency == pytest.approx(0.2e-6)
    assert "stated" not in speedups.told(speedups.idle_costs().to_dict())
