"""The map of the kernel layer: every flat array, the meaning and unit of each field, and the pass that writes it.

A mechanism becomes *bodies*: one per link and per degree of freedom of a compound, cylindrical or planar joint
(the intermediate ones without mass), minus the links that a Fixed joint merges into their parent. Bodies are numbered
depth first, so the first child of a body follows it directly and a kernel can hand results over in registers.
Each body has its own *body frame*: the link frame, turned so that a 1-DOF joint's axis is z.

All spatial quantities are in world axes about the origin of the body's *group*. A body flagged ANCHOR opens a
group: the origin is then the position of its own frame. Inside a group nothing has to be transformed; groups are
small (`GROUP_DEPTH` joints), so no digits are lost on long chains. [docs/algorithms.md]

Plan arrays are constant and shared between threads. Work arrays belong to one call and are of the scalar in use:
shape (size,) for one state, (size, W) for a lane of states.
"""

# -- joint kinds of bodies (column KIND) ---------------------------------------------------------------------------
REVOLUTE = 0     # turn about z
SCREW = 1        # turn by RATE_ANGULAR * q about z and slide by RATE_LINEAR * q along z (prismatic, helical)
SPHERICAL = 2    # quaternion (w x y z); velocity: angular, child axes
FREE = 3         # position (parent axes), quaternion; velocity: linear, angular, child axes
FIXED = 4        # no freedom (only in plans that keep Fixed joints apart)

# -- how forward dynamics eliminates the joint (column ELIMINATION) ------------------------------------------------
COLUMNS = 0      # one degree of freedom after the other
BALL = 1         # spherical joint without armature: three at once (always an ANCHOR)
LOOSE = 2        # free joint without armature: six at once (always an ANCHOR)
LOCKED = 3       # nothing to eliminate: acceleration given (in place of torque), or fixed

# -- body_i (bodies + 1, BODY_I) int32: one row per body; the last row is the header -------------------------------
PARENT = 0       # parent body, -1 for ground
KIND = 1         # joint kind, above
ELIMINATION = 2  # above
Q_INDEX = 3      # first coordinate of the joint in q
V_INDEX = 4      # first velocity of the joint in v
DOF = 5          # number of velocities
ANCHOR = 6       # opens a group: OPENS everywhere but in the mass matrix, OPENS_IN_MATRIX there; or both, added
MASSIVE = 7      # 1: has mass or inertia
BODY_RECORD = 8       # where in the work array of forward dynamics the body's record starts
PARENT_SLOT = 9         #   the slot of its parent
OWN_SLOT = 10          #   its own slot: the carry if its only child follows it
CHILD_SLOT = 11       #   the slot its children leave their inertia in (the ground's, empty, if it has none)
ADDS = 12      # 1: siblings leave theirs in the same slot, so it adds instead of overwriting
PLAIN = 13       # cases worth code of their own: PLAIN_HINGE a torque-driven revolute joint inside a group,
                 # PLAIN_BALL a massive body on a torque-driven spherical joint
RUNS_ON = 14          # 1: PLAIN as is its parent, which is the body before it and has no other child
COLUMN = 15      # if ROTATION only renames axes in turn: the parent's axis that becomes x (0, 1, 2); else -1
BODY_I = 16
PLAIN_HINGE, PLAIN_BALL = 1, 2
OPENS, OPENS_IN_MATRIX = 1, 2

# header row (body_i[bodies, ...])
HEAD_SLOTS = 0       # number of slots
HEAD_PASSIVE = 1     # 1: some joint has a spring, a damper or a limit
HEAD_SPRINGS = 2     # number of point-to-point springs
HEAD_WORK = 3        # size of the work array of forward dynamics
HEAD_NQ = 4          # number of coordinates
HEAD_ORDERED = 5     # 1: velocities are numbered like the bodies that have them
HEAD_SCRATCH = 6     # chunks only: where in the work array joins have scratch memory
HEAD_SUMS = 7        # chunks only: where the sums of the chunks are, EDGE_SUMS each
HEAD_TOTALS = 8      # chunks only: where the totals are
HEAD_FREEDOMS_IN_LANES = 9   # shapes only: columns of their dof_f
HEAD_SHAPES = 10     # plans in lanes only: rows of body_i of their shapes, the header included

