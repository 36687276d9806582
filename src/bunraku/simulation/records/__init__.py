"""Recorded motion, while a simulation runs and afterwards.

writes    tape.py            `Tape`: the record of a simulation; `Extent`: how much of it is kept
holds     pages.py           `Block` and `Reel`: recorded steps, here or with the workers that made them
shows     trajectory.py      `Trajectory`, `Segment`, `Event`; interpolation.py: states between the steps
derives   recorded_forces.py contact forces of a motion; data_frame.py: tables, CSV, even times
stores    storage.py         arrays and a header in one file, checked and replaced atomically
"""
