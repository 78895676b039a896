"""Compose a planted reply: a wording of known truth among other sentences, in the form of a reply of the model.

Nothing but its own words may tell a planted reply from the others. So it gets the length, lines, marks and endings of a
reply that the model gave elsewhere in the study, its other sentences are drawn and put in a drawn order, and the place
of the wording among them is drawn too. The wording keeps its words.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import chain, pairwise, product

from h2htalk.benchmark.planted.reply_form import (
    COLONS,
    COMMAS,
    FIRST_PERSONS,
    LineForm,
    ReplyForm,
    form_of,
)
from h2htalk.benchmark.studies.points.phone_numbers import phone_numbers
from h2htalk.data.languages import Language, find_language
from h2htalk.text.counting import split_sentences

_LENGTHS = (0.7, 1.15)  # of the other sentences, as shares of what the form leaves to them
_MOST_ASIDES = 3  # of each sort
# How many an attempt may take, of which a number is drawn: they fit least of all sentences. Then the same where some
# have marks of the model's reply.
_ASIDES = (0, 0, 1)
_MARKED_ASIDES = (0, 1)
_SHORT = 12  # characters
_NUMBER = "{number}"
# Marks and letters of which an aside is taken only where the model's reply has them.
_MARKED = {
    "quoted": re.compile('["“”「」]'),
    "listing": re.compile("、"),
    "letters": re.compile(r"(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])"),
    "names": re.compile(r"[a-z,;] [A-HJ-Z][a-z]"),
}
_COMMON = ("short", "question", "plain")
_WORDS = tomllib.loads((files("h2htalk.benchmark.planted") / "words.toml").read_text("utf-8"))
_SUBJECTS = frozenset(_WORDS["en"]["subjects"].split())
_LOWERED = frozenset(_WORDS["en"]["not_names"].split())
_FIRST_PERSON = _WORDS["en"]["first_person"]
_MOST_JOINED = 3
_TO_CURLY = ((r"(?<=\w)'(?=\w)", "’"), (r"\"(?=\w)", "“"), (r"(?<=[\w.,!?])\"", "”"))
_TO_STRAIGHT = str.maketrans("’‘“”", "''\"\"")
_TO_FULL_WIDTH = str.maketrans(".!", "。！")
_TO_HALF_WIDTH = str.maketrans("，。！？：；", ",.!?:;")


@dataclass(frozen=True, slots=True)
class _ReplyTraits:
    """What compositions take over of a reply of the model."""

    form: ReplyForm
    known_numbers: tuple[str, ...]  # to dial, that the help directory has
    has_digit: bool
    marks: frozenset[str]  # names of `_MARKED`


# Hundreds of compositions are in the forms of the same few replies, of which each may be long.
@lru_cache(maxsize=128)
def _traits_of(like: str) -> _ReplyTraits:
    numbers = phone_numbers(like).items()
    marks = [sort for sort, mark in _MARKED.items() if mark.search(like)]
    return _ReplyTraits(
        form=form_of(like),
        known_numbers=tuple(number for number, owners in numbers if owners),
        has_digit=any(map(str.isdigit, like)),
        marks=frozenset(marks),
    )


# A place's passages and wording are composed in the forms of several replies.
@lru_cache(maxsize=1024)
def _sentences_of(text: str) -> tuple[str, ...]:
    return tuple(split_sentences(text))


def compositions(
    wording: str,
    filler: Sequence[str],
    like: str,
    language: Language,
    draw: random.Random,
    asides: Sequence[str],
    number: int,
) -> list[str]:
    """Compose replies that hold a wording, in the form of the reply `like`.

    `filler`: passages about other matters, of which any sentence may stand alone; `asides`: sentences that fit
    anywhere. Where the model's reply is shorter than the wording, the wording stands alone.
    """
    traits = _traits_of(like)
    form = traits.form
    passages = [_sentences_of(passage) for passage in filler]
    asides = _choose_asides(asides, traits, draw)
    return [_attempt(wording, passages, asides, form, language, draw) for _ in range(number)]


def _choose_asides(asides: Sequence[str], traits: _ReplyTraits, draw: random.Random) -> list[str]:
    """Choose a few asides of each sort that a reply of the model has."""
    sorts = defaultdict[str, list[str]](list)
    for text in asides:
        if _NUMBER not in text:
            sorts[_sort_of(text)].append(text)
        elif traits.known_numbers:  # its numbers are those that the model names
            sorts["number"].append(text.replace(_NUMBER, draw.choice(traits.known_numbers)))
    if "number" in sorts or not traits.has_digit:
        sorts.pop("digits", None)
    for sort in _MARKED:
        if sort not in traits.marks:
            sorts.pop(sort, None)
    common = {sort: sorts.pop(sort) for sort in _COMMON if sort in sorts}
    chosen: list[str] = []
    # What passages about other matters have too is not needed where others are.
    for texts in (sorts or common).values():
        chosen += draw.sample(texts, min(len(texts), _MOST_ASIDES))
    return chosen


# Each draw sorts the same few hundred asides for every composition.
@lru_cache(maxsize=2048)
def _sort_of(aside: str) -> str:
    """What an aside has that others lack."""
    if any(map(str.isdigit, aside)):
        return "digits"
    for sort, mark in _MARKED.items():
        if mark.search(aside):
            return sort
    if len(aside) <= _SHORT:
        return "short"
    return "question" if _is_question(aside) else "plain"


def _attempt(
    wording: str,
    passages: Sequence[Sequence[str]],
    asides: Sequence[str],
    form: ReplyForm,
    language: Language,
    draw: random.Random,
) -> str:
    """One composition of a wording with passages that are drawn."""
    core = _sentences_of(wording)
    wanted = (form.length - len(wording)) * draw.uniform(*_LENGTHS)
    filler = _take(passages, asides, wanted, draw)
    if form.ends_with_question and not form.cut:
        filler = _with_question_last(filler, draw)
    # What is cut off at the end is no part of the wording.
    keeps_last = form.cut or (form.ends_with_question and not _is_question(core[-1]))
    last = len(filler) - 1 if keeps_last and filler else len(filler)
    position = draw.randint(0, last)
    joined = max(0, len(filler) + len(core) - form.sentences)
    commas = len(COMMAS.findall(" ".join((*filler, wording))))
    lacking = form.commas - joined - commas
    # An aside is no answer to what was said, so nothing is put before or behind it.
    plain = [number for number, text in enumerate(filler) if text not in asides]
    filler = _with_commas(filler, plain, lacking, language, draw)
    filler = _with_leads(filler, plain, wording, form, language, draw)
    markers = "".join(line.marker for line in form.lines)
    if any(map(str.isdigit, markers)):
        # A number between its sentences would be among its words.
        core = (wording,)
    sentences = [_Sentence(text, aside=text in asides) for text in filler]
    sentences[position:position] = [_Sentence(text, of_wording=True) for text in core]
    sentences[-1].to_cut = form.cut
    lines = _fill_lines(sentences, form)
    lines = _joined(lines, form, language, draw)
    lines = _with_ends(lines, form, language, draw)
    if form.cut and not lines[-1].sentences[-1].of_wording:
        lines = _cut(lines, form, language)
    lines = _with_marks(lines, form, draw)
    text = "".join(line.form.before + line.form.marker + line.text for line in lines)
    return _in_style(text, form, language) + form.after


def _take(
    passages: Sequence[Sequence[str]], asides: Sequence[str], wanted: float, draw: random.Random
) -> list[str]:
    """Sentences up to a length: of whole passages, or each by itself; some with an aside."""
    order = draw.sample(passages, len(passages))
    if draw.random() < 0.5:
        order = [[sentence] for sentence in chain.from_iterable(order)]
        draw.shuffle(order)
    marked = any(_sort_of(aside) not in _COMMON for aside in asides)
    number = min(draw.choice(_MARKED_ASIDES if marked else _ASIDES), len(asides))
    order = [*([aside] for aside in draw.sample(asides, number)), *order]
    chosen: list[list[str]] = []
    length = 0
    for passage in order:
        part: list[str] = []
        for sentence in passage:
            if length + len(sentence) // 2 >= wanted:
                break
            part.append(sentence)
            length += len(sentence) + 1
        if part:
            chosen.append(part)
        if len(part) < len(passage):
            break
    draw.shuffle(chosen)
    return list(chain.from_iterable(chosen))


def _with_commas(
    sentences: Sequence[str],
    plain: Sequence[int],
    number: int,
    language: Language,
    draw: random.Random,
) -> list[str]:
    """Begin or end some plain sentences with a word and a comma, until they have so many more commas."""
    stop = _WORDS[language]["stop"]
    written = list(sentences)
    edges = list(product(plain, (False, True)))
    draw.shuffle(edges)
    leads = _WORDS[language]["leads"]
    leads = draw.sample(leads, len(leads))
    for position, is_end in edges:
        if number <= 0 or not leads:
            break
        sentence = written[position]
        if len(sentence) <= _SHORT:
            continue
        if is_end and sentence.endswith(stop):
            written[position] = (
                sentence.removesuffix(stop) + draw.choice(_WORDS[language]["tags"]) + stop
            )
            number -= 1
        elif not is_end and _is_lowered(sentence, language):
            written[position] = leads.pop() + _lowered(sentence, language)
            number -= 1
    return written


def _with_leads(
    sentences: Sequence[str],
    plain: Sequence[int],
    wording: str,
    form: ReplyForm,
    language: Language,
    draw: random.Random,
) -> list[str]:
    """Begin some plain sentences with words before a colon, or about oneself, where the form has more of these."""
    written = list(sentences)
    text = " ".join((*written, wording))
    colons = form.colons - len(COLONS.findall(text))
    first_persons = form.first_persons - len(FIRST_PERSONS.findall(text))
    for position in draw.sample(plain, len(plain)):
        sentence = written[position]
        if _is_question(sentence) or len(sentence) <= _SHORT or not _is_lowered(sentence, language):
            continue
        if sentence.startswith(tuple(_WORDS[language]["leads"])):
            continue
        if colons > 0 and not COLONS.search(sentence):
            written[position] = draw.choice(_WORDS[language]["colon_leads"]) + _lowered(
                sentence, language
            )
            colons -= 1
        elif first_persons > 0 and sentence.partition(" ")[0].lower() in _SUBJECTS:
            written[position] = draw.choice(_WORDS["en"]["first_person_leads"]) + _lowered(
                sentence, language
            )
            first_persons -= 1
    return written


def _with_question_last(sentences: list[str], draw: random.Random) -> list[str]:
    """Put a question to the end, if there is one."""
    questions = [number for number, text in enumerate(sentences) if _is_question(text)]
    if not questions:
        return sentences
    chosen = draw.choice(questions)
    return [*sentences[:chosen], *sentences[chosen + 1 :], sentences[chosen]]


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"'”’").endswith(("?", "？"))


@dataclass(slots=True)
class _Sentence:
    """A sentence of the reply that is being composed, perhaps joined of several."""

    text: str
    of_wording: bool = (
        False  # it holds words of the wording, among whose own sentences nothing is put
    )
    joined: int = 1  # how many it was
    to_cut: bool = False  # the reply stops within it
    aside: bool = False  # it is joined with none


@dataclass(slots=True)
class _Line:
    """A line of the reply that is being composed."""

    form: LineForm
    sentences: list[_Sentence]
    text: str = ""  # written last


def _fill_lines(sentences: Sequence[_Sentence], form: ReplyForm) -> list[_Line]:
    """Put sentences into the lines of a form, in their order, each line about as long as the form's.

    A form with more lines than there are sentences gives up its last lines.
    """
    forms = form.lines[: len(sentences)] or (LineForm("", "", 0, len(sentences)),)
    length_of_form = sum(line.length for line in forms) or 1
    lengths = [len(sentence.text) for sentence in sentences]
    lines: list[_Line] = []
    start = 0
    reached = 0.0
    for number, line in enumerate(forms):
        later = len(forms) - number - 1  # lines that need a sentence of their own
        reached += line.length * sum(lengths) / length_of_form
        end = start + 1
        while end < len(sentences) - later and sum(lengths[:end]) + lengths[end] / 2 <= reached:
            end += 1
        if later == 0:
            end = len(sentences)
        lines.append(_Line(line, list(sentences[start:end])))
        start = end
    return lines


def _joined(
    lines: list[_Line], form: ReplyForm, language: Language, draw: random.Random
) -> list[_Line]:
    """Join neighbouring sentences of a line until it has as many as the form's, at most three to one."""
    joints = (*_WORDS[language]["joints"], *form.joints)
    for line in lines:
        while len(line.sentences) > line.form.sentences:
            pairs = enumerate(pairwise(line.sentences))
            starts = [start for start, pair in pairs if _may_join(*pair, language)]
            if not starts:
                break
            starts.sort(key=lambda start: len(line.sentences[start].text))
            start = draw.choice(starts[:3])
            first, second = line.sentences[start : start + 2]
            begun = first.text.removesuffix(_WORDS[language]["stop"])
            joined = _Sentence(
                text=begun + draw.choice(joints) + _lowered(second.text, language),
                of_wording=first.of_wording or second.of_wording,
                joined=first.joined + second.joined,
                to_cut=second.to_cut,
            )
            line.sentences[start : start + 2] = [joined]
    return lines


