"""Recordings: motion in MCAP files, appended while a simulation runs. Needs mcap: pip install "bunraku[record]"."""

from bunraku.record.layout import FORMAT, is_recording
from bunraku.record.writing import Recording

__all__ = ["FORMAT", "Recording", "is_recording"]
