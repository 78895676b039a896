"""Decide over evidence, in one order: a crisis, then hard, plain and undecided cases.

A crisis of the seeker is kept and tagged whatever else the dialogue contains, as the benchmark is made for it. Three
things are removed in any case: sexual content with an apparent minor, a companion that explains a method, and a
companion's turn that plainly does harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from h2htalk.curation.safety.companion import EXPLICIT, HARM, LAYER, REMOVE, REVIEW
from h2htalk.curation.safety.crisis import MINOR, POSSIBLE, TAGS
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.data.scenario import Dialogue

Action = Literal["keep", "keep_tag", "review", "remove"]
Risk = Literal["none", "elevated", "high"]

# From this score on a lexicon rule is enough by itself, and from the next on it is a second piece of evidence.
ALONE, SECOND = 0.8, 0.5
# The rules and the classifier of the political layer agree (`political.AGREED`).
SURE = 0.9
# Removed even in a crisis, and never stored as text.
HARD = ("sexual.minors", "crisis.method_instructions")
# The seeker reports insults of others (`insults.find_report`).
REPORTED = "reported.insult"
# A message names a group of people (`insults.find_contempt`).
NAMED = "group.named"
# Of the classifier beside an attack on a group.
BESIDE = 0.35
# From this score on a person decides a single message; below it are mostly ordinary days.
DOUBT = 0.5
# Rules about the form of a dialogue, one of which is enough.
FORM = ("prompt_leak", "too_short", "wrong_language", "irrelevant")
# Codes that a person looks at even in a crisis.
REVIEWED = ("sexual.minors", "prompt_leak", "crisis.encouragement", "grooming", HARM)
# What `[safety] explicit` may say of sexual content between adults.
Explicit = Literal["remove", "tag"]
_GRAVE = ("crisis.attempt", "crisis.plan", "crisis.means", "crisis.ideation")


@dataclass(frozen=True, slots=True)
class Assessment:
    """The decision on a dialogue.

    Attributes:
        action: `keep`, `keep_tag` (kept with its reasons as tags), `review` (kept, undecided), `remove`.
        reasons: codes of the taxonomy, sorted (`crisis.ideation`, `offensive.hate`); empty for `keep`.
        risk: of a crisis: `high` for plain words about wanting to die, a plan or an attempt; else `elevated`.
        evidence: all evidence, by turn; `explicit`: the setting by which it was weighed.
    """

    action: Action
    reasons: tuple[str, ...]
    risk: Risk
    evidence: tuple[Evidence, ...]
    explicit: Explicit = "remove"

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
        return {
            "action": self.action,
            "reasons": list(self.reasons),
            "risk": self.risk,
            "evidence": [seen.to_dict() for seen in self.evidence],
        }


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Of the bundled classifier: below `low` a message is harmless, from `high` on offensive.

    `single` replaces `high` for a dialogue of one message; from `masked` on the classifier that reads no names of
    groups agrees.
    """

    low: float
    high: float
    single: float
    masked: float


def decide_safety(
    dialogue: Dialogue, detections: Sequence[Evidence], thresholds: Thresholds, explicit: Explicit = "remove"
) -> Assessment:
    """The decision over all evidence of a dialogue; `explicit`: whether sexual content removes or tags."""
    evidence = tuple(sorted(detections, key=lambda one: (one.turn, one.category, one.start, -one.score)))

    def decision(action: Action, codes: set[str], risk: Risk = "none") -> Assessment:
        return Assessment(action, tuple(sorted(codes)), risk, evidence, explicit)

    hard = {one.category for one in evidence if one.category in HARD and one.score >= ALONE}
    crisis = _crisis(dialogue, evidence)
    minor = {MINOR} & {one.category for one in evidence}
    likely = {one.category for one in evidence if one.layer == LAYER and one.score >= REVIEW}
    hard |= {HARM for one in evidence if one.layer == LAYER and one.category == HARM and one.score >= REMOVE}
    hard |= {"sexual.minors"} if minor and EXPLICIT in likely else set()  # nobody has to read that
    if hard:
        return decision("remove", hard | crisis | minor | (likely & {HARM}), _risk(evidence, crisis))
    weighed = _weigh(dialogue, evidence, thresholds)
    if explicit == "tag" and EXPLICIT in weighed.plain | weighed.doubtful and "sexual.minors" not in weighed.doubtful:
        weighed.plain.discard(EXPLICIT)
        weighed.doubtful.discard(EXPLICIT)
        weighed.tags.add(EXPLICIT)
    if crisis:
        codes = crisis | weighed.plain | weighed.doubtful | weighed.tags
        doubtful = "offensive.hate" in weighed.plain or EXPLICIT in weighed.plain | weighed.doubtful
        doubtful = doubtful or any(code.startswith(REVIEWED) for code in codes)
        return decision("review" if doubtful else "keep_tag", codes, _risk(evidence, crisis))
    possible = any(one.category == POSSIBLE for one in evidence)
    if weighed.plain and not (possible and weighed.plain == {"political.sensitive"}):
        return decision("remove", weighed.plain)
    if weighed.plain | weighed.doubtful:
        return decision("review", weighed.plain | weighed.doubtful | weighed.tags)
    return decision("keep_tag" if weighed.tags else "keep", weighed.tags)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """Codes by what they require: removal, a decision by a person, a tag."""

    plain: set[str]
    doubtful: set[str]
    tags: set[str]


