"""Answer requests with vLLM on this machine's GPUs or CPU.

In: requests. Out: a reply or a failure for each. Read `engine` first, then `startup`; `watchdog` ends vLLM's processes
when this one is killed.
"""
