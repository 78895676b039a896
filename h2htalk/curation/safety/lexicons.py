"""Small reviewed word lists as weak evidence: words have classes, and rules combine classes.

A list alone removes only plain cases (an advert with its contact, a minor in an erotic text): public lists used for
removal delete 80-98 % of counselling answers. Where a word is also an everyday word, a rule requires words of two
classes close together. Slurs are stored as hashes, so that the file shows none: `slur` for words that are nothing
else, `slur_doubtful` for everyday words, words that people use for themselves, and old names, which prove nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import pairwise
from typing import Any
from zlib import crc32

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.text_folding import fold, original_places
from h2htalk.data.languages import Language
from h2htalk.text.language_data import language_data

LAYER = "lexicon"
# Evidence of one category, by score and place; a message of 2 MB would otherwise give a hundred thousand.
MOST_A_CATEGORY = 8


def without_everyday(text: str, language: Language) -> str:
    """The text with spaces in place of everyday phrases, of the same length."""
    return load_lexicon(language).everyday.sub(lambda match: " " * len(match[0]), text)


def find_listed(text: str, language: Language) -> list[Evidence]:
    """The evidence of the lists in a text.

    Args:
        text: an original message.
        language: of the lists.

    Returns:
        Evidence of layer `lexicon` with its span in `text`, in order; at most `MOST_A_CATEGORY` of one category.
        Scores are those of the rules: from 0.8 on a rule is enough by itself, below it needs other evidence.
    """
    folded = fold(without_everyday(text, language))
    lexicon = load_lexicon(language)
    hits = lexicon.hits(folded)
    best: dict[tuple[str, Place], float] = {}
    for rule in lexicon.rules:
        if not any(name in hits for name in rule.unless):
            for place in _together(rule, hits):
                key = (rule.category, place)
                best[key] = max(best.get(key, 0.0), rule.score)
    ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    kept: list[tuple[str, Place, float]] = []
    count: dict[str, int] = {}
    for (category, place), score in ranked:
        count[category] = count.get(category, 0) + 1
        if count[category] <= MOST_A_CATEGORY:
            kept.append((category, place, score))
    kept.sort(key=lambda item: (item[1], item[0]))
    places = original_places(text, [place for _, place, _ in kept])
    return [
        Evidence(LAYER, category, score, start, end)
        for (category, _, score), (start, end) in zip(kept, places, strict=True)
    ]


def _together(rule: Rule, hits: Mapping[str, Sequence[Place]]) -> Iterator[Place]:
    """The places from the first to the last word where words of all the rule's classes are close together."""
    if not all(name in hits for name in rule.all):
        return
    for anchor in hits[rule.all[0]]:
        chosen = [anchor]
        for name in rule.all[1:]:
            near = _nearest(hits[name], anchor, rule.within)
            if near is None:
                break
            chosen.append(near)
        else:
            yield min(start for start, _ in chosen), max(end for _, end in chosen)


def _nearest(places: Sequence[Place], anchor: Place, within: int) -> Place | None:
    """The place closest to another, the earlier of two equally close; None where none is within `within`."""
    at = bisect_left(places, anchor)
    around = [place for place in places[max(0, at - 2) : at + 3] if not _overlap(place, anchor)]
    closest = min(around, key=lambda place: (abs(place[0] - anchor[0]), place), default=None)
    return closest if closest is not None and abs(closest[0] - anchor[0]) <= within else None


def _overlap(one: Place, other: Place) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@cache
def load_lexicon(language: Language) -> SafetyLexicon:
    """Compile the lists of a language, once a process."""
    return compile_lexicon(language_data("curation/safety/safety_data/lexicon", language))


# --- Matching: linear in the text, as words are literals in one compiled expression and patterns are bounded ---

