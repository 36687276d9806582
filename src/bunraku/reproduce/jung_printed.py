"""The counts that [J, tables IV to VII] print, and the solvers that they compare."""

from __future__ import annotations

RUNGE_KUTTA = ("iec", "rki", "rkg", "rkf")
SOLVERS = (*RUNGE_KUTTA, "gear", "bdf")
REFERENCES = ("cvode", "lsoda")

# [J, tables IV to VII]: row, then IEC, RKI, RKG, RKF, Gear, BDF
PAPER: dict[str, tuple[tuple[float, ...], ...]] = {
    "IV": ((2, 63.4, 90.0, 85.6, 58.8, 15.4, 27.1), (4, 108.2, 301.2, 109.6, 120.6, 34.1, 79.2),
           (6, 135.0, 498.6, 155.6, 165.0, 46.4, 108.6), (8, 179.8, 680.4, 168.4, 210.0, 64.7, 161.6),
           (10, 215.0, 903.6, 187.6, 252.6, 81.1, 229.2), (12, 234.4, 1046.1, 200.0, 296.4, 91.6, 203.3)),
    "V": ((3, 186.8, 784.8, 197.2, 211.2, 59.6, 395.4), (5, 189.6, 836.7, 195.2, 218.4, 61.3, 460.7),
          (7, 197.2, 820.5, 187.6, 217.2, 54.5, 437.5), (9, 245.6, 1137.6, 202.8, 280.2, 65.0, 1062.0),
          (11, 310.4, 1692.9, 271.2, 388.2, 85.2, 1584.1)),
    "VI": ((0.1, 125.8, 263.4, 108.8, 133.2, 44.5, 62.4), (0.5, 128.6, 438.0, 127.2, 160.8, 46.5, 79.1),
           (0.9, 171.4, 591.6, 174.8, 185.4, 50.6, 156.2), (1.3, 209.4, 963.0, 233.2, 237.0, 71.8, 266.8),
           (1.7, 214.2, 1189.2, 325.6, 298.2, 82.7, 361.7)),
    "VII": ((0.0, 158.0, 505.5, 157.2, 174.6, 48.1, 120.2), (2.5, 310.4, 318.0, 416.4, 380.4, 371.6, 27.3),
            (5.0, 582.2, 640.8, 985.2, 702.6, 766.5, 30.5), (7.5, 954.4, 946.8, 1557.2, 1026.6, 1227.7, 30.4),
            (10.0, 1110.0, 1260.9, 2040.0, 1369.2, 1609.0, 26.5)),
}
TITLES = {"IV": ("session A", "links of a chain"), "V": ("session B", "chains below the plateau"),
          "VI": ("session C", "elongation [rad]"), "VII": ("session D", "damping [N m s/rad]")}


def least(values) -> float | None:
    """The smallest of those that are there."""
    return min((x for x in values if x is not None), default=None)


def number(x: float | None) -> str:
    """A count as the tables show it."""
    return "-" if x is None else f"{x:.1f}"
