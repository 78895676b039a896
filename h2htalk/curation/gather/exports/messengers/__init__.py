"""Exports of programs in which people write to each other."""
