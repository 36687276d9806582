"""Contact forces and impacts at one state: modes of contacts, and the contact problem for them.

`Touching` is the contact workspace of a mechanism in one run, with the compiled calls on it. A contact is *closed* if
its gap is below CONTACT_CLOSED and it does not separate. Closed contacts with slip slide, friction against the slip;
those without may stick or begin to slide: the problem decides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_arrays import ContactArrays
from bunraku.contact.contact_build import with_pairs
from bunraku.contact.contact_entries import contacts_one
from bunraku.contact.contact_fields import NO_SOLUTION, OPEN, SLIDING, STICKING
from bunraku.contact.contact_memory import (
    ACTIVE,
    BASE,
    FEATURES,
    FULL,
    IN_TURN,
    ITERATIONS,
    MARK,
    MARK_SLIP,
    PAIRS,
    ROUGH_CONTACTS,
    ROUGHLY,
    ROW,
    ROWS,
    SOLVED_COUNT,
    STATUS,
    WANTED_PAIRS,
    WORST,
    Room,
    make_touch,
)
from bunraku.contact.contact_motion import FORCES, IMPACT, LOOK, contact_solve
from bunraku.entries.explain import refuse
from bunraku.entries.forward_entries import tree_one
from bunraku.entries.loop_entries import closed_one
from bunraku.entries.signatures import FINE
from bunraku.errors import ContactError
from bunraku.evaluate.near_contacts import FIRST_LIST, contacts_near, identities, listed, more, numbers
from bunraku.mechanism import Mechanism
from bunraku.mechanism.links import GROUND
from bunraku.plan.plan_arrays import NO_CONTACT
from bunraku.tolerances import (
    AT_REST,
    CONTACT_NEAR,
    CONTACT_ROOM,
    CONTACT_SLOW,
    DENSE_ISLAND,
    IMPACT_ENDS,
    LIGHT_LOAD,
    MOST_REBOUNDS,
    MOST_SHAPES,
    TOO_DEEP,
)

FEW_NAMES = 3
"""Pairs of shapes that a warning names."""


class TooManyContacts(ContactError):
    """More contacts at once than there is room for."""


class Acts(NamedTuple):
    """Applied forces other than contact, in the form that kernels take."""

    tau: np.ndarray       # (nv,) torques; accelerations at joints whose motion is prescribed
    drives: np.ndarray    # (nc,) or (0,)
    external: np.ndarray  # 6 per link and pulls, or (0,)


class Answer(NamedTuple):
    """Solution for the contacts of a problem, three components each: normal, and two tangents."""

    rows: np.ndarray      # (n,) numbers of the contacts
    force: np.ndarray     # (n, 3) forces or impulses
    before: np.ndarray    # (n, 3) velocities at the state
    after: np.ndarray     # (n, 3) accelerations with the forces, or velocities after the impulses
    mode: np.ndarray      # (n,)
    axes: np.ndarray      # (n, 3, 3) normal and tangents, world axes
    residual: float


class Touching:
    """Contact workspace, for one run at a time."""

    def __init__(self, mechanism: Mechanism, locked=frozenset(), most: int | None = None, in_turn: bool = False,
                 stepping: bool = False, near: ContactArrays | None = None):
        """`most`: maximum number of closed contacts; `in_turn`: the sequential law of impacts; `stepping`: for time
        steps, in which the list of pairs changes and large islands have no full matrix; `near`: arrays with a list of
        pairs, instead of one of all pairs."""
        self.mechanism, self.stepping, self.listing = mechanism, stepping, stepping
        self.pairs = mechanism.contact_pairs() if stepping or near else self._all_pairs()
        self.locked, self.asked, self.in_turn = locked, most, in_turn
        self.given = near or self.pairs.arrays
        self.plan = plan = mechanism.touching_plan(locked)
        self.joints = len(self.given.joint_i)  # contacts of joints, the first of every list
        self.has_moments = bool(self.given.shape_f[:, [c.SHAPE_TORSIONAL, c.SHAPE_ROLLING]].any())
        self.soft = bool(self.given.shape_f[:, c.SHAPE_STIFFNESS].any())
        self.most = self._most_of(len(self.given.contact_i) if near or self.pairs.complete else sys.maxsize)
        loops = plan.loops is not None
        self.base = closed_one if loops else tree_one
        self.structure = plan.with_rotors
        self._make_room(min(self.most, CONTACT_ROOM + self.joints), FIRST_LIST if self.listing else None)
        size = int(plan.loops.work_size) if loops else plan.work_size
        self.work = np.empty(size + plan.nv + 64 * plan.bodies)
        self.a = np.empty(plan.nv)
        self.found = np.zeros((self.contacts, c.FOUND))
        self.found[self.is_moment(slice(None)), c.FOUND_GAP] = np.inf
        self.no_restitution = np.zeros(self.contacts)

    def _all_pairs(self):
        count = len(self.mechanism.shapes)
        if count > MOST_SHAPES:
            raise ContactError(f"{count} shapes have too many pairs for event-driven simulation, which looks at all of "
                               "them: use fixed steps (solver='symplectic_euler', step=...)")
        return self.mechanism.all_contact_pairs()

    def _most_of(self, contacts: int) -> int:
        """Maximum number of closed contacts, with all of the joints, which a limit given does not count."""
        return self.joints + most_of(contacts - self.joints, self.asked, self.stepping)

    @property
    def arrays(self) -> ContactArrays:
        """The arrays with the present list of pairs."""
        return listed(self.touch, self.given) if self.listing else self.given

    @property
    def contacts(self) -> int:
        """Contacts of the listed pairs."""
        return len(self.arrays.contact_i)

    def __reduce__(self):
        """Copies allocate their own workspace: addresses are not shared."""
        return _made_again, (self.mechanism, self.locked, self.asked, self.in_turn, self.listing,
                             None if self.listing or self.pairs.complete else self.given, self.stepping,
                             self.structure._replace(touch=NO_CONTACT), self.known())

    def _make_room(self, room: int, pairs: tuple[int, int] | None) -> None:
        """Allocate for this number of contacts in a problem, and for a list of `pairs` that changes (pairs, contacts).
        Without a limit on problems with a full matrix (`sparse`), memory grows with the square of the former."""
        plan = self.plan
        try:
            self.touch, table = make_touch(self.given, plan.arrays.body_i, plan.nv,
                                           Room(room, min(room, DENSE_ISLAND) if self.sparse else room, pairs),
                                           plan.loops is not None)
        except MemoryError:
            raise ContactError(f"{room} contacts at once need more memory than there is (it grows with their square); "
                               "fewer shapes, or masks (group, meets) that keep some of them apart") from None
        self.touch.count[BASE] = 0 if callable(self.base.address) else self.base.address
        self.touch.count[IN_TURN] = self.in_turn
        self.structure = self.structure._replace(touch=table)
        self.room, self.room_for_list = room, pairs

    @property
    def sparse(self) -> bool:
        """Whether large islands are solved without a full matrix."""
        return self.stepping and not self.in_turn and not self.mechanism.constrained and not self.joints

    def lay_out(self, stepping: bool) -> None:
        """Change between events and time steps, which have room for any number of contacts unless one was asked for."""
        known, before = self.known(), self.touch
        self.stepping = stepping
        self.most = self._most_of(self.contacts)
        self._make_room(min(self.most, self.room), None)
        self.recall(known)
        self.touch.features[:] = 0.0  # time steps keep none
        self.touch.residual[:], self.touch.count[list(TALLIES)] = before.residual, before.count[list(TALLIES)]

    def grow(self) -> bool:
        """More room: for the list of pairs, or for twice as many contacts, up to `most`; False if that is reached."""
        before, known, room, pairs = self.touch, self.known(), self.room, self.room_for_list
        if before.count[WANTED_PAIRS] > 0:
            pairs = more(before)
        elif room < self.most:
            room = min(self.most, 2 * room)
        else:
            return False
        self._make_room(room, pairs)
        self.recall(known)
        self.touch.residual[:], self.touch.count[list(TALLIES)] = before.residual, before.count[list(TALLIES)]
        return True

    def known(self) -> dict[str, np.ndarray]:
        """Contact state of a run, by identity of contacts: of all of a fixed list, or those of the last step."""
        touch, size = self.touch, self.contacts
        rows = np.arange(size)
        if self.listing:
            rows = np.flatnonzero((touch.modes[:size] != OPEN) | touch.held[:3 * size].reshape(-1, 3).any(axis=1))
        return {IDENTITY: identities(self.arrays, rows), "margin": touch.margin.copy(),
                **{name: getattr(touch, name).reshape(-1, width)[rows] for name, width in STATE.items()}}

    def recall(self, known: dict[str, np.ndarray]) -> None:
        """Take over the contact state of another workspace. A list that changes has just its pairs, until it is made
        anew by the next step."""
        room, closed = self.room, (known["modes"] != OPEN).ravel() | known["held"].any(axis=1)
        while room < min(closed.sum(), self.most):
            room *= 2
        if room > self.room:
            self._make_room(min(room, self.most), self.room_for_list)
        identity, touch = known[IDENTITY], self.touch
        if self.listing:
            own = with_pairs(self.given, {(a, b) for a, b, _ in identity.tolist() if a >= 0})
            if len(own.pair_i) > len(touch.pair_i) or len(own.contact_i) > len(touch.contact_i):
                self._make_room(self.room, (len(own.pair_i), len(own.contact_i) - self.joints))
                touch = self.touch
            for name in ("pair_i", "contact_i", "contact_f"):
                getattr(touch, name)[:len(getattr(own, name))] = getattr(own, name)
            touch.count[PAIRS] = len(own.pair_i)
        rows = numbers(self.arrays, identity)
        for name, width in STATE.items():
            getattr(touch, name).reshape(-1, width)[rows] = known[name]
        touch.margin[:] = known["margin"]
        last = rows[(touch.modes[rows] != OPEN) | touch.held.reshape(-1, 3)[rows].any(axis=1)]
        touch.count[ACTIVE] = n = min(len(last), len(touch.active))
        touch.active[:n] = last[:n]

    def refuse_unknown(self, identity: np.ndarray) -> None:
        """A ContactError if these are not contacts of this mechanism."""
        kind, shapes = self.given.shape_i[:, c.SHAPE_KIND], len(self.given.shape_i)
        of_joints = identity[:, 0] < 0
        if not ((identity[of_joints][:, [0, 2]] == (-1, 0)).all() and (identity[of_joints, 1] >= 0).all()
                and (identity[of_joints, 1] < self.joints).all()):
            raise ContactError("contacts of joints that this mechanism does not have")
        identity = identity[~of_joints]
        pairs = sorted({(a, b) for a, b, _ in identity.tolist()})
        if not all(0 <= a < shapes and 0 <= b < shapes and (kind[a], kind[b]) in c.KIND_OF for a, b in pairs):
            raise ContactError("contacts of shapes that this mechanism does not have")
        arrays = with_pairs(self.given, pairs)
        rows, place = numbers(arrays, identity), identity[:, 2]
        of_pairs = arrays.pair_i[arrays.contact_i[rows - place, c.CONTACT_PAIR]]
        most = of_pairs[:, c.PAIR_COUNT] * (1 + of_pairs[:, c.PAIR_MOMENTS])
        strange = not self.listing and (numbers(self.given, identity) < 0).any()
        if strange or not ((place >= 0) & (place < most)).all():
            raise ContactError("contacts that shapes of this mechanism do not have")

    # -- geometry --------------------------------------------------------------------------------------------------

    def gaps(self, q, margin: float = CONTACT_NEAR) -> np.ndarray:
        """(contacts,) of a fixed list [m]; inf for those beyond the margin."""
        contacts_one.call(self.plan.arrays, self.arrays, np.ascontiguousarray(q), margin, self.found.reshape(-1))
        return self.found[:, c.FOUND_GAP]

    def pair(self, k: int) -> str:
        """Names of the two shapes of a contact, or of its joint, for messages."""
        if k < self.joints:
            return self.joint_contact(k)
        return pair_names(self.mechanism.contact_pairs().shapes, self.arrays, k)

    def named(self, rows) -> str:
        """The pairs of these contacts: the first few by name, the others by number."""
        pairs = list(dict.fromkeys(self.pair(int(k)) for k in rows))  # or joints
        more = f" and {len(pairs) - FEW_NAMES} other pairs" if len(pairs) > FEW_NAMES else ""
        return (", ".join(pairs[:FEW_NAMES]) or "none is closed") + more

    def refuse_overlap(self, q, what: str, deepest: Callable[[], float] | None = None) -> None:
        """A ContactError if shapes penetrate by more than TOO_DEEP, or `deepest()`: with the depth, the pair, and the
        remedy."""
        self._refuse_beyond_limits(np.asarray(q), what, deepest)
        if not self.mechanism.may_touch():
            return
        arrays, found = contacts_near(self.mechanism, np.asarray(q), CONTACT_NEAR)
        gap = np.where(arrays.contact_f[:, c.STIFFNESS] > 0.0, np.maximum(found[:, c.FOUND_GAP], 0.0),
                       found[:, c.FOUND_GAP])
        if not len(gap) or gap.min() >= -TOO_DEEP:
            return
        depth = TOO_DEEP if deepest is None else deepest()
        if gap.min() >= -depth:
            return
        k = int(gap.argmin())
        normal, deep = found[k, c.FOUND_NORMAL:c.FOUND_NORMAL + 3], -float(gap[k])
        shapes, names = self.mechanism.contact_pairs().shapes, [*self.mechanism.link_names, GROUND]
        pair = arrays.pair_i[arrays.contact_i[k, c.CONTACT_PAIR]]
        link = names[shapes[pair[c.PAIR_A]].link]
        way = ", ".join(f"{x + 0.0:.4g}" for x in np.round(deep * normal, 12))
        others = int((gap < -depth).sum()) - 1
        too = f" ({others} other contacts overlap too)" if others else ""
        raise ContactError(f"{what}: shapes {pair_names(shapes, arrays, k)} overlap by {deep:.4g} m{too}; "
                           "q = bk.part(m, q) parts all of them by the smallest move, or move link "
                           f"{link!r} by ({way}) m, or let them not touch: m.exclude, or masks (group, meets)")

    # -- joints ----------------------------------------------------------------------------------------------------

    def is_dry(self, rows: np.ndarray) -> np.ndarray:
        """Which of these contacts are dry friction of a joint."""
        dry = np.zeros(len(rows), bool)
        of_joints = rows < self.joints
        dry[of_joints] = self.given.joint_i[rows[of_joints], c.JOINT_KIND] == c.DRY
        return dry

    def joint_name(self, k: int) -> str:
        """Name of the joint of contact k."""
        return self.mechanism.links[self.plan.body_link[self.given.joint_i[k, c.JOINT_BODY]]].joint_name

    def joint_contact(self, k: int) -> str:
        """A joint's contact in messages: the joint, and which limit."""
        kind, name = self.given.joint_i[k, c.JOINT_KIND], f"joint {self.joint_name(k)!r}"
        return name if kind == c.DRY else f"{name} at its {LIMITS[kind]} limit"

    def impulse_unit(self, k: int) -> str:
        """Unit of the impulse of contact k."""
        return "N m s" if k < self.joints and self.given.joint_f[k, c.JOINT_ANGULAR] else "N s"

    def joint_change(self, k: int, mode: int) -> str:
        """Event text for a new mode of a joint's contact."""
        kind, name = self.given.joint_i[k, c.JOINT_KIND], f"joint {self.joint_name(k)!r}"
        if kind == c.DRY:
            return f"{name} {'sticks' if mode == STICKING else 'slides'}"
        return f"{name} {'leaves' if mode == OPEN else 'rests at'} its {LIMITS[kind]} limit"

    def joint_forces(self, force: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(nv,) torques and forces of joints by their contacts, among those in `rows` with `force` (normal,
        tangents)."""
        out = np.zeros(self.plan.nv)
        for k, f in zip(rows.tolist(), force, strict=True) if self.joints else ():
            if k < self.joints:
                kind, at = self.given.joint_i[k, [c.JOINT_KIND, c.JOINT_V]]
                out[at] += f[1] if kind == c.DRY else f[0] if kind == c.LOWER else -f[0]
        return out

    def _refuse_beyond_limits(self, q, what: str, deepest: Callable[[], float] | None) -> None:
        """A ContactError if a joint is beyond a hard limit by more than TOO_DEEP, or `deepest()`."""
        if not self.joints:
            return
        numbers, bounds = self.given.joint_i, self.given.joint_f[:, c.JOINT_BOUND]
        over = q[numbers[:, c.JOINT_Q]] - bounds
        over = np.where(numbers[:, c.JOINT_KIND] == c.UPPER, over, -over)
        over[numbers[:, c.JOINT_KIND] == c.DRY] = 0.0
        if over.max() <= TOO_DEEP or (deepest is not None and over.max() <= deepest()):
            return
        k = int(over.argmax())
        unit = "rad" if self.given.joint_f[k, c.JOINT_ANGULAR] else "m"
        raise ContactError(f"{what}: joint {self.joint_name(k)!r} is at {q[numbers[k, c.JOINT_Q]]:.6g} {unit}, beyond "
                           f"its hard {LIMITS[numbers[k, c.JOINT_KIND]]} limit of {bounds[k]:.6g} {unit}: begin within "
                           f"the limits, or move them by m.with_joint({self.joint_name(k)!r}, ...)")

    # -- problems --------------------------------------------------------------------------------------------------

    def is_moment(self, rows) -> np.ndarray:
        """Which of these contacts are moments of torsional or rolling friction."""
        return self.arrays.contact_i[rows, c.CONTACT_ROLE] != c.PUSH

    def role(self, k: int) -> int:
        """PUSH, SPIN or ROLL."""
        return int(self.arrays.contact_i[k, c.CONTACT_ROLE])

    def set_modes(self, closed, mode: int = STICKING) -> None:
        """The modes of these points, their moments and contacts of joints; all others are open."""
        self.touch.modes[:] = OPEN
        self.touch.modes[closed] = mode
        if self.has_moments:
            moments = np.flatnonzero(self.is_moment(slice(None)))
            self.touch.modes[moments] = self.touch.modes[self.arrays.contact_i[moments, c.CONTACT_POINT]]

    def open_moments(self) -> None:
        """Moments of points that are open are open."""
        if self.has_moments:
            self.touch.modes[self.touch.modes[self.arrays.contact_i[:, c.CONTACT_POINT]] == OPEN] = OPEN

    def contact_change(self, k: int, mode: int) -> str:
        """Event text for a new mode of contact k."""
        if k < self.joints:
            return self.joint_change(k, mode)
        words = WORDS[c.PUSH if mode == OPEN else self.role(k)]
        return f"contact of {self.pair(k)} {words[mode]}"

    def axes(self, rows) -> np.ndarray:
        """(n, 3, 3) normal and tangents of the contacts in the last problem; of moments the axes that they are about,
        zero for their loads."""
        found = self.touch.rows[:ROWS * len(rows)].reshape(len(rows), 3, ROW)
        if not self.has_moments:
            return found[:, :, 3:6].copy()
        return np.where(self.is_moment(rows)[:, None, None], found[:, :, :3], found[:, :, 3:6])

    def solve(self, what: int, q, v, acts: Acts, restitution=None) -> Answer:
        """The problem of the contacts whose modes are not OPEN."""
        q, v = np.ascontiguousarray(q), np.ascontiguousarray(v)
        worst = float(self.touch.residual[0])  # of the run
        while True:
            touch = self.touch
            touch.residual[0] = 0.0
            status = contact_solve.call(what, self.structure, q, v, acts.tau, acts.drives, acts.external,
                                        self.no_restitution if restitution is None else restitution, self.a, self.work)
            if touch.count[STATUS] != FULL:
                break
            if not self.grow():
                raise TooManyContacts(self.full())
        if status != FINE:
            refuse(self.plan, q, {"v": v, "tau": acts.tau})
        residual = float(touch.residual[0])
        if touch.count[STATUS] == NO_SOLUTION:  # the caller says so (Painleve): no poor convergence
            touch.residual[0], touch.count[ROUGHLY] = worst, max(touch.count[ROUGHLY] - 1, 0)
        else:
            touch.residual[0] = max(worst, residual)
        n = int(touch.count[ACTIVE])
        rows = touch.active[:n].copy()
        axes = self.axes(rows)
        three = (touch.force, touch.speed, touch.b if what == LOOK else touch.velocity)
        force, before, after = (x[:3 * n].reshape(n, 3).copy() for x in three)
        return Answer(rows, force, before, after, touch.mode[:n].copy(), axes, residual)

    def full(self) -> str:
        """Error text for more closed contacts than the maximum."""
        last = self.pair(int(self.touch.count[WORST]))
        return (f"more than {self.most} contacts at once, the last one of shapes {last}: give room for more, as in "
                f"bk.Simulation(..., max_contacts={2 * self.most})")

    def rough(self) -> str:
        """Message for a contact problem that has not converged."""
        n = int(self.touch.count[ACTIVE])
        return (f"contact of {self.named(self.touch.active[:n])}: the forces of {n} contacts were solved to a residual "
                f"of {self.touch.residual[0]:.1g} only (1e-10 is asked for): masses of extremely different size, or no "
                "forces that obey Coulomb's law")

    def mark_slip(self, answer: Answer, slides, direction) -> None:
        """Set the slip directions (two components each) of the contacts `slides` (indices in the answer)."""
        for place, d in zip(slides, direction, strict=True):
            k = answer.rows[place]
            self.touch.modes[k] = SLIDING
            vector = np.array([0.0, *d]) if k < self.joints else d @ answer.axes[place, 1:]
            size = np.linalg.norm(vector)
            at = MARK * k + MARK_SLIP
            other = (0.0, 1.0, 0.0) if k < self.joints else answer.axes[place, 1]
            self.touch.mark[at:at + 3] = vector / size if size > 0 else other

    def forces(self, q, v, acts: Acts, closed, slow: float = CONTACT_SLOW) -> Answer:
        """Forces of closed contacts; their new modes are stored in `touch`."""
        self.set_modes(closed)
        look, touch = self.solve(LOOK, q, v, acts), self.touch
        slip = np.hypot(look.before[:, 1], look.before[:, 2])
        sliding = np.flatnonzero(slip > slow)
        self.mark_slip(look, sliding, look.before[sliding, 1:])
        answer = self.solve(FORCES, q, v, acts)
        if touch.count[STATUS] == NO_SOLUTION:
            raise ContactError(self.jammed_by(answer.rows))
        size = max(np.abs(look.after).max(initial=0.0), LIGHT_LOAD)
        largest = np.abs(answer.force).max(initial=0.0)
        for place, k in enumerate(answer.rows):
            a, pressed = answer.after[place], answer.force[place, 0] > 1e-12 * largest
            if a[0] > 1e-9 * size and not pressed:
                touch.modes[k] = OPEN
            elif touch.modes[k] == STICKING:
                frictionless = self.arrays.contact_f[k, c.FRICTION] == 0.0
                if frictionless or np.hypot(a[1], a[2]) > 1e-9 * size:
                    self.mark_slip(answer, [place], [a[1:]])
        self.open_moments()
        return answer._replace(mode=touch.modes[answer.rows].copy())

    def pressing(self, q, v, acts: Acts, look: Answer) -> np.ndarray:
        """(n,) [m/s^2] Accelerations with which closed contacts are pressed together, by everything that acts and by
        each other: those that their own normal forces would take up if all were at rest."""
        try:
            answer = self.forces(q, v, acts, look.rows)
        except ContactError:  # no forces (Painleve): without those of the others
            return np.maximum(-look.after[:, 0], 0.0)
        n = 3 * len(answer.rows)
        mobility = self.touch.theta[:n * n].reshape(n, n).diagonal()[::3]
        return np.maximum(mobility * answer.force[:, 0], 0.0)

    def jammed_by(self, rows) -> str:
        """Error text for sliding contacts without a solution (Painleve)."""
        slides = [self.pair(int(k)) for k in rows[self.touch.modes[rows] == SLIDING]]
        return (f"contact of {' and '.join(dict.fromkeys(slides))}: rigid bodies that slide like this have no "
                "acceleration (Painleve's paradox): friction presses them into each other; less friction, another "
                "pose, or fixed steps (solver='symplectic_euler', step=...), which let it jam within a step")

    def impulses(self, q, v, acts: Acts, closed, restitution) -> tuple[np.ndarray, Answer]:
        """(v after the impact, impulses) of contacts that are closed and approach each other."""
        self.set_modes(closed)
        answer = self.solve(IMPACT, q, v, acts, restitution)
        if gains_energy(answer) and restitution.any():  # with friction a rebound may gain energy: less of it
            low, high = 0.0, 1.0
            for _ in range(30):
                part = 0.5 * (low + high)
                answer = self.solve(IMPACT, q, v, acts, part * restitution)
                if gains_energy(answer):
                    high = part
                else:
                    low = part
            answer = self.solve(IMPACT, q, v, acts, low * restitution)
        return v + self.touch.delta, answer

    def impulses_in_turn(self, q, v, acts: Acts, closed, shortest: float) -> tuple[np.ndarray, Answer]:
        """As `impulses`, by the sequential law (`contact/sequential_impacts.py`): rebounds one after another, the
        fastest approach first, unless their flight is shorter than `shortest` [s]; then the remaining approach
        velocity is removed at all contacts together, without rebound."""
        self.set_modes(closed)
        look, restitution = self.solve(LOOK, q, v, acts), self.arrays.contact_f[:, c.RESTITUTION].copy()
        rows, first, force, before = look.rows, -look.before[:, 0].min(), np.zeros_like(look.force), look.before.copy()
        least = shortest * self.pressing(q, v, acts, look)
        for _ in range(MOST_REBOUNDS + 4 * len(rows)**2):
            approach = -look.before[:, 0]
            bounces = 2.0 * restitution[rows] * approach > least
            approach = np.where(bounces, approach, 0.0)
            k = int(approach.argmax())
            if approach[k] <= IMPACT_ENDS * first:
                break
            v, answer = self.impulses(q, v, acts, rows[k:k + 1], restitution)
            force[k] += answer.force[0]
            before[k] = min(before[k], answer.before[0], key=lambda u: u[0])
            self.set_modes(closed)
            look = self.solve(LOOK, q, v, acts)
        v, answer = self.impulses(q, v, acts, closed, self.no_restitution)
        return v, answer._replace(force=force + answer.force, before=before)


def pair_names(shapes, arrays, k: int) -> str:
    """Names of the two shapes of contact k, for messages."""
    pair = arrays.pair_i[arrays.contact_i[k, c.CONTACT_PAIR]]
    return " and ".join(repr(shapes[pair[place]].name) for place in (c.PAIR_A, c.PAIR_B))


def most_of(contacts: int, asked: int | None, stepping: bool = False) -> int:
    """Maximum number of closed contacts: unless asked for, any number in time steps."""
    return min(contacts, asked if asked is not None else contacts if stepping else CONTACT_ROOM)


def gains_energy(answer: Answer) -> bool:
    """Whether impulses add to the kinetic energy, by more than rounding."""
    gained, given = 0.5 * (answer.force * (answer.before + answer.after)).sum(), np.abs(answer.force * answer.before)
    return bool(gained > AT_REST * given.sum())


WORDS = {c.PUSH: {OPEN: "lifts off", STICKING: "sticks", SLIDING: "slides"},
         c.SPIN: {STICKING: "stops to spin", SLIDING: "spins"}, c.ROLL: {STICKING: "stops to roll", SLIDING: "rolls"}}
LIMITS = {c.LOWER: "lower", c.UPPER: "upper"}
IDENTITY = "identity"
STATE = {"modes": 1, "held": 3, "mark": MARK, "features": FEATURES}
"""Contact state of a run, with the number of scalars of a contact; beside `margin`."""
TALLIES = (SOLVED_COUNT, ITERATIONS, ROUGHLY, ROUGH_CONTACTS, WORST)
"""Counts that stay while memory grows."""


def _made_again(mechanism: Mechanism, locked, most: int | None, in_turn: bool, listing: bool, near, stepping: bool,
                structure, known) -> Touching:
    made = Touching(mechanism, locked, most, in_turn, listing, near)
    if stepping != listing:
        made.lay_out(stepping)
    made.structure = structure._replace(touch=made.structure.touch)
    made.recall(known)
    return made


__all__ = ["IDENTITY", "STATE", "Acts", "Answer", "TooManyContacts", "Touching", "pair_names"]
