"""Ways to form the mass matrix of a serial chain, one per file: the family that [F] compares.

[F]: A. Fijany, Serial and Parallel Computation of Kane's Equations for Multibody Dynamics, N91-22320 (1991).

Plain Python, generic in the scalar: a float for one state, an array for a batch, a number that counts for operation
counts. This is the family to read and compare; `bk.mass_matrix(..., method="auto")` is the one to be fast with.

    original Kane's equation            oke    O(n^3)
    variant of Kane's equation          vke    O(n^2)
    original Newton-Euler based         oneb   O(n^2), whole chain for each column, body frames
    variant Newton-Euler based          vneb   O(n^2), one fixed frame
    original composite rigid body       ocrb   O(n^2), body frames
    variant composite rigid body        vcrb   O(n^2), step 1 in body frames, step 2 in a fixed one
    vneb and vcrb on processor arrays   parallel_methods.py, array.py
"""

from bunraku.massmatrix.by_method import METHODS, kernel, mass_matrix
from bunraku.massmatrix.count import Count, Counted, Counter, count, counted
from bunraku.massmatrix.parallel_methods import ARRAYS, parallel_run, simulate
from bunraku.massmatrix.serial_chain import Chain, Turn, chain_of, generic_chain

__all__ = ["ARRAYS", "METHODS", "Chain", "Count", "Counted", "Counter", "Turn", "chain_of", "count", "counted",
           "generic_chain", "kernel", "mass_matrix", "parallel_run", "simulate"]