# -- body_f (bodies + 1, BODY_F) float64: one row per body; the last row is the ground -----------------------------
ROTATION = 0     # 9, rotation of the joint frame in the parent's body frame
OFFSET = 9       # 3, origin of the joint frame from that of the parent's body frame, in joint axes [m]
INERTIA = 12     # 6, about the centre of mass, body axes [kg m^2]
COM = 18         # 3, centre of mass in the body frame [m]
MASS = 21        # 1, [kg]
RATE_ANGULAR = 22  # 1, rad of turn per unit of q (SCREW)
RATE_LINEAR = 23   # 1, metres of slide per unit of q (SCREW)
BODY_F = 24
GRAVITY = 0      # ground row only: 3, gravity in world axes [m/s^2]

# -- dof_f (DOF_F, nv) float64: passive behaviour of each degree of freedom ------------------------------------------
ARMATURE = 0         # rotor inertia added to the diagonal of the mass matrix [kg m^2 or kg]
DAMPING = 1          # torque = -DAMPING v
STIFFNESS = 2        # torque = -STIFFNESS (q - REST); spherical joints: on the rotation vector from the rest pose
REST = 3             # rest value of q
LOWER = 4            # limit [rad or m], -inf if none
UPPER = 5            # limit, +inf if none; spherical joints: largest turn from the rest pose
LIMIT_STIFFNESS = 6  # torque per unit beyond a limit; 0: the limit is information only
LIMIT_DAMPING = 7    # torque per unit of velocity while beyond a limit
DOF_F = 8

# -- link_i (links, LINK_I), link_f (links, LINK_F): where the links people named are -------------------------------
LINK_BODY = 0    # body that carries the link, -1 for ground
LINK_I = 1
LINK_ROTATION = 0  # 9, rotation of the link frame in the body frame
LINK_OFFSET = 9    # 3, origin of the link frame in the body frame [m]
LINK_F = 12

# -- external (6 per link, then PULL per pull): forces and moments on links, at their origins, in world axes; and pulls,
# springs from a point of a link to a place in the world and, if they turn, from its rotation to a given one. Empty if
# there are none; batches have no pulls.
PULL_LINK = 0       # number of the link
PULL_POINT = 1      # 3, in the link's frame [m]
PULL_TARGET = 4     # 3, in the world [m]
PULL_STIFFNESS = 7  # [N/m]
PULL_DAMPING = 8    # of the point's whole velocity [N s/m]
PULL_ROTATION = 9   # 9, of the link in the world, to which it is turned
PULL_TURN_STIFFNESS = 18  # per angle of the turn that is left [N m/rad]; 0, as the next, without a rotation
PULL_TURN_DAMPING = 19    # 6, symmetric (xx xy xz yy yz zz), in the link's axes, of its angular velocity [N m s/rad]
PULL = 25

# -- spring_i (springs, 2), spring_f (springs, SPRING_F): springs and dampers between two points ----------------------
SPRING_A = 0     # first link, -1 for ground
SPRING_B = 1     # second link
SPRING_STATE_A = 2  # chunks with loops only: SPRING_A, SPRING_B are bodies, -1 for ground and those of other workers;
SPRING_STATE_B = 3  # points are in their frames, and here are the states of both ends
POINT_A = 0      # 3, point in the first link's frame [m]
POINT_B = 3      # 3
SPRING_K = 6     # [N/m]
SPRING_LENGTH = 7  # rest length [m]
SPRING_D = 8     # [N s/m]
SPRING_F = 9

