"""The data page of contact: every column of its flat arrays. Arrays are constant; `found` is the work array of a call.

A *shape* moves with a body. A *pair* is two shapes that may touch. Every pair has a fixed number of *contacts*, the
points at which it may touch (`CONTACTS_OF`); so all states of a lane have the same ones, and contacts that are far
apart have the gap `inf`. The tables of pairs and contacts are a list: of all pairs, or of those near each other
(`near_pairs.py`). What identifies a contact in every list are its shapes and its place among their contacts.

Normals point from shape b to shape a: a force along the normal pushes a away. The gap is the distance of the surfaces
along the normal, negative if they overlap. The point is half-way: surface of a = point + gap/2 normal.

The first contacts of every list are those of joints with friction or hard limits (`joint_rows.py`), which belong to no
pair: joint_i and joint_f have one row each. The points of a pair with torsional or rolling friction have a contact more
for each of these (`moment_rows.py`), after all its points.
"""

# -- shape_i (shapes, SHAPE_I) int32 -----------------------------------------------------------------------------------
SHAPE_KIND = 0     # below
SHAPE_BODY = 1     # body that it moves with, -1 for ground
SHAPE_POINT = 2    # POINTS, polytopes, HEIGHTFIELD: first of its rows of point_f
SHAPE_COUNT = 3    # POINTS, polytopes: number of points or vertices; HEIGHTFIELD: heights along x
SHAPE_FACES = 4    # polytopes: number of faces; HEIGHTFIELD: heights along y
SHAPE_EDGES = 5    # polytopes: number of edges
SHAPE_CORNERS = 6  # most points of a flat feature that have contacts of their own: see `face_points.py`
SHAPE_LINK = 7     # its link, -1 for ground
SHAPE_RIGID = 8    # first link of the rigid body that this belongs to, -1 for ground
SHAPE_GROUP = 9    # mask: the groups that it belongs to
SHAPE_MEETS = 10   # mask: the groups that it touches
SHAPE_I = 11
SPHERE, CAPSULE, BOX, POINTS, PLANE, HULL, CYLINDER, HEIGHTFIELD = range(8)
KINDS = 8

# -- shape_f (shapes, SHAPE_F) float64 ---------------------------------------------------------------------------------
SHAPE_ROTATION = 0  # 9, rotation of the shape's frame in the body frame. Its z: axis of a capsule, normal of a plane
SHAPE_OFFSET = 9    # 3, its origin: centre of a sphere, capsule or box, a point of a plane [m]
SHAPE_SIZE = 12     # 3, SPHERE: radius; CAPSULE, CYLINDER: radius, half the length of its axis; BOX: half its edges;
#                     HULL: the mean of its vertices; HEIGHTFIELD: half its extent along x and y [m]
SHAPE_MIDDLE = 15   # 3, centre of the sphere around it, in the body frame [m]
SHAPE_BOUND = 18    # radius of that sphere; inf for a plane [m]
SHAPE_FRICTION = 19     # coefficient
SHAPE_RESTITUTION = 20
SHAPE_SURFACE = 21  # 3, velocity of its surface in its own frame, as of a belt; along the contact only [m/s]
SHAPE_TORSIONAL = 24    # largest moment of friction about the normal per normal force [m]
SHAPE_ROLLING = 25      # the same across the normal [m]
SHAPE_STIFFNESS = 26    # of its contacts [N/m]; 0: rigid
SHAPE_DAMPING = 27      # of its contacts [N s/m]
SHAPE_F = 28

# -- point_f (rows, 3) float64, in the shape's frame [m] ---------------------------------------------------------------
# POINTS: its points. HEIGHTFIELD: its heights one after another, three a row; along y first. A polytope (HULL, or BOX
# that may touch polytopes), `contact/polytopes.py`:
#   vertices  SHAPE_COUNT rows
#   faces     SHAPE_FACES times FACE_ROWS: unit normal outwards; (distance from the origin, row of its loop, corners)
#   edges     SHAPE_EDGES times EDGE_ROWS: both ends; unit normals of both faces
#   loops     for each corner of a face, anticlockwise, LOOP_ROWS: the corner; (number of its contact, 0, 0)
FACE_ROWS, EDGE_ROWS, LOOP_ROWS = 2, 4, 2

