"""Every threshold that results depend on, with its meaning and unit; numbers without a unit are relative.

Constants of a single method (step-size control, numbers of iterations, rounding in the geometry of contacts) stay with
the method.
"""

# -- inertia: articulated bodies, mass matrices ----------------------------------------------------------------------
CANCELLED = 1e-14
"""A joint-space inertia below this part of the terms it is the difference of is zero: rounding has made it. The same
for what a joint leaves of an inertia, as a part of what it was."""
NO_MOMENT = 1e-12
"""A moment of inertia below this part of the body's largest moments is zero: a rod about its axis."""
NOT_MOVABLE = 1e-10
"""Smallest eigenvalue of a mass matrix with a diagonal of ones below which a joint has no inertia to move."""
OWN_INERTIA = 1e-5
"""Part of the links' own inertia that rounding leaves on the diagonal of a mass matrix, at most: its least scale."""
TERMS_ROUNDED = 1e-15
"""Part of its terms by which the equation of a coupling, q2 = ratio q1 + offset, may be missed: rounding."""
FADED = 1e-120
"""Along ten thousand links a force dies out; below this it is zero, before it becomes a (slow) denormal number."""

# -- rank of constraints ---------------------------------------------------------------------------------------------
PIVOT = 1e-11
"""A pivot of Theta = J M^-1 J^T below this part of its diagonal entry is zero: the direction has no mobility."""
NOISE = 1e-11
"""Part of the total mobility that counts as size of every direction; times PIVOT, the squared rounding-error floor."""
SURELY_ZERO = 0.1
"""A dropped pivot above this part of the threshold is in doubt. Rounding leaves less, and so do frames of redundant
connections that do not quite fit each other."""
SURE = 1e-4
"""A kept pivot below this part of its diagonal entry is in doubt: `algorithms/proximal.py` solves again."""
WELL_CONDITIONED = 1e3
"""Ratio of a diagonal entry to its pivot up to which only a few digits are lost."""
SINGULAR_VALUE = 1e-9
"""Singular values of a constraint Jacobian below this part of the largest are zero; the same for columns that a
factorisation with pivoting leaves."""
CLEAR = 1e-4
"""As SINGULAR_VALUE, for accelerations: along weaker directions, near a singular configuration, they are
undetermined."""
ACTUATED = 1e-10
"""Directions in which actuators move less than this part of the largest cannot be actuated."""
BALANCED = 1e-11
"""Entries of a null-space vector, which starts from one force of 1, that only rounding has made."""
TAKES_PART = 1e-6
"""Part of the largest entry of a null-space vector from which on a connection is among those that contradict."""

# -- residuals of constraints ----------------------------------------------------------------------------------------
INCONSISTENT = 1e-7
"""Part of the accelerations involved that constraints may demand in directions without mobility."""
FITS_LOOPS = 1e-6
"""Part of the accelerations involved by which given accelerations may contradict the loops (inverse dynamics)."""
UNDRIVEN = 1e-8
"""Part of the torques involved that actuators may leave undriven (inverse dynamics)."""
UNDRIVEN_FLOOR = 1e-12
"""[N, N m] The rounding-error floor of these forces, for a mechanism at rest."""
ACCELERATION_FLOOR = 1e-9
"""[m/s^2, rad/s^2] The rounding-error floor of accelerations, for a mechanism at rest."""
RESIDUAL = 1e-13
"""Part of the accelerations (velocities) involved that constraints may leave without a refinement."""
REFINED = 1e-9
"""The same after a refinement: more is a failure."""
MISSED = 3e-13
"""Part of the accelerations involved by which a direction that elimination has dropped may be missed, beside the gap of
the loops. More comes from forces that cancel, and `algorithms/proximal.py` solves again."""
PROXIMAL = 1e-9
"""mu of the proximal method, relative to the largest mobility: well above the rounding-error floor, well below
directions that matter."""
PROXIMAL_RESIDUAL = 1e-15
"""The proximal method ends at this residual, relative to the accelerations involved."""
PROXIMAL_PROGRESS = 0.9
"""It also ends when a solution leaves more than this part of the residual before it: what remains is inconsistent."""
PROXIMAL_GAP = 1e-9
"""[m, rad] Loops open by more are not solved by the proximal method: constraints that contradict each other by a gap d
make an error of d^2 / mu, while elimination leaves the redundant ones out altogether."""

