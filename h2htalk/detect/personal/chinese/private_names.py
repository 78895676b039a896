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

from h2htalk.detect.hashed import SMOOTH, load_classifier
from h2htalk.detect.personal.chinese.persons import KIN, STRONG, Segment, left_cue, right_cue
from h2htalk.detect.personal.chinese.words import dictionary, patterns, tags, words
from h2htalk.detect.personal.spans import Span

FOLDER = "personal/chinese/words/private"
# What is decided on beside names. A landline is as often a sight's as somebody's; mobile numbers are people's.
VALUES = ("ADDRESS", "DATE_OF_BIRTH", "ORGANIZATION", "PHONE_NUMBER")
SHAPES = (
    *(
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
    ),
    *(
        "pinyin",
        "full+title",
        "nick+title",
        "given+title",
        "doubled+title",
        "foreign+title",
        "word",
        *VALUES,
    ),
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
    count = dictionary()[0].get(name) or 0
    buckets = (
        SHAPES.index(shape),
        min(int(segment.loss), 15),
        min(int(segment.cue + 2), 15),
        int(right_cue(text, end) + 2),
        int(math.log10(count + 1) * 2),
        ord(tags().get(name, "-")[0]) % 32,
        min(len(name), 15),
        (_PUBLIC["famous"].search(text, max(start - 12, 0), start) is not None)
        + 2 * (_PUBLIC["work"].match(text, end) is not None)
        + 4 * (_PUBLIC["said"].match(text, end) is not None),
        min(max(int(segment.gain / 2 + 8), 0), 15),
    )
    signs = [chr(_SIGN + 32 * kind + bucket) for kind, bucket in enumerate(buckets)]
    before, behind = _WIDE if shape in VALUES and shape != "ORGANIZATION" else _NEAR
    left = f"{earlier[-before:]}\n{text[:start]}"[-before:]
    right = f"{text[end : end + behind]}{later}"[:behind]
    own = "".join(
        chr(_NAME + ord(letter)) for letter in _DIGIT.sub("0", name) if ord(letter) < _SIGN
    )
    around = _DIGIT.sub("0", f"{left}{signs[0]}{right}")
    return "".join(
        (around, "\0", own, "\0", *signs, *(signs[kind] for kind in (0, 2, 3, 7, 0, 8, 7)))
    )


def private_mentions(
    mentions: Sequence[Mention], talk: str = "personal"
) -> list[tuple[Mention, float]]:
    """The mentions of private people or their data, each with a score in [0.5, 0.95]; none overlap. Of a person either
    vote is enough in `personal` talk, the classifier's or that of a frame; in `public` talk both are needed."""
    if not mentions:
        return []
    model = load_classifier(FOLDER, "zh")
    bits = model.features.bits
    keys = model.features.keys([mention.description for mention in mentions])
    owners = keys >> bits
    sums = np.bincount(owners, model.weights(keys & ((1 << bits) - 1)), len(mentions))
    scores = (
        sums / np.sqrt(np.bincount(owners, minlength=len(mentions)) + SMOOTH)
        + model.manifest["bias"]
    ).round(9)
    of_name = defaultdict[str, list[float]](list)
    of_type = defaultdict[str, list[float]](list)
    for mention, score in zip(mentions, scores, strict=True):
        of_name[mention.name].append(float(score))
    for at in _apart(mentions, np.argsort(-scores, kind="stable").tolist()):
        of_type[mentions[at].type].append(max(float(scores[at]), _HOPELESS))
    of_names = {name: (max(own) + sum(own) / len(own)) / 2 for name, own in of_name.items()}
    means = {kind: sum(own) / len(own) for kind, own in of_type.items()}
    private = []
    for at, (mention, score) in enumerate(zip(mentions, scores, strict=True)):
        decided = (1 - _CONTEXT) * of_names[mention.name] + _CONTEXT * means.get(
            mention.type, float(score)
        )
        margin = decided - float(model.manifest[mention.type])
        if _is_private(mention, margin, talk):
            private.append((-max(margin, 0.0) - float(score), at))
    sure = {at: 0.95 - 0.45 / (1 + math.exp(min(-minus, 50.0))) for minus, at in sorted(private)}
    return [(mentions[at], sure[at]) for at in _apart(mentions, sure)]


def _is_private(mention: Mention, margin: float, talk: str) -> bool:
    """Whether a mention has the votes. `margin`: by how much the classifier is surer than it needs to be."""
    if mention.type != "PERSON":
        return margin >= 0
    if talk == "public":
        titled = mention.name.endswith(tuple(words("persons", "titles", "after_surname")))
        return margin >= 0 and (mention.cue >= KIN or titled)
    return margin >= (-_FRAMED if mention.cue >= STRONG else 0.0)


def _apart(mentions: Sequence[Mention], order: Iterable[int]) -> Iterator[int]:
    """The places in `mentions` in this order, without those of mentions that overlap one before."""
    taken = set[tuple[int, int]]()
    for at in order:
        places = {
            (mentions[at].message, place) for place in range(mentions[at].start, mentions[at].end)
        }
        if taken.isdisjoint(places):
            taken |= places
            yield at


def private_values(texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """The spans of a dialogue without dates of birth and telephone numbers that are no private people's."""
    mentions = value_mentions(texts, spans)
    private = {(mention.message, mention.start) for mention, _ in private_mentions(mentions)}
    public = {(mention.message, mention.start) for mention in mentions} - private
    return [[span for span in own if (n, span.start) not in public] for n, own in enumerate(spans)]


def value_mentions(texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> list[Mention]:
    """The dates of birth, telephone numbers and addresses among the spans of a dialogue."""
    found = []
    for n, (text, own) in enumerate(zip(texts, spans, strict=True)):
        earlier = "\n".join(texts[max(n - 8, 0) : n])
        later = "\n".join(["", *texts[n + 1 : n + 4]])
        for span in own:
            if span.type in VALUES:
                segment = Segment(span.start, span.end, 0.0, left_cue(text, span.start), span.type)
                description = describe(text, segment, earlier, later)
                found.append(
                    Mention(
                        n, span.start, span.end, span.type, text[span.start : span.end], description
                    )
                )
    return found
