"""The benchmark in Inspect AI: tasks and scorers (`inspect eval h2htalk/mini`), and its logs as runs and from runs."""
