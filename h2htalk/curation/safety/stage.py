"""The safety stage: layers give evidence on a dialogue, one policy decides, a guard model may decide doubtful cases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from h2htalk.chat.engines import model_identity
from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls
from h2htalk.curation.run import RuleFactory, StageRun
from h2htalk.curation.safety import companion, crisis, danger_encoder, lexicons
from h2htalk.curation.safety.content_rules import READ, find_unusable_content
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.ngram_classifier import load_classifier, load_joint, read_together
from h2htalk.curation.safety.policy import Assessment, Explicit, Safety, Verdict, apply_verdict, decide_safety
from h2htalk.curation.safety.text_folding import fold_spelling
from h2htalk.curation.stage_folder import Kept, Outcome, Outcomes, PartRule, Record, Rejected, read_dialogue
from h2htalk.curation.stages import CurateSpec, SafetySettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Dialogue
from h2htalk.text.language_data import language_data, read_data

VERSION = 6
Terms = Mapping[Language, frozenset[str]]


def assess(
    dialogue: Dialogue,
    terms: frozenset[str] = frozenset(),
    explicit: Explicit = "remove",
    encoder: crisis.Encoder | None = None,
) -> Assessment:
    """Decide on a dialogue: keep it, keep it with tags, keep it for a person to decide, or remove it.

    `terms`: politically sensitive terms of the user's own (`lexicons.read_terms`); `explicit`: whether a companion's
    sexual content between adults removes the dialogue or tags it; `encoder`: a second reader of dangers. The decision
    depends on this dialogue alone.
    """
    language = dialogue.language
    thresholds = {**load_classifier(lexicons.OFFENSIVE, language).manifest, **language_data(lexicons.INSULTS, language)}
    turns = [  # of a message of megabytes its start and its end
        turn
        if len(text := turn.content) <= READ
        else replace(turn, content=f"{text[: READ // 2]}\n{text[-READ // 2 :]}")
        for turn in dialogue.messages
    ]
    # The features of all texts that are read are computed at once, which is faster.
    before = (one for _, text, _ in companion.companion_turns(turns) for one in companion.pieces_of(text, language))
    texts = [*(fold_spelling(turn.content, language) for turn in turns), *before]
    read_together(texts, load_joint(companion.DATA, language).features)
    evidence: list[Evidence] = []
    targets: list[Evidence] = []  # whom an insult is for matters only where there is one
    scores = lexicons.offences([lexicons.without_everyday(turn.content, language) for turn in turns], language)
    for at, (turn, score) in enumerate(zip(turns, scores, strict=True)):
        text, seeker = turn.content, turn.role == "user"
        listed = lexicons.find_listed(text, language)
        offensive = score >= thresholds["low"]
        found = [*listed, lexicons.find_political(text, language, terms, seeker)]
        if offensive:
            found.append(Evidence("classifier", "offensive", score))
        if offensive or any(one.category.startswith("offensive.") for one in listed):
            targets += [replace(one, turn=at) for one in lexicons.find_contempt(text, language, listed)]
        evidence += [replace(one, turn=at) for one in found if one is not None]
    for at, turn in enumerate(turns if targets else ()):
        if turn.role == "user" and (report := lexicons.find_report(turn.content, language)):
            evidence.append(replace(report, turn=at))
    evidence += targets
    evidence += [*crisis.find_crisis(turns, language, encoder), *companion.find_companion(turns, language)]
    evidence += find_unusable_content(dialogue)
    return decide_safety(dialogue, evidence, thresholds, explicit)


# A guard is any chat model that replies in the form of Qwen3Guard (two lines and more) or of Llama Guard (`safe`, or
# `unsafe` and a line of codes).
_LONGEST_REPLY = 2000  # characters
_CODES = Path(__file__).with_name("guard_categories.toml")
_WORDS: Mapping[str, Safety] = {"safe": "safe", "unsafe": "unsafe", "controversial": "controversial"}
_SAFETY = re.compile(r"^\s*Safety:[ \t]*(\w+)[ \t]*$", re.MULTILINE)
_CATEGORIES = re.compile(r"^\s*Categories:[ \t]*(.*)$", re.MULTILINE)
_LLAMA = re.compile(r"\s*(safe|unsafe)[ \t]*(?:\n\s*(S\d{1,2}(?:[ \t]*,[ \t]*S\d{1,2}){0,13}))?\s*")
# The last messages of a dialogue that a guard reads, and characters of each: the contexts of guards are short.
MESSAGES, LONGEST = 40, 4000


def guard_request(dialogue: Dialogue) -> Request:
    """The dialogue as chat messages for a guard model, whose own template adds the policy."""
    roles: Mapping[str, Literal["user", "assistant"]] = {"user": "user", "companion": "assistant"}
    turns = dialogue.messages[-MESSAGES:]
    while len(turns) > 1 and turns[0].role == "companion":  # templates require the user to begin
        turns = turns[1:]
    messages = tuple(Message(roles[turn.role], turn.content[:LONGEST]) for turn in turns)
    return Request(dialogue.id, messages, Sampling(temperature=0.0, max_tokens=64, thinking=0))


def read_verdict(reply: Reply) -> Verdict:
    """Read `Safety: WORD` and `Categories: NAMES` (Qwen3Guard's form), or `unsafe` and `S1,S11` (Llama Guard's); a
    reply in another form is undecided."""
    words, listed = _SAFETY.findall(reply.text), _CATEGORIES.findall(reply.text)
    if llama := _LLAMA.fullmatch(reply.text[:_LONGEST_REPLY]):
        words, listed = [llama[1]], [llama[2] or ""]
    if reply.finish_reason != "stop" or len(reply.text) > _LONGEST_REPLY or len(words) != 1 or len(listed) != 1:
        return Verdict("undecided")
    codes, safety = read_data(_CODES)["categories"], _WORDS.get(words[0].lower(), "undecided")
    names = [name for part in listed[0].split(",") if (name := part.strip()) and name.lower() != "none"]
    if safety == "undecided" or (safety == "safe") == bool(names) or any(name.lower() not in codes for name in names):
        return Verdict("undecided")
    return Verdict(safety, {name: codes[name.lower()] for name in names if codes[name.lower()]})


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it; `key` is not used. Raises ConfigError."""
    settings = spec.section(SafetySettings)
    folders = (lexicons.OFFENSIVE, lexicons.MASKED, lexicons.POLITICAL_DATA)
    models = {}
    for language in LANGUAGES:
        manifests = [load_classifier(folder, language).manifest for folder in folders]
        manifests += [load_joint(folder, language).manifest for folder in (crisis.DATA, companion.DATA)]
        models[language] = [manifest["texts_sha256"][:12] for manifest in manifests]
    values = {
        "guard": model_identity(settings.guard),
        "terms": sorted(set().union(*_read_terms(settings.sensitive).values())),
        "models": models,
        "explicit": settings.explicit,
    }
    guard = CallSettings(settings.guard, settings.max_cost, prices=spec.prices) if settings.guard else None
    encoded = settings.dangers == "encoder"
    values |= {"encoder": danger_encoder.identity()} if encoded else {}
    arguments = (guard, settings.sensitive, settings.explicit, str(workspace.stage("safety").path), encoded)
    return StageRun("safety", VERSION, values, RuleFactory(open_rule, arguments), calls=(guard,) if guard else ())


