"""VN-EB and VCR-B on processor arrays: PA on n (n + 1) / 2 processors, O(log n); PPA on n, O(n). Revolute joints.

PA of VN-EB follows the listing of [F] step by step, in the frame of the last body. Processor (j, i), j >= i, is in row
j (it knows body j) and column i (it forms column i of M). Moments of body j are about O(j + 1), as step 2.2 of the
listing needs them with its P(j + 1, i); step 3.3a then takes F(n + 1, j, i), so its shift 3.2 is not needed.

[F] gives no listing for the others. PA of VCR-B works in the frame of the first body: rotations by doubling in the
first column, which alone has all rows, and on along the rows; composite bodies by doubling in every column. In PPA
processor j is body j until all is projected; then column after column (VN-EB) or force after force (VCR-B) is swept
serially, while the data of the bodies move on from neighbour to neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bunraku.massmatrix.array import Array, Step, spans
from bunraku.massmatrix.chain import Chain, generic_chain
from bunraku.massmatrix.count import Count, Counter, counted_state
from bunraku.massmatrix.vectors import (
    add,
    add6,
    column_z,
    cross,
    dot,
    matmul,
    matvec,
    rotate6,
    scale,
    shift_square,
    shift_terms,
    sub,
    symvec,
)

UNIT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
ZERO = (0.0, 0.0, 0.0)


@dataclass
class Run:
    """What an array gave and what it took."""

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
    counter, chain = Counter(), generic_chain(n)
    return simulate(method, processors, chain, counted_state(chain, counter), counter)


def _row(place) -> int:
    return place[0] if isinstance(place, tuple) else place


def _moved(place, by: int):
    """The place so many rows on, in the same column."""
    return (place[0] + by, place[1]) if isinstance(place, tuple) else place + by


def _inwards(chain, turns, j):
    """R(j + 1, j) = Rx(-alpha) Rz(-theta). (4, 0)"""
    (c, s, _), (cx, sx) = turns[j], chain.twist[j]
    return (c, s, 0.0, -(s * cx), c * cx, sx, s * sx, -(c * sx), cx)


def _outwards(chain, turns, j):
    """R(j, j + 1) = Rz(theta) Rx(alpha). (4, 0)"""
    (c, s, _), (cx, sx) = turns[j], chain.twist[j]
    return (c, -(s * cx), s * sx, s, c * cx, -(c * sx), 0.0, sx, cx)


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
    """Step 1 of the listing: R(n, j) by doubling, then Z(j), P(j + 1, j), H(j) in the frame of the last body."""
    def start(place, memory):                                     # 1.1
        memory["R"] = _inwards(chain, turns, _row(place))

    def product(memory, got):                                     # 1.2  R(n, j) = R(n, j') R(j', j)
        memory["R"] = matmul(got["R"], memory["R"])

    def project(place, memory):                                   # 1.4
        j, beyond = _row(place), memory["in"]
        R = memory["beyond"] = UNIT if beyond is None else beyond["R"]
        P = _arm(chain, j)
        memory["Z"] = column_z(memory["R"])
        memory["P"] = matvec(R, P)
        S = matvec(R, sub(chain.S[j], P))                         # from O(j + 1)
        memory["H"] = scale(S, chain.m[j])

    array.compute("1.1 R(j+1, j)", start)
    _double(array, "1.2 R(n+1, j)", chain.n, ("R",), +1, product)
    array.fetch("1.3 shift of R(n+1, j+1)", lambda place: _moved(place, 1), ("R",))
    array.compute("1.4 Z, P, S, H in the last frame", project)


def _moment(chain, j):
    """Second moment of body j about O(j + 1), a constant."""
    return add6(chain.I[j], shift_square(sub(chain.S[j], _arm(chain, j)), chain.m[j]))


def vneb_on_triangle(array, chain, turns):
    """PA of VN-EB, the listing of [F]."""
    n = chain.n
    _project_on_tip(array, chain, turns)

    def reach(place, memory):
        memory["arm"] = memory["P"]                               # P(j + 1, i), so far P(j + 1, j)
        memory["axis"] = memory["Z"] if place[0] == place[1] else None

    def longer(memory, got):                                      # 2.1
        memory["arm"] = add(memory["arm"], got["arm"])
        if memory["axis"] is None:
            memory["axis"] = got["axis"]                          # omega(j, i) = Z(i)

    def body(place, memory):                                      # 2.2
        j, Z, R = place[0], memory["axis"], memory["beyond"]
        V = cross(Z, memory["arm"])                                                       # a
        memory["F"] = add(cross(Z, memory["H"]), scale(V, chain.m[j]))                    # b
        local = symvec(_moment(chain, j), matvec(_transposed(R), Z))                      # c
        memory["N"] = add(matvec(R, local), cross(memory["H"], V))

    def forces(memory, got):                                      # 3.1
        memory["F"] = add(memory["F"], got["F"])

    def lever(place, memory):                                     # 3.3a, with F(n + 1, j, i)
        memory["N"] = add(memory["N"], cross(memory["P"], memory["F"]))

    def moments(memory, got):                                     # 3.3b
        memory["N"] = add(memory["N"], got["N"])

    def entry(place, memory):                                     # 3.4
        memory["a"] = dot(memory["Z"], memory["N"])

    array.compute("2.1 start", reach)
    _double(array, "2.1 P(j+1, i), Z(i)", n, ("arm", "axis"), -1, longer)
    array.compute("2.2 V, F, N of each body", body)
    _double(array, "3.1 F(n+1, j, i)", n, ("F",), +1, forces)
    array.compute("3.3a P x F", lever)
    _double(array, "3.3b N(n+1, j, i)", n, ("N",), +1, moments)
    array.compute("3.4 Z . N", entry)


def _transposed(R):
    return (R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8])


def vneb_on_line(array, chain, turns):
    """PPA of VN-EB: processor i forms column i; in round t it takes body i + t, handed on by its neighbour."""
    n = chain.n
    _project_on_tip(array, chain, turns)

    def weigh(place, memory):
        memory["K"] = rotate6(memory["beyond"], _moment(chain, place))
        memory["body"] = memory["Z"], memory["P"], memory["H"], memory["K"]
        memory["arm"], memory["kept"], memory["axis"] = None, [], memory["Z"]

    array.compute("1.5 K in the last frame", weigh)

    def step(place, memory, t):
        if place + t >= n:
            return
        Z, (axis, P, H, K) = memory["axis"], memory["body"]
        velocity = cross(Z, P)
        V = memory["arm"] = velocity if memory["arm"] is None else add(memory["arm"], velocity)
        F = add(cross(Z, H), scale(V, chain.m[place + t]))
        N = add(symvec(K, Z), cross(H, V))
        memory["kept"].append((axis, P, F, N))

    for t in range(n):
        if t:
            array.fetch("2 next body", lambda place: place + 1, ("body",))
            for memory in array.memory.values():
                memory["body"] = memory["in"]["body"] if memory["in"] else None
        array.compute("2 V, F, N", lambda place, memory, t=t: step(place, memory, t))

    def back(place, memory, t):
        """Row n - 1 - t of the column."""
        row = n - 1 - t
        if row < place:
            return
        axis, P, F, N = memory["kept"][row - place]
        if t:
            F, N = add(F, memory["F"]), add(N, memory["N"])
        if t or row < n - 1:
            N = add(N, cross(P, F))
        memory["F"], memory["N"] = F, N
        memory.setdefault("a", []).append((row, place, dot(axis, N)))

    for t in range(n):
        array.compute("3 sums, Z . N", lambda place, memory, t=t: back(place, memory, t))


# -- VCR-B -----------------------------------------------------------------------------------------------------------


def _project_on_base(array, chain, turns, square):
    """R(0, j + 1) by doubling where all rows are, then Z(j), P(j + 1, j), h(j), k(j) in the first body's frame."""
    n = chain.n

    def start(place, memory):
        memory["R"] = _outwards(chain, turns, _row(place))

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
        memory["K"] = rotate6(R, chain.k[j])
        memory["arm"], memory["M"] = memory["P"], chain.m[j]

    array.compute("1.5 Z, P, h, k in the first frame", project)


def _join(memory, got):
    """Composite of the bodies here and those beyond: moments about the nearer O. (12, 30)"""
    P, H = memory["arm"], got["H"]
    G = add(H, scale(P, got["M"]))
    memory["K"] = add6(add6(memory["K"], got["K"]), shift_terms(P, G, H))
    memory["H"] = add(memory["H"], G)
    memory["arm"] = add(P, got["arm"])
    memory["M"] = memory["M"] + got["M"]


def _force(place, memory):
    memory["f"] = cross(memory["Z"], memory["H"])
    memory["n"] = symvec(memory["K"], memory["Z"])


def vcrb_on_triangle(array, chain, turns):
    """PA of VCR-B: processor (j, i) forms a_ij from the composite body j and the arm from O(i) to O(j)."""
    n = chain.n
    _project_on_base(array, chain, turns, square=True)
    _double(array, "2 composite M, H, K", n, ("arm", "M", "H", "K"), +1, _join)
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
    _double(array, "2 composite M, H, K", n, ("arm", "M", "H", "K"), +1, _join)
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
