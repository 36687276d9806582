"""[J, fig. 8]: a family of mobiles whose depth grows with the logarithm of the number of joints.

Its parameters are not in the paper's text: `mobiles.py` says which are taken here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bunraku.reproduce.mobiles import LARGE, SMALL, family
from bunraku.reproduce.page import two_plots
from bunraku.reproduce.speedups import Progress, logarithm, nothing


@dataclass(frozen=True)
class Options:
    """How much to compute."""

    most: int = LARGE.joints

    @classmethod
    def quick(cls):
        return cls(most=SMALL.joints)


def pieces(options: Options) -> int:
    """How often `run` says what begins."""
    return 1


def run(options: Options | None = None, progress: Progress = nothing) -> dict:
    """The family, with the sizes of the mechanisms as they are built."""
    options = options or Options()
    progress("mobiles")
    rows = []
    for shape in family(options.most):
        m = shape.build()
        depth = np.zeros(len(m.links), int)
        for k, link in enumerate(m.links):
            depth[k] = 1 + (depth[link.parent] if link.parent >= 0 else 0)
        rows.append({**shape._asdict(), "joints": m.nv, "depth": int(depth.max()),
                     "paper": {SMALL: "fig. 10, small", LARGE: "fig. 10, large"}.get(shape, "")})
    return {"rows": rows, "fit": logarithm([row["joints"] for row in rows], [row["depth"] for row in rows])}


def text(result: dict) -> str:
    """The family as a page."""
    fit = result["fit"]
    lines = ["Mobiles whose depth grows with the logarithm of the number of joints [J, fig. 8]",
             "The paper shows its parameters in a picture only; these are ours, near a logarithm through the two",
             "mobiles of its fig. 10.", "",
             f"  {'stages s':>9}{'bodies l':>9}{'chains o':>9}{'joints':>9}{'depth':>7}{'joints/depth':>14}"]
    lines += [f"  {row['s']:>9}{row['l']:>9}{row['o']:>9}{row['joints']:>9}{row['depth']:>7}"
              f"{row['joints'] / row['depth']:14.1f}   {row['paper']}" for row in result["rows"]]
    lines += ["", f"  depth = {fit['a']:.2f} + {fit['b']:.2f} ln(joints), within {fit['off']:.1%} of the largest; "
              f"a straight line: {fit['off_linear']:.0%}",
              "  The paper on fig. 10: joints/depth about 30 and about 200."]
    return "\n".join(line.rstrip() for line in lines)


def picture(result: dict, path: Path, drawing) -> Path:
    """Depth over joints, on a linear and on a logarithmic axis. `drawing`: Matplotlib's figure and canvas."""
    page, plots = two_plots(drawing, 4.0, sharey=True)
    joints, depth = ([row[key] for row in result["rows"]] for key in ("joints", "depth"))
    x = np.geomspace(min(joints), max(joints), 200)
    for axes, scale in zip(plots, ("linear", "log"), strict=True):
        axes.plot(x, result["fit"]["a"] + result["fit"]["b"] * np.log(x), color="#8a94a0",
                  label=f"{result['fit']['a']:.2f} + {result['fit']['b']:.2f} ln(joints)")
        axes.plot(joints, depth, "o", color="#2f7f86", label="mobiles")
        axes.set(xscale=scale, xlabel="joints")
        axes.grid(True, linewidth=0.3)
        axes.legend(fontsize=8)
    for k, row in enumerate(reversed(result["rows"])):
        plots[1].annotate(f"{row['s']},{row['l']},{row['o']}", (row["joints"], row["depth"]), fontsize=7,
                          textcoords="offset points", xytext=(-28, 6) if k % 2 else (4, -10))
    plots[0].set_ylabel("depth")
    plots[1].set_title("labels: s, l, o", fontsize="medium")
    page.savefig(path)
    return path
