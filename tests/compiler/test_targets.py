"""Kinds of processors and widths of lanes."""

import os
import subprocess
import sys

import pytest

from processes import PACKAGE


@pytest.mark.parametrize("width", ["3", "many"])
def test_a_lane_width_that_cannot_be_is_refused(width):
    done = subprocess.run([sys.executable, "-c", "import bunraku.spatial.lanes"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), "BUNRAKU_LANE_WIDTH": width})
    assert "BUNRAKU_LANE_WIDTH" in done.stderr