HASH_DIGITS = 24
# Signs between the characters of a word that hide it.
_BETWEEN = r"[\s*.·_\-]{0,2}"
_BETWEEN_ANY = re.compile(r"[ *.·_-]")
_LATIN_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_GAP = 3  # characters between two words of a phrase: a space, a line end with an indent, a comma
# Latin words written with signs for letters ("@" for "a"), or letter by letter.
_LEET = str.maketrans("0134578@$!|", "oleastbasil")
_DISGUISED = re.compile(r"(?<![a-z0-9])(?=[a-z]*[0-9@$!|*])[a-z0-9@$!|*]{3,20}(?![a-z0-9])")
_SPELLED = re.compile(r"(?<![a-z0-9])(?:[a-z0-9@$!][ .\-_*]){3,12}[a-z0-9@$!](?![a-z0-9])")
_SIGN = re.compile(r"[a-z][0-9@$!|*]|[0-9@$|*][a-z]")
_STRETCHED = re.compile(r"(.)\1{2,}")

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """Words of all these classes, at most `within` characters apart (start to start), are evidence of a category.

    `unless`: classes that cancel the rule, anywhere in the text (a report of abuse is not an erotic text).
    """

    category: str
    score: float
    all: tuple[str, ...]
    within: int
    unless: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SafetyLexicon:
    """The compiled lists of a language.

    Attributes:
        words: matches at each place the longest Chinese word that starts there.
        phrases: sequences of Latin words, by the first of them.
        classes: of each word, as `bare` returns it.
        patterns: further expressions, each with its class.
        rules: over the classes.
        hashes: hash of a hidden word -> its class.
        sieve: CRC-32 of the hidden words modulo 4,096, which avoids a SHA-256 of nearly every other word.
        lengths: of hidden Chinese words; hidden Latin words are compared as whole words.
        everyday: everyday phrases that contain a word of the lists (taking out the rubbish).
    """

    words: re.Pattern[str]
    phrases: Mapping[str, tuple[tuple[str, ...], ...]]
    classes: Mapping[str, tuple[str, ...]]
    patterns: tuple[tuple[str, re.Pattern[str]], ...]
    rules: tuple[Rule, ...]
    hashes: Mapping[str, str]
    sieve: frozenset[int]
    lengths: tuple[int, ...]
    everyday: re.Pattern[str]

    def hits(self, folded: str) -> dict[str, list[Place]]:
        """The places of the words of each class in a folded text, in order."""
        found: dict[str, set[Place]] = {}
        latin = [(match[0].replace("’", "'"), match.span()) for match in _LATIN_WORD.finditer(folded)]
        written = ((match[1], match.span(1)) for match in self.words.finditer(folded))
        for word, place in (*written, *self._phrases(latin)):
            for name in self.classes[bare(word)]:
                found.setdefault(name, set()).add(place)
        for name, pattern in self.patterns:
            found.setdefault(name, set()).update(match.span() for match in pattern.finditer(folded))
        for word, place in (*self._latin_candidates(folded, latin), *self._chinese_candidates(folded)):
            if crc32(word.encode()) % 4096 in self.sieve and hashed(word) in self.hashes:
                found.setdefault(self.hashes[hashed(word)], set()).add(place)
        return {name: sorted(places) for name, places in found.items() if places}

    def _phrases(self, latin: Sequence[tuple[str, Place]]) -> Iterator[tuple[str, Place]]:
        for at, (word, (start, _)) in enumerate(latin):
            for phrase in self.phrases.get(word, ()):
                stretch = latin[at : at + len(phrase)]
                close = all(b[1][0] - a[1][1] <= _GAP for a, b in pairwise(stretch))
                if close and tuple(other for other, _ in stretch) == phrase:
                    yield " ".join(phrase), (start, stretch[-1][1][1])

    def _latin_candidates(self, folded: str, latin: Sequence[tuple[str, Place]]) -> Iterator[tuple[str, Place]]:
        """Possible hidden Latin words: words, pairs of them, and what disguised ones may stand for."""
        yield from latin
        for (first, (start, before)), (second, (after, end)) in pairwise(latin):
            # "lol I" is no word in two pieces.
            if after - before <= _GAP and min(len(first), len(second)) > 1:
                yield first + second, (start, end)
        disguised = [(bare(match[0]), match.span()) for match in _SPELLED.finditer(folded)]
        if _SIGN.search(folded):
            disguised += [(match[0], match.span()) for match in _DISGUISED.finditer(folded)]
        yield from ((word, place) for token, place in disguised for word in _undisguised(token))
        if _STRETCHED.search(folded):
            for word, place in latin:
                yield _STRETCHED.sub(r"\1\1", word), place
                yield _STRETCHED.sub(r"\1", word), place

    def _chinese_candidates(self, folded: str) -> Iterator[tuple[str, Place]]:
        """Stretches as long as a hidden Chinese word that pass the sieve, read without signs between characters."""
        if not self.lengths:
            return
        written = folded
        places: Sequence[int] = range(len(folded))
        if _BETWEEN_ANY.search(folded):
            places = [at for at, character in enumerate(folded) if not _BETWEEN_ANY.match(character)]
            written = "".join(folded[at] for at in places)
        for length in self.lengths:
            pieces = [written[start : start + length] for start in range(len(written) - length + 1)]
            for start in [at for at, piece in enumerate(pieces) if crc32(piece.encode()) % 4096 in self.sieve]:
                first, last = places[start], places[start + length - 1]
                if last - first < 2 * length:
                    yield pieces[start], (first, last + 1)