# -- closed loops ----------------------------------------------------------------------------------------------------
CLOSED = 1e-6
"""[m, rad] A loop open by no more than this is closed, wherever a simulation starts or changes. The frames of redundant
connections never fit each other exactly; a gap that no move can close is left to forces."""
TOO_OPEN = 1e-3
"""[m, rad] Accelerations of loops open by more mean nothing; loops held by forces (Baumgarte) have come apart."""
EXACT = 1e-10
"""[m, rad, m/s, rad/s] Gaps below need not be closed any better at a start; Newton's method leaves no more where it
converges."""
PROJECTED = 1e-12
"""[m, rad] How closely `project` closes loops where moves can do it."""
STILL_OPEN = 1e-9
"""[m, rad] The largest gap a step may leave; more, and it has failed (unless frames do not fit, see CLOSED)."""
ROUNDING = 1e-12
"""[m, rad] Gaps at rounding level: new factors close them no better."""
SMALLEST_GAP = 1e-13
"""[m, rad; per second] Estimated gap at which closing ends."""
ONE_MOVE = 1e-6
"""[m, rad] A gap below is closed by one move up to its square."""
NEAR_FACTORS = 1e-4
"""[m, rad] Factors are used again up to this distance from the coordinates at which they were computed."""
LEFT_BY_FACTORS = 3.0
"""[1/m, 1/rad] Part of a gap that factors leave, at most, per such distance."""
START_MATTERS = 0.1
"""[m, rad] Gaps below which Newton's method moves towards the start too; before, moves are too large to be planned."""
SHORTEST_MOVE = 1e-3
"""Part of Newton's move below which shortening it has failed to reduce the gap."""
DAMPING = (1e-2, 1e-14, 1e6)
"""Damping of Levenberg-Marquardt over the largest singular value squared: initial, least, and where it gives up."""
MASS_ADDED = 1e-12
"""Part of its mean diagonal entry added to a mass matrix before factorisation: massless links make it singular."""
LESS_GAP = 1e-6
"""Part by which a damped move must reduce the sum of squares of the gaps."""
IN_VAIN = 0.01
"""Moves that close less than this part of a gap are in vain."""
ALLOWED = 10.0
"""Error tolerances by which closing the loops may change a step."""
ALLOWED_FIXED = 0.5
"""The same for fixed steps: part of the step, and of the velocities at its beginning or end."""

# -- inverse kinematics ----------------------------------------------------------------------------------------------
IK_DAMPING = 0.5
"""Damping of a step, as part of the sum of squares of the errors [Sugihara 2011]."""
IK_FLOOR = 1e-12
"""The least damping, as part of the largest mobility of a row: keeps redundant rows solvable."""
IK_RANK = 1e-6
"""Part of the largest row of its level below which a row has no direction of its own for the levels after it."""
IK_LEVEL = 1e-6
"""How much less the squared error of a level counts than that of the level before, where a step is judged."""
IK_EXACT = 2e-15
"""[m, rad] Errors that no step makes smaller."""
IK_STILL = 1e-13
"""[rad, m] Steps below end the search."""
IK_GIVEN_UP = 0.3
"""Part of the sum of squares that may be left after four steps; more, and another start is tried."""

# -- explanations in errors ------------------------------------------------------------------------------------------
POSE_NEARBY = 1e-3
"""[m, rad] Step to a pose nearby: where actuators can do more there, the pose is singular."""
WORTH_NAMING = 1e-3
"""Part of the largest undriven force from which on others are named beside it."""
ONLY_TURNS = 1e-9
"""[m/s per velocity] Speed of the fastest link below which the motion is a rotation."""

# -- singular configurations -----------------------------------------------------------------------------------------
WEAK = 0.25
"""Ratio of the smallest pivot to its recent size below which a constraint is weak."""
FADING = 0.99
"""How the recent size decays from step to step."""
BLIND = 1e-7
"""The same ratio below which accelerations are lost in rounding and a step coasts."""

# -- time ------------------------------------------------------------------------------------------------------------
LAST_STEP = 1e-6
"""Part of a fixed step of symplectic Euler by which the last one may be longer, instead of one more: the sum of n steps
has a rounding error of up to 1e-16 n^2 of a step. Contact in one of 1e-13 s more is a problem of its own, with impulses
of 1e-9 of those before."""
LAST_STAGE = 1e-12
"""The same for methods with stages."""
AT_REST = 1e-12
"""Part of what contact forces do, below which the sum with everything else is nothing: what is at rest stays there."""