# -- state of a body: in slots (pass 1; about the origin of its group) and in `states` (about its own origin) --------
STATE_ROTATION = 0       # 9
STATE_POSITION = 9       # 3 [m]
STATE_OMEGA = 12         # 3, angular velocity [rad/s]
STATE_VELOCITY = 15      # 3 [m/s]
STATE_ALPHA = 18         # 3, angular acceleration [rad/s^2]
STATE_ACCELERATION = 21  # 3, spatial [m/s^2]
STATE_SIZE = 24

# -- work array of forward dynamics: slots, then records ---------------------------------------------------------------
# Slots hand results from body to body: 0 the ground, 1 the carry (from a body to the one right behind it), then one
# for each body with several children.
SLOT_STATE = 0   # STATE_SIZE                                                  pass 1, down
SLOT_INERTIA = 0   # 21: A, B, C of the subtrees beyond, below                  pass 2, up
SLOT_BIAS = 21   # 6, the force they need                                       pass 2, up
SLOT_TURNING = 27  # 1, traces of A and C before joints took their part: what rounding   pass 2, up; only where
SLOT_MOVING = 28   # 1, noise of the inertia is relative to                              subchains are grafted
SLOT_ACCELERATION = 0  # 6                                                      pass 3, down
SLOT_SIZE = 29
SLOT_CARRY = SLOT_SIZE  # where slot 1 starts
INERTIA_A, INERTIA_B, INERTIA_C = 0, 6, 15  # an articulated inertia [A B; B^T C]: 6, 9, 6
# Record of a body; pass 1 writes the first three and the joint part, pass 2 puts its results over the first three.
REC_INERTIA = 0  # 6, of the body about the group origin             pass 1 -> 2
REC_MOMENT = 6   # 3, mass times centre of mass                      pass 1 -> 2
REC_MASS = 9     # 1, mass                                           pass 1 -> 2
REC_FORCE = 10   # 6, force the body needs at zero joint acceleration  pass 1 -> 2
REC_JOINT = 16   # COLUMNS: 6 per dof, axis (angular, linear); BALL, LOOSE: rotation 9   pass 1 -> 2, 3
REC_U = 0        # COLUMNS: U 6, 1/D, u of the first dof             pass 2 -> 3; `tree.factors_of`
U_INVERSE, U_PUSH = 6, 7  # places of 1/D and of u behind U
REC_U_SIZE = 8   #          of further dofs, after the joint part and the origin
REC_BALL_K = 0   # BALL: 3, angular acceleration at zero parent acceleration; then G 9   pass 2 -> 3
REC_BALL_G = 3
REC_BALL_F = (12, REC_JOINT + 12)  # chunks in lanes: factors of A, 4 of them here and 2 behind the origin   pass 2 -> 3
REC_LOOSE = 0    # LOOSE: 6, acceleration                            pass 2 -> 3
# After the joint part of an ANCHOR: 3, position of its origin in the parent's group   pass 1 -> 2, 3

GROUP_DEPTH = 12     # joints a group may be deep
GROUP_REACH = 100.0  # a body farther from the group's origin than this many times its mass is from its joint's axis
                     # opens a group


