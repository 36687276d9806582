"""Functions of PyTorch: `torch.autograd.Function` with the analytic Jacobians, which are made when gradients are asked
for. On the CPU, in double precision inside; second derivatives are not available."""

from __future__ import annotations

import numpy as np

from bunraku.differentiable.maps import Functions, Map, flat, functions_of
from bunraku.errors import MissingExtra
from bunraku.mechanism import Mechanism


def for_torch(mechanism: Mechanism, step: float | None = None) -> Functions:
    """Functions of a tree for PyTorch: `forward_dynamics`, `inverse_dynamics` and, with a step [s], `step`.

    Arguments are tensors of one state, or with any leading axes. `pip install torch`.
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtra('functions for PyTorch need it: pip install "bunraku[torch]"') from None
    return functions_of(mechanism, step, _function)


def _function(map_: Map):
    import torch

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            lead, rows = flat([x.detach().cpu().numpy() for x in inputs])
            return tuple(torch.as_tensor(np.asarray(x).reshape(*lead, -1), dtype=inputs[0].dtype,
                                         device=inputs[0].device) for x in map_.value(*rows))

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *gradients):
            inputs = ctx.saved_tensors
            lead, rows = flat([x.detach().cpu().numpy() for x in inputs])
            by = map_.slopes(*rows)
            given = [g.detach().cpu().numpy().reshape(-1, g.shape[-1]) for g in gradients]
            found: list = []
            for i, x in enumerate(inputs):
                if not ctx.needs_input_grad[i]:
                    found.append(None)
                    continue
                total = sum(np.einsum("bij,bi->bj", by[k][i], g) for k, g in enumerate(given))
                found.append(torch.as_tensor(total.reshape(*lead, -1), dtype=x.dtype,
                                             device=x.device).sum_to_size(x.shape))
            return tuple(found)

    def function(*inputs):
        if len(inputs) != len(map_.inputs):
            raise TypeError(f"{map_.name} takes {', '.join(name for name, _ in map_.inputs)}")
        outputs = Function.apply(*(torch.as_tensor(x) for x in inputs))
        return outputs[0] if len(outputs) == 1 else outputs
    function.__name__ = map_.name
    return function
