"""Recorded motion: figures, markers, force plates and tables from files; smoothing, joint moments, tracking."""

from bunraku.motion.dynamics import JointMoments
from bunraku.motion.files import load_motion
from bunraku.motion.markers import Markers
from bunraku.motion.motion import Motion
from bunraku.motion.plates import ForcePlate
from bunraku.motion.table import MotionTable

__all__ = ["ForcePlate", "JointMoments", "Markers", "Motion", "MotionTable", "load_motion"]
