"""Decide on a dialogue by the evidence in it, in one order: a crisis, then hard, plain and undecided cases.

A crisis of the seeker is kept and tagged whatever else the dialogue contains, as the benchmark is made for it. Three
things are removed in any case: sexual content with an apparent minor, a companion that explains a method, and a
companion's turn that plainly does harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from h2htalk.data.scenario import Dialogue
from h2htalk.detect.hashed import load_classifier
from h2htalk.detect.safety.companion import EXPLICIT, HARM, LAYER, REMOVE, REVIEW
from h2htalk.detect.safety.crisis import HINT, MINOR, POSSIBLE, Encoder
from h2htalk.detect.safety.dialogue_evidence import find_evidence
from h2htalk.detect.safety.evidence import Evidence
from h2htalk.detect.safety.lexicons import (
    ALONE,
    INSULTS,
    MINORS,
    OFFENSIVE,
    POLITICAL,
    SECOND,
)
from h2htalk.text.language_data import language_data

Action = Literal["keep", "keep_tag", "review", "remove"]
Risk = Literal["none", "elevated", "high"]
Explicit = Literal[
    "remove", "tag"
]  # what `[safety] explicit` may say of sexual content between adults

Talk = Literal["companion", "people"]  # what `[safety] talk` may say of who answers the user

# From this score on the rules and the classifier of the political layer agree, and a crisis is said in plain words.
SURE = 0.9
HARD = (MINORS, "crisis.method_instructions")  # removed even in a crisis, and never stored as text
BESIDE = 0.35  # the least score of the classifier beside an attack on a group
# Rules about the form of a dialogue, one of which is enough.
FORM = ("prompt_leak", "too_short", "wrong_language", "irrelevant")
# Codes that a person looks at even in a crisis.
REVIEWED = (MINORS, "prompt_leak", "crisis.encouragement", "grooming", HARM)
DOUBTS = {POSSIBLE, HINT}
SPARED = ("offensive.", POLITICAL)  # what may be a crisis is not removed for the latter
_CLASSIFIER = ("classifier", "offensive")
_MASKED = ("masked", "offensive")
_GRAVE = ("crisis.plan", "crisis.means", "crisis.ideation")


@dataclass(frozen=True, slots=True)
class Assessment:
    """The decision on a dialogue."""

    action: Action  # `keep_tag`: kept with its reasons as tags; `review`: kept, undecided
    reasons: tuple[
        str, ...
    ]  # codes of the taxonomy, sorted (`crisis.ideation`, `offensive.hate`); empty for `keep`
    risk: Risk  # of a crisis: `high` for plain words about wanting to die, a plan or an attempt; else `elevated`
    evidence: tuple[Evidence, ...]  # by turn
    explicit: Explicit = "remove"  # the setting by which it was weighed

    @property
    def remove(self) -> bool:
        """Whether the dialogue is removed."""
        return self.action == "remove"

    @property
    def hard(self) -> str | None:
        """The reason for which the text is not stored, if there is one."""
        beside_minor = (HARM, EXPLICIT) if MINOR in self.reasons else ()
        return next((code for code in (*HARD, *beside_minor) if code in self.reasons), None)

    def to_dict(self) -> dict[str, Any]:
        """The record, without text."""
        evidence = [sign.to_dict() for sign in self.evidence]
        return {
            "action": self.action,
            "reasons": list(self.reasons),
            "risk": self.risk,
            "evidence": evidence,
        }


def assess(
    dialogue: Dialogue,
    terms: frozenset[str] = frozenset(),
    explicit: Explicit = "remove",
    encoder: Encoder | None = None,
    talk: Talk = "companion",
) -> Assessment:
    """Decide on a dialogue: keep it, keep it with tags, keep it for a person to decide, or remove it.

    `terms`: politically sensitive terms of the user's own (`lexicons.read_terms`); `explicit`: whether a companion's
    sexual content between adults removes the dialogue or tags it; `encoder`: a second reader of dangers; `talk`: where
    it is between people, alarms about a companion's turns are hints. The decision depends on this dialogue alone.
    """
    evidence = find_evidence(dialogue, terms, encoder, between_people=talk == "people")
    thresholds = {
        **load_classifier(OFFENSIVE, dialogue.language).manifest,
        **language_data(INSULTS, dialogue.language),
    }
    return decide_safety(dialogue, evidence, thresholds, explicit)


def decide_safety(
    dialogue: Dialogue,
    detections: Sequence[Evidence],
    thresholds: Mapping[str, float],
    explicit: Explicit = "remove",
) -> Assessment:
    """Decide over the evidence of all layers on a dialogue, in any order.

    `thresholds`: scores of offensive messages: `low`: harmless below it; `high`: offensive from it on; `single`: in
    place of `high` in a dialogue of one message; `masked`: the classifier without names of groups agrees; `doubt`: mean
    of both from which on a person decides such a dialogue. `explicit`: whether sexual content between adults removes or
    tags.
    """
    evidence = tuple(sorted(detections, key=_order))
    # The crisis is the seeker's; that the seeker is a child is a tag, not a crisis.
    of_seeker = [
        sign
        for sign in evidence
        if sign.layer == "crisis" and dialogue.messages[sign.turn].role == "user"
    ]
    crisis = {sign.category for sign in of_seeker} - {MINOR}
    risk: Risk = "elevated" if crisis else "none"
    grave = [sign for sign in evidence if sign.layer == "crisis" and sign.category in _GRAVE]
    if crisis and any(sign.score >= SURE for sign in grave):
        risk = "high"

    def decision(action: Action, codes: set[str]) -> Assessment:
        return Assessment(action, tuple(sorted(codes)), risk, evidence, explicit)

    categories = {sign.category for sign in evidence}
    of_companion = [sign for sign in evidence if sign.layer == LAYER]
    likely = {sign.category for sign in of_companion if sign.score >= REVIEW}
    sure = {sign.category for sign in of_companion if sign.score >= REMOVE}
    hard = {sign.category for sign in evidence if sign.category in HARD and sign.score >= ALONE}
    hard |= sure & {HARM}
    if MINOR in categories and EXPLICIT in likely:  # nobody has to read that
        hard.add(MINORS)
    if hard:
        return decision("remove", hard | crisis | (categories & {MINOR}) | (likely & {HARM}))
    tags = {code for code in categories if code.startswith("disclosure.") or code == MINOR}
    plain, doubtful = _weigh_offence(dialogue, evidence, thresholds)
    for code, enough in _weigh(evidence, tags, likely, sure, single=len(dialogue.messages) == 1):
        (plain if enough else doubtful).add(code)
    if explicit == "tag" and EXPLICIT in plain | doubtful and MINORS not in doubtful:
        plain = plain - {EXPLICIT}
        doubtful = doubtful - {EXPLICIT}
        tags = tags | {EXPLICIT}
    codes = plain | doubtful | tags
    if crisis:
        unsure = "offensive.hate" in plain or EXPLICIT in plain | doubtful
        unsure = unsure or any(code.startswith(REVIEWED) for code in crisis | codes)
        return decision("review" if unsure else "keep_tag", crisis | codes)
    if plain and not (DOUBTS & categories and all(code.startswith(SPARED) for code in plain)):
        return decision("remove", plain)
    if plain | doubtful:
        return decision("review", codes)
    return decision("keep_tag" if tags else "keep", tags)


def _order(sign: Evidence) -> tuple[int, str, int, float]:
    """The place of evidence among that on a dialogue: by turn, the surest first."""
    return sign.turn, sign.category, sign.start, -sign.score


def _weigh(
    evidence: Sequence[Evidence], tags: set[str], likely: set[str], sure: set[str], *, single: bool
) -> Iterator[tuple[str, bool]]:
    """Codes other than of offensive language, each with whether it is enough for removal. `tags`: what the seeker
    discloses; `likely`, `sure`: what the classifiers of the companion's turns found."""
    for sign in evidence:
        family = sign.category.partition(".")[0]
        if family in FORM:
            yield sign.category, True
        elif family == "spam" and sign.layer == "lexicon" and sign.score >= SECOND:
            yield sign.category, sign.score >= ALONE
        elif sign.category == "crisis.encouragement" or (
            sign.category == MINORS and sign.score >= SECOND
        ):
            yield sign.category, False
    for code in likely:
        yield code, False
    words = [sign for sign in evidence if sign.category == EXPLICIT and sign.layer != LAYER]
    sexual = {sign.turn for sign in words if sign.score > SECOND}
    if MINOR in tags:  # less is enough
        sexual |= {sign.turn for sign in words if sign.score == SECOND}
    if (sexual or EXPLICIT in likely) and MINOR in tags:
        yield EXPLICIT, False
        yield MINORS, False
    elif sexual or EXPLICIT in sure:
        yield EXPLICIT, EXPLICIT in sure or (len(sexual) > 1 and not tags)
    agreed = {sign.turn for sign in evidence if sign.layer == "political" and sign.score >= SURE}
    # One turn of a longer dialogue is no sign: "the president of Zimbabwe was called Banana".
    turns = {sign.turn for sign in evidence if sign.category == POLITICAL and sign.score >= SECOND}
    if agreed or len(turns) > (0 if single else 1):
        yield POLITICAL, len(agreed) > 1 or (single and bool(agreed))


