"""Batch jobs of hosted models, which survive a restart: requests in, outcomes out. Read `batch_runner` first."""
