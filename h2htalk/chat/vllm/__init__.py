"""Answer requests with vLLM on this machine's GPUs or CPU, through a server of its own.

In: requests. Out: a reply or a failure for each. Read `engine` first; `supervisor` ends vLLM's processes when this one
ends.
"""