def _weigh_offence(
    dialogue: Dialogue, evidence: Sequence[Evidence], thresholds: Mapping[str, float]
) -> tuple[set[str], set[str]]:
    """Weigh the offensive language of each message: its codes that are plain, and those that are doubtful.

    Two kinds of evidence on one message (`_kinds`) are plain, one is doubtful. In a longer dialogue two such messages
    are plain, or one with three kinds, or a companion's abuse. A message that quotes, reports or rejects such words is
    doubtful where another would be plain, and else no evidence. Somebody who reports insults in several turns is a
    victim; one message is not enough to tell.
    """
    single = len(dialogue.messages) == 1
    reported = not single and any(sign.category == "reported.insult" for sign in evidence)
    proved: list[tuple[str, bool]] = []
    doubtful: set[str] = set()
    for turn, message in enumerate(dialogue.messages):
        scores = {(sign.layer, sign.category): sign.score for sign in evidence if sign.turn == turn}
        kinds = _kinds(scores, thresholds, single, message.role)
        code = "offensive.hate" if kinds & {"slur", "attack", "masked"} else "offensive.abuse"
        mentioned = ("mention", "mention") in scores
        if len(kinds) > 1 and (single or "classifier" in kinds):
            doubtful.add(code)
            if not (reported or mentioned):
                abused = message.role == "companion" and "abuse" in kinds
                proved.append((code, len(kinds) > 2 or abused))
        elif not mentioned and _is_doubtful(scores, kinds, thresholds, single):
            doubtful.add(code)
    plain = single or len(proved) > 1 or any(enough for _, enough in proved)
    return {code for code, _ in proved if plain}, doubtful


