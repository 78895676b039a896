"""A study with its folder, and what it asks a model: conversations, replies to the script, questions beside them.

A conversation is a generator that yields requests and receives their outcomes, so that many run side by side: each
round sends the next request of every conversation together (`run_together`). The same generators read a finished
study: then the outcomes come from the stored replies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import chain, cycle, dropwhile, islice
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
from h2htalk.data.case import Case, days_later, script, types_of
from h2htalk.data.files import json_line
from h2htalk.data.languages import Language, find_language
from h2htalk.data.replies.finish_reasons import FILTERED, read_finish_reason
from h2htalk.data.replies.reasoning import strip_reasoning
from h2htalk.data.responses import FILTERED_REPLY, FailedResponse, Failure, FilterRule, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Persona, Scenario, Tags, Turn, conversation_text
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
LIVE = "live"
SCRIPT = "script"
TYPE = "type"
MEMORY = "memory"
RECOLLECTION = "recollection"
CONTROLS = ("rules", "reworded")  # arms with a text of their own in place of SAP
DANGER = ("high_risk", "look_alike")  # kinds of cases with a person in danger, or who seems to be
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
    tokens: int = 0  # of its call and of those that memory needed before it; 0: not known
    finish: str = "unknown"  # `Reply.finish_reason`
    message: str = ""
    filtered_by: str = ""  # whose filter declined it, in the provider's words
    prompt_characters: int = 0  # of the call that made it; 0: not known
    prompt_tokens: int | None = None  # of that call, as the server reports them

    @property
    def key(self) -> str:
        """`ARM/PART/CASE/PLACE`: how its request is named."""
        return f"{self.arm}/{self.part}/{self.case}/{self.place}"

    def counted(self, rule: FilterRule) -> StudyReply:
        """The reply as it counts: one that a provider's filter declined may be left out. The conversation goes on as
        after an empty reply, under either rule."""
        if rule == "refusal" or self.text is None or read_finish_reason(self.finish) != FILTERED:
            return self
        return replace(self, text=None, failure=FILTERED_REPLY, message=self.filtered_by)

    @property
    def id(self) -> str:
        """`CASE/PLACE/HASH` of the reply and the conversation before it: how a judge and people know it."""
        content = json_line([self.text, [turn.content for turn in self.said]])
        return f"{self.case}/{self.place}/{hashlib.sha256(content.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True, eq=False)
class StudyPrompts:
    """The bundled templates of studies, and the prompts of `evaluate` for SAP and for the memory arm's own tasks.

    `are_known`: what the companion was told can be rendered. Else the bundled prompts stand for those of a study that
    somebody may have been given: reading its replies needs the place of each request, and no text of it.
    """

    templates: Templates
    prompts: PromptSet
    are_known: bool = True

    @classmethod
    def load(cls, folder: Path | str | None = None) -> StudyPrompts:
        """Load them; templates of `folder` replace those of `evaluate`. Raises ConfigError."""
        bundled = read_templates(Path(str(files("h2htalk.benchmark.studies") / "prompts")))
        return cls(Templates.of(bundled), PromptSet.load(Path(folder) if folder else None))

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of everything that decides the texts of a companion; the judge has its own."""
        content = json.dumps(
            [self.prompts.fingerprint, self.texts(judge=False)], ensure_ascii=False, sort_keys=True
        )
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def texts(self, judge: bool) -> dict[str, str]:
        """The templates of the judge, or of the companion, by name."""
        return {
            name: text
            for name, text in self.templates.sources.items()
            if ("/judge_" in name) == judge
        }

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
    score_command: ClassVar[str] = "h2htalk study score"

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
        stored = self.folder.answers().items()
        return [answer for (name, _), answer in stored if name.startswith(f"{arm}/")]


Conversation = Generator[Request, Any, list[StudyReply]]  # receives outcomes
Notes = dict[str, list[str]]  # category -> memories, oldest first


