"""`eval.yaml`: the release as a benchmark of the Hub, with one leaderboard a task.

A task has one number and nothing that says which: overall, three dimensions, eleven subtasks, higher is better.
"""

from __future__ import annotations

from typing import Any

from h2htalk.curation.release.croissant import GAP
from h2htalk.curation.release.settings import CardSettings
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.releases.benchmark_tasks import FIGURES, task_id
from h2htalk.data.releases.release_folder import TEST, Manifest
from h2htalk.text.escaping import printable

LEADERBOARD = "eval.yaml"
FRAMEWORK = "h2htalk"


def leaderboard(manifest: Manifest, card: CardSettings) -> dict[str, Any]:
    """The content of `eval.yaml`: 15 tasks for each language that has a split `test`."""
    return {
        "name": printable(card.title or manifest.name),
        "description": printable(manifest.description or GAP),
        "evaluation_framework": FRAMEWORK,
        "tasks": [
            {"id": task_id(figure, language), "config": language, "split": TEST}
            for language in LANGUAGES
            if TEST in manifest.configs.get(language, {})
            for figure in FIGURES
        ],
    }