def compile_lexicon(lists: Mapping[str, Any]) -> SafetyLexicon:
    """Compile the lists of a TOML file: `words` (class to words), `patterns`, `hidden` (class to entries), `rules`,
    `everyday` (phrases).

    A Latin word matches whole words only, so each of its forms is an entry. `hidden_entry` makes hidden entries.
    """
    classes: dict[str, tuple[str, ...]] = {}
    for name, words in lists["words"].items():
        for word in words:
            key = bare(fold(word))
            classes[key] = (*classes.get(key, ()), name)
    written = {fold(word) for words in lists["words"].values() for word in words}
    phrases: dict[str, tuple[tuple[str, ...], ...]] = {}
    for word in sorted(word for word in written if word.isascii()):
        tokens = tuple(_LATIN_WORD.findall(word))
        phrases[tokens[0]] = (*phrases.get(tokens[0], ()), tokens)
    chinese = sorted((word for word in written if not word.isascii()), key=lambda word: (-len(word), word))
    firsts = "".join(sorted({re.escape(word[0]) for word in chinese}))
    # `(?!)` matches nothing.
    expression = f"(?=[{firsts}])(?=({'|'.join(map(_spaced, chinese))}))" if chinese else "(?!)"
    hidden = [(name, *entry.split(":")) for name, entries in lists.get("hidden", {}).items() for entry in entries]
    rules = (
        Rule(r["category"], r["score"], tuple(r["all"]), r.get("within", 0), tuple(r.get("unless", ())))
        for r in lists["rules"]
    )
    return SafetyLexicon(
        words=re.compile(expression),
        phrases=phrases,
        classes=classes,
        patterns=tuple(
            (name, re.compile(pattern)) for name, patterns in lists.get("patterns", {}).items() for pattern in patterns
        ),
        rules=tuple(rules),
        hashes={code: name for name, _, code, _ in hidden},
        sieve=frozenset(int(bucket) for _, bucket, _, _ in hidden),
        lengths=tuple(sorted({int(length) for _, _, _, length in hidden if int(length)})),
        everyday=re.compile("|".join(map(re.escape, lists.get("everyday", ()))) or "(?!)"),
    )


def hidden_entry(word: str) -> str:
    """The entry of a hidden word: `crc32 modulo 4096:hash:length`; length 0 where whole words are compared."""
    folded = bare(fold(word))
    return f"{crc32(folded.encode()) % 4096}:{hashed(folded)}:{0 if folded.isascii() else len(folded)}"


def hashed(folded: str) -> str:
    """The first digits of the SHA-256 of a folded word."""
    return sha256(folded.encode()).hexdigest()[:HASH_DIGITS]


def _undisguised(token: str) -> Iterator[str]:
    """The words that a disguised Latin word may stand for: one sign for a letter, `*` for any vowel."""
    word = token.translate(_LEET)
    yield from (word.replace("*", vowel) for vowel in ("aeiou" if "*" in word else "-"))
    yield word.replace("l", "i")


def bare(folded: str) -> str:
    """A match without the signs that may stand between its characters."""
    return re.sub(r"[\s*.·_\-]", "", folded)


def _spaced(folded: str) -> str:
    """An expression for a Chinese word that allows signs between its characters."""
    return _BETWEEN.join(re.escape(character) for character in folded if not character.isspace())
