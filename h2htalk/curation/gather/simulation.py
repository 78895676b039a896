"""Simulate: two models talk, a user and a companion, over a grid of kinds of conversation.

All dialogues of a part speak their n-th turn together, so that a model is always asked for many at once. The two see
different things: the companion who it is, the user whom it plays and how that person feels, neither of them the
other's instructions. Every answer is stored as it comes and none is asked for twice.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from h2htalk.chat.engines import parse_model
from h2htalk.chat.protocol import Message, Reply, Request, request_seed
from h2htalk.curation.gather.cleaning import clean
from h2htalk.curation.gather.raw_items import RawDialogue, RefusedItem
from h2htalk.curation.licences import find
from h2htalk.curation.model_calls.model_identity import model_identity
from h2htalk.curation.model_calls.prompts import Prompts
from h2htalk.curation.model_calls.stored_calls import Asking, AskSettings, sampling_of, shared_limit
from h2htalk.curation.outcomes import Kept, Outcome, Rejected
from h2htalk.curation.settings import CurateSpec, SimulateSettings, resolve
from h2htalk.data.dialogue import Dialogue, Role
from h2htalk.data.languages import Language
from h2htalk.data.persona import Persona, bundled_personas
from h2htalk.data.responses import strip_thinking
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS
from h2htalk.errors import ConfigError

# What the simulated user writes where the talk has come to its end; taken out of the dialogue.
END = "[END]"
TEMPLATES = ("simulate_user", "simulate_start", "simulate_life", "simulate_companion")
_TEMPERATURE = 0.9
_TOKENS: Mapping[Role, int] = {"user": 120, "companion": 200}
_ROLES: tuple[Role, Role] = ("user", "companion")
_WHOLE_SENTENCE = re.compile(r"[.!?…。！？~～][\"'”’」』)）]*(?=\s|$)|[。！？…][”’」』）]*")


def open_simulation(spec: CurateSpec, base: Path) -> Simulation:
    """What a specification wants simulated, ready to talk. No model is opened yet.

    Raises:
        ConfigError: no such model, persona or prompt, or nothing to vary.
    """
    settings = spec.gather.simulate
    for role in _ROLES:
        if not getattr(settings, role):
            raise ConfigError(
                f"gather.simulate.{role} is missing: name a model, such as openai:gpt-4o or embedded"
            )
        parse_model(getattr(settings, role))
    if not settings.emotions or not settings.languages:
        raise ConfigError("gather.simulate needs at least one emotion and one language")
    for key in ("languages", "emotions", "personas"):
        given = getattr(settings, key)
        if doubles := [name for name in dict.fromkeys(given) if given.count(name) > 1]:
            raise ConfigError(
                f"gather.simulate.{key} names {', '.join(map(repr, doubles))} twice; name each once: all get the same "
                "share"
            )
    known = bundled_personas()
    names = settings.personas or tuple(known)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"gather.simulate.personas: no persona {name!r}; choose from {', '.join(known)}"
            )
        if lacking := [language for language in settings.languages if language not in known[name].names]:
            raise ConfigError(f"gather.simulate.personas: {name} has no description in {lacking[0]}")
    prompts = Prompts.load(spec.prompts and resolve(spec.prompts, base))
    plans = grid(settings, names, spec.seed)
    told: dict[str, str] = {role: model_identity(getattr(settings, role)) for role in _ROLES}
    chosen = {name: known[name] for name in names}
    return Simulation(settings, spec.seed, chosen, prompts, plans, told, spec.prices)


@dataclass(slots=True)
class _Talk:
    """A conversation under way."""

    plan: Plan
    systems: Mapping[Role, str]
    start: str
    turns: list[tuple[Role, str]] = field(default_factory=list)
    tags: set[str] = field(default_factory=set)
    refused: str = ""
    closing: bool = False  # the user has said the last word; the companion still answers

    def going_on(self, role: Role) -> bool:
        if self.refused or (self.closing and role == "user"):
            return False
        return not (self.closing and self.turns[-1][0] == "companion")

    def hear(self, role: Role, reply: Reply) -> None:
        """Take up what a model said."""
        said = strip_thinking(reply.text).strip()
        if role == "user" and END in said:
            said, self.closing = said.partition(END)[0].strip(), True
            if not said and self.turns:
                self.refused = self.refused or "over"  # nothing more to say: the dialogue is what was said
                return
        if reply.finish_reason in ("length", "context"):
            whole = list(_WHOLE_SENTENCE.finditer(said))
            said = said[: whole[-1].end()] if whole else ""
            self.tags.add("trimmed")
            self.refused = "" if said else "truncated"
        elif reply.finish_reason == "refusal":
            self.refused = "refused"
        elif not said:
            self.refused = "empty"
        if not self.refused:
            self.turns.append((role, said))


@dataclass(frozen=True, slots=True)
class Simulation:
    """Dialogues to be held by two models. `models`: user and companion, as records and manifests name them."""

    settings: SimulateSettings
    seed: int
    personas: Mapping[str, Persona]
    prompts: Prompts
    plans: tuple[Plan, ...]
    models: Mapping[str, str]
    prices: str = ""

    @property
    def licence(self) -> str:
        """Of the dialogues, as SPDX writes it."""
        known = find(self.settings.licence)
        return known.id if known is not None else self.settings.licence

    def to_settings(self) -> dict[str, Any]:
        """What changes the dialogues."""
        settings = self.settings
        names = [f"{language}/{name}.j2" for language in settings.languages for name in TEMPLATES]
        described = json.dumps([persona.to_dict() for persona in self.personas.values()], sort_keys=True)
        return {
            **self.models,
            "licence": self.licence,
            "dialogues": settings.dialogues,
            "turns": settings.turns,
            "languages": list(settings.languages),
            "emotions": list(settings.emotions),
            "personas": list(self.personas),
            "persona_texts": hashlib.sha256(described.encode()).hexdigest()[:16],
            "prompts": self.prompts.fingerprint(*names),
            "seed": self.seed,
        }

    @contextmanager
    def asking(self, folder: Path) -> Iterator[Mapping[Role, Asking]]:
        """The two models, over stored answers in a stage's folder. One model for both is opened once.

        The limit of cost holds for both together, whichever of them needs it.
        """
        paid = any(parse_model(getattr(self.settings, role))[0].hosted for role in _ROLES)
        limit = shared_limit(folder, self.settings.max_cost, self.prices) if paid else None
        asked = {
            role: AskSettings(getattr(self.settings, role), self.settings.max_cost, prices=self.prices)
            for role in _ROLES
        }
        with ExitStack() as stack:
            if asked["user"] == asked["companion"]:
                both = stack.enter_context(Asking(asked["user"], folder, "gather", limit))
                yield dict.fromkeys(_ROLES, both)
            else:
                yield {
                    role: stack.enter_context(Asking(asked[role], folder, f"gather-{role}", limit))
                    for role in _ROLES
                }

    def talk(self, plans: Sequence[Plan], speakers: Mapping[Role, Asking], part: str) -> list[Outcome]:
        """Hold the dialogues of a part, turn by turn together.

        Raises:
            Incomplete: calls failed; what was said is stored, and a restart goes on from there.
        """
        talks = [self._begin(plan) for plan in plans]
        for number in range(self.settings.turns):
            role = _ROLES[number % 2]
            speaking = [talk for talk in talks if talk.going_on(role)]
            if not speaking:
                break
            answers = speakers[role].ask([self._request(talk, role, number) for talk in speaking], part)
            for talk in speaking:
                talk.hear(role, answers[talk.plan.id, number])
        return [self._outcome(talk) for talk in talks]

    def _begin(self, plan: Plan) -> _Talk:
        persona = self.personas[plan.cell.persona]
        number = request_seed(self.seed, plan.id, 0)
        drawn = {"number": number}
        life, fact = (
            self._render(plan, "simulate_life", drawn | {"part": part}) for part in ("life", "fact")
        )
        shared = {"interaction": plan.cell.interaction, "fact": fact}
        user = shared | {
            "emotion": plan.cell.emotion,
            "complexity": plan.cell.complexity,
            "life": life,
            "companion": persona.names[plan.language],
            "relation": persona.relation,
            "end": END,
        }
        companion = shared | {"persona": persona.descriptions[plan.language]}
        return _Talk(
            plan,
            {
                "user": self._render(plan, "simulate_user", user),
                "companion": self._render(plan, "simulate_companion", companion),
            },
            self._render(plan, "simulate_start", {"companion": persona.names[plan.language]}),
        )

    def _render(self, plan: Plan, name: str, values: Mapping[str, object]) -> str:
        return self.prompts.render(f"{plan.language}/{name}.j2", values)

    def _request(self, talk: _Talk, role: Role, number: int) -> Request:
        """What a model is asked: its own instructions, and the talk with its own words as the assistant's."""
        messages = [Message("system", talk.systems[role])]
        if role == "user":
            messages.append(Message("user", talk.start))
        messages += [Message("assistant" if who == role else "user", said) for who, said in talk.turns]
        model = getattr(self.settings, role)
        sampling = sampling_of(model, _TEMPERATURE, _TOKENS[role], self.seed, talk.plan.id, number)
        return Request(talk.plan.id, tuple(messages), sampling, number)

    def _outcome(self, talk: _Talk) -> Outcome:
        plan, cell = talk.plan, talk.plan.cell
        kind = {"interaction": cell.interaction, "emotion": cell.emotion, "complexity": cell.complexity}
        metadata = {"system": talk.systems["companion"], **kind}
        try:
            if talk.refused not in ("", "over"):
                raise RefusedItem(talk.refused, message=len(talk.turns) + 1)
            cleaned = clean(RawDialogue(tuple(talk.turns), metadata=metadata), plan.language)
        except RefusedItem as refused:
            return Rejected(plan.id, refused.reason, dict(refused.evidence))
        made = {**self.models, "persona": cell.persona}
        provenance = {"source": SOURCE, "row": plan.row, "simulated": made | kind}
        dialogue = Dialogue(
            plan.id, plan.language, cleaned.messages, provenance, self.licence, cleaned.metadata
        )
        return Kept(dialogue.to_dict(), ("simulated", *sorted(talk.tags)))


