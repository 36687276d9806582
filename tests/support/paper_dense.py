"""The equations of a subchain as [YN02] stacks them, and solved at once: what assembly and disassembly avoid.

Signs are those of [YN02, sec. 3.2]: H_ip is minus K_C J. Links and joints as in `paper_ada`; the ground has no rows.
"""

from __future__ import annotations

import numpy as np


class Dense:
    """M theta'' + c = H^T f + H_J^T tau and H theta'' + h = 0 of some links and the joints between them."""

    def __init__(self, members, inside, links, joints):
        self.place = {k: slice(6 * n, 6 * n + 6) for n, k in enumerate(members)}
        size = 6 * len(members)
        self.M, self.c = np.zeros((size, size)), np.zeros(size)
        for k, where in self.place.items():                                   # [YN02, eqs. 29-31]
            self.M[where, where], self.c[where] = links[k].M, links[k].c
        self.H = self._stacked("K_C", inside, joints)                         # [YN02, eqs. 7, 34]
        self.H_J = self._stacked("K_J", inside, joints)
        self.h = np.concatenate([-joints[i].K_C @ joints[i].h for i in inside] or [np.empty(0)])  # [YN02, eqs. 8, 35]
        self.tau = np.concatenate([joints[i].tau for i in inside] or [np.empty(0)])               # [YN02, eqs. 32-33]
        self.M_inverse = np.linalg.inv(self.M)
        self.S = self.H @ self.M_inverse @ self.H.T                           # [YN02, eqs. 11, 19, 41, 62]
        self.Phi = self.M_inverse - self.M_inverse @ self.H.T @ np.linalg.solve(
            self.S, self.H @ self.M_inverse)                                  # [YN02, eqs. 40, 61]

    def _stacked(self, name, inside, joints):
        rows = [np.zeros((len(getattr(joints[i], name)), len(self.M))) for i in inside]
        for block, i in zip(rows, inside, strict=True):
            for k, sign in ((joints[i].c, 1.0), (joints[i].p, -1.0)):
                if k in self.place:
                    block[:, self.place[k]] = sign * getattr(joints[i], name) @ joints[i].J
        return np.vstack([np.empty((0, len(self.M))), *rows])

    def forces(self) -> np.ndarray:
        """f of all joints [YN02, eqs. 10, 18, 21]; H M^-1 H_J^T is K_C T K_J^T [YN02, eq. 20]."""
        return np.linalg.solve(self.S, self.H @ self.M_inverse @ (self.c - self.H_J.T @ self.tau) - self.h)

    def accelerations(self) -> np.ndarray:
        """theta'' of all links [YN02, eqs. 9, 12, 22-23, 27, 54]."""
        return self.M_inverse @ (self.H.T @ self.forces() + self.H_J.T @ self.tau - self.c)
