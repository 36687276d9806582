"""No module reads another module's private names: `x._name` of an object, `from module import _name`.

    python tools/private_reads.py [FOLDER]     prints a line for every finding and exits with 1 if there are any

A module may read the private names that its own classes define or declare (`self._name = ...`, `def _name`,
`_name: type`), on any object, and private modules of its own folder. Other modules use the public names of an object;
if these do not suffice, the object lacks an interface. Private names of other libraries are in FOREIGN, each with its
reason.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "bunraku"
PUBLIC = {"_asdict", "_fields", "_make", "_replace"}  # of named tuples
FOREIGN = {  # private names of other libraries, by the file or folder that reads them
    "compiler": {"_codegen", "_compile_for_args", "_data_layout", "_finalized", "_get_module_for_linking", "_getvalue",
                 "_linking_libraries"},              # Numba: no public interface to its intermediate code
    "simulation/crew/mpi_ranks.py": {"_addressof", "_sizeof"},  # documented by mpi4py, for handles
    "simulation/batches/ensemble.py": {"_exit"},     # os._exit: a process of a pool that must not clean up
    "check/attack_kill.py": {"_exit"},               # the same, of a process that is to be killed
    "view/viser_adapter.py": {"_connected_clients", "_websock_server"},  # viser: no public names
}


def findings(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        tree, place = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(folder).as_posix()
        known = PUBLIC | defined(tree) | {name for start, names in FOREIGN.items() if place.startswith(start)
                                          for name in names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in known:
                if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                    yield f"{place}:{node.lineno}: {ast.unparse(node)} is private to another module"
            elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("bunraku")):
                for name in node.names:
                    if private(name.name) and not (path.parent / f"{name.name}.py").exists():
                        yield f"{place}:{node.lineno}: {name.name} of {node.module} is private to that module"


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("_")  # __dict__ and _repr_html_ are protocols


def defined(tree: ast.Module) -> set[str]:
    """Private names that the classes of a module define or declare."""
    names = set()
    for holder in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in ast.walk(holder):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                  and isinstance(node.value, ast.Name) and node.value.id == "self"):
                names.add(node.attr)
    return names


def main() -> int:
    found = list(findings(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES))
    print("\n".join(found) or "no private names are read by other modules")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
