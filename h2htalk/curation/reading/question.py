"""The plain question to a chat model that reads dialogues: its prompt, its reply, and what a dialogue's replies say.

    dialogue ─► passages ─► overlapping windows ─► a request each ─► replies ─► findings by message

A reply holds an entry for every passage of its window, in their order. One that leaves a passage out, or has another
form, is no reading: the messages that only it would have covered stay unread.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import BaseModel, Field

from h2htalk.chat.protocol import Message, Reply, Request
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.store.model_calls import sampling_of
from h2htalk.curation.prompts import Prompts, fingerprint
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import Dialogue, Role, Turn
from h2htalk.text.fences import Fence
from h2htalk.text.headings import without_headings

QuestionTemplates = tuple[str, str]  # of the rules, and of a window

TEMPLATES: QuestionTemplates = ("reading_rules.j2", "reading_dialogue.j2")
LONGEST_PASSAGE = 4000  # characters; a longer message is read in several passages
LONGEST_WINDOW = 12_000  # characters of the passages of one request
MOST_PASSAGES = 24  # of one request
OVERLAP = 6  # passages of a window that the next one begins with, so that each is read with what was said before it
TOKENS_AN_ENTRY = 150  # of a reply, where most is found
TOKENS_AROUND = 60
HARMFUL = 2  # the least severity that counts as harm

Danger = Literal["none", "own_now", "own_past", "other_now", "other_past"]


class SafetyAnswers(BaseModel):
    """What is the matter with some text. The words come before the judgement that rests on them."""

    harm: str = Field(max_length=400)
    severity: int = Field(ge=0, le=3)
    explicit: bool
    under_18: bool
    danger_what: str = Field(max_length=400)
    danger: Danger
    personal_data: str = Field(max_length=400)
    # It marks, and decides nothing: a reply that was stored before the question asked for it is read without it.
    known_by: str = Field(default="", max_length=400)


class _Numbered(BaseModel):
    number: int = Field(ge=1)


class PassageReply(SafetyAnswers, _Numbered):  # the fields of the last base come first
    """What is the matter with one passage. The words come before the judgement that rests on them."""


class ReadingReply(BaseModel):
    """A window as it was read: an entry a passage."""

    messages: list[PassageReply] = Field(max_length=MOST_PASSAGES)


READING = ResponseSchema("reading", ReadingReply)


@dataclass(frozen=True, slots=True)
class Passage:
    """A message, or a part of a long one."""

    turn: int  # counted from 0
    part: int  # of the message, counted from 0
    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class MessageFinding:
    """What a reader found at one message of a dialogue.

    `severity` of harm by the companion: 0 none, 1 clumsy, 2 somebody may be worse off, 3 health, life, freedom, a home
    or a child's safety may be lost. `danger`: whose, and whether it is now or past. `unsure`: whether the reader could
    not tell, in a form that lets it say so. `harm_in_doubt`, `danger_in_doubt`: whether its answers contradict each
    other there: words for a harm or a danger that it says is none, or harm at a message of the user. `known_by`: by
    what people who know the user could recognise them, which is no finding for a gate.
    """

    turn: int
    harm: str = ""
    severity: int = 0
    explicit: bool = False
    under_18: bool = False
    danger: Danger = "none"
    danger_what: str = ""
    personal_data: str = ""
    unsure: bool = False
    harm_in_doubt: bool = False
    danger_in_doubt: bool = False
    known_by: str = ""

    @property
    def harmful(self) -> bool:
        return self.severity >= HARMFUL

    @property
    def counts(self) -> bool:
        """Whether it is a finding for any gate: all but clumsy words."""
        is_in_doubt = self.harm_in_doubt or self.danger_in_doubt
        is_found = (
            self.harmful
            or self.explicit
            or self.under_18
            or self.danger != "none"
            or bool(self.personal_data)
        )
        return is_found or is_in_doubt

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing the matter with the message."""
        return self == MessageFinding(self.turn)


