"""Insults: how offensive a text is, and whom it is for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import load_classifier
from h2htalk.curation.safety.text_folding import fold
from h2htalk.data.languages import Language, find_language
from h2htalk.text.language_data import language_data, language_patterns

OFFENSIVE = "safety_data"  # folder of the classifier of offensive language
MASKED = "masked_data"  # of the one that reads texts without names of groups
INSULTS = f"curation/safety/{OFFENSIVE}/insults"
# A sentence that names a group is offensive from this part of `low` on, if its message is.
NAMING = 0.25
_SENTENCES = re.compile(r"[^.!?\n。！？]+[.!?\n。！？]*")
_BEFORE = 40  # characters before a slur that say whose word it is
_FEW = 3  # sentences; a longer message is mostly about something else


def offence(text: str, language: Language) -> float:
    """The probability that a text is offensive, calibrated on public sets and our own texts (Platt scaling)."""
    return _score(fold(text), language, OFFENSIVE)


def _score(folded: str, language: Language, folder: str) -> float:
    joint = find_language(language).joint
    return load_classifier(folder, language).score(joint.join(folded.split())).score


def find_contempt(text: str, language: Language, listed: Sequence[Evidence]) -> list[Evidence]:
    """Further evidence on a message that may be offensive: what it says of whom.

    Args:
        text: the message.
        language: of the dialogue.
        listed: evidence of the lexicons.

    Returns:
        `group.named` where an offensive sentence names a group of people (origin, sex, faith, ...): an insult without
        such a name is for the listener, the speaker, somebody near, or nobody; `offensive.attack` where a sentence
        about a group compares with animals, generalises contempt or calls for exclusion; `offensive` of layer `masked`:
        the score of a classifier that reads the text without its names of groups, so that no name is evidence;
        `mention` where the message quotes, reports or rejects prejudice, or uses a slur for its speaker.
    """
    patterns, low = language_patterns(INSULTS, language), load_classifier(OFFENSIVE, language).low()
    sentences = [(*match.span(), fold(match[0])) for match in _SENTENCES.finditer(text)]
    naming = [one for *_, one in sentences if patterns["named"].search(patterns["besides"].sub(" ", one))]
    # A single sentence is known to be offensive, as its message is.
    offends = len(sentences) == 1 or any(offence(one, language) >= NAMING * low for one in naming)
    slurs = [one for one in listed if one.category == "offensive.slur"]
    # Who speaks of himself may insult himself.
    others = patterns["others"].search(fold(text)) and not patterns["first"].search(fold(text))
    found = [Evidence("group", "group.named", 1.0)] if (naming and offends) or others else []
    for (start, end, one), (*_, after) in zip(sentences, [*sentences[1:], (0, 0, "")], strict=True):
        about = any(start <= slur.start < end for slur in slurs) or any(
            patterns[name].search(patterns["besides"].sub(" ", one)) for name in ("named", "others")
        )
        both = f"{one} {after}"
        # In a long message the sentences themselves must be offensive.
        if about and patterns["attacks"].search(both) and (len(sentences) < _FEW or offence(both, language) >= low):
            found.append(Evidence("attack", "offensive.attack", 0.6, start, end))
            break
    found.append(Evidence("masked", "offensive", _score(mask_groups(text, language), language, MASKED)))
    own = any(patterns["self"].search(fold(text[max(0, slur.start - _BEFORE) : slur.start])) for slur in slurs)
    if own or patterns["mentions"].search(fold(text)):
        found.append(Evidence("mention", "mention", 1.0))
    return found


def mask_groups(text: str, language: Language) -> str:
    """The folded text with one sign in place of every name of a group."""
    named = language_patterns(INSULTS, language)["named"]
    return named.sub(str(language_data(INSULTS, language)["mask"]), fold(text))


def find_report(text: str, language: Language) -> Evidence | None:
    """`reported.insult` where somebody reports what others called them or did to them."""
    folded = fold(text).replace("'", "").replace("’", "")
    reported = language_patterns(INSULTS, language)["reports"].search(folded)
    return Evidence("report", "reported.insult", 1.0) if reported else None