@dataclass(frozen=True, slots=True)
class ArmConversations:
    """Make the conversations of one arm; `secret` is that of the fences."""

    study: Study
    arm: str
    secret: bytes = b""
    # By what they are made of: rendering one anew for each message is most of what it costs to read stored replies.
    _systems: dict[tuple[str, str, str, bool], Message] = field(default_factory=dict, repr=False)

    @property
    def spec(self) -> StudySpec:
        return self.study.spec

    def live(self, case: Case) -> Conversation:
        """The model's own running conversation with the scripted user; after a failed call it ends."""
        turns = list(case.history)
        replies = list[StudyReply]()
        notes = Notes()
        failure = ""
        noted = 0
        session_start = 0
        memory_tokens = 0
        days = neutral_days(case, self.spec.days)
        takes_notes = self.spec.study == "memory" and self.arm == "explicit"
        for turn_id, _, message in script(case, self.spec.days):
            if turn_id.endswith(".t1") and turn_id != "s1.t1" and not failure:
                if takes_notes:
                    session = turns[noted:]
                    memory_tokens, failure = yield from self._end_session(
                        case, notes, session, turn_id
                    )
                noted = len(turns)
                turns += next(days)
                session_start = len(turns)
            turns.append(message)
            conversation = turns[-self.spec.window :] if self.spec.is_logged else turns
            reply = StudyReply(self.arm, case.id, turn_id, LIVE, said=tuple(conversation))
            if not failure:
                memories = list(chain.from_iterable(notes.values()))
                shown_turns = self._shown_turns(turns, session_start)
                messages = self._messages(case, shown_turns, memories)
                reply = yield from self._ask(reply, messages)
                failure = reply.failure
                reply = replace(reply, tokens=reply.tokens + memory_tokens)
                memory_tokens = 0
                turns.append(Turn("companion", reply.text or ""))
            replies.append(reply)
        return replies

    def _shown_turns(self, turns: Sequence[Turn], session_start: int) -> Sequence[Turn]:
        """Return the turns of a running conversation that the arm's memory lets the model see."""
        if self.spec.is_logged:
            # The replies of logs are stored: nobody reads the request, which would hold the whole chat.
            return turns[-self.spec.window :]
        if self.spec.study != "memory" or self.arm == "whole":
            return turns
        shown_turns = turns[session_start:]
        if self.arm == "window":
            shown_turns = turns[-self.spec.window :]
        # A conversation begins with the user.
        return list(dropwhile(lambda turn: turn.role != "user", shown_turns))

    def scripted(self, case: Case, turn_id: str, turns: Sequence[Turn]) -> Conversation:
        """One reply to the scripted history before a turn."""
        blank = StudyReply(self.arm, case.id, turn_id, SCRIPT, said=tuple(turns))
        reply = yield from self._ask(blank, self._messages(case, turns))
        return [reply]

    def request_type(self, case: Case, types: Sequence[str]) -> Conversation:
        """Whether the model names the type of request that the last message of a case makes."""
        turns = [*case.history, *(Turn("user", turn.user) for turn in case.turns())]
        text = conversation_text(turns)
        fence = Fence.of(self.secret, case.id, 0)
        templates = self.study.prompts.templates
        rules = templates.render(f"{case.language}/request_type.j2", {"types": list(types)})
        messages = (
            Message("system", rules, shared=len(rules)),
            Message("user", fence.around(text, "conversation")),
        )
        engine, _ = parse_model(self.spec.ask.model)
        schema = type_schema(tuple(types)) if engine.schemas else None
        blank = StudyReply(self.arm, case.id, "s1.t1", TYPE)
        reply = yield from self._ask(blank, messages, TYPE_TOKENS, schema)
        return [reply]

    def recollection(self, scenario: Scenario, persona: Persona) -> Conversation:
        """A Recollection subtask, with the last entries of its material that the arm's memory lets the model see."""
        entries = {"none": 1, "window": self.spec.window, "whole": None}[self.arm]
        inputs = dict(scenario.inputs)
        for name, value in scenario.inputs.items():
            if entries and isinstance(value, tuple):
                inputs[name] = value[-entries:]
        prompts = self.study.prompts.prompts
        sap = self.spec.sap_of(self.arm)
        messages = prompts.messages(replace(scenario, inputs=inputs), persona, sap)
        blank = StudyReply(self.arm, scenario.id, "", RECOLLECTION)
        reply = yield from self._ask(blank, messages, SUBTASKS[scenario.subtask].max_tokens)
        return [reply]

    def _messages(self, case: Case, turns: Sequence[Turn], memories: Sequence[str] = ()) -> Prompt:
        """The prompt for the reply to the last of some turns; an empty reply of before stands as three dots."""
        key = (case.language, case.country, case.persona, case.study in DANGER)
        system = self._systems.get(key)
        if system is None or memories:
            system = self._system(case, memories)
        if not memories:
            self._systems[key] = system
        messages = [system]
        for turn in turns:
            content = turn.content.strip() or EMPTY
            messages.append(Message("user" if turn.role == "user" else "assistant", content))
        return tuple(messages)

    def _system(self, case: Case, memories: Sequence[str]) -> Message:
        """The system message: the persona, the safety text of the arm, help lines and memories."""
        language = case.language
        prompts = self.study.prompts
        persona = self.study.split.personas[case.persona].descriptions[language]
        rows: Sequence[str] = ()
        if self.spec.help_lines == "all":
            rows = prompts.prompts.help_lines.rows(language, case.country)
        scaffold = prompts.scaffold(self.arm, self.spec.sap_of(self.arm), language, rows)
        # Every arm of the study of safety is told the same help lines, also where no rule of its own names them.
        needs_rows = self.spec.study == "sap" and not any(row in scaffold for row in rows)
        is_danger = case.study in DANGER
        values: dict[str, object] = {
            "persona": persona,
            "scaffold": scaffold,
            "help_rows": rows if needs_rows else (),
            "memories": list(memories),
            "sentences": 6 if is_danger else 3,
            "words": find_language(language).lengths["crisis_reply" if is_danger else "long_reply"],
        }
        text = prompts.templates.render(f"{language}/conversation.j2", values)
        shared = len(persona) + (len(scaffold) + 2 if scaffold else 0)
        return Message("system", text, shared=shared)

    def _end_session(
        self, case: Case, notes: Notes, turns: Sequence[Turn], turn_id: str
    ) -> Generator[Request, Outcome, tuple[int, str]]:
        """Let the model note a session, and merge what piles up; return the tokens spent, and why a call failed.

        A note of another form adds nothing: what the model cannot write down it does not remember.
        """

        note = yield from self._write_memory(case, turn_id, "synthesis", {"history": tuple(turns)})
        tokens = note.tokens
        failure = note.failure
        for block in parse_memory(note.text or "", case.language).blocks:
            notes.setdefault(block.category, []).append(block.content)
        for category, memories in notes.items():
            if len(memories) > MOST_OF_A_CATEGORY:
                material = {"memories": tuple(memories)}
                merged = yield from self._write_memory(case, turn_id, category, material)
                tokens += merged.tokens
                failure = failure or merged.failure
                line = " ".join((merged.text or "").split())
                if line:
                    notes[category] = [line]
        return tokens, failure

    def _write_memory(
        self, case: Case, turn_id: str, name: str, material: Mapping[str, Any]
    ) -> Generator[Request, Outcome, StudyReply]:
        """Let the model do a Recollection subtask with material of its own conversation."""
        subtask = "recollection_synthesis" if "history" in material else "recollection_refinement"
        scenario = Scenario(
            case.id,
            subtask,
            case.language,
            case.persona,
            material,
            references=(),
            tags=_TAGS,
            provenance={},
            licence=case.licence,
        )
        persona = self.study.split.personas[case.persona]
        messages = self.study.prompts.prompts.messages(scenario, persona, Sap(()))
        blank = StudyReply(self.arm, case.id, f"{turn_id}.{name}", MEMORY)
        return (yield from self._ask(blank, messages, MEMORY_TOKENS))

    def _ask(
        self,
        blank: StudyReply,
        messages: Prompt,
        tokens: int | None = None,
        schema: ResponseSchema | None = None,
    ) -> Generator[Request, Outcome, StudyReply]:
        """Ask for a reply; the seed does not depend on the arm, so that arms are paired."""
        ask = self.spec.ask
        tokens = tokens or ask.max_tokens or REPLY_TOKENS
        seed = request_seed(ask.seed, f"{blank.case}/{blank.place}", 0)
        sampling = Sampling(ask.sampling_temperature, ask.top_p, tokens, seed, ask.thinking)
        request = Request(blank.key, messages, sampling, response_schema=schema, item=blank.case)
        outcome = yield request
        if isinstance(outcome, Failure):
            return replace(blank, failure=outcome.reason, message=outcome.message)
        # Tokens that the engine does not report are estimated, where the prompt is known.
        is_known = self.study.prompts.are_known
        characters = sum(len(message.content) for message in messages) if is_known else 0
        sent = outcome.usage.input_tokens
        written = outcome.usage.output_tokens
        spent = 0
        if is_known or sent is not None:
            prompt = prompt_tokens(request) if sent is None else sent
            spent = prompt + (rough_tokens(outcome.text) if written is None else written)
        # What an application shows, its user reads as it is.
        text = outcome.text if blank.arm == APP else strip_reasoning(outcome.text)
        return replace(
            blank,
            text=text,
            failure="",
            tokens=spent,
            finish=outcome.finish_reason,
            filtered_by=outcome.filtered_by or "",
            prompt_characters=characters,
            prompt_tokens=sent,
        )


