"""The data page of contact: every column of its flat arrays. Arrays are constant; `found` is the work array of a call.

A *shape* moves with a body. A *pair* is two shapes that may touch. Every pair has a fixed number of *contacts*, the
points at which it may touch (`CONTACTS_OF`); so all states of a lane have the same ones, and contacts that are far
apart have the gap `inf`.

Normals point from shape b to shape a: a force along the normal pushes a away. The gap is the distance of the surfaces
along the normal, negative if they overlap. The point is half-way: surface of a = point + gap/2 normal.
"""

# -- shape_i (shapes, SHAPE_I) int32 -----------------------------------------------------------------------------------
SHAPE_KIND = 0     # below
SHAPE_BODY = 1     # body that it moves with, -1 for ground
SHAPE_POINT = 2    # POINTS: first of its points
SHAPE_COUNT = 3    # POINTS: how many
SHAPE_I = 4
SPHERE, CAPSULE, BOX, POINTS, PLANE = range(5)

# -- shape_f (shapes, SHAPE_F) float64 ---------------------------------------------------------------------------------
SHAPE_ROTATION = 0  # 9, rotation of the shape's frame in the body frame. Its z: axis of a capsule, normal of a plane
SHAPE_OFFSET = 9    # 3, its origin: centre of a sphere, capsule or box, a point of a plane [m]
SHAPE_SIZE = 12     # 3, SPHERE: radius; CAPSULE: radius, half the length of its axis; BOX: half its edges [m]
SHAPE_MIDDLE = 15   # 3, centre of the sphere around it, in the body frame [m]
SHAPE_BOUND = 18    # radius of that sphere; inf for a plane [m]
SHAPE_F = 19

# -- point_f (points, 3) float64: points of POINTS, in the shape's frame [m] -------------------------------------------

# -- pair_i (pairs, PAIR_I) int32, sorted by kind ----------------------------------------------------------------------
PAIR_KIND = 0      # below
PAIR_A = 1         # shape a
PAIR_B = 2         # shape b
PAIR_CONTACT = 3   # first of its contacts
PAIR_I = 4
SPHERE_PLANE, CAPSULE_PLANE, BOX_PLANE, POINTS_PLANE = range(4)
SPHERE_SPHERE, SPHERE_CAPSULE, CAPSULE_CAPSULE, SPHERE_BOX, CAPSULE_BOX = range(4, 9)
KIND_OF = {        # of two shapes, a first
    (SPHERE, PLANE): SPHERE_PLANE, (CAPSULE, PLANE): CAPSULE_PLANE, (BOX, PLANE): BOX_PLANE,
    (POINTS, PLANE): POINTS_PLANE, (SPHERE, SPHERE): SPHERE_SPHERE, (SPHERE, CAPSULE): SPHERE_CAPSULE,
    (CAPSULE, CAPSULE): CAPSULE_CAPSULE, (SPHERE, BOX): SPHERE_BOX, (CAPSULE, BOX): CAPSULE_BOX,
}
CONTACTS_OF = {    # contacts of a pair; POINTS_PLANE: one for each point
    SPHERE_PLANE: 1,      # the lowest point
    CAPSULE_PLANE: 2,     # one below each end of the axis
    BOX_PLANE: 8,         # its corners
    SPHERE_SPHERE: 1, SPHERE_CAPSULE: 1, SPHERE_BOX: 1,
    CAPSULE_CAPSULE: 3,   # the nearest points; both ends of the part where the axes run side by side
    CAPSULE_BOX: 3,       # the nearest points; both ends of the part above a face
}

# -- contact_i (contacts, CONTACT_I) int32, contact_f (contacts, CONTACT_F) float64: input of the contact solvers ------
CONTACT_PAIR = 0   # its pair
CONTACT_A = 1      # body of shape a, -1 for ground
CONTACT_B = 2      # body of shape b
CONTACT_I = 3
FRICTION = 0       # coefficient of the pair: geometric mean of the two shapes'
RESTITUTION = 1    # of the pair: the larger one
CONTACT_F = 2

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

# -- contact problem (`problem.py`) ------------------------------------------------------------------------------------
DISC, GIVEN = range(2)                    # kind of a contact: Coulomb's disc, or friction against a given slip
OPEN, STICKING, SLIDING = range(3)        # mode of a contact
NONE, FORCES, MODES = range(3)            # what a solution starts from
SOLVED, ROUGH, NO_SOLUTION = range(3)     # how it ended

# -- modes of `contact_one`, beside those of `algorithms/connection_equations.py` -------------------------------------
KEEP_CLOSED = 32                          # project the state to the contacts that are closed
