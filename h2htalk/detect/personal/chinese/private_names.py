"""Which names, numbers and addresses of a Chinese dialogue are private people's: a classifier over what stands around.

It reads the characters before and behind a candidate, the name itself, and signs of how it was found. A value is
decided on once a dialogue, by all the places where it stands and by the other candidates: who directed a film in one
message has not moved next door in the next, and where sights are talked of, a telephone number is a sight's.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from h2htalk.detect.hashed import SMOOTH, NgramClassifier, load_classifier
from h2htalk.detect.personal.chinese.persons import KIN, STRONG, Segment, left_cue, right_cue
from h2htalk.detect.personal.chinese.words import dictionary, patterns, tags, words
from h2htalk.detect.personal.spans import Span

FOLDER = "personal/chinese/words/private"
# What is decided on beside names. A landline is as often a sight's as somebody's; mobile numbers are people's.
VALUES = ("ADDRESS", "DATE_OF_BIRTH", "ORGANIZATION", "PHONE_NUMBER")
# In the order of the classifier's buckets.
SHAPES = (
    "full",
    "title",
    "nick",
    "given",
    "doubled",
    "foreign",
    "surname",
    "parent",
    "dotted",
    "latin",
    "rare latin",
    "pinyin",
    "full+title",
    "nick+title",
    "given+title",
    "doubled+title",
    "foreign+title",
    "word",
    *VALUES,
)
# Characters that are read before and behind a name, and a value: that of a sight is known by what is asked about it.
_NEAR = (30, 20)
_WIDE = (120, 60)
# Signs and the characters of names are read as characters of other planes.
_SIGN, _NAME = 0xE000, 0x20000
_PUBLIC = patterns("public_cues")
_DIGIT = re.compile("[0-9]")
_CONTEXT = 0.3  # weight of the mean of a dialogue's other candidates
_FRAMED = 1.5  # by how much the classifier may miss what it needs behind "my name is"
_HOPELESS = -4.0  # log-odds; a lower score says no more of what stands beside it


class Mention(NamedTuple):
    """A candidate, its place in a dialogue, and what the classifier reads of it."""

    message: int
    start: int
    end: int
    type: str
    name: str
    description: str
    cue: float = 0.0  # what stands before it says of a name: from `persons.left_cue`


def describe(text: str, segment: Segment, earlier: str = "", later: str = "") -> str:
    """What the classifier reads of a candidate; `earlier` and `later` are what the messages around it say."""
    start = segment.start
    end = segment.end
    shape = segment.shape
    name = text[start:end] if shape != "ADDRESS" else ""
    buckets = _buckets(text, segment, name)
    signs = [chr(_SIGN + 32 * kind + bucket) for kind, bucket in enumerate(buckets)]
    before, behind = _WIDE if shape in VALUES and shape != "ORGANIZATION" else _NEAR
    left = f"{earlier[-before:]}\n{text[:start]}"[-before:]
    right = f"{text[end : end + behind]}{later}"[:behind]
    around = _DIGIT.sub("0", f"{left}{signs[0]}{right}")
    letters = [chr(_NAME + ord(letter)) for letter in _DIGIT.sub("0", name) if ord(letter) < _SIGN]
    # Signs that stand together are n-grams: these are read in another order too.
    again = [signs[kind] for kind in (0, 2, 3, 7, 0, 8, 7)]
    return "".join((around, "\0", *letters, "\0", *signs, *again))


def _buckets(text: str, segment: Segment, name: str) -> tuple[int, ...]:
    """The signs of how a candidate was found, of its name and of the words right beside it, each in [0, 32)."""
    start = segment.start
    end = segment.end
    count = dictionary()[0].get(name) or 0
    frequency = int(math.log10(count + 1) * 2)
    part_of_speech = ord(tags().get(name, "-")[0]) % 32
    loss = min(int(segment.loss), 15)
    gain = min(max(int(segment.gain / 2 + 8), 0), 15)
    cue = min(int(segment.cue + 2), 15)
    cue_behind = int(right_cue(text, end) + 2)
    public_cues = 0
    if _PUBLIC["famous"].search(text, max(start - 12, 0), start):
        public_cues += 1
    if _PUBLIC["work"].match(text, end):
        public_cues += 2
    if _PUBLIC["said"].match(text, end):
        public_cues += 4
    shape = SHAPES.index(segment.shape)
    length = min(len(name), 15)
    # In the order of the classifier's buckets.
    return (shape, loss, cue, cue_behind, frequency, part_of_speech, length, public_cues, gain)


def private_mentions(
    mentions: Sequence[Mention], talk: str = "personal"
) -> list[tuple[Mention, float]]:
    """The mentions of private people or their data, each with a score in [0.5, 0.95]; none overlap. Of a person either
    vote is enough in `personal` talk, the classifier's or that of a frame; in `public` talk both are needed."""
    if not mentions:
        return []
    model = load_classifier(FOLDER, "zh")
    scores = _scores(model, mentions)
    decided = _decide(mentions, scores)
    private = []
    for index, mention in enumerate(mentions):
        margin = decided[index] - float(model.manifest[mention.type])
        if _is_private(mention, margin, talk):
            private.append((-max(margin, 0.0) - scores[index], index))
    sure = {}
    for minus, index in sorted(private):
        sure[index] = 0.95 - 0.45 / (1 + math.exp(min(-minus, 50.0)))
    return [(mentions[index], sure[index]) for index in _apart(mentions, sure)]


