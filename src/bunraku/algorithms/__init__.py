"""Algorithms on flat arrays, one per file, generic in the scalar. Nothing here knows names, files or workers."""
