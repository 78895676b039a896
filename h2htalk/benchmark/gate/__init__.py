"""A gate for CI: is a run worse than a reference run, or beyond a limit?

In: two evaluations, or two studies, and a policy. Out: a verdict for each criterion, as text, Markdown and JUnit XML.
Read `gate` first, then `gated_run` (the policy, and what is read).
"""
