"""Simulate conversations between two models, a user and a companion, over a grid of kinds.

All dialogues of a part make their n-th turn together, so that a model gets many requests at once. The companion's model
is told who it is, the user's model whom it plays and how that person feels; neither sees the other's instructions.
Every reply is stored when it comes, and none is requested twice.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from h2htalk.chat.engines import ChatOptions, model_identity
from h2htalk.chat.protocol import Message, Reply, Request, request_seed
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, sampling_of
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem, clean
from h2htalk.curation.licences import licence_id
from h2htalk.curation.prompts import Prompts, fingerprint
from h2htalk.curation.stage_folder import Kept, Outcome, Rejected
from h2htalk.curation.stages import SIMULATED, CurateSpec, GatherSettings, SimulateSettings
from h2htalk.data.languages import Language
from h2htalk.data.model_names import without_paths
from h2htalk.data.replies.finish_reasons import CUT, FILTERED, REFUSAL, read_finish_reason
from h2htalk.data.replies.reasoning import strip_reasoning
from h2htalk.data.responses import CALLS, FILTERED_REPLY
from h2htalk.data.scenario import (
    COMPLEXITIES,
    INTERACTIONS,
    ROLES,
    Dialogue,
    Persona,
    Role,
    bundled_personas,
)
from h2htalk.errors import ConfigError

END = "[END]"  # what the simulated user writes at the end of the conversation; removed from the dialogue
TEMPLATES = ("simulate_user", "simulate_start", "simulate_life", "simulate_companion")
_TEMPERATURE = 0.9
_TOKENS: Mapping[Role, int] = {"user": 120, "companion": 200}
_WHOLE_SENTENCE = re.compile(r"[.!?…。！？~～][\"'”’」』)）]*(?=\s|$)|[。！？…][”’」』）]*")


@dataclass(frozen=True, slots=True)
class PlannedDialogue:
    """A dialogue to simulate; `kind`: its `interaction`, `emotion` and `complexity`."""

    id: str
    row: int
    language: Language
    kind: Mapping[str, str]
    persona: str


def grid(
    settings: SimulateSettings, personas: Sequence[str], seed: int
) -> tuple[PlannedDialogue, ...]:
    """The dialogues to simulate, `settings.dialogues` of each language: those of interaction x emotion x complexity
    differ by at most one, which the seed decides; each kind gets every persona equally often, or once more."""
    axes = ("interaction", "emotion", "complexity")
    kinds = [
        dict(zip(axes, one, strict=True))
        for one in product(INTERACTIONS, settings.emotions, COMPLEXITIES)
    ]
    plans: list[PlannedDialogue] = []
    for language in settings.languages:
        for at in range(settings.dialogues):
            turn, place = divmod(at, len(kinds))
            kind = _shuffled(len(kinds), f"{seed} {language} {turn} kinds")[place]
            # In as many rounds as there are personas, a kind gets each of them once.
            first = _shuffled(len(kinds), f"{seed} {language} {turn // len(personas)} personas")[
                kind
            ]
            row = len(plans) + 1
            persona = personas[(first + turn) % len(personas)]
            plans.append(
                PlannedDialogue(f"{SIMULATED}-{row:06}", row, language, kinds[kind], persona)
            )
    return tuple(plans)


@lru_cache(maxsize=8)
def _shuffled(count: int, seed: str) -> tuple[int, ...]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return tuple(order)


def open_simulation(spec: CurateSpec) -> Simulation:
    """Plan what a specification simulates. Raises ConfigError for a missing or unknown model, persona or prompt."""
    settings = spec.section(GatherSettings).simulate
    if missing := [role for role in ROLES if not getattr(settings, role)]:
        raise ConfigError(
            f"gather.simulate.{missing[0]} is missing: name a model, such as openai:gpt-4o or embedded"
        )
    known = bundled_personas()
    names = settings.personas or tuple(known)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"gather.simulate.personas: no persona {name!r}; choose from {', '.join(known)}"
            )
        if lacking := [
            language for language in settings.languages if language not in known[name].names
        ]:
            raise ConfigError(
                f"gather.simulate.personas: {name} has no description in {lacking[0]}"
            )
    personas = {name: known[name] for name in names}
    plans = grid(settings, names, spec.seed)
    models: dict[str, str] = {role: model_identity(getattr(settings, role)) for role in ROLES}
    return Simulation(
        settings, spec.seed, personas, Prompts.load(spec.prompts), plans, models, spec.prices
    )


@dataclass(slots=True)
class _Conversation:
    """A conversation in progress."""

    plan: PlannedDialogue
    systems: Mapping[Role, str]
    start: str
    turns: list[tuple[Role, str]] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    refused: str = ""  # why it ends here: `over`, or the reason of the rejection
    closing: bool = False  # the user has ended it; the companion replies once more

    def add(self, role: Role, reply: Reply) -> None:
        """Add a model's reply as a turn."""
        text = strip_reasoning(reply.text).strip()
        if role == "user" and END in text:
            text, self.closing = text.partition(END)[0].strip(), True
            if not text and self.turns:
                self.refused = "over"  # no new turn: the dialogue ends with the one before
                return
        ending = read_finish_reason(reply.finish_reason)
        if ending in CUT:
            whole = list(_WHOLE_SENTENCE.finditer(text))
            text = text[: whole[-1].end()] if whole else ""
            self.tags.add("trimmed")
            self.refused = "" if text else "truncated"
        elif ending == REFUSAL:
            self.refused = "refused"
        elif ending == FILTERED:
            self.refused = FILTERED_REPLY
        elif not text:
            self.refused = "empty"
        if not self.refused:
            self.turns.append((role, text))
            self.refused = "over" if self.closing and role == "companion" else ""