def _is_doubtful(
    scores: Mapping[tuple[str, str], float],
    kinds: set[str],
    thresholds: Mapping[str, float],
    single: bool,
) -> bool:
    """Whether a message that is not plainly offensive is doubtful, by its scores of each layer and category."""
    if "classifier" in kinds:
        return True
    score = scores.get(_CLASSIFIER, 0.0)
    names = ("abuse", "hate", "slur")
    listed = any(scores.get(("lexicon", f"offensive.{name}"), 0) >= SECOND for name in names)
    if listed and score >= thresholds["low"]:
        return True
    if not single:
        return False
    return bool(kinds) or score + scores.get(_MASKED, 0.0) >= 2 * thresholds["doubt"]


def _kinds(
    scores: Mapping[tuple[str, str], float],
    thresholds: Mapping[str, float],
    single: bool,
    role: str,
) -> set[str]:
    """The kinds of evidence for the removal of one message, of the scores of each layer and category."""
    kinds: set[str] = set()
    if scores.get(("lexicon", "offensive.slur"), 0) >= SECOND:
        kinds.add("slur")
    if ("attack", "offensive.attack") in scores or ("lexicon", "offensive.hate") in scores:
        kinds.add("attack")
    # The seeker of a single message may be in despair.
    if ("lexicon", "offensive.abuse") in scores and (role == "companion" or not single):
        kinds.add("abuse")
    score = scores.get(_CLASSIFIER, 0.0)
    sure = score >= thresholds["single" if single else "high"]
    # Beside another kind the classifier may be less sure.
    enough = thresholds["low"] if kinds & {"slur", "abuse"} else BESIDE
    if sure or (single and kinds and score >= enough):
        kinds.add("classifier")
    names_group = ("group", "group.named") in scores
    if sure and names_group and scores.get(_MASKED, 0.0) >= thresholds["masked"]:
        kinds.add("masked")
    return kinds
