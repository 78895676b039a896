"""Politically sensitive content: rules over two kinds of words, and a small model for what no list foresees.

Public lists of sensitive words know 3 to 30 % of such statements and hit everyday talk (reference: safety layers). A
rule asks for a public matter and a stance on it in one sentence; the model has read statements and harmless mentions
of the same words, and is believed sooner beside a word of public life. Both agreeing is sure; one alone is for a
person, or a guard model, to judge. A companion's long kind replies are read by the rules: the model alone is no sign.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import NgramClassifier, Reading, load
from h2htalk.curation.safety.text_folding import fold_spelling, spelling_place
from h2htalk.data.languages import Language
from h2htalk.errors import ConfigError

CATEGORY = "political.sensitive"
DATA = "political_data"
# What a sign's score says: the rules and the model agree, or one of them is alone.
AGREED, ALONE = 0.95, 0.6
_SENTENCE = re.compile(r"[^.!?;]+")


def find(
    text: str, language: Language, terms: frozenset[str] = frozenset(), seeker: bool = True
) -> Evidence | None:
    """What one message shows of politics; None for nothing.

    Args:
        text: one message, of any length.
        language: whose rules and model are asked.
        terms: folded terms of the user's own (`read_terms`); each counts as a rule.
        seeker: whether the seeker says it; of a companion the model alone is not believed.
    """
    folded = fold_spelling(text, language)
    sign = sign_in(folded, load(DATA, language), terms, seeker)
    if sign is None:
        return None
    return Evidence("political", CATEGORY, sign.score, *spelling_place(text, language, sign.start, sign.end))


def sign_in(
    folded: str, model: NgramClassifier, terms: frozenset[str] = frozenset(), seeker: bool = True
) -> Reading | None:
    """As `find`, of a folded text: AGREED or ALONE, and where it stands there."""
    rules = _rules(model.language)
    ruled = _ruled(folded, rules)
    if ruled is None and terms:
        ruled = next(((at, at + len(t)) for t in sorted(terms) if (at := folded.find(t)) >= 0), None)
    if ruled is None and not seeker:
        return None
    score, start, end = model.score(folded)
    if ruled is not None:
        return Reading(AGREED if score >= model.low() else ALONE, *ruled)
    public = rules.public.search(folded, start, end) is not None
    return Reading(ALONE, start, end) if score >= (model.low() if public else model.high()) else None


class Rules(NamedTuple):
    """What public matters, stances on them, everyday talk and words of public life look like."""

    matter: re.Pattern[str]
    stance: re.Pattern[str]
    everyday: re.Pattern[str]
    public: re.Pattern[str]


def _ruled(folded: str, rules: Rules) -> tuple[int, int] | None:
    """The first sentence that names a public matter and takes a stance on it."""
    if rules.matter.search(folded) is None:
        return None
    for sentence in _SENTENCE.finditer(folded):
        text = sentence[0]
        if rules.matter.search(text) and rules.stance.search(text) and not rules.everyday.search(text):
            return sentence.span()
    return None


@cache
def _rules(language: Language) -> Rules:
    raw = tomllib.loads((Path(__file__).parent / DATA / f"rules_{language}.toml").read_text(encoding="utf-8"))
    return Rules(*(re.compile(raw[name]) for name in Rules._fields))


@lru_cache(maxsize=8)
def read_terms(path: str, language: Language) -> frozenset[str]:
    """Terms of the user's own, a line each (`#` opens a comment), folded; empty for no path.

    Raises:
        ConfigError: the file cannot be read.
    """
    if not path:
        return frozenset()
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: the list of sensitive terms cannot be read as UTF-8 text: {error}"
        ) from error
    return frozenset(
        fold_spelling(line, language) for line in lines if line.strip() and not line.startswith("#")
    )
