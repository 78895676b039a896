"""Whether a judge measures at all: replies whose order is known, judged.

In: a model that judges, and the records in `sets/`. Out: a folder of stored replies, and figures with intervals. Read
`probe` first, then `probe_figures`.
"""