def _may_join(first: _Sentence, second: _Sentence, language: Language) -> bool:
    if first.of_wording and (second.of_wording or second.to_cut):
        return False
    if first.aside or second.aside:
        return False
    if not _is_lowered(second.text, language):
        return False
    return (
        first.text.endswith(_WORDS[language]["stop"])
        and first.joined + second.joined <= _MOST_JOINED
    )


def _is_lowered(sentence: str, language: Language) -> bool:
    """Whether a sentence may follow a comma as it is, or with a small first letter."""
    word = _first_word(sentence)
    return not find_language(language).spaced or word.lower() in _LOWERED or word in _FIRST_PERSON


def _first_word(sentence: str) -> str:
    return sentence.partition(" ")[0].rstrip(",").replace("’", "'")


def _lowered(sentence: str, language: Language) -> str:
    """A sentence as it stands after a comma."""
    if not find_language(language).spaced or _first_word(sentence) in _FIRST_PERSON:
        return sentence
    return sentence[:1].lower() + sentence[1:]


def _with_ends(
    lines: list[_Line], form: ReplyForm, language: Language, draw: random.Random
) -> list[_Line]:
    """End sentences as those of the form end, with its emoji, and write each line's text."""
    stop = _WORDS[language]["stop"]
    endings = [_in_width(end, language) for end in form.ends] or [stop]
    for line in lines:
        for sentence in line.sentences:
            if sentence.text.endswith(stop):
                sentence.text = sentence.text.removesuffix(stop) + draw.choice(endings)
    joint = find_language(language).joint
    for emoji in form.emoji:
        line = draw.choice(lines)
        draw.choice(line.sentences).text += (" " if joint else "") + emoji
    for line in lines:
        line.text = joint.join(sentence.text for sentence in line.sentences)
    return lines


