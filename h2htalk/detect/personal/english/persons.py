"""English text as tokens, and which of them are names of persons.

A word is a candidate by its kind: a frequent given name ("josh"), a rarer one ("Bronwyn"), one that is an English word
or a place too ("Grace", "will"), or one that no list holds and that stands with a capital where English writes none.
The less the word says by itself, the more the words around it must say, and how they are written.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

from h2htalk.detect.personal.spans import Span
from h2htalk.text.language_data import read_data, read_lines

_FOLDER = Path(__file__).parent / "words"
_NEITHER = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "ß": "ss", "æ": "ae", "đ": "d", "ı": "i"}
)
WORD_NAME, RARE, COMMON = 1, 2, 3
_PLANTED = 9  # words on either side of a plant's name that say that it is one
_SHORTEST_PLURAL = 4
_NAMING = frozenset(("named", "called"))
# How words for people end: cashier, doctor, dentist, musician, patient, employee, actress, postman, classmate.
_ENDINGS_OF_PEOPLE = ("er", "or", "ist", "ian", "ant", "ent", "ee", "ess", "man", "woman", "mate")
LOWER, CAPITAL, UPPER, INITIAL = range(4)


@dataclass(frozen=True, slots=True)
class WordLists:
    """The lists: folded words (lower-case ASCII letters alone)."""

    given: dict[
        str, int
    ]  # COMMON, RARE, or WORD_NAME for one that is an English word or a place too
    surnames: frozenset[str]
    words: frozenset[str]
    never: frozenset[str]  # no names, whatever stands beside them
    hints: dict[str, frozenset[str]]
    known: dict[str, tuple[tuple[str, ...], ...]]  # public and invented people, by their first word
    works: dict[
        str, tuple[tuple[str, ...], ...]
    ]  # works, brands, dishes and sayings that hold a name
    named_like_people: frozenset[
        str
    ]  # of what everybody knows, what is written like a full name and is nobody's


@cache
def words() -> WordLists:
    """The lists, read once (about 30 ms)."""
    raw: dict[str, str] = {}
    for name in ("hints", "grammar", "organization_words", "address_words"):
        raw |= read_data(_FOLDER / f"{name}.toml")
    hints = {key: frozenset(value.split()) for key, value in raw.items()}
    names = ("given_rare", "given_common", "words", "given_words", "surnames")
    rare, common, ordinary, given_words, surnames = (
        " ".join(read_lines(_FOLDER / f"{name}.txt")).split() for name in names
    )
    given = dict.fromkeys(rare, RARE) | dict.fromkeys(
        [*common, *map(folded, hints["given_more"])], COMMON
    )
    given |= dict.fromkeys([*given_words, *hints["given_words_more"]], WORD_NAME)
    given |= dict.fromkeys(given.keys() & hints["named_after_places"].union(ordinary), WORD_NAME)
    given |= dict.fromkeys(map(folded, hints["given_after_all"]), COMMON)
    never = hints["never_given"] | hints["makes"]
    called = (hints["titles"] | hints["kin"]) - {"nan", "nana", "pal", "sis"}
    for word in never | (hints["places"] - hints["named_after_places"]) | called:
        given.pop(word, None)
    known = _phrases(raw["known_people"])
    works = _phrases("\n".join(read_lines(_FOLDER / "works.txt")))
    no_names = never | hints["kin"] | hints["titles"]
    things = frozenset(
        " ".join(map(folded, name.split())) for name in re.split(r"[|\n]", raw["named_like_people"])
    )
    return WordLists(
        given=given,
        surnames=frozenset(surnames) - never,
        words=never.union(ordinary),
        never=no_names,
        hints=hints,
        known=known,
        works=works,
        named_like_people=things,
    )


def _phrases(text: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Names of one or several words, parted by `|` or line ends, by their first word; the longest first."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for entry in re.split(r"[|\n]", text):
        if parts := tuple(map(folded, entry.split())):
            found.setdefault(parts[0], []).append(parts)
    return {word: tuple(sorted(each, key=len, reverse=True)) for word, each in found.items()}


@cache
def public_names() -> tuple[str, ...]:
    """Names of people and figures whom everybody knows, and of works, as they are written."""
    folder = Path(__file__).parents[1] / "public_figures"
    lines = [line for file in sorted(folder.glob("*_en.txt")) for line in read_lines(file)]
    return tuple(name for line in lines for name in line.split("|"))


def hint(key: str) -> frozenset[str]:
    """One of the small sets of words of the lists, by its name there."""
    return words().hints[key]


def is_word(word: str) -> bool:
    """Whether English has it as a word, by the list or by how it ends ("explosive", "Jungian", and not "Manning")."""
    lists = words()
    if word in lists.words or (
        word.endswith(("ian", "ians")) and word.rstrip("s")[:-3] in lists.known
    ):
        return True
    named = word in lists.surnames or word in lists.given
    if not named and len(word) > _SHORTEST_PLURAL and word[-1] == "s" and word[:-1] in lists.words:
        return True
    return len(word) > 6 and not named and word.endswith(tuple(hint("endings")))


def folded(word: str) -> str:
    """Lower-case ASCII letters where there are such: Zoë is zoe, O'Malley omalley; other letters stay."""
    if not word.isascii():
        parts = unicodedata.normalize("NFKD", word.translate(_NEITHER))
        word = "".join(c for c in parts if not unicodedata.combining(c))
    return re.sub("['’-]", "", word.lower())


