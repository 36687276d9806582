"""Ahead-of-time compilation: for the cache or for a wheel, also for other processors than this one.

Child processes compile, with BUNRAKU_LEVEL set: the width of lanes, and with it every kernel, is that of the level.
"""

from __future__ import annotations

from pathlib import Path

from bunraku.compiler import code_files as files
from bunraku.compiler.targets import level
from bunraku.compiler.together import Children, Made, Progress, processors
from bunraku.errors import BunrakuError


def compile_ahead(entries, target: str | None = None, out: Path | None = None) -> list[Made]:
    """Compile these entries for a level (default: that of this machine), into a folder (default:
    the cache), side by side; an error if one cannot be compiled or written."""
    seconds = {entry.name: entry.seconds for entry in sorted(entries, key=lambda entry: -entry.seconds)}
    (out or files.cache_root()).mkdir(parents=True, exist_ok=True)
    environment = {}
    if target is not None and target != level().name:
        environment = {"BUNRAKU_LEVEL": target, "BUNRAKU_LANE_WIDTH": ""}
    made: dict[str, Made] = {}
    count = max(1, min(processors(), len(seconds)))
    with Progress(sum(seconds.values()), count, kept=out is None, for_whom=target or "this machine") as progress:
        def take(children: Children) -> None:
            for one in children:
                if one.name not in made:
                    progress.advance(seconds[one.name])
                if one.name not in made or one.seconds:  # later processes load it from the cache
                    made[one.name] = one

        with Children(count, list(seconds), out, wheel=out is not None, environment=environment) as children:
            take(children)
        if left := [name for name in seconds if name not in made]:  # others compile them, or it is not possible
            with Children(1, left, out, wait=True, wheel=out is not None, environment=environment) as last:
                take(last)
            if failed := [name for name in left if name not in made]:
                raise BunrakuError(f"{failed[0]} could not be compiled: {last.complaint}")
    return [made[name] for name in sorted(made)]
