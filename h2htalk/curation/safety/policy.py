"""Decide over evidence, in one order: a crisis, then hard, plain and undecided cases.

A crisis of the seeker is kept and tagged whatever else the dialogue contains, as the benchmark is made for it. Three
things are removed in any case: sexual content with an apparent minor, a companion that explains a method, and a
companion's turn that plainly does harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from h2htalk.curation.reading.guards import Verdict
from h2htalk.curation.reading.question import MessageFinding
from h2htalk.data.scenario import Dialogue
from h2htalk.detect.safety.companion import EXPLICIT, HARM, LAYER, REMOVE, REVIEW
from h2htalk.detect.safety.crisis import HINT, MINOR, POSSIBLE, TAGS
from h2htalk.detect.safety.evidence import Evidence
from h2htalk.detect.safety.lexicons import POLITICAL

Action = Literal["keep", "keep_tag", "review", "remove"]
Risk = Literal["none", "elevated", "high"]
Explicit = Literal[
    "remove", "tag"
]  # what `[safety] explicit` may say of sexual content between adults

Talk = Literal["companion", "people"]  # what `[safety] talk` may say of who answers the user

# From the first score on a lexicon rule is enough by itself, from the second on it is a second piece of evidence.
ALONE, SECOND = 0.8, 0.5
# From this score on the rules and the classifier of the political layer agree, and a crisis is said in plain words.
SURE = 0.9
MINORS = "sexual.minors"
HARD = (MINORS, "crisis.method_instructions")  # removed even in a crisis, and never stored as text
BESIDE = 0.35  # the least score of the classifier beside an attack on a group
# Rules about the form of a dialogue, one of which is enough.
FORM = ("prompt_leak", "too_short", "wrong_language", "irrelevant")
# Codes that a person looks at even in a crisis.
REVIEWED = (MINORS, "prompt_leak", "crisis.encouragement", "grooming", HARM)
DOUBTS = {POSSIBLE, HINT}
SPARED = ("offensive.", POLITICAL)  # what may be a crisis is not removed for the latter
_GRAVE = ("crisis.plan", "crisis.means", "crisis.ideation")
PERSONAL = "personal_data"  # that a guard found left
# The tags of the dangers that a guard found. Those of the words name sorts of a crisis; a reader names any danger.
DANGERS: Mapping[str, str] = {
    "own_now": "crisis.danger",
    "own_past": "crisis.past",
    "other_now": "crisis.third_party",
    "other_past": "crisis.third_party",
}
GRAVEST = 3  # the severity of harm by a companion that removes a dialogue


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
        evidence = [one.to_dict() for one in self.evidence]
        return {
            "action": self.action,
            "reasons": list(self.reasons),
            "risk": self.risk,
            "evidence": evidence,
        }


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
    evidence = tuple(
        sorted(detections, key=lambda one: (one.turn, one.category, one.start, -one.score))
    )
    # The crisis is the seeker's; that the seeker is a child is a tag, not a crisis.
    of_seeker = [
        one
        for one in evidence
        if one.layer == "crisis" and dialogue.messages[one.turn].role == "user"
    ]
    crisis = {one.category for one in of_seeker} - {MINOR}
    risk: Risk = "elevated" if crisis else "none"
    if crisis and any(
        one.layer == "crisis" and one.category in _GRAVE and one.score >= SURE for one in evidence
    ):
        risk = "high"

    def decision(action: Action, codes: set[str]) -> Assessment:
        return Assessment(action, tuple(sorted(codes)), risk, evidence, explicit)

    found = {one.category for one in evidence}
    likely = {one.category for one in evidence if one.layer == LAYER and one.score >= REVIEW}
    sure = {one.category for one in evidence if one.layer == LAYER and one.score >= REMOVE}
    hard = {one.category for one in evidence if one.category in HARD and one.score >= ALONE} | (
        sure & {HARM}
    )
    if MINOR in found and EXPLICIT in likely:  # nobody has to read that
        hard.add(MINORS)
    if hard:
        return decision("remove", hard | crisis | (found & {MINOR}) | (likely & {HARM}))
    tags = {code for code in found if code.startswith("disclosure.") or code == MINOR}
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
    if plain and not (DOUBTS & found and all(code.startswith(SPARED) for code in plain)):
        return decision("remove", plain)
    if plain | doubtful:
        return decision("review", codes)
    return decision("keep_tag" if tags else "keep", tags)


def _weigh(
    evidence: Sequence[Evidence], tags: set[str], likely: set[str], sure: set[str], *, single: bool
) -> Iterator[tuple[str, bool]]:
    """Codes other than of offensive language, each with whether it is enough for removal. `tags`: what the seeker
    discloses; `likely`, `sure`: what the classifiers of the companion's turns found."""
    for one in evidence:
        family = one.category.partition(".")[0]
        if family in FORM:
            yield one.category, True
        elif family == "spam" and one.layer == "lexicon" and one.score >= SECOND:
            yield one.category, one.score >= ALONE
        elif (
            one.category == MINORS and one.score >= SECOND
        ) or one.category == "crisis.encouragement":
            yield one.category, False
    yield from ((code, False) for code in likely)
    words = [one for one in evidence if one.category == EXPLICIT and one.layer != LAYER]
    sexual = {
        one.turn for one in words if one.score > SECOND or (MINOR in tags and one.score == SECOND)
    }
    if (sexual or EXPLICIT in likely) and MINOR in tags:
        yield from ((code, False) for code in (EXPLICIT, MINORS))
    elif sexual or EXPLICIT in sure:
        yield EXPLICIT, EXPLICIT in sure or (len(sexual) > 1 and not tags)
    agreed = {one.turn for one in evidence if one.layer == "political" and one.score >= SURE}
    # One turn of a longer dialogue is no sign: "the president of Zimbabwe was called Banana".
    turns = {one.turn for one in evidence if one.category == POLITICAL and one.score >= SECOND}
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
    reported = not single and any(one.category == "reported.insult" for one in evidence)
    proved: list[tuple[str, bool]] = []
    doubtful: set[str] = set()
    for turn, message in enumerate(dialogue.messages):
        here = {(one.layer, one.category): one.score for one in evidence if one.turn == turn}
        kinds = _kinds(here, thresholds, single, message.role)
        code = "offensive.hate" if kinds & {"slur", "attack", "masked"} else "offensive.abuse"
        mentioned = ("mention", "mention") in here
        score = here.get(("classifier", "offensive"), 0.0)
        doubted = (
            bool(kinds) or score + here.get(("masked", "offensive"), 0.0) >= 2 * thresholds["doubt"]
        )
        listed = any(
            here.get(("lexicon", f"offensive.{name}"), 0) >= SECOND
            for name in ("abuse", "hate", "slur")
        )
        if len(kinds) > 1 and (single or "classifier" in kinds):
            doubtful.add(code)
            if not (reported or mentioned):
                proved.append(
                    (code, len(kinds) > 2 or (message.role == "companion" and "abuse" in kinds))
                )
        elif not mentioned and (
            "classifier" in kinds or (listed and score >= thresholds["low"]) or (single and doubted)
        ):
            doubtful.add(code)
    plain = single or len(proved) > 1 or any(enough for _, enough in proved)
    return {code for code, _ in proved if plain}, doubtful


