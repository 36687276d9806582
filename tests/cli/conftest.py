"""Scenes run once for all tests of a file."""

import json
from contextlib import redirect_stdout
from io import StringIO

import pytest

import bunraku as bk
from bunraku import cli


@pytest.fixture(scope="module")
def reports(request, tmp_path_factory):
    """What a scene reports, and its trajectory; run when first asked for, as long as LASTS of the file says."""
    lasts, known = getattr(request.module, "LASTS", {}), {}

    def report(name):
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            arguments = ["demo", name, "--json", "--no-picture", "--out", str(folder)]
            with redirect_stdout(StringIO()) as said:
                assert cli.main(arguments + (["--seconds", lasts[name]] if lasts.get(name) else [])) == 0
            known[name] = json.loads(said.getvalue()) | {"trajectory": bk.load_trajectory(folder / f"{name}.npz")}
        return known[name]
    return report
