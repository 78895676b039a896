"""Answer requests through the providers' batch jobs, which survive a restart.

In: requests and a wire format. Out: an outcome for each; the jobs are lines of the call store. Read `batch_runner`
first.
"""
