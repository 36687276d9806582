"""VN-EB and VCR-B on processor arrays: PA on n (n + 1) / 2 processors, O(log n); PPA on n, O(n). Revolute joints.

PA of VN-EB follows the listing of [F], in the frame of the last body. Processor (j, i), j >= i, is in row j (it knows
body j) and column i (it forms column i of M). Moments of body j are about O(j). The listing takes P x F once before it
sums moments (3.3a); its table has it in every doubling, 33 m for each, and so has this.

[F] gives no listing for the others. PA of VCR-B works in the frame of the first joint: rotations by doubling in the
first column, which alone has all rows, and on along the rows; composite bodies by doubling in every column. In PPA
processor j is body j until all is projected; then column after column (VN-EB) or force after force (VCR-B) is swept
serially, while the data of the bodies move on from neighbour to neighbour.

As in the counts of [F], second moments are full 3 x 3 matrices here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bunraku.massmatrix.array import Array, Step, spans
from bunraku.massmatrix.count import Count, Counter, generic
from bunraku.massmatrix.frames import inwards, outwards
from bunraku.massmatrix.serial_chain import Chain
from bunraku.massmatrix.vectors import (
    add,
    column_z,
    cross,
    dot,
    full,
    hats,
    matmul,
    matvec,
    rotated,
    scale,
    sub,
)

UNIT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
ZERO = (0.0, 0.0, 0.0)


@dataclass
class Run:
    """Result of a processor array, with its steps and operations."""

    matrix: list[list]
    operations: Count
    messages: dict[str, int]
    steps: list[Step]
    processors: int


def simulate(method: str, processors: str, chain: Chain, turns, counter: Counter | None = None) -> Run:
    """Run "vneb" or "vcrb" on "n" or "n^2" processors; `turns` of any scalar."""
    if any(chain.prismatic):
        raise ValueError("the parallel algorithms are for revolute joints")
    n = chain.n
    square = processors == "n^2"
    array = Array([(j, i) for i in range(n) for j in range(i, n)] if square else range(n), counter)
    ARRAYS[method, processors](array, chain, turns)
    matrix: list[list[Any]] = [[None] * n for _ in range(n)]
    for place, memory in array.memory.items():
        for row, column, entry in ([(*place, memory["a"])] if square else memory["a"]):
            matrix[row][column] = matrix[column][row] = entry
    return Run(matrix, array.operations, array.messages, array.steps, len(array.memory))


def parallel_run(method: str, n: int, processors: str) -> Run:
    """On a chain of n revolute joints without special dimensions."""
    counter = Counter()
    return simulate(method, processors, *generic(n, counter), counter)


def _row(place) -> int:
    return place[0] if isinstance(place, tuple) else place


def _moved(place, by: int):
    """The place so many rows on, in the same column."""
    return (place[0] + by, place[1]) if isinstance(place, tuple) else place + by


def _double(array, label, n, names, direction, combine, among=lambda place: True):
    """Recursive doubling over rows: `combine(memory, got)` with what is 1, 2, 4, ... rows further on."""
    for span in spans(n):
        array.fetch(f"{label}: exchange",
                    lambda place, by=direction * span: _moved(place, by) if among(place) else None, names, span)

        def work(place, memory):
            if memory["in"] is not None:
                combine(memory, memory["in"])

        array.compute(label, work)


def _arm(chain, j):
    return chain.P[j] if j < chain.n - 1 else ZERO


# -- VN-EB -----------------------------------------------------------------------------------------------------------


def _project_on_tip(array, chain, turns):
    """Step 1 of the listing: R(n, j) by doubling, then Z(j), P(j + 1, j), h(j), k(j) in the frame of the last body."""
    def start(place, memory):                                     # [F, parallel VN-EB, step 1.1]
        memory["R"] = inwards(chain, turns, _row(place))

    def product(memory, got):                                     # [F, parallel VN-EB, step 1.2]
        memory["R"] = matmul(got["R"], memory["R"])

    def project(place, memory):                                   # [F, parallel VN-EB, step 1.4]
        j, beyond = _row(place), memory["in"]
        R = UNIT if beyond is None else beyond["R"]
        memory["Z"] = column_z(memory["R"])
        memory["P"] = matvec(R, _arm(chain, j))
        memory["h"] = matvec(R, chain.h[j])
        memory["k"] = rotated(R, full(chain.k[j]))

    array.compute("1.1 R(j+1, j)", start)
    _double(array, "1.2 R(n+1, j)", chain.n, ("R",), +1, product)
    # [F, parallel VN-EB, step 1.3]
    array.fetch("1.3 shift of R(n+1, j+1)", lambda place: _moved(place, 1), ("R",))
    array.compute("1.4 Z, P, h, k in the last frame", project)


def vneb_on_triangle(array, chain, turns):
    """PA of VN-EB."""
    n = chain.n
    _project_on_tip(array, chain, turns)

    def reach(place, memory):
        memory["arm"], memory["arms"] = memory["P"], []           # P(n + 1, j), so far P(j + 1, j)

    def longer(memory, got):                                      # [F, parallel VN-EB, step 2.1]
        memory["arms"].append(memory["arm"])
        memory["arm"] = add(memory["arm"], got["arm"])

    def first(place, memory):
        memory["joint"] = (memory["Z"], memory["arm"]) if place[0] == place[1] else None

    def hand_on(memory, got):                                     # omega(j, i) = Z(i), and P(n + 1, i)
        memory["joint"] = memory["joint"] or got["joint"]

    def body(place, memory):                                      # [F, parallel VN-EB, step 2.2]
        j, (Z, arm) = place[0], memory["joint"]
        memory["F"] = cross(Z, memory["h"])
        memory["N"] = matvec(memory["k"], Z)
        if j > place[1]:
            V = cross(Z, sub(arm, memory["arm"]))                 # P(j, i)
            memory["F"] = add(memory["F"], scale(V, chain.m[j]))
            memory["N"] = add(memory["N"], cross(memory["h"], V))

    def sums(memory, got):                                        # [F, parallel VN-EB, steps 3.1-3.3]; arms of 2.1
        memory["N"] = add(add(memory["N"], got["N"]), cross(memory["arms"].pop(0), got["F"]))
        memory["F"] = add(memory["F"], got["F"])

    def entry(place, memory):                                     # [F, parallel VN-EB, step 3.4]
        memory["a"] = dot(memory["Z"], memory["N"])

    array.compute("2.1 start", reach)
    _double(array, "2.1 P(n+1, j)", n, ("arm",), +1, longer)
    array.compute("2.1 joint i", first)
    _double(array, "2.1 Z(i), P(n+1, i)", n, ("joint",), -1, hand_on)
    array.compute("2.2 V, F, N of each body", body)
    _double(array, "3.1 F(n+1, j, i), N(n+1, j, i)", n, ("F", "N"), +1, sums)
    array.compute("3.4 Z . N", entry)


def vneb_on_line(array, chain, turns):
    """PPA of VN-EB: processor i forms column i; in round t it takes body i + t, handed on by its neighbour."""
    n = chain.n
    _project_on_tip(array, chain, turns)

    def load(place, memory):
        memory["body"] = memory["Z"], memory["P"], memory["h"], memory["k"]
        memory["V"], memory["kept"], memory["axis"] = None, [], memory["Z"]

    array.compute("2 start", load)

    def step(place, memory, t):
        if place + t >= n:
            return
        Z, (axis, P, h, k) = memory["axis"], memory["body"]
        F, N = cross(Z, h), matvec(k, Z)
        if t:
            velocity = cross(Z, memory["before"])
            V = memory["V"] = velocity if t == 1 else add(memory["V"], velocity)
            F = add(F, scale(V, chain.m[place + t]))
            N = add(N, cross(h, V))
        memory["before"] = P
        memory["kept"].append((axis, P, F, N))

    for t in range(n):
        if t:
            array.fetch("2 next body", lambda place: place + 1, ("body",))
            for memory in array.memory.values():
                memory["body"] = memory["in"]["body"] if memory["in"] else None
        array.compute("2 V, F, N", lambda place, memory, t=t: step(place, memory, t))

    def back(place, memory, t):
        """Row n - 1 - t of the column; the last axis is (0, 0, 1)."""
        row = n - 1 - t
        if row < place:
            return
        axis, P, F, N = memory["kept"][row - place]
        if t:
            N = add(add(N, memory["N"]), cross(P, memory["F"]))
            F = add(F, memory["F"])
        memory["F"], memory["N"] = F, N
        memory.setdefault("a", []).append((row, place, dot(axis, N) if t else N[2]))

    for t in range(n):
        array.compute("3 sums, Z . N", lambda place, memory, t=t: back(place, memory, t))


# -- VCR-B -----------------------------------------------------------------------------------------------------------


def _project_on_base(array, chain, turns, square):
    """R(0, j + 1) by doubling where all rows are, then Z(j), P(j + 1, j), h(j), k(j) in the first joint's frame."""
    n = chain.n

    def start(place, memory):
        memory["R"] = outwards(chain, turns, _row(place))

    def product(memory, got):                                     # R(0, j + 1) = R(0, j') R(j', j + 1)
        memory["R"] = matmul(got["R"], memory["R"])

    array.compute("1.1 R(j, j+1)", start)
    # rows are complete in the first column only
    _double(array, "1.2 R(0, j+1)", n, ("R",), -1, product, among=lambda place: not square or place[1] == 0)
    if square:
        for span in spans(n):
            array.fetch("1.3 R(0, j+1) along rows",
                        lambda place, by=span: (place[0], place[1] - by) if by <= place[1] < 2 * by else None,
                        ("R",), span)
            for memory in array.memory.values():
                if memory["in"]:
                    memory["R"] = memory["in"]["R"]
        array.fetch("1.4 shift of R(0, j)", lambda place: (place[0] - 1, min(place[1], place[0] - 1)), ("R",))
    else:
        array.fetch("1.4 shift of R(0, j)", lambda place: place - 1, ("R",))

    def project(place, memory):
        j, R = _row(place), memory["R"]
        memory["Z"] = column_z(memory["in"]["R"]) if memory["in"] else (0.0, 0.0, 1.0)
        memory["P"] = matvec(R, _arm(chain, j))
        memory["H"] = matvec(R, chain.h[j])
        memory["K"] = rotated(R, full(chain.k[j]))
        memory["arm"] = memory["P"]

    array.compute("1.5 Z, P, h, k in the first frame", project)