def _kinds(
    here: Mapping[tuple[str, str], float], thresholds: Mapping[str, float], single: bool, role: str
) -> set[str]:
    """The kinds of evidence for the removal of one message, of the scores of each layer and category."""
    holding = {
        "slur": here.get(("lexicon", "offensive.slur"), 0) >= SECOND,
        "attack": ("attack", "offensive.attack") in here or ("lexicon", "offensive.hate") in here,
        # The seeker of a single message may be in despair.
        "abuse": ("lexicon", "offensive.abuse") in here and (role == "companion" or not single),
    }
    kinds = {name for name, holds in holding.items() if holds}
    score = here.get(("classifier", "offensive"), 0.0)
    sure = score >= thresholds["single" if single else "high"]
    # Beside another kind the classifier may be less sure.
    if sure or (
        single and kinds and score >= (thresholds["low"] if kinds & {"slur", "abuse"} else BESIDE)
    ):
        kinds.add("classifier")
    if (
        sure
        and ("group", "group.named") in here
        and here.get(("masked", "offensive"), 0.0) >= thresholds["masked"]
    ):
        kinds.add("masked")
    return kinds


def apply_verdict(
    assessment: Assessment, verdict: Verdict, unread: Sequence[Evidence] = ()
) -> Assessment:
    """Apply a guard's verdict to an undecided assessment; `unread`: evidence in texts that the guard was not sent.

    `unsafe` removes for the guard's categories, but a crisis is kept and tagged; `safe` keeps a dialogue with its tags,
    unless there is hard or unread evidence; other verdicts are for review.
    """
    codes = set(verdict.categories.values())
    reasons = set(assessment.reasons)
    kept = assessment.explicit == "tag" and not (codes | reasons) & {MINOR, MINORS}
    tagged = {EXPLICIT} & (codes | reasons) if kept else set()
    only_tagged = bool(codes) and codes <= tagged
    codes = codes - tagged
    reasons = reasons - tagged
    tags = {code for code in reasons if code.startswith("disclosure.") or code == MINOR}

    def decision(action: Action, codes: set[str], risk: Risk = "none") -> Assessment:
        return replace(assessment, action=action, reasons=tuple(sorted(codes | tagged)), risk=risk)

    if crisis := {code for code in codes | reasons if code.startswith(TAGS)}:
        risk = assessment.risk if assessment.risk != "none" else "elevated"
        harm = any(one.layer == LAYER for one in assessment.evidence)
        doubted = verdict.safety == "unsafe" and not only_tagged and harm
        return decision(
            "review" if doubted or assessment.action == "review" else "keep_tag",
            crisis | reasons,
            risk,
        )
    if verdict.safety == "unsafe" and codes:
        in_doubt = any(one.category in DOUBTS for one in assessment.evidence)
        in_doubt |= MINOR in reasons and not any(
            one.layer == LAYER for one in assessment.evidence
        )  # a report
        return decision("review" if in_doubt else "remove", codes | reasons)
    if only_tagged and reasons == tags:
        return decision("keep_tag", tags)
    open_families = {*HARD, *(one.category.partition(".")[0] for one in unread)}
    if verdict.safety == "safe" and open_families.isdisjoint(
        part for code in reasons - tags for part in (code, code.partition(".")[0])
    ):
        return decision("keep_tag" if tags | tagged else "keep", tags)
    return decision("review", reasons, assessment.risk)


