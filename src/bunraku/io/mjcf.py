"""MJCF: model files of MuJoCo, compiled by MuJoCo itself (`pip install "bunraku[mjcf]"`) and read from its model.

So defaults, compiler options, frames, replicated bodies and inertias from geoms have MuJoCo's meaning. Every body
becomes a link of the same name and frame, and q is MuJoCo's qpos, joint by joint, `ref` included:

    hinge, slide       Revolute, Prismatic through the joint's anchor (`at`)
    several of them    Compound, named after all of them: "hip_x+hip_z"
    ball               Spherical; with an anchor away from the body's origin, or beside other joints, on a massless link
                       "<body>/<joint>"
    free               Free; with a spring or armature: three sliders "<joint>/x", "/y", "/z" and a ball "<joint>/turn",
                       because MuJoCo's free joint moves in world axes
    none               Fixed

Springs with their reference, damping, armature and gravity act; ranges are kept as information (`lower`, `upper`), with
a LoadWarning: `Mechanism.with_joint(name, limit_stiffness=...)` makes them act.
With `shapes=True`, geoms that can touch become shapes, with their masks and friction (for a pair MuJoCo takes the
larger sliding friction, bunraku the geometric mean; torsional friction with `condim` 4 or 6, rolling friction with 6).
Equality constraints become connections and couplings where they can (`mjcf_constraints.py`); with any of them, joints
are actuated that an actuator drives. Ranges of actuators and joints are kept as information (`effort`). Actuators are
not part of a mechanism: `bk.control.from_file` reads them. Otherwise contacts, and always tendons, fluid and gravity
compensation are ignored, each kind with one LoadWarning, and so is dry friction (frictionloss) unless `friction=True`,
or of balls and free joints. Geoms that MuJoCo draws (groups 0 to 2) become visuals. The initial state of a file, such
as the height of a free body, is not part of a mechanism: it is MuJoCo's `qpos0`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bunraku.convert.mujoco import body_names, joint_names
from bunraku.errors import LoadError, MissingExtra, ModelError
from bunraku.io.axes import rotation_of_quaternion as rotation
from bunraku.io.collision import Notes, mesh_hull
from bunraku.io.findings import Findings
from bunraku.io.mjcf_compile import MeshData, compile_model
from bunraku.io.mjcf_constraints import Constraints
from bunraku.io.mjcf_left_out import LeftOut
from bunraku.io.prescan import prescan
from bunraku.mechanism import (
    Box,
    Capsule,
    Compound,
    Cylinder,
    Fixed,
    Free,
    Heightfield,
    Joint,
    Mechanism,
    Prismatic,
    Revolute,
    Shape,
    Sphere,
    Spherical,
    Visual,
)
from bunraku.mechanism.links import GROUND

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)  # mjtGeom
DRAWN_GROUPS = 3


def load_mjcf(path: str | os.PathLike, base: str = "free", strict: bool = False, shapes: bool = False,
              friction: bool = False) -> Mechanism:
    """The mechanism of an MJCF file; see `bunraku.load`. `base` has no effect: MJCF always specifies free joints."""
    try:
        path = Path(path)
    except TypeError:
        raise LoadError(f"a model file is given by its path, not {path!r}") from None
    mujoco = imported_mujoco()
    findings = Findings(path, strict)
    files = prescan(path, findings)
    model, meshes = compile_model(mujoco, findings, files)
    mechanism = _Reader(mujoco, model, meshes, findings, shapes, friction).build()
    findings.report(stacklevel=4)
    return mechanism


def imported_mujoco():
    try:
        import mujoco
    except ImportError:
        raise MissingExtra('reading MJCF needs MuJoCo: pip install "bunraku[mjcf]"') from None
    return mujoco


# -- from MuJoCo's model to a mechanism ----------------------------------------------------------------------------


class _Step(NamedTuple):
    """One joint of a body's joint sequence, and the pose of its frame in the preceding frame."""

    joint: Joint
    name: str
    rotation: np.ndarray
    position: np.ndarray


