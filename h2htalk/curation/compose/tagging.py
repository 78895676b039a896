"""Tag scenarios: emotion, complexity, interaction and risk, by weak rules over words where metadata do not say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from h2htalk.data.languages import Language
from h2htalk.data.records import read_record
from h2htalk.data.scenario import Dialogue, Tags, Turn
from h2htalk.errors import DataError
from h2htalk.text.counting import count_length, split_actions
from h2htalk.text.language_data import language_data, language_patterns

WORDS = "curation/compose/words"
NEUTRAL = "neutral"  # the emotion of a message without any
# Emotions that require no more than an ordinary reply.
QUIET = frozenset(
    f"{NEUTRAL} calm contentment boredom curiosity amusement interest nostalgia tenderness".split()
)
# Emotions without distress: strong, but no reason for support.
_GLAD = frozenset(("joy", "excitement", "pride", "gratitude", "relief", "love", "hope"))
_EMOTION = re.compile(r"[a-z][a-z_]{0,31}")
_READ = 4000  # characters of a message that are read: its start and its end
# Exchanges from which a history is `intermediate`, and `advanced` when emotions are mixed.
_INTERMEDIATE, _ADVANCED = 3, 5


@cache
def _emotions(language: Language) -> tuple[Mapping[str, str], re.Pattern[str]]:
    """The emotion of each word, and a pattern for all words."""
    raw = language_data(WORDS, language)
    emotions = {word: emotion for emotion, words in raw["emotions"].items() for word in words}
    # Longest first: `so excited` is not matched as `excited`.
    words = "|".join(map(re.escape, sorted(emotions, key=lambda word: (-len(word), word))))
    return emotions, re.compile(raw["match"].replace("WORDS", words))


def read_emotion(value: object) -> str | None:
    """An emotion as one lower-case word (`sadness`, `self_pity`); None where the value is none."""
    word = re.sub(r"[\s-]+", "_", value.strip()[:64].lower()) if isinstance(value, str) else ""
    return word if _EMOTION.fullmatch(word) else None


def count_emotions(text: str, language: Language) -> Mapping[str, int]:
    """Emotion -> how often the message names it, most often first, then in the order of the list."""
    text = text if len(text) <= _READ else f"{text[: _READ // 2]}\n{text[-_READ // 2 :]}"
    emotions, pattern = _emotions(language)
    counts = Counter(
        emotions[match[0]] for match in pattern.finditer(text.replace("’", "'").lower())
    )
    order = list(dict.fromkeys(emotions.values()))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], order.index(item[0]))))


def strength(dialogue: Dialogue, at: int) -> int:
    """How emotional a user's message is: 0 not at all, 1 by its dialogue's metadata alone, more by its own words."""
    text = dialogue.messages[at].content
    language = dialogue.language
    named = sum(
        count for emotion, count in count_emotions(text, language).items() if emotion not in QUIET
    )
    if named:
        return 1 + named
    emotion = read_emotion(dialogue.metadata.get("emotion"))
    emotional = emotion is not None and emotion not in QUIET
    return int(
        emotional
        and count_length(text[:_READ], language) >= language_data(WORDS, language)["least"]
    )


def is_pleasantry(text: str, language: Language) -> bool:
    """Whether a user's message is a greeting, thanks or a goodbye, or nearly empty."""
    length = count_length(text[:_READ], language)
    words = language_data(WORDS, language)
    said = language_patterns(WORDS, language)["pleasantry"].search(text) is not None
    return bool(length < words["least"] // 2 or (said and length <= words["brief"]))


def is_substantial(dialogue: Dialogue, at: int) -> bool:
    """Whether a user's message and its reply say enough, and the reply tells of no human life of the companion's."""
    language = dialogue.language
    if is_pleasantry(dialogue.messages[at].content, language) or tells_of_itself(dialogue, at + 1):
        return False
    texts = (split_actions(turn.content[:_READ])[0] for turn in dialogue.messages[at : at + 2])
    return all(
        count_length(text, language) >= language_data(WORDS, language)["content"] for text in texts
    )


def tells_of_itself(dialogue: Dialogue, at: int) -> bool:
    """Whether a message of the companion's tells of a human life or a profession of its own, by weak rules."""
    text = dialogue.messages[at].content[:_READ].replace("’", "'")
    return language_patterns(WORDS, dialogue.language)["disclosure"].search(text) is not None


def tags_of(
    dialogue: Dialogue, turns: Sequence[Turn], proposed: Mapping[str, object] | None = None
) -> Tags:
    """The tags of a scenario: each from the dialogue's metadata, else from a model's proposal, else by the rules.

    `turns`: for the rules: the history, or the whole dialogue. `proposed`: `emotion`, `complexity`, `interaction` of a
    model's proposal. Raises DataError where its emotion is not a word, and the metadata have none.
    """
    known = dialogue.metadata
    model = proposed or {}
    patterns = language_patterns(WORDS, dialogue.language)
    texts = [turn.content for turn in turns if turn.role == "user"]
    counts = [count_emotions(text, dialogue.language) for text in texts]
    if (emotion := read_emotion(known.get("emotion"))) is None:
        last = next((next(iter(named)) for named in reversed(counts) if named), NEUTRAL)
        emotion = last if proposed is None else read_emotion(proposed.get("emotion"))
    if emotion is None:
        raise DataError(f"{dialogue.id}: the proposed emotion is not a word")
    mixed = len({name for named in counts for name in named}) > 1
    complexity = "intermediate" if len(texts) >= _INTERMEDIATE or mixed else "basic"
    complexity = "advanced" if len(texts) >= _ADVANCED and mixed else complexity
    end = texts[-1][:_READ] if texts else ""
    if patterns["recall"].search(end):
        interaction = "memory"
    elif patterns["support"].search(end) or emotion not in QUIET | _GLAD:
        interaction = "emotional_support"
    else:
        interaction = "casual"
    record = {
        "emotion": emotion,
        "complexity": known.get("complexity") or model.get("complexity") or complexity,
        "interaction": known.get("interaction") or model.get("interaction") or interaction,
        "risk": str(known.get("safety", {}).get("risk", "none")),  # `none` without the safety stage
    }
    return read_record(Tags, record, dialogue.id)
