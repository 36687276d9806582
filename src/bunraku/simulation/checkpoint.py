"""Checkpoints: a simulation with the history of its solver in a file, for a bit-exact continuation.

Compiled code keeps nothing between two calls of `run` but the solver's `Memory`, so that and the recorded motion are
all there is to save. Functions are not stored: they are passed again on loading.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from typing import Any

import numpy as np

from bunraku.checks import as_vector, hint
from bunraku.errors import ModelError, NamingError, SimulationError
from bunraku.evaluate.contact_workspace import IDENTITY
from bunraku.evaluate.contact_workspace import STATE as STATE_OF_CONTACTS
from bunraku.evaluate.schedules import made_again
from bunraku.integrate import solver_memory as m
from bunraku.integrate.history import Family
from bunraku.integrate.methods import memory_for, method_of
from bunraku.integrate.record import COEFFICIENTS
from bunraku.integrate.runge_kutta import Tableau
from bunraku.mechanism import Mechanism
from bunraku.mechanism.describe import describe
from bunraku.simulation.acting import Acting
from bunraku.simulation.conditions import Watch
from bunraku.simulation.crew.sharing import Sharing
from bunraku.simulation.records.storage import Rule, read, refuse, write
from bunraku.simulation.records.tape import Extent
from bunraku.simulation.records.trajectory import from_file, to_file
from bunraku.simulation.running import Running
from bunraku.simulation.settings import Settings

FORMAT = 2
GIVEN = ("condition", "action", "name", "repeat", "about")  # of a Watch by `when`; everything else is its state
STATE = {field.name: field for field in dataclasses.fields(Watch) if field.name not in GIVEN}
TABLEAU = {"A": Rule(("stages", "stages")), "B": Rule(("stages",)), "E": Rule(("stages",)), "C": Rule(("stages",)),
           "P": Rule(("stages and end", "degree"))}
FINITE = [m.TIME, m.STEP, m.MIN_STEP, m.TAKEN, m.PENDING, m.GROWTH, m.RATE, m.GAMMA, m.STEEPNESS, m.WISH,
          m.EXTRAPOLATED, m.BEGAN]  # of the clock
KEPT = ("clock", "tally", "tolerance", "rows", "matrix", "pivots")  # of the memory; sums are made anew
KINDS: tuple[Any, ...] = (int, int, bool, bool, bool)  # of the rest of a tableau


def _version() -> str:
    return importlib.import_module("bunraku").__version__


def save_checkpoint(run: Running, path):
    """See `Simulation.save`."""
    if run.in_step:
        raise SimulationError("save: a step is under way, and half a step cannot be saved; call it between runs or "
                              "from an action of `when`")
    if not np.isfinite(run.memory.rows[0]).all():
        raise SimulationError(f"save: the state at t = {run.t:.6g} s is not finite: no run can continue from it; "
                              "`trajectory` has what was computed", run.trajectory)
    settings, solver, function = run.settings, run.settings.solver, run.acting.function
    for watch in run.watches:
        watch.applies(run.mechanism)  # forgets what it knew of a connection that is another one now
    header, arrays = to_file(run.trajectory)
    header |= {
        "kind": "checkpoint", "format": FORMAT, "version": _version(),
        "settings": [settings.rtol, settings.atol, settings.max_order], "hold": settings.hold, "solver": solver,
        "steps": [settings.step, settings.min_step, settings.max_step if math.isfinite(settings.max_step) else None],
        "dense": run.tape.dense, "impacts": settings.impacts, "contact step": settings.contact_step,
        "sharing": run.sharing.request,
        "actuation": None if function is None else getattr(function, "__name__", type(function).__name__),
        "record": run.tape.duration if math.isfinite(run.tape.duration) else "all",
        **run.acting.to_header(),
        "stats": dataclasses.asdict(run.stats),
        "impulses": {name: impulse.tolist() for name, impulse in run.impulses.items()},
        "watches": [*run.awaited, *({"name": watch.name, **{name: getattr(watch, name) for name in STATE}}
                                    for watch in run.watches)],
    }
    if isinstance(solver, Tableau):
        rest = [name for name in Tableau._fields if name not in TABLEAU]
        header["solver"] = {name: kind(getattr(solver, name)) for name, kind in zip(rest, KINDS, strict=True)}
        arrays |= {f"tableau {name}": getattr(solver, name) for name in TABLEAU}
    arrays |= {f"memory {name}": getattr(run.memory, name) for name in KEPT}
    contact = run.contact
    header["contact"] = None if contact is None else {"room": settings.max_contacts, "stepped": contact.stepped,
                                                      "fresh": contact.fresh,
                                                      "crowding": contact.crowding.to_header()}
    if contact is not None:
        arrays |= {f"contact {name}": values for name, values in contact.touching.known().items()}
    return write(path, header, {**arrays, "params": run.acting.params})


def load_checkpoint(path, actuation, mechanism, forget, external, prescribed) -> Running:
    """See `Simulation.load`."""
    def use(header, arrays):
        if (header["format"], header.get("version")) != (FORMAT, _version()):
            refuse(f" was written by bunraku {header.get('version')} (format {header['format']}); this is "
                           f"{_version()} (format {FORMAT}), whose solvers may keep another history: go on "
                           "with the version that wrote it")
        return _rebuilt(header, arrays, actuation, mechanism, external, prescribed)

    if actuation is not None and not callable(actuation):
        raise ModelError(f"actuation must be a function (t, q, v) -> tau or made by @bk.actuation, not {actuation!r}")
    if mechanism is not None and not isinstance(mechanism, Mechanism):
        raise ModelError(f"mechanism must be a bk.Mechanism, not {mechanism!r}")
    if isinstance(forget, str):
        raise NamingError(f"forget= takes a list of names of conditions, not {forget!r}")
    run = read(path, "checkpoint", use)
    for name in forget:
        known = [state["name"] for state in run.awaited]
        if name not in known:
            raise NamingError(f"{path}: there is no condition {name!r} to forget{hint(name, known)}")
        run.awaited = [state for state in run.awaited if state["name"] != name]
    return run


def _rebuilt(header, arrays, actuation, mechanism, external, prescribed) -> Running:
    had = header["actuation"]
    if had is not None and actuation is None:
        refuse(f": the simulation had the actuation {had!r}, and functions are not in files; give it again: "
                       f"bk.Simulation.load(file, actuation={had})")
    if had is None and actuation is not None:
        refuse(": the simulation had no actuation, and would not go on as before with one; load it without")
    wrong = [name for name, given in (("external", external), ("prescribed", prescribed))
             if set(header[name]) != set(given or {})]
    if wrong:
        had = "; ".join(f"{name} functions for {', '.join(map(repr, header[name])) or 'nothing'}" for name in wrong)
        refuse(f": the simulation had {had}, and functions are not in files; give just these again: "
               f"bk.Simulation.load(file, {', '.join(f'{name}={{...}}' for name in wrong)})")
    trajectory = from_file(header, arrays)
    present = trajectory.segments[-1]
    if mechanism is not None:
        _refuse_another(describe(mechanism), describe(present.mechanism))
    solver = _solver(header["solver"], arrays)
    rtol, atol, max_order = header["settings"]
    params = arrays("params", Rule(("params",)), {}, "params")
    blank = memory_for(solver, np.concatenate([present.q[-1], present.v[-1]]), rtol, atol, max_order)
    memory = blank._replace(**{name: arrays(f"memory {name}", Rule(array.shape, array.dtype.type, finite=False), {},
                                            f"the solver's {name}")
                               for name, array in blank._asdict().items() if name in KEPT})
    _check(memory, method_of(solver), present.t[-1])
    (step, shortest, longest), contacts = header["steps"], header.get("contact") or {}
    settings = Settings.of(solver, rtol, atol, step=step or None, min_step=shortest, max_step=longest or math.inf,
                           max_order=max_order, baumgarte=header["hold"] or None, max_contacts=contacts.get("room"),
                           impacts=header["impacts"], contact_step=header["contact step"])
    own, (workers, request) = present.mechanism.copy().locked(), header["sharing"]
    sharing = Sharing(settings, own, workers, None if request is None else made_again(own, request))
    extent = Extent.of(header["record"] or None, bool(header["dense"]), settings.long_steps)
    acting = Acting(own, actuation, params, {**header["forces"], **(external or {})}, prescribed, header["reads"])
    run = Running(own, settings, acting, sharing)
    acting.restore_pulls(header["pulls"], own)
    run.begin(memory, extent)
    run.tape.restore(trajectory)
    if run.contact is not None and contacts:
        run.contact.crowding.restore(contacts["crowding"])
        run.contact.lay_out()
        _recall_contacts(run.contact.touching, arrays)
        run.contact.stepped, run.contact.fresh = contacts["stepped"], bool(contacts["fresh"])
    for name, value in header["stats"].items():
        if name not in vars(run.stats) or not isinstance(value, (int, float)):
            raise ModelError(f"the checkpoint has an unknown entry of sim.stats: {name!r} = {value!r}")
        setattr(run.stats, name, type(vars(run.stats)[name])(value))
    run.impulses = {name: np.concatenate([as_vector(f"impulse of {name!r}", half) for half in (x[:3], x[3:])])
                    for name, x in header["impulses"].items()}
    run.awaited = [_as_state(state) for state in header["watches"]]
    return run


def _solver(data, arrays):
    if isinstance(data, str):
        return data
    sizes: dict[str, int] = {}
    coefficients = {name: arrays(f"tableau {name}", rule, sizes, f"{name} of the tableau")
                    for name, rule in TABLEAU.items()}
    rest: dict[str, Any] = {name: data[name] for name in Tableau._fields if name not in TABLEAU}
    if not (sizes["stages and end"] == sizes["stages"] + 1 and 0 < sizes["degree"] < COEFFICIENTS
            and all(type(value) is kind and value >= 0 for value, kind in zip(rest.values(), KINDS, strict=True))):
        raise ModelError("the tableau of the solver is damaged")
    return Tableau(**coefficients, **rest)


def _recall_contacts(touching, arrays) -> None:
    """The contact state of a file, whose contacts must be of this mechanism."""
    sizes: dict[str, int] = {}
    known = {IDENTITY: arrays(f"contact {IDENTITY}", Rule(("contacts", 3), np.int64), sizes, "contacts"),
             "margin": arrays("contact margin", Rule((1,)), sizes, "margin of contacts")}
    for name, width in STATE_OF_CONTACTS.items():
        kind = getattr(touching.touch, name).dtype.type
        known[name] = arrays(f"contact {name}", Rule(("contacts", width), kind), sizes, f"{name} of contacts")
    touching.refuse_unknown(known[IDENTITY])
    touching.recall(known)


def _check(memory, method, end) -> None:
    """Reject values that compiled code, which does no checks, could not handle."""
    clock, tally = memory.clock, memory.tally
    finite = np.isfinite(clock[FINITE]).all() and np.isfinite(memory.rows[0]).all() and not np.isnan(clock).any()
    if not (finite and 0 <= clock[m.MIN_STEP] <= clock[m.MAX_STEP] and clock[m.STEP] >= 0 and clock[m.GAP] >= 0
            and clock[m.TIME] >= end and clock[m.SIZE] == memory.rows.shape[1]):
        raise ModelError("the solver's clock is damaged")
    if isinstance(method, Family) and tally[m.STARTED]:
        orders = tally[[m.ORDER, m.NEXT_ORDER, m.MAX_ORDER]]
        if orders.min() < 1 or orders.max() > method.orders or orders[:2].max() > orders[2]:
            raise ModelError(f"the solver's orders {orders.tolist()} are invalid")
    if isinstance(method, Family) and not 1 <= tally[m.MAX_ORDER] <= method.orders:
        raise ModelError(f"the solver's highest order is {tally[m.MAX_ORDER]}")
    if not np.all((memory.tolerance > 0) & np.isfinite(memory.tolerance)):
        raise ModelError("the solver's tolerances are damaged")
    if memory.pivots.size and not (memory.pivots.min() >= 0 and memory.pivots.max() < memory.pivots.size):
        raise ModelError("the solver's matrix is damaged")


def _refuse_another(given: dict, saved: dict) -> None:
    """An error that names the difference between two mechanisms, if they differ."""
    for what in saved:
        if given[what] == saved[what]:
            continue
        if isinstance(saved[what], list) and saved[what] and isinstance(saved[what][0], dict):
            names = [[part["name"] for part in mechanism[what]] for mechanism in (given, saved)]
            if names[0] == names[1]:
                other = [a["name"] for a, b in zip(given[what], saved[what], strict=True) if a != b]
                refuse(f" is of another mechanism: {', '.join(map(repr, other[:5]))} of its {what} differ")
            refuse(f" is of another mechanism: its {what} are {', '.join(map(repr, names[1][:8])) or 'none'}"
                           f"{' ...' if len(names[1]) > 8 else ''}")
        if what not in ("name", "connected"):
            refuse(f" is of another mechanism: its {what.replace('_', ' ')} is {saved[what]}, "
                           f"not {given[what]}")


# -- conditions ----------------------------------------------------------------------------------------------------


def _as_state(data) -> dict:
    """The state of a condition from a file, checked."""
    if not isinstance(data["name"], str) or set(data) != {"name", *STATE}:
        raise ModelError(f"the state of a condition is damaged: {data!r}")
    for name, field in STATE.items():
        kind = list if field.default is dataclasses.MISSING else type(field.default)
        value = data[name]
        numbers = value if kind is list else [value]
        if not isinstance(value, kind) or not all(isinstance(x, (int, float)) and not math.isnan(x) for x in numbers):
            raise ModelError(f"{name!r} of the condition {data['name']!r} is {value!r}")
    return data


def restore(awaited: list[dict], watch: Watch, mechanism: Mechanism) -> None:
    """Restore the state of a condition, by name, from a checkpoint."""
    found = next((state for state in awaited if state["name"] == watch.name), None)
    if found is not None:
        awaited.remove(found)
        watch.applies(mechanism)
        for name in STATE:
            setattr(watch, name, found[name])


def refuse_forgotten(awaited: list[dict]) -> None:
    """An error if a condition of the checkpoint has not been given again: without it the run would differ."""
    names = [state["name"] for state in awaited if state["active"]]
    if names:
        raise SimulationError("cannot continue: the checkpoint has the active conditions "
                              f"{', '.join(map(repr, names))}; give "
                              f"{'them' if len(names) > 1 else 'it'} again by sim.when(condition, action, name=...), "
                              f"or load it with forget={names!r}")
