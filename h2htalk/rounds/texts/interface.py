"""The words that annotators read: questions, choices, steps of a rating, names of passages, the interface.

`texts/LANGUAGE.toml` holds them. A name of ours without a word there is a mistake of this package.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from h2htalk.data.languages import Language


def question_title(name: str, language: Language) -> str:
    """A question as a person understands it; raises KeyError for one that no round asks."""
    return str(_question(name, language)["title"])


def question_help(name: str, language: Language) -> str:
    """When to choose what, in one or two sentences; raises KeyError for a question that no round asks."""
    return str(_question(name, language)["help"])


def label_text(question: str, label: str, language: Language) -> str:
    """What an annotator sees for a stored label.

    An adjudication (`label`) settles any question: it knows the labels of all, and of others shows the label itself.

    Raises:
        KeyError: no round asks this question, or it has no such label.
    """
    found = _label(question, label, language)
    return label if found is None else str(found["name"])


def label_help(question: str, label: str, language: Language) -> str:
    """One line that tells a label from its neighbours, empty where its name says all; raises as `label_text`."""
    found = _label(question, label, language)
    return "" if found is None else str(found.get("help", ""))


def rating_text(question: str, rating: int, language: Language) -> str:
    """A step of a rating with its anchor: "1: very poor"; raises KeyError where the question has no such step."""
    anchor = _question(question, language)["ratings"][str(rating)]
    return f"{rating}: {anchor}" if language == "en" else f"{rating}：{anchor}"


def passage_title(name: str, language: Language) -> str:
    """The heading over a passage of an item (`memories`); a name that the benchmark does not know, itself."""
    return str(_texts(language)["passages"].get(name, name))


def word(name: str, language: Language, **values: object) -> str:
    """A word or line of the interface, its `{places}` filled with `values`.

    Raises:
        KeyError: no such word, or a place of it has no value.
    """
    return str(_texts(language)["words"][name]).format(**values)


def _label(question: str, label: str, language: Language) -> Mapping[str, Any] | None:
    """A label's words; None for one of an adjudication that no other question has."""
    own: Mapping[str, Mapping[str, Any]] = _question(question, language).get("labels", {})
    if question != "label":
        return own[label]
    # Plain words for yes and no come first: there they answer whatever stands above the item.
    return own.get(label) or _texts(language)["questions"]["subtask"]["labels"].get(label)


def _question(name: str, language: Language) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _texts(language)["questions"][name]
    return found


@cache
def _texts(language: Language) -> Mapping[str, Any]:
    path = files("h2htalk.rounds") / "texts" / f"{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
