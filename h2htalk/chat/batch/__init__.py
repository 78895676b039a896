"""Answer requests through the providers' batch jobs, which survive a restart; read `batch_runner` first."""
