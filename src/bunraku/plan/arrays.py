"""The handle of a plan: its constant arrays as one argument of entries."""

from typing import NamedTuple

import numpy as np

from bunraku.plan import fields as f


class Arrays(NamedTuple):
    """All arrays of a plan; `fields.py` has their columns. Without connections the last three are those of NO_LOOPS."""

    body_i: np.ndarray
    body_f: np.ndarray
    dof_f: np.ndarray
    link_i: np.ndarray
    link_f: np.ndarray
    spring_i: np.ndarray
    spring_f: np.ndarray
    conn_i: np.ndarray
    conn_f: np.ndarray
    prog: np.ndarray


NO_LOOPS = (np.zeros((1, f.CONN_I), np.int32), np.zeros((0, f.CONN_F)), np.zeros(1, np.int32))
