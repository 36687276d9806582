"""The cluster of [YN02, table 1] as a cost model: PentiumIII processors of 1 GHz, Myrinet; the paper's own algorithm.

Every process assembles its own links; neighbours are then joined in pairs. A joint costs more the more handles are left
after it: subchains in the middle of a chain have two, those at its ends one [YN02, sec. 6.1].

    counted     cost of a joint with e handles left, relative to one handle (`multiplications`)
    published   latency and rate of Myrinet (Myricom: GM 1.6.4, PCI64B cards; myricom.com/scs/performance, April 2003)
    fitted      time of a joint: to the one-process row
    fitted      `repeated`, the share of the one-process time that every process spends on the whole chain: to the
                two-process row. The paper does not mention it. Each further link costs two processes 0.62 of its cost
                for one, where half is to be expected: this is not communication, but work that is not distributed.

Rows of 4 and 8 processes and 4* are predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

LATENCY, RATE = 8.5e-6, 240e6   # of a message [s, byte/s]
FLOAT = 8                       # [byte]


def multiplications(handles: int) -> int:
    """Of assembling and disassembling one ball joint [YN02, secs. 4.1, 4.2] with so many handles left.

    Frames are at the joints, so that K_C and K_J pick rows; Lambda of a single link is constant in its own frame.
    """
    turned = 4 * 2 * 27                       # Lambda_ii of the parent side into the child's axes, 3x3 block by block
    force = 30 + 3 * 6 + 2 * 9                # Gamma^-1; P K_J^T tau; Gamma^-1 on both ways
    accelerations = 2 * 36                    # eq. 52
    each = 4 * 27 + 3 * 18 + 36 + 18 + 36     # Lambda_mi turned, times Gamma^-1; eqs. 38, 51, 52
    pairs = handles * (handles + 1) // 2 * 6 * 3 * 6  # eq. 50, symmetric
    return turned + force + accelerations + handles * each + pairs


def weight(handles: int) -> float:
    """Cost of a joint relative to one with one handle left."""
    return multiplications(handles) / multiplications(1)


@dataclass(frozen=True)
class Cluster:
    """Costs [s]."""

    joint: float                # a joint with one handle left, assembly and disassembly
    repeated: float = 0.0       # share of the one-process time that every process spends
    latency: float = LATENCY
    rate: float = RATE

    def message(self, handles: int) -> float:
        """Lambda and accelerations of a subchain's handles one way, forces on them the other [YN02, sec. 5.2]."""
        up, down = 36 * handles * (handles + 1) // 2 + 6 * handles, 6 * handles
        return 2.0 * self.latency + FLOAT * (up + down) / self.rate

    def seconds(self, sizes: Sequence[int]) -> float:
        """Forward dynamics of a chain with so many links on each process."""
        links = sum(sizes)
        serial = self.joint * (links - 2 + weight(0))
        if len(sizes) == 1:
            return serial
        own = replace(self, joint=(1.0 - self.repeated) * self.joint)
        return self.repeated * serial + own._joined(sizes)

    def _joined(self, sizes: Sequence[int]) -> float:
        """The slowest path: chunks side by side, then neighbours in pairs."""
        last = len(sizes) - 1
        parts = [(self.joint * (n - 1) * weight(1 if k in (0, last) else 2), k > 0, k < last)
                 for k, n in enumerate(sizes)]  # time, open to the left, open to the right
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [self._pair(a, b) for a, b in pairs] + parts[len(parts) - len(parts) % 2:]
        return parts[0][0]

    def _pair(self, a, b):
        """The faster process sends its subchain to the slower one."""
        fast, slow = sorted((a, b), key=lambda part: part[0])
        ready = max(slow[0], fast[0] + self.message(fast[1] + fast[2]))
        return ready + self.joint * weight(a[1] + b[2]), a[1], b[2]


def fitted(one: Mapping[int, float], two: Mapping[int, float] | None = None) -> dict[int, Cluster]:
    """A cluster for each chain length: the time of a joint from the one-process row; `repeated`, the same for all, from
    the two-process row, as the least squares of relative errors."""
    found = {n: Cluster(t / (n - 2 + weight(0))) for n, t in one.items()}
    if two is None:
        return found
    above = below = 0.0
    for n, cluster in found.items():
        none, full = (replace(cluster, repeated=x).seconds([n // 2, n // 2]) for x in (0.0, 1.0))
        slope, off = (full - none) / two[n], (two[n] - none) / two[n]   # seconds are linear in `repeated`
        above, below = above + slope * off, below + slope * slope
    return {n: replace(cluster, repeated=above / below) for n, cluster in found.items()}
