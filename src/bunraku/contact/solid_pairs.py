"""Narrow phase: the contacts of a pair of shapes neither of which is a plane, and of a cylinder above a plane.

Compiled once for one state and once for lanes, and called by address (`contact_calls.py`): every kernel with contact
needs it, and it is large.
"""


from bunraku.algorithms.tree import row3
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_calls import SOLIDS, SOLIDS_IN_LANES
from bunraku.contact.face_points import convex_pair, points_and_solid
from bunraku.contact.field_contacts import above_field
from bunraku.contact.nearest import (
    ball_ball,
    ball_box,
    ball_capsule,
    capsule_box,
    capsule_capsule,
    cylinder_plane,
)
from bunraku.jit import entry, inner
from bunraku.spatial.algebra import add, column_z, load3, load9, matvec


@entry("contacts of solids", SOLIDS, seconds=7, for_kernels=True)
def solids_of_state(kind, shape_i, shape_f, point_f, places, a, b, k, count, found):
    of_solids(kind, shape_i, shape_f, point_f, places, a, b, k, count, found)


@entry("contacts of solids in lanes", SOLIDS_IN_LANES, seconds=7, for_kernels=True)
def solids_in_lanes(kind, shape_i, shape_f, point_f, places, a, b, k, count, found):
    of_solids(kind, shape_i, shape_f, point_f, places, a, b, k, count, found)


@inner
def of_solids(kind, shape_i, shape_f, point_f, places, a, b, k, count, found):
    """The `count` contacts of a pair, a cylinder above a plane included."""
    if kind == c.CONVEX:
        convex_pair(shape_i, shape_f, point_f, places, a, b, k, count, found)
    elif kind == c.FIELD:
        above_field(shape_i, shape_f, point_f, places, a, b, k, count, found)
    elif kind == c.POINTS_SOLID:
        of_points(shape_i, shape_f, point_f, places, a, b, k, count, found)
    elif kind == c.CYLINDER_PLANE:
        of_cylinder_and_plane(shape_f, places, a, b, k, found)
    else:
        in_closed_form(kind, shape_f, places, a, b, k, found)


@inner
def in_closed_form(kind, shape_f, places, a, b, k, found):
    R_a, x_a = load9(places, c.PLACE * a + c.PLACE_ROTATION), load3(places, c.PLACE * a + c.PLACE_ORIGIN)
    R_b, x_b = load9(places, c.PLACE * b + c.PLACE_ROTATION), load3(places, c.PLACE * b + c.PLACE_ORIGIN)
    size_a, size_b = row3(shape_f, a, c.SHAPE_SIZE), row3(shape_f, b, c.SHAPE_SIZE)
    u_a, u_b = column_z(R_a), column_z(R_b)
    if kind == c.SPHERE_SPHERE:
        ball_ball(found, k, x_a, size_a[0], x_b, size_b[0], u_b)
    elif kind == c.SPHERE_CAPSULE:
        ball_capsule(found, k, x_a, size_a[0], x_b, u_b, size_b[0], size_b[1])
    elif kind == c.CAPSULE_CAPSULE:
        capsule_capsule(found, k, x_a, u_a, size_a[0], size_a[1], x_b, u_b, size_b[0], size_b[1])
    elif kind == c.SPHERE_BOX:
        ball_box(found, k, x_a, size_a[0], R_b, x_b, size_b)
    else:
        capsule_box(found, k, x_a, u_a, size_a[0], size_a[1], R_b, x_b, size_b)


@inner
def of_cylinder_and_plane(shape_f, places, a, b, k, found):
    size = row3(shape_f, a, c.SHAPE_SIZE)
    cylinder_plane(found, k, load9(places, c.PLACE * a + c.PLACE_ROTATION), load3(places, c.PLACE * a + c.PLACE_ORIGIN),
                   size[0], size[1], load3(places, c.PLACE * b + c.PLACE_ORIGIN),
                   column_z(load9(places, c.PLACE * b + c.PLACE_ROTATION)))


@inner
def of_points(shape_i, shape_f, point_f, places, a, b, k, count, found):
    """Points and a solid: each is a ball of radius 0."""
    solid = shape_i[b, c.SHAPE_KIND]
    if solid == c.HULL or solid == c.CYLINDER:
        points_and_solid(shape_i, shape_f, point_f, places, a, b, k, count, found)
        return
    R_a, x_a = load9(places, c.PLACE * a + c.PLACE_ROTATION), load3(places, c.PLACE * a + c.PLACE_ORIGIN)
    R_b, x_b = load9(places, c.PLACE * b + c.PLACE_ROTATION), load3(places, c.PLACE * b + c.PLACE_ORIGIN)
    size, u_b = row3(shape_f, b, c.SHAPE_SIZE), column_z(R_b)
    for i in range(count):
        x = add(x_a, matvec(R_a, row3(point_f, shape_i[a, c.SHAPE_POINT] + i, 0)))
        if solid == c.SPHERE:
            ball_ball(found, k + i, x, 0.0, x_b, size[0], u_b)
        elif solid == c.CAPSULE:
            ball_capsule(found, k + i, x, 0.0, x_b, u_b, size[0], size[1])
        else:
            ball_box(found, k + i, x, 0.0, R_b, x_b, size)
