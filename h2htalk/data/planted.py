"""Wordings of known truth: what planted replies are composed of (docs/reference/studies.md).

A place is a turn of a bundled case with one point that a judge answers. Its authors, others than those of the
references, wrote wordings of which the point's statement is true, wordings of which it is false, and passages about
other matters that may stand beside either. No reply stands here: `benchmark/planted/composition.py` composes it.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import cache
from typing import Annotated

from pydantic import Field

from h2htalk.data.case import Name
from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.records import Id, Open, Text, read_record, strict_record
from h2htalk.data.splits import BUNDLED_FOLDER

PLANTED_FOLDER = BUNDLED_FOLDER.parent / "planted"
LEAST_WORDINGS = 2  # of each truth
LEAST_FILLER = 6  # passages
# What a statement about questions says: no question may stand beside its wordings that their authors did not write.
# And one about danger or help: no help line.
_ABOUT_HELP = re.compile(
    r"help|line\b|danger|safe|police|treat|doctor|ring\b|call|advi[cs]e|weapon|hurt|ill\b|illness|harm|\bonly\b|stop"
    r"|end|number|owes|exam|tells?\b|热线|电话|帮|医|安全|自杀|真人|危险|求助|介绍|只|号码|催|叫|做的|能做|劝|哄|赶"
)
_ABOUT_QUESTIONS = re.compile(r"\bask|question|问")


@strict_record
class PlantedPlace:
    """The wordings for one point of one turn.

    `statement` is the point's text as the authors read it: where a case has another text by now, the truth of the
    wordings is not known, and the place is not used.
    """

    id: Id  # CASE/PLACE/POINT
    language: Language
    case: Name
    place: Name
    point: Name
    statement: Text
    true_wordings: Annotated[tuple[Text, ...], Field(min_length=LEAST_WORDINGS)]
    false_wordings: Annotated[tuple[Text, ...], Field(min_length=LEAST_WORDINGS)]
    filler: Annotated[tuple[Text, ...], Field(min_length=LEAST_FILLER)]
    licence: Text = "CC-BY-4.0"
    provenance: Open = field(default_factory=dict)


@cache
def load_planted(split: str) -> tuple[PlantedPlace, ...]:
    """Load the places of a bundled split in every language; none where nobody wrote any."""
    places: list[PlantedPlace] = []
    for language in LANGUAGES:
        path = PLANTED_FOLDER / f"{split}-{language}.jsonl"
        lines = read_jsonl(path) if path.exists() else ()
        for where, record in lines:
            places.append(read_record(PlantedPlace, record, where))
    return tuple(places)


@strict_record
class Aside:
    """A sentence about the hour, the weather or a room, or one about a help line, `{number}`."""

    text: Text
    help_line: bool = False


@cache
def load_asides(language: Language) -> tuple[Aside, ...]:
    """Load the asides of a language."""
    lines = read_jsonl(PLANTED_FOLDER / f"asides-{language}.jsonl")
    return tuple(read_record(Aside, record, where) for where, record in lines)


def asides_of(planted: PlantedPlace) -> tuple[str, ...]:
    """The asides that change nothing about a place's statement."""
    asides = load_asides(planted.language)
    if _ABOUT_HELP.search(planted.statement):
        asides = tuple(aside for aside in asides if not aside.help_line)
    if _ABOUT_QUESTIONS.search(planted.statement):
        asides = tuple(aside for aside in asides if not aside.text.endswith(("?", "？")))
    return tuple(aside.text for aside in asides)
