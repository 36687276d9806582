"""Exceptions and warnings: each message names the link, joint or state, and the remedy."""


class BunrakuError(Exception):
    """Base class of every error bunraku raises on purpose."""


class ModelError(BunrakuError, ValueError):
    """A mechanism cannot be built as described."""


class NamingError(ModelError, KeyError):
    """A link or joint name is unknown or already taken."""

    __str__ = Exception.__str__  # KeyError would show the message quoted


class ReadOnlyError(ModelError, AttributeError):
    """A read-only value was written to; the message names the call that makes the change."""


class InertiaError(ModelError):
    """A non-physical mass or inertia."""


class ShapeError(BunrakuError, ValueError):
    """An array has the wrong shape or kind for this mechanism."""


class StateError(BunrakuError, ArithmeticError):
    """A state at which the equations have no finite solution.

    `states` lists the failing states of a batch; `result` holds what was computed for the others.
    """

    def __init__(self, message, states=(), result=None):
        super().__init__(message)
        self.states = tuple(states)
        self.result = result


class ActuationError(StateError):
    """A motion that the actuators cannot produce; the message names the remaining generalised force."""


class ConstraintError(StateError):
    """Inconsistent loop constraints; the message names the connections."""


class ContactError(StateError):
    """Shapes that overlap, or contacts whose forces do not exist; the message names the pair."""


class SimulationError(BunrakuError, RuntimeError):
    """A run had to stop. `trajectory` keeps everything computed up to then.

    Of a rollout: `states` lists the failing states; `result` keeps everything that was computed.
    """

    def __init__(self, message, trajectory=None, states=(), result=None):
        super().__init__(message)
        self.trajectory = trajectory
        self.states = tuple(states)
        self.result = result


class SimulationWarning(UserWarning):
    """A run continues with a problem: little progress, or a condition on a name that does not exist."""


class LoadError(ModelError):
    """A model file cannot be read or represented; the message names file and element."""


class MissingFileError(LoadError, FileNotFoundError):
    """There is no such file."""


class LoadWarning(UserWarning):
    """An element of a model file is suspicious or was ignored; the message names file and element."""


class SettingError(BunrakuError, ValueError):
    """An environment variable has an unknown value, or one that this machine does not support."""


class MissingExtra(BunrakuError, ImportError):
    """An optional library is needed; the message gives the pip command."""


class ViewerError(BunrakuError, RuntimeError):
    """The viewer cannot open: an address or port that cannot be used."""


class ForcePlateWarning(UserWarning):
    """A force plate whose load is probably assigned to the wrong foot."""


class UnsupportedNumba(BunrakuError, ImportError):
    """This version of Numba lacks something that compilation needs; the message says which version to install."""