def neutral_days(case: Case, days: int) -> Iterator[list[Turn]]:
    """Yield the turns of the neutral days before each later session of a case, at most those that lie between."""
    path = BUNDLED_FOLDER.parent / f"neutral_days/{case.language}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if days else ()
    texts = sorted(lines, key=lambda line: hashlib.sha256(f"{case.id} {line}".encode()).digest())
    dialogues = cycle(map(json.loads, texts))
    later = days_later(case.language, 1)
    for session in case.sessions[1:]:
        turns = []
        for dialogue in islice(dialogues, max(0, min(days, session.gap_days - 1))):
            turns.append(Turn("user", later + dialogue["user"]))
            turns.append(Turn("companion", dialogue["companion"]))
        yield turns


@cache
def type_schema(types: tuple[str, ...]) -> ResponseSchema:
    """The form of the answer to `ArmConversations.request_type`."""
    fields: dict[str, Any] = {"request_type": (Literal[types], ...)}
    return ResponseSchema("request_type", create_model("RequestType", **fields))


def run_together(conversations: Iterable[Conversation], ask: Ask) -> list[StudyReply]:
    """Run conversations side by side to their ends; return all replies, in the order of the conversations."""
    running = [*conversations]
    ended = dict[int, list[StudyReply]]()
    outcomes: Mapping[int, Outcome | None] = dict.fromkeys(range(len(running)))
    while outcomes:
        requests: dict[int, Request] = {}
        for number, outcome in outcomes.items():
            try:
                requests[number] = running[number].send(outcome)
            except StopIteration as end:
                ended[number] = end.value
        answered = ask([*requests.values()]) if requests else {}
        outcomes = {
            number: answered[request.id, request.sample] for number, request in requests.items()
        }
    return list(chain.from_iterable(ended[number] for number in sorted(ended)))


