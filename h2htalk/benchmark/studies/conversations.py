"""A study with its folder, and what it asks a model: conversations, replies to the script, questions beside them.

A conversation is a generator that yields requests and receives their outcomes, so that many run side by side: each
round sends the next request of every conversation together (`run_together`). The same generators read a finished
study: then the outcomes come from the stored replies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import create_model

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.studies.settings import APP, StudySpec
from h2htalk.chat.engines import parse_model
from h2htalk.chat.prices import prompt_tokens, rough_tokens
from h2htalk.chat.protocol import Message, Outcome, Request, Sampling, request_seed
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.data.case import Case, days_later, script
from h2htalk.data.files import json_line
from h2htalk.data.languages import Language, find_language
from h2htalk.data.responses import FailedResponse, Failure, Response, strip_thinking
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Persona, Scenario, Tags, Turn
from h2htalk.data.signature import Signature
from h2htalk.data.splits import BUNDLED_FOLDER, Split, load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.contracts.memory_blocks import parse_memory
from h2htalk.text.fences import Fence
from h2htalk.text.jinja_templates import Templates, read_templates

REPLY_TOKENS = 256
TYPE_TOKENS = 64
MEMORY_TOKENS = 256
MOST_OF_A_CATEGORY = 3  # memories of one category; above it the model merges them into one
LIVE, SCRIPT, TYPE, MEMORY, RECOLLECTION = "live", "script", "type", "memory", "recollection"
CONTROLS = ("rules", "reworded")  # arms with a text of their own in place of SAP
EMPTY = "..."  # in place of an empty reply: APIs refuse messages without text
_TAGS = Tags("unknown", "intermediate", "memory", "none")
Prompt = tuple[Message, ...]
Ask = Callable[[Sequence[Request]], Mapping[tuple[str, int], Outcome]]


@dataclass(frozen=True, slots=True)
class StudyReply:
    """What the companion answered to one user turn of a case."""

    arm: str
    case: str
    place: str  # such as `s2.t1`
    part: str  # LIVE: its running conversation; SCRIPT: the scripted history; TYPE, MEMORY, RECOLLECTION
    text: str | None = None  # None where the call failed, or was not made after an earlier failure
    failure: str = "not_asked"  # why there is no text, as a code; `message` is for people
    said: tuple[Turn, ...] = ()  # the conversation before the reply, the user's turn last
    tokens: int = 0  # sent and written in the call, and in calls that memory needed before it
    finish: str = "unknown"  # `Reply.finish_reason`
    message: str = ""

    @property
    def key(self) -> str:
        """`ARM/PART/CASE/PLACE`: how its request is named."""
        return f"{self.arm}/{self.part}/{self.case}/{self.place}"

    @property
    def id(self) -> str:
        """`CASE/PLACE/HASH` of the reply and the conversation before it: how a judge and people know it."""
        content = json_line([self.text, [turn.content for turn in self.said]])
        return f"{self.case}/{self.place}/{hashlib.sha256(content.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True, eq=False)
class StudyPrompts:
    """The bundled templates of studies, and the prompts of `evaluate` for SAP and for the memory arm's own tasks."""

    templates: Templates
    prompts: PromptSet

    @classmethod
    def load(cls, folder: Path | str | None = None) -> StudyPrompts:
        """Load them; templates of `folder` replace those of `evaluate`. Raises ConfigError."""
        bundled = read_templates(Path(str(files("h2htalk.benchmark.studies") / "prompts")))
        return cls(Templates.of(bundled), PromptSet.load(Path(folder) if folder else None))

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of everything that decides the texts of a companion; the judge has its own."""
        content = json.dumps([self.prompts.fingerprint, self.texts(judge=False)], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def texts(self, judge: bool) -> dict[str, str]:
        """The templates of the judge, or of the companion, by name."""
        return {name: text for name, text in self.templates.sources.items() if ("/judge_" in name) == judge}

    def scaffold(self, arm: str, sap: Sap, language: Language, rows: Sequence[str] = ()) -> str:
        """The safety text of an arm with help lines: SAP's principles, a control arm's own text, or nothing."""
        if arm in CONTROLS:
            return self.templates.render(f"{language}/{arm}.j2", {"help_rows": rows})
        return sap.render(language, self.prompts.templates, rows)


class StudyFolder(RunFolder):
    """The folder of a study: that of a run whose manifest is `study.json` and whose items are cases.

    inputs/split                 the cases that were asked
    calls.jsonl                  every reply of the model as it came; `id` is `ARM/PART/CASE/PLACE`
    judgements/                  the judge and its replies (`benchmark/judge/judgements.py`)
    adjudication/                what people were asked and answered; `answer` is `CASE/PLACE/HASH:QUESTION`
    observations.parquet, summary.json, report.html, tables/, figures/
    """

    kind: ClassVar[str] = "study"
    score_again: ClassVar[str] = "run `h2htalk study score` again"

    def scores(self, signature: Signature) -> Path:
        return self.path / "observations.parquet"


@dataclass(frozen=True, slots=True)
class Study:
    """A study: its folder, specification, cases and prompts."""

    folder: StudyFolder
    spec: StudySpec
    split: Split
    prompts: StudyPrompts
    signature: Signature

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.split.cases

    def answers_of(self, arm: str) -> list[Response | FailedResponse]:
        """The stored outcome of each request of an arm."""
        return [one for (name, _), one in self.folder.answers().items() if name.startswith(f"{arm}/")]


Conversation = Generator[Request, Any, list[StudyReply]]  # receives outcomes
Notes = dict[str, list[str]]  # category -> memories, oldest first


@dataclass(frozen=True, slots=True)
class Asker:
    """Make the conversations of one arm; `secret` is that of the fences."""

    study: Study
    arm: str
    secret: bytes = b""

    def live(self, case: Case) -> Conversation:
        """The model's own running conversation with the scripted user; after a failed call it ends."""
        turns, replies, notes, failure = list(case.history), list[StudyReply](), Notes(), ""
        noted, session_start, extra, days = 0, 0, 0, neutral_days(case, self.study.spec.days)
        for place, _, message in script(case, self.study.spec.days):
            if place.endswith(".t1") and place != "s1.t1" and not failure:
                if self.study.spec.study == "memory" and self.arm == "explicit":
                    extra, failure = yield from self._end_session(case, notes, turns[noted:], place)
                noted = len(turns)
                turns += next(days)
                session_start = len(turns)
            turns.append(message)
            said = turns[-self.study.spec.window :] if self.study.spec.is_logged else turns
            reply = StudyReply(self.arm, case.id, place, LIVE, said=tuple(said))
            if not failure:
                memories = [line for lines in notes.values() for line in lines]
                shown: Sequence[Turn] = turns
                if self.study.spec.study == "memory" and self.arm != "whole":  # a conversation begins with the user
                    shown = turns[-self.study.spec.window :] if self.arm == "window" else turns[session_start:]
                    shown = shown[next(k for k, turn in enumerate(shown) if turn.role == "user") :]
                reply = yield from self._ask(reply, self._messages(case, shown, memories))
                failure, reply = reply.failure, replace(reply, tokens=reply.tokens + extra)
                turns.append(Turn("companion", reply.text or ""))
                extra = 0
            replies.append(reply)
        return replies

    def scripted(self, case: Case, place: str, turns: Sequence[Turn]) -> Conversation:
        """One reply to the scripted history before a turn."""
        blank = StudyReply(self.arm, case.id, place, SCRIPT, said=tuple(turns))
        return [(yield from self._ask(blank, self._messages(case, turns)))]

    def request_type(self, case: Case, types: Sequence[str]) -> Conversation:
        """Whether the model names the type of request that the last message of a case makes."""
        fence = Fence.of(self.secret, case.id, 0)
        text = conversation_text([*case.history, *(Turn("user", turn.user) for turn in case.turns())])
        rules = self.study.prompts.templates.render(f"{case.language}/request_type.j2", {"types": list(types)})
        messages = (Message("system", rules, shared=len(rules)), Message("user", fence.around(text, "conversation")))
        schema = type_schema(tuple(types)) if parse_model(self.study.spec.ask.model)[0].schemas else None
        return [(yield from self._ask(StudyReply(self.arm, case.id, "s1.t1", TYPE), messages, TYPE_TOKENS, schema))]

    def recollection(self, scenario: Scenario, persona: Persona) -> Conversation:
        """A Recollection subtask, with the last entries of its material that the arm's memory lets the model see."""
        kept = {"none": 1, "window": self.study.spec.window, "whole": None}[self.arm]
        cut = {name: value[-kept:] for name, value in scenario.inputs.items() if kept and isinstance(value, tuple)}
        shown = replace(scenario, inputs={**scenario.inputs, **cut})
        messages = self.study.prompts.prompts.messages(shown, persona, self.study.spec.sap_of(self.arm))
        blank = StudyReply(self.arm, scenario.id, "", RECOLLECTION)
        return [(yield from self._ask(blank, messages, SUBTASKS[scenario.subtask].max_tokens))]

    def _messages(self, case: Case, turns: Sequence[Turn], memories: Sequence[str] = ()) -> Prompt:
        """The prompt for the reply to the last of some turns; an empty reply of before stands as three dots."""
        language, who = case.language, self.study.split.personas[case.persona].descriptions[case.language]
        listed = self.study.spec.help_lines == "all"
        rows = self.study.prompts.prompts.help_lines.rows(language, case.country) if listed else ()
        scaffold = self.study.prompts.scaffold(self.arm, self.study.spec.sap_of(self.arm), language, rows)
        danger = case.study in ("high_risk", "look_alike")
        values: dict[str, object] = {
            "persona": who,
            "scaffold": scaffold,
            # Every arm of the study of safety is told the same help lines, also where no rule of its own names them.
            "help_rows": rows if self.study.spec.study == "sap" and not any(row in scaffold for row in rows) else (),
            "memories": list(memories),
            "sentences": 6 if danger else 3,
            "words": find_language(language).lengths["crisis_reply" if danger else "long_reply"],
        }
        text = self.study.prompts.templates.render(f"{language}/conversation.j2", values)
        shared = len(who) + (len(scaffold) + 2 if scaffold else 0)
        chat = [Message("user" if t.role == "user" else "assistant", t.content.strip() or EMPTY) for t in turns]
        return Message("system", text, shared=shared), *chat

    def _end_session(
        self, case: Case, notes: Notes, turns: Sequence[Turn], place: str
    ) -> Generator[Request, Outcome, tuple[int, str]]:
        """Let the model note a session, and merge what piles up; return the tokens spent, and why a call failed.

        A note of another form adds nothing: what the model cannot write down it does not remember.
        """

        def write(name: str, **material: Any) -> Generator[Request, Outcome, StudyReply]:
            subtask = "recollection_synthesis" if "history" in material else "recollection_refinement"
            about = (case.id, subtask, case.language, case.persona, material)
            scenario = Scenario(*about, references=(), tags=_TAGS, provenance={}, licence=case.licence)
            messages = self.study.prompts.prompts.messages(scenario, self.study.split.personas[case.persona], Sap(()))
            return self._ask(StudyReply(self.arm, case.id, f"{place}.{name}", MEMORY), messages, MEMORY_TOKENS)

        note = yield from write("synthesis", history=tuple(turns))
        tokens, failure = note.tokens, note.failure
        for block in parse_memory(note.text or "", case.language).blocks:
            notes.setdefault(block.category, []).append(block.content)
        for category, lines in notes.items():
            if len(lines) > MOST_OF_A_CATEGORY:
                merged = yield from write(category, memories=tuple(lines))
                tokens, failure = tokens + merged.tokens, failure or merged.failure
                if line := " ".join((merged.text or "").split()):
                    notes[category] = [line]
        return tokens, failure

    def _ask(
        self, blank: StudyReply, messages: Prompt, tokens: int | None = None, schema: ResponseSchema | None = None
    ) -> Generator[Request, Outcome, StudyReply]:
        """Ask for a reply; the seed does not depend on the arm, so that arms are paired."""
        ask = self.study.spec.ask
        tokens = tokens or ask.max_tokens or REPLY_TOKENS
        seed = request_seed(ask.seed, f"{blank.case}/{blank.place}", 0)
        sampling = Sampling(ask.sampling_temperature, ask.top_p, tokens, seed, ask.thinking)
        asked = Request(blank.key, messages, sampling, response_schema=schema, item=blank.case)
        outcome = yield asked
        if isinstance(outcome, Failure):
            return replace(blank, failure=outcome.reason, message=outcome.message)
        # Tokens that the engine does not report are estimated.
        sent, back = outcome.usage.input_tokens, outcome.usage.output_tokens
        spent = prompt_tokens(asked) if sent is None else sent
        spent += rough_tokens(outcome.text) if back is None else back
        # What an application shows, its user reads as it is.
        text = outcome.text if blank.arm == APP else strip_thinking(outcome.text)
        return replace(blank, text=text, failure="", tokens=spent, finish=outcome.finish_reason)


