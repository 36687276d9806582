"""Cost of [F]'s methods for the mass matrix: operations, steps and messages are those of the paper."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.reproduce import fijany
from structures import random_chain

FAMILY = ("oke", "vke", "oneb", "vneb", "ocrb", "vcrb")


def polynomial(method, degree, part, **options):
    """Coefficients of the count over n, which must be a polynomial from n = 4 on."""
    n = np.arange(4, 6 + degree)
    counts = [bk.operation_count(method, int(k), **options)[part] for k in n]
    fit = np.polynomial.polynomial.polyfit(n[:degree + 1], counts[:degree + 1], degree)
    assert np.polynomial.polynomial.polyval(n[-1], fit) == pytest.approx(counts[-1], abs=1e-6)
    return fit[::-1]


def test_one_method_is_cubic_and_the_others_quadratic():
    assert polynomial("oke", 3, 0)[0] == pytest.approx(1.0)       # 6 multiplications per triple, n^3 / 6 triples
    for method in FAMILY[1:]:
        for part in (0, 1):
            assert polynomial(method, 2, part)[0] > 1.0           # and nothing of degree 3


def test_cost_of_a_pair_is_that_of_the_paper():
    for method in ("vneb", "vcrb"):
        for part, paper in enumerate(fijany.PAPER[method, "1"]["general"]["n^2"]):
            assert polynomial(method, 2, part)[0] == pytest.approx(paper)


@pytest.mark.parametrize(("method", "processors"), fijany.PAPER)
def test_counts_at_six_joints_are_the_papers_but_for_steps_that_are_named(method, processors):
    """`bunraku reproduce fijany` lists the steps; within 11 % of the paper's totals, and its very ones in one case."""
    paper = fijany.PAPER[method, processors]["six"]
    counted = bk.operation_count(method, 6, 1 if processors == "1" else processors)
    steps = fijany.steps(method, processors, 6)
    for k, part in enumerate(("mul", "add")):
        assert counted[k] - paper[k] == sum((step["ours"] - step["paper"]) * step[part] for step in steps)
        assert abs(counted[k] - paper[k]) < 0.11 * paper[k]
    if (method, processors) == ("vcrb", "n^2"):
        assert counted == paper


@pytest.mark.parametrize(("method", "processors"), fijany.PAPER)
def test_steps_add_up_to_what_was_counted_and_to_what_was_printed(method, processors):
    for n in (3, 6, 9, 16, 20):
        fijany.steps(method, processors, n)  # refuses to explain what was not counted
        L = int(np.ceil(np.log2(n)))
        powers = {"n^2": n * n, "n": n, "log": L, "1": 1}
        for k, part in enumerate(("mul", "add")):
            terms = sum(getattr(t, part) * t.paper(n, L) for t in fijany.TERMS[method, processors])
            printed = sum(pair[k] * powers[key]
                          for key, pair in fijany.PAPER[method, processors]["general"].items())
            printed -= {("vcrb", "1", "mul"): 5 * n,           # 231/2 for 221/2
                        ("vneb", "n^2", "add"): 18,            # in no step
                        ("vcrb", "n", "add"): 3 * (L - 3)      # right for 6 joints
                        }.get((method, processors, part), 0)
            assert terms == printed, (n, part)


def test_a_fixed_frame_pays():
    for method, n in (("vneb", 8), ("vcrb", 8)):  # O(n) rotations instead of O(n^2)
        assert sum(bk.operation_count(method, n)) < sum(bk.operation_count(method, n, projection="body"))
        assert polynomial(method, 2, 0)[0] < polynomial(method, 2, 0, projection="body")[0]


@pytest.mark.parametrize("method", ["vneb", "vcrb"])
def test_steps_of_the_triangle_grow_with_the_logarithm(method):
    counts = np.array([bk.operation_count(method, n, "n^2") for n in (4, 8, 16, 32)])
    assert (np.diff(counts, axis=0) == np.diff(counts, axis=0)[0]).all()      # so much for each doubling
    beyond = [bk.operation_count(method, n, "n^2") for n in (10, 12, 16)]
    assert beyond[0] == beyond[1] == beyond[2]                                # ceil(log2 n)


@pytest.mark.parametrize("method", ["vneb", "vcrb"])
def test_messages_of_the_triangle_grow_by_the_doubling(method):
    m8, q8 = random_chain(8)
    m32, q32 = random_chain(32)
    few, many = (bk.processor_array(m, q, method=method).messages for m, q in ((m8, q8), (m32, q32)))
    doublings = 4                                     # each costs one step more when n is doubled
    assert many["exchange"] - few["exchange"] == 2 * doublings
    assert many["neighbour"] - few["neighbour"] == (31 - 7) * doublings  # 1 + 2 + 4 + ... = n - 1


def test_a_line_of_processors_needs_the_papers_linear_time():
    for method in ("vneb", "vcrb"):
        a, b = bk.operation_count(method, 20, "n"), bk.operation_count(method, 30, "n")  # 5 doublings each
        assert tuple(np.subtract(b, a) / 10) == fijany.PAPER[method, "n"]["general"]["n"]


def test_the_array_has_as_many_processors_as_it_says():
    m, q = random_chain(7)
    assert bk.processor_array(m, q, processors="n").processors == 7
    run = bk.processor_array(m, q, processors="n^2")
    assert run.processors == 28
    assert run.operations == tuple(np.sum([(s.mul, s.add) for s in run.steps], axis=0))
    assert run.operations == bk.operation_count("vneb", 7, "n^2")