# --- A text as tokens with what the rules ask of each ---

# Letters, with an apostrophe or a hyphen only between letters: O'Malley, Hye-jin, don't.
_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# Between two words of one sentence stands nothing but these. Digits stay in it, but what they count starts nothing.
_INNER = frozenset(" ,;&/'’()-–_*~\t0123456789#@+")
_POSSESSIVE = ("'s", "’s", "'S", "’S")
_SHORTENED = tuple(mark + part for mark in "'’" for part in ("ll", "re", "ve", "d", "m", "t"))
_ARTICLED = re.compile(r"(?:al-|el-|d['’]|de-)[A-Z]")  # al-Rashid, d'Angelo
_GLUE = frozenset("@_/\\")  # part of an address in the net, not of a sentence
# What Markdown sets off: _word_, __two words__. Its marks glue nothing, and stand between the words of a name.
_EMPHASIS = re.compile(
    r"(?<![^\W_])(?<!_)(_{1,3})(?=[^\W_])[^_\n]{1,80}(?<=[\w.,!?])\1(?![^\W_])(?!_)"
)
_MARKED = str.maketrans("", "", "*_")


class Tokens:
    """The words of a text, lists of one length: place i speaks of word i. Linear in the text's length."""

    def __init__(self, text: str, taken: Sequence[Span] = ()) -> None:
        """Words within `taken`, and those of known people and of works, are blocked."""
        self.text, places = text, [match.span() for match in _TOKEN.finditer(text)]
        self.starts = [start for start, _ in places]
        self.possessive = [
            end - start > 2 and text[end - 2 : end] in _POSSESSIVE for start, end in places
        ]
        self.ends = [
            end - 2 * has_s for (_, end), has_s in zip(places, self.possessive, strict=True)
        ]
        raws = [text[start:end] for start, end in zip(self.starts, self.ends, strict=True)]
        self.words = [_read(raw)[0] for raw in raws]  # folded
        self.kinds = [
            _read(raw)[1] for raw in raws
        ]  # what the lists of given names say; 0 where they do not hold it
        self.shapes = list(map(_shape, raws))
        self.opens: list[bool] = []  # first of its sentence
        self.blocked: list[bool] = []  # part of other personal data, of a title, of a known name
        before = 0
        title = False
        emphasis = _emphasis_marks(text)
        titles = hint("titles")
        may_be_glued = any(mark in text for mark in _GLUE)
        for (start, end), raw, word in zip(places, raws, self.words, strict=True):
            gap = text[before:start] if start - before < 12 else "\n"
            # A point after "Dr" ends nothing.
            inner = gap == " " or _INNER.issuperset(gap) or (title and gap in (". ", "."))
            self.opens.append(before == 0 or not inner)
            glued = False
            if may_be_glued:
                glued = text[start - 1 : start] in _GLUE and start - 1 not in emphasis
                glued |= text[end : end + 1] in _GLUE and end not in emphasis
            shortened = ("'" in raw or "’" in raw) and raw.lower().endswith(_SHORTENED)
            self.blocked.append(glued or shortened)
            before = end
            title = word in titles or word == "st"
        # Whether its writer uses capitals.
        opening = (shape for opens, shape in zip(self.opens, self.shapes, strict=True) if opens)
        self.cased = CAPITAL in opening or re.search(r"\bI\b", text) is not None
        self.block(taken)
        lists = words()
        for index, word in enumerate(self.words):
            if word not in lists.known and word not in lists.works:
                continue
            before_it = self.word(index - 1)
            if before_it in lists.hints["kin"] or (
                before_it == "is" and self.word(index - 2) == "name"
            ):
                continue  # "my name is Tom Hanks", "my aunt Alexa"
            for name in (*lists.known.get(word, ()), *lists.works.get(word, ())):
                if tuple(self.words[index : index + len(name)]) == name:
                    self.blocked[index : index + len(name)] = [True] * len(name)
                    break

    def __len__(self) -> int:
        return len(self.words)

    def word(self, index: int) -> str:
        """The folded word at a place; empty before the first and after the last."""
        return self.words[index] if 0 <= index < len(self.words) else ""

    def gap(self, index: int) -> str:
        """What stands between a word and the one before it (of a long stretch the last characters)."""
        before = self.ends[index - 1] if index else 0
        return self.text[max(before, self.starts[index] - 12) : self.starts[index]]

    def block(self, spans: Iterable[Span]) -> None:
        """Words that lie in a span are nobody's name from now on."""
        for span in spans:
            first = bisect_right(self.ends, span.start)
            last = bisect_left(self.starts, span.end)
            self.blocked[first:last] = [True] * (last - first)