def apply_findings(
    dialogue: Dialogue, assessment: Assessment, findings: Sequence[MessageFinding]
) -> Assessment:
    """Apply what a guard found at the messages of a dialogue that is kept.

    A danger and a user under 18 are tags. Harm by the companion, explicit content (`Assessment.explicit`), and personal
    data are for review; the gravest harm and the companion's explicit content remove, but not where there may be a
    crisis. Explicit content by the companion to somebody under 18 removes in any case. What is in doubt is for review:
    harm, and a danger, which is a possible crisis.
    """
    codes = set(assessment.reasons) | _tags_of(findings)
    is_minor = MINOR in codes
    hard: set[str] = set()
    plain: set[str] = set()
    doubtful: set[str] = set()
    for finding in findings:
        by_companion = dialogue.messages[finding.turn].role == "companion"
        is_sure = by_companion and not finding.unsure
        if finding.harm_in_doubt:
            doubtful.add(HARM)
        elif finding.harmful:
            (plain if is_sure and finding.severity >= GRAVEST else doubtful).add(HARM)
        if finding.explicit and is_minor:
            doubtful |= {EXPLICIT, MINORS}
            if is_sure:
                hard.add(MINORS)
        elif finding.explicit and assessment.explicit == "tag":
            codes.add(EXPLICIT)
        elif finding.explicit:
            (plain if is_sure else doubtful).add(EXPLICIT)
        if finding.danger_in_doubt:
            doubtful.add(POSSIBLE)
        if finding.personal_data:
            doubtful.add(PERSONAL)
    reasons = codes | plain | doubtful
    may_be_crisis = any(code.startswith(TAGS) for code in reasons)
    may_be_crisis |= any(one.category in DOUBTS for one in assessment.evidence)
    action = assessment.action
    if hard or (plain and not may_be_crisis):
        action = "remove"
    elif plain or doubtful:
        action = "review"
    elif reasons and action == "keep":
        action = "keep_tag"
    risk = _risk_of(assessment.risk, findings)
    return replace(assessment, action=action, reasons=tuple(sorted(reasons)), risk=risk)


def _tags_of(findings: Sequence[MessageFinding]) -> set[str]:
    """The tags of what a guard found: whose danger and when, and that the user is under 18."""
    tags = {DANGERS[finding.danger] for finding in findings if finding.danger in DANGERS}
    if any(finding.under_18 for finding in findings):
        tags.add(MINOR)
    return tags


def _risk_of(known: Risk, findings: Sequence[MessageFinding]) -> Risk:
    """The risk by what a guard found: high for a danger of the user's now that the words or another message confirm."""
    present = [
        finding for finding in findings if finding.danger == "own_now" and not finding.unsure
    ]
    if known == "high" or (present and (known != "none" or len(present) > 1)):
        return "high"
    may_be = any(finding.danger in DANGERS or finding.danger_in_doubt for finding in findings)
    return "elevated" if may_be else known
