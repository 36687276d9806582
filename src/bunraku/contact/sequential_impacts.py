"""Rebounds one after another: the sequential law of impacts, for a step of time-stepping.

Simultaneous contacts may rebound together (one contact problem for all, Newton's law at each of them), or as if
separated by infinitesimal gaps: the fastest approach first, alone, then the next, until none approaches
(Newton's cradle). Every single impulse lies in the friction cone of its contact, and so does their sum. None of them
adds energy: restitution is lowered where friction would [Kane, Levinson 1985]. With restitution 1 a row of balls ends
after finitely many; with less the approach falls geometrically, and ends at IMPACT_ENDS or after MOST_REBOUNDS
(`tolerances.py`). The remaining approach velocity, and contacts without restitution, are a contact problem without
rebound.

Cost: O(contacts) for each rebound.
"""

from bunraku.contact.single import solve_single
from bunraku.jit import inline, inner
from bunraku.tolerances import AT_REST, IMPACT_ENDS, MOST_REBOUNDS


@inline
def rebounds_at(touch, place, h):
    """Whether a contact would close within the step so fast that it rebounds, given its velocity so far."""
    u, change, gap, e = touch.velocity[3 * place], touch.gaining[3 * place], touch.gap[place], touch.bounce[place]
    return u < 0.0 and gap + h * (u + change) <= 0.0 and e * (0.0 - u) > 2.0 * abs(change)


@inner
def fastest_rebound(touch, count, h):
    """(place of the contact that approaches fastest among those that rebound, or -1; its approach)."""
    fastest, most = -1, 0.0
    for place in range(count):
        if -touch.velocity[3 * place] > most and rebounds_at(touch, place, h):
            fastest, most = place, -touch.velocity[3 * place]
    return fastest, most


@inner
def rebound(touch, count, place):
    """The impulse of one contact alone, with restitution: it leaves the step with -e times the normal velocity before
    it, as in `normal_side`; lower where friction would add energy. Returns whether there is one; updates `velocity` and
    `struck`."""
    n, theta, u = 3 * count, touch.theta, touch.velocity
    i, e, mu = 3 * place, touch.bounce[place], touch.friction[place]
    W, f_n, f_1, f_2 = i * n + i, 0.0, 0.0, 0.0
    free = u[i] + touch.gaining[i], u[i + 1] + touch.gaining[i + 1], u[i + 2] + touch.gaining[i + 2]
    if not theta[W] > 0.0:
        return False
    while True:
        f_n, f_1, f_2 = solve_single(W, n, free[0] + e * u[i], free[1], free[2], mu, theta)
        gained = given = 0.0
        for r in range(3):
            o, f = (i + r) * n + i, f_n if r == 0 else f_1 if r == 1 else f_2
            gained += f * (free[r] + 0.5 * (theta[o] * f_n + theta[o + 1] * f_1 + theta[o + 2] * f_2))
            given += abs(f * free[r])
        if gained <= AT_REST * given or e == 0.0:
            break
        e = 0.5 * e if e > 1e-3 else 0.0
    for row in range(n):
        o = row * n + i
        u[row] += theta[o] * f_n + theta[o + 1] * f_1 + theta[o + 2] * f_2
    touch.struck[i] += f_n
    touch.struck[i + 1] += f_1
    touch.struck[i + 2] += f_2
    return f_n > 0.0


@inner
def rebounds_in_turn(touch, count, h):
    """Rebounds of the contacts in the problem, one after another: impulses into `struck`, velocities with them, at the
    beginning of the step, into `velocity`."""
    for i in range(3 * count):
        touch.velocity[i], touch.struck[i] = touch.arriving[i], 0.0
    _, first = fastest_rebound(touch, count, h)
    for _ in range(MOST_REBOUNDS + 4 * count * count):
        place, approach = fastest_rebound(touch, count, h)
        if place < 0 or approach <= IMPACT_ENDS * first or not rebound(touch, count, place):
            return
