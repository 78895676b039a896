"""Small reviewed word lists as weak evidence: words have classes, and rules combine classes.

A list alone removes only plain cases (an advert with its contact, a minor in an erotic text): public lists used for
removal delete 80-98 % of counselling answers. Where a word is also an everyday word, a rule requires words of two
classes close together. Slurs are stored as hashes, so that the file shows none: `slur` for words that are nothing
else, `slur_doubtful` for everyday words, words that people use for themselves, and old names, which prove nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

from h2htalk.data.languages import Language, find_language
from h2htalk.detect.hashed import (
    NgramClassifier,
    Reading,
    load_classifier,
    read_together,
)
from h2htalk.detect.safety.evidence import Evidence
from h2htalk.detect.safety.text_folding import (
    fold,
    fold_spelling,
    original_places,
    spelling_place,
)
from h2htalk.errors import ConfigError
from h2htalk.text.language_data import language_data, language_patterns

LAYER = "lexicon"
POLITICAL, MINORS = "political.sensitive", "sexual.minors"
# From the first score on a lexicon rule is enough by itself, from the second on it is a second piece of evidence.
ALONE, SECOND = 0.8, 0.5
# Evidence of one category, by score and place; a message of 2 MB would otherwise give a hundred thousand.
MOST_A_CATEGORY = 8
# Signs between the characters of a word that hide it.
_SIGNS = r"[\s*.·_\-]"
_SIGN_BETWEEN = re.compile(r"[ *.·_-]")
_LATIN_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_GAP = 3  # characters between two words of a phrase: a space, a line end with an indent, a comma
# Latin words written with signs for letters ("@" for "a"), or letter by letter.
_LEET = str.maketrans("0134578@$!|", "oleastbasil")
_DISGUISED = re.compile(
    r"(?<![a-z0-9])(?=[a-z]*[0-9@$!|*])[a-z0-9@$!|*]{2,19}[a-z0-9@$|*](?![a-z0-9])"
)
_SPELLED = re.compile(r"(?<![a-z0-9])(?:[a-z0-9@$!][ .\-_*]){3,12}[a-z0-9@$!](?![a-z0-9])")
_SIGN = re.compile(r"[a-z][0-9@$!|*]|[0-9@$|*][a-z]")
_STRETCHED = re.compile(r"(.)\1{2,}")
_NOTHING = "(?!)"
OFFENSIVE = "safety/safety_data"  # folder of the classifier of offensive language
POLITICAL_DATA = "safety/political_data"
MASKED = "safety/masked_data"  # of the one that reads texts without names of groups
INSULTS = f"detect/{OFFENSIVE}/insults"
# Scores of politics: the rules and the classifier agree, or one of them alone; and the score of the classifier from
# which on a message is political although no word of it names a public matter.
AGREED, EITHER, NO_SUBJECT = 0.95, 0.6, 0.3
_CLAUSE = re.compile(r"[^.!?;]+")
_SENTENCES = re.compile(r"[^.!?\n。！？]+[.!?\n。！？]*")
_BEFORE = 40  # characters before a slur that say whose word it is
_FEW = 3  # sentences; a longer message is mostly about something else

Place = tuple[int, int]


def without_everyday(text: str, language: Language) -> str:
    """The text with spaces in place of everyday phrases, of the same length."""
    return load_lexicon(language).everyday.sub(lambda match: " " * len(match[0]), text)


def find_listed(text: str, language: Language) -> list[Evidence]:
    """The evidence of the lists in an original message, in order: from ALONE on a rule is enough by itself."""
    lexicon = load_lexicon(language)
    hits = lexicon.hits(fold(without_everyday(text, language)))
    best: dict[tuple[str, Place], float] = {}
    for rule in lexicon.rules:
        if all(name in hits for name in rule.all) and not any(name in hits for name in rule.unless):
            for place in _together(rule, hits):
                key = (rule.category, place)
                best[key] = max(best.get(key, 0.0), rule.score)
    kept = []
    count = Counter[str]()
    for (category, place), score in sorted(best.items(), key=lambda item: (-item[1], item[0])):
        count[category] += 1
        if count[category] <= MOST_A_CATEGORY:
            kept.append((place, category, score))
    kept.sort()
    places = original_places(text, [place for place, _, _ in kept])
    return [
        Evidence(LAYER, category, score, *place)
        for (_, category, score), place in zip(kept, places, strict=True)
    ]


def _together(rule: Rule, hits: Mapping[str, Sequence[Place]]) -> Iterator[Place]:
    """The places from the first to the last word where words of all the rule's classes are close together."""
    for anchor in hits[rule.all[0]]:
        near = [anchor]
        for places in (hits[name] for name in rule.all[1:]):
            at = bisect_left(places, anchor)
            around = [
                one
                for one in places[max(0, at - 2) : at + 3]
                if one[0] >= anchor[1] or anchor[0] >= one[1]
            ]
            # The closest, the earlier of two equally close.
            closest = sorted((abs(place[0] - anchor[0]), place) for place in around)[:1]
            near += [place for distance, place in closest if distance <= rule.within]
        if len(near) == len(rule.all):
            yield min(start for start, _ in near), max(end for _, end in near)


