"""Names of people and addresses in Chinese text. Organisations are not looked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import log

from h2htalk.curation.anonymize.chinese.addresses import addresses, widen_addresses
from h2htalk.curation.anonymize.chinese.name_segmenter import (
    BEFORE,
    KIN,
    STRONG,
    Segment,
    is_letter,
    left_cue,
    listed_characters,
    ordinary,
    right_cue,
    segment_text,
    surnames,
)
from h2htalk.curation.anonymize.chinese.words import dictionary, patterns, sections, tags, usual, words
from h2htalk.curation.anonymize.english.persons import RARE, folded
from h2htalk.curation.anonymize.english.persons import words as english_words
from h2htalk.curation.anonymize.spans import Span, plain, resolve_overlaps
from h2htalk.text.chinese_characters import simplified

_RE = patterns("recognizer")

# Stands where something was found before or must not be read. No letter, so that nothing runs over it.
MASK = "\u25a1"
LONGEST_STRETCH = 1000  # characters read at once
_CUTS = (re.compile("[\n。！？!?；;]+"), re.compile("[，,、 ]+"))


def reads(text: str) -> bool:
    """Whether a message of a dialogue in another language holds Chinese words."""
    return _RE["han_name"].search(text) is not None


def known_figures() -> list[str]:
    """Names of public and fictional figures that are long enough to belong to nobody else."""
    return [name for name in sections("public_figures")[""] | sections("cedict")["figures"] if len(name) > 2]


def find_names(texts: Sequence[str], taken: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """Find people and addresses in Chinese texts: jieba's dictionary with priors for names, and rules.

    A person's span is the whole form of address (小王, 张老师), an address goes from its first word to its last.
    Public and fictional figures and what stands in 《》 are left out; so is a city or a country alone.

    Args:
        texts: n texts of any length; time is proportional to it.
        taken: for each of them spans found before; nothing is found inside them.

    Returns:
        n lists of PERSON and ADDRESS spans that do not overlap. Scores 0.5 to 0.95: a ranking, no
        probability.
    """
    return [_find_in_text(text, spans) for text, spans in zip(texts, taken, strict=True)]


def _find_in_text(text: str, taken: Sequence[Span]) -> list[Span]:
    masked = _masked(simplified(plain(text)), ((span.start, span.end) for span in taken))
    spans: list[Span] = []
    for start, end in _stretches(masked):
        if _RE["nameable"].search(masked, start, end):
            # Resolved stretch by stretch: the time that it takes grows with the square of their number.
            spans += resolve_overlaps(_find(masked[start:end], start))
    return spans


def _masked(text: str, places: Iterable[tuple[int, int]]) -> str:
    parts = []
    at = 0
    for start, end in sorted(places):
        if end > at:
            start = max(start, at)
            parts += [text[at:start], MASK * (end - start)]
            at = end
    return "".join([*parts, text[at:]]) if parts else text


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Pieces of bounded length, cut where sentences or clauses end, else anywhere."""
    start = 0
    while len(text) - start > LONGEST_STRETCH:
        end = start + LONGEST_STRETCH
        for mark in _CUTS:
            cuts = [found.end() for found in mark.finditer(text, start + LONGEST_STRETCH // 2, end)]
            if cuts:
                end = cuts[-1]
                break
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _find(stretch: str, offset: int) -> Iterator[Span]:
    seen, at = _without(stretch, _RE["lettered"])
    close, joined = _without(seen, _RE["spaced"])
    segments = segment_text(seen)
    titles = [found.span() for found in _RE["titled"].finditer(seen)]
    near = segments if close == seen else segment_text(close)
    wide = widen_addresses(close, sorted(addresses(close, near)), near)
    placed = [Span(joined[start], joined[end - 1] + 1, "ADDRESS", score) for start, end, score in wide]
    blocked = [*titles, *((span.start, span.end) for span in placed)]
    people = [
        Span(start, end, "PERSON", score)
        for start, end, score in persons(seen, segments)
        if not any(start < last and first < end for first, last in blocked)
    ]
    for span in (*placed, *people):
        yield Span(offset + at[span.start], offset + at[span.end - 1] + 1, span.type, span.score)


def _without(text: str, dropped: re.Pattern[str]) -> tuple[str, Sequence[int]]:
    """The text without what a pattern finds, and where each of its characters stood."""
    gaps = [found.span() for found in dropped.finditer(text)]
    if not gaps:
        return text, range(len(text))
    left = list(range(len(text)))
    for start, end in reversed(gaps):
        del left[start:end]
    return "".join(text[at] for at in left), left


# --- People: which of the names that the segmenter reads are private persons' ---

_PERSON = patterns("persons")

_SCORES = {"full": 0.85, "title": 0.8, "nick": 0.75, "given": 0.65, "doubled": 0.65, "foreign": 0.7, "surname": 0.6}
_LONGEST_PUBLIC = 10
_NAMES = frozenset({"nr", "nrfg", "nrt"})
_RARE_SURNAME, _FREQUENT_SURNAME = log(0.002), log(0.0055)
_EVERYDAY = 60  # occurrences in the dictionary's corpus


@cache
def _public() -> frozenset[str]:
    return sections("public_figures")[""] | sections("things")[""] | sections("cedict")["figures"]


@cache
def _public_starts() -> frozenset[str]:
    return frozenset(name[:2] for name in _public())


def persons(text: str, segments: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each person; none overlap.

    Args:
        segments: the text's segments (`name_segmenter.segment_text`).
    """
    dotted = [found.span() for found in _PERSON["dotted"].finditer(text)]
    named = [s for s in segments if s.shape and not any(a < s.end and s.start < b for a, b in dotted)]
    # Whom a text introduces as a figure is one wherever it names them.
    figures = {text[s.start : s.end] for s in named if _known(text, s)}
    for segment in named:
        if text[segment.start : segment.end] in figures or _is_word(text, segment):
            continue
        score = _SCORES[segment.shape.partition("+")[0]]
        yield segment.start, segment.end, min(0.95, score + (0.1 if segment.cue >= KIN else 0.0))
    for hit in _PERSON["parent"].finditer(text):
        if hit["child"] not in _NO_CHILD and not _listed(text, hit.start(), hit.end()):
            yield hit.start(), hit.end(), 0.65
    for start, end in dotted:
        figure = _PERSON["famous"].search(text[max(0, start - 6) : start])
        figure = figure or _PERSON["theory"].match(text, end) or _PERSON["law"].match(text, end)
        if not figure and not _listed(text, start, end):
            yield start, end, 0.7
    yield from latin_names(text)


_NO_CHILD = frozenset(
    "陪想问试劝帮聊说走坐抱亲听写管催妈爸爷奶姥婆公哥姐弟妹叔姑舅姨宝常天人个家时刚偷悄慢渐默轻狠好早乖等看谢骂哭笑"
)
_LONG_TITLES = ("妈妈", "爸爸", "奶奶", "爷爷")


def _is_word(text: str, segment: Segment) -> bool:
    """Whether the characters are rather words: in the dictionary, or a rare surname before what no name is made of."""
    start, end = segment.start, segment.end
    if segment.shape == "surname" or _PERSON["naming"].search(text, max(start - 5, 0), start):
        return False
    word, shape = text[start:end], segment.shape
    if word in ordinary() or word in words("persons", "context", "kin"):
        return True
    if shape in ("full", "given") and segment.cue < STRONG and word in sections("cedict")["words"]:
        return True
    if _weakly_placed(text, segment):
        return True
    if usual(word, 5 if tags().get(word, "nr") not in _NAMES else _EVERYDAY):
        # The dictionary calls many words names; behind "my sister" a name may be a rarer word.
        family = surnames().get(word[0], -99.0) > _FREQUENT_SURNAME or word[0] == "小"
        if word[0] in "老小" and surnames().get(word[1:], -99.0) > _FREQUENT_SURNAME:
            return False
        if shape == "foreign" and right_cue(text, end) > 1 and tags().get(word, "nr") in _NAMES:
            return False
        return segment.cue < KIN or (usual(word, 100) and not (family and tags().get(word) in _NAMES))
    if shape == "given+title" and len(word) == 4 and usual(word[:2], 5) and usual(word[2:], 5):
        return True  # 学长学姐
    if len(word) > 2 and segment.cue < STRONG and dictionary()[0].get(word) == 0:
        return True  # 万念俱灰: a word of the dictionary begins so
    if word.endswith("老师") and _PERSON["teaching"].match(text, end):
        return True
    own = _PERSON["own"].search(text, max(start - 10, 0), start) is not None
    if shape == "full+title" and word.endswith("老师") and not own and _PERSON["speaking"].match(text[end : end + 20]):
        return True  # who teaches in public
    if shape == "title" and (word.endswith(_LONG_TITLES) or word[0] == "于") and is_letter(text, start - 1):
        return word[0] in "向于对从"
    if segment.cue >= KIN:
        return False
    if shape == "foreign":
        return right_cue(text, end) < 1
    if shape != "full":
        return False
    rare = surnames().get(word[:2], surnames().get(word[0], -99.0)) < _RARE_SURNAME
    if not listed_characters(word) and (rare or len(word) == 2) and word[0] != word[1]:
        return True
    # 像盛满水, 欢乐颂安迪: what something is like, and two characters with nothing before that announces a name.
    return text[start - 1 : start] == "像" or (
        rare and len(word) == 2 and (segment.cue < 0 or right_cue(text, end) < 0.6)
    )


def _weakly_placed(text: str, segment: Segment) -> bool:
    """Whether nothing on either side says that a person is meant; real chat has more such words than such names."""
    shape, left, right = segment.shape, segment.cue, right_cue(text, segment.end)
    if left < 0 and shape in ("full+title", "foreign+title"):
        return True
    if shape == "full":
        long = segment.end - segment.start > 2 and listed_characters(text[segment.start : segment.end])
        return (right < 0 and left < (0 if long else BEFORE)) or (right < 1 and left < 0 and not long)
    return left < BEFORE and ((shape == "given" and right < 0) or (shape == "doubled" and right < 1))


def _known(text: str, segment: Segment) -> bool:
    """Whether a public or fictional figure is meant: by the list, or by what is said of the work."""
    if segment.cue < STRONG and _listed(text, segment.start, segment.end):
        return True
    if segment.cue >= KIN or "+" in segment.shape or segment.shape in ("title", "nick"):
        return False
    before = text[max(0, segment.start - 8) : segment.start]
    return _PERSON["work"].match(text, segment.end) is not None or _PERSON["famous"].search(before) is not None


def _listed(text: str, start: int, end: int) -> bool:
    """Whether a name of the list holds this one, or starts it (its title follows)."""
    names = _public()
    for first in range(max(0, start - 4), start + 1):
        if text[first : first + 2] not in _public_starts():
            continue
        for last in range(max(first + 2, start + 2), min(len(text), first + _LONGEST_PUBLIC) + 1):
            if text[first:last] in names and (last >= end or first == start):
                return True
    return False


# --- Names in Latin letters inside Chinese text: `Kevin`, `David Chen`, `liu yang` ---

_LATIN = patterns("latin_names")

_PREFIX = "阿小老"
_LONGEST_RUN = 4  # more Latin words in a row are a foreign sentence
_BEFORE = 1.9


@cache
def _lowered(file: str, section: str) -> frozenset[str]:
    return frozenset(name.lower() for name in sections(file)[section])


def latin_names(text: str) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each English given name or pinyin, from left to right."""
    run: list[re.Match[str]] = []
    for word in _LATIN["word"].finditer(text):
        if run and text[run[-1].end() : word.start()] not in (" ", "·"):
            yield from _in_run(text, run)
            run = []
        run.append(word)
    yield from _in_run(text, run)


def _in_run(text: str, run: list[re.Match[str]]) -> Iterator[tuple[int, int, float]]:
    public = _lowered("public_figures", "")
    if not run or len(run) > _LONGEST_RUN or text[run[0].start() : run[-1].end()].lower() in public:
        return
    at = 0
    while at < len(run):
        size, score = _name(text, run, at)
        start, end = run[at].start(), run[at + max(size, 1) - 1].end()
        if size and text[start:end].lower() not in public:
            yield *_titled(text, start, end), score
        at += max(size, 1)


def _titled(text: str, start: int, end: int) -> tuple[int, int]:
    """With the form of address on either side: 阿May, Vivian姐."""
    title = _LATIN["title"].match(text, end)
    before = text[start - 1 : start]
    return start - 1 if before and before in _PREFIX else start, title.end() if title else end


def _name(text: str, run: list[re.Match[str]], at: int) -> tuple[int, float]:
    """How many words from `at` on are a name, and how sure that is."""
    first, second = run[at].group(), run[at + 1].group() if at + 1 < len(run) else ""
    left = left_cue(text, run[at].start()) if at == 0 else 0.0
    surnames = sections("foreign_names")["pinyin_surnames"]
    listed = first.lower() in _lowered("foreign_names", "latin")
    if listed and (left >= KIN or first.lower() not in _lowered("foreign_names", "latin_words")):
        if second[:1].isupper() and first[0].isupper() and (second.lower() in surnames or len(run) == 2):
            return 2, 0.85
        return (1, 0.8) if first[0].isupper() or len(run) == 1 else (0, 0.0)
    if len(run) == 1 and _is_cued(text, run[at], left):
        return 1, 0.7
    alike = bool(second) and first[0].isupper() == second[0].isupper()
    if alike and _two_words(first.lower(), second.lower(), surnames):
        around = max(left, right_cue(text, run[at + 1].end()))
        if first[0].isupper() or around > _BEFORE or left > 1.0:
            return 2, 0.8
    return 0, 0.0


def _is_cued(text: str, found: re.Match[str], left: float) -> bool:
    """A capitalised word that the English lists know as a given name, or that stands with a form of address."""
    word, name, lists = found.group(), folded(found.group()), english_words()
    if not word[0].isupper() or (word.isupper() and len(word) > 1):
        return False
    titled = _titled(text, *found.span()) != found.span() and name not in lists.never
    kind = lists.given.get(name, 0)
    return titled or kind >= RARE or (kind > 0 and left >= KIN)


def _two_words(first: str, second: str, surnames: frozenset[str]) -> bool:
    english = sections("foreign_names")["english"]
    surname, given = (first, second) if first in surnames else (second, first)
    return surname in surnames and english.isdisjoint((surname, given)) and _LATIN["given"].fullmatch(given) is not None
