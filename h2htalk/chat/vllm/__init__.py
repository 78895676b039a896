"""Answer requests with vLLM on this machine's GPUs or CPU, through a server of its own.

In: requests. Out: a reply or a failure for each. Read `engine` first; `server` starts vLLM, `supervisor` ends its
processes when this one ends.
"""
