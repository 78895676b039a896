"""Builds, votes on, publishes and scores benchmarks for emotional-companion models."""

__version__ = "0.1.0"
