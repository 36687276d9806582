"""What Python calls of the compiled algorithms: one state, or a batch over lanes and threads."""
