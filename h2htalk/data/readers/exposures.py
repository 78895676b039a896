"""What a model quoted from a dialogue that tells who its user is to people who know them, as a workspace keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from h2htalk.data.records import Text, adapter, strict_record
from h2htalk.errors import counted

# What a detail is about, in the order in which reports name the kinds.
DetailKind = Literal["age", "work", "employer", "place", "family", "illness", "event", "known_for"]
DETAIL_KINDS: tuple[DetailKind, ...] = get_args(DetailKind)
# How many people a detail alone would fit.
Fits = Literal["few", "some", "many"]
# From so many different details on a dialogue is exposed. One that fits many people counts for none.
LEAST_DETAILS = 3


@strict_record
class ExposedDetail:
    """A detail by which somebody who knows the user of a dialogue could recognise them.

    Attributes:
        kind: what it is about.
        quote: the user's words, which stand in the dialogue.
        tells: what they tell, in the model's words.
        fits: how many people the detail alone would fit.
    """

    kind: DetailKind
    quote: str
    tells: str = ""
    fits: Fits = "some"


@strict_record
class Exposure:
    """What a model that was asked about a dialogue quoted from it.

    Attributes:
        reader: `risk:MODEL`.
        date: the day of its answer (ISO 8601).
        passages: the hashes of the user's messages that it read, sorted.
        details: the different details, without those that fit many people.
        misquoted: quotes that stand in no message of the user, which count for nothing.
        unread: how many of the user's messages have no valid answer.
        prompt: the fingerprint of the question.
        served_by: a digest of what served the model.
    """

    reader: Text
    date: Text
    passages: tuple[str, ...]
    details: tuple[ExposedDetail, ...] = ()
    misquoted: Annotated[int, Field(ge=0)] = 0
    unread: Annotated[int, Field(ge=0)] = 0
    prompt: str = ""
    served_by: str = ""

    @property
    def is_exposed(self) -> bool:
        """Whether it quotes so many details that somebody may be recognised."""
        return len(self.details) >= LEAST_DETAILS

    def to_dict(self) -> dict[str, Any]:
        """The record without empty fields."""
        return adapter(Exposure).dump_python(self, mode="json", exclude_defaults=True)  # type: ignore[no-any-return]


def kinds_of(details: Iterable[ExposedDetail]) -> tuple[DetailKind, ...]:
    """The kinds of details, each once."""
    present = {detail.kind for detail in details}
    return tuple(kind for kind in DETAIL_KINDS if kind in present)


def details_text(details: Sequence[ExposedDetail]) -> str:
    """`4 details: work, place`; `no detail`."""
    if not details:
        return "no detail"
    return f"{counted(len(details), 'detail')}: {', '.join(kinds_of(details))}"
