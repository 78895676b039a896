"""Find all evidence on the safety of a dialogue: the words, classifiers and rules of every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.detect.hashed import load_classifier, load_joint, read_together
from h2htalk.detect.safety import companion, crisis, lexicons
from h2htalk.detect.safety.content_rules import READ, find_unusable_content
from h2htalk.detect.safety.evidence import Evidence
from h2htalk.detect.safety.text_folding import fold_spelling


def find_evidence(
    dialogue: Dialogue,
    terms: frozenset[str] = frozenset(),
    encoder: crisis.Encoder | None = None,
    *,
    between_people: bool = False,
) -> list[Evidence]:
    """Find the evidence in a dialogue, that of each layer after the other.

    `terms`: politically sensitive terms of the user's own (`lexicons.read_terms`); `encoder`: a second reader of
    dangers; `between_people`: alarms about a companion's turns are hints. It depends on this dialogue alone.
    """
    language = dialogue.language
    least_offensive = load_classifier(lexicons.OFFENSIVE, language).low()
    turns = [replace(turn, content=_start_and_end(turn.content)) for turn in dialogue.messages]
    # The features of all texts that are read are computed at once, which is faster.
    texts = [fold_spelling(turn.content, language) for turn in turns]
    for _, text, _ in companion.companion_turns(turns):
        texts += companion.pieces_of(text, language)
    read_together(texts, load_joint(companion.DATA, language).features)
    evidence: list[Evidence] = []
    contempt: list[Evidence] = []  # whom an insult is for matters only where there is one
    scores = lexicons.offences(
        [lexicons.without_everyday(turn.content, language) for turn in turns], language
    )
    for number, (turn, score) in enumerate(zip(turns, scores, strict=True)):
        listed = lexicons.find_listed(turn.content, language)
        evidence += [replace(sign, turn=number) for sign in listed]
        is_seeker = turn.role == "user"
        if political := lexicons.find_political(turn.content, language, terms, is_seeker):
            evidence.append(replace(political, turn=number))
        is_offensive = score >= least_offensive
        if is_offensive:
            evidence.append(Evidence("classifier", "offensive", score, turn=number))
        if is_offensive or any(sign.category.startswith("offensive.") for sign in listed):
            aimed = lexicons.find_contempt(turn.content, language, listed)
            contempt += [replace(sign, turn=number) for sign in aimed]
    if contempt:
        evidence += _reports(turns, language)
    evidence += contempt
    evidence += crisis.find_crisis(turns, language, encoder)
    alarms = companion.find_companion(turns, language)
    if between_people:
        evidence += companion.as_hints(alarms)
    else:
        evidence += alarms
    evidence += find_unusable_content(dialogue)
    return evidence


def _start_and_end(text: str) -> str:
    """A text, or the start and the end of one of megabytes."""
    if len(text) <= READ:
        return text
    return f"{text[: READ // 2]}\n{text[-READ // 2 :]}"


def _reports(turns: Sequence[Turn], language: Language) -> list[Evidence]:
    """The reports of insults in the seeker's turns."""
    reports: list[Evidence] = []
    for number, turn in enumerate(turns):
        if turn.role != "user":
            continue
        if report := lexicons.find_report(turn.content, language):
            reports.append(replace(report, turn=number))
    return reports