# -- connections: joints that close loops ----------------------------------------------------------------------------
# conn_i (connections + 1, CONN_I) int32: one row per connection; the last row is the header
BODY_A = 0       # body on the parent side, -1 for ground
BODY_B = 1       # body on the child side
MEET = 2         # nearest body above both, -1 for ground
LAW = 3          # how coordinates follow from the pose, below
ROWS = 4         # constrained directions (multipliers)
FIRST_ROW = 5    # first of them among all
FREEDOMS = 6     # free directions
FIRST_FREEDOM = 7  # first of them in the tail of tau
STATE_A = 8      # slot in which pass 1 leaves the state of body a
STATE_B = 9
ELEMENTS = 10    # simple joints in a row
GIVEN = 11       # 1: the tail of tau holds accelerations in place of torques
ORIGIN_A = 12    # where the origin of body a's group is in the world; -1: found by going up to MEET   (chunks only)
ORIGIN_B = 13
CONN_I = 14
LAW_FIXED, LAW_SCREW, LAW_CYLINDRICAL, LAW_PLANAR, LAW_SPHERICAL, LAW_FREE, LAW_COMPOUND, LAW_COUPLED = range(8)
# A coupling of two joints (LAW_COUPLED) is a connection without a place: its one row is q_b - ratio q_a - offset, of
# the joints that bodies a (the leader) and b (the follower) hang by; MEET is above both joints.
# header row (conn_i[connections, ...])
HEAD_ROWS = 0        # multipliers of all connections
HEAD_FREEDOMS = 1    # free directions of all connections
HEAD_CONN = 2        # where in the work array the records of connections start
HEAD_FORCES = 3      # where the multipliers start, followed by the forces at other handles
HEAD_JUDGED = 4      # where the scalars to judge the result by are: JUDGED_..
HEAD_TOTAL = 5       # size of the work array, without room for passive torques and wrenches
HEAD_LOOPS = 6       # connections of the whole mechanism, those of other workers included
HEAD_VOTES = 7       # chunks only: where a worker's votes are, VOTES each: its own, then one it has received
HEAD_BALLOT = 8      # 6 numbers of boxes, from 1 on, or 0: take from two workers, post to one, take from it, post to
                     # the two; all 0 if there is one worker
JUDGED_PIVOT = 0    # smallest pivot relative to its diagonal entry
JUDGED_CLASH = 1    # largest inconsistency of the constraints
JUDGED_MOBILITY, JUDGED_DRIVE = 2, 3  # sums over degrees of freedom: |S|^2 / D, u^2 / D
JUDGED_WEAKEST = 4  # smallest pivot
JUDGED_SOFT = 5     # how much constraints may yield per force: 0, or that of a second look (`algorithms/proximal.py`)
JUDGED_GAP = 6      # square of the largest gap [m^2, rad^2]; only for accelerations
JUDGED_DROPPED = 7  # positive if a dropped pivot is close to the threshold; -1 if none was dropped
JUDGED_MISSED = 8   # positive if a redundant direction is met less exactly than rounding and gaps explain; -1 if none
JUDGED = 9

# conn_f (connections, CONN_F) float64
FRAME_A = 0      # rotation 9 and origin 3 of the joint frame in the frame of body a
FRAME_B = 12     # the same in the frame of body b
FRAME_ORIGIN = 9 # where the origin is behind the rotation
SCREWS = 24      # ELEMENTS times: axis 3, point 3, turn and slide per unit of the coordinate
SCREW_TURN, SCREW_SLIDE = 6, 7
SCREW_SIZE = 8
DIRECTIONS = 72  # ROWS times 6: constrained directions (angular, linear), joint frame of b; not for LAW_COMPOUND
CONN_PASSIVE = 108   # FREEDOMS times: a column of dof_f, without armature
LENGTH = 156     # length that makes moments and forces comparable [m]
ROTOR = 157      # first row only: rotor that joints get which only loops hold up, part of loops.dof_f [kg m^2, kg]
HOLD = 158       # rate at which an open loop closes by itself (Baumgarte) [1/s]; 0: it does not
CONN_F = 159
COUPLED_RATIO = 0   # couplings only, in the place of the frames
COUPLED_OFFSET = 1

# Record of a connection in the work array (joint frame of b: its origin is where forces act)
CONN_TURN = 0    # 9, joint frame of b in world axes
CONN_ARM_A = 9   # 3, its origin in the group of body a
CONN_ARM_B = 12  # 3, in the group of body b
CONN_DRIVE = 15  # 6, wrench of springs, dampers and drives on b, world axes (moment, force)
CONN_BIAS = 21   # 6, right-hand side of the constraint along the constrained directions
CONN_COLUMNS = 27  # 36, constrained directions, world axes (angular, linear); of the factors at hand, carried with b
CONN_COORDINATES = 63  # 6, coordinates (a rotation as vector)
CONN_RATES = 69  # 6
CONN_AXES = 75   # 36, free directions, joint frame of b
CONN_SCRATCH = 111  # 36 + 12 + 6, orthogonal factors of the free directions (LAW_COMPOUND)
CONN_GAP = 165   # 6, how far it is open along the constrained directions; not for accelerations
CONN_RECORD = 171

