"""Private parts of Numba: what is missing is named in one line, and the fallback computes the same."""

import re
from pathlib import Path

import numpy as np
import pytest

from bunraku.compiler import numba_inside
from one_entry import integrate_alone
from oracle import close
from processes import run
from structures import random_tree

ROOT = Path(__file__).parents[2]
HIDE = """
from bunraku.compiler import numba_inside
def hide(names):  # as if Numba had moved them: deleting them would break Numba itself
    for name in names:
        numba_inside.HOMES[name] += ".moved"
"""


def test_no_other_module_names_private_parts():
    named = re.compile(r"^\s*(from|import) numba\.core", re.MULTILINE)
    files = [path for path in (ROOT / "src").rglob("*.py") if path.name != "numba_inside.py"]
    assert [str(path) for path in files if named.search(path.read_text())] == []


def test_the_range_is_that_of_the_dependencies():
    (stated,) = re.findall(r'"numba(>=[^"]*)"', (ROOT / "pyproject.toml").read_text())
    assert stated == ",".join(numba_inside.TESTED)


@pytest.mark.parametrize("name", ["AbstractTemplate", "cgutils", "cpu_target"])
def test_the_package_and_its_help_need_no_private_part_and_the_rest_says_it_in_a_line(name):
    code = f"""
import sys
hide([{name!r}])
import bunraku
from bunraku.cli import main, verbs
for verb in verbs():
    try:
        main([verb, "--help"])
    except SystemExit as end:
        assert end.code == 0
assert main(["demo", "swing", "--no-picture", "--no-browser"]) == 1
"""
    _, said = run(HIDE + code)
    assert len(said.strip().splitlines()) == 1, said
    line = said.strip()
    missing = f"{numba_inside.NEEDED[name]}.moved.{name}"
    assert re.fullmatch(rf"bunraku: numba [\d.]+ has no {missing}, which bunraku uses; install "
                        r"a version with which it is tested: pip install 'numba>=.*'", line)


def test_without_the_private_parts_of_lowering_numba_compiles_in_its_own_way(tmp_path):
    code = """
import warnings
hide(numba_inside.LOWERING)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from bunraku.compiler import parts
assert not parts.ON and "three times as long" in str(said[0].message), said
"""
    tree = random_tree(3, links=7)
    q, v, _ = tree.state(np.random.default_rng(3))
    shown, _ = run(HIDE + code + integrate_alone(tree.m, q, v), NUMBA_CACHE_DIR=str(tmp_path))
    close(np.array(shown.split(), float), tree.m.integrate(q, v))