# -- contact ---------------------------------------------------------------------------------------------------------
CONTACT_WORK = 1e9
"""[multiplications] Bound on the further attempts at a contact problem, a factorisation of n rows counted as n^3,
beside two Newton iterations (60 factorisations): 0.1 to 0.2 s for 80 contacts. Small problems never come to it. Then
the best forces so far are taken; their residual is in `stats.contact_residual`, and above 1e-7 in a warning."""
NEGLIGIBLE = 1e-13
"""Part of the largest mobility of a contact problem as which smaller ones count; part of the slip below which friction
counts as none."""
LAW_AIM = 1e-12
"""Residual of the contact law at which iterations for a problem with a full matrix end, as part of its size."""
LAW_CLOSE = 3e-11
"""The same, up to which nothing else is tried: lanes are done, and there are no further attempts."""
LAW_ENOUGH = 1e-10
"""The same, up to which a problem counts as solved."""
LAW_RANK = 1e-12
"""Columns below this part of the longest one are zero in a step towards the law: directions that nothing can move."""
LAW_RANK_FAR = 1e-9
"""The same far from a solution."""
ENORMOUS = 1e13
"""Multiple of |b|, the velocities (accelerations) without forces, as which larger effects of contact forces count in
the size of a problem: enormous forces that cancel are no solution. Ratios of masses up to 1e12 need as much."""
CANCELS = 1e5
"""The same in the residual that is reported: a light body that carries a heavy one is between forces that nearly
cancel, and a residual beside these says little about its motion."""
BORDER_SLIP = 1e-9
"""Part of the size of a problem above which slip is slip in lanes; below, a contact is at the border of its cone."""
QUICK = 20.0
"""[m/s^2] Acceleration within which contacts near by are in the problem of a time step."""
QUICK_JOINT = 1e3
"""[rad/s^2, m/s^2] The same of limits of joints."""
ONE_NORMAL = 1.0 - 1e-12
"""Product of two normals from which on they are one."""
OVERLAP_LEFT = 1e-10
"""[m] Penetration that time steps leave."""
LEAST_REBOUND = 0.1
"""Part of the restitution, where all of it would gain energy, below which there is no rebound."""
ALL_PAIRS = 200
"""Shapes up to which the list of pairs has all of them; those of more are listed when they are near."""
PAIR_RESERVE = 0.5
"""Part of the smallest radius by which shapes may approach each other before pairs are listed anew."""
MOST_SHAPES = 2000
"""Shapes up to which event-driven simulation looks at all pairs."""
CLOSED_GAP = 1e-9
"""[m] Gap below which a contact is closed in a time step. Gaps of the corners of a face that lies on another one differ
by rounding and by what the removal of penetration leaves; if each were to close, one corner would have to open."""
HEAP_AIM = 1e-13
"""Residual of the contact law at which iterations for a large island end, as part of the size of its problem."""
HEAP_ENOUGH = 1e-10
"""The same, up to which its problem counts as solved."""
HEAP_PARTED = 1e-3
"""Part of the largest penetration of a large island that one step may leave: the next ones remove it."""
IMPACT_ENDS = 1e-6
"""Part of the fastest approach of an impact below which rebounds one after another end: what is left of approach is
stopped at all contacts together, without rebound."""
MOST_REBOUNDS = 100
"""Bound on the rebounds of one impact, one after another: this and 4 K^2 for K contacts; n equal balls need n^2 / 2."""

# -- contact at a state and between events -----------------------------------------------------------------------------
CONTACT_CLOSED = 1e-9
"""[m] Gaps below count as closed, unless a caller has limits of its own."""
CONTACT_SLOW = 1e-7
"""[m/s] Slip and separation below count as none, likewise."""
TOO_DEEP = 1e-6
"""[m] Larger initial penetration is an error. Recorded states of adaptive solvers overlap by less than 1e-7 m, whatever
the tolerance: closed contacts are projected after every step, open ones close at CLOSING_DEPTH, and contacts that begin
to part have a slack of 1e-7 m at most (`simulation/contact_events.py`). Those of time steps: `deepest_start` there."""
DENSE_ISLAND = 20
"""Contacts of the largest island of a time step whose problem has a full matrix (`contact/problem.py`); larger ones are
solved by `contact/heap.py`."""
CONTACT_ROOM = 64
"""Contacts that can be closed at once with events, unless `max_contacts` is given, and for which there is memory at
first; more is allocated when needed."""
CONTACT_NEAR = 0.02
"""[m] Distance within which contacts are looked at between events; farther pairs count by their bounding spheres."""
CONTACT_FAR = 1e6
"""[m] Distance of shapes of which none may touch."""
SMALL_GAP_LEFT = 1e-10
"""[m] Gaps and overlaps of closed contacts below are left: a body at rest stays at rest to the last bit."""
SMALL_SPEED_LEFT = 1e-10
"""[m/s] The same for normal velocity and slip."""
LARGE_MOVE = 1e-4
"""[m, rad] Moves that close gaps due to the solver's errors are smaller."""
NO_DIRECTION = 1e-9
"""[m/s] Slip below has no direction of its own."""
UNDER_WAY = 10.0
"""Multiple of the speed at which slip ends, from which on slip that has started from rest is checked again."""
FORCE_RANK = 1e-11
"""Part of its size below which a column of the matrix of forces depends on others."""
ADMISSIBLE = 1e-9
"""Part of the largest force by which one may violate the contact law."""
SAME_MOTION = 1e-8
"""Part of the largest acceleration by which motions may differ that count as the same."""
LIGHT_LOAD = 1e-3
"""[m/s^2] or of this, if that is larger: without a load accelerations are rounding errors."""
GRAZED = 2e-7
"""[m] Overlap at which a contact is closed even if it separates: it was grazed between two looks at it."""