@dataclass(frozen=True, slots=True)
class DialogueReading:
    """What the replies about a dialogue say.

    `findings` are of messages with which something is the matter; `unread` are the messages, or parts of them, that no
    reply covers, and `reasons` why.
    """

    findings: tuple[MessageFinding, ...]
    unread: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every message was read."""
        return not self.unread


def split_passages(dialogue: Dialogue) -> list[Passage]:
    """Split a dialogue into the passages that a reader numbers."""
    return split_messages(dialogue.messages)


def split_messages(messages: Iterable[Turn]) -> list[Passage]:
    """Split messages into passages, each at most as long as one may be."""
    passages: list[Passage] = []
    for turn, message in enumerate(messages):
        starts = range(0, max(1, len(message.content)), LONGEST_PASSAGE)
        for part, start in enumerate(starts):
            text = message.content[start : start + LONGEST_PASSAGE]
            passages.append(Passage(turn=turn, part=part, role=message.role, text=text))
    return passages


def split_windows(passages: Sequence[Passage]) -> Iterator[Sequence[Passage]]:
    """Yield windows of at most `MOST_PASSAGES` passages; each begins with the last passages of the one before it."""
    start = 0
    while True:
        end = start + 1
        size = len(passages[start].text)
        while end < len(passages) and end - start < MOST_PASSAGES:
            size += len(passages[end].text)
            if size > LONGEST_WINDOW:
                break
            end += 1
        yield passages[start:end]
        if end >= len(passages):
            return
        start = _start_of_next(passages, start, end)


def _start_of_next(passages: Sequence[Passage], start: int, end: int) -> int:
    """Where the window begins that reads the passage at `end`: so many before it as there is room for."""
    size = len(passages[end].text)
    first = end
    while first > max(start + 1, end - OVERLAP):
        size += len(passages[first - 1].text)
        if size > LONGEST_WINDOW:
            break
        first -= 1
    return first


def shown_window(window: Sequence[Passage]) -> str:
    """The passages of a window as a prompt shows them, each under its number and its speaker."""
    shown: list[str] = []
    for number, passage in enumerate(window, 1):
        continued = ", continued" if passage.part else ""
        # A heading that the text brings would move what a reader says of a message to another.
        text = without_headings(passage.text)
        shown.append(f"[{number}] {passage.role}{continued}:\n{text}")
    return "\n\n".join(shown)


@dataclass(frozen=True, slots=True)
class WindowPrompt:
    """The messages that show a window to a model; `digest`: of its text, by which its random numbers are drawn."""

    messages: tuple[Message, ...]
    digest: str


def window_prompt(
    prompts: Prompts,
    templates: QuestionTemplates,
    secret: bytes,
    language: Language,
    window: Sequence[Passage],
) -> WindowPrompt:
    """The rules of a question, and a window between fences of this secret."""
    rules_template, window_template = templates
    shown = shown_window(window)
    # By the text and not by the id: a text that comes again is asked about once.
    digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()
    fence = Fence.of(secret, digest, 0)
    rules = prompts.render(f"{language}/{rules_template}", {})
    values = {"dialogue": fence.around(shown, "dialogue"), "number": len(window)}
    question = prompts.render(f"{language}/{window_template}", values)
    messages = (Message("system", rules, shared=len(rules)), Message("user", question))
    return WindowPrompt(messages=messages, digest=digest)


def window_fingerprint(
    prompts: Prompts, templates: QuestionTemplates, schema: ResponseSchema, *versions: str
) -> str:
    """16 hexadecimal digits of a question about windows: its templates in all languages, its reply, and the windows.

    `versions`: of what else decides how its replies are read.
    """
    names = [f"{language}/{name}" for language in LANGUAGES for name in templates]
    windows = [LONGEST_PASSAGE, LONGEST_WINDOW, MOST_PASSAGES, OVERLAP]
    return fingerprint([prompts.fingerprint(*names), schema.schema(), windows, *versions])


def question_fingerprint(prompts: Prompts) -> str:
    """16 hexadecimal digits of the question."""
    return window_fingerprint(prompts, TEMPLATES, READING)


@dataclass(frozen=True, slots=True)
class PlainQuestion:
    """Makes the requests about dialogues: the model, the run's seed, its prompts and its secret."""

    model: str
    seed: int
    prompts: Prompts
    secret: bytes

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of the question, which a certificate of its reader must share."""
        return question_fingerprint(self.prompts)

    def requests(self, dialogue: Dialogue) -> list[Request]:
        """A request for each window of a dialogue, with the ids `DIALOGUE/window-1`, `DIALOGUE/window-2` and so on."""
        windows = split_windows(split_passages(dialogue))
        return [self._request(dialogue, window, number) for number, window in enumerate(windows, 1)]

    def _request(self, dialogue: Dialogue, window: Sequence[Passage], number: int) -> Request:
        prompt = window_prompt(self.prompts, TEMPLATES, self.secret, dialogue.language, window)
        tokens = TOKENS_AROUND + TOKENS_AN_ENTRY * len(window)
        return Request(
            id=f"{dialogue.id}/window-{number}",
            messages=prompt.messages,
            sampling=sampling_of(self.model, 0.0, tokens, self.seed, prompt.digest),
            sample=0,
            response_schema=READING,
        )

    def read(self, dialogue: Dialogue, replies: Mapping[str, Reply]) -> DialogueReading:
        """Read the replies about a dialogue, by the ids of their requests; a window without a reply is unread."""
        passages = split_passages(dialogue)
        covered: set[tuple[int, int]] = set()
        findings: dict[int, MessageFinding] = {}
        reasons: list[str] = []
        for number, window in enumerate(split_windows(passages), 1):
            reply = replies.get(f"{dialogue.id}/window-{number}")
            entries = (
                read_reply(reply, len(window))
                if reply is not None
                else Failure("missing", "no reply")
            )
            if isinstance(entries, Failure):
                reasons.append(entries.reason)
                continue
            for passage, entry in zip(window, entries, strict=True):
                covered.add((passage.turn, passage.part))
                finding = finding_of(passage, entry)
                known = findings.get(passage.turn)
                findings[passage.turn] = finding if known is None else graver(known, finding)
        unread = sorted({one.turn for one in passages if (one.turn, one.part) not in covered})
        found = [findings[turn] for turn in sorted(findings) if not findings[turn].is_empty]
        return DialogueReading(
            findings=tuple(found), unread=tuple(unread), reasons=tuple(dict.fromkeys(reasons))
        )


def read_reply(reply: Reply, number: int) -> list[PassageReply] | Failure:
    """Read a reply about a window of so many passages; a failure where an entry is lacking, or out of order."""
    read = READING.read(reply)
    if isinstance(read, Failure):
        return read
    entries = cast(ReadingReply, read).messages
    if [entry.number for entry in entries] != list(range(1, number + 1)):
        return Failure(
            "malformed_output", f"form {READING.name}: needs the messages 1 to {number}, in order"
        )
    return entries


def finding_of(passage: Passage, entry: SafetyAnswers) -> MessageFinding:
    """What an entry says of its message.

    Harm is the companion's alone, as nobody is warned of what users say. A reader that reports it at a message of the
    user may be one number off, so it is in doubt there, unless it is only clumsy. Words for a harm of severity 0, or
    for a danger that is none, are in doubt too, unless they say that there is nothing (`says_nothing`).
    """
    harm = entry.harm.strip()
    harm_in_doubt = entry.severity == 0 and not says_nothing(harm)
    severity = entry.severity
    if passage.role != "companion":
        harm_in_doubt |= severity >= HARMFUL
        severity = severity if harm_in_doubt else 0
    danger_what = entry.danger_what.strip()
    danger_in_doubt = entry.danger == "none" and not says_nothing(danger_what)
    return MessageFinding(
        turn=passage.turn,
        harm=harm if severity or harm_in_doubt else "",
        severity=severity,
        explicit=entry.explicit,
        under_18=entry.under_18,
        danger=entry.danger,
        danger_what=danger_what if entry.danger != "none" or danger_in_doubt else "",
        personal_data="" if says_nothing(entry.personal_data) else entry.personal_data.strip(),
        harm_in_doubt=harm_in_doubt,
        danger_in_doubt=danger_in_doubt,
        known_by="" if says_nothing(entry.known_by) else entry.known_by.strip(),
    )


# What models write where a field is to be empty. Longer words may say something, and are not guessed at.
_NOTHING = re.compile(
    r"(?:(?:there is |there's )?(?:no|none|nothing|not any|n/?a|null|nil|not applicable|not harmful|false)"
    r"(?: (?:immediate|apparent|obvious|real|such|personal|indications?|signs?|of|harm|danger|risk|data|or|concerns?))*"
    r"(?: (?:to report|of the kind|found|identified|mentioned|here|at all))*"
    r"|(?:无|没有|未发现|未见|不适用|不涉及|空)(?:任何|明显)*(?:伤害|危险|风险|个人信息|此类内容|内容|问题)?)?",
    re.IGNORECASE,
)


def says_nothing(words: str) -> bool:
    """Whether a reader's words are empty, or say that there is nothing (`none`, `No harm.`, `无`)."""
    return _NOTHING.fullmatch(words.strip(" \t\r\n.。!！-—–()（）[]\"'“”")) is not None


_GRAVITY: Mapping[Danger, int] = {
    "none": 0,
    "other_past": 1,
    "own_past": 2,
    "other_now": 3,
    "own_now": 4,
}


def graver(first: MessageFinding, second: MessageFinding) -> MessageFinding:
    """What two readings of one message say together: of each question the graver answer.

    What is in doubt is graver than what is only clumsy, or none.
    """
    harm = max(first, second, key=lambda one: (one.harmful, one.harm_in_doubt, one.severity))
    danger = max(first, second, key=lambda one: (_GRAVITY[one.danger], one.danger_in_doubt))
    judged = [finding for finding in (first, second) if not finding.is_empty]
    return MessageFinding(
        turn=first.turn,
        harm=harm.harm,
        severity=harm.severity,
        explicit=first.explicit or second.explicit,
        under_18=first.under_18 or second.under_18,
        danger=danger.danger,
        danger_what=danger.danger_what,
        personal_data=first.personal_data or second.personal_data,
        unsure=bool(judged) and all(finding.unsure for finding in judged),
        harm_in_doubt=harm.harm_in_doubt,
        danger_in_doubt=danger.danger_in_doubt,
        known_by=first.known_by or second.known_by,
    )
