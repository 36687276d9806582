"""Input validation: numbers, names and arrays; errors name the argument."""

from __future__ import annotations

import difflib
import math
from operator import index

import numpy as np

from bunraku.errors import InertiaError, ModelError, NamingError, ShapeError


def hint(name, known, close: bool = False) -> str:
    """Similar names, or else all valid names; only similar ones if `close`."""
    found = difflib.get_close_matches(str(name), known, n=1)
    if found or close:
        return f"; did you mean {found[0]!r}?" if found else ""
    return f"; there are {', '.join(map(repr, known[:8]))}{' ...' if len(known) > 8 else ''}" if known else ""


def check_name(name, what):
    if not isinstance(name, str) or not name:
        raise NamingError(f"a {what} name must be text such as 'arm', not {name!r}")


def as_vector(what, value) -> np.ndarray:
    try:
        vector = np.array(value, float)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise ModelError(f"{what} must be three finite numbers, not {value!r}")
    return vector


def as_number(what, value, error=ModelError) -> float:
    """A finite number."""
    number = _float(value)
    if not math.isfinite(number):
        raise error(f"{what} must be a finite number, not {value!r}")
    return number


def as_size(what, value, error=ModelError, *, infinite: bool = False) -> float:
    """A number that is not negative, finite unless it may be infinite."""
    number = _float(value)
    if not number >= 0 or (math.isinf(number) and not infinite):
        raise error(f"{what} must be a {'' if infinite else 'finite '}number, not negative, but is {value!r}")
    return number


def as_positive(what, value, error=ModelError, *, infinite: bool = False) -> float:
    """A number above zero, finite unless it may be infinite."""
    number = _float(value)
    if not number > 0 or (math.isinf(number) and not infinite):
        raise error(f"{what} must be a positive number, not {value!r}")
    return number


def as_count(what, value, least: int = 1) -> int:
    """A count: an integer of at least `least`."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ModelError(f"{what} must be a whole number, at least {least}, not {value!r}")
    return number


def _float(value) -> float:
    """`value` as a float; NaN if it is not a number. Text is rejected, even if it looks like a number."""
    try:
        return math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        return math.nan


def as_rotation(what, value) -> np.ndarray:
    if value is None:
        return np.eye(3)
    try:
        matrix = np.array(value, float)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape != (3, 3) or not np.all(np.isfinite(matrix)):
        angles = "; scipy.spatial.transform.Rotation makes one of angles or a quaternion (.as_matrix())"
        raise ModelError(f"{what} must be a 3x3 matrix of finite numbers, not {value!r}"
                         f"{angles if matrix.shape in ((3,), (4,)) else ''}")
    error = np.abs(matrix @ matrix.T - np.eye(3)).max()
    if error > 1e-6 or np.linalg.det(matrix) < 0:
        raise ModelError(f"{what} is not a rotation matrix: its columns must be orthonormal and right-handed, but are "
                         f"{matrix.tolist()}")
    if error < 1e-14:  # as good as it gets: what comes back from a file stays the same to the last bit
        return matrix
    u, _, vt = np.linalg.svd(matrix)  # the nearest rotation: what was rounded becomes exact
    return u @ vt


def check_inertia(what, mass, com, inertia, physical=True, advice=", or take it as it is with physical=False"):
    """Mass, centre of mass and inertia as arrays; an InertiaError if no real body has them (unless not `physical`)."""
    mass = as_size(f"{what}: mass", mass, InertiaError)
    com = as_vector(f"{what}: com", com)
    try:
        tensor = np.zeros((3, 3)) if inertia is None else np.array(inertia, float)
    except (TypeError, ValueError):
        tensor = np.empty(0)
    if tensor.shape == (3,):
        tensor = np.diag(tensor)
    if tensor.shape != (3, 3) or not np.all(np.isfinite(tensor)):
        raise InertiaError(f"{what}: inertia must be a 3x3 matrix (or 3 principal moments) of finite numbers, "
                           f"not {inertia!r}")
    size = np.abs(tensor).max()
    if np.abs(tensor - tensor.T).max() > 1e-9 * size:
        raise InertiaError(f"{what}: inertia is not symmetric:\n{tensor}")
    tensor = 0.5 * (tensor + tensor.T)
    if size > 0 and physical:
        if mass == 0:
            raise InertiaError(f"{what}: inertia without mass is not a body; give it a mass{advice}")
        advice = advice and f"; correct it{advice}"
        a, b, c = np.linalg.eigvalsh(tensor)
        if a < -1e-9 * size:
            raise InertiaError(f"{what}: inertia has a negative principal moment ({a:.3g} kg m^2){advice}")
        if a + b < c * (1 - 1e-6):
            raise InertiaError(f"{what}: principal moments {a:.3g}, {b:.3g}, {c:.3g} kg m^2 violate the triangle "
                               f"inequality (no body has one larger than the sum of the others){advice}")
    return mass, com, tensor


# -- arrays of states ----------------------------------------------------------------------------------------------


def as_array(what: str, value) -> np.ndarray:
    """`value` as a C-contiguous float array of any shape."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError
        return np.asarray(array, float, order="C")
    except (TypeError, ValueError):
        kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ShapeError(f"{what} must be an array of numbers, not {kind}") from None