# -- apart_i (pairs of links, 2) int32, in order: the smaller link and the larger; their shapes never touch ------------

# -- kind_i (KINDS * KINDS, 2) int32, by kinds of a and b: kind of the pair, or -1; its contacts, or 0: CONTACTS_OF ----

# -- pair_i (pairs, PAIR_I) int32, sorted by kind, shape a, shape b ----------------------------------------------------
PAIR_KIND = 0      # below
PAIR_A = 1         # shape a
PAIR_B = 2         # shape b
PAIR_CONTACT = 3   # first of its contacts
PAIR_COUNT = 4     # number of its points; moments of these follow, in the same order: torsional, then rolling friction
PAIR_MOMENTS = 5   # contacts of moments for each point: 0, 1 or 2
PAIR_I = 6
SPHERE_PLANE, CAPSULE_PLANE, BOX_PLANE, POINTS_PLANE, CYLINDER_PLANE = range(5)
LAST_PLANE = CYLINDER_PLANE
SPHERE_SPHERE, SPHERE_CAPSULE, CAPSULE_CAPSULE, SPHERE_BOX, CAPSULE_BOX = range(5, 10)
POINTS_SOLID, CONVEX, FIELD = range(10, 13)  # points and a solid; two convex solids; a solid and a height field
PAIR_KINDS = 13
KIND_OF = {        # of two shapes, a first
    (SPHERE, PLANE): SPHERE_PLANE, (CAPSULE, PLANE): CAPSULE_PLANE, (BOX, PLANE): BOX_PLANE,
    (POINTS, PLANE): POINTS_PLANE, (SPHERE, SPHERE): SPHERE_SPHERE, (SPHERE, CAPSULE): SPHERE_CAPSULE,
    (CAPSULE, CAPSULE): CAPSULE_CAPSULE, (SPHERE, BOX): SPHERE_BOX, (CAPSULE, BOX): CAPSULE_BOX,
    (BOX, BOX): CONVEX, (SPHERE, HULL): CONVEX, (CAPSULE, HULL): CONVEX, (BOX, HULL): CONVEX, (HULL, HULL): CONVEX,
    (HULL, PLANE): POINTS_PLANE,
    **{(POINTS, solid): POINTS_SOLID for solid in (SPHERE, CAPSULE, BOX, HULL, CYLINDER)},
    (CYLINDER, PLANE): CYLINDER_PLANE,
    **{(solid, CYLINDER): CONVEX for solid in (SPHERE, CAPSULE, BOX, HULL, CYLINDER)},
    **{(solid, HEIGHTFIELD): FIELD for solid in (SPHERE, CAPSULE, BOX, POINTS, HULL, CYLINDER)},
}
RIM = 8            # points of a cylinder's rim that have contacts of their own
CONTACTS_OF = {    # contacts of a pair; POINTS_PLANE and POINTS_SOLID: one for each point; CONVEX: `contacts_of_convex`
    SPHERE_PLANE: 1,      # the lowest point
    CAPSULE_PLANE: 2,     # one below each end of the axis
    BOX_PLANE: 8,         # its corners
    SPHERE_SPHERE: 1, SPHERE_CAPSULE: 1, SPHERE_BOX: 1,
    CAPSULE_CAPSULE: 3,   # the nearest points; both ends of the part where the axes run side by side
    CAPSULE_BOX: 3,       # the nearest points; both ends of the part above a face
    CYLINDER_PLANE: 2 * (1 + RIM),  # of each end: the lowest point of the rim, fixed points of the rim
}
CONTACTS_ON_FIELD = {SPHERE: 3, CAPSULE: 3, BOX: 8, CYLINDER: 2 * RIM}  # POINTS, HULL: one for each
CORNERS_OF = {SPHERE: 1, CAPSULE: 2, BOX: 4, CYLINDER: RIM}  # SHAPE_CORNERS; HULL: of its largest face, at most MOST
MOST = 8


