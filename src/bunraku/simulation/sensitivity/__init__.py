"""Sensitivities of whole simulations, across events."""

from bunraku.simulation.sensitivity.whole_run import EventSensitivity, Sensitivities, sensitivities

__all__ = ["EventSensitivity", "Sensitivities", "sensitivities"]
