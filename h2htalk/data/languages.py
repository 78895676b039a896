"""The table of languages: one record a language. Code that treats languages differently asks the record.

A new language is one record here, and data files named by its code: prompts, guidelines, lexicons, stop words,
`text/contracts/patterns_CODE.toml`. A missing one is an error, never English.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import WithJsonSchema

from h2htalk.data.records import require
from h2htalk.errors import ConfigError

# What a contract limits the length of.
LengthLimit = Literal[
    "reply", "long_reply", "crisis_reply", "line", "paragraph", "memory", "activity"
]


@dataclass(frozen=True, slots=True)
class LanguageRecord:
    """What the package knows of a language."""

    name: str  # in English
    tokenizer: Literal[
        "13a", "jieba"
    ]  # whose tokens BLEU and ROUGE count (`text.tokens.TOKENIZERS`)
    unit: Literal["words", "characters"]  # what lengths are counted in
    script: str  # its letters, as messages name them
    joint: str  # what stands between words, and between sentences
    comma: str  # with the space that follows
    repeated_run: int  # so many units of a prompt in an answer are repeated, not chance
    lengths: Mapping[
        LengthLimit, int
    ]  # the most units of each kind of text (docs/reference/contracts.md)
    null_memory: str  # the line of RecollectionSynthesis that means "nothing to remember"
    memory_labels: tuple[
        str, str, str
    ]  # of a memory block's three lines: content, category, importance
    memory_categories: tuple[
        str, ...
    ]  # what `subtasks.MEMORY_CATEGORIES` are called, in the same order
    constant_reply: str  # the answer of the baseline `constant`
    gap_notes: tuple[
        str, str
    ]  # before a message that comes one day, and `{days}` days, after the one before
    word_length: float  # characters a word, about, with the space beside it
    reading_speed: int  # characters per minute read aloud (IReST; Trauzettel-Klosinski and Dietz, IOVS 53(9), 2012)
    plural_s: bool  # whether a final s marks a plural
    parser_components: (
        str  # the module that registers what its bundled spaCy pipelines need; "" for none
    )
    pair_rules: str  # `module:function` that finds verb-noun pairs in a parsed text
    name_recognizer: str  # the module that finds people, addresses and organisations
    number_rules: Literal[
        "en", "zh"
    ]  # whose rules of phone, identity and account numbers it shares

    @property
    def spaced(self) -> bool:
        """Whether spaces separate its words."""
        return self.joint == " "


def _lengths(*limits: int) -> dict[LengthLimit, int]:
    return dict(zip(get_args(LengthLimit), limits, strict=True))


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


RECORDS: dict[str, LanguageRecord] = {
    "en": LanguageRecord(
        name="English",
        tokenizer="13a",
        unit="words",
        script="Latin",
        joint=" ",
        comma=", ",
        repeated_run=8,
        lengths=_lengths(20, 40, 80, 35, 70, 14, 6),
        null_memory="No key information extracted.",
        memory_labels=("Memory Content", "Memory Category", "Memory Importance"),
        memory_categories=_names(
            "name, gender, age, location, birthday, zodiac sign, personality, MBTI, emotional state, "
            "occupation, sleep habits, health, mood, relationships, food, entertainment, travel, fandom, "
            "hobbies, love life, studies, work, virtual interaction, other events"
        ),
        constant_reply="I'm here with you, and I'd like to hear more. How are you feeling right now?",
        gap_notes=("[one day later]", "[{days} days later]"),
        word_length=5.5,
        reading_speed=987,
        plural_s=True,
        parser_components="",
        pair_rules="h2htalk.analysis.verb_nouns.english:english_pairs",
        name_recognizer="h2htalk.detect.personal.english.recognizer",
        number_rules="en",
    ),
    "zh": LanguageRecord(
        name="Chinese",
        tokenizer="jieba",
        unit="characters",
        script="Chinese",
        joint="",
        comma="，",
        repeated_run=16,
        lengths=_lengths(30, 60, 120, 50, 100, 20, 8),
        null_memory="未提取到关键信息。",
        memory_labels=("记忆内容", "记忆类别", "记忆重要性"),
        memory_categories=_names(
            "姓名, 性别, 年龄, 所在地, 生日, 星座, 性格, MBTI, 情绪状态, 职业, 睡眠习惯, 健康, 心情, 人际关系, "
            "饮食, 娱乐, 旅行, 追星, 爱好, 感情生活, 学习, 工作, 虚拟互动, 其他事件"
        ),
        constant_reply="我在这儿陪着你，想听你多说一些。你现在感觉怎么样？",
        gap_notes=("【一天后】", "【{days}天后】"),
        word_length=1.7,
        reading_speed=255,
        plural_s=False,
        parser_components="h2htalk.text.parsing.chinese_components",
        pair_rules="h2htalk.analysis.verb_nouns.chinese:chinese_pairs",
        name_recognizer="h2htalk.detect.personal.chinese.recognizer",
        number_rules="zh",
    ),
}
LANGUAGES: tuple[str, ...] = tuple(RECORDS)
# A key of RECORDS; records that are read from files accept no other.
_KNOWN = require(RECORDS.__contains__, f"no language {{}}; choose from {', '.join(RECORDS)}")
Language = Annotated[str, _KNOWN, WithJsonSchema({"enum": list(RECORDS)})]


def find_language(code: str) -> LanguageRecord:
    """Return the record of a language. Raises ConfigError for an unknown code."""
    if code not in RECORDS:
        raise ConfigError(f"no language {code!r}; choose from {', '.join(LANGUAGES)}")
    return RECORDS[code]