def _composite(array, chain):
    """M, H, K of the bodies j and beyond, about O(j), by doubling: 21 m 42 a each time. M is a constant."""
    masses = [*map(float, chain.masses), 0.0]

    def start(place, memory):
        memory["until"] = _row(place) + 1                         # the first body that is not in it yet

    def join(memory, got):
        P, H = memory["arm"], got["H"]
        G = add(H, scale(P, masses[memory["until"]] - masses[got["until"]]))
        memory["K"] = add(add(memory["K"], got["K"]), add(hats(P, G), hats(H, P)))
        memory["H"] = add(memory["H"], G)
        memory["arm"], memory["until"] = add(P, got["arm"]), got["until"]

    array.compute("2 start", start)
    _double(array, "2 composite H, K", chain.n, ("arm", "until", "H", "K"), +1, join)


def _force(place, memory):
    memory["f"] = cross(memory["Z"], memory["H"])
    memory["n"] = matvec(memory["K"], memory["Z"])


def vcrb_on_triangle(array, chain, turns):
    """PA of VCR-B: processor (j, i) forms a_ij from the composite body j and the arm from O(i) to O(j)."""
    n = chain.n
    _project_on_base(array, chain, turns, square=True)
    _composite(array, chain)
    array.compute("3 f, n", _force)
    array.fetch("4 shift of P", lambda place: _moved(place, -1), ("P",))

    def reach(place, memory):                                     # P(j, i), so far P(j, j - 1); nothing for j = i
        memory["arm"] = memory["in"]["P"] if memory["in"] else None
        memory["axis"] = memory["Z"] if place[0] == place[1] else None

    def longer(memory, got):
        if memory["arm"] is not None and got["arm"] is not None:
            memory["arm"] = add(memory["arm"], got["arm"])
        if memory["axis"] is None:
            memory["axis"] = got["axis"]

    def entry(place, memory):
        moment = memory["n"]
        if memory["arm"] is not None:
            moment = add(moment, cross(memory["arm"], memory["f"]))
        memory["a"] = dot(memory["axis"], moment)

    array.compute("4 start", reach)
    _double(array, "4 P(j, i), Z(i)", n, ("arm", "axis"), -1, longer)
    array.compute("5 Z . (n + P x f)", entry)


