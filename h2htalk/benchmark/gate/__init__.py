"""A gate for CI: runs and a policy in, a verdict a criterion out (Markdown, JUnit XML). Read `gate`, `gated_run`."""
