"""How a guard is asked about a dialogue, and what its replies say: by the plain question, or in a form of its own.

Qwen3Guard and Llama Guard judge the last message of what they are sent, and nothing else: so their templates say. In
their forms each message is a request of its own, with what was said before it. The plain question asks about all
messages of a window at once (`question`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from h2htalk.chat.engines import model_name, parse_model
from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.curation.prompts import Prompts, fingerprint
from h2htalk.curation.reading.question import (
    HARMFUL,
    LONGEST_PASSAGE,
    LONGEST_WINDOW,
    OVERLAP,
    DialogueReading,
    MessageFinding,
    Passage,
    PlainQuestion,
    graver,
    question_fingerprint,
    split_passages,
)
from h2htalk.curation.reading.verdicts import day_of, read_of, reader_name
from h2htalk.data.readers.reads import READ_GATES, Read, ReadGate
from h2htalk.data.readers.served_by import served_together
from h2htalk.data.replies.finish_reasons import is_whole
from h2htalk.data.scenario import Dialogue, Role
from h2htalk.errors import ConfigError
from h2htalk.text.language_data import read_data

GuardForm = Literal["qwen3guard", "llama_guard", "question"]
GuardFormSetting = Literal["auto", "qwen3guard", "llama_guard", "question"]
Safety = Literal["safe", "unsafe", "controversial", "undecided"]

_NAMES: Mapping[GuardForm, re.Pattern[str]] = {
    "qwen3guard": re.compile(r"qwen-?3-?guard", re.IGNORECASE),
    "llama_guard": re.compile(r"llama-?guard", re.IGNORECASE),
}
# Llama Guard's S4 is about the abuse of children, not about whether the user is one, and neither form asks for it.
_OWN_GATES: tuple[ReadGate, ...] = (
    "companion_harm",
    "explicit_content",
    "crisis_care",
    "personal_data",
)
_OWN_VERSION = 1  # of what is sent in a form of a guard's own, for its fingerprint
_LONGEST_REPLY = 2000  # characters
_TOKENS = 64  # of a reply in a form of its own
_CODES = Path(__file__).with_name("guard_categories.toml")
_WORDS: Mapping[str, Safety] = {
    "safe": "safe",
    "unsafe": "unsafe",
    "controversial": "controversial",
}
_LEAST_FIRST: tuple[Safety, ...] = ("safe", "controversial", "undecided", "unsafe")
_SAFETY = re.compile(r"^\s*Safety:[ \t]*(\w+)[ \t]*$", re.MULTILINE)
_CATEGORIES = re.compile(r"^\s*Categories:[ \t]*(.*)$", re.MULTILINE)
_LLAMA = re.compile(r"\s*(safe|unsafe)[ \t]*(?:\n\s*(S\d{1,2}(?:[ \t]*,[ \t]*S\d{1,2}){0,13}))?\s*")
_ROLES: Mapping[Role, Literal["user", "assistant"]] = {"user": "user", "companion": "assistant"}
_BEFORE_THE_FIRST = "(The companion speaks first.)"  # templates require the user to begin
# With `guard_scope = "doubtful"`: the last messages that a form of its own is sent, and characters of each.
MESSAGES = 40
LONGEST = 4000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A guard's verdict in its own form: our codes of its categories by the guard's names, and all these names."""

    safety: Safety
    categories: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardReading:
    """What a guard's replies say of a dialogue.

    `verdict`: of a form of its own, over all messages; None of the plain question. `read`: the record to store; None
    where nothing was read.
    """

    reading: DialogueReading
    verdict: Verdict | None
    read: Read | None


def guard_form(model: str, setting: GuardFormSetting = "auto") -> GuardForm:
    """The form in which a guard is asked: as set, else by the model's name."""
    if setting != "auto":
        return setting
    name = model_name(model)
    for form, pattern in _NAMES.items():
        if pattern.search(name):
            return form
    return "question"


def guard_gates(form: GuardForm) -> tuple[ReadGate, ...]:
    """The gates of a release that a guard of this form answers for."""
    return READ_GATES if form == "question" else _OWN_GATES


def guard_prompt_fingerprint(form: GuardForm, prompts: Prompts, last_only: bool = False) -> str:
    """16 hexadecimal digits of what a guard of this form is asked, which its certificate must share."""
    if form == "question":
        return question_fingerprint(prompts)
    if last_only:
        return fingerprint(["guard", form, "last", MESSAGES, LONGEST])
    return fingerprint(["guard", form, _OWN_VERSION, LONGEST_PASSAGE, LONGEST_WINDOW, OVERLAP])


