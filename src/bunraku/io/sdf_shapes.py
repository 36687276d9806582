"""Visuals and collision shapes of an SDF file."""

from __future__ import annotations

import numpy as np

from bunraku.errors import LoadError, MissingExtra, ModelError
from bunraku.io.collision import Notes, mesh_hull
from bunraku.io.findings import Findings
from bunraku.io.mesh_files import MeshFiles
from bunraku.io.meshes import read_mesh
from bunraku.io.sdf_frames import Frames
from bunraku.io.sdf_joints import number, text
from bunraku.io.xml import Node, clip
from bunraku.mechanism import Box, Capsule, Cylinder, Mechanism, Shape, Sphere, Visual

FRICTION = 0.5
GREY = (0.7, 0.7, 0.7, 1.0)
SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length"),
         "ellipsoid": ("radii",)}


class SdfShapes:
    def __init__(self, findings: Findings, meshes: MeshFiles, frames: Frames):
        self.findings, self.meshes, self.frames = findings, meshes, frames

    def visuals(self, link: Node, name: str) -> list[Visual]:
        found = []
        for element in link.all("visual"):
            shape, (R, p), colour = _shape(element), self.frames.inside(element, name), _colour(element)
            if shape is not None and shape.tag == "mesh":
                found.append(Visual("mesh", tuple(_scale(shape)), p, R, colour,
                                    self.meshes.resolve(text(shape, "uri"), link)))
            elif shape is not None and shape.tag in SIZES:
                found.append(Visual(shape.tag, tuple(_sizes(shape)), p, R, colour))
            elif shape is not None and shape.tag != "empty":
                self.findings.note(f"visual of {link.label}", f"has the shape <{clip(shape.tag)}>; not drawn")
        return found

    def add_collisions(self, mechanism: Mechanism, links: dict[str, Node], called: dict[str, str]) -> None:
        notes = Notes(self.findings)
        for name, link in links.items():
            for element in link.all("collision"):
                shape, (R, p), label = _shape(element), self.frames.inside(element, name), f"collision of {link.label}"
                friction = _friction(element)
                try:
                    if shape is not None and shape.tag == "plane":
                        normal = shape.one("normal")
                        z = np.array([0.0, 0.0, 1.0] if normal is None else normal.values((3,)))
                        mechanism.add_plane(called.get(name, name), p, R @ z, friction=friction)
                        continue
                    found = None if shape is None else self._solid(shape, link, label, notes)
                    if found is not None:
                        mechanism.add_shape(called.get(name, name), found, p, R, friction=friction)
                except (LoadError, MissingExtra) as error:
                    notes.note(label, f"{error}; left out")
                except ModelError as error:
                    raise link.refuse(str(error)) from None
        notes.report(mechanism)

    def _solid(self, shape: Node, link: Node, label: str, notes: Notes) -> Shape | None:
        if shape.tag == "mesh":
            vertices, _ = read_mesh(self.meshes.resolve(text(shape, "uri"), link))
            return mesh_hull(vertices * np.array(_scale(shape)), label, notes)
        if shape.tag == "box":
            return Box(*_sizes(shape))
        kinds: dict[str, type[Shape]] = {"sphere": Sphere, "cylinder": Cylinder, "capsule": Capsule}
        if shape.tag in kinds:
            return kinds[shape.tag](*_sizes(shape))
        if shape.tag != "empty":
            notes.note(label, f"shapes <{clip(shape.tag)}> cannot touch; left out")
        return None


def _shape(element: Node) -> Node | None:
    geometry = element.one("geometry")
    return geometry.children[0] if geometry is not None and geometry.children else None


def _sizes(shape: Node) -> list[float]:
    numbers: list[float] = []
    for tag in SIZES[shape.tag]:
        child = shape.one(tag)
        if child is None:
            raise shape.refuse(f"needs a <{tag}>")
        numbers += child.values((3,) if tag in ("size", "radii") else (1,))
    return numbers


def _scale(shape: Node) -> list[float]:
    child = shape.one("scale")
    return [1.0, 1.0, 1.0] if child is None else child.values((3,))


def _colour(element: Node) -> tuple[float, float, float, float]:
    material = element.one("material")
    for tag in ("diffuse", "ambient"):
        child = None if material is None else material.one(tag)
        if child is not None and child.text:
            r, g, b, *a = (min(max(x, 0.0), 1.0) for x in child.values((3, 4)))
            return r, g, b, a[0] if a else 1.0
    return GREY


def _friction(element: Node) -> float:
    """<surface> <friction> <ode> <mu>; where the file has none, that of shapes here."""
    for tag in ("surface", "friction", "ode"):
        found = element.one(tag)
        if found is None:
            return FRICTION
        element = found
    return number(element, "mu", 1.0)