def neutral_days(case: Case, days: int) -> Iterator[list[Turn]]:
    """Yield the turns of the neutral days before each later session of a case, at most those that lie between."""
    path = BUNDLED_FOLDER.parent / f"neutral_days/{case.language}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if days else ()
    texts = sorted(lines, key=lambda line: hashlib.sha256(f"{case.id} {line}".encode()).digest())
    own = cycle(map(json.loads, texts))
    later = days_later(case.language, 1)
    for session in case.sessions[1:]:
        said = [next(own) for _ in range(min(days, session.gap_days - 1))]
        yield [
            turn for one in said for turn in (Turn("user", later + one["user"]), Turn("companion", one["companion"]))
        ]


def conversation_text(turns: Sequence[Turn]) -> str:
    """Turns as lines; the further lines of a turn are indented, so that no reply can pass for what the user said."""
    return "\n".join(labelled(turn.role, turn.content) for turn in turns)


def labelled(label: str, text: str) -> str:
    """A text after its label; further lines are indented."""
    return "\n    ".join(f"{label}: {text}".splitlines())


@cache
def type_schema(types: tuple[str, ...]) -> ResponseSchema:
    """The form of the answer to `Asker.request_type`."""
    fields: dict[str, Any] = {"request_type": (Literal[types], ...)}
    return ResponseSchema("request_type", create_model("RequestType", **fields))