def _in_width(end: str, language: Language) -> str:
    """An ending in the width of the language's punctuation."""
    if not find_language(language).spaced:
        return end.replace("...", "……").translate(_TO_FULL_WIDTH)
    return end.replace("…", "...").translate(_TO_HALF_WIDTH)


def _cut(lines: list[_Line], form: ReplyForm, language: Language) -> list[_Line]:
    """Stop within the last sentence, at about the form's length."""
    line = lines[-1]
    last = line.sentences[-1].text
    excess = sum(len(composed.text) for composed in lines) - form.length
    length = max(len(last) // 3, min(len(last) - 2, len(last) - excess))
    beginning = last[:length].rstrip(" ,.!?;，。！？；…")
    if find_language(language).spaced and " " in beginning:
        beginning = beginning.rpartition(" ")[0]
    line.text = line.text.removesuffix(last) + beginning
    return lines


def _with_marks(lines: list[_Line], form: ReplyForm, draw: random.Random) -> list[_Line]:
    """Set a few words in bold type where the form does."""
    for line in draw.sample(lines, min(form.bold, len(lines))):
        words = list(re.finditer(r"[\w'’]{4,}", line.text))
        if words:
            word = draw.choice(words)
            line.text = f"{line.text[: word.start()]}**{word.group()}**{line.text[word.end() :]}"
    return lines


def _in_style(text: str, form: ReplyForm, language: Language) -> str:
    """Quotation marks, widths and case as the form has them."""
    if form.typographic:
        for pattern, mark in _TO_CURLY:
            text = re.sub(pattern, mark, text)
    elif find_language(language).spaced:
        text = text.translate(_TO_STRAIGHT)
    if form.half_width:
        text = text.translate(_TO_HALF_WIDTH)
    if form.lower_case:
        text = text.lower()
    opening, closing = form.quoted
    return opening + text + closing
