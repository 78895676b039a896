"""Measure what a split consists of and draw it; read `analyze` first. It reads splits and nothing else."""
