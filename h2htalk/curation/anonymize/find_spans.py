"""Personal data in texts: what stays is marked first, then what has a form of its own, then names of all kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from h2htalk.curation.anonymize.allow_list import Allowance, allowances, beside, claimed
from h2htalk.curation.anonymize.chinese.recognizer import find_chinese_many
from h2htalk.curation.anonymize.english.recognizer import find_english_many
from h2htalk.curation.anonymize.ner_models import BUNDLED, NONE, NameFinder, name_finder
from h2htalk.curation.anonymize.normalization import Reading, plain, read
from h2htalk.curation.anonymize.spans import Span, resolve
from h2htalk.curation.anonymize.structured.structured import find_structured
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError, quoted

# A longer text is read in windows: nothing in it can cost more than in a short one, whatever a rule does.
WINDOW = 20_000
# Windows share so many characters twice over: what one cuts, the other reads whole.
MARGIN = 250
# What the English reader says alone; `--ner none` leaves it out.
_READER_ALONE = 0.5
_HAN = re.compile("[\u4e00-\u9fff]")
_HAN_NAME = re.compile("[\u4e00-\u9fff]{2}")
_LATIN_SENTENCE = re.compile(r"[A-Za-z']{1,30}(?:[ ,]{1,3}[A-Za-z']{1,30}){2}")


@dataclass(frozen=True, slots=True)
class _Window:
    """A stretch of a text: `text` begins at `offset`; of what begins in it, `first` to `last` counts."""

    number: int
    text: str
    offset: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Work:
    """A window as the recognisers see it."""

    window: _Window
    reading: Reading
    plain: str  # of what is seen, one character for one
    allowed: tuple[Allowance, ...]
    taken: tuple[Span, ...]  # structured data, in places of `plain`

    def blocked(self) -> list[Span]:
        """What names are not looked for in."""
        return [*self.taken, *(a.span() for a in self.allowed)]


def find_spans(text: str, language: str, *, allow: Sequence[str] = (), ner: str = BUNDLED) -> list[Span]:
    """Personal data in a text, in its order, without overlaps.

    Args:
        text: any text: half surrogate pairs, NUL and millions of characters are read like all else.
        language: `en` or `zh`.
        allow: names that stay, beside the bundled personas and people whom everybody knows.
        ner: `bundled`; `none` for rules alone; or an extra recogniser: `spacy:MODEL`, `gliner:MODEL`.

    Returns:
        spans of the types in `spans.TYPES`; places count characters of `text` as given; scores in [0.5, 1].

    Raises:
        ConfigError: no such language or recogniser.
        MissingExtraError: a recogniser's package is not installed.
    """
    return find_spans_many([text], language, allow=allow, ner=ner)[0]


def find_spans_many(
    texts: Sequence[str], language: str, *, allow: Sequence[str] = (), ner: str = BUNDLED
) -> list[list[Span]]:
    """`find_spans` of each text, in order; recognisers that batch read them together. Arguments and errors as there."""
    if language not in LANGUAGES:
        raise ConfigError(
            f"no recognisers of personal data for language {quoted(language)}; choose from {', '.join(LANGUAGES)}"
        )
    extra = name_finder(ner, language)
    works = [
        _prepared(window, language, allow) for n, text in enumerate(texts) for window in _windows(n, text)
    ]
    found: list[list[Span]] = [[] for _ in texts]
    cut = {work.window.number for work in works if work.window.offset}
    for work, names in zip(works, _names(works, language, ner, extra), strict=True):
        window = work.window
        persons = [
            *beside(work.plain, work.allowed, [*work.taken, *names]),
            *claimed(work.plain, language, allow),
        ]
        spans = resolve([*work.taken, *names, *persons])
        for span in spans:
            start, end = work.reading.place(span.start, span.end)
            if window.first <= start + window.offset < window.last:
                found[window.number].append(
                    replace(span, start=start + window.offset, end=end + window.offset)
                )
    return [resolve(spans) if n in cut else spans for n, spans in enumerate(found)]


def _windows(number: int, text: str) -> Iterator[_Window]:
    """The stretches that a text is read in; a usual one is one."""
    if len(text) <= WINDOW:
        yield _Window(number, text, 0, 0, len(text))
        return
    step = WINDOW - 2 * MARGIN
    for offset in range(0, len(text) - 2 * MARGIN, step):
        end = offset + WINDOW
        last = len(text) if end >= len(text) else end - MARGIN
        yield _Window(number, text[offset:end], offset, offset + MARGIN if offset else 0, last)


def _prepared(window: _Window, language: str, allow: Sequence[str]) -> _Work:
    reading = read(window.text)
    shown = plain(reading.shown)
    allowed = tuple(allowances(shown, language, allow))
    found = find_structured(reading.shown, language)
    if language == "zh" and not _HAN.search(shown):
        found = resolve([*found, *find_structured(reading.shown, "en")])
    stays = [a for a in allowed if a.kind != "title"]
    # A companion's name is no account, whatever stands before it.
    taken = tuple(s for s in found if not any(a.start <= s.start and s.end <= a.end for a in stays))
    return _Work(window, reading, shown, allowed, taken)


def _names(works: Sequence[_Work], language: str, ner: str, extra: NameFinder | None) -> list[list[Span]]:
    """People, addresses and organisations of each window, in places of its `plain`."""
    found: list[list[Span]] = [[] for _ in works]
    english = [n for n, work in enumerate(works) if language == "en" or _is_latin(work.plain)]
    chinese = [n for n, work in enumerate(works) if (language == "zh" or _HAN_NAME.search(work.plain))]
    texts = [works[n].plain for n in english]
    for n, spans in zip(
        english, find_english_many(texts, [works[n].blocked() for n in english]), strict=True
    ):
        found[n] += spans if ner != NONE else [s for s in spans if s.score > _READER_ALONE]
    texts = [works[n].plain for n in chinese]
    for n, spans in zip(
        chinese, find_chinese_many(texts, [works[n].blocked() for n in chinese]), strict=True
    ):
        found[n] += spans
    if extra is not None:
        for n, spans in enumerate(extra([work.plain for work in works])):
            blocked = works[n].blocked()
            found[n] += [s for s in spans if not any(s.overlaps(other) for other in blocked)]
    return found


def _is_latin(text: str) -> bool:
    """Whether a message of a Chinese dialogue is written in Latin letters, and is more than a word or two."""
    return not _HAN.search(text) and _LATIN_SENTENCE.search(text) is not None