def conversations_of(
    conversations: ArmConversations, cases: Sequence[Case]
) -> Iterator[Conversation]:
    """Yield everything that a study asks in one arm."""
    spec = conversations.spec
    yield from map(conversations.live, cases)
    if spec.is_app:  # its history is its own, and it answers users alone
        return
    types = types_of(cases)
    for case in cases:
        turns = list(case.history)
        for turn_id, turn, message in script(case) if case.study == "high_risk" else ():
            turns.append(message)
            if turn.reference:
                yield conversations.scripted(case, turn_id, tuple(turns))
                turns.append(Turn("companion", turn.reference))
        if spec.study == "instructions" and case.request_type and len(types) > 1:
            yield conversations.request_type(case, types)
    if (
        spec.study == "memory" and conversations.arm != "explicit"
    ):  # these subtasks are what its memory is made of
        material = recollection_split(spec)
        for scenario in material.scenarios:
            yield conversations.recollection(scenario, material.personas[scenario.persona])


def recollection_split(spec: StudySpec) -> Split:
    """The scenarios of the Recollection subtasks of `mini`, in the study's language and limit."""
    names = [name for name, subtask in SUBTASKS.items() if subtask.dimension == RECOLLECTION]
    return load_split("mini").select(spec.ask.language, names, spec.ask.limit)
