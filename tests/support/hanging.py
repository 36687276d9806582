"""A figure that hangs by a hand, lets go and catches hold again; here or in a process of its own."""

import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np

import bunraku as bk


@bk.actuation
def swing(t, q, v, params, tau):
    for j in range(len(v)):
        tau[j] = params[0] * np.sin(params[1] * t) - 0.1 * v[j]


def hanging(solver="gear", *, actuation=swing, params=(3.0, 5.0), **settings):
    """A figure that hangs by one hand."""
    sim = bk.Simulation(bk.models.human(dof=16), solver=solver, actuation=actuation, params=params, **settings)
    sim.connect("ground", "left_hand", bk.Spherical(), name="grip")
    return sim


def knowledge(sim):
    """Everything that a simulation knows, except for how long it took: what a checkpoint of it would hold."""
    with tempfile.TemporaryDirectory() as folder, np.load(sim.save(Path(folder) / "now")) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))
    del header["stats"]["wall_time"]
    return json.dumps(header), {name: (str(x.dtype), x.shape, x.tobytes()) for name, x in arrays.items()}


def go_on(sim):
    """Further stretches, with a change of structure between."""
    sim.run(0.16)
    sim.params[0] = -2.0
    sim.cut("grip")
    sim.run(0.2)
    sim.connect("ground", "right_hand", bk.Spherical())
    sim.run(0.22)
    return knowledge(sim)


def marks(known) -> str:
    """All of it, arrays as checksums, to see where two differ."""
    header, arrays = known
    sums = {name: (*kind, hashlib.sha256(data).hexdigest()[:8]) for name, (*kind, data) in arrays.items()}
    return f"{header} {sums}"
