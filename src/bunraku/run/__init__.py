"""Executors: one state, lanes of states, threads over lanes. The only place that knows of workers."""
