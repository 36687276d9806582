"""Whole simulations in compiled code: the right-hand side of a mechanism under each solver, loops closed, recorded.

context.py      data of a right-hand side: the structure's arrays, torques, scratch memory
loop_closing.py        closing loops after a step, and taking back steps whose loops do not close
singular.py     passing through singular configurations
runge_kutta_run.py, multistep_run.py, implicit_run.py, symplectic_euler_run.py     one compiled run per kind of solver
lane_run.py        fixed steps of many states at once
actuation.py    the user's torques as C functions
model.py        the running mechanism inside user functions that are compiled
bound_functions.py     C functions with an address bound to them
"""
