"""The one table of subtasks: Table 1's eleven (paper, sections 3.1 and 3.2).

Adding a subtask is a record here and a template `benchmark/prompts/LANGUAGE/NAME.j2` for each language.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, WithJsonSchema

from h2htalk.data.languages import RECORDS, LengthLimit
from h2htalk.data.records import read_record
from h2htalk.errors import quoted, suggest

Dimension = Literal["dialogue", "recollection", "itinerary"]
# What an input field holds: conversation turns, short texts, a schedule, or one text.
FieldKind = Literal["turns", "texts", "schedule", "text"]
Form = Literal["speech", "line", "paragraph", "memories", "day", "sub_schedule"]


@dataclass(frozen=True, slots=True)
class Contract:
    """Rules of one subtask's answer (docs/reference/contracts.md), checked by `text.contracts`; None sets no limit."""

    form: Form  # `speech` is said to the user (actions in parentheses are not counted), the others are written
    sentences: tuple[int, int] | None = None  # fewest, most
    length: LengthLimit | None = None  # the limit in `LanguageRecord.lengths`
    one_action: bool = False
    first_person: bool = False
    third_person: bool = False  # timetables (`day`, `sub_schedule`) require it by their form
    nameless: bool = False


@dataclass(frozen=True, slots=True)
class Subtask:
    """A subtask, and what the rest of the package must know of it."""

    name: str  # starts with its dimension
    column: str  # its heading in Table 2
    count: int  # Table 1's number of scenarios, which weighs the subtask in the overall score
    inputs: tuple[tuple[str, FieldKind], ...]  # the fields of `inputs` and what each holds
    max_tokens: int  # the reply budget a model gets
    contract: Contract
    # The level of an itinerary subtask that a judge scores (section 4.1).
    level: Literal["I", "II", "III"] | None = None

    @property
    def title(self) -> str:
        """The paper's name: `DialogueBase`."""
        return self.name.title().replace("_", "")

    @property
    def dimension(self) -> Dimension:
        """The first word of the name."""
        return cast(Dimension, self.name.partition("_")[0])

    @property
    def is_chat(self) -> bool:
        """Whether the scenario's turns are the conversation itself, and no material to work on."""
        return self.dimension == "dialogue"

    @property
    def has_null_line(self) -> bool:
        """Whether an answer may be the language's line for "nothing to remember"."""
        return self.contract.form == "memories"


_REPLY = Contract("speech", (1, 2), "reply", one_action=True, nameless=True)
_LONG_REPLY = Contract("speech", (1, 3), "long_reply", one_action=True, nameless=True)
_BASIC = Contract("paragraph", length="paragraph", third_person=True)
_RESPONSE = Contract("speech", (1, 1), first_person=True)
_SUB_SCHEDULE = Contract("sub_schedule")
_OPENING = Contract("speech", (1, 3), first_person=True, nameless=True)
_PARAGRAPH = Contract("paragraph", nameless=True)
_LINE = Contract("line", length="line", first_person=True)
_HISTORY: tuple[str, FieldKind] = ("history", "turns")
_MEMORIES: tuple[str, FieldKind] = ("memories", "texts")
_ITINERARY: tuple[str, FieldKind] = ("itinerary", "schedule")
_ACTIVITY: tuple[str, FieldKind] = ("current_activity", "text")
_ROWS = (  # in the column order of Table 2
    Subtask("dialogue_base", "Standard", 1882, (_HISTORY,), 96, _REPLY),
    Subtask("dialogue_emotion", "Emotional", 99, (_HISTORY,), 192, _LONG_REPLY),
    Subtask(
        "dialogue_schedule",
        "Schedule",
        533,
        (("today_schedule", "schedule"), _ACTIVITY, _HISTORY),
        96,
        _REPLY,
    ),
    Subtask("itinerary_basic", "Basic", 207, (("hobbies", "texts"), _MEMORIES), 192, _BASIC, "I"),
    Subtask(
        "itinerary_middle", "Middle", 444, (("day_overview", "text"),), 128, Contract("day"), "II"
    ),
    Subtask(
        "itinerary_advanced",
        "Advanced",
        143,
        (_ITINERARY, ("arrangement", "text")),
        384,
        _SUB_SCHEDULE,
        "III",
    ),
    Subtask(
        "itinerary_response", "Response", 163, (_ACTIVITY, ("user_message", "text")), 96, _RESPONSE
    ),
    Subtask("itinerary_initialization", "Initiation", 76, (_ITINERARY, _MEMORIES), 128, _OPENING),
    Subtask("recollection_synthesis", "Synthesis", 412, (_HISTORY,), 192, Contract("memories")),
    Subtask("recollection_refinement", "Refinement", 589, (_MEMORIES,), 128, _LINE),
    Subtask("recollection_initialization", "Initialization", 102, (_MEMORIES,), 128, _PARAGRAPH),
)
SUBTASKS: dict[str, Subtask] = {subtask.name: subtask for subtask in _ROWS}
DIMENSIONS: tuple[Dimension, ...] = ("dialogue", "itinerary", "recollection")
TOTAL_COUNT = sum(s.count for s in SUBTASKS.values())  # 4,650
# The figures of a language that have a task of their own on the Hub's benchmark tab.
FIGURES = ("overall", *DIMENSIONS, *SUBTASKS)

# The 24 memory categories; a language's own names for them stand in its record, in the same order.
MEMORY_CATEGORIES = RECORDS["en"].memory_categories

# Importance of a memory: how long it is worth keeping.
MEMORY_IMPORTANCE = {0: "a week", 1: "three months", 2: "long-term"}


def _known(name: str) -> str:
    if name not in SUBTASKS:
        raise ValueError(
            f"unknown subtask {quoted(name)}; {suggest(name, SUBTASKS)}choose from {', '.join(SUBTASKS)}"
        )
    return name


SubtaskName = Annotated[str, AfterValidator(_known), WithJsonSchema({"enum": list(SUBTASKS)})]


def find_subtask(name: str, where: str = "subtask") -> Subtask:
    """Return the subtask of that name, else raise a DataError that lists all."""
    return SUBTASKS[read_record(SubtaskName, name, where, coerce=True)]


def task_id(figure: str, language: str) -> str:
    """The id of a figure's task on the Hub's benchmark tab: `overall`, of Chinese items `overall_zh`."""
    return figure if language == next(iter(RECORDS)) else f"{figure}_{language}"


def in_table_order(names: Iterable[str]) -> list[str]:
    """Sort subtask names in Table 2's column order."""
    return sorted(set(names), key=list(SUBTASKS).index)
