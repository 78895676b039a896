"""The lists that English name rules ask, and a text as tokens: each word, its shape, where a sentence starts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from h2htalk.curation.anonymize.spans import Span
from h2htalk.text.language_data import read_data

_FOLDER = Path(__file__).parent / "words"
_NEITHER = str.maketrans({"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ß": "ss", "æ": "ae", "đ": "d", "ı": "i"})
WORD_NAME, RARE, COMMON = 1, 2, 3


@dataclass(frozen=True, slots=True)
class WordLists:
    """The lists: folded words (lower-case ASCII letters alone)."""

    given: dict[str, int]  # COMMON, RARE, or WORD_NAME for one that is an English word or a place too
    surnames: frozenset[str]
    words: frozenset[str]
    never: frozenset[str]
    hints: dict[str, frozenset[str]]
    known: dict[str, tuple[tuple[str, ...], ...]]  # public and invented people, by their first word
    works: dict[str, tuple[tuple[str, ...], ...]]  # works, brands, dishes and sayings that hold a name


@cache
def words() -> WordLists:
    """The lists, read once (about 30 ms)."""
    raw: dict[str, str] = {}
    for name in ("hints.toml", "grammar.toml"):
        raw |= read_data(_FOLDER / name)
    hints = {key: frozenset(value.split()) for key, value in raw.items()}
    given = dict.fromkeys(_listed("given_rare.txt"), RARE)
    given |= dict.fromkeys([*_listed("given_common.txt"), *map(folded, hints["given_more"])], COMMON)
    ordinary = frozenset(_listed("words.txt"))
    given |= dict.fromkeys([*_listed("given_words.txt"), *hints["given_words_more"]], WORD_NAME)
    given |= {word: WORD_NAME for word in given if word in ordinary}
    given |= {word: WORD_NAME for word in given if word in hints["named_after_places"]}
    given |= dict.fromkeys(map(folded, hints["given_after_all"]), COMMON)
    for word in hints["never_given"] | hints["makes"] | (hints["places"] - hints["named_after_places"]):
        given.pop(word, None)
    for word in (hints["titles"] | hints["kin"]) - {"nan", "nana", "pal", "sis"}:
        given.pop(word, None)
    surnames = frozenset(_listed("surnames.txt")) - hints["never_given"] - hints["makes"]
    never = hints["never_given"] | hints["makes"]
    known, works = _phrases(raw["known_people"]), _phrases("\n".join(_lines("works.txt")))
    return WordLists(given, surnames, ordinary | never, never, hints, known, works)


def _phrases(text: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Names of one or several words, parted by `|` or line ends, by their first word; the longest first."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for entry in re.split(r"[|\n]", text):
        if parts := tuple(map(folded, entry.split())):
            found.setdefault(parts[0], []).append(parts)
    return {word: tuple(sorted(each, key=len, reverse=True)) for word, each in found.items()}


@cache
def hint(key: str) -> frozenset[str]:
    """One of the small sets of words of hints.toml and grammar.toml, by its name there."""
    return words().hints[key]


@cache
def endings() -> tuple[str, ...]:
    """How English words end that the list may lack."""
    return tuple(hint("endings"))


def _lines(name: str) -> list[str]:
    """The lines of a text file, without its comments."""
    lines = (_FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _listed(name: str) -> list[str]:
    return " ".join(_lines(name)).split()


def is_word(word: str) -> bool:
    """Whether English has it as a word, by the list or by how it ends ("explosive", and not the surname "Manning")."""
    lists = words()
    if word in lists.words:
        return True
    return len(word) > 6 and word.endswith(endings()) and word not in lists.surnames and word not in lists.given


def folded(word: str) -> str:
    """Lower-case ASCII letters where there are such: Zoë is zoe, O'Malley omalley; other letters stay."""
    if not word.isascii():
        parts = unicodedata.normalize("NFKD", word.translate(_NEITHER))
        word = "".join(c for c in parts if not unicodedata.combining(c))
    return word.lower().replace("'", "").replace("’", "").replace("-", "")


# --- A text as tokens with what the rules ask of each ---

# Letters, with an apostrophe or a hyphen only between letters: O'Malley, Hye-jin, don't.
_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# Between two words of one sentence stands nothing but these.
_INNER = frozenset(" ,;&/'’()-–_*~\t0123456789#@+")
_POSSESSIVE = ("'s", "’s", "'S", "’S")
_SHORTENED = tuple(mark + part for mark in "'’" for part in ("ll", "re", "ve", "d", "m", "t"))
_ARTICLED = re.compile(r"(?:al-|el-|d['’]|de-)[A-Z]")  # al-Rashid, d'Angelo
_GLUE = frozenset("@_/\\")  # part of an address in the net, not of a sentence
_JOINED = re.compile(r"[a-z][A-Z]")
# How Korean given names are written: Hye-jin, Soo-Ah.
_KOREAN = re.compile(r"[A-Z][a-z]{1,4}-[A-Za-z][a-z]{1,4}")
LOWER, CAPITAL, UPPER, INITIAL = range(4)