# -- program: what forward dynamics of a closed structure does, one operation after the other ------------------------
# prog is int32: how many operations there are, the operations (PROGRAM_STEP numbers each: kind and arguments), lists.
OP_SWEEP = 0     # first body, last body (descending), 1 to measure: plain articulated bodies
OP_STEP = 1      # body, front, rows, where y is kept, ids, list or 0, 1 to measure: eliminate its joint
                 # list: for each degree of freedom its rotor's row or -1; how many couplings the joint has; of each its
                 # row, and 2 connection + side
OP_NEW = 2       # front, rows: zero
OP_START = 3     # front, row, connection, side: put the handle of a connection on a front
OP_HANDLE = 4    # front, row: six rows for the motion of the near body itself
OP_ATTACH = 5    # front, rows, target front, list of target rows: fronts that meet at one body add up
OP_CLOSE = 6     # front, rows, how many of them (the last), slot of the near body or -1, ids, sign, scratch
OP_RESET = 7     # slot: zero
OP_GRAFT = 8     # list: see GRAFT_FRONT
OP_BEGIN = 9     # a chunk begins                                                           9 to 11: chunks only
OP_LEAVE = 10    # slot above the chunk, parcel, list, fronts, box up or -1, box down or -1: to the chunk above
OP_ARRIVE = 11   # slot of the far body or -1, parcel, list, fronts, box up or -1, box down or -1: from a chunk
                 # list, for each front: place, rows, the number of each row's force
PROGRAM_STEP = 8
PROGRAM_START = 1

# List of a graft: subchain B, through its joint already, goes to handle rows of front A
GRAFT_FRONT, GRAFT_HANDLE = 0, 1          # front A, first of its six handle rows
GRAFT_TARGET, GRAFT_COUNT = 2, 3          # front that results, its number of rows
GRAFT_OTHER = 4                           # front B
GRAFT_SLOT, GRAFT_NEAR = 5, 6             # slot with B's inertia and force, slot of A's near body or -1
GRAFT_KEPT, GRAFT_ID = 7, 8               # where results are kept, id of the first handle force
GRAFT_RANK = 9                            # joint forces to find: 3 for a spherical joint, else 6
GRAFT_ROWS = 10                           # for each row of the result: row of A, row of B, joint force (or -1), id
GRAFT_ROW = 4
# What a graft keeps: free acceleration 6, force of B 6, factor of B's inertia 36, then for each row alpha 6, t 6
KEPT_FREE, KEPT_PUSH, KEPT_FACTOR, KEPT_ROWS = 0, 6, 12, 48
KEPT_MOVE, KEPT_ROW = 6, 12               # where t is in a row; size of a row

# A front: interface of a subchain at its open handles (I, p, Y, beta, Theta), row after row (packed lower triangle)
ROW_SCALE = 6    # 1, what eliminations have taken from the diagonal of Theta; before it Y:
                 # 6, force transmission (moment, force at the near body's group origin)
ROW_BETA = 7     # 1, acceleration of the handle at rest of near body and zero handle forces
ROW_SIZE = 8     # 1, magnitude of the initial beta
ROW_THETA = 9    # row + 1, acceleration per handle force

