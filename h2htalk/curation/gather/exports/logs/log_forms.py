"""Forms of logs of chats: patterns that `curate look` proposes for lines with a name and, mostly, a time.

A form puts together how a time stands on a line, and how a name is set apart from the text. The form that reads most
lines of the two people of a file is proposed, as a pattern that its owner can see and change. Known forms are those of
irssi, mIRC and HexChat (`<nick> text`), Pidgin and Adium, LINE (tabs and headings of days), KakaoTalk, Discord and
Slack as copied from the screen, and WeChat as public exporters write it: LC044/WeChatMsg (exporter_txt.py: the time and
the name above a text) and BlueMatthew/WechatExporter (templates_txt: `NAME (TIME):TEXT`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from h2htalk.curation.gather.exports.logs.log_lines import RENAMED
from h2htalk.curation.gather.exports.logs.log_patterns import Part, joined

_HALF = (
    "\u4e0a\u5348|\u4e0b\u5348|\u665a\u4e0a|\u591c\u665a|\u51cc\u6668|\u6e05\u6668|\u65e9\u4e0a|\u5098\u665a"
    "|\u508d\u665a|\u591c\u95f4|\u4e2d\u5348|\u5348\u524d|\u5348\u5f8c|\uc624\uc804|\uc624\ud6c4"
)
_CLOCK = (
    rf"(?:(?:{_HALF}) ?)?\d{{1,2}}[:.h\u6642\u65f6\u70b9]\d{{2}}(?:[:.]\d{{2}})?"
    r"(?:[ \u202f]?[AaPp]\.?[Mm]\b\.?)?(?: Uhr)?"
)
# No other word, which may be a part of a name.
_WEEKDAY = (
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Mo|Di|Mi|Do|Fr|Sa|So|Seg|Ter|Qua|Qui|Sex|S\u00e1b|Dom|Lun|Mar|Mi\u00e9|Jue|Vie"
    r"|Mer|Jeu|Ven|Sam|Dim|Gio|Sab)[^\W\d]{0,7}|\u661f\u671f.|\u5468.|\u9031.)"
)
_DATE = (
    rf"(?:(?:{_WEEKDAY}\.?,? )?\d{{1,4}}[/.\-\u5e74\ub144] ?\d{{1,2}}[/.\-\u6708\uc6d4] ?\d{{0,4}}[\u65e5\uc77c.]?"
    rf"|(?:{_WEEKDAY}\.?,? )?\d{{1,2}}\.? [^\W\d]{{3,10}}\.?,? \d{{4}}"
    rf"|(?:{_WEEKDAY}\.?,? )?[^\W\d]{{3,10}} \d{{1,2}},?(?: \d{{4}})?)"
)
# With a date, with a weekday, or the time of the day alone.
_STAMP = rf"(?:{_DATE},?(?:[T \u3000]{{1,2}}| at | um | \u00e0 | \u00e0s ))?{_CLOCK}"
_SPEAKER = r"\*{0,2}(?P<speaker>[^\s:\uff1a<>|*\[\](),\uff08][^:\uff1a<>|*\n\t]{0,39}?)\*{0,2}"
# Not in times, addresses and emoticons.
_COLON = r"[ \u3000]?\*{0,2}[:\uff1a](?![\d/()\\|])\*{0,2}[ \u3000]?"
_TEXT = r"(?P<text>.*)"
_BELOW = r"[ \t\u3000:\uff1a]{0,4}(?P<text>)$"
_GAP = r"Z?\s{0,4}(?:\[[A-Z]{4,7}\] )?(?:[-\u2013\u2014|\u2022*,;]\s{1,2})?"
_IRC_NOTICE = (
    r"(?:-!-|\*\*\*|-->|<--|--"
    r"|\* \S{1,40} (?:\(\S{1,80}\) )?(?:has (?:joined|left|quit)|is now known|sets mode|changes)"
    r"|\* Now talking|\* Topic|\* Disconnected)"
)
_NICK = r"(?:<[ @+%&~]?|\* )(?P<speaker>[^<>\s]{1,40})>?[ \t]"
_LEAST_SHARE = (
    0.3  # of the lines that two speakers must have, for a name alone on its line and others
)
_LEAST_SHARE_BELOW = 0.12  # where the text stands below
_MOST_LINES = 400
_LONGEST_HEADER = 200  # characters of a line, in which a time and a name stand


@dataclass(frozen=True, slots=True)
class LogForm:
    """A form of a log, and the parts of the pattern that reads it."""

    parts: tuple[Part, ...]
    is_below: bool = False  # the text stands on the lines below

    @property
    def pattern(self) -> str:
        """The pattern as a whole."""
        return joined(self.parts)


_SPEAKER_PART = Part("speaker", _SPEAKER)
_TEXT_PART = Part("text", _TEXT)
_GAP_PART = Part("gap", _GAP)
_BELOW_PART = Part("below", _BELOW)
_OPEN = Part("", "(?:")
_OPTIONAL = Part("", ")?")
# A line that matches without a speaker is the program's.
_PROGRAM = Part("program", "|")
_IRC_PROGRAM = Part("program", "|---|Session |")


def _time(pattern: str) -> Part:
    return Part("time", f"(?P<time>{pattern})")


def _stamps() -> Iterator[tuple[Part, ...]]:
    """How a time stands before what follows."""
    in_square = r"[^\]\n]{0,40}?" + _CLOCK + r"[^\]\n]{0,12}"
    in_round = r"[^)\n]{0,40}?" + _CLOCK + r"[^)\n]{0,12}"
    yield (Part("before", r"\["), _time(in_square), Part("after", r"\]"))
    yield (Part("before", r"\("), _time(in_round), Part("after", r"\)"))
    yield (_time(_STAMP),)
    yield (Part("before", "<"), _time(_STAMP), Part("after", ">"))
    yield (_time(_DATE),)


def _delimiters() -> Iterator[Part]:
    """How a name is set apart from the text on its line."""
    yield Part("delimiter", _COLON)
    yield Part("delimiter", r" {0,8}> ")
    yield Part("delimiter", r" {0,8}\| ")
    yield Part("delimiter", r"\t")
    yield Part("delimiter", r" {0,4}(?:->|=>|\u00bb|\u2192|\u203a) ")
    yield Part("delimiter", r" (?:says|said|wrote|writes|schrieb|sagt|\u8bf4|\u8aaa)[:\uff1a] ?")
    yield Part("delimiter", r" [-\u2013\u2014] ")


def _forms() -> Iterator[LogForm]:
    """All forms, the most certain first."""
    gap_of_irc = Part("gap", r"\s{1,2}")
    notice = Part("notice", f"(?:{_IRC_NOTICE}|{_NICK}{_TEXT})")
    for stamp in _stamps():
        yield LogForm((*stamp, gap_of_irc, notice, _IRC_PROGRAM))
        for delimiter in _delimiters():
            message = (_SPEAKER_PART, delimiter, _TEXT_PART, _PROGRAM)
            yield LogForm((*stamp, _GAP_PART, *message))
            yield LogForm((_OPEN, *stamp, _GAP_PART, _OPTIONAL, *message))
    in_square = Part("speaker", r"\[(?P<speaker>[^\]\n]{1,40})\]")
    yield LogForm((in_square, Part("", r" \["), _time(_CLOCK), Part("", r"\] "), _TEXT_PART))
    mark = Part("list", r"(?:[-*\u2022] )?")
    # A time after the name stands in brackets, or it would be a part of the name.
    for stamp in islice(_stamps(), 2):
        space = Part("delimiter", " ?")
        yield LogForm(
            (mark, _SPEAKER_PART, space, *stamp, Part("delimiter", r" ?[:\uff1a]? ?"), _TEXT_PART)
        )
        # Messages without a time are those of names that others have with one.
        optional = (Part("", "(?:"), space, *stamp, Part("", ")?"))
        yield LogForm((mark, _SPEAKER_PART, *optional, Part("delimiter", _COLON), _TEXT_PART))
    for delimiter in _delimiters():
        yield LogForm((_SPEAKER_PART, delimiter, _TEXT_PART))
    yield LogForm(
        (Part("speaker", r"<(?P<speaker>[^<>\n]{1,40})>"), Part("delimiter", " "), _TEXT_PART)
    )
    yield LogForm((in_square, Part("delimiter", ":? "), _TEXT_PART))
    yield from _forms_of_markdown()
    yield from _forms_below()


def _forms_of_markdown() -> Iterator[LogForm]:
    """Rows of a table of Markdown: with a time before the name or after it, or with none."""
    begin = Part("list", r"\| {0,9}")
    bar = Part("delimiter", r" {0,40}\| {0,9}")
    speaker = Part("speaker", r"\*{0,2}(?P<speaker>[^|\n: -][^|\n]{0,39}?)\*{0,2}")
    time = Part("time", r"(?P<time>[^|\n]{0,40}\d[:.h]\d\d[^|\n]{0,12}?)")
    text = Part("text", r"(?P<text>.*?) {0,9}\|?$")
    # The line below the names of the columns.
    rule = Part("rule", r"|\|[-:| ]+$")
    yield LogForm((begin, time, bar, speaker, bar, text, rule))
    yield LogForm((begin, speaker, bar, time, bar, text, rule))
    yield LogForm((begin, speaker, bar, text, rule))


def _forms_below() -> Iterator[LogForm]:
    """Forms with the text on the lines below a name and a time."""
    words = rf"(?:(?:[Tt]oday|[Yy]esterday|[Hh]eute|[Gg]estern|\u4eca\u5929|\u6628\u5929|{_WEEKDAY}),? (?:at |um )?)?"
    for stamp in (_STAMP, _DATE):
        yield LogForm((_time(stamp), _GAP_PART, _SPEAKER_PART, _BELOW_PART), is_below=True)
        bracketed = (Part("before", r"\["), _time(stamp), Part("after", r"\]"))
        yield LogForm((*bracketed, _GAP_PART, _SPEAKER_PART, _BELOW_PART), is_below=True)
        between = Part("delimiter", r"\s{0,3}[-\u2013\u2014|,(\[\uff08]? ?")
        end = Part("delimiter", r"[)\]\uff09]?")
        yield LogForm(
            (_SPEAKER_PART, between, _time(words + stamp), end, _BELOW_PART), is_below=True
        )
    yield LogForm((Part("", "#{1,6} "), _SPEAKER_PART, _BELOW_PART), is_below=True)
    bold = Part("", r"\*\*(?P<speaker>[^*\n]{1,40}?)[:\uff1a]?\*\*")
    yield LogForm((bold, _BELOW_PART), is_below=True)


def find_form(head: str) -> LogForm | None:
    """The form that reads most lines of two speakers; None where none reads enough."""
    lines = [line.rstrip("\r") for line in head.split("\n")]
    lines = [line for line in lines if line.strip()][:_MOST_LINES]
    lines = [line[:_LONGEST_HEADER] for line in lines]
    renamed = (RENAMED.search(line) for line in lines if "now known" in line)
    names = {match[2]: match[1] for match in renamed if match}
    best: LogForm | None = None
    most = 0.0
    for form in (*_forms(), *_repeated_names(lines)):
        score = _score(form, lines, names)
        if score > most:
            best, most = form, score
    return best


def _score(form: LogForm, lines: Sequence[str], names: Mapping[str, str]) -> float:
    """How many lines of two speakers a form reads, less those of others; 0 where they are too few. `names`: earlier
    ones of speakers, by their later ones."""
    pattern = re.compile(form.pattern)
    speakers: Counter[str] = Counter()
    stamped: Counter[str] = Counter()
    for line in lines:
        match = pattern.match(line)
        if match is None or match["speaker"] is None:
            continue
        speaker = match["speaker"].strip()
        speaker = names.get(speaker, speaker)
        if not is_speaker(speaker):
            continue
        speakers[speaker] += 1
        if "time" in pattern.groupindex and match["time"]:
            stamped[speaker] += 1
    main = speakers.most_common(2)
    if len(main) < 2:
        return 0.0
    read = sum(count for _, count in main)
    others = sum(speakers.values()) - read
    share = _LEAST_SHARE_BELOW if form.is_below else _LEAST_SHARE
    is_talk = main[1][1] >= 2 or len(lines) <= 4
    if not is_talk or read < share * len(lines) or others > read:
        return 0.0
    # A time that is read is worth more than a line: it orders a chat, and says where a line begins.
    is_timed = sum(stamped[name] for name, _ in main) >= 0.5 * read
    return read - 0.5 * others + (0.5 * read if is_timed else 0.0)


def is_speaker(name: str) -> bool:
    """Whether a text may be the name of somebody: of a few words, with a letter, and no sentence."""
    has_letter = any(sign.isalpha() for sign in name)
    is_sentence = name[-1:] in tuple(".!?,;-=~\u3002\uff01\uff1f\uff0c") or len(name.split()) > 5
    return (
        has_letter
        and not is_sentence
        and re.search(r"^[\"{\[]|//| [-\u2013\u2014|] ", name) is None
    )


def _repeated_names(lines: Sequence[str]) -> Iterator[LogForm]:
    """Names that stand alone on lines above their texts, with nothing beside them."""
    counts = Counter(line.strip().rstrip(":\uff1a") for line in lines)
    names = [
        name
        for name, count in counts.most_common(2)
        if count >= 2 and len(name) <= 30 and is_speaker(name)
    ]
    if len(names) == 2 and all(name[0].isalnum() for name in names):
        either = "|".join(re.escape(name) for name in names)
        names_alone = Part("", rf"\s{{0,4}}(?P<speaker>{either})[:\uff1a]?\s{{0,4}}(?P<text>)$")
        yield LogForm((names_alone,), is_below=True)
