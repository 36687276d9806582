"""The package's front door: every public name is there, and nothing is loaded before it is used."""

import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import bunraku


@pytest.mark.parametrize("name", bunraku.__all__)
def test_name_is_there(name):
    assert getattr(bunraku, name) is not None
    assert name in dir(bunraku)


def test_what_is_reachable_is_listed():
    """Names of the folders that people's objects come from are names of the package only if it lists them."""
    for home in ("evaluate", "io", "mechanism", "simulation"):
        module = import_module(f"bunraku.{home}")
        for name in set(dir(module)) - set(bunraku.__all__):
            value = getattr(module, name)
            assert name.startswith("_") or isinstance(value, ModuleType) or not hasattr(bunraku, name), name


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'forward_dinamics'"):
        bunraku.forward_dinamics  # noqa: B018


def test_dynamics_is_the_function_whatever_is_imported_first():
    code = "import bunraku.algorithms.aba, bunraku.entries.forward_entries, bunraku; print(callable(bunraku.dynamics))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "True"


def test_import_is_light():
    code = "import sys, bunraku; print([m for m in ('numba', 'numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_a_file_name_occurs_once():
    """A traceback or a search result names the place: no two source files have the same name."""
    names = Counter(path.name for path in Path(bunraku.__file__).parent.rglob("*.py"))
    assert {name for name, n in names.items() if n > 1} == {"__init__.py", "__main__.py"}


def test_private_names_of_other_modules_are_found(tmp_path):
    """A class that defines or declares a name may read it on any object; others may not. The package has no such
    reads."""
    tool = Path(__file__).parents[1] / "tools" / "private_reads.py"
    (tmp_path / "home.py").write_text("class A:\n    def __init__(self, b):\n        self._x = b._x\n")
    (tmp_path / "friend.py").write_text("class B:\n    _x: int\n    def f(self, a):\n        return a._x\n")
    (tmp_path / "other.py").write_text("from bunraku.home import _y\nclass C:\n    def f(self, a):\n"
                                       "        return self._z, a._replace(), a._repr_html_(), a.b._x\n")
    found = subprocess.run([sys.executable, tool, tmp_path], capture_output=True, text=True)
    assert found.returncode == 1
    assert [line.partition(": ")[0] for line in found.stdout.splitlines()] == ["other.py:1", "other.py:4"]
    assert subprocess.run([sys.executable, tool], stdout=subprocess.DEVNULL).returncode == 0


def test_the_versions_agree():
    root = Path(__file__).parents[1]
    changes = [line.split()[1] for line in (root / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert bunraku.__version__ in changes[:2]
    assert changes.index(bunraku.__version__) == changes.count("Unreleased")
    assert f"\nversion: {bunraku.__version__}\n" in (root / "CITATION.cff").read_text()
