"""Memory collapse: a reply that loops, repeats an earlier one, or behaves as if history and memories did not exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from content_words import content_words
from known import Known, phrases
from rapidfuzz.distance import Indel

from h2htalk.data.languages import Language, find_language
from h2htalk.text.counting import language_units

_SENTENCE = re.compile(r"[^.!?。！？…~～;；\n]+")
_LAUGHTER = re.compile(r"([哈呵嘿嘻啊呜嗯])\1+")
# Shorter sentences are formulas (good night, sleep well), which anybody may say twice.
SHORTEST = {"words": 5, "characters": 8}
SAME = 0.8  # sentences are nearly equal where four of five words stand in both in the same order
LOOP = 0.2  # of the runs of three words, the share that occurred before: one in five
# Other content words than history and memories have, and none of theirs: fewer are common in short replies of comfort.
UNRELATED = 8
UNRELATED_TO_MEMORIES = 4  # of an answer that is to begin from the memories alone


def memory_collapse(reply: str, known: Known, language: Language) -> bool:
    """Whether a reply loops, repeats an earlier reply of the companion, or ignores history and memories."""
    sentences = _sentences(reply, language)
    if _loops(reply, sentences, language):
        return True
    said = phrases(language)
    if not said["asks_again"].search(known.last_message):
        turns = [turn.content for turn in known.history if turn.role == "companion"]
        if any(_repeats(sentences, _sentences(turn, language)) for turn in turns):
            return True
    return _ignores(reply, known, language)


def _sentences(text: str, language: Language) -> list[list[str]]:
    """The sentences of a text as words or characters, those that are long enough to be told from formulas."""
    shortest = SHORTEST[find_language(language).unit]
    found = (language_units(one, language) for one in _SENTENCE.findall(_LAUGHTER.sub(r"\1", text.lower())))
    return [sentence for sentence in found if len(sentence) >= shortest]


def _loops(reply: str, sentences: Sequence[Sequence[str]], language: Language) -> bool:
    """Whether a sentence is said twice, or a fifth of the runs of three words (six characters) occurred before."""
    if any(_near(one, sentences[:number]) for number, one in enumerate(sentences)):
        return True
    length = 3 if find_language(language).unit == "words" else 6
    units = language_units(_LAUGHTER.sub(r"\1", reply.lower()), language)
    runs = [tuple(units[at : at + length]) for at in range(len(units) - length + 1)]
    return len(runs) > length and 1 - len(set(runs)) / len(runs) >= LOOP


def _repeats(sentences: Sequence[Sequence[str]], earlier: Sequence[Sequence[str]]) -> bool:
    """Whether at least half of a reply is said in sentences that nearly equal those of one earlier turn."""
    repeated = sum(len(one) for one in sentences if _near(one, earlier))
    return 0 < sum(map(len, sentences)) <= 2 * repeated


def _near(sentence: Sequence[str], others: Iterable[Sequence[str]]) -> bool:
    return any(Indel.normalized_similarity(sentence, other) >= SAME for other in others)


def _ignores(reply: str, known: Known, language: Language) -> bool:
    """Whether a reply denies what was, asks what was told, or has no content word of history and memories."""
    said = phrases(language)
    texts = [turn.content for turn in known.history] + list(known.memories)
    if (len(known.history) > 1 or known.memories) and said["denies"].search(reply):
        return True
    told = [turn.content for turn in known.history if turn.role == "user"] + list(known.memories)
    for name in ("name", "work", "home", "age"):
        if said[f"asks_{name}"].search(reply) and any(said[f"tells_{name}"].search(text) for text in told):
            return True
    words = content_words(reply, language)
    fewest = UNRELATED if known.history else UNRELATED_TO_MEMORIES
    return bool(texts) and len(words) >= fewest and all(words.isdisjoint(content_words(t, language)) for t in texts)