@dataclass(frozen=True, slots=True)
class Rule:
    """Words of all these classes close together are evidence of a category."""

    category: str
    score: float
    all: Sequence[str]
    within: int = 0  # characters from start to start
    unless: Sequence[
        str
    ] = ()  # classes that cancel it anywhere in the text (a report of abuse is not an erotic text)


@dataclass(frozen=True, slots=True)
class SafetyLexicon:
    """The compiled lists of a language; linear in a text, as words are literals of one pattern."""

    chinese: re.Pattern[str]  # matches at each place the longest Chinese word that starts there
    classes: Mapping[
        str, Sequence[str]
    ]  # of each word: Chinese ones as `bare` returns them, Latin ones single-spaced
    longest: int  # words of the longest Latin phrase
    patterns: Sequence[tuple[str, re.Pattern[str]]]  # further expressions, each with its class
    rules: Sequence[Rule]
    hidden: Mapping[str, str]  # hash of a hidden word -> its class
    sieve: frozenset[
        int
    ]  # CRC-32 of the hidden words modulo 4,096, which avoids a SHA-256 of nearly every other word
    lengths: Sequence[
        int
    ]  # of hidden Chinese words; hidden Latin words are compared as whole words
    everyday: re.Pattern[
        str
    ]  # everyday phrases that contain a word of the lists (taking out the rubbish)

    def hits(self, folded: str) -> dict[str, list[Place]]:
        """The places of the words of each class in a folded text, in order."""
        found: dict[str, set[Place]] = defaultdict(set)
        latin = [
            (match[0].replace("’", "'"), match.span()) for match in _LATIN_WORD.finditer(folded)
        ]
        chinese = ((bare(match[1]), match.span(1)) for match in self.chinese.finditer(folded))
        for word, place in (*chinese, *_phrases(latin, self.longest)):
            for name in self.classes.get(word, ()):
                found[name].add(place)
        for name, pattern in self.patterns:
            for match in pattern.finditer(folded):
                found[name].add(match.span())
        for word, place in (*_latin_candidates(folded, latin), *self._chinese_candidates(folded)):
            if crc32(word.encode()) % 4096 in self.sieve and (code := hashed(word)) in self.hidden:
                found[self.hidden[code]].add(place)
        return {name: sorted(places) for name, places in found.items()}

    def _chinese_candidates(self, folded: str) -> Iterator[tuple[str, Place]]:
        """Stretches as long as a hidden Chinese word that pass the sieve, read without signs between characters."""
        places: Sequence[int] = range(len(folded))
        if self.lengths and _SIGN_BETWEEN.search(folded):
            places = [
                at for at, character in enumerate(folded) if not _SIGN_BETWEEN.match(character)
            ]
        written = "".join(folded[at] for at in places)
        for length in self.lengths:
            pieces = [written[start : start + length] for start in range(len(written) - length + 1)]
            for start in [
                at for at, piece in enumerate(pieces) if crc32(piece.encode()) % 4096 in self.sieve
            ]:
                first = places[start]
                last = places[start + length - 1]
                if last - first < 2 * length:
                    yield pieces[start], (first, last + 1)


def _phrases(latin: Sequence[tuple[str, Place]], longest: int) -> Iterator[tuple[str, Place]]:
    """Words, and so many of them in a row, with single spaces."""
    for at, (word, (start, end)) in enumerate(latin):
        yield word, (start, end)
        for following, (after, last) in latin[at + 1 : at + longest]:
            if after - end > _GAP:
                break
            word = f"{word} {following}"
            end = last
            yield word, (start, end)


