"""Experiments of the papers, repeated: published results beside ours."""
