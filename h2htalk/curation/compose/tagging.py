"""What a scenario is about, where metadata do not say: weak rules over words, for tags and for where to cut."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.data.languages import Language
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, RISKS, Tags
from h2htalk.errors import DataError
from h2htalk.text.counting import count_length

# What a message without a word of feeling is tagged.
NEUTRAL = "neutral"
# Feelings that ask for no more than an ordinary reply.
QUIET = frozenset(
    {
        NEUTRAL,
        "calm",
        "contentment",
        "boredom",
        "curiosity",
        "amusement",
        "interest",
        "nostalgia",
        "tenderness",
    }
)
_EMOTION = re.compile(r"[a-z][a-z_]{0,31}")
# Nobody writes more by hand; of a longer message the start and the end are read.
_READ = 4000
# A shorter message (`ok thanks`) shows no feeling, whatever its dialogue is said to be about.
_LEAST: Mapping[Language, int] = {"en": 6, "zh": 8}
_RECALL: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:you|do you|still) remember\b|\blast time\b|\btold you\b|\byou said\b", re.IGNORECASE
    ),
    "zh": re.compile("还?记得吗|你还?记得|还记不记得|上次跟你|上次说|跟你说过|跟你讲过|和你说过|之前说的"),
}
# A greeting, thanks or a goodbye and hardly anything else: whatever answers it, it is a poor scenario.
_PLEASANTRY: Mapping[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:hi|hello|hey|thanks?|thank you|thx|bye|goodbye|good ?night|take care|see you|talk (?:again|later)|"
        r"that's (?:all|it)|you too|have a (?:good|great|nice))\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        "你好|您好|在吗|谢谢|感谢|多谢|再见|拜拜|晚安|下次再聊|改天再聊|明天再聊|先到这里|不客气"
    ),
}
_BRIEF: Mapping[Language, int] = {"en": 20, "zh": 24}
# Exchanges of a history from which it is not `basic`, and from which it is `advanced` when feelings are mixed.
_INTERMEDIATE, _ADVANCED = 3, 5


def read_emotion(said: object) -> str | None:
    """An emotion as tags write it: one lower-case word (`sadness`, `self_pity`); None where it is none."""
    if not isinstance(said, str):
        return None
    word = re.sub(r"[\s-]+", "_", said.strip()[:64].lower())
    return word if _EMOTION.fullmatch(word) else None


def feelings(text: str, language: Language) -> Mapping[str, int]:
    """Emotion -> how often the message names it, most often first, then in the list's order. Linear in its text."""
    text = text if len(text) <= _READ else f"{text[: _READ // 2]}\n{text[-_READ // 2 :]}"
    found: Counter[str] = Counter()
    names = _names(language)
    for match in _pattern(language).finditer(text.replace("’", "'").lower()):
        found[names[match[0]]] += 1
    order = list(dict.fromkeys(names.values()))
    return dict(sorted(found.items(), key=lambda item: (-item[1], order.index(item[0]))))


def strength(dialogue: Dialogue, at: int) -> int:
    """How emotional a user's message is: 0 not at all, 1 by its dialogue's metadata alone, more by its own words."""
    text, language = dialogue.messages[at].content, dialogue.language
    named = sum(count for emotion, count in feelings(text, language).items() if emotion not in QUIET)
    if named:
        return 1 + named
    emotion = read_emotion(dialogue.metadata.get("emotion"))
    told = emotion is not None and emotion not in QUIET
    return int(told and count_length(text[:_READ], language) >= _LEAST[language])


def is_pleasantry(text: str, language: Language) -> bool:
    """Whether a user's message is a greeting, thanks or a goodbye, or says too little to be answered with care."""
    length = count_length(text[:_READ], language)
    if length < _LEAST[language] // 2:
        return True
    return length <= _BRIEF[language] and _PLEASANTRY[language].search(text) is not None


def tags_of(dialogue: Dialogue, turns: Sequence[Turn], proposed: Mapping[str, object] | None = None) -> Tags:
    """The tags of a scenario: of each the dialogue's metadata, else what a model proposed, else the rules.

    Args:
        dialogue: with `metadata.emotion`, `complexity`, `interaction` and `safety.risk` where they are known.
        turns: what the rules read: the history, or the whole dialogue.
        proposed: `emotion`, `complexity`, `interaction` as a model named them.

    Raises:
        DataError: the model's emotion is no word, and no metadata stand in for it.
    """
    known = dialogue.metadata
    said = [turn.content for turn in turns if turn.role == "user"]
    found = [feelings(text, dialogue.language) for text in said]
    last = next((next(iter(named)) for named in reversed(found) if named), NEUTRAL)
    if (emotion := read_emotion(known.get("emotion"))) is None:
        emotion = last if proposed is None else read_emotion(proposed.get("emotion"))
    if emotion is None:
        raise DataError(f"{dialogue.id}: a proposed emotion is no word")
    named = proposed or {}
    complexity = _choice((known.get("complexity"), named.get("complexity")), COMPLEXITIES)
    interaction = _choice((known.get("interaction"), named.get("interaction")), INTERACTIONS)
    record = {
        "emotion": emotion,
        "complexity": complexity or _complexity(len(said), len({name for n in found for name in n})),
        "interaction": interaction or _interaction(said, dialogue.language, emotion),
        "risk": risk_of(dialogue),
    }
    return Tags.from_dict(record, dialogue.id)


def risk_of(dialogue: Dialogue) -> str:
    """What the safety stage said of the dialogue: `none`, `elevated` or `high`; `none` where it did not look."""
    safety = dialogue.metadata.get("safety")
    risk = safety.get("risk") if isinstance(safety, Mapping) else None
    return risk if risk in RISKS else "none"


def _choice(named: Sequence[object], allowed: Sequence[str]) -> str | None:
    return next((word for word in named if isinstance(word, str) and word in allowed), None)


def _complexity(exchanges: int, emotions: int) -> str:
    if exchanges >= _ADVANCED and emotions > 1:
        return "advanced"
    return "intermediate" if exchanges >= _INTERMEDIATE or emotions > 1 else "basic"


def _interaction(said: Sequence[str], language: Language, emotion: str) -> str:
    if said and _RECALL[language].search(said[-1][:_READ]):
        return "memory"
    return "casual" if emotion in QUIET else "emotional_support"


@cache
def _names(language: Language) -> Mapping[str, str]:
    """Word -> emotion, in the file's order."""
    path = files("h2htalk.curation.compose") / "emotions.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))[language]
    return {word: emotion for emotion, words in table.items() for word in words}


@cache
def _pattern(language: Language) -> re.Pattern[str]:
    # Longest first: `so excited` is not found as `excited`.
    words = "|".join(map(re.escape, sorted(_names(language), key=lambda word: (-len(word), word))))
    if language == "zh":
        return re.compile(f"(?<![不没别未])(?:{words})")
    return re.compile(rf"(?<!\bnot )(?<!n't )(?<!\bnever )\b(?:{words})\b")
