"""H2HTalk as tasks of lm-evaluation-harness: the folder for its `--include_path` (`h2htalk integrations lm-eval`)."""
