"""Every private name of Numba that this package uses, in one place, looked up when it is first asked for.

`from bunraku.compiler.numba_inside import AbstractTemplate` works as if the name were defined here. A name that this
version of Numba does not have is an UnsupportedNumba, which says what to install. Names in LOWERING are not needed:
without them `parts.py` takes the intermediate code that Numba itself makes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bunraku.errors import UnsupportedNumba

TESTED = (">=0.62.1", "<0.69")
"""Versions of Numba with which the tests pass; the same range as in pyproject.toml."""

NEEDED = {
    "AbstractTemplate": "numba.core.typing.templates",
    "AttributeTemplate": "numba.core.typing.templates",
    "infer_global": "numba.core.typing.templates",
    "signature": "numba.core.typing.templates",
    "cgutils": "numba.core",
    "cpu_target": "numba.core.registry",
    "rtsys": "numba.core.runtime",
    "impl_ret_borrowed": "numba.core.imputils",
    "lower_getattr_generic": "numba.core.imputils",
    "Dispatcher": "numba.core.dispatcher",
    "NumbaError": "numba.core.errors",
    "NumbaExperimentalFeatureWarning": "numba.core.errors",
}
LOWERING = {
    "JITCodeLibrary": "numba.core.codegen",
    "CompilerBase": "numba.core.compiler",
    "DefaultPassBuilder": "numba.core.compiler",
    "register_pass": "numba.core.compiler_machinery",
    "create_nrt_module": "numba.core.runtime.nrtdynmod",
    "NativeLowering": "numba.core.typed_passes",
}
HOMES = NEEDED | LOWERING


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = HOMES[name]
    try:
        found = getattr(import_module(home), name)
    except (ImportError, AttributeError):
        import numba

        raise UnsupportedNumba(f"numba {numba.__version__} has no {home}.{name}, which bunraku uses; install a version "
                               f"with which it is tested: pip install 'numba{','.join(TESTED)}'") from None
    globals()[name] = found
    return found
