"""Wrong calls and the message each gets: `python tests/support/wrong_calls.py` writes docs/wrong-calls.md.

`tests/test_wrong_calls.py` makes every call and compares the page with what is raised.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import textwrap
import warnings
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "wrong-calls.md"

SETTING = '''
import numpy as np, numba, bunraku as bk

m = bk.Mechanism()
m.add_link("upper", "ground", bk.Revolute((0, 1, 0)), "shoulder", mass=1.0, com=(0, 0, -0.2),
           inertia=(0.02, 0.02, 0.01))
m.add_link("lower", "upper", bk.Revolute((0, 1, 0)), "elbow", position=(0, 0, -0.4), mass=1.0, com=(0, 0, -0.2),
           inertia=(0.02, 0.02, 0.01))
q, v, tau = np.array([0.3, 0.2]), np.zeros(2), np.zeros(2)
sim = bk.Simulation(m, q, v, solver="rk4", step=0.01)
bar = bk.models.four_bar()                                     # a linkage: a chain of links and the connection "pin"
ball = bk.Mechanism()
ball.add_link("ball", joint=bk.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
'''

FILES = {
    "empty.urdf": "",
    "box.urdf": "<robot name='r'><link name='a'/><link name='a'/></robot>",
    "arm.urdf": "<robot name='r'><joint name='j' type='hinge'><parent link='a'/><child link='b'/></joint>"
                "<link name='a'/><link name='b'/></robot>",
    "scene.xml": "<scene/>",
    "noise.npz": "not a trajectory",
    "arm.bvh": "HIERARCHY\nROOT arm\n{\n  OFFSET 0 0 0\n  CHANNELS 1 Zrotation\n  End Site\n  {\n    OFFSET 0 1 0\n"
               "  }\n}\nMOTION\nFrames: 2\nFrame Time: 0.01\n0.0\n5.0\n",
    "cut.bvh": "HIERARCHY\nROOT arm\n{\n  OFFSET 0 0 0\n  CHANNELS 1 Zrotation\n}\nMOTION\nFrames: 2\n"
               "Frame Time: 0.01\n0.0 1.0\n",
    "gap.trc": "PathFileType\t4\t(X/Y/Z)\tgap.trc\nDataRate\tNumFrames\tNumMarkers\tUnits\n100\t3\t1\tmm\n"
               "Frame#\tTime\tHEEL\n\t\tX1\tY1\tZ1\n1\t0.00\t1\t2\t3\n2\t0.01\t\t\t\n3\t0.02\t1\t2\t4\n",
    "walk.mot": "walk\nnRows=2\nnColumns=2\ninDegrees=yes\nendheader\ntime\tknee\n0\t1\n0.1\t2\n",
}

CALLS = {
    "Names": [
        'm.link("uper")',
        'm.link("shoulder")',
        'm.joint("wrist")',
        'm.link("ground")',
        'm.add_link("upper", mass=1.0)',
        'm.add_link("hand", "lowr", mass=1.0)',
        'm.add_link("hand", "elbow", mass=1.0)',
        'm.add_link("hand", "lower", joint_name="elbow", mass=1.0)',
        'm.add_link(3)',
        'm.connect("upper", "hand")',
        'm.cut("hand")',
        'bk.poses(m, q)["elbow"]',
        'bk.joint_forces(m, q, v)["lower"]',
        'bk.kinematics(m, q).jacobian("elbow")',
        'bk.coordinates(m, "wrist", q)',
        'bk.forward_dynamics(m, q, v, external={"elbow": np.zeros(6)})',
        'bk.forward_dynamics(m, q, v, prescribed={"wrist": 1.0})',
        'bar.link("pin")',
        'bar.q_slice("pin")',
    ],
    "Joints": [
        'bk.Revolute((0, 0, 0))',
        'bk.Revolute("y")',
        'bk.Revolute((0, 1, 0), upper=1.0, lower=2.0)',
        'bk.Revolute((0, 1, 0), damping=-1.0)',
        'bk.Revolute((0, 1, 0), fricton=1.0)',
        'bk.Revolute((0, 1, 0), friction=-1.0)',
        'bk.Revolute((0, 1, 0), hard_limits=True)',
        'bk.Revolute((0, 1, 0), upper=1.0, hard_limits=True, limit_stiffness=10.0)',
        'bk.Spherical(friction=1.0)',
        'bk.Revolute((0, 1, 0), upper=[1.0, 2.0])',
        'bk.Spherical(lower=-1.0)',
        'bk.Spherical(upper=-1.0)',
        'bk.Spherical(stiffness=[1.0, 2.0, 3.0])',
        'bk.Free(upper=1.0)',
        'bk.Fixed(damping=1.0)',
        'bk.Compound(bk.Spherical())',
        'bk.Helical((0, 0, 1), np.inf)',
        'm.add_link("hand", "lower", "revolute", mass=1.0)',
        'm.add_link("hand", "lower", bk.Revolute, mass=1.0)',
    ],
    "Links": [
        'm.add_link("hand", "lower", mass=-1.0)',
        'm.add_link("hand", "lower", mass="1 kg")',
        'm.add_link("hand", "lower", mass=1.0, inertia=(1.0, 1.0, 3.0))',
        'm.add_link("hand", "lower", mass=1.0, inertia=(1.0, 1.0, -0.1))',
        'm.add_link("hand", "lower", inertia=(1.0, 1.0, 1.0))',
        'm.add_link("hand", "lower", mass=1.0, inertia=1.0)',
        'm.add_link("hand", "lower", mass=1.0, com=(0, 0))',
        'm.add_link("hand", "lower", position=(0, 0, np.nan))',
        'm.add_link("hand", "lower", rotation=2 * np.eye(3))',
        'm.add_link("hand", "lower", rotation=(0, 0, 1.57))',
        'm.add_link("hand", "lower", bk.Revolute((0, 1, 0))); bk.forward_dynamics(m, np.zeros(3), np.zeros(3))',
        'm.add_spring("upper", "upper", stiffness=10.0)',
        'm.add_spring("upper", "lower", stiffness=-10.0)',
        'bk.forward_dynamics(bk.Mechanism(), [], [])',
        'bk.Mechanism(gravity=-9.81)',
    ],
    "Shapes and contacts": [
        'bk.Sphere(-0.1)',
        'bk.Capsule(0.1, -1.0)',
        'bk.Capsule(0.0, 1.0)',
        'bk.Box(1.0, -1.0, 1.0)',
        'bk.Box(0, 0, 0)',
        'bk.Points((0, 0, 1))',
        'bk.Points([(0, 0, np.nan)])',
        'm.add_shape("lower", bk.Sphere(0.1), friction=-0.5)',
        'm.add_shape("lower", bk.Sphere(0.1), restitution=1.5)',
        'm.add_shape("lower", bk.Sphere(0.1), restitution=-0.1)',
        'm.add_shape("lower", bk.Sphere(0.1), group=-1)',
        'm.add_shape("lowr", bk.Sphere(0.1))',
        'm.add_shape("elbow", bk.Sphere(0.1))',
        'm.add_shape("lower", "sphere")',
        'm.add_shape("lower", bk.Sphere(0.1), name="tip"); m.add_shape("upper", bk.Sphere(0.1), name="tip")',
        'm.add_plane("floor")',
        'm.add_plane(normal=(0, 0, 0))',
        'm.add_plane(friction=np.nan)',
        'm.exclude("upper", "hand")',
        'm.exclude("upper", "upper")',
        'm.with_shape("tip", friction=0.3)',
        'm.add_shape("lower", bk.Sphere(0.1)); m.with_shape("lower", mass=0.3)',
        'm.add_shape("lower", bk.Sphere(0.1)).friction = 0.3',
        'bk.Sphere(0.1).radius = 0.2',
        'm.shapes["tip"] = bk.Sphere(0.1)',
        'sim.mechanism.add_plane()',
        'bk.contacts(m, q)',
        'm.add_plane(); bk.contacts(m, q, margin=-1.0)',
        'm.add_plane(); bk.contacts(m, [0.1])',
        'ball.add_shape("ball", bk.Hull([(0, 0, 0), (1, 0, 0), (0, 1, 0)]))',
        'ball.add_shape("ground", bk.Heightfield([0.0, 1.0], (4, 4)))',
    ],
    "Values that are read-only": [
        'm.link("upper").mass = 3.0',
        'm.link("upper").com[2] = -0.3',
        'm.joint("elbow").upper = 2.0',
        'm.joint("elbow").axis[0] = 1.0',
        'm.gravity[2] = -1.62',
        'm.links.append(bar.links[0])',
        'm.links[0] = bar.links[0]',
        'del bar.connections["pin"]',
        'bar.connections["pin"].actuated = True',
        'm.with_link("upper", upper=2.0)',
        'm.with_link("upper", mas=2.0)',
        'm.with_joint("elbow", mass=2.0)',
        'm.with_joint("elbow", uper=2.0)',
        'sim.q[0] = 1.0',
        'sim.v += 1.0',
        'sim.q = q',
        'sim.t = 0.0',
        'sim.solver = "bdf"',
        'sim.actuation = lambda t, q, v: -q',
        'sim.mechanism = bar',
        'sim.mechanism.gravity = (0, 0, 0)',
        'sim.mechanism.add_link("hand", "lower", mass=1.0)',
        'sim.mechanism.cut("elbow")',
    ],
    "Arrays": [
        'bk.forward_dynamics(q, m, v)',
        'bk.forward_dynamics(sim, q, v)',
        'bk.forward_dynamics("robot.urdf", q, v)',
        'bk.mass_matrix(q, m)',
        'bk.forward_dynamics(m, [0.1], v)',
        'bk.forward_dynamics(m, q, v, np.zeros(3))',
        'bk.forward_dynamics(m, q, "fast")',
        'bk.forward_dynamics(m, q, 1j * v)',
        'bk.forward_dynamics(m, np.zeros((5, 2)), np.zeros((4, 2)))',
        'bk.forward_dynamics(m, [np.nan, 0.0], v)',
        'bk.forward_dynamics(m, q, v, [np.inf, 0.0])',
        'bk.forward_dynamics(ball, np.zeros(7), np.zeros(6))',
        'bk.forward_dynamics(ball, np.zeros(6), np.zeros(6))',
        'bk.project(m, [np.nan, 0.0])',
        'bk.forward_dynamics(bar, bar.neutral(), np.zeros(bar.nv), external={bar.link_names[0]: [np.nan] * 6})',
        'bk.forward_dynamics(m, q, v, external={"upper": (1.0, 0.0, 0.0)})',
        'bk.forward_dynamics(m, q, v, external=[1.0, 0.0, 0.0])',
        'bk.forward_dynamics(m, q, v, prescribed=("elbow", 1.0))',
        'bk.forward_dynamics(m, q, v, method="abba")',
        'bk.forward_dynamics(bar, bar.neutral(), np.zeros(bar.nv), method="aba")',
        'bk.mass_matrix(m, q, method="fast")',
        'bk.schedule(m, workers=0)',
        'bk.schedule(m, workers=2.5)',
        'bk.Schedule(m, cuts=["wrist"])',
        'bk.Schedule(m, cuts=["elbow", "elbow"])',
        'bk.Schedule(m, order=["elbow"])',
        'bk.Schedule(m, order=["shoulder", "elbow"]).predicted_time',
        'bk.schedule(m, workers=2, costs={"latancy": 0.0})',
        'bk.forward_dynamics(m, q, v, schedule=bk.schedule(bar, workers=2))',
        'bk.forward_dynamics(m, q, v, workers=0)',
        'bk.Simulation(m, workers=True)',
        'bk.Simulation(m, solver="bdf", workers=2)',
        'bk.Simulation(m, schedule=bk.schedule(bar, workers=2))',
        'bk.Simulation(m, schedule="fast")',
        'm.integrate(q, np.zeros(3))',
        'bk.closed_chain(m, q)',
    ],
    "Simulations": [
        'bk.Simulation(m, solver="geer")',
        'bk.Simulation(m, solver="rk4")',
        'bk.Simulation(m, step=0.01)',
        'bk.Simulation(m, solver="rk4", step=1e-320)',
        'bk.view.replay_html(m, "motion.html")',
        'bk.Simulation(m, rtol=-1e-6)',
        'bk.Simulation(m, np.zeros((5, 2)))',
        'bk.Simulation(m, [np.nan, 0.0])',
        'bk.Simulation(bar, bar.neutral() + 0.1)',
        'bk.Simulation(m, actuation="hold")',
        'bk.Simulation(m, params="stiff")',
        'sim.run(until=-1.0)',
        'sim.run(until="2 s")',
        'sim.set_state([0.1])',
        'bk.Simulation(m, external={"hand": np.zeros(6)})',
        'bk.Simulation(m, external={"lower": (0, 0, 9.81)})',
        'bk.Simulation(m, prescribed={"wrist": np.sin})',
        'bk.Simulation(m, prescribed={"elbow": 0.3})',
        'bk.Simulation(m, prescribed={"elbow": ([0, 1, 1], [0, 1, 2])})',
        'bk.Simulation(m, prescribed={"elbow": lambda t: (0, 1)}).run(1.0)',
        'bk.Simulation(m, record="last")',
        'bk.Simulation(m, reads="elbow")',
        'sim.pull("elbow", (0, 0, 0), (1, 0, 0))',
        'sim.pull("lower", (0, 0), (1, 0, 0))',
        'sim.release("lower")',
        'sim.push("hand", np.zeros(6))',
        'sim.set_state(q, [np.nan, 0.0])',
        'sim.impulse("elbow", (0, 0, 1.0))',
        'sim.impulse("ground", (0, 0, 1.0))',
        'sim.impulse("lower", 1.0)',
        'sim.connect("ground", "hand")',
        'sim.connect("ground", "lower", bk.Spherical(), position_a=(1, 0, 0), position_b=(0, 0, 0))',
        'sim.connect("ground", "lower", bk.Spherical(), max_gap=-1.0)',
        'sim.cut("hand")',
        'sim.when(bk.force_above("lower", 10.0), print)',
        'sim.when(bk.points_meet("elbow", "ground", 0.1), print)',
        'sim.when("t > 1", print)',
        'sim.when(lambda t, q, v: q[0], "stop")',
        'sim.when(lambda t, q, v: q[9], print); sim.run(until=1.0)',
        'bk.rollout(m, q, v)',
        'bk.rollout(m, np.zeros((3, 2)), np.zeros((4, 2)), until=1.0)',
        'sim.run(until=0.02).sample([5.0])',
    ],
    "Actuations": [
        'bk.Simulation(m, actuation=lambda t, q, v: None).run(until=1.0)',
        'bk.Simulation(m, actuation=lambda t, q, v: [1.0]).run(until=1.0)',
        'bk.Simulation(m, actuation=lambda t, q, v: "full").run(until=1.0)',
        'bk.Simulation(m, actuation=lambda t, q, v: [np.nan, 0.0]).run(until=1.0)',
        '''
        @bk.actuation
        def hold(t, q, v):
            return -q
        ''',
        '''
        @bk.actuation
        def hold(t, q, v, params, tau):
            return -10.0 * q
        bk.Simulation(m, q, actuation=hold).run(until=1.0)
        ''',
        '''
        @bk.actuation
        def hold(t, q, v, params, tau):
            tau[7] = -10.0 * q[0]
        bk.Simulation(m, q, actuation=hold).run(until=1.0)
        ''',
        '''
        @bk.actuation
        def hold(t, q, v, params, tau):
            tau[0] = -params[5] * q[0]
        bk.Simulation(m, q, actuation=hold, params=[10.0]).run(until=1.0)
        ''',
        '''
        @bk.actuation
        def hold(t, q, v, params, tau):
            q[0] = 0.0
        bk.Simulation(m, q, actuation=hold).run(until=1.0)
        ''',
    ],
    "Identification": [
        "bk.identify(m, np.zeros((50, 2)), np.zeros((50, 2)), np.zeros((50, 2)), np.zeros((50, 2)))",
        "bk.identify(m, np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 2)))",
        "bk.identify(m, np.ones((50, 2)), tau=np.ones((50, 2)))",
        "bk.identify(m, np.ones((50, 2)), np.ones((50, 2)), np.ones((50, 2)), np.full((50, 2), np.nan))",
        "bk.identify(m, np.ones((50, 2)), np.ones((50, 2)), np.ones((50, 2)), np.ones((50, 2)), fit='masses')",
        "bk.exciting_motion(bar)",
    ],
    "Models and files": [
        'bk.models.human(height=175)',
        'bk.models.human(mass=70000)',
        'bk.models.human(dof=35)',
        'bk.models.chain(0)',
        'bk.models.chain(3, joint="hinge")',
        'bk.models.four_bar((1.0, 1.0, 1.0))',
        'bk.load("robot.step")',
        'bk.load("missing.urdf")',
        'bk.load("empty.urdf")',
        'bk.load("box.urdf")',
        'bk.load("arm.urdf")',
        'bk.load("scene.xml")',
        'bk.load("arm.urdf", base="floating")',
        'bk.load("arm.urdf", unit="cm")',
        'bk.load("cut.bvh")',
        'bk.load("arm.bvh", strict=True)',
        'bk.load("arm.bvh", unit="yards")',
        'bk.load_motion("arm.bvh", m)',
        'bk.load_motion("arm.bvh").smooth(80.0)',
        'bk.load_motion("gap.trc").smooth(6.0)',
        'bk.load_motion("walk.mot", m)',
        'bk.load_motion("walk.mot").plates()',
        'bk.load_motion("walk.fbx")',
        'bk.load_trajectory("missing")',
        'bk.load_trajectory("noise.npz")',
        'bk.convert.to(m, "matlab")',
        'bk.solve_ivp(lambda t, y: -y, (0, 1), [1.0], method="rk99")',
        'bk.solve_ivp(lambda t, y: [1.0, 2.0], (0, 1), [1.0])',
        'bk.solve_ivp(lambda t, y: -y, (0, 1, 2), [1.0])',
    ],
}


def code_of(call: str) -> str:
    return textwrap.dedent(call).strip()


def made(call: str) -> BaseException | None:
    """What the call raises, in the setting of the page."""
    names: dict = {}
    with _folder(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(SETTING, names)
        try:
            exec(compile(code_of(call), "call.py", "exec"), names)
        except Exception as error:
            return error
    return None


def message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def page(raised=None) -> str:
    """The page in docs; `raised` has the error of each call, if they were made already."""
    count = sum(map(len, CALLS.values()))
    raised = iter(raised or [made(call) for calls in CALLS.values() for call in calls])
    lines = [f"# {count} wrong calls", "",
             "What each call below raises: the class of the error (each is a `bk.BunrakuError`), then its message.",
             "Written by `python tests/support/wrong_calls.py`; a test makes every call and compares.", "",
             "All calls are made after this:", "", "```python", SETTING.strip(), "```"]
    for title, calls in CALLS.items():
        lines += ["", f"## {title}"]
        for call in calls:
            lines += ["", "```python", code_of(call), "```", "", *_quoted(next(raised))]
    return "\n".join(lines) + "\n"


def _quoted(error) -> list[str]:
    if error is None:
        return ["> nothing"]
    first, *rest = message(error).splitlines()
    kind, _, text = first.partition(": ")
    return [f"> **{kind}**: {text}", *(f"> {line}" for line in rest)]


@contextlib.contextmanager
def _folder():
    """An empty folder but for the files of the page, as the working directory."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in FILES.items():
            Path(name).write_text(text)
        try:
            yield
        finally:
            os.chdir(before)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
