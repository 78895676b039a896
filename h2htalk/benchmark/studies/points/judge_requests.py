"""Ask a judge about the points of replies that code leaves open, and how safe a reply is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from h2htalk.benchmark.judge.judgements import Judge
from h2htalk.benchmark.judge.rubric import Rubric, judge_messages, schema_of
from h2htalk.benchmark.studies.conversations import LIVE, Study, StudyReply
from h2htalk.benchmark.studies.points.phone_numbers import phone_numbers
from h2htalk.benchmark.studies.points.point_answers import (
    PERCEIVED,
    PERCEPTION,
    is_too_long,
    shown_turns,
)
from h2htalk.chat.engines import model_identity, model_name, parse_model
from h2htalk.chat.protocol import Request
from h2htalk.chat.store.model_calls import sampling_of
from h2htalk.data.case import Case, Fact, Point, points_at
from h2htalk.data.languages import Language, find_language
from h2htalk.data.scenario import Persona, conversation_text
from h2htalk.text.fences import Fence
from h2htalk.text.point_checks import decided

POINT_RULE = "points, yes or no"
_TOKENS = 200  # of a judge's reply, and so many for each statement


@dataclass(frozen=True, slots=True)
class OpenReply:
    """A reply with the points that are open, and whether its safety is to be rated."""

    reply: StudyReply
    case: Case
    points: tuple[Point, ...]
    perception: bool

    @property
    def rubric(self) -> Rubric:
        """The statements as `p1`, `p2`, and the rating; its judgements name the points by their ids."""
        return rubric_of_points([point.id for point in self.points], self.perception)

    def statement(self, point: Point) -> str:
        """Return a point's text, and beside it what was told of its fact and what code found in the reply."""
        found_by_code = "; ".join(hints(self.reply.text or "", point, self.case))
        return f"{point.text} [{found_by_code}]" if found_by_code else point.text


def rubric_of_points(point_ids: Sequence[str], perception: bool) -> Rubric:
    """Return what a judge answers of a reply with some open points: each of them, and how safe it is."""
    names = tuple(f"p{number}" for number, _ in enumerate(point_ids, 1))
    qualities = (*names, PERCEPTION) if perception else names
    return Rubric(parts=qualities, points=names, least=1, point_ids=tuple(point_ids))


def open_replies(
    replies: Sequence[StudyReply], cases: Sequence[Case], perception: bool = True
) -> Iterator[OpenReply]:
    """Yield the replies that a judge is to read: with points that code leaves open, or whose safety is rated.

    Of equal replies in equal conversations of several arms, one.
    """
    by_id = {case.id: case for case in cases}
    seen = set[str]()
    for reply in replies:
        if reply.part != LIVE or reply.text is None or is_too_long(reply) or reply.id in seen:
            continue
        seen.add(reply.id)
        opened = open_reply(reply, by_id[reply.case], perception)
        if opened is not None:
            yield opened


def open_reply(reply: StudyReply, case: Case, perception: bool = True) -> OpenReply | None:
    """Return what a judge is to read of a reply: None where code answers all, and safety is not rated."""
    text = reply.text or ""
    points = points_at(case, reply.place)
    open_points = [point for point in points if decided(text, point.check) is None]
    is_rated = perception and case.study in PERCEIVED
    if not open_points and not is_rated:
        return None
    return OpenReply(reply, case, tuple(open_points), is_rated)


def hints(reply: str, point: Point, case: Case) -> Iterator[str]:
    """Yield what a rater of a point is shown: what was told of its fact, and the passages that code finds."""
    rule, _, name = (point.check or "").partition(":")
    if rule == "fact":
        facts = {fact.id: fact for fact in case.facts}
        fact = facts[name]
        yield f"{fact.kind}: {fact.text}"
        if fact.replaced_by:
            yield f"replaced by: {facts[fact.replaced_by].text}"
        forms = mentioned(reply, fact, case.language)
        if forms:
            yield "words in the reply: " + ", ".join(forms)
    elif rule == "help_lines":
        for number, owners in phone_numbers(reply).items():
            yield f"{number}: {owners or 'not in the directory'}"


def mentioned(reply: str, fact: Fact, language: Language) -> list[str]:
    """Return the forms of a fact that a reply holds: whole words in any letter case where spaces separate words."""
    if not find_language(language).spaced:
        return [form for form in fact.forms if form in reply]
    patterns = [(form, rf"(?<!\w){re.escape(form)}(?!\w)") for form in fact.forms]
    return [form for form, pattern in patterns if re.search(pattern, reply, re.IGNORECASE)]


def judge_of(study: Study) -> Judge:
    """Describe the study's judge, as the file beside its judgements does. Raises ConfigError."""
    model = study.spec.judge
    return Judge(
        model_name(model),
        model_identity(model),
        study.prompts.texts(judge=True),
        sampling_of(model, 0.0, _TOKENS, 0, "").temperature,
        rule=POINT_RULE,
        forms=study.spec.judge_options,
    )


def judge_requests(study: Study, replies: Sequence[StudyReply], secret: bytes) -> Iterator[Request]:
    """Yield the request for each reply that the judge is to read."""
    for opened in open_replies(replies, study.cases):
        yield judge_request(study, opened, study.split.personas[opened.case.persona], secret)


def judge_request(study: Study, opened: OpenReply, persona: Persona, secret: bytes) -> Request:
    """Return the request for one reply; `persona`: who its companion is."""
    model = study.spec.judge
    templates = study.prompts.templates
    reply = opened.reply
    language = opened.case.language
    rubric = opened.rubric
    values: dict[str, object] = {"perception": opened.perception, "example": rubric.example()}
    rules = templates.render(f"{language}/judge_points.j2", values)
    named = zip(rubric.points, opened.points, strict=True)
    statements = [f"{name}: {opened.statement(point)}" for name, point in named]
    material = {
        "persona": persona.descriptions[language],
        "conversation": conversation_text(shown_turns(reply)),
        "reply": reply.text or "",
        "statements": "\n".join(statements),
    }
    messages = judge_messages(templates, language, rules, material, Fence.of(secret, reply.id, 0))
    sampling = sampling_of(model, 0.0, _TOKENS * (1 + len(statements)), 0, reply.id)
    schema = schema_of(rubric) if parse_model(model)[0].schemas else None
    return Request(reply.id, messages, sampling, response_schema=schema, item=opened.case.id)
