"""The tasks of a release on the Hub's benchmark tab (`eval.yaml`): fifteen a language, of one figure each."""

from __future__ import annotations

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS

FIGURES = ("overall", *DIMENSIONS, *SUBTASKS)


def task_id(figure: str, language: Language) -> str:
    """The id of a figure's task: `overall` of the English items, `overall_zh` of the Chinese ones."""
    return figure if language == LANGUAGES[0] else f"{figure}_{language}"