def _weigh(dialogue: Dialogue, evidence: Sequence[Evidence], thresholds: Thresholds) -> _Weighed:
    plain: set[str] = set()
    doubtful: set[str] = set()
    tags = {one.category for one in evidence if one.category.startswith("disclosure.") or one.category == MINOR}
    single = len(dialogue.messages) == 1
    _weigh_offence(dialogue, evidence, thresholds, plain, doubtful)
    for one in evidence:
        family = one.category.partition(".")[0]
        if family in FORM:
            plain.add(one.category)
        elif family == "spam" and one.layer == "lexicon" and one.score >= SECOND:
            (plain if one.score >= ALONE else doubtful).add(one.category)
        elif (one.category == "sexual.minors" and one.score >= SECOND) or one.category == "crisis.encouragement":
            doubtful.add(one.category)
    companion = [one for one in evidence if one.layer == LAYER and one.score >= REVIEW]
    doubtful |= {one.category for one in companion}
    sexual = {one.turn for one in evidence if one.category == EXPLICIT and one.score > SECOND and one.layer != LAYER}
    sure_of = any(one.category == EXPLICIT and one.score >= REMOVE for one in companion)
    if (sexual or EXPLICIT in doubtful) and MINOR in tags:
        doubtful |= {EXPLICIT, "sexual.minors"}
    elif sexual or sure_of:
        (plain if sure_of or (len(sexual) > 1 and not tags) else doubtful).add(EXPLICIT)
    sure = {one.turn for one in evidence if one.layer == "political" and one.score >= SURE}
    hinted = {one.turn for one in evidence if one.category == "political.sensitive" and one.score >= SECOND}
    if hinted:
        (plain if len(sure) > 1 or (sure and single) else doubtful).add("political.sensitive")
    return _Weighed(plain, doubtful - plain, tags)


def _weigh_offence(
    dialogue: Dialogue,
    evidence: Sequence[Evidence],
    thresholds: Thresholds,
    plain: set[str],
    doubtful: set[str],
) -> None:
    """Weigh the offensive language of each message, and add its code to `plain` or `doubtful`.

    Two kinds of evidence on one message (`_kinds`) are plain, one is doubtful. In a longer dialogue two such messages
    are plain, or one with three kinds, or a companion's abuse. A message that quotes, reports or rejects such
    words is doubtful where another would be plain, and else no evidence. Somebody who reports insults in several turns
    is a victim; one message is not enough to tell.
    """
    single = len(dialogue.messages) == 1
    reported = not single and any(one.category == REPORTED for one in evidence)
    proved: list[tuple[str, bool]] = []
    for turn, message in enumerate(dialogue.messages):
        here = {(one.layer, one.category): one.score for one in evidence if one.turn == turn}
        kinds = _kinds(here, thresholds, single, message.role)
        code = "offensive.hate" if kinds & {"slur", "attack", "masked"} else "offensive.abuse"
        score, mentioned = here.get(("classifier", "offensive"), 0.0), ("mention", "mention") in here
        listed = any(here.get(("lexicon", f"offensive.{name}"), 0) >= SECOND for name in ("abuse", "hate", "slur"))
        if len(kinds) > 1 and (single or "classifier" in kinds):
            doubtful.add(code)
            if not (reported or mentioned or ("doubt", POSSIBLE) in here):
                proved.append((code, len(kinds) > 2 or (message.role == "companion" and "abuse" in kinds)))
        elif not mentioned and (
            "classifier" in kinds or (listed and score >= thresholds.low) or (single and (kinds or score >= DOUBT))
        ):
            doubtful.add(code)
    if single or len(proved) > 1 or any(enough for _, enough in proved):
        plain.update(code for code, _ in proved)


