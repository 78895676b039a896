"""Names of persons in English chat: by lists of names, by what is said around them, and by how words are written.

A word is a candidate by its kind: a frequent given name ("josh"), a rarer one ("Bronwyn"), one that is an English word
or a place too ("Grace", "will"), or one that no list holds and that stands with a capital where English writes none.
The less the word says by itself, the more the words around it must say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from h2htalk.curation.anonymize.english.person_cues import LIKELY, MODEL_ALONE
from h2htalk.curation.anonymize.english.person_scores import name_score, names_thing
from h2htalk.curation.anonymize.english.token_features import CAPITAL, INITIAL, LOWER, Tokens
from h2htalk.curation.anonymize.english.word_lists import COMMON, WORD_NAME, hint, is_word, words
from h2htalk.curation.anonymize.spans import Span

_VERBAL = ("s", "ed", "ing", "nt", "ly", "in", "er")


def find_persons(tokens: Tokens, confirmed: Iterable[int] = ()) -> list[Span]:
    """Spans of PERSON in a text's words, those that `tokens` blocks left out; in order, none overlap.

    A form of address is part of the name ("Mr Henderson", "aunt debbie"); a possessive 's is not.

    Args:
        tokens: the words of the text. Names of animals and makers of works named are blocked in it.
        confirmed: places of words (of `open_words`) that a reader of sentences takes for names.
    """
    starts = _starts(tokens)
    return list(_spans(tokens, dict.fromkeys(confirmed, MODEL_ALONE) | starts))


def open_words(tokens: Tokens, spans: Iterable[Span]) -> list[int]:
    """Places of capitalised words in no list and no span, where people are spoken of: names, if a reader says so."""
    hints = words().hints
    marked = {at for span in spans for at in range(span.start, span.end)}
    indices = []
    for index, start in enumerate(tokens.starts):
        if tokens.shapes[index] != CAPITAL or tokens.blocked[index] or start in marked:
            continue
        word, before = tokens.words[index], tokens.word(index - 1)
        if is_word(word) or word in hints["places"] or before in hint("articles") or names_thing(tokens, index):
            continue
        if tokens.kinds[index] == WORD_NAME and tokens.word(index + 1) in hint("articles") | hint("pronouns"):
            continue
        if tokens.opens[index] or before not in hints["place_before"]:
            indices.append(index)
    return indices


def _starts(tokens: Tokens) -> dict[int, float]:
    """Words that are names, with how sure that is: each judged alone, then by the others."""
    pets = _pets(tokens)
    for index, word in enumerate(tokens.words):
        tokens.blocked[index] |= word in pets
    _block_authors(tokens)
    starts = {
        index: score
        for index in range(len(tokens))
        if not tokens.blocked[index] and (score := name_score(tokens, index))
    }
    # A name that was told stays one: "Thandi" after "my name is Thandi", "will" never.
    told = {tokens.words[index] for index in starts if len(tokens.words[index]) > 2} - hint("months")
    for index, word in enumerate(tokens.words):
        if word in told and not tokens.blocked[index]:
            inside = tokens.shapes[index] == CAPITAL and not tokens.opens[index]
            if inside or not is_word(word):
                starts.setdefault(index, LIKELY)
    return starts


def _pets(tokens: Tokens) -> set[str]:
    """Names that a text gives to animals: "my dog Max", "a puppy named Bo"."""
    named = set()
    for index, word in enumerate(tokens.words):
        if word in words().hints["pets"]:
            after = index + 1
            while tokens.word(after) in ("named", "called", "is", "was", "name", "names"):
                after += 1
            if after < len(tokens) and (tokens.shapes[after] == CAPITAL or tokens.words[after] in words().given):
                named.add(tokens.words[after])
    return named - {"my", "the", "and", "i"}


def _block_authors(tokens: Tokens) -> None:
    """ "a book by Jane Ward": who made a work that is named is no private person."""
    media = words().hints["media_before"]
    for index in range(1, len(tokens)):
        if tokens.words[index - 1] == "by" and tokens.shapes[index] == CAPITAL and not tokens.opens[index]:
            quoted = tokens.gap(index - 1).rstrip()[-1:] in ('"', "”", "'", "*", "_")
            if quoted or not media.isdisjoint(tokens.words[max(0, index - 10) : index - 1]):
                end = index
                while end < len(tokens) and tokens.shapes[end] in (CAPITAL, INITIAL) and tokens.gap(end) in (" ", ". "):
                    tokens.blocked[end] = True
                    end += 1


def _spans(tokens: Tokens, starts: dict[int, float]) -> Iterator[Span]:
    """From each name to its last word: given names, initials, particles and surnames, with its form of address."""
    reached = 0
    for index in sorted(starts):
        if index < reached:
            continue
        reached = index + 1
        while reached < len(tokens) and (step := _goes_on(tokens, reached)):
            reached += step
        titled = index > 0 and tokens.spaced[index] and _is_title(tokens, index - 1)
        last = tokens.ends[reached - 1]
        if tokens.shapes[reached - 1] == INITIAL and tokens.text[last : last + 1] == ".":
            last += 1
        yield Span(tokens.starts[index - titled], last, "PERSON", starts[index])


def _is_title(tokens: Tokens, index: int) -> bool:
    """Whether a word is a form of address."""
    word = tokens.words[index]
    written = tokens.shapes[index] != LOWER or word in hint("plain_titles")
    return word in words().hints["titles"] and written and not tokens.blocked[index]


def _goes_on(tokens: Tokens, index: int) -> int:
    """How many words from here still belong to the name that ends before: 0, 1, or 2 with a particle."""
    pointed = tokens.gap(index) == ". " and tokens.shapes[index - 1] == INITIAL
    if tokens.possessive[index - 1] or tokens.blocked[index] or not (pointed or tokens.gap(index) in (" ", "-")):
        return 0
    lists = words()
    word, shape, kind = tokens.words[index], tokens.shapes[index], tokens.kinds[index]
    particle = word in hint("particles") and index + 1 < len(tokens) and tokens.spaced[index + 1]
    if particle and tokens.shapes[index + 1] == CAPITAL and not is_word(tokens.words[index + 1]):
        return 2
    if tokens.shapes[index - 1] != LOWER:
        if shape == INITIAL:
            return int(word != "i")
        no_name = shape == LOWER or word in lists.never or word in hint("stop")
        return int(not no_name and (word in lists.surnames or kind > 0 or word not in lists.words))
    if shape != LOWER or is_word(word) or len(word) < 3:
        return 0
    # "jason kolvik" after a frequent given name inside a sentence, whatever the second word is.
    named = tokens.kinds[index - 1] == COMMON and len(word) > 4 and not tokens.opens[index]
    strange = named and word not in lists.never and word[-1] != word[-2] and not word.endswith(_VERBAL)
    return int(word in lists.surnames or (kind == COMMON and len(word) > 3) or strange)
