"""Names of persons in English chat: by lists of names, by what is said around them, and by how words are written.

A word is a candidate by its kind: a frequent given name ("josh"), a rarer one ("Bronwyn"), one that is an English word
or a place too ("Grace", "will"), or one that no list holds and that stands with a capital where English writes none.
The less the word says by itself, the more the words around it must say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from h2htalk.curation.anonymize.english.person_scores import LIKELY, READ, name_score, names_thing
from h2htalk.curation.anonymize.english.token_features import CAPITAL, INITIAL, LOWER, UPPER, Tokens
from h2htalk.curation.anonymize.english.word_lists import COMMON, WORD_NAME, hint, is_word, words
from h2htalk.curation.anonymize.spans import Span


def find_persons(found: Tokens, read: Iterable[int] = ()) -> list[Span]:
    """Spans of PERSON in a text's words, those that `found` blocks left out; in order, none overlap.

    A form of address is part of the name ("Mr Henderson", "aunt debbie"); a possessive 's is not.

    Args:
        found: the words of the text. Names of animals and makers of works named are blocked in it.
        read: places of words (of `open_words`) that a reader of sentences takes for names.
    """
    starts = _starts(found)
    return list(_spans(found, dict.fromkeys(read, READ) | starts))


def open_words(found: Tokens, spans: list[Span]) -> list[int]:
    """Places of capitalised words in no list and no span, where people are spoken of: names, if a reader says so."""
    hints = words().hints
    marked = sorted((span.start, span.end) for span in spans)
    places = []
    at = 0
    for place, start in enumerate(found.starts):
        while at < len(marked) and marked[at][1] <= start:
            at += 1
        if (
            found.shapes[place] != CAPITAL
            or found.blocked[place]
            or (at < len(marked) and marked[at][0] <= start)
        ):
            continue
        word, before = found.words[place], found.word(place - 1)
        if (
            is_word(word)
            or word in hints["places"]
            or before in hint("articles")
            or found.foreign(place)
            or names_thing(found, place)
        ):
            continue
        if found.kinds[place] == WORD_NAME and found.word(place + 1) in hint("articles") | hint("pronouns"):
            continue
        if found.opens[place] or before not in hints["place_before"]:
            places.append(place)
    return places


def _starts(found: Tokens) -> dict[int, float]:
    """Words that are names, with how sure that is: each judged alone, then by the others."""
    pets = _pets(found)
    for place, word in enumerate(found.words):
        found.blocked[place] |= word in pets
    _block_authors(found)
    starts: dict[int, float] = {}
    for place in range(len(found)):
        if not found.blocked[place] and (score := name_score(found, place)):
            starts[place] = score
    for place in _initialled(found):
        starts.setdefault(place, LIKELY)
    # A name that was told stays one: "Thandi" after "my name is Thandi", "will" never.
    told = {found.words[place] for place in starts if len(found.words[place]) > 2} - hint("months")
    for place, word in enumerate(found.words):
        if place in starts or word not in told or found.blocked[place]:
            continue
        if not is_word(word) or (found.shapes[place] == CAPITAL and not found.opens[place]):
            starts[place] = LIKELY
    return starts


def _pets(found: Tokens) -> set[str]:
    """Names that a text gives to animals: "my dog Max", "a puppy named Bo", "Luna is my cat"."""
    kinds = words().hints["pets"]
    named = set()
    for place, word in enumerate(found.words):
        if word not in kinds:
            continue
        after = place + 1
        while found.word(after) in ("named", "called", "is", "was", "name", "names"):
            after += 1
        if after < len(found) and (found.shapes[after] == CAPITAL or found.word(after) in words().given):
            named.add(found.words[after])
        before = place - 1
        while found.word(before) in ("my", "our", "the", "is", "was", "a", "old", "little", "beloved"):
            before -= 1
        if before >= 0 and before < place - 1 and found.word(before + 1) in ("is", "was"):
            named.add(found.words[before])
        elif before >= 0 and found.possessive[place - 1]:
            continue
    return named - {"my", "the", "and", "i"}


def _block_authors(found: Tokens) -> None:
    """ "a book by Jane Ward": who made a work that is named is no private person."""
    media = words().hints["media_before"]
    for place in range(1, len(found)):
        if found.words[place - 1] == "by" and found.shapes[place] == CAPITAL and not found.opens[place]:
            quoted = found.gap(place - 1).rstrip()[-1:] in ('"', "”", "'", "*", "_")
            if quoted or any(found.word(back) in media for back in range(max(0, place - 10), place - 1)):
                end = place
                while (
                    end < len(found)
                    and found.shapes[end] in (CAPITAL, INITIAL)
                    and found.gap(end) in (" ", ". ")
                ):
                    found.blocked[end] = True
                    end += 1


def _spans(found: Tokens, starts: dict[int, float]) -> Iterator[Span]:
    """From each name to its last word: given names, initials, particles and surnames, with its form of address."""
    place = 0
    while place < len(found):
        if place not in starts:
            place += 1
            continue
        end = place + 1
        while end < len(found) and (step := _goes_on(found, end)):
            end += step
        first = found.starts[place]
        before = place - 1
        if before >= 0 and found.spaced[place] and (_titled(found, before) or _fronted(found, before)):
            first = found.starts[before]
        last = found.ends[end - 1]
        if found.shapes[end - 1] == INITIAL and found.text[last : last + 1] == ".":
            last += 1
        yield Span(first, last, "PERSON", starts[place])
        place = end


_VERBAL = ("s", "ed", "ing", "nt", "ly", "in", "er")
_FRONTS_WORDS = "big lil nan gran nonna nonno oma opa mamaw papaw tia tio elder deacon coach granny"
_FRONTS = frozenset(_FRONTS_WORDS.split())


def _titled(found: Tokens, place: int) -> bool:
    """Whether a word is a form of address."""
    word = found.words[place]
    written = found.shapes[place] != LOWER or word in hint("plain_titles")
    return word in words().hints["titles"] and written and not found.blocked[place]


def _fronted(found: Tokens, place: int) -> bool:
    """Whether a word is said with a name as part of it: Big Rui, nan jean."""
    word = found.words[place]
    return (
        word in _FRONTS
        and not found.blocked[place]
        and (found.shapes[place] == CAPITAL or word not in ("big", "elder", "coach"))
    )


def _initialled(found: Tokens) -> Iterator[int]:
    """Places of initials before a surname: Q. Ramaswamy."""
    for place in range(len(found) - 1):
        after = place + 1
        if (
            found.shapes[place] == INITIAL
            and found.words[place] != "i"
            and not (found.blocked[place] or found.blocked[after])
            and found.shapes[after] == CAPITAL
            and found.text[found.ends[place] : found.starts[after]] in (". ", ".")
            and not is_word(found.words[after])
            and found.words[after] not in hint("stop")
            and not (place and found.text[found.ends[place - 1] : found.starts[place]] == ".")
        ):
            yield place


def _goes_on(found: Tokens, place: int) -> int:
    """How many words from here still belong to the name that ends before: 0, 1, or 2 with a particle."""
    if found.possessive[place - 1] or found.blocked[place]:
        return 0
    gap = found.gap(place)
    pointed = gap == ". " and found.shapes[place - 1] == INITIAL
    if not pointed and gap not in (" ", "-"):
        return 0
    lists = words()
    word, shape = found.words[place], found.shapes[place]
    kind = found.kinds[place]
    lower_name = found.shapes[place - 1] == LOWER
    particle = word in hint("particles") and place + 1 < len(found) and found.spaced[place + 1]
    if particle and found.shapes[place + 1] == CAPITAL and not is_word(found.words[place + 1]):
        return 2
    if shape == INITIAL and word != "i" and not lower_name:
        return 1
    if shape in (CAPITAL, UPPER) and not lower_name:
        if word in lists.never or word in hint("stop"):
            return 0
        return int(word in lists.surnames or kind > 0 or word not in lists.words)
    if shape == LOWER and lower_name and len(word) == 1 and word in "bcdefghjklmpqtvz":
        return int(found.kinds[place - 1] == COMMON)
    if shape == LOWER and lower_name and not is_word(word) and len(word) > 2:
        named = found.kinds[place - 1] == COMMON and len(word) > 4 and not found.opens[place]
        strange = named and word not in lists.never and word[-1] != word[-2] and not word.endswith(_VERBAL)
        return int(word in lists.surnames or (kind == COMMON and len(word) > 3) or strange)
    return 0