@dataclass(frozen=True, slots=True)
class Simulation:
    """Dialogues to simulate. `models`: the identities of user and companion, as records name them."""

    settings: SimulateSettings
    seed: int
    personas: Mapping[str, Persona]
    prompts: Prompts
    plans: tuple[PlannedDialogue, ...]
    models: Mapping[str, str]
    prices: str = ""

    def to_settings(self) -> dict[str, Any]:
        """What changes the dialogues."""
        values = {key: value for key, value in asdict(self.settings).items() if key != "max_cost"}
        if not self.settings.engine_options:  # without any, as earlier versions signed
            del values["engine_options"]
        names = [
            f"{language}/{name}.j2" for language in self.settings.languages for name in TEMPLATES
        ]
        return values | {
            **self.models,
            "licence": licence_id(self.settings.licence),
            "personas": list(self.personas),
            "persona_texts": fingerprint([persona.to_dict() for persona in self.personas.values()]),
            "prompts": self.prompts.fingerprint(*names),
            "seed": self.seed,
        }

    def calls(self) -> tuple[CallSettings, ...]:
        """How user and companion are called."""
        options = ChatOptions(engine_options=self.settings.engine_options)
        return tuple(
            CallSettings(
                model=getattr(self.settings, role),
                max_cost=self.settings.max_cost,
                prices=self.prices,
                options=options,
                option="gather.simulate.engine_options",
            )
            for role in ROLES
        )

    @contextmanager
    def open_models(self, folder: Path) -> Iterator[Mapping[Role, ModelCalls]]:
        """Open both models, a common one once, over the replies in a stage's folder; the limit of cost is of both."""
        user, companion = self.calls()
        with CallStore(folder / CALLS) as store, ExitStack() as stack:
            if user == companion:
                yield dict.fromkeys(ROLES, stack.enter_context(ModelCalls(user, store, "gather")))
            else:
                both = zip(ROLES, (user, companion), strict=True)
                yield {
                    role: stack.enter_context(ModelCalls(one, store, f"gather-{role}"))
                    for role, one in both
                }

    def talk(
        self, plans: Sequence[PlannedDialogue], models: Mapping[Role, ModelCalls], part: str
    ) -> list[Outcome]:
        """Simulate the dialogues of a part, turn by turn together; each turn is stored. Raises IncompleteError."""
        talks = [self._begin(plan) for plan in plans]
        for number in range(self.settings.turns):
            role = ROLES[number % 2]
            if not (waiting := [talk for talk in talks if not talk.refused]):
                break
            replies = models[role].ask(
                [self._request(talk, role, number) for talk in waiting], part
            )
            for talk in waiting:
                talk.add(role, replies[talk.plan.id, number])
        return [self._outcome(talk) for talk in talks]

    def _begin(self, plan: PlannedDialogue) -> _Conversation:
        def render(name: str, **values: object) -> str:
            return self.prompts.render(f"{plan.language}/{name}.j2", values)

        persona = self.personas[plan.persona]
        number = request_seed(self.seed, plan.id, 0)
        name = persona.names[plan.language]
        shared = {**plan.kind, "fact": render("simulate_life", number=number, part="fact")}
        life = render("simulate_life", number=number, part="life")
        user = render(
            "simulate_user", **shared, life=life, companion=name, relation=persona.relation, end=END
        )
        companion = render(
            "simulate_companion", **shared, persona=persona.descriptions[plan.language]
        )
        return _Conversation(
            plan, {"user": user, "companion": companion}, render("simulate_start", companion=name)
        )

    def _request(self, talk: _Conversation, role: Role, number: int) -> Request:
        """The call for a turn: the model's own instructions, and the conversation with its turns as the assistant's."""
        messages = [Message("system", talk.systems[role])]
        if role == "user":
            messages.append(Message("user", talk.start))
        messages += [
            Message("assistant" if speaker == role else "user", text)
            for speaker, text in talk.turns
        ]
        model = getattr(self.settings, role)
        sampling = sampling_of(model, _TEMPERATURE, _TOKENS[role], self.seed, talk.plan.id, number)
        return Request(talk.plan.id, tuple(messages), sampling, number)

    def _outcome(self, talk: _Conversation) -> Outcome:
        plan = talk.plan
        try:
            if talk.refused not in ("", "over"):
                raise RefusedItem(talk.refused, message=len(talk.turns) + 1)
            metadata = {"system": talk.systems["companion"], **plan.kind}
            cleaned = clean(RawDialogue(tuple(talk.turns), metadata=metadata), plan.language)
        except RefusedItem as refused:
            return Rejected(plan.id, refused.reason, dict(refused.evidence))
        models = without_paths(self.models)
        made = {**models, "persona": plan.persona, **plan.kind}
        provenance = {"source": SIMULATED, "row": plan.row, "simulated": made}
        licence = licence_id(self.settings.licence)
        dialogue = Dialogue(
            plan.id, plan.language, cleaned.messages, provenance, licence, cleaned.metadata
        )
        return Kept(dialogue.to_dict(), ("simulated", *sorted(talk.tags)))
