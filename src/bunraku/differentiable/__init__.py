"""Dynamics as differentiable functions of JAX, PyTorch and CasADi, with the analytic derivatives of `bk.derivatives`.

maps.py             the functions and their Jacobians by coordinates, as NumPy
jax_functions.py    custom derivatives for JAX
torch_functions.py  autograd functions of PyTorch
casadi_functions.py callbacks of CasADi

None of these packages is imported before its function is called.
"""

from bunraku.differentiable.casadi_functions import for_casadi
from bunraku.differentiable.jax_functions import for_jax
from bunraku.differentiable.maps import Functions
from bunraku.differentiable.torch_functions import for_torch

__all__ = ["Functions", "for_casadi", "for_jax", "for_torch"]