def vcrb_on_line(array, chain, turns):
    """PPA of VCR-B: processor i takes its force to the ground; in round t it meets joint i - t."""
    n = chain.n
    _project_on_base(array, chain, turns, square=False)
    _composite(array, chain)
    array.compute("3 f, n", _force)

    def diagonal(place, memory):
        memory["a"] = [(place, place, dot(memory["Z"], memory["n"]))]
        memory["joint"] = memory["Z"], memory["P"]

    def step(place, memory, t):
        if memory["joint"] is not None:
            Z, P = memory["joint"]
            memory["n"] = add(memory["n"], cross(P, memory["f"]))
            memory["a"].append((place - t, place, dot(Z, memory["n"])))

    array.compute("4 Z . n", diagonal)
    for t in range(1, n):
        array.fetch("5 next joint", lambda place: place - 1, ("joint",))
        for memory in array.memory.values():
            memory["joint"] = memory["in"]["joint"] if memory["in"] else None
        array.compute("5 n + P x f, Z . n", lambda place, memory, t=t: step(place, memory, t))


ARRAYS = {("vneb", "n^2"): vneb_on_triangle, ("vneb", "n"): vneb_on_line,
          ("vcrb", "n^2"): vcrb_on_triangle, ("vcrb", "n"): vcrb_on_line}
