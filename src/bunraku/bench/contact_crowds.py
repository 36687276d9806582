"""Many bodies in contact, compared with MuJoCo in one run: balls at rest, balls dropped into a box, boxes that stand.

Steps of 2 ms; MuJoCo with elliptic cones at its defaults. `residual` is the largest violation of the contact law in
any problem of our run, as part of the size of the problem; MuJoCo's contacts are soft and have no such residual.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import bunraku as bk
from bunraku.bench.contact_cases import STEP

RADIUS, MASS, MU = 0.1, 1.0, 0.5
WARM = 5            # steps before time counts
MOST_STEPS = 500_000  # of balls at rest, together; 50 in any case
SLOPE = 1.1         # exponent of cost over the number of separate balls
EXACT = 1e-8        # residual of heaps
STILL = 1e-9        # [m] that a wall may move
BOX = 0.2, 0.2, 0.1  # [m]
HEAVIEST = 1000.0   # mass of the uppermost box of a tower, as part of the lowest
CARD = 0.0005, 0.063, 0.088, 0.0018  # thickness, width, length [m], mass [kg]
LEAN = np.radians(22.0)  # of the cards of a house from the vertical


@dataclass
class Crowds:
    """Sizes to measure."""

    rest: tuple[int, ...] = (1, 10, 100, 1000, 10_000)
    heap: tuple[int, ...] = (18, 36, 60, 100, 200)
    steps: int = 250
    wall: int = 10          # courses, and boxes in each
    tower: int = 20
    standing: float = 10.0  # [s]
    house: int = 3          # storeys


def at_rest(n: int) -> tuple[bk.Mechanism, np.ndarray, list[tuple]]:
    """Balls on a floor, none touching another."""
    side = int(np.ceil(np.sqrt(n)))
    places = [(3 * RADIUS * (i % side), 3 * RADIUS * (i // side), RADIUS) for i in range(n)]
    return _balls(places, [((0, 0, 0), (0, 0, 1))])


def in_a_box(n: int) -> tuple[bk.Mechanism, np.ndarray, list[tuple]]:
    """Balls above the floor of a box, in layers that are not quite regular."""
    half = 0.36 if n <= 60 else 0.43 * (n / 60) ** (1 / 3)
    side, rng = int(2 * half / 0.23), np.random.default_rng(0)
    places = [(*(0.225 * (np.array([i % side, i // side % side]) - 0.5 * (side - 1)) + 0.003 * rng.normal(size=2)),
               0.12 + 0.25 * (i // side**2)) for i in range(n)]
    walls = [((s * half * (axis == 0), s * half * (axis == 1), 0), (-s * (axis == 0), -s * (axis == 1), 0))
             for axis in (0, 1) for s in (-1, 1)]
    return _balls(places, [((0, 0, 0), (0, 0, 1)), *walls])


def _balls(places, planes) -> tuple[bk.Mechanism, np.ndarray, list[tuple]]:
    m = bk.Mechanism()
    for point, normal in planes:
        m.add_plane(point=point, normal=normal, friction=MU)
    for i in range(len(places)):
        m.add_link(f"ball {i}", joint=bk.Free(), mass=MASS, inertia=(0.4 * MASS * RADIUS**2,) * 3)
        m.add_shape(f"ball {i}", bk.Sphere(RADIUS), friction=MU)
    q = np.concatenate([[*place, 1, 0, 0, 0] for place in places])
    return m, q, planes


def a_wall(courses: int, boxes: int) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """Boxes in courses, every second one shifted by a quarter of a box; mechanism, state, masses."""
    places = [(1.02 * BOX[0] * (i + 0.25 * (k % 2)), 0.0, BOX[2] * (k + 0.5))
              for k in range(courses) for i in range(boxes)]
    return _boxes([_Box(place, 1.0) for place in places])


def a_tower(boxes: int) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """Boxes on top of each other, from 1 kg to HEAVIEST."""
    return _boxes([_Box((0.0, 0.0, BOX[2] * (k + 0.5)), HEAVIEST ** (k / (boxes - 1))) for k in range(boxes)])


def a_card_house(storeys: int) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """Pairs of cards that lean against each other, edge to edge, under cards that lie flat and carry the next ones."""
    thick, wide, long, mass = CARD
    out, up = (0.5 * (thick * np.cos(LEAN) + long * np.sin(LEAN)), 0.5 * (thick * np.sin(LEAN) + long * np.cos(LEAN)))
    apart, floor, cards = 4.0 * out - 2.0 * thick * np.cos(LEAN) + 0.002, 0.0, []
    for pairs in range(storeys, 0, -1):
        tops = apart * (np.arange(pairs) - 0.5 * (pairs - 1))
        cards += [_Box((x + side * out, 0.0, floor + up), mass, CARD[:3], -side * LEAN)
                  for x in tops for side in (-1.0, 1.0)]
        floor += 2.0 * up
        cards += [_Box((x + 0.5 * apart, 0.0, floor + 0.5 * thick), mass, (thick, wide, apart - 2e-4), 0.5 * np.pi)
                  for x in tops[:-1]]
        floor += thick
    return _boxes(cards)


class _Box(NamedTuple):
    place: tuple[float, float, float]  # [m]
    mass: float                        # [kg]
    size: tuple[float, ...] = BOX      # [m]
    tilt: float = 0.0                  # [rad] about y


def _boxes(boxes: list[_Box]) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    m, q = bk.Mechanism(), []
    m.add_plane(friction=MU)
    for i, box in enumerate(boxes):
        a, b, c = box.size
        inertia = tuple(box.mass / 12.0 * x for x in (b * b + c * c, a * a + c * c, a * a + b * b))
        m.add_link(f"box {i}", joint=bk.Free(), mass=box.mass, inertia=inertia)
        m.add_shape(f"box {i}", bk.Box(a, b, c), friction=MU)
        q.append([*box.place, np.cos(0.5 * box.tilt), 0.0, np.sin(0.5 * box.tilt), 0.0])
    return m, np.concatenate(q), np.array([box.mass for box in boxes])


def _standing(name: str, scene, seconds: float) -> dict:
    """How far boxes move that should stand still, and the time of a step."""
    import mujoco

    m, q, masses = scene
    surface = f'friction="{MU} 0 0" condim="3"'
    solids = [shape.shape for shape in m.shapes.values() if isinstance(shape.shape, bk.Box)]
    sizes = [0.5 * np.array([box.x, box.y, box.z]) for box in solids]
    boxes = "".join(f'<body pos="{_text(x[:3])}" quat="{_text(x[3:])}"><freejoint/><geom type="box" '
                    f'size="{_text(size)}" mass="{mass}" {surface}/></body>'
                    for x, mass, size in zip(q.reshape(-1, 7), masses, sizes, strict=True))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{STEP}" cone="elliptic"/><size memory="1G"/><worldbody>'
        f'<geom type="plane" size="9 9 1" {surface}/>{boxes}</worldbody></mujoco>')
    data, steps = mujoco.MjData(model), round(seconds / STEP)
    begin = time.perf_counter()
    mujoco.mj_step(model, data, steps)
    theirs = (time.perf_counter() - begin) / steps
    sim = bk.Simulation(m, q, solver="symplectic_euler", step=STEP, record=None, max_contacts=64 * len(masses))
    begin = time.perf_counter()
    sim.advance(seconds)
    ours = (time.perf_counter() - begin) / steps
    return {"name": name, "moved": float(np.abs(sim.q - q).max()), "mujoco_moved": float(np.abs(data.qpos - q).max()),
            "us": 1e6 * ours, "mujoco_us": 1e6 * theirs, "residual": float(sim.stats.contact_residual)}


def _text(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _mujoco(q, planes) -> tuple[Any, Any, Any]:
    import mujoco

    surface = f'friction="{MU} 0 0" condim="3"'
    walls = "".join(f'<geom type="plane" size="9 9 1" pos="{p[0]} {p[1]} {p[2]}" zaxis="{n[0]} {n[1]} {n[2]}" '
                    f'{surface}/>' for p, n in planes)
    balls = "".join(f'<body pos="{x[0]} {x[1]} {x[2]}"><freejoint/><geom type="sphere" size="{RADIUS}" mass="{MASS}" '
                    f'{surface}/></body>' for x in q.reshape(-1, 7))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{STEP}" cone="elliptic"/><size memory="1G"/><worldbody>{walls}{balls}'
        '</worldbody></mujoco>')
    return mujoco, model, mujoco.MjData(model)


def _measured(scene, n: int, steps: int) -> dict:
    m, q, planes = scene(n)
    mujoco, model, data = _mujoco(q, planes)
    mujoco.mj_step(model, data, WARM)
    begin = time.perf_counter()
    mujoco.mj_step(model, data, steps)
    theirs = (time.perf_counter() - begin) / steps
    sim = bk.Simulation(m, q, solver="symplectic_euler", step=STEP, record=None, max_contacts=8 * n + 64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.SimulationWarning)  # the residual is in the table
        sim.advance(WARM * STEP)
        begin = time.perf_counter()
        sim.advance((WARM + steps) * STEP)
    ours = (time.perf_counter() - begin) / steps
    found = bk.contacts(m, sim.q, margin=0.0)
    assert not isinstance(found, list)
    deepest = found.gap.min(initial=0.0)
    return {"balls": n, "us": 1e6 * ours, "mujoco_us": 1e6 * theirs, "ratio": theirs / ours, "contacts": int(data.ncon),
            "residual": float(sim.stats.contact_residual), "depth": max(0.0, -float(deepest))}


def crowds(options: Crowds) -> dict:
    """Times of a step and residuals, as plain data."""
    rest = [_measured(at_rest, n, min(options.steps, max(50, MOST_STEPS // n))) for n in options.rest]
    slope = np.polyfit(np.log([row["balls"] for row in rest]), np.log([row["us"] for row in rest]), 1)[0]
    boxes = [_standing(f"a wall of {options.wall} x {options.wall} boxes", a_wall(options.wall, options.wall),
                       options.standing),
             _standing(f"a tower of {options.tower} boxes, masses 1 to {HEAVIEST:g}", a_tower(options.tower),
                       options.standing),
             _standing(f"a card house of {options.house} storeys", a_card_house(options.house), options.standing)]
    return {"rest": rest, "slope": float(slope), "heap": [_measured(in_a_box, n, options.steps) for n in options.heap],
            "boxes": boxes}


def crowd_verdicts(found: dict) -> list[dict]:
    """Targets: separate balls at linear cost, nothing slower than MuJoCo, heaps solved exactly."""
    verdicts = [{"what": "balls at rest: exponent of cost", "measured": found["slope"], "target": SLOPE, "unit": "",
                 "met": found["slope"] <= SLOPE}]
    for name, rows in (("at rest", found["rest"]), ("in a box", found["heap"])):
        verdicts += [{"what": f"{row['balls']} balls {name}, beside MuJoCo elliptic", "measured": row["ratio"],
                      "target": 1.0, "unit": "x as fast", "met": row["ratio"] >= 1.0} for row in rows]
    verdicts += [{"what": f"{row['name']}: moved", "measured": row["moved"], "target": STILL, "unit": "m",
                  "met": row["moved"] <= STILL} for row in found["boxes"]]
    return verdicts + [{"what": f"{row['balls']} balls in a box: residual of the law", "measured": row["residual"],
                        "target": EXACT, "unit": "", "met": row["residual"] <= EXACT} for row in found["heap"]]


def crowd_lines(found: dict, paint) -> list[str]:
    """Tables of both scenes."""
    lines = []
    for title, rows in (("balls at rest on a floor", found["rest"]), ("balls dropped into a box", found["heap"])):
        lines += ["", paint("1", title), paint("4", f"  {'balls':>6}{'contacts':>10}{'us/step':>12}{'MuJoCo':>12}"
                                                    f"{'ratio':>8}{'residual':>12}{'depth m':>12}")]
        lines += [f"  {row['balls']:>6}{row['contacts']:>10}{row['us']:>12.1f}{row['mujoco_us']:>12.1f}"
                  f"{row['ratio']:>8.2f}{row['residual']:>12.1e}{row['depth']:>12.1e}" for row in rows]
    lines += ["", paint("1", "boxes that stand"), paint("4", f"  {'':<44}{'moved m':>10}{'MuJoCo':>10}{'us/step':>10}"
                                                              f"{'MuJoCo':>10}{'residual':>10}")]
    lines += [f"  {row['name']:<44}{row['moved']:>10.1e}{row['mujoco_moved']:>10.1e}{row['us']:>10.1f}"
              f"{row['mujoco_us']:>10.1f}{row['residual']:>10.1e}" for row in found["boxes"]]
    return lines[1:]
