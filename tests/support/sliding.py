"""A crate on a plane."""

import numpy as np

import bunraku as bk

MASS, FRICTION, GRAVITY = 2.0, 0.3, 9.81


def crate(normal=(0.0, 0.0, 1.0), **surface):
    """A cube of 0.2 m and a plane through the origin."""
    m = bk.Mechanism(name="crate")
    m.add_link("crate", joint=bk.Free(), mass=MASS, inertia=(0.02, 0.02, 0.02))
    m.add_shape("crate", bk.Box(0.2, 0.2, 0.2), friction=FRICTION, **surface)
    m.add_plane(normal=normal, friction=FRICTION, name="floor")
    return m


def dropped(m, height=0.1, speed=2.0):
    """Its state at this height of the middle, moving along x."""
    q, v = m.neutral(), np.zeros(6)
    q[2], v[0] = height, speed
    return q, v


def driven(solver="symplectic_euler", step=0.002, until=1.0):
    """The crate pushed along by a motor on its slide: (simulation, trajectory without torques)."""
    m = bk.Mechanism(name="sledge")
    m.add_link("x", joint=bk.Prismatic((1, 0, 0)), mass=0.1, inertia=(0.01, 0.01, 0.01))
    m.add_link("z", "x", bk.Prismatic((0, 0, 1)), mass=MASS, inertia=(0.02, 0.02, 0.02))
    m.add_shape("z", bk.Sphere(0.1), friction=FRICTION)
    m.add_plane(friction=FRICTION, name="floor")
    settings = {"step": step} if solver == "symplectic_euler" else {}
    sim = bk.Simulation(m, [0.0, 0.1], solver=solver, actuation=lambda t, q, v: np.array([8.0 + 2 * np.sin(9 * t), 0]),
                        **settings)
    return sim, sim.run(until)