def _emphasis_marks(text: str) -> set[int]:
    """Where the underscores stand with which Markdown sets words off."""
    marks = set[int]()
    for found in _EMPHASIS.finditer(text) if "_" in text else ():
        size = len(found[1])
        marks.update(range(found.start(), found.start() + size))
        marks.update(range(found.end() - size, found.end()))
    return marks


def _shape(raw: str) -> int:
    """How a word is written."""
    if raw[0].islower() and not _ARTICLED.match(raw):
        return LOWER
    if len(raw) == 1:
        return INITIAL
    if raw.isupper():
        return UPPER
    return CAPITAL


@lru_cache(maxsize=65_536)
def _read(raw: str) -> tuple[str, int]:
    """A word folded, and its kind. Of a word with a hyphen the parts are asked: Jean-Luc is a name, Self-Help none."""
    lists = words()
    word = folded(raw)
    kind = lists.given.get(word, 0)
    if not kind and len(word) > 4 and not is_word(word) and word not in lists.surnames:
        # "sarahs mom", "jaydenn", "sarahhh": a possessive in a hurry, or a name drawn out.
        shorter = word[:-1] if word[-1] == "s" else word.rstrip(word[-1]) + word[-1]
        kind = RARE if lists.given.get(shorter, 0) >= RARE else 0
    if kind or "-" not in raw:
        return word, kind
    parts = [folded(part) for part in raw.split("-") if part]
    if parts[0] in hint("kin"):
        return parts[0], 0  # brother-in-law
    if all(is_word(part) or len(part) == 1 for part in parts):
        return parts[-1] if is_word(parts[-1]) else word, 0
    first = lists.given.get(parts[0], 0)
    return word, max(RARE, first) if first >= RARE or (first and parts[-1] in lists.surnames) else 0


@lru_cache(maxsize=65_536)
def classes_of(word: str) -> tuple[str, ...]:
    """The sets of words beside a name that hold a word."""
    return tuple(name for name in hint("classes") if word in hint(name))


def is_candidate(tokens: Tokens, index: int) -> bool:
    """Whether a word may begin a person's name: a given name, a surname, or a word that no list holds."""
    lists = words()
    word = tokens.words[index]
    if tokens.blocked[index] or tokens.shapes[index] == INITIAL or word in lists.never:
        return False
    places = lists.hints["places"]
    if word in places and places & {
        tokens.word(index + 2 * n) for n in (-1, 1) if tokens.word(index + n) == "to"
    }:
        return False  # "Sydney to Adelaide"
    named = word in lists.surnames and word not in lists.hints["stop"]  # "he", "so", "an"
    if named and tokens.shapes[index] == LOWER and word in lists.words:
        named = tokens.word(index - 1) in lists.hints["titles"]  # "someone at church", "mr baker"
    return (
        len(word) > 1
        and word < "\u2e80"
        and (tokens.kinds[index] > 0 or named or not is_word(word))
    )


def name_ends(tokens: Tokens) -> list[int]:
    """For each word the one after the name that begins with it."""
    ends = list(range(1, len(tokens) + 1))
    for index in range(len(tokens) - 2, -1, -1):
        if continues_name(tokens, index + 1):
            ends[index] = ends[index + 1]
    return ends


def block_pets(tokens: Tokens) -> None:
    """Block words that name animals: "my dog Max", "a puppy named Bo"."""
    animals = hint("pets")
    if animals.isdisjoint(tokens.words):
        return
    pets = set()
    for index, word in enumerate(tokens.words):
        if word in animals:
            after = index + 1
            while tokens.word(after) in hint("titles") or tokens.word(after) in hint("naming"):
                after += 1
            if after < len(tokens) and (
                tokens.shapes[after] == CAPITAL or tokens.words[after] in words().given
            ):
                pets.add(tokens.words[after])
    tokens.blocked = [
        no or word in pets for no, word in zip(tokens.blocked, tokens.words, strict=True)
    ]