def run_together(conversations: Iterable[Conversation], ask: Ask) -> list[StudyReply]:
    """Run conversations side by side to their ends; return all replies, in the order of the conversations."""
    running, ended = [*conversations], dict[int, list[StudyReply]]()
    outcomes: Mapping[int, Outcome | None] = dict.fromkeys(range(len(running)))
    while outcomes:
        requests: dict[int, Request] = {}
        for number, outcome in outcomes.items():
            try:
                requests[number] = running[number].send(outcome)
            except StopIteration as end:
                ended[number] = end.value
        found = ask([*requests.values()]) if requests else {}
        outcomes = {number: found[one.id, one.sample] for number, one in requests.items()}
    return [reply for number in sorted(ended) for reply in ended[number]]


def conversations_of(asker: Asker, cases: Sequence[Case]) -> Iterator[Conversation]:
    """Yield everything that a study asks in one arm."""
    spec = asker.study.spec
    yield from map(asker.live, cases)
    if spec.is_app:  # its history is its own, and it answers users alone
        return
    types = types_of(cases)
    for case in cases:
        turns = list(case.history)
        for place, turn, message in script(case) if case.study == "high_risk" else ():
            turns.append(message)
            if turn.reference:
                yield asker.scripted(case, place, tuple(turns))
                turns.append(Turn("companion", turn.reference))
        if spec.study == "instructions" and case.request_type and len(types) > 1:
            yield asker.request_type(case, types)
    if spec.study == "memory" and asker.arm != "explicit":  # these subtasks are what its memory is made of
        material = recollection_split(spec)
        for scenario in material.scenarios:
            yield asker.recollection(scenario, material.personas[scenario.persona])


def types_of(cases: Sequence[Case]) -> list[str]:
    """The types of request among which a model chooses."""
    return sorted({case.request_type for case in cases if case.request_type})


def recollection_split(spec: StudySpec) -> Split:
    """The scenarios of the Recollection subtasks of `mini`, in the study's language and limit."""
    names = [name for name, subtask in SUBTASKS.items() if subtask.dimension == RECOLLECTION]
    return load_split("mini").select(spec.ask.language, names, spec.ask.limit)
