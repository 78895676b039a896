"""Measure a split: lengths, words, diversity, coverage, differences of two splits."""
