"""Commands for other harnesses: integrations."""

from __future__ import annotations

from pathlib import Path

from h2htalk import integrations as package
from h2htalk.cli.options import say


def integrations_lm_eval() -> None:
    """Print the folder of the tasks of lm-evaluation-harness, for its --include_path."""
    say(str(Path(package.__file__).parent / "lm_eval"))
