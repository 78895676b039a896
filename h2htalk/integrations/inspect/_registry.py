"""What the entry point of the group `inspect_ai` names: Inspect finds tasks, solvers, scorers and metrics here."""

from h2htalk.integrations.inspect import scorers, tasks

__all__ = ["scorers", "tasks"]
