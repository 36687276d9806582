"""Zero-lag Butterworth filter and interpolating splines.

The filter runs forwards and backwards and therefore has no delay: two passes of second order, together of fourth
order. `cutoff` is the frequency at which the amplitude of both passes falls to 0.707; that of a single pass is higher
by (sqrt(2) - 1)^(-1/4) (D. A. Winter, Biomechanics and Motor Control of Human Movement, sec. 2.2.4.4).
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline
from scipy.signal import butter, sosfiltfilt

from bunraku.checks import as_positive
from bunraku.errors import ShapeError

EACH_PASS = (np.sqrt(2.0) - 1.0) ** -0.25
EVEN = 1e-6   # of the frame time: by how much frames may be unevenly spaced
DEGREE = 5    # of the splines: accelerations are cubic between the frames


def low_pass(t: np.ndarray, values: np.ndarray, cutoff: float) -> np.ndarray:
    """`values` (frames, ...), low-pass filtered at `cutoff` [Hz]."""
    rate = sampling_rate(t)
    cutoff = as_positive("cutoff [Hz]", cutoff, ShapeError)
    if cutoff * EACH_PASS >= 0.5 * rate:
        raise ShapeError(f"cutoff = {cutoff:g} Hz is too high for {rate:g} frames a second; give less than "
                         f"{0.5 * rate / EACH_PASS:.3g} Hz")
    sections = butter(2, cutoff * EACH_PASS, fs=rate, output="sos")
    pad = min(int(np.ceil(rate / cutoff)), len(t) - 1)  # a period of the slowest that goes, mirrored at the ends
    return sosfiltfilt(sections, values, axis=0, padlen=pad)


def sampling_rate(t: np.ndarray) -> float:
    """Frames a second; an error if they are not evenly spaced."""
    if len(t) < 2:
        raise ShapeError(f"{len(t)} frame(s) have no rate; at least 2 are needed")
    step = (t[-1] - t[0]) / (len(t) - 1)
    off = np.abs(t - t[0] - step * np.arange(len(t)))
    if off.max() > EVEN * step * len(t):
        k = int(off.argmax())
        raise ShapeError(f"frames are not evenly spaced (frame {k} at {t[k]:g} s): resample them first, as in "
                         "motion.resample(100)")
    return float(1.0 / step)


def spline(t: np.ndarray, values: np.ndarray) -> BSpline:
    """Interpolating spline of degree 5; of lower degree for few values."""
    if len(t) < 2:
        raise ShapeError("one frame has no velocity; at least 2 are needed")
    degree = min(DEGREE, len(t) - 1)
    return make_interp_spline(t, values, k=degree if degree % 2 else degree - 1)