def _latin_candidates(
    folded: str, latin: Sequence[tuple[str, Place]]
) -> Iterator[tuple[str, Place]]:
    """Possible hidden Latin words: words, pairs of them, and what disguised ones may stand for."""
    yield from latin
    for (first, (start, before)), (second, (after, end)) in pairwise(latin):
        # "lol I" is no word in two pieces.
        if after - before <= _GAP and min(len(first), len(second)) > 1:
            yield first + second, (start, end)
    disguised = [(bare(match[0]), match.span()) for match in _SPELLED.finditer(folded)]
    if _SIGN.search(folded):
        disguised += [(match[0], match.span()) for match in _DISGUISED.finditer(folded)]
    for token, place in disguised:
        word = token.translate(_LEET)
        yield from (
            (word.replace("*", vowel), place) for vowel in ("aeiou" if "*" in word else "-")
        )
        yield word.replace("l", "i"), place
    if _STRETCHED.search(folded):
        yield from (
            (_STRETCHED.sub(kept, word), place)
            for word, place in latin
            for kept in (r"\1\1", r"\1")
        )


@cache
def load_lexicon(language: Language) -> SafetyLexicon:
    """Compile the lists of a language, once a process."""
    return compile_lexicon(language_data("detect/safety/safety_data/lexicon", language))


def compile_lexicon(lists: Mapping[str, Any]) -> SafetyLexicon:
    """Compile the lists of a TOML file: `words` (class to words), `patterns`, `hidden` (class to entries), `rules`,
    `everyday` (phrases). A Latin word matches whole words only, so each of its forms is an entry.
    """
    classes: dict[str, list[str]] = defaultdict(list)
    chinese = set()
    for name, words in lists["words"].items():
        for folded in map(fold, words):
            classes[
                " ".join(_LATIN_WORD.findall(folded)) if folded.isascii() else bare(folded)
            ].append(name)
            if not folded.isascii():
                chinese.add(folded)
    longest_first = sorted(chinese, key=lambda word: (-len(word), word))
    written = [
        f"{_SIGNS}{{0,2}}".join(map(re.escape, "".join(word.split()))) for word in longest_first
    ]
    firsts = "".join(sorted({re.escape(word[0]) for word in chinese}))
    hidden = [
        (name, *entry.split(":"))
        for name, entries in lists.get("hidden", {}).items()
        for entry in entries
    ]
    return SafetyLexicon(
        chinese=re.compile(f"(?=[{firsts}])(?=({'|'.join(written)}))" if chinese else _NOTHING),
        classes=classes,
        longest=max(len(word.split()) for word in classes),
        patterns=[
            (name, re.compile(one))
            for name, own in lists.get("patterns", {}).items()
            for one in own
        ],
        rules=[Rule(**row) for row in lists["rules"]],
        hidden={code: name for name, _, code, _ in hidden},
        sieve=frozenset(int(bucket) for _, bucket, _, _ in hidden),
        lengths=sorted({int(length) for *_, length in hidden if int(length)}),
        everyday=re.compile("|".join(map(re.escape, lists.get("everyday", ()))) or _NOTHING),
    )


def hashed(folded: str) -> str:
    """The first digits of the SHA-256 of a folded word."""
    return sha256(folded.encode()).hexdigest()[:24]


def bare(folded: str) -> str:
    """A match without the signs that may stand between its characters."""
    return re.sub(_SIGNS, "", folded)


def offences(texts: Sequence[str], language: Language) -> list[float]:
    """The probability that each text is offensive, calibrated on public sets and our own texts (Platt scaling)."""
    return _scores(map(fold, texts), language, OFFENSIVE)


def offence(text: str, language: Language) -> float:
    """`offences` of one text."""
    return offences([text], language)[0]


def _scores(texts: Iterable[str], language: Language, folder: str) -> list[float]:
    model = load_classifier(folder, language)
    spelled = [find_language(language).joint.join(folded.split()) for folded in texts]
    read_together(spelled, model.features)
    return [model.score(text).score for text in spelled]


