"""The handle of a plan: its constant arrays as one argument of entries."""

from typing import NamedTuple

import numpy as np

from bunraku.plan import fields as f


class Arrays(NamedTuple):
    """All arrays of a plan; `fields.py` has their columns. Without connections conn_i, conn_f and prog are those of
    NO_LOOPS; for a mechanism that is not divided among workers, the fields after them are those of NO_CHUNKS."""

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
    chunk_i: np.ndarray
    ops: np.ndarray
    sum_ops: np.ndarray
    whole: np.ndarray
    boxes: np.ndarray    # of one team, as is the mail: they change
    mail: np.ndarray
    touch: np.ndarray    # where the arrays of contact are (`contact/contact_memory.py`); empty if nothing can touch


NO_LOOPS = (np.zeros((1, f.CONN_I), np.int32), np.zeros((0, f.CONN_F)), np.zeros(1, np.int32))
NO_CHUNKS = (np.zeros((0, f.CHUNK_I), np.int32), np.zeros((0, f.CHUNK_OP), np.int32),
             np.zeros((0, f.CHUNK_OP), np.int32), np.zeros(0, np.int64), np.zeros((0, f.BOX), np.int64), np.zeros(0))
NO_CONTACT = np.zeros(0, np.int64)
