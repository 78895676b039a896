"""Find all evidence on the safety of a dialogue: the words, classifiers and rules of every layer."""

from __future__ import annotations

from dataclasses import replace

from h2htalk.data.scenario import Dialogue
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
    turns = [  # of a message of megabytes its start and its end
        turn
        if len(text := turn.content) <= READ
        else replace(turn, content=f"{text[: READ // 2]}\n{text[-READ // 2 :]}")
        for turn in dialogue.messages
    ]
    # The features of all texts that are read are computed at once, which is faster.
    companion_pieces = (
        piece
        for _, text, _ in companion.companion_turns(turns)
        for piece in companion.pieces_of(text, language)
    )
    texts = [*(fold_spelling(turn.content, language) for turn in turns), *companion_pieces]
    read_together(texts, load_joint(companion.DATA, language).features)
    evidence: list[Evidence] = []
    targets: list[Evidence] = []  # whom an insult is for matters only where there is sign
    scores = lexicons.offences(
        [lexicons.without_everyday(turn.content, language) for turn in turns], language
    )
    for at, (turn, score) in enumerate(zip(turns, scores, strict=True)):
        text = turn.content
        seeker = turn.role == "user"
        listed = lexicons.find_listed(text, language)
        offensive = score >= least_offensive
        signs = [*listed, lexicons.find_political(text, language, terms, seeker)]
        if offensive:
            signs.append(Evidence("classifier", "offensive", score))
        if offensive or any(sign.category.startswith("offensive.") for sign in listed):
            targets += [
                replace(sign, turn=at) for sign in lexicons.find_contempt(text, language, listed)
            ]
        evidence += [replace(sign, turn=at) for sign in signs if sign is not None]
    for at, turn in enumerate(turns if targets else ()):
        if turn.role == "user" and (report := lexicons.find_report(turn.content, language)):
            evidence.append(replace(report, turn=at))
    evidence += targets
    evidence += crisis.find_crisis(turns, language, encoder)
    alarms = companion.find_companion(turns, language)
    if between_people:
        evidence += companion.as_hints(alarms)
    else:
        evidence += alarms
    evidence += find_unusable_content(dialogue)
    return evidence