def _scores(model: NgramClassifier, mentions: Sequence[Mention]) -> list[float]:
    """The log-odds that each mention is private, by what stands around it."""
    bits = model.features.bits
    keys = model.features.keys([mention.description for mention in mentions])
    owners = keys >> bits
    weights = model.weights(keys & ((1 << bits) - 1))
    sums = np.bincount(owners, weights, len(mentions))
    sizes = np.bincount(owners, minlength=len(mentions)) + SMOOTH
    scores: list[float] = (sums / np.sqrt(sizes) + model.manifest["bias"]).round(9).tolist()
    return scores


def _decide(mentions: Sequence[Mention], scores: Sequence[float]) -> list[float]:
    """The log-odds of each mention by all of its name, and by all of its type in the dialogue."""
    of_name = defaultdict[str, list[float]](list)
    of_type = defaultdict[str, list[float]](list)
    for mention, score in zip(mentions, scores, strict=True):
        of_name[mention.name].append(score)
    by_score = np.argsort(-np.array(scores), kind="stable").tolist()
    for index in _apart(mentions, by_score):
        of_type[mentions[index].type].append(max(scores[index], _HOPELESS))
    by_name = {
        name: (max(values) + sum(values) / len(values)) / 2 for name, values in of_name.items()
    }
    by_type = {kind: sum(values) / len(values) for kind, values in of_type.items()}
    decided = []
    for mention, score in zip(mentions, scores, strict=True):
        context = by_type.get(mention.type, score)
        decided.append((1 - _CONTEXT) * by_name[mention.name] + _CONTEXT * context)
    return decided


def _is_private(mention: Mention, margin: float, talk: str) -> bool:
    """Whether a mention has the votes. `margin`: by how much the classifier is surer than it needs to be."""
    if mention.type != "PERSON":
        return margin >= 0
    if talk == "public":
        titled = mention.name.endswith(tuple(words("persons", "titles", "after_surname")))
        return margin >= 0 and (mention.cue >= KIN or titled)
    least = -_FRAMED if mention.cue >= STRONG else 0.0
    return margin >= least


def _apart(mentions: Sequence[Mention], order: Iterable[int]) -> Iterator[int]:
    """The indices of mentions in this order, without those of mentions that overlap one before."""
    covered = set[tuple[int, int]]()
    for index in order:
        mention = mentions[index]
        characters = {
            (mention.message, character) for character in range(mention.start, mention.end)
        }
        if covered.isdisjoint(characters):
            covered |= characters
            yield index


def private_values(texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """The spans of a dialogue without dates of birth and telephone numbers that are no private people's."""
    mentions = value_mentions(texts, spans)
    private = {(mention.message, mention.start) for mention, _ in private_mentions(mentions)}
    public = {(mention.message, mention.start) for mention in mentions} - private
    kept = []
    for message, spans_of_text in enumerate(spans):
        kept.append([span for span in spans_of_text if (message, span.start) not in public])
    return kept


def value_mentions(texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> list[Mention]:
    """The dates of birth, telephone numbers and addresses among the spans of a dialogue."""
    mentions = []
    for message, (text, spans_of_text) in enumerate(zip(texts, spans, strict=True)):
        values = [span for span in spans_of_text if span.type in VALUES]
        if not values:
            continue
        earlier = "\n".join(texts[max(message - 8, 0) : message])
        later = "\n".join(["", *texts[message + 1 : message + 4]])
        for span in values:
            cue = left_cue(text, span.start)
            segment = Segment(span.start, span.end, 0.0, cue, span.type)
            mention = Mention(
                message=message,
                start=span.start,
                end=span.end,
                type=span.type,
                name=text[span.start : span.end],
                description=describe(text, segment, earlier, later),
            )
            mentions.append(mention)
    return mentions