SOURCE = "simulated"


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of conversation."""

    interaction: str
    emotion: str
    complexity: str
    persona: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A dialogue to be held: its id and row, its language, its cell."""

    id: str
    row: int
    language: Language
    cell: Cell


def grid(settings: SimulateSettings, personas: Sequence[str], seed: int) -> tuple[Plan, ...]:
    """The dialogues to hold: `settings.dialogues` of each language.

    Every cell of interaction x emotion x complexity comes as often as any other, give or take one; the seed says which
    come once more. Each cell meets every persona equally often, give or take one.
    """
    kinds = list(product(INTERACTIONS, settings.emotions, COMPLEXITIES))
    plans: list[Plan] = []
    cells: dict[tuple[int, str], Cell] = {}  # one object for each, however many dialogues
    for language in settings.languages:
        for at in range(settings.dialogues):
            turn, place = divmod(at, len(kinds))
            kind = _shuffled(len(kinds), f"{seed} {language} {turn} kinds")[place]
            # Within as many rounds as there are personas, a kind has each of them once.
            first = _shuffled(len(kinds), f"{seed} {language} {turn // len(personas)} personas")[kind]
            persona = personas[(first + turn) % len(personas)]
            cell = cells.setdefault((kind, persona), Cell(*kinds[kind], persona))
            row = len(plans) + 1
            plans.append(Plan(f"{SOURCE}-{row:06}", row, language, cell))
    return tuple(plans)


@lru_cache(maxsize=8)
def _shuffled(count: int, seed: str) -> tuple[int, ...]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return tuple(order)
