"""Recorded motion: while a simulation runs, and as a trajectory afterwards."""