@dataclass(slots=True)
class Tokens:
    """The words of a text, lists of one length: place i speaks of word i."""

    text: str
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # without a possessive 's
    words: list[str] = field(default_factory=list)  # folded
    kinds: list[int] = field(default_factory=list)  # what the lists of given names say; 0 where they do not hold it
    shapes: list[int] = field(default_factory=list)
    opens: list[bool] = field(default_factory=list)  # first of its sentence
    possessive: list[bool] = field(default_factory=list)
    spaced: list[bool] = field(default_factory=list)  # nothing but one space between this word and the one before
    blocked: list[bool] = field(default_factory=list)  # part of other personal data, of a title, of a known name

    def __len__(self) -> int:
        return len(self.words)

    def word(self, index: int) -> str:
        """The folded word at a place; empty before the first and after the last."""
        return self.words[index] if 0 <= index < len(self.words) else ""

    def gap(self, index: int) -> str:
        """What stands between a word and the one before it (of a long stretch the last characters)."""
        before = self.ends[index - 1] if index else 0
        return self.text[max(before, self.starts[index] - 12) : self.starts[index]]

    def after(self, index: int, length: int = 3) -> str:
        """The characters that follow a word."""
        return self.text[self.ends[index] : self.ends[index] + length]

    def same_clause(self, index: int) -> bool:
        """No mark and no line end stands between the word and the one before it."""
        return 0 < index < len(self.words) and not self.opens[index] and "," not in self.gap(index)

    def block(self, spans: Iterable[Span]) -> None:
        """Words that lie in a span are nobody's name from now on. Spans in any order."""
        ordered = sorted(spans)
        index = 0
        for span in ordered:
            while index < len(self.words) and self.ends[index] <= span.start:
                index += 1
            while index < len(self.words) and self.starts[index] < span.end:
                self.blocked[index] = True
                index += 1


def tokenize(text: str, taken: Sequence[Span] = ()) -> Tokens:
    """The words of a text, those within `taken` blocked. Linear in the text's length."""
    tokens = Tokens(text)
    before = 0
    title = False
    known_titles = words().hints["titles"]
    for match in _TOKEN.finditer(text):
        raw = match[0]
        start, end = match.span()
        possessive = raw.endswith(_POSSESSIVE) and len(raw) > 2
        if possessive:
            raw = raw[:-2]
        gap = text[before:start] if start - before < 12 else "\n"
        word, kind = _read(raw)
        # Digits stay in the sentence, but what they count starts nothing; a point after "Dr" ends nothing.
        inner = all(c in _INNER for c in gap) or (title and gap in (". ", "."))
        tokens.starts.append(start)
        tokens.ends.append(start + len(raw))
        tokens.words.append(word)
        tokens.kinds.append(kind)
        tokens.shapes.append(_shape(raw))
        tokens.opens.append(before == 0 or not inner)
        tokens.possessive.append(possessive)
        tokens.spaced.append(gap in (" ", ". ") if title else gap == " ")
        glued = text[start - 1 : start] in _GLUE or text[end : end + 1] in _GLUE
        tokens.blocked.append(glued or raw.lower().endswith(_SHORTENED))
        before = end
        title = word in known_titles or word == "st"
    tokens.block(taken)
    _block_known(tokens)
    return tokens


@lru_cache(maxsize=65_536)
def _read(raw: str) -> tuple[str, int]:
    """A word folded, and its kind. Of a word with a hyphen the parts are asked: Jean-Luc is a name, Self-Help none."""
    lists = words()
    word = folded(raw)
    kind = lists.given.get(word, 0)
    if not kind and len(word) > 4 and word.endswith("s") and lists.given.get(word[:-1]) == COMMON:
        # "sarahs mom": a possessive in a hurry, unless it is a word or a surname ("williams").
        kind = 0 if is_word(word) or word in lists.surnames else RARE
    if not kind and len(word) > 4 and word[-1] == word[-2] and word not in lists.words:
        # "jaydenn", "sarahhh": a name drawn out.
        kind = min(RARE, lists.given.get(word.rstrip(word[-1]) + word[-1], 0))
    if kind or "-" not in raw:
        return word, kind
    parts = [folded(part) for part in raw.split("-") if part]
    if parts and parts[0] in hint("kin"):
        return parts[0], 0  # brother-in-law
    if all(is_word(part) or len(part) == 1 for part in parts):
        return parts[-1] if is_word(parts[-1]) else word, 0
    kinds = [lists.given.get(part, 0) for part in parts]
    if _KOREAN.fullmatch(raw):
        return word, COMMON
    if kinds[0] >= RARE or (kinds[0] and parts[-1] in lists.surnames):
        return word, max(RARE, kinds[0])
    return word, 0


def _shape(raw: str) -> int:
    if raw[0].islower() and not _ARTICLED.match(raw):
        return LOWER
    if len(raw) == 1:
        return INITIAL
    if (
        _JOINED.search(raw)
        and not raw.startswith(("Mc", "Mac", "De", "La", "Le", "Di", "Van", "O'", "O’"))
        and "-" not in raw
    ):
        return LOWER  # "RelationshipsGoneRight"
    return UPPER if raw.isupper() else CAPITAL


def _block_known(tokens: Tokens) -> None:
    """Block public and invented people, works and brands; "my name is Tom Hanks" and "my aunt Alexa" stay open."""
    known, works = words().known, words().works
    for index, word in enumerate(tokens.words):
        for name in (*known.get(word, ()), *works.get(word, ())):
            end = index + len(name)
            if tuple(tokens.words[index:end]) == name and not _is_told(tokens, index):
                tokens.blocked[index:end] = [True] * len(name)
                break


def _is_told(tokens: Tokens, index: int) -> bool:
    before = tokens.word(index - 1)
    return before in words().hints["kin"] or (before == "is" and tokens.word(index - 2) == "name")
