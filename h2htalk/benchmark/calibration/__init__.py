"""Judges beside people: a judged run and labels in; agreement and corrected means out. Read `calibrate`, `labels`."""
