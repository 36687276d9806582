"""The methods by name, and their results as arrays."""

from __future__ import annotations

import numpy as np

from bunraku.massmatrix.ocrb import ocrb
from bunraku.massmatrix.oke import oke
from bunraku.massmatrix.oneb import oneb
from bunraku.massmatrix.serial_chain import Chain
from bunraku.massmatrix.vcrb import vcrb, vcrb_in_body_frames
from bunraku.massmatrix.vke import vke
from bunraku.massmatrix.vneb import vneb, vneb_in_body_frames

METHODS = {"oke": oke, "vke": vke, "oneb": oneb, "vneb": vneb, "ocrb": ocrb, "vcrb": vcrb}
NAIVE = {"vneb": vneb_in_body_frames, "vcrb": vcrb_in_body_frames}


def kernel(method: str, projection: str = "fixed"):
    """The function of a method; `projection="body"` for the naive one of vneb and vcrb."""
    return NAIVE[method] if projection == "body" else METHODS[method]


def mass_matrix(chain: Chain, q: np.ndarray, method: str, projection: str = "fixed") -> np.ndarray:
    """M of a state (n,) or of a batch (B, n), without armature."""
    return to_array(chain, kernel(method, projection)(chain, chain.turns(q)), q.shape[:-1])


def to_array(chain: Chain, rows: list[list], batch: tuple[int, ...] = ()) -> np.ndarray:
    """A matrix of scalars as an array, velocities in the mechanism's order."""
    M = np.empty((*batch, chain.n, chain.n))
    for i, row in zip(chain.place, rows, strict=True):
        for j, entry in zip(chain.place, row, strict=True):
            M[..., i, j] = entry
    return M
