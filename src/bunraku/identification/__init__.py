"""Identification: inertial parameters, friction and rotor inertias of a mechanism from recorded motion and torque."""

from bunraku.identification.base_parameters import Identifiable
from bunraku.identification.excitation import exciting_motion
from bunraku.identification.identify import Identification, identify

__all__ = ["Identifiable", "Identification", "exciting_motion", "identify"]