def _kinds(here: Mapping[tuple[str, str], float], thresholds: Thresholds, single: bool, role: str) -> set[str]:
    """The kinds of evidence for the removal of one message.

    Slurs, attacks on a group, and abuse of the listener (not in a single message of the seeker, who may be in despair);
    the classifier, which may be less sure beside one of these; and the classifier that reads no names of groups, where
    the message names one and the first classifier is sure without it.
    """
    kinds = set()
    if here.get(("lexicon", "offensive.slur"), 0) >= SECOND:
        kinds.add("slur")
    if ("attack", "offensive.attack") in here or ("lexicon", "offensive.hate") in here:
        kinds.add("attack")
    if ("lexicon", "offensive.abuse") in here and (role == "companion" or not single):
        kinds.add("abuse")
    score = here.get(("classifier", "offensive"), 0.0)
    sure = score >= (thresholds.single if single else thresholds.high)
    low = thresholds.low if kinds & {"slur", "abuse"} else BESIDE
    if sure or (single and kinds and score >= low):
        kinds.add("classifier")
    if sure and ("group", NAMED) in here and here.get(("masked", "offensive"), 0.0) >= thresholds.masked:
        kinds.add("masked")
    return kinds


def _crisis(dialogue: Dialogue, evidence: Sequence[Evidence]) -> set[str]:
    """The codes of the seeker's crisis; that the seeker is a child is a tag, not a crisis."""
    found = {one.category for one in evidence if one.layer == "crisis" and dialogue.messages[one.turn].role == "user"}
    return found - {MINOR}


def _risk(evidence: Sequence[Evidence], crisis: set[str]) -> Risk:
    if not crisis:
        return "none"
    grave = any(one.category in _GRAVE and one.score >= SURE for one in evidence if one.layer == "crisis")
    return "high" if grave else "elevated"


def apply_verdict(
    assessment: Assessment, verdict: str, categories: Mapping[str, str], unread: Sequence[Evidence] = ()
) -> Assessment:
    """Apply a guard's verdict to an undecided assessment.

    Args:
        assessment: one whose action is `review`, or with political evidence.
        verdict: `safe`, `unsafe`, `controversial` or `undecided`.
        categories: our codes by the guard's names.
        unread: evidence in texts that the guard was not sent.

    Returns:
        For `unsafe` a removal for these categories, but a crisis is kept and tagged; for `safe` a dialogue with its
        tags, unless there is hard or unread evidence; for other verdicts a review.
    """
    codes, reasons = set(categories.values()), set(assessment.reasons)
    kept = assessment.explicit == "tag" and not (codes | reasons) & {MINOR, "sexual.minors"}
    tagged = {EXPLICIT} & (codes | reasons) if kept else set()
    only_tagged = bool(codes) and codes <= tagged
    codes, reasons = codes - tagged, reasons - tagged
    tags = {code for code in reasons if code.startswith("disclosure.") or code == MINOR}

    def decision(action: Action, codes: set[str], risk: Risk = "none") -> Assessment:
        return replace(assessment, action=action, reasons=tuple(sorted(codes | tagged)), risk=risk)

    if crisis := {code for code in codes | reasons if code.startswith(TAGS)}:
        risk = assessment.risk if assessment.risk != "none" else "elevated"
        doubted = verdict == "unsafe" and not only_tagged and any(one.layer == LAYER for one in assessment.evidence)
        return decision("review" if doubted or assessment.action == "review" else "keep_tag", crisis | reasons, risk)
    if verdict == "unsafe" and codes:
        return decision("remove", codes | reasons)
    if only_tagged and reasons == tags:
        return decision("keep_tag", tags)
    families = {one.category.partition(".")[0] for one in unread}
    if verdict == "safe" and not any(code in HARD or code.partition(".")[0] in families for code in reasons - tags):
        return decision("keep_tag" if tags | tagged else "keep", tags)
    return decision("review", reasons, assessment.risk)