def block_plants(tokens: Tokens) -> None:
    """Block names of plants where a plant is spoken of: "Rosemary is dying on the sill"."""
    plants = hint("plants")
    if plants.isdisjoint(tokens.words):
        return
    growing = hint("growing")
    doing = hint("human_verbs") | hint("sure_verbs") | hint("tending")
    for index, word in enumerate(tokens.words):
        if word not in plants or tokens.possessive[index]:
            continue
        before = tokens.word(index - 1)
        after = tokens.word(index + 1)
        around = tokens.words[max(0, index - _PLANTED) : index + _PLANTED + 1]
        watered = ("water", "it") in pairwise(around) or ("watering", "it") in pairwise(around)
        about_plants = watered or not growing.isdisjoint(around)
        somebody = (
            before in hint("kin") or before in hint("titles") or before in hint("sure_before")
        )
        if (
            about_plants
            and not somebody
            and (after not in doing or tokens.opens[min(index + 1, len(tokens) - 1)])
        ):
            tokens.blocked[index] = True


def block_things(tokens: Tokens) -> None:
    """Block a word that a thing is named by, where nobody is spoken of: "the ship named Hope", "a car called Daisy"."""
    if _NAMING.isdisjoint(tokens.words):
        return
    lists = words()
    people = lists.hints["people_said"] | lists.hints["kin"] | lists.hints["somebody"]
    if not people.isdisjoint(tokens.words):
        return
    places = lists.hints["titles"] | lists.hints["work"] | lists.hints["kinds"]
    for index in range(2, len(tokens)):
        noun = tokens.words[index - 2]
        same_clause = not any(tokens.opens[index - 1 : index + 1])
        if tokens.words[index - 1] not in _NAMING or not same_clause or noun in places:
            continue
        is_thing = noun in lists.words and not noun.endswith(_ENDINGS_OF_PEOPLE)
        is_word_name = tokens.shapes[index] == CAPITAL and tokens.kinds[index] == WORD_NAME
        is_full_name = index + 1 < len(tokens) and continues_name(tokens, index + 1)
        if is_thing and is_word_name and not is_full_name:
            tokens.blocked[index] = True


def person_spans(tokens: Tokens, starts: Mapping[int, float], ends: Sequence[int]) -> list[Span]:
    """Spans of PERSON that begin with these words, each with its score; `ends` as of `name_ends`. None overlap. A form
    of address is part of the name ("Mr Henderson", "aunt debbie"); a possessive 's is not."""
    spans = list[Span]()
    reached = 0
    for index in sorted(starts):
        if index < reached:
            continue
        first = index
        before = reached
        reached = ends[index]
        while first > before and continues_name(tokens, first) and is_candidate(tokens, first - 1):
            first -= 1
        start = tokens.starts[first]
        end = tokens.ends[reached - 1]
        title = tokens.word(first - 1)
        written = tokens.shapes[first - 1] != LOWER or title in hint("plain_titles")
        joined = (
            "-" in tokens.text[tokens.starts[first - 1] : tokens.ends[first - 1]]
        )  # "my sister-in-law Dana"
        if written and not joined and tokens.gap(first) in (" ", ". ") and title in hint("titles"):
            start = tokens.starts[first - 1]
        end += tokens.shapes[reached - 1] == INITIAL and tokens.text.startswith(".", end)
        spans.append(Span(start, end, "PERSON", starts[index]))
    return spans


def continues_name(tokens: Tokens, index: int) -> bool:
    """Whether a word still belongs to the name that ends before: a given name, an initial, a surname."""
    lists = words()
    word = tokens.words[index]
    shape = tokens.shapes[index]
    kind = tokens.kinds[index]
    gap = tokens.gap(index)
    pointed = gap == ". " and tokens.shapes[index - 1] == INITIAL
    if tokens.blocked[index] or not (gap == " " or pointed or gap.translate(_MARKED) in (" ", "-")):
        return False
    if tokens.shapes[index - 1] != LOWER:
        if shape == INITIAL:
            return word != "i"
        known = word in lists.surnames or kind > 0 or word not in lists.words
        return known and shape != LOWER and word not in hint("stop")
    if shape != LOWER or is_word(word):
        return False
    # "jason kolvik" after a frequent given name, whatever the second word is.
    strange = (
        tokens.kinds[index - 1] == COMMON
        and len(word) > 4
        and not word.endswith(tuple(hint("verbal")))
    )
    return word in lists.surnames or kind == COMMON or strange