# -- chunks: a mechanism cut at joints, each chunk a plan of its own whose ground moves (`chunk_plan.py`) ---------
# chunk_i (chunks, CHUNK_I) int32: the chunks of one worker, parents first. A chunk hangs from the link *above* it, and
# may carry others at its *far* body. Its bodies are numbered depth first, those between the two first: its *path*.
# Spatial quantities are in the axes of the link above, about that link's origin (own axes: no pose is needed).
CHUNK_FIRST = 0  # first body
CHUNK_PATH = 1   # first body behind the path
CHUNK_END = 2    # first body of the next chunk
CHUNK_HANG = 3   # the slot that stands for the link above
CHUNK_SLOTS = 4  # first of its other slots
CHUNK_SLOTS_END = 5
CHUNK_FAR = 6    # the slot of its far body; 0 if it carries nothing
CHUNK_STATE = 7  # where the state of the far body is kept (24)                  pass 1 -> 2, 3
CHUNK_KEPT = 8   # where a sweep with a far handle keeps its results (below)     pass 2 -> 3; not in lanes
CHUNK_NODE = 9   # its node in the assembly tree
CHUNK_I = 17     # the others: bundles only, below
# What a sweep with a far handle keeps per degree of freedom of the path: y 6, two places unused, and
FAR_U = 8       # U 6, 1/D, u as in records; the bodies' records stay as they are
FAR_R = 14      # 1/D
FAR_SIZE = 16
# Of a ball, 1/D of its three pivots in their places, and instead of U and u:
FAR_BALL_G = (FAR_U, FAR_SIZE + FAR_U)   # G: the first 6 numbers, the other 3
FAR_BALL_K = FAR_SIZE + FAR_U + 3         # k 3
FAR_BALL_L = 2 * FAR_SIZE + FAR_U         # 3, unit lower triangle of the factors of A

# A node of the assembly tree: a chunk, or chunks that are joined. *Open*: it carries others at its far link, so that it
# has two handles. Everything is in link frames: above side in that of the link above, far side in that of the far link.
NODE_V = 0       # 6, velocity of the link above (angular, linear)               pass 1, down: 6 floats per edge
NODE_A = 6       # 6, its acceleration (angular, linear), gravity included       pass 3, down: 6, or 12 if open
NODE_F = 12      # 6, force on the far link (moment, force); only if open        pass 3, down
NODE_MOVE = 18   # 18, far link seen from the link above: rotation 9, position 3, and its relative velocity in its own
                 # axes 6; only if open                                          pass 1, up: 18
NODE_FRONT = 36  # force needed above = I a + p - Y F, far acceleration = Y^T a + beta + Theta F   pass 2, up: 27 or 90
FRONT_I = 0      # 21: A 6, B 9, C 6 as in slots
FRONT_P = 21     # 6 (moment, force)
FRONT_Y = 27     # 36: six columns, one per component of F (moment, force)
FRONT_BETA = 63  # 6
FRONT_THETA = 69 # 21, packed lower triangle by rows
FRONT_SIZE, FRONT_CLOSED = 90, 27
NODE_KEPT = 126  # 78, joins: far acceleration of the upper part = G a + g + H F: G 36, g 6, H 36   pass 2 -> 3
NODE_RECEIVED = NODE_KEPT + 42  # 27, chunks in lanes, in the place of H: (I, p) of what hangs from the far link
NODE_REACHED = NODE_F           # 6, chunks in lanes: part of the far link's acceleration due to the chunk's joints
NODE_MEND = NODE_FRONT + FRONT_Y  # 27, chunks in lanes, in the place of Y: what (I, p) received by the chunk lacks
NODE_SIZE = 208

# Messages between workers, floats per edge and pass [J, table IX]. Pass 1 of [J] has two more, step and order: here
# every worker finds them itself from the totals of the sums.
EDGE_VELOCITY, EDGE_INERTIA, EDGE_ACCELERATION, EDGE_SUMS = 6, FRONT_CLOSED, 6, 7
EDGE_MOVE, EDGE_FAR, EDGE_FAR_DOWN = 18, FRONT_SIZE, 12   # with a far handle [YN02, sec. 5.2: 78 + 12]