def refuse_weak_guard(model: str) -> None:
    """Raise ConfigError for a model that is too small to read for others."""
    engine, _ = parse_model(model)
    if engine.small:
        raise ConfigError(
            f"guard = {model!r}: the {engine.name} model is too small to read for others, so what it says of harm, "
            "crises and minors would be guessed; name Qwen3Guard or Llama Guard behind vllm: or server:, or a strong "
            "chat model such as anthropic:claude-sonnet-5 or server:MODEL@URL"
        )


@dataclass(frozen=True, slots=True)
class GuardReader:
    """Asks a guard about dialogues and reads its replies.

    `last_only`: send a form of its own the end of a dialogue once, of which it judges the last message, as earlier
    versions did. `served_by`: what serves its model now (`chat/served_model.py`); readings hold what gave a reply.
    """

    form: GuardForm
    question: PlainQuestion
    last_only: bool = False
    served_by: str = ""

    @property
    def model(self) -> str:
        return self.question.model

    @property
    def name(self) -> str:
        """`guard:MODEL`, as in its readings and its certificates."""
        return reader_name("guard", self.model)

    @property
    def gates(self) -> tuple[ReadGate, ...]:
        """The gates that it answers for."""
        return guard_gates(self.form)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of its question."""
        return guard_prompt_fingerprint(self.form, self.question.prompts, self.last_only)

    def requests(self, dialogue: Dialogue) -> list[Request]:
        """The requests about a dialogue; their ids begin with the dialogue's."""
        if self.form == "question":
            return self.question.requests(dialogue)
        if self.last_only:
            return [guard_request(dialogue)]
        passages = split_passages(dialogue)
        numbers = [at for at, passage in enumerate(passages) if passage.text.strip()]
        return [_message_request(dialogue, passages, at) for at in numbers]

    def read(self, dialogue: Dialogue, replies: Mapping[str, Reply]) -> GuardReading:
        """What the replies about a dialogue say, by the ids of their requests; what has no valid reply is unread."""
        verdict = None
        if self.form == "question":
            reading = self.question.read(dialogue, replies)
        elif self.last_only:
            reading, verdict = _read_last(dialogue, replies)
        else:
            reading, verdict = _read_messages(dialogue, replies)
        used = [reply for name, reply in replies.items() if name.partition("/")[0] == dialogue.id]
        read = read_of(
            dialogue,
            reading,
            reader=self.name,
            gates=self.gates,
            prompt=self.fingerprint,
            date=day_of(used),
        )
        if read is not None:
            read = replace(read, served_by=served_together(reply.served_by for reply in used))
        return GuardReading(reading=reading, verdict=verdict, read=read)


# --- Forms of a guard's own -------------------------------------------------------------------------------------


def _message_request(dialogue: Dialogue, passages: Sequence[Passage], at: int) -> Request:
    """The request about one passage: it stands last, after so many before it as there is room for."""
    size = len(passages[at].text)
    first = at
    while first > max(0, at - OVERLAP):
        size += len(passages[first - 1].text)
        if size > LONGEST_WINDOW:
            break
        first -= 1
    messages: list[Message] = []
    for passage in passages[first : at + 1]:
        role = _ROLES[passage.role]
        if messages and messages[-1].role == role:  # templates require the roles to alternate
            messages[-1] = Message(role, f"{messages[-1].content}\n\n{passage.text}")
        else:
            messages.append(Message(role, passage.text))
    if messages[0].role == "assistant":
        if len(messages) > 1:
            del messages[0]
        else:
            messages.insert(0, Message("user", _BEFORE_THE_FIRST))
    return _own_request(f"{dialogue.id}/message-{at + 1}", messages)


def _own_request(name: str, messages: Sequence[Message]) -> Request:
    return Request(name, tuple(messages), Sampling(temperature=0.0, max_tokens=_TOKENS, thinking=0))


def guard_request(dialogue: Dialogue) -> Request:
    """The end of a dialogue as chat messages for a guard, whose own template adds the policy."""
    turns = dialogue.messages[-MESSAGES:]
    while len(turns) > 1 and turns[0].role == "companion":
        turns = turns[1:]
    return _own_request(
        dialogue.id, [Message(_ROLES[turn.role], turn.content[:LONGEST]) for turn in turns]
    )


