"""Find failure signatures in the answers of a run, by rules.

In: an answer, and what the companion knew when it gave it (`known.Known`). Out: whether the answer shows memory
collapse, planning fragmentation or a missed hint; the rates of a run. Read `failure_rates` first.
"""