def as_finite(what: str, value, *, infinite: bool = False) -> np.ndarray:
    """`value` as a C-contiguous float array of any shape, every number finite; infinity is allowed if `infinite`."""
    array = as_array(what, value)
    wrong = np.isnan(array) if infinite else ~np.isfinite(array)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        raise ShapeError(f"{what} must be {'' if infinite else 'finite '}numbers, but "
                         f"{what}{list(place) if place else ''} is {array[place]}")
    return array


QUATERNION = ("; a Spherical or Free joint has a quaternion (w, x, y, z) in q, not three angles: "
              "scipy.spatial.transform.Rotation.from_euler(...).as_quat(scalar_first=True)")


def as_floats(what: str, value, width: int, batch: int | None = None, least: int | None = None) -> np.ndarray:
    """`value` as a C-contiguous float array of shape (width,) or (B, width). Coordinates with three angles in the place
    of each quaternion have a width from `least` on."""
    if type(value) is np.ndarray and value.dtype == float and value.flags.carray and (
            value.ndim in (1, 2) and value.shape[-1] == width and batch is None):
        return value   # as kernels take it: no need to look closer
    array = as_array(what, value)
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        angles = least is not None and array.ndim in (1, 2) and least <= array.shape[-1] < width
        raise ShapeError(f"{what} has shape {array.shape}; it must be ({width},), or (B, {width}) for a batch"
                         f"{QUATERNION if angles else ''}")
    if array.ndim == 2 and batch is not None and array.shape[0] != batch:
        raise ShapeError(f"{what} holds {array.shape[0]} states where the others hold {batch}")
    return array if array.flags.writeable else array.copy()


def aligned(*pieces: tuple[str, object, int]) -> tuple[int | None, list[np.ndarray]]:
    """Arrays of one state (batch None), or all as batches of the same size, single ones repeated."""
    widths = {what: width for what, _, width in pieces}
    arrays = [as_floats(what, value, width, least=widths.get("v", width) if what == "q" else width)
              for what, value, width in pieces]
    sizes = {array.shape[0]: what for array, (what, _, _) in zip(arrays, pieces, strict=True) if array.ndim == 2}
    if not sizes:
        return None, arrays
    if len(sizes) > 1:
        described = ", ".join(f"{what} {size}" for size, what in sizes.items())
        raise ShapeError(f"batches of different size: {described}; give all the same number of states, or a single one "
                         "for all")
    batch = next(iter(sizes))
    return batch, [array if array.ndim == 2 else np.repeat(array[None], batch, axis=0) for array in arrays]
