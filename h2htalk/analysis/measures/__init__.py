"""Measure a split's texts: lengths, words, diversity, coverage, and the differences of two splits.

In: scenarios or their texts (`scenario_texts`). Out: records of numbers, one module a measure. Read `lengths` first.
"""