def _read_terms(path: str) -> Terms:
    return {language: lexicons.read_terms(path, language) for language in LANGUAGES}


def open_rule(
    guard: CallSettings | None, sensitive: str, explicit: Explicit, folder: str, encoded: bool = False
) -> PartRule:
    """The rule of the stage, with or without an encoder and a guard, whose replies are stored in `folder`."""
    calls = ModelCalls(guard, Path(folder), "safety") if guard is not None else None
    return _Rule(calls, _read_terms(sensitive), explicit, danger_encoder.load_encoder() if encoded else None)


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """The rule for a part of dialogues."""

    guard: ModelCalls | None
    terms: Terms
    explicit: Explicit
    encoder: crisis.Encoder | None

    def __call__(self, records: Sequence[Record], part: str) -> Sequence[Outcomes]:
        read = [read_dialogue(record) for record in records]
        dialogues = [one for one in read if isinstance(one, Dialogue)]
        assessed = {one.id: assess(one, self.terms[one.language], self.explicit, self.encoder) for one in dialogues}
        verdicts: dict[str, Verdict] = {}
        if self.guard is not None:
            requests = [guard_request(one) for one in dialogues if _is_undecided(assessed[one.id])]
            replies = self.guard.ask(requests, part)
            verdicts = {name: read_verdict(reply) for (name, _), reply in replies.items()}
        return [
            [one if isinstance(one, Rejected) else outcome(one, assessed[one.id], verdicts.get(one.id))] for one in read
        ]

    def close(self) -> None:
        """Release the guard."""
        if self.guard is not None:
            self.guard.close()


def _is_undecided(assessment: Assessment) -> bool:
    """Whether the guard decides: on review, on removal for politics alone, on faint signs of harm or of a crisis."""
    faint = not assessment.remove and any(
        one.layer == companion.LAYER or one.category == crisis.POSSIBLE for one in assessment.evidence
    )
    return faint or assessment.action == "review" or assessment.reasons == (lexicons.POLITICAL,)


def outcome(dialogue: Dialogue, assessment: Assessment, verdict: Verdict | None = None) -> Outcome:
    """A kept dialogue with `metadata.safety`, or a rejection by its first reason, without text where that is `hard`."""
    details: dict[str, Any] = {}
    unread: list[Evidence] = []
    cleared = verdict is not None and verdict.safety == "safe"
    if verdict is not None:
        texts = [turn.content for turn in dialogue.messages]
        first = len(texts) - len(guard_request(dialogue).messages)

        def was_sent(one: Evidence) -> bool:
            """Whether the request holds all that it is about: its span, its message, or the dialogue."""
            about = range(len(texts)) if one.turn < 0 else (one.turn,)
            return all(at >= first and (one.end or len(texts[at])) <= LONGEST for at in about)

        unread = [one for one in assessment.evidence if not was_sent(one)]
        assessment = apply_verdict(assessment, verdict, unread)
        details = {"guard": {"safety": verdict.safety, "categories": list(verdict.categories)}}
    details, reasons = details | assessment.to_dict(), assessment.reasons
    if assessment.remove:
        if assessment.hard:
            return Rejected(dialogue.id, assessment.hard, {"reasons": list(reasons)})
        return Rejected(dialogue.id, reasons[0], details, dialogue.to_dict())
    noted: dict[str, Any] = {"action": assessment.action, "tags": list(reasons), "risk": assessment.risk}
    seen = {one.category for one in (unread if cleared else assessment.evidence)}
    possible, hint = (code in seen for code in (crisis.POSSIBLE, crisis.HINT))
    noted |= {"possible_crisis": True} if possible else {"crisis_hint": True} if hint else {}
    kept = replace(dialogue, metadata={**dialogue.metadata, "safety": noted})
    tags = ["review"] if assessment.action == "review" else []
    if any(code.startswith(crisis.TAGS) for code in reasons):
        tags.append("crisis")
    elif possible:
        tags.append("possible_crisis")
    return Kept(kept.to_dict(), (*tags, *reasons), details if assessment.evidence else None)
