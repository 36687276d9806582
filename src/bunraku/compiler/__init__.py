"""From Python functions to machine code that Python calls, in five steps, a file each:

parts      Numba turns Python functions into LLVM's intermediate code; an entry is linked from its parts, each once
calling    a function in the form that CPython calls: checks Python objects and takes kernel arguments from them
targets    kinds of processors; LLVM optimises the linked code and makes object code for one of them
files      object code on disk: in the user's cache, or in a wheel
loading    object code in this process, as builtin functions

`lowering` is the part of the first step that relies on private classes of Numba, `numba_inside` names all private parts
of Numba that are used. `handles` passes named tuples by address; `together` compiles several entries side by side,
`ahead` before their first use, also for other kinds of processors. `jit.py` has the decorators.
"""
