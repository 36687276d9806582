"""Python code for a process of its own that uses one cheap entry of the package and nothing else."""

import numpy as np


def integrate_alone(m, q, dq) -> str:
    """Code that prints m.integrate(q, dq). The plan is made here: there it would have other entries compiled."""
    return f"""
import numpy as np
from bunraku.entries.moves import integrate_states
q, dq = np.array([{np.asarray(q).tolist()}], float), np.array([{np.asarray(dq).tolist()}], float)
out = np.empty(q.shape)
integrate_states.call(np.array({m.plan().body_i.tolist()}, np.int32), q, dq, out)
print(*out[0])
"""