def find_contempt(text: str, language: Language, listed: Sequence[Evidence]) -> list[Evidence]:
    """Further evidence on a message that may be offensive: what it says of whom. `listed`: evidence of the lists.

    `group.named`: a sentence names a group of people (origin, sex, faith, ...); `offensive.attack`: one
    about a group compares with animals, generalises contempt or calls for exclusion; `offensive` of layer `masked`: the
    score of a classifier that reads the text without its names of groups, so that no name is evidence; `mention`: the
    message quotes, reports or rejects prejudice, or uses a slur for its speaker.
    """
    patterns = language_patterns(INSULTS, language)
    low = load_classifier(OFFENSIVE, language).low()
    sentences = [(*match.span(), fold(match[0])) for match in _SENTENCES.finditer(text)]
    naming = any(
        patterns["named"].search(patterns["besides"].sub(" ", one)) for *_, one in sentences
    )
    slurs = [one for one in listed if one.category == "offensive.slur"]
    # Who speaks of himself may insult himself.
    others = patterns["others"].search(fold(text)) and not patterns["first"].search(fold(text))
    found = [Evidence("group", "group.named", 1.0)] if naming or others else []
    for (start, end, one), (*_, after) in zip(
        sentences, [*sentences[1:], (0, 0, "")], strict=False
    ):
        about = any(start <= slur.start < end for slur in slurs) or any(
            patterns[name].search(patterns["besides"].sub(" ", one)) for name in ("named", "others")
        )
        both = f"{one} {after}"
        # In a long message the sentences themselves must be offensive.
        if (
            about
            and patterns["attacks"].search(both)
            and (len(sentences) < _FEW or offence(both, language) >= low)
        ):
            found.append(Evidence("attack", "offensive.attack", 0.6, start, end))
            break
    [masked] = _scores([mask_groups(text, language)], language, MASKED)
    found.append(Evidence("masked", "offensive", masked))
    own = any(
        patterns["self"].search(fold(text[max(0, slur.start - _BEFORE) : slur.start]))
        for slur in slurs
    )
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


# Politics are a public matter and a stance on it in one sentence, by rules and by a classifier.
# The classifier counts where the message names a public matter, or where it is far surer than by chance. Both together
# are sure; one alone is for a person or a guard model to decide. For a companion, whose long kind replies mislead the
# classifier, it counts only with a rule.
def find_political(
    text: str, language: Language, terms: frozenset[str] = frozenset(), seeker: bool = True
) -> Evidence | None:
    """The evidence of politics in a message of the seeker's or the companion's; each of your own `terms` is a rule."""
    signal = find_signal(
        fold_spelling(text, language), load_classifier(POLITICAL_DATA, language), terms, seeker
    )
    if signal is None:
        return None
    return Evidence(
        "political",
        POLITICAL,
        signal.score,
        *spelling_place(text, language, signal.start, signal.end),
    )


def find_signal(
    folded: str, model: NgramClassifier, terms: frozenset[str] = frozenset(), seeker: bool = True
) -> Reading | None:
    """As `find_political`, for a folded text: AGREED or EITHER, and the place in that text."""
    rules = language_patterns(f"detect/{POLITICAL_DATA}/rules", model.language)
    sentences = _CLAUSE.finditer(folded) if rules["matter"].search(folded) else ()
    stances = (
        one for one in sentences if all(rules[name].search(one[0]) for name in ("matter", "stance"))
    )
    stated = (one.span() for one in stances if not rules["everyday"].search(one[0]))
    named = ((at, at + len(term)) for term in sorted(terms) if (at := folded.find(term)) >= 0)
    # The first sentence that names a public matter and takes a stance on it, else the first term.
    ruled = next(chain(stated, named), None)
    if ruled is None and not seeker:
        return None
    score, start, end = model.score(folded)
    if ruled is not None:
        return Reading(AGREED if score >= model.low() else EITHER, *ruled)
    public = rules["public"].search(folded, start, end) is not None
    subject = language_data(f"detect/{POLITICAL_DATA}/rules", model.language)["subject"]
    return Reading(EITHER, start, end) if score >= (subject if public else NO_SUBJECT) else None


@lru_cache(maxsize=8)
def read_terms(path: str, language: Language) -> frozenset[str]:
    """Read the user's own terms, one a line (`#` opens a comment), folded; empty for no path. Raises ConfigError."""
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
