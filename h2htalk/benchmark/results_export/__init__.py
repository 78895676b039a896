"""Results for others: entries for a model's page, records of Every Eval Ever, and a bundle that can be verified.

In: a scored run. Out: files. Read `export` first.
"""