def contacts_of_convex(corners_a: int, corners_b: int) -> int:
    """Contacts of two convex solids: nearest points, corners of each flat feature, crossings of edges."""
    return 1 if corners_a == 1 or corners_b == 1 else 1 + corners_a + corners_b + 2 * corners_a


# -- contact_i (contacts, CONTACT_I) int32, contact_f (contacts, CONTACT_F) float64: input of the contact solvers ------
CONTACT_PAIR = 0   # its pair; -1: that of a joint
CONTACT_A = 1      # body of shape a, -1 for ground; body of the joint
CONTACT_B = 2      # body of shape b; parent of that body
CONTACT_ROLE = 3   # PUSH: a point, or a joint's; SPIN, ROLL: the moment of torsional or rolling friction at a point
CONTACT_POINT = 4  # number of that point; PUSH: its own
CONTACT_BACK = 5   # places since that point in every problem; PUSH: 0
CONTACT_I = 6
PUSH, SPIN, ROLL = range(3)
FRICTION = 0       # coefficient of the pair: geometric mean of the two shapes'; DRY, SPIN, ROLL: 1
RESTITUTION = 1    # of the pair: the larger one; 0 of soft contacts
ARM = 2            # SPIN, ROLL: largest moment per normal force of its point, the larger one of the two shapes' [m]
STIFFNESS = 3      # PUSH: of the pair, those of both in series [N/m]; 0: rigid
DAMPING = 4        # likewise [N s/m]
CONTACT_F = 5

# -- joint_i (joints' contacts, JOINT_I) int32, joint_f (the same, JOINT_F) float64 ------------------------------------
JOINT_KIND = 0     # LOWER, UPPER: a hard limit; DRY: Coulomb friction
JOINT_BODY = 1     # body that the joint moves
JOINT_Q = 2        # its place in q
JOINT_V = 3        # its place in v
JOINT_I = 4
LOWER, UPPER, DRY = range(3)
JOINT_BOUND = 0    # the limit [rad, m]; DRY: largest friction [N m, N]
JOINT_ANGULAR = 1  # 1: a torque about its axis; 0: a force along it
JOINT_F = 2

# -- work arrays, of the scalar in use: (size,) or (size, W) -----------------------------------------------------------
# places, PLACE per shape: where it is in the world                                     `place_shapes`
PLACE_ROTATION = 0  # 9
PLACE_ORIGIN = 9    # 3
PLACE_MIDDLE = 12   # 3
PLACE = 15
# found, FOUND per contact: world axes                                                  `find_contacts`
FOUND_GAP = 0       # [m]; inf: farther apart than the margin, or the same as the pair's first contact
FOUND_NORMAL = 1    # 3, unit vector from b to a; not written if the gap is inf
FOUND_POINT = 4     # 3; likewise
FOUND = 7

# -- features in contact (`features.py`) -------------------------------------------------------------------------------
POINT, LINE, FACE, CIRCLE = range(1, 5)      # kind of a feature

# -- contact problem (`problem.py`) ------------------------------------------------------------------------------------
DISC, GIVEN = range(2)                    # kind of a contact: Coulomb's disc, or friction against a given slip
LOADED = 2                                # times CONTACT_BACK, added to the kind of a moment: the contact that loads it
OPEN, STICKING, SLIDING = range(3)        # mode of a contact
NONE, FORCES, MODES = range(3)            # what a solution starts from
SOLVED, ROUGH, NO_SOLUTION = range(3)     # how it ended

# -- modes of `contact_one`, beside those of `algorithms/connection_equations.py` -------------------------------------
KEEP_CLOSED = 32                          # project the state to the contacts that are closed