FLUSH = 2e-9
"""[m] Vertices that are lower along a normal by no more belong to the feature that it is normal to: normals of faces
and edges are exact, those that are snapped to them (`contact/face_points.py`) take vertices apart by 3e-9 m at most."""
AT_END = 1e-6
"""Part of its length within which a contact is at the end of a capsule or cylinder."""
CROSSING = 1e-6
"""Sine of the angle between two edges above which they cross: the normal of flatter ones has fewer than 10 digits."""
NO_RADIUS = 1e-6
"""[m] Gap and radii together below which a normal is not determined by the distance of two points, or of a point and an
edge: it turns with the second body."""
SHARP = 1e-12
"""Sines below count as zero where something is divided by them."""
OTHER_FEATURE = 1e-5
"""[rad] Angle between the normal found and that of the kept features of a closed contact, from which on others may have
taken over: a hundred times the rounding error of normals."""
TAKEN_OVER = 3e-9
"""[m] Difference of the gaps from which on they have: just beyond the end of an edge several features are equally near,
and the right one is found once they differ by more than FACE_FIRST (`contact/separating_axes.py`)."""
SMOOTH_TURN = 1e-2
"""[rad] Below, the normal has not jumped but turned, and the features have changed in any case."""

# -- contact events ----------------------------------------------------------------------------------------------------
SHORTEST_FLIGHT = 1e-6
"""[s] Shorter flights are suppressed (Zeno cut-off)."""
APPROACHES = 1e-12
"""[m/s] Contacts that approach more slowly are at rest."""
SEPARATES = 1e-8
"""[m/s] Contacts that separate faster are open."""
DRIFTED = 1e-6
"""[m/s] Slip of a sticking contact, below which it is an error of the solver; and [m] the same for gaps."""
CLOSES_SOON = 1e-7
"""[s] Contacts that differ from closed ones by the solver's errors are closed if they close within this time."""
LEAVES_SLOWLY = 1e-7
"""[m/s] Contacts that separate more slowly seem to close again while the solver makes its first, short steps."""
WIDEST = 1e4
"""CLOSES_SOON and LEAVES_SLOWLY are ten times as large at each further event at the same moment, which the solver's
errors have caused, up to this factor."""
STILL_SLIP = 1e-11
"""[m/s] Slip at rounding level."""
SLOWEST_JAM = 1e-2
"""[m/s] Slip up to which an impulse ends it where rigid bodies have no acceleration."""
TRACE = 1e-6
"""Part of the kinetic energy that may be removed together with slip due to the solver's errors."""
CLOSING_DEPTH = 1e-13
"""[m] Overlap at which an open contact counts as closed."""
SMALLEST_MARGIN = 1e-9
"""Part of the largest acceleration by which modes must violate the law after an event at which nothing has changed; ten
times as much after each further one."""
ZENO = 100
"""Events at one moment that are an error, if time steps must not replace them."""
ROUGH_ENOUGH = 1e-7
"""Residual of a contact problem from which on a warning reports it; `stats.contact_residual` has it in any case."""

# -- steps in place of contact events --------------------------------------------------------------------------------
CROWD = 100
"""Contact events within CROWD_TIME from which on time steps replace them. A bouncing ball comes to rest within 60
events: they stay exact."""
CROWD_TIME = 0.1
"""[s] See CROWD: one event per millisecond, the length of the steps that replace them."""
STUCK = 20
"""Contact events at one moment from which on time steps replace them; without such steps ZENO are an error."""
STEADY = 4
"""Looks in a row, LOOK_STEPS steps apart, at which the same contacts are closed, for events to replace steps again."""
LOOK_STEPS = 16
"""Steps between two looks."""
SHORTEST_STAY = 0.05
"""[s] Time steps replace events for at least this time; for twice as long as the last time if events became crowded
again within ten times that."""
FLIGHT_CHANGES = 0.5
"""Part of the accelerations by which they may change within a time step between events; else it is halved. Explicit
methods are stable up to about 2."""
FLIGHT_SLOW = 1e-3
"""[m/s, rad/s] Velocity below which such a change does not matter."""
FLIGHT_SHORTEST = 1.0 / 64.0
"""Part of the length of these steps down to which they are halved, by forces that jump in any case."""
FLIGHT_TURN = 0.05
"""[rad] Largest rotation of a body in such a step: the energy of its spin is kept to 1e-8 a step."""

# -- rays ------------------------------------------------------------------------------------------------------------
RAY_EDGE = 1e-10
"""Part of a triangle of a height field, or of a bounding sphere, by which a ray may miss it: rounding."""
