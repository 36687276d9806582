"""Damaged motion files: read, or refused by a bunraku error of one line; never another exception."""

import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import bunraku as bk
import bvh_files

ROOT = Path(__file__).parents[2]
TRC = ("PathFileType\t4\t(X/Y/Z)\ta.trc\nDataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\n100\t100\t3\t2\tmm\n"
       "Frame#\tTime\tA\t\t\tB\n\t\tX1\tY1\tZ1\tX2\tY2\tZ2\n1\t0.0\t1\t2\t3\t4\t5\t6\n2\t0.01\t1\t2\t3\t\t\t\n"
       "3\t0.02\t1\t2\t3\t4\t5\t6\n")
STO = "walk\nversion=1\nnRows=3\nnColumns=3\ninDegrees=no\nendheader\ntime\ta\tb\n0\t1\t2\n0.1\t3\t4\n0.2\t5\t6\n"
FILES = {"cmu.bvh": bvh_files.cmu(), "odd.bvh": bvh_files.odd(), "a.trc": TRC, "a.sto": STO}
WORDS = ["", "{", "}", "JOINT", "End Site", "nan", "-1", "1e400", "1e40", "0", "\0", "é", "MOTION", "999999999999",
         "\t", "\n", "CHANNELS 6", "OFFSET", "endheader", "time"]


@pytest.mark.parametrize("name", FILES)
def test_damage_is_refused_or_read(name, tmp_path):
    rng, path, refused = random.Random(name), tmp_path / name, []
    for case in range(150):
        text = FILES[name]
        if case % 3 == 0:
            text = text[:rng.randrange(len(text))]
        else:
            words = re.split(r"(\s+)", text)
            for _ in range(rng.randrange(1, 4)):
                k = rng.randrange(len(words))
                words[k] = rng.choice(WORDS) if case % 3 == 1 else words[rng.randrange(len(words))]
            text = "".join(words)
        path.write_text(text, encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bk.LoadWarning)
            try:
                found = bk.load_motion(path)
            except bk.BunrakuError as error:
                refused.append(str(error))
                continue
        assert len(found.t) >= 0
        if isinstance(found, bk.Motion):
            assert np.isfinite(found.q).all()
    assert len(refused) > 50
    assert all(name in said and "\n" not in said for said in refused)


def test_the_python_of_the_page_runs(tmp_path):
    code = "".join(re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "motion.md").read_text("utf-8"), re.DOTALL))
    answer = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=tmp_path,
                            timeout=900)
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "gait" / "part.bvh").exists()
