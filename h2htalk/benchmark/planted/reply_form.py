"""The form of a reply, apart from its words: length, lines, marks of lists, sentences, how they end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from h2htalk.text.counting import split_sentences

_LINE = re.compile(
    r"(?P<before>\s*)(?P<marker>(?:>\s*|#{1,6}\s+|\d{1,2}[.)、]\s*|[-*•·]\s+)?)(?P<body>[^\n]*[^\s])"
)
_EMOJI = re.compile("[\u2600-\u27bf\u2b50\U0001f000-\U0001faff]\ufe0f?")
_END = re.compile(r"(?:\.{3}|…+|[.!?。！？~～]+)[\"'”’」』*]*$")
_BOLD = re.compile(r"\*\*[^*\n]+\*\*")
_QUOTES = {'"': '"', "“": "”", "「": "」"}
_HALF_WIDTH = re.compile(r"[\u4e00-\u9fff][,.!?]|[,.!?][\u4e00-\u9fff]")
COMMAS = re.compile("[,，、]")
COLONS = re.compile("[:：]")
FIRST_PERSONS = re.compile(r"\bI\b")  # the English `I`, alone or as in `I'm`
_RARE_JOINTS = ("; ", " - ", " – ", " — ", "；", "——")
SHORT = 60  # characters; a reply that is no longer was hardly cut


@dataclass(frozen=True, slots=True)
class LineForm:
    """One line of a reply that is not empty."""

    before: str  # the line ends and the white space before it
    marker: str  # of a list, a heading or a quotation
    length: int  # characters, without the marker
    sentences: int


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """What a planted reply takes over of a reply of the model."""

    lines: tuple[LineForm, ...]
    ends: tuple[str, ...]  # of its sentences that are no questions, such as `.`, `!`, or nothing
    questions: int
    joints: tuple[str, ...]  # between its clauses, other than commas
    emoji: tuple[str, ...]
    bold: int  # passages in bold type
    cut: bool  # it stops within a sentence
    quoted: tuple[str, str]  # the quotation marks around all of it, empty for none
    typographic: bool  # its apostrophes and quotation marks are curly
    half_width: bool  # of Chinese: its commas and full stops are Latin ones
    lower_case: bool
    after: str  # white space at its end
    commas: int
    colons: int
    first_persons: int  # the English `I`
    ends_with_question: bool

    @property
    def length(self) -> int:
        """Characters of all lines, without markers and line ends."""
        return sum(line.length for line in self.lines)

    @property
    def sentences(self) -> int:
        """The sentences of all lines."""
        return sum(line.sentences for line in self.lines)


def form_of(reply: str) -> ReplyForm:
    """Describe a reply of a model; one without text has no lines."""
    text = reply.rstrip()
    opening = text.lstrip()[:1]
    quoted = ("", "")
    if len(text.strip()) > 2 and _QUOTES.get(opening) == text[-1]:
        quoted = (opening, text[-1])
        text = text.strip()[1:-1].rstrip()
    emoji = tuple(match.group() for match in _EMOJI.finditer(text))
    plain = _EMOJI.sub("", text).replace("**", "").rstrip()
    statement_ends = []
    questions = 0
    for end in _ends(plain):
        if "?" in end or "？" in end:
            questions += 1
        else:
            statement_ends.append(end)
    has_case = any(map(str.isalpha, plain)) and plain.lower() != plain.upper()
    return ReplyForm(
        lines=tuple(_lines(plain)),
        ends=tuple(statement_ends),
        questions=questions,
        joints=tuple(joint for joint in _RARE_JOINTS if joint in plain),
        emoji=emoji,
        bold=len(_BOLD.findall(text)),
        cut=len(plain) > SHORT and not quoted[0] and not _END.search(plain),
        quoted=quoted,
        typographic="’" in plain or "“" in plain,
        half_width=_HALF_WIDTH.search(plain) is not None,
        lower_case=has_case and plain == plain.lower(),
        after=reply[len(reply.rstrip()) :],
        commas=len(COMMAS.findall(reply)),
        colons=len(COLONS.findall(reply)),
        first_persons=len(FIRST_PERSONS.findall(reply)),
        ends_with_question=is_question(reply),
    )


def _lines(text: str) -> Iterator[LineForm]:
    for match in _LINE.finditer(text):
        body = match["body"]
        sentences = max(1, len(split_sentences(body)))
        yield LineForm(
            before=match["before"], marker=match["marker"], length=len(body), sentences=sentences
        )


def _ends(text: str) -> Iterator[str]:
    """Yield how each sentence ends; the last one of a reply that was cut says nothing."""
    for line in text.splitlines():
        for sentence in split_sentences(line):
            end = _END.search(sentence)
            if end is not None:
                yield end.group().rstrip("\"'”’」』*")


def is_question(text: str) -> bool:
    """Whether a text ends with a question mark, perhaps within quotation marks or brackets."""
    return text.rstrip().rstrip("\"'”’」』*)）").endswith(("?", "？"))
