"""The result of the benchmark of structures as a page of text."""

from __future__ import annotations

from bunraku.bench import machine
from bunraku.bench.report import WIDE, painter, ratio, target_lines, verdict


def text(result: dict, colour: bool = False) -> str:
    """Tables of times and ratios, then every target with what was measured."""
    paint = painter(colour)
    on = result["machine"]
    versions = on["versions"]
    lines = [
        paint("1", f"bunraku {result['bunraku']} beside Pinocchio {versions.get('pin', '?')}: structures with loops"),
        machine.line(on),
    ]
    for robot in result["robots"]:
        lines += ["", *_robot(robot, paint)]
    for s in result["schedules"]:
        heading = f"  {s['name'] + ', one call':<{WIDE}}{'best us':>9}{'median':>9}"
        lines += ["", paint("4", heading)]
        lines += [f"  {row['label']:<{WIDE}}{row['best_us']:9.2f}{row['median_us']:9.2f}" for row in s["rows"]]
        lines.append(f"  all agree to {s['difference']:.0e} (relative)")
    lines += ["", paint("4", f"  {'human 48, structure changes':<{WIDE}}{'best us':>9}{'median':>9}")]
    lines += [f"  {c['name']:<{WIDE}}{c['best_us']:9.1f}{c['median_us']:9.1f}" for c in result["changes"]]
    for title, key in (("chain of hinges with two long loops", "two_loops"), ("n four-bars", "four_bars")):
        scaling = result["scaling"][key]
        lines += ["", paint("1", title) + f"  exponent {scaling['exponent']:.3f}; one state in compiled code", "",
                  paint("4", f"  {'links':>10}{'constraints':>13}{'ms':>12}{'us per link':>14}{'bytes per link':>17}"
                        f"{'impulse again':>16}")]
        lines += [f"  {r['links']:>10}{r['constraints']:>13}{r['ms']:12.4f}{r['us_per_link']:14.3f}"
                  f"{r['bytes_per_link']:17.0f}{r['again']:15.0%}" for r in scaling["rows"]]
    lines += ["", "  impulse again: time of an impulse by the factors at hand, as a part of one by new factors",
              "", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)


def _robot(robot, paint):
    agreement = robot["agreement"]
    heading = f"  {'forward dynamics':<{WIDE}}{'best us':>9}{'median':>9}{'x pin':>9}"
    lines = [
        paint("1", robot["robot"]) + f"  {robot['dof']} degrees of freedom, {robot['held']} limb"
        f"{'s' * (robot['held'] > 1)} held to the ground: {robot['constraints']} constraints",
        f"agrees with pin.constraintDynamics to {agreement['pin.constraintDynamics']:.0e}, iterated to "
        f"{agreement['thorough']:.0e} (relative); batch with single to {agreement['batch']:.0e}",
        f"what limbs held still accelerate: ours {agreement['residual']:.0e}, pin {agreement['residual_pin']:.0e}, "
        f"iterated {agreement['residual_thorough']:.0e} (m/s^2, rad/s^2)",
        "", paint("4", heading),
    ]
    for row in robot["rows"]:
        line = f"  {row['label']:<{WIDE}}{row['best_us']:9.3f}{row['median_us']:9.3f}{ratio(row.get('speedup'), 9)}"
        lines.append(line + (f"  {verdict(row['met'], paint)}" if "target" in row else ""))
    return lines
