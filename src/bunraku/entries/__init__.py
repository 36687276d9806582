"""Entry points from Python to the compiled algorithms: one state, or a batch over lanes and threads."""
