"""The eleven subtasks of Table 1: counts, inputs, dimension and mode (paper, sections 3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from h2htalk.errors import DataError, quoted

Dimension = Literal["dialogue", "recollection", "itinerary"]
Mode = Literal["empathetic interaction", "personality development"]
# What an input field holds: conversation turns, short texts, timed plans, or one text.
FieldKind = Literal["turns", "texts", "plans", "text"]


@dataclass(frozen=True, slots=True)
class Subtask:
    """One of the eleven subtasks.

    `count` is Table 1's number of scenarios and weighs the subtask in the overall score; `column` is its
    heading in Table 2; `inputs` names the fields of a scenario's `inputs` and what each holds;
    `level` is I, II or III for the itinerary subtasks that a judge scores (section 4.1), else None;
    `max_tokens` is the reply budget a model gets.
    """

    name: str
    title: str
    column: str
    dimension: Dimension
    count: int
    inputs: tuple[tuple[str, FieldKind], ...]
    max_tokens: int
    level: Literal["I", "II", "III"] | None = None

    @property
    def mode(self) -> Mode:
        """Section 3.1's two modes: dialogue is interaction, the other two build the companion."""
        return "empathetic interaction" if self.dimension == "dialogue" else "personality development"

    @property
    def is_chat(self) -> bool:
        """Whether the scenario's turns are the conversation itself (not material to work on)."""
        return self.dimension == "dialogue"


# In the column order of Table 2.
SUBTASKS: dict[str, Subtask] = {
    s.name: s
    for s in (
        Subtask("dialogue_base", "DialogueBase", "Standard", "dialogue", 1882, (("history", "turns"),), 96),
        Subtask(
            "dialogue_emotion", "DialogueEmotion", "Emotional", "dialogue", 99, (("history", "turns"),), 192
        ),
        Subtask(
            "dialogue_schedule",
            "DialogueSchedule",
            "Schedule",
            "dialogue",
            533,
            (("today_schedule", "plans"), ("current_activity", "text"), ("history", "turns")),
            96,
        ),
        Subtask(
            "itinerary_basic",
            "ItineraryBasic",
            "Basic",
            "itinerary",
            207,
            (("hobbies", "texts"), ("memories", "texts")),
            192,
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
            "II",
        ),
        Subtask(
            "itinerary_advanced",
            "ItineraryAdvanced",
            "Advanced",
            "itinerary",
            143,
            (("itinerary", "plans"), ("arrangement", "text")),
            384,
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
        ),
        Subtask(
            "itinerary_initialization",
            "ItineraryInitialization",
            "Initiation",
            "itinerary",
            76,
            (("itinerary", "plans"), ("memories", "texts")),
            128,
        ),
        Subtask(
            "recollection_synthesis",
            "RecollectionSynthesis",
            "Synthesis",
            "recollection",
            412,
            (("history", "turns"),),
            192,
        ),
        Subtask(
            "recollection_refinement",
            "RecollectionRefinement",
            "Refinement",
            "recollection",
            589,
            (("memories", "texts"),),
            128,
        ),
        Subtask(
            "recollection_initialization",
            "RecollectionInitialization",
            "Initialization",
            "recollection",
            102,
            (("memories", "texts"),),
            128,
        ),
    )
}

DIMENSIONS: tuple[Dimension, ...] = ("dialogue", "itinerary", "recollection")
TOTAL_COUNT = sum(s.count for s in SUBTASKS.values())  # 4,650

# RecollectionSynthesis: the fixed line that means "nothing to remember" (the null class).
NULL_MEMORY = {"en": "No key information extracted.", "zh": "未提取到关键信息。"}

# The 24 memory categories, English name -> Chinese name.
MEMORY_CATEGORIES: dict[str, str] = {
    "name": "姓名",
    "gender": "性别",
    "age": "年龄",
    "location": "所在地",
    "birthday": "生日",
    "zodiac sign": "星座",
    "personality": "性格",
    "MBTI": "MBTI",
    "emotional state": "情绪状态",
    "occupation": "职业",
    "sleep habits": "睡眠习惯",
    "health": "健康",
    "mood": "心情",
    "relationships": "人际关系",
    "food": "饮食",
    "entertainment": "娱乐",
    "travel": "旅行",
    "fandom": "追星",
    "hobbies": "爱好",
    "love life": "感情生活",
    "studies": "学习",
    "work": "工作",
    "virtual interaction": "虚拟互动",
    "other events": "其他事件",
}

# The categories as prompts name them.
MEMORY_CATEGORY_NAMES = {"en": tuple(MEMORY_CATEGORIES), "zh": tuple(MEMORY_CATEGORIES.values())}

# Labels of a memory block's three lines, in order: content, category, importance.
MEMORY_LABELS = {
    "en": ("Memory Content", "Memory Category", "Memory Importance"),
    "zh": ("记忆内容", "记忆类别", "记忆重要性"),
}

# Importance of a memory: how long it is worth keeping.
MEMORY_IMPORTANCE = {0: "a week", 1: "three months", 2: "long-term"}


def find_subtask(name: str, where: str = "subtask") -> Subtask:
    """The subtask of that name, else a DataError that lists the eleven."""
    try:
        return SUBTASKS[name]
    except (KeyError, TypeError):
        raise DataError(
            f"{where}: unknown subtask {quoted(name)}; choose from {', '.join(SUBTASKS)}"
        ) from None


def in_table_order(names: Iterable[str]) -> list[str]:
    """Those subtasks, in Table 2's column order."""
    chosen = set(names)
    return [name for name in SUBTASKS if name in chosen]