def read_verdict(reply: Reply) -> Verdict:
    """Read `Safety: WORD` and `Categories: NAMES` (Qwen3Guard's form), or `unsafe` and `S1,S11` (Llama Guard's); a
    reply in another form is undecided."""
    words = _SAFETY.findall(reply.text)
    listed = _CATEGORIES.findall(reply.text)
    if llama := _LLAMA.fullmatch(reply.text[:_LONGEST_REPLY]):
        words = [llama[1]]
        listed = [llama[2] or ""]
    if (
        not is_whole(reply.finish_reason)
        or len(reply.text) > _LONGEST_REPLY
        or len(words) != 1
        or len(listed) != 1
    ):
        return Verdict("undecided")
    codes = read_data(_CODES)["categories"]
    safety = _WORDS.get(words[0].lower(), "undecided")
    names = [part.strip() for part in listed[0].split(",")]
    names = [name for name in names if name and name.lower() != "none"]
    if (
        safety == "undecided"
        or (safety == "safe") == bool(names)
        or any(name.lower() not in codes for name in names)
    ):
        return Verdict("undecided")
    known = {name: codes[name.lower()] for name in names if codes[name.lower()]}
    return Verdict(safety=safety, categories=known, names=tuple(names))


def _read_messages(
    dialogue: Dialogue, replies: Mapping[str, Reply]
) -> tuple[DialogueReading, Verdict]:
    """What the replies about single messages say: the reading, and one verdict over all of them."""
    findings: dict[int, MessageFinding] = {}
    unread: set[int] = set()
    reasons: dict[str, None] = {}
    verdicts: list[Verdict] = []
    for at, passage in enumerate(split_passages(dialogue)):
        if not passage.text.strip():
            continue
        reply = replies.get(f"{dialogue.id}/message-{at + 1}")
        verdict = read_verdict(reply) if reply is not None else Verdict("undecided")
        verdicts.append(verdict)
        if verdict.safety == "undecided":
            unread.add(passage.turn)
            reasons["malformed_output" if reply is not None else "missing"] = None
            continue
        finding = finding_of_verdict(passage, verdict)
        known = findings.get(passage.turn)
        findings[passage.turn] = finding if known is None else graver(known, finding)
    found = [findings[turn] for turn in sorted(findings) if not findings[turn].is_empty]
    reading = DialogueReading(
        findings=tuple(found), unread=tuple(sorted(unread)), reasons=tuple(reasons)
    )
    return reading, _together(verdicts)


def _read_last(dialogue: Dialogue, replies: Mapping[str, Reply]) -> tuple[DialogueReading, Verdict]:
    """What the one reply about the end of a dialogue says: of its last message, where that was sent whole."""
    reply = replies.get(dialogue.id)
    verdict = read_verdict(reply) if reply is not None else Verdict("undecided")
    last = len(dialogue.messages) - 1
    message = dialogue.messages[last]
    is_read = verdict.safety != "undecided" and len(message.content) <= LONGEST
    passage = Passage(turn=last, part=0, role=message.role, text=message.content)
    finding = finding_of_verdict(passage, verdict)
    reading = DialogueReading(
        findings=() if finding.is_empty else (finding,),
        unread=tuple(range(last if is_read else last + 1)),
    )
    return reading, verdict


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict over all messages: unsafe where one is; else undecided where one is, and so on."""
    words = {verdict.safety for verdict in verdicts}
    safety: Safety = "safe"
    for word in _LEAST_FIRST:
        if word in words:
            safety = word
    categories: dict[str, str] = {}
    names: dict[str, None] = {}
    for verdict in verdicts:
        if verdict.safety == safety:
            categories.update(verdict.categories)
            names.update(dict.fromkeys(verdict.names))
    return Verdict(safety=safety, categories=categories, names=tuple(names))


def finding_of_verdict(passage: Passage, verdict: Verdict) -> MessageFinding:
    """What a verdict about a message says of it. What is controversial is a finding too: a person decides."""
    table = read_data(_CODES)[passage.role]
    by_kind: dict[str, list[str]] = {}
    for name in verdict.names:
        if kind := table.get(name.lower()):
            by_kind.setdefault(kind, []).append(name)
    words = {kind: ", ".join(names) for kind, names in by_kind.items()}
    return MessageFinding(
        turn=passage.turn,
        harm=words.get("harm", ""),
        severity=HARMFUL if "harm" in words else 0,
        explicit="explicit" in words or "abuse" in words,
        under_18="abuse" in words,
        danger="own_now" if "danger" in words else "none",
        danger_what=words.get("danger", ""),
        personal_data=words.get("personal_data", ""),
        unsure=bool(words) and verdict.safety == "controversial",
    )
