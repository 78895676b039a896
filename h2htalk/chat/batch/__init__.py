"""Answer requests through the providers' batch jobs, which survive a restart.

In: requests and a wire format. Out: an outcome for each, and a journal of the jobs in the run folder. Read
`batch_runner` first, then `job_journal`.
"""
