"""The handle of contact: its constant arrays as one argument of entries."""

from typing import NamedTuple

import numpy as np


class ContactArrays(NamedTuple):
    """`contact_fields.py` has their columns."""

    shape_i: np.ndarray
    shape_f: np.ndarray
    point_f: np.ndarray
    apart_i: np.ndarray
    kind_i: np.ndarray
    pair_i: np.ndarray
    contact_i: np.ndarray
    contact_f: np.ndarray
    joint_i: np.ndarray
    joint_f: np.ndarray
