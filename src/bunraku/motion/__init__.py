"""Recorded motion: figures, markers, force plates and tables from files; smoothing, joint moments, tracking."""

from bunraku.motion.joint_moments import JointMoments
from bunraku.motion.markers import Markers
from bunraku.motion.motion import Motion
from bunraku.motion.motion_files import load_motion
from bunraku.motion.motion_table import MotionTable
from bunraku.motion.plates import ForcePlate

__all__ = ["ForcePlate", "JointMoments", "Markers", "Motion", "MotionTable", "load_motion"]
