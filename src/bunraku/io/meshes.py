"""Mesh files, by trimesh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bunraku.errors import LoadError, MissingExtra


def read_mesh(name: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) and triangles (m, 3) of a mesh file, unscaled."""
    path = Path(name or "")
    if not path.is_file():
        raise LoadError(f"{name}: no such file")
    try:
        import trimesh
    except ImportError:
        raise MissingExtra(f'{path.name}: meshes need trimesh: pip install "bunraku[view]"') from None
    try:
        mesh: Any = trimesh.load(path, force="mesh", process=False)
        vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces).astype(np.int32)
    except Exception as error:  # trimesh has a reader per format, with errors of their own
        raise LoadError(f"{path.name}: {error or type(error).__name__}") from None
    if not len(faces) or not np.isfinite(vertices).all():
        raise LoadError(f"{path.name}: no triangles")
    return vertices, faces
