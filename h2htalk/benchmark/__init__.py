"""Evaluate a model on a split: a specification in, a run folder and its `Summary` out. Read `evaluate`, `score_run`."""