# ops (operations, CHUNK_OP) int32: what a worker does in one evaluation, in this order. Operands are chunks (numbers),
# nodes and places (in the work array), boxes (numbers).
DO_POST = 0      # place, floats, box: send
DO_TAKE = 1      # place, floats, box: receive
DO_COPY = 2      # place, floats, target
DO_ACROSS = 3    # chunk: motion across its path                                 pass 1
DO_COMPOSE = 4   # node, upper node, lower node: motion across both
DO_ONWARD = 5    # upper node, lower node: velocity of the far link by the motion across
DO_FOLLOW = 6    # chunk, lower node: velocity of the far link by its state
DO_OUTWARD = 7   # chunk, first body, last body + 1, 1 at its beginning
DO_BEGIN = 8     # chunk: empty its slots                                        pass 2
DO_INWARD = 9    # first body (descending), last body
DO_FAR = 10      # chunk: its path with a far handle
DO_RECEIVE = 11  # chunk, lower node: add what hangs from the far link
DO_CLOSED = 12   # chunk: what its sweep has left, to its node
DO_JOIN = 13     # node, upper node, lower node
DO_JOIN_OPEN = 14  # the same; the lower node is open
DO_ADD = 15      # node, node, node: side by side; of the operands the first may be open, then 1
DO_SPLIT = 16    # node, upper node, lower node                                  pass 3
DO_SPLIT_OPEN = 17
DO_DOWN = 18     # chunk, first body, last body + 1, 1 at its beginning
DO_DOWN_FAR = 19 # chunk: its path with a far handle
DO_CARRY = 20    # chunk, lower node: acceleration of the far link
DO_GROUND = 21   # node: motion of the ground
DO_STAY = 22     # lower node, closed, at a far link that stays open: as if its own far link were the one above it
DO_LANES_ACROSS = 23  # bundle: motion across the paths of its chunks            pass 1
DO_LANES_IN = 24      # bundle, 1 if turns are noted, node below or 0: what is left of pass 1, and pass 2
DO_LANES_DOWN = 25    # bundle                                                   pass 3
DO_LANES_AGAIN = 26   # bundle: the same after passes 1 and 2 once more, of which nothing has been kept
DO_END = 40      # body, slot above its chunk, target: its state and the origin of its group         loops, pass 1
CHUNK_OP = 5

# -- lanes: like chunks of one mechanism, W of them at once (`like.py`) ------------------------------------------------
# A *bundle* is W like chunks, one in each place of a lane. It is a row of chunk_i whose places (CHUNK_HANG to
# CHUNK_NODE) are in lane memory of its own; the W nodes of the assembly tree are floats, one behind the other.
BUNDLE_ROWS = 10      # where its lane memory is among all rows of W floats, and where it ends
BUNDLE_ROWS_END = 11
BUNDLE_NODES = 12     # the first of its W nodes, NODE_SIZE apart
BUNDLE_POSE = 13      # in the numbers of shapes: 12 lanes, the frame on the link above that the first joint is in
BUNDLE_Q_RUNS = 14    # first run of its coordinates, of its velocities, and the end
BUNDLE_V_RUNS = 15
BUNDLE_RUNS_END = 16
# All bundles share the first rows of lane memory: coordinates, velocities, torques or accelerations, and
# what far sweeps keep.
# A *shape* is the plan of the chunks in a bundle, shared by all bundles of such chunks: rows of body_i and body_f, and
# columns of dof_f. Its first joint is given in the frame BUNDLE_POSE. Coordinates and velocities are numbered over all
# shapes. Chunks that are no lanes have rows there too, with coordinates and velocities of the whole mechanism.
# In the handle of a plan in lanes the arrays of the plan are those of the whole mechanism, and chunk_i is empty (there
# is no team). `sum_ops` is body_i of the shapes, as wide as chunk_i, and behind it chunk_i; `mail` is their body_f,
# dof_f and poses, one behind the other; `boxes` are the runs.
# runs (runs, RUN) int64: numbers of the state that are one behind the other in every chunk of a bundle
RUN_FIRST = 0         # the first of the first chunk
RUN_APART = 1         # from chunk to chunk
RUN_COUNT = 2
RUN_ROW = 3           # of lane memory
RUN_PLACE = 4         # -1: all W places; else only this one
RUN = 5

