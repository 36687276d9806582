"""The package's front door: every public name is there, and nothing is loaded before it is used."""

import subprocess
import sys

import pytest

import bunraku


@pytest.mark.parametrize("name", bunraku.__all__)
def test_name_is_there(name):
    assert getattr(bunraku, name) is not None
    assert name in dir(bunraku)


def test_names_and_their_homes_agree():
    errors = {name for name in bunraku.__all__ if name.endswith(("Error", "Warning", "Extra"))}
    assert {*bunraku._HOME, *errors, "convert", "models"} == set(bunraku.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'forward_dinamics'"):
        bunraku.forward_dinamics  # noqa: B018


def test_dynamics_is_the_function_whatever_is_imported_first():
    code = "import bunraku.algorithms.aba, bunraku.run.forward, bunraku; print(callable(bunraku.dynamics))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "True"


def test_import_is_light():
    code = "import sys, bunraku; print([m for m in ('numba', 'numpy', 'scipy', 'matplotlib') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
