"""Recorded samples for an identification: arrays, times with coordinates, motions and trajectories, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from bunraku.checks import as_array, as_positive
from bunraku.errors import ModelError, ShapeError
from bunraku.identification.equations import Filter, Recording
from bunraku.mechanism import Mechanism
from bunraku.mechanism.coordinate_names import coordinate_names
from bunraku.motion import Motion
from bunraku.motion.smoothing import sampling_rate
from bunraku.simulation import Simulation, Trajectory

KEPT = 2.0    # samples in a period of the cutoff: as many as are independent of each other
CALM = 1.0    # periods of the cutoff left out at both ends, where filters settle


def recording(mechanism: Mechanism, q, v, a, tau, t, cutoff, external: Mapping | None, unmeasured) -> Recording:
    """The arguments of `identify` as checked arrays."""
    m = mechanism
    if isinstance(q, (Motion, Trajectory, Simulation)):
        if v is not None or a is not None or t is not None:
            raise ShapeError(f"identify: a {type(q).__name__} has times, velocities and accelerations; leave out v, a "
                             "and t")
        t, q, tau = _recorded(m, q, tau)
    elif t is None and (v is None or a is None):
        raise ShapeError("identify: without v and a the times of the samples are needed: t=, in seconds")
    elif t is not None and (v is not None or a is not None):
        raise ShapeError("identify: with times t, velocities and accelerations follow from q; leave out v and a, or t")
    if tau is None:
        raise ShapeError(f"identify: torques are needed: tau, an array (samples, {m.nv})")
    measured = _measured(m, unmeasured)
    q, tau = _samples(m, "q", q, m.nq), _torques(m, tau, measured)
    filtered = None
    if t is not None:
        q, v, a, filtered = _differentiated(m, t, q, cutoff)
    else:
        if cutoff is not None:
            raise ShapeError("identify: cutoff smooths q and tau in time; it needs t=, and no v and a")
        v, a = _samples(m, "v", v, m.nv), _samples(m, "a", a, m.nv)
    for what, x in (("v", v), ("a", a), ("tau", tau)):
        if len(x) != len(q):
            raise ShapeError(f"identify: q has {len(q)} samples and {what} {len(x)}; give one row for each sample")
    return Recording(q, v, a, tau, external, measured, filtered)


def _samples(m: Mechanism, what: str, value, width: int) -> np.ndarray:
    array = as_array(what, value)
    if array.ndim != 2 or array.shape[1] != width:
        raise ShapeError(f"identify: {what} has shape {array.shape}; it must be (samples, {width}) for {m.name}")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        sample, k = wrong[0]
        names = coordinate_names(m)
        label = {"q": names.q, "v": names.v, "a": names.v}.get(what, names.tau)[k]
        raise ShapeError(f"identify: {what} of {label!r} is {array[sample, k]} in sample {sample}; fill the gap, or "
                         "leave the sample out")
    return array


def _torques(m: Mechanism, tau, measured) -> np.ndarray:
    array = as_array("tau", tau)
    width = m.nv + (m.nc if array.ndim == 2 and m.nc and array.shape[1] == m.nv + m.nc else 0)
    if array.ndim == 2 and array.shape[1] == width and not measured.all():
        array = array.copy()
        array[:, :m.nv][:, ~measured] = 0.0
    try:
        return _samples(m, "tau", array, width)
    except ShapeError as error:
        if "is nan" in str(error):
            raise ShapeError(f"{error}; a joint whose torque was not measured at all is named in unmeasured=") from None
        raise


def _measured(m: Mechanism, unmeasured: Iterable[str]) -> np.ndarray:
    measured = np.ones(m.nv, bool)
    for name in [unmeasured] if isinstance(unmeasured, str) else unmeasured:
        m.find_joint(name, "identify: unmeasured: ")
        measured[m.v_slice(name)] = False
    if not measured.any():
        raise ModelError("identify: no joint has a measured torque; at least one is needed")
    return measured


def _recorded(m: Mechanism, source, tau):
    """(t, q, tau) of a motion or a trajectory."""
    if isinstance(source, Motion):
        return source.t, source.q, tau
    trajectory = source.trajectory if isinstance(source, Simulation) else source
    segments = trajectory.segments
    if len(segments) != 1:
        raise ShapeError(f"identify: the structure changes in this trajectory ({len(segments)} segments); give one of "
                         "them: identify(m, bk.Trajectory([trajectory.segments[0]]), ...)")
    if tau is None:
        tau = segments[0].tau
        if tau is None:
            raise ShapeError("identify: this trajectory has no torques; give tau, (samples, nv), or record them: "
                             "sim.record_to(file, torques=True), then bk.load_trajectory(file)")
    return segments[0].t, segments[0].q, tau


def _differentiated(m: Mechanism, t, q, cutoff):
    """(q, v, a) of the spline through q; with a cutoff of smoothed q, and the filter that equations need as well."""
    motion = Motion(m, t, q, "identify")
    if cutoff is None:
        return motion.q, motion.v, motion.a, None
    cutoff, smooth = as_positive("cutoff [Hz]", cutoff, ShapeError), motion.smooth(cutoff)
    each = max(1, int(sampling_rate(motion.t) / (KEPT * cutoff)))
    kept = np.arange(len(motion))
    kept = kept[(motion.t >= motion.t[0] + CALM / cutoff) & (motion.t <= motion.t[-1] - CALM / cutoff)][::each]
    if len(kept) < 2:
        raise ShapeError(f"identify: {motion.t[-1] - motion.t[0]:.3g} s are too short for a cutoff of {cutoff:g} Hz")
    return smooth.q, smooth.v, smooth.a, Filter(motion.t, cutoff, kept)
