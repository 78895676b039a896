"""What the entry point of the group `inspect_ai` names: Inspect finds tasks, solvers, scorers and metrics here."""

from h2htalk.integrations.inspect.scorers import case_figures, companion, overall, points
from h2htalk.integrations.inspect.tasks import arcs, high_risk, instructions, look_alike, mini, reply, scripted_user

__all__ = [
    "arcs", "case_figures", "companion", "high_risk", "instructions", "look_alike", "mini", "overall", "points",
    "reply", "scripted_user",
]  # fmt: skip