class _Reader:
    """Conversion of one compiled model to a mechanism."""

    def __init__(self, mujoco, model, meshes: MeshData, findings: Findings, shapes: bool, friction: bool):
        self.model, self.meshes, self.findings, self.shapes = model, meshes, findings, shapes
        flags = mujoco.mjtDisableBit
        off = model.opt.disableflags
        passive_off = bool(off & int(getattr(flags, "mjDSBL_PASSIVE", 0)))
        self.springs = not (passive_off or off & int(getattr(flags, "mjDSBL_SPRING", 0)))
        self.dampers = not (passive_off or off & int(getattr(flags, "mjDSBL_DAMPER", 0)))
        self.limits = not off & int(getattr(flags, "mjDSBL_LIMIT", 0))
        self.friction = friction and not off & int(getattr(flags, "mjDSBL_FRICTIONLOSS", 0))
        self.gravity = np.zeros(3) if off & int(flags.mjDSBL_GRAVITY) else np.array(model.opt.gravity)
        self.joint_names = joint_names(model)
        self.body_names = body_names(model)
        self.taken_links = {GROUND, *self.body_names[1:]}
        self.taken_joints = {name for name in self.joint_names if name}
        self.constraints = Constraints(model, findings, [self._text(model.names, int(a)) for a in model.name_eqadr],
                                       rotation)
        self.alone = self.constraints.coupled  # joints that must not be part of a Compound
        drive = len(meshes.driven) > 0 and model.neq > 0
        self.driven = set(meshes.driven) if drive else set(self.joint_names)
        self.efforts = meshes.driven

    def build(self) -> Mechanism:
        model = self.model
        name = self._text(model.names, 0)
        if name == "MuJoCo Model":  # what MuJoCo calls one without a name
            name = ""
        if not np.all(np.isfinite(self.gravity)):
            raise self.findings.refuse("option", f"gravity is {self.gravity.tolist()}")
        mechanism = Mechanism(gravity=self.gravity.tolist(), name=name or self.findings.path.stem or "model")
        self._refuse_not_finite()
        self.called = [GROUND]
        for body in range(1, model.nbody):
            self._add(mechanism, body)
        if self.shapes:
            self._add_shapes(mechanism)
        self.constraints.add(mechanism, self.called, self.joint_names)
        LeftOut(model, self.findings, self.called, self.joint_names).note(self.limits, self.shapes, self.friction,
                                                                               mechanism.mass)
        return mechanism

    def _refuse_not_finite(self) -> None:
        """Reject values that are not finite: MuJoCo normalises axes without a check, so that "inf 0 1" becomes NaN."""
        model = self.model
        for kind, names, what, values in (("joint", self.joint_names, "axis", model.jnt_axis),
                                          ("joint", self.joint_names, "pos", model.jnt_pos),
                                          ("body", self.body_names, "pos", model.body_pos),
                                          ("body", self.body_names, "quat", model.body_quat)):
            for k in np.flatnonzero(~np.isfinite(values).all(axis=1)):
                raise self.findings.refuse(f"{kind} {names[k]!r}",
                                           f"its {what} is {values[k].tolist()}, which is not finite")

    def _add(self, mechanism: Mechanism, body: int) -> None:
        """The link of a body, after the massless links its joints may need."""
        model, name = self.model, self.body_names[body]
        if name == GROUND:
            name = self._fresh(f"{GROUND}/body", self.taken_links)
            self.findings.note(f"body {GROUND!r}", f"is called {name!r} here, where {GROUND!r} is the world")
        self.called.append(name)
        turn, mass = rotation(model.body_iquat[body]), float(model.body_mass[body])
        moments = model.body_inertia[body] if mass or model.body_weldid[body] else np.zeros(3)  # of what stands still
        parent = self.called[model.body_parentid[body]]
        try:
            *before, last = self._steps(body)
            for step in before:
                link = self._fresh(f"{name}/{step.name}", self.taken_links)
                mechanism.add_link(link, parent, step.joint, step.name, self._actuated(step), step.position,
                                   step.rotation)
                parent = link
            mechanism.add_link(name, parent, last.joint, last.name, self._actuated(last), last.position, last.rotation,
                               mass=mass, com=model.body_ipos[body], inertia=turn @ np.diag(moments) @ turn.T,
                               visuals=self._visuals(body))
        except LoadError:
            raise
        except ModelError as error:
            raise self.findings.refuse(f"body {name!r}", str(error)) from None

    def _actuated(self, step: _Step) -> bool | None:
        """None: as joints of its kind are."""
        return None if self.driven.intersection(step.name.split("+")) else False

    def _fresh(self, name: str, taken: set[str]) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    def _steps(self, body: int) -> list[_Step]:
        """The joints of a body in order: runs of hinges and sliders as one joint, balls each as one."""
        model = self.model
        R, p = rotation(model.body_quat[body]), np.array(model.body_pos[body])
        steps: list[_Step] = []
        run: list[int] = []
        first = model.body_jntadr[body]
        for j in range(first, first + model.body_jntnum[body]):
            kind = model.jnt_type[j]
            if kind == FREE:
                return self._free(j)
            if run and (kind == BALL or j in self.alone or run[-1] in self.alone):
                steps.append(self._screws(run, R, p))
                R, p, run = np.eye(3), np.zeros(3), []
            if kind in (HINGE, SLIDE):
                run.append(j)
                continue
            anchor = np.array(model.jnt_pos[j])
            steps.append(_Step(self._ball(j), self.joint_names[j], R, p + R @ anchor))
            R, p = np.eye(3), -anchor
        if run:
            steps.append(self._screws(run, R, p))
        elif not steps or p.any():
            steps.append(_Step(Fixed(), self._fresh(self.body_names[body], self.taken_joints), R, p))
        return steps

    def _screws(self, joints: list[int], R: np.ndarray, p: np.ndarray) -> _Step:
        """Hinges and sliders in a row, behind the frame (R, p) of the body.

        MuJoCo moves each by q - ref: T = J1(q1) J1(-ref1) J2(q2) J2(-ref2) ... The constant parts are moved to the
        left, past the preceding joints, whose axes they transform: T = E J1'(q1) J2'(q2) ...
        """
        model = self.model
        turn, shift = np.eye(3), np.zeros(3)  # E so far, from the last joint to the first
        screws: list[Revolute | Prismatic] = []
        for j in reversed(joints):
            axis, at = np.array(model.jnt_axis[j]), np.array(model.jnt_pos[j])
            address = model.jnt_qposadr[j]
            passive = self._passive(j, model.qpos_spring[address])
            if model.jnt_type[j] == HINGE:
                screws.append(Revolute(turn.T @ axis, at=turn.T @ (at - shift), **passive))
            else:
                screws.append(Prismatic(turn.T @ axis, **passive))
            ref = model.qpos0[address]
            if ref and model.jnt_type[j] == HINGE:
                back = about(axis, -ref)
                turn, shift = back @ turn, at + back @ (shift - at)
            elif ref:
                shift = shift - ref * axis
        screws.reverse()
        name = "+".join(self.joint_names[j] for j in joints)
        if len(joints) > 1:
            name = self._fresh(name, self.taken_joints)
        return _Step(screws[0] if len(screws) == 1 else Compound(*screws), name, R @ turn, p + R @ shift)

    def _ball(self, j: int) -> Spherical:
        """MuJoCo's balls have no reference: their springs rest at the unit quaternion, as ours do."""
        passive = self._passive(j, None)
        passive.pop("lower", None)
        return Spherical(**passive)

    def _free(self, j: int) -> list[_Step]:
        """A free joint. Its coordinates are of the world: the body's placement is only where it starts."""
        model, name = self.model, self.joint_names[j]
        passive = self._passive(j, None)
        stiffness, armature = passive.get("stiffness", 0.0), passive.get("armature", 0.0)
        if not (stiffness or armature):
            return [_Step(Free(**passive), name, np.eye(3), np.zeros(3))]
        # Both act in world axes, where Free has body axes
        address = model.jnt_qposadr[j]
        rest = model.qpos_spring[address:address + 7]
        if stiffness and np.abs(rest[4:]).max() > 0:
            raise self.findings.refuse(f"joint {name!r}", "a free joint with a spring that rests in a turned pose "
                                                          "cannot be represented; leave the stiffness out")
        sliders = [Prismatic(axis, **passive, rest=x if stiffness else 0.0)
                   for axis, x in zip(np.eye(3), rest[:3], strict=True)]
        names = "+".join(f"{name}/{x}" for x in "xyz")
        return [_Step(Compound(*sliders), self._fresh(names, self.taken_joints), np.eye(3), np.zeros(3)),
                _Step(Spherical(**passive), self._fresh(f"{name}/turn", self.taken_joints), np.eye(3), np.zeros(3))]

    def _passive(self, j: int, rest: float | None) -> dict[str, float]:
        """Passive parameters of a joint, as keywords of bunraku's joints."""
        model = self.model
        dof = model.jnt_dofadr[j]
        stiffness = float(model.jnt_stiffness[j]) if self.springs else 0.0
        values = {"armature": float(model.dof_armature[dof]),
                  "damping": float(model.dof_damping[dof]) if self.dampers else 0.0, "stiffness": stiffness}
        if self.friction and model.jnt_type[j] in (HINGE, SLIDE):
            values["friction"] = float(model.dof_frictionloss[dof])
        if model.jnt_type[j] in (HINGE, SLIDE):
            effort = self.efforts.get(self.joint_names[j], np.inf)
            if model.jnt_actfrclimited[j]:
                effort = min(effort, float(np.abs(model.jnt_actfrcrange[j]).max()))
            if np.isfinite(effort):
                values["effort"] = effort
        if rest is not None and stiffness:
            values["rest"] = float(rest)
        if model.jnt_limited[j] and model.jnt_type[j] != FREE:
            values["lower"], values["upper"] = map(float, model.jnt_range[j])
        try:
            Revolute((0, 0, 1), **values)
        except ModelError as error:
            raise self.findings.refuse(f"joint {self.joint_names[j]!r}", str(error).partition(": ")[2]) from None
        return {name: value for name, value in values.items() if value or name in ("lower", "upper")}

    # -- shapes --------------------------------------------------------------------------------------------------------

    def _visuals(self, body: int) -> list[Visual]:
        first = self.model.body_geomadr[body]
        found = [self._visual(g) for g in range(first, first + self.model.body_geomnum[body])]
        return [visual for visual in found if visual is not None]

    def _visual(self, g: int) -> Visual | None:
        """A geom as a shape to draw; None if MuJoCo hides it or its type cannot be drawn."""
        model = self.model
        colour = self._colour(g)
        if model.geom_group[g] >= DRAWN_GROUPS or colour[3] == 0:
            return None
        a, b, c = (float(x) for x in model.geom_size[g])
        R, p = rotation(model.geom_quat[g]), np.array(model.geom_pos[g])
        kind = model.geom_type[g]
        sizes = {SPHERE: ("sphere", (a,)), CAPSULE: ("capsule", (a, 2 * b)), CYLINDER: ("cylinder", (a, 2 * b)),
                 ELLIPSOID: ("ellipsoid", (a, b, c)), BOX: ("box", (2 * a, 2 * b, 2 * c))}
        if kind in sizes:
            return Visual(*sizes[kind], p, R, colour)
        if kind == MESH:
            return self._mesh(int(model.geom_dataid[g]), R, p, colour)
        return None

    def _add_shapes(self, mechanism: Mechanism) -> None:
        """Geoms that can touch others, with their masks; pairs of bodies that MuJoCo excludes."""
        model, notes = self.model, Notes(self.findings)
        for g in np.flatnonzero((model.geom_contype != 0) | (model.geom_conaffinity != 0)):
            link = self.called[model.geom_bodyid[g]]
            name = self._text(model.names, int(model.name_geomadr[g])) or None
            label = f"geom {name!r}" if name else f"a geom of body {link!r}"
            R, p = rotation(model.geom_quat[g]), np.array(model.geom_pos[g])
            surface: dict[str, Any] = {"friction": float(model.geom_friction[g, 0]), "name": name,
                                       "group": int(model.geom_contype[g]), "meets": int(model.geom_conaffinity[g])}
            if model.geom_condim[g] > 3:
                surface["torsional"] = float(model.geom_friction[g, 1])
            if model.geom_condim[g] > 4:
                surface["rolling"] = float(model.geom_friction[g, 2])
            try:
                if model.geom_type[g] == PLANE:
                    mechanism.add_plane(link, p, R[:, 2], **surface)
                else:
                    shape = self._collision(int(g), label, notes)
                    if shape is not None:
                        mechanism.add_shape(link, shape, p, R, **surface)
            except ModelError as error:
                raise self.findings.refuse(label, str(error)) from None
        known = dict(zip(self.body_names, self.called, strict=True))
        for a, b in self.meshes.excluded:
            mechanism.exclude(known[a], known[b])
        for body in range(1, model.nbody):  # joined through a massless link that MuJoCo does not have
            above = int(model.body_parentid[body])
            if above and model.body_weldid[body] not in (0, model.body_weldid[above]) and model.body_weldid[above]:
                mechanism.exclude(self.called[above], self.called[body])
        notes.report(mechanism)

    def _collision(self, g: int, label: str, notes: Notes) -> Shape | None:
        model, kind = self.model, self.model.geom_type[g]
        a, b, c = (float(x) for x in model.geom_size[g])
        if kind == SPHERE:
            return Sphere(a)
        if kind == CAPSULE:
            return Capsule(a, 2 * b)
        if kind == BOX:
            return Box(2 * a, 2 * b, 2 * c)
        if kind == CYLINDER:
            return Cylinder(a, 2 * b)
        if kind == MESH:
            mesh = int(model.geom_dataid[g])
            first = model.mesh_vertadr[mesh]
            return mesh_hull(np.array(model.mesh_vert[first:first + model.mesh_vertnum[mesh]], float), label, notes)
        if kind == HFIELD:
            return self._heightfield(int(model.geom_dataid[g]))
        what = "ellipsoids" if kind == ELLIPSOID else f"geoms of type {int(kind)}"
        notes.note(label, f"{what} cannot touch; left out")
        return None

    def _heightfield(self, field: int) -> Heightfield:
        """A height field: MuJoCo has rows along x, one after another along y, and heights from 0 to 1."""
        model = self.model
        rows, columns, first = (int(x[field]) for x in (model.hfield_nrow, model.hfield_ncol, model.hfield_adr))
        x, y, top, _ = (float(size) for size in model.hfield_size[field])
        heights = np.array(model.hfield_data[first:first + rows * columns], float).reshape(rows, columns)
        return Heightfield(top * heights.T, (2 * x, 2 * y))

    def _mesh(self, mesh: int, R: np.ndarray, p: np.ndarray, colour) -> Visual | None:
        """MuJoCo has moved the vertices to their principal axes; a visual refers to the file's own."""
        model = self.model
        file = self._text(model.paths, int(model.mesh_pathadr[mesh]))
        if not file:
            return None
        moved = R @ rotation(model.mesh_quat[mesh]).T
        p = p - moved @ model.mesh_pos[mesh]
        name = self._text(model.names, int(model.name_meshadr[mesh]))
        refpos, refquat = self.meshes.references.get(name, (np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])))
        moved = moved @ rotation(refquat).T  # vertices: refquat^-1 (x - refpos), then scaled
        p = p - moved @ (model.mesh_scale[mesh] * refpos)
        home = Path(os.path.abspath(self.findings.path)).parent
        places = [home / file, home / self.meshes.folder / file]  # older versions leave out the folder
        path = next((place for place in places if place.is_file()), places[0])
        return Visual("mesh", tuple(map(float, model.mesh_scale[mesh])), p, moved, colour, str(path))

    @staticmethod
    def _text(text: bytes, address: int) -> str:
        return "" if address < 0 else text[address:text.find(b"\0", address)].decode("utf-8", "replace")

    def _colour(self, g: int) -> tuple[float, float, float, float]:
        model = self.model
        colour = model.geom_rgba[g]
        if model.geom_matid[g] >= 0 and np.allclose(colour, (0.5, 0.5, 0.5, 1.0)):
            colour = model.mat_rgba[model.geom_matid[g]]
        r, g_, b, a = (float(x) for x in colour)
        return r, g_, b, a


def about(axis: Any, angle: float) -> np.ndarray:
    """The matrix of a turn about a unit axis."""
    return rotation([np.cos(angle / 2), *(np.sin(angle / 2) * np.asarray(axis))])
