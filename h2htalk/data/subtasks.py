"""The one table of subtasks: Table 1's eleven (paper, sections 3.1 and 3.2).

Adding a subtask is a record here and a template `benchmark/prompts/LANGUAGE/NAME.j2` for each language.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from h2htalk.data.languages import RECORDS, LengthLimit
from h2htalk.errors import DataError, quoted, suggest

Dimension = Literal["dialogue", "recollection", "itinerary"]
Mode = Literal["empathetic interaction", "personality development"]
# What an input field holds: conversation turns, short texts, a schedule, or one text.
FieldKind = Literal["turns", "texts", "schedule", "text"]


Form = Literal["speech", "line", "paragraph", "memories", "day", "sub_schedule"]


@dataclass(frozen=True, slots=True)
class Contract:
    """The rules of one subtask's answer (docs/contracts.md), which `text.contracts` checks.

    `form`: `speech` is said to the user (actions in parentheses are removed and not counted); the others are
    written material. `sentences` is (fewest, most); `length` names the limit in `LanguageRecord.lengths`; None sets
    no limit. Timetables (`day`, `sub_schedule`) require the third person by their form.
    """

    form: Form
    sentences: tuple[int, int] | None = None
    length: LengthLimit | None = None
    one_action: bool = False
    first_person: bool = False
    third_person: bool = False
    nameless: bool = False


@dataclass(frozen=True, slots=True)
class Subtask:
    """A subtask, and what the rest of the package must know of it.

    `count` is Table 1's number of scenarios and weighs the subtask in the overall score; `column` is its
    heading in Table 2; `inputs` names the fields of a scenario's `inputs` and what each holds;
    `level` is I, II or III for the itinerary subtasks that a judge scores (section 4.1), else None;
    `max_tokens` is the reply budget a model gets; `contract` is what code can check about its answer.
    """

    name: str
    title: str
    column: str
    dimension: Dimension
    count: int
    inputs: tuple[tuple[str, FieldKind], ...]
    max_tokens: int
    contract: Contract
    level: Literal["I", "II", "III"] | None = None

    @property
    def mode(self) -> Mode:
        """Section 3.1's two modes: dialogue is interaction, the other two build the companion."""
        return "empathetic interaction" if self.dimension == "dialogue" else "personality development"

    @property
    def is_chat(self) -> bool:
        """Whether the scenario's turns are the conversation itself, not material to work on."""
        return self.dimension == "dialogue"

    @property
    def has_null_line(self) -> bool:
        """Whether an answer may be the language's line for "nothing to remember"."""
        return self.contract.form == "memories"


# In the column order of Table 2.
SUBTASKS: dict[str, Subtask] = {
    s.name: s
    for s in (
        Subtask(
            "dialogue_base",
            "DialogueBase",
            "Standard",
            "dialogue",
            1882,
            (("history", "turns"),),
            96,
            Contract("speech", (1, 2), "reply", one_action=True, nameless=True),
        ),
        Subtask(
            "dialogue_emotion",
            "DialogueEmotion",
            "Emotional",
            "dialogue",
            99,
            (("history", "turns"),),
            192,
            Contract("speech", (1, 3), "long_reply", one_action=True, nameless=True),
        ),
        Subtask(
            "dialogue_schedule",
            "DialogueSchedule",
            "Schedule",
            "dialogue",
            533,
            (("today_schedule", "schedule"), ("current_activity", "text"), ("history", "turns")),
            96,
            Contract("speech", (1, 2), "reply", one_action=True, nameless=True),
        ),
        Subtask(
            "itinerary_basic",
            "ItineraryBasic",
            "Basic",
            "itinerary",
            207,
            (("hobbies", "texts"), ("memories", "texts")),
            192,
            Contract("paragraph", length="paragraph", third_person=True),
            "I",
        ),
        Subtask(
            "itinerary_middle",
            "ItineraryMiddle",
            "Middle",
            "itinerary",
            444,
            (("day_overview", "text"),),
            128,
            Contract("day"),
            "II",
        ),
        Subtask(
            "itinerary_advanced",
            "ItineraryAdvanced",
            "Advanced",
            "itinerary",
            143,
            (("itinerary", "schedule"), ("arrangement", "text")),
            384,
            Contract("sub_schedule"),
            "III",
        ),
        Subtask(
            "itinerary_response",
            "ItineraryResponse",
            "Response",
            "itinerary",
            163,
            (("current_activity", "text"), ("user_message", "text")),
            96,
            Contract("speech", (1, 1), first_person=True),
        ),
        Subtask(
            "itinerary_initialization",
            "ItineraryInitialization",
            "Initiation",
            "itinerary",
            76,
            (("itinerary", "schedule"), ("memories", "texts")),
            128,
            Contract("speech", (1, 3), first_person=True, nameless=True),
        ),
        Subtask(
            "recollection_synthesis",
            "RecollectionSynthesis",
            "Synthesis",
            "recollection",
            412,
            (("history", "turns"),),
            192,
            Contract("memories"),
        ),
        Subtask(
            "recollection_refinement",
            "RecollectionRefinement",
            "Refinement",
            "recollection",
            589,
            (("memories", "texts"),),
            128,
            Contract("line", length="line", first_person=True),
        ),
        Subtask(
            "recollection_initialization",
            "RecollectionInitialization",
            "Initialization",
            "recollection",
            102,
            (("memories", "texts"),),
            128,
            Contract("paragraph", nameless=True),
        ),
    )
}

DIMENSIONS: tuple[Dimension, ...] = ("dialogue", "itinerary", "recollection")
TOTAL_COUNT = sum(s.count for s in SUBTASKS.values())  # 4,650
# Of a language, each with a task of its own on the Hub's benchmark tab.
FIGURES = ("overall", *DIMENSIONS, *SUBTASKS)

# The 24 memory categories; a language's own names for them stand in its record, in the same order.
MEMORY_CATEGORIES = RECORDS["en"].memory_categories

# Importance of a memory: how long it is worth keeping.
MEMORY_IMPORTANCE = {0: "a week", 1: "three months", 2: "long-term"}


def find_subtask(name: str, where: str = "subtask") -> Subtask:
    """Return the subtask of that name, else raise a DataError that lists all."""
    try:
        return SUBTASKS[name]
    except (KeyError, TypeError):
        raise DataError(
            f"{where}: unknown subtask {quoted(name)}; {suggest(name, SUBTASKS)}choose from {', '.join(SUBTASKS)}"
        ) from None


def task_id(figure: str, language: str) -> str:
    """The id of a figure's task on the Hub's benchmark tab: `overall`, of Chinese items `overall_zh`."""
    return figure if language == next(iter(RECORDS)) else f"{figure}_{language}"


def in_table_order(names: Iterable[str]) -> list[str]:
    """Sort subtask names in Table 2's column order."""
    chosen = set(names)
    return [name for name in SUBTASKS if name in chosen]
