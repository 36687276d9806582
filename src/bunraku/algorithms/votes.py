"""Agreement of a team: decisions depend on margins, residues and pivots of all workers, so all decide alike.

Every worker casts a vote (`plan/fields.py`, VOTES); votes go up a binary tree of workers, the result comes back down.
One processor (`team` is None) and a team of one worker exchange nothing.
"""

import numpy as np

from bunraku.algorithms.parcels import receive, send
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.scalar import clear


@inline
def agree(team, margin, residue, conn_i, work):
    """Margin, residue and decision quantities of all workers; margin is -1 if the team has given up."""
    if team is None:
        return margin, residue
    return agreed(team, margin, residue, conn_i, work)


@inline
def largest(team, x, residue, conn_i, work):
    """The largest x and the residue of all workers; residue is NaN if the team has given up."""
    if team is None:
        return x, residue
    return elected(team, x, residue, conn_i, work)


@inner
def agreed(team, margin, residue, conn_i, work):
    if alone(conn_i):
        return margin, residue
    votes, judged = conn_i[-1, f.HEAD_VOTES], conn_i[-1, f.HEAD_JUDGED]
    least, most = votes + f.VOTES_LEAST, votes + f.VOTES_MOST
    work[least], work[least + 1] = margin, work[judged + f.JUDGED_PIVOT]
    work[least + 2] = work[judged + f.JUDGED_WEAKEST]
    work[most], work[most + 1] = work[judged + f.JUDGED_CLASH], work[judged + f.JUDGED_GAP]
    work[most + 2], work[most + 3] = work[judged + f.JUDGED_DROPPED], work[judged + f.JUDGED_MISSED]
    work[votes + f.VOTES_SUM] = residue
    if not vote(team, conn_i, work):
        return -1.0, residue
    work[judged + f.JUDGED_PIVOT], work[judged + f.JUDGED_WEAKEST] = work[least + 1], work[least + 2]
    work[judged + f.JUDGED_CLASH], work[judged + f.JUDGED_GAP] = work[most], work[most + 1]
    work[judged + f.JUDGED_DROPPED], work[judged + f.JUDGED_MISSED] = work[most + 2], work[most + 3]
    return work[least], work[votes + f.VOTES_SUM]


@inner
def elected(team, x, residue, conn_i, work):
    if alone(conn_i):
        return x, residue
    votes = conn_i[-1, f.HEAD_VOTES]
    clear(work[votes:votes + f.VOTES])
    work[votes + f.VOTES_MOST], work[votes + f.VOTES_SUM] = x, residue
    if not vote(team, conn_i, work):
        return x, np.nan
    return work[votes + f.VOTES_MOST], work[votes + f.VOTES_SUM]


@inline
def alone(conn_i):
    """Whether this worker votes with no other."""
    return conn_i[-1, f.HEAD_BALLOT] + conn_i[-1, f.HEAD_BALLOT + 2] == 0


@inner
def vote(team, conn_i, work):
    """Votes up the tree of workers, the result back to all. False if the team has given up."""
    votes, last = conn_i[-1, f.HEAD_VOTES], conn_i.shape[0] - 1
    other = votes + f.VOTES
    for k in range(2):
        box = conn_i[last, f.HEAD_BALLOT + k] - 1
        if box >= 0:
            if not receive(team, other, f.VOTES, box, work):
                return False
            for d in range(f.VOTES_LEAST, f.VOTES_MOST):
                work[votes + d] = min(work[votes + d], work[other + d])
            for d in range(f.VOTES_MOST, f.VOTES_SUM):
                work[votes + d] = max(work[votes + d], work[other + d])
            work[votes + f.VOTES_SUM] += work[other + f.VOTES_SUM]
    if conn_i[last, f.HEAD_BALLOT + 2] > 0:
        send(team, votes, f.VOTES, conn_i[last, f.HEAD_BALLOT + 2] - 1, work)
        if not receive(team, votes, f.VOTES, conn_i[last, f.HEAD_BALLOT + 3] - 1, work):
            return False
    for k in range(2):
        box = conn_i[last, f.HEAD_BALLOT + 4 + k] - 1
        if box >= 0:
            send(team, votes, f.VOTES, box, work)
    return True
