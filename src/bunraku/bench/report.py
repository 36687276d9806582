"""The result of the benchmark as a page of text."""

from __future__ import annotations

from bunraku.bench import machine

WIDE = 34
SHOWN = ("pin.aba", "mj_forward", "pin.rnea", "pin.crba", "pin.compute..Derivatives")


def text(result: dict, colour: bool = False) -> str:
    """Tables of times and ratios, then every target with what was measured."""
    paint = painter(colour)
    lines = _head(result, paint)
    for model in result["models"].values():
        lines += ["", *_model(model, paint)]
    if result["scaling"]:
        lines += ["", *_scaling(result["scaling"], paint)]
    lines += ["", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)


def painter(colour: bool):
    """A function (code, words) that adds a colour to words, if wanted."""
    return _paint if colour else lambda code, words: words


def _paint(code, words):
    return f"\033[{code}m{words}\033[0m"


def _head(result, paint):
    on = result["machine"]
    versions = on["versions"]
    return [
        paint("1", f"bunraku {result['bunraku']} beside Pinocchio {versions.get('pin', '?')} and MuJoCo "
                   f"{versions.get('mujoco', '?')}"),
        f"{machine.line(on)}; NumPy {versions['numpy']}",
        f"one core does {result['peak_gflops']:.1f} GFLOP/s at best (measured)",
    ]


def _model(model, paint):
    agreement = model["agreement"]
    lines = [
        paint("1", model["title"]) + f"  {model['bodies']} bodies, {model['dof']} degrees of freedom, "
        f"{model['flops']} operations per forward dynamics",
        "agrees with " + ", ".join(f"{name} to {agreement[name]:.0e}" for name in SHOWN if name in agreement)
        + " (relative)",
    ]
    if model["refused_by_mujoco"]:
        lines.append(f"without MuJoCo, which refuses it: {model['refused_by_mujoco']}")
    for title, rows in model["races"].items():
        first = rows[0]["label"]
        forward = "speedup_world" in rows[-1]
        extra = f"{'x WORLD':>9}{'GFLOP/s':>9}{'of peak':>9}" if forward else ""
        heading = f"  {title:<{WIDE}}{'best us':>9}{'median':>9}{'  x ' + first:>12}{extra}"
        lines += ["", paint("4", heading)]
        lines += [_row(row, forward, paint) for row in rows]
    return lines


def _row(row, forward, paint):
    line = f"  {row['label']:<{WIDE}}{row['best_us']:9.3f}{row['median_us']:9.3f}"
    line += ratio(row.get("speedup"), 12)
    if forward:
        line += ratio(row.get("speedup_world"), 9)
        if "gflops" in row:
            line += f"{row['gflops']:9.1f}{row['share_of_peak']:9.0%}"
    if "target" in row:
        line += f"  {verdict(row['met'], paint)}"
    return line


def ratio(value, width):
    return " " * width if value is None else f"{value:{width}.2f}"


def verdict(met, paint):
    return paint("1;32", "PASS") if met else paint("1;31", "MISS")


def _scaling(scaling, paint):
    lines = [paint("1", "chains") + "  revolute joints, axes in turn; one state inside compiled code", "",
             paint("4", f"  {'links':>10}{'ms':>12}{'ns per link':>14}{'work bytes per link':>22}"
                        f"{'returned tau':>15}{'nearly straight':>17}")]
    lines += [f"  {c['links']:>10}{c['ms']:12.4f}{c['ns_per_link']:14.1f}{c['bytes_per_link']:22.0f}"
              + (f"{c['returned']:15.0e}{c['returned_straight']:17.0e}" if c["returned"] is not None else "")
              for c in scaling["chains"]]
    lines += ["", "  returned tau: inverse dynamics of forward dynamics, largest difference over the largest torque.",
              f"  10000 links: inverse dynamics returns tau within {scaling['residual']:.0e} at the worst joint "
              "(torques of random accelerations).",
              f"  Random torques of 10 N m return within {scaling['residual_small']:.0e} of the largest; rounding the "
              f"accelerations alone makes {scaling['residual_rounding']:.0e}."]
    return lines


def target_lines(targets, paint):
    lines = [paint("1", f"{sum(t['met'] for t in targets)} of {len(targets)} targets met"), ""]
    wide = max([48, *(len(t["what"]) + 2 for t in targets)])
    for t in targets:
        bound = ("at least " if t["unit"].startswith("x") else "at most ") + f"{t['target']:g}"
        measured = f"{t['measured']:.3g}" if t["measured"] < 1e-3 else f"{t['measured']:.2f}"
        lines.append(f"  {verdict(t['met'], paint)}  {t['what']:<{wide}}{measured:>9} {t['unit']:<10}  ({bound})")
    return lines
