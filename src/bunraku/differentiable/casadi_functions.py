"""Functions of CasADi: callbacks with Jacobians, for its symbols and solvers.

A callback is an object of Python that CasADi's expressions refer to but do not keep: hold on to the functions as long
as expressions with them are used.
"""

from __future__ import annotations

import numpy as np

from bunraku.differentiable.maps import Functions, Map, functions_of
from bunraku.errors import MissingExtra
from bunraku.mechanism import Mechanism


def for_casadi(mechanism: Mechanism, step: float | None = None) -> Functions:
    """Functions of a tree for CasADi: `forward_dynamics`, `inverse_dynamics` and, with a step [s], `step`.

    Arguments are columns of one state; second derivatives are left to a solver's approximation ("limited-memory" of
    IPOPT). `pip install casadi`.
    """
    try:
        import casadi  # noqa: F401
    except ImportError:
        raise MissingExtra('functions for CasADi need it: pip install "bunraku[casadi]"') from None
    return functions_of(mechanism, step, _function)


def _function(map_: Map):
    import casadi

    inputs, outputs = map_.inputs, map_.outputs

    def rows(arguments):
        return [np.array(x.full()).reshape(1, -1) for x in arguments[:len(inputs)]]

    class Jacobian(casadi.Callback):
        """Of every output by every input; CasADi gives it inputs and outputs."""

        def __init__(self, name, options):
            casadi.Callback.__init__(self)
            self.construct(name, options)

        def get_n_in(self):
            return len(inputs) + len(outputs)

        def get_n_out(self):
            return len(inputs) * len(outputs)

        def get_sparsity_in(self, i):
            return casadi.Sparsity.dense((*inputs, *outputs)[i][1], 1)

        def get_sparsity_out(self, i):
            return casadi.Sparsity.dense(outputs[i // len(inputs)][1], inputs[i % len(inputs)][1])

        def eval(self, arguments):
            return [casadi.DM(x[0]) for row in map_.slopes(*rows(arguments)) for x in row]

    class Function(casadi.Callback):
        def __init__(self):
            casadi.Callback.__init__(self)
            self.kept = []
            self.construct(map_.name, {})

        def get_n_in(self):
            return len(inputs)

        def get_n_out(self):
            return len(outputs)

        def get_name_in(self, i):
            return inputs[i][0]

        def get_name_out(self, i):
            return f"{outputs[i][0]}_next" if map_.name == "step" else outputs[i][0]

        def get_sparsity_in(self, i):
            return casadi.Sparsity.dense(inputs[i][1], 1)

        def get_sparsity_out(self, i):
            return casadi.Sparsity.dense(outputs[i][1], 1)

        def eval(self, arguments):
            return [casadi.DM(x[0]) for x in map_.value(*rows(arguments))]

        def has_jacobian(self):
            return True

        def get_jacobian(self, name, inames, onames, options):
            self.kept.append(Jacobian(name, options))
            return self.kept[-1]

    return Function()
