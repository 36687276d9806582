"""The bridge between people and machine: a mechanism as flat arrays."""