# Loops: chunks of a mechanism with connections (`chunk_loops.py`). World axes and groups are those of one worker: the
# slot that stands for the link above is a copy of that link's own, and nothing is turned or shifted on an edge.
ORIGIN_STATE = STATE_SIZE  # 3, origin of the group in the world: behind the state of a body in a slot      pass 1
EDGE_STATE = STATE_SIZE + 3  # state and origin of the link above (or of a body that a connection leads to)    pass 1
PARCEL_SLOT, PARCEL_JUDGED = 27, 3  # up: inertia 21, force 6; mobility, drive, gap (JUDGED_..); then the open fronts
PARCEL_DOWN = 8     # down: acceleration of the link above 6; total drive, largest gap; then the forces of open rows
PARCEL_AGAIN = 7    # up, by the factors at hand: force 6, drive; then beta and its size of each open row
PARCEL_DRIVE, PARCEL_GAP = 6, 7  # places in these two
VOTES_LEAST, VOTES_MOST, VOTES_SUM = 0, 3, 7  # of a worker: 3 least (margin, pivot, weakest), 4 most (clash, gap,
VOTES = 8                                     # dropped, missed), 1 sum (residue)                     pass 4

# whole int64: how worker 0 gathers what an actuation reads of the state; empty if there is none.
# Of worker 0: a header; then for each worker, itself first: two boxes (-1: its own), how many coordinates, velocities
# and torques, and their numbers in the whole; its own coordinates and velocities by their places in its q and v, too.
# Of another worker: -1, then two boxes, a place in its work array, how many coordinates and velocities, and their
# places in its q and v.
WHOLE_WORKERS, WHOLE_PLACE, WHOLE_NQ, WHOLE_NV, WHOLE_NT, WHOLE_MASKED, WHOLE_START = range(7)
SHARE_UP, SHARE_DOWN, SHARE_NQ, SHARE_NV, SHARE_NT, SHARE_NUMBERS = range(6)  # of a worker, in that of worker 0
OWN_UP, OWN_DOWN, OWN_PLACE, OWN_NQ, OWN_NV, OWN_NUMBERS = range(6)           # of another worker
GATHER = 0                    # number of the pass of these messages; their size grows with what is read

# Mail of a team: a box per edge and direction, its count and then its floats, from a cache line on
BOX_PLACE, BOX_COUNT = 0, 1   # boxes (boxes, 4) int64, of one worker: where it is in the mail, messages so far,
BOX_OTHER, BOX_EDGE = 2, 3    # the worker at the other end, number of the edge among all
BOX = 4
BOX_HEAD = 1                  # floats before the message; the first is the count (as an integer), or a request of MPI
MAIL_ABORT = 0                # words of the mail (integers): not 0 if the team gives up
MAIL_YIELD = 1                # address of the function that lets other threads run
MAIL_SEND = 2                 # addresses of MPI_Isend (0: workers are threads),
MAIL_WAIT = 3                 # MPI_Wait
MAIL_RECEIVE = 4              # and MPI_Recv; what they are given:
MAIL_DOUBLE = 5               # type of a float
MAIL_TEAM = 6                 # communicator
MAIL_FLOATS = 7               # how many floats have been sent
MAIL_STATUS = 8               # 8, for MPI to write to
MAIL_START = 16


# -- places; compiled code may call these too (`algorithms/__init__.py`) ---------------------------------------------


def connection_record(conn_i, c):
    """Where the record of connection c starts in the work array."""
    return conn_i[conn_i.shape[0] - 1, HEAD_CONN] + CONN_RECORD * c


def row_start(row):
    """Place of a row in its front: behind the rows before it, packed as lower triangle."""
    return ROW_THETA * row + (row * (row + 1)) // 2
