"""Models by name or file, for verbs that take a MODEL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bunraku.errors import ModelError

if TYPE_CHECKING:
    from bunraku.mechanism import Mechanism

HELP = """\
models:
  FILE              .urdf, .xacro, .xml (MJCF), .sdf or .bvh
  chain:N[:JOINT]   N links, joints revolute (default) or spherical
  human[:DOF]       a human figure, 16, 34 (default) or 48 degrees of freedom
  humanoid          a humanoid robot
  quadruped, hopping_leg, climber
                    small figures with motors
  mobile[:S:L:O]    S stages of chains of L bodies, O to a plateau
                    (default: 3:5:9)
  chain_held:N, four_bar, n_four_bar:N, bricard, slider_crank
                    linkages with closed loops"""

_NAMES = ("chain", "human", "humanoid", "mobile", "chain_held", "four_bar", "n_four_bar", "bricard", "slider_crank",
          "quadruped", "hopping_leg", "climber")


def find(text: str, base: str = "free", others: tuple[str, ...] = ()) -> Mechanism:
    """The mechanism that MODEL names; `others` are further valid names for the hint."""
    from bunraku import models

    name, *details = text.split(":")
    if name not in _NAMES:
        if re.search(r"\.(urdf|xacro|xml|sdf|bvh)$", text, re.IGNORECASE) or Path(text).exists():
            from bunraku.io import load

            return load(text, base=base)
        from bunraku.checks import hint

        scene = ", a scene" if others else ""
        raise ModelError(f"MODEL {text!r} is neither a file (.urdf, .xacro, .xml, .sdf, .bvh){scene} nor a model"
                         f"{hint(name, [*others, *_NAMES])}")
    numbers = [_whole(text, x) for x in details if not x.isalpha()]
    words = [x for x in details if x.isalpha()]
    if name == "mobile":
        s, l, o = numbers if len(numbers) == 3 else (3, 5, 9)
        if len(details) not in (0, 3) or words:
            raise ModelError(f"MODEL {text!r}: a mobile is mobile or mobile:S:L:O, as in mobile:3:5:9")
        return models.mobile(a=0.2, b=0.3, c=0.2, h=1.0, s=s, l=l, o=o, p=3.0, rho=2.0)  # [J, table III]
    most = {"chain": 1, "human": 1, "chain_held": 1, "n_four_bar": 1}.get(name, 0)
    if len(numbers) > most or (words and name != "chain") or len(words) > 1 or (name == "chain" and not numbers):
        raise ModelError(f"MODEL {text!r} is none of the forms of {name} that --help lists")
    return getattr(models, name)(*numbers, *words)


def recording(path: Path):
    """The motion in a file: a recording of bunraku, or motion capture (.bvh)."""
    from bunraku.simulation import load_trajectory

    if path.suffix.lower() == ".bvh":
        from bunraku.motion import Motion, load_motion

        motion = load_motion(path)
        assert isinstance(motion, Motion)
        return motion.trajectory()
    return load_trajectory(path)


def _whole(text, part) -> int:
    try:
        return int(part)
    except ValueError:
        raise ModelError(f"MODEL {text!r}: {part!r} is not a whole number") from None
