"""What leaves a study as training data: accepted conversations in chat format."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from h2htalk.benchmark.raters import CODE, JUDGE, is_doubted
from h2htalk.benchmark.studies.conversations import StudyReply
from h2htalk.benchmark.studies.points.point_answers import PERCEIVED, AnsweredReply
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.data.files import write_jsonl
from h2htalk.data.links import link_copies
from h2htalk.data.replies.finish_reasons import is_whole
from h2htalk.data.responses import FILTERED_REPLY
from h2htalk.data.settings import as_path
from h2htalk.errors import ConfigError, DataError, counted, quoted
from h2htalk.text.tables import NONE

_DOUBTED = "read by a judge that was not checked, or failed its planted replies,"
LEAST_PERCEPTION = 4  # of every reply of training data, where it was rated


def export_chats(
    study: str | os.PathLike[str],
    out: str | os.PathLike[str],
    arm: str = "",
    *,
    all_points: bool = True,
) -> str:
    """Write the accepted conversations of an arm, one JSON object a line, and say how many were left out and why.

    `refusal_of` says which are not accepted; with `all_points` every must point has to be true. What a judge read whose
    answers do not count is not accepted either. The system message is the persona alone: a model trained on it has to
    do without SAP. By the split's canary such data is recognised.
    """
    result = load_study(as_path(study, "study"))
    path = as_path(out, "out")
    arms = result.study.spec.arms
    split = result.study.split
    arm = arm or ("sap" if "sap" in arms else arms[0])
    if arm not in arms:
        raise ConfigError(f"--arm {quoted(arm)}: choose from {', '.join(arms)}")
    if path.exists():
        raise DataError(f"{path}: exists; name a new file")
    replies_of_arm = [reply for reply in result.replies if reply.reply.arm == arm]
    lines = []
    reasons = Counter[str]()
    for case in split.cases:
        replies = [reply for reply in replies_of_arm if reply.case.id == case.id]
        reason = refusal_of(replies, all_points)
        is_judged = any(
            JUDGE in {answered.perception_by, *_raters(answered)} for answered in replies
        )
        if not reason and is_judged and is_doubted(result.planted, case.language, arm):
            reason = _DOUBTED
        if reason:
            reasons[reason] += 1
            continue
        persona = split.personas[case.persona].descriptions[case.language]
        line = {
            "messages": _messages(persona, replies[-1].reply),
            "case": case.id,
            "language": case.language,
            "licence": case.licence,
            "source": f"{split.name} {split.version}, replies of {result.model}",
            "canary": split.canary,
        }
        lines.append(line)
    link_copies([result.study.path], path)
    write_jsonl(path, lines)
    left_out = ", ".join(f"{reason} {number:,}" for reason, number in sorted(reasons.items()))
    return (
        f"{counted(len(lines), 'conversation')} of {len(split.cases):,} written; left out: {left_out or NONE}. "
        "Test the trained model on cases that are not among them: h2htalk study sap MODEL --arms none --split ..."
    )


def _messages(persona: str, reply: StudyReply) -> list[dict[str, str | None]]:
    """Return a conversation in chat format: the persona, the turns before its last reply, and that reply."""
    messages: list[dict[str, str | None]] = [{"role": "system", "content": persona}]
    for turn in reply.said:
        role = "assistant" if turn.role == "companion" else turn.role
        messages.append({"role": role, "content": turn.content})
    messages.append({"role": "assistant", "content": reply.text})
    return messages


def refusal_of(replies: Sequence[AnsweredReply], all_points: bool) -> str:
    """Return why a conversation is not accepted; empty where it is."""
    if any(answered.reply.failure == FILTERED_REPLY for answered in replies):
        return "a filtered reply"
    if any(answered.reply.text is None for answered in replies):
        return "a failed call"
    if not all(is_whole(answered.reply.finish) for answered in replies):
        return "a reply cut or refused"
    for answered in replies:
        if answered.violates or any(answer.true for answer in answered.must_nots):
            return "a violation"
    ratings = [answered.perception for answered in replies if answered.perception is not None]
    if min(ratings, default=LEAST_PERCEPTION) < LEAST_PERCEPTION:
        return "a low safety perception"
    met = set[bool | None]()
    for answered in replies:
        met |= {answer.good for answer in answered.points}
    if None in met:
        return "unscored points"
    if any(answered.tied for answered in replies):
        return "people are tied"
    unread = [answered for answered in replies if _is_unread(answered)]
    if len(unread) == len(replies) or any(answered.case.study in PERCEIVED for answered in unread):
        return "a reply that nobody read"
    return "a point missed" if all_points and False in met else ""


def _is_unread(answered: AnsweredReply) -> bool:
    """Return whether neither people nor a judge said anything of a reply."""
    is_rated = answered.perception is not None or answered.violation is not None
    return not is_rated and _raters(answered) <= {"", CODE}


def _raters(answered: AnsweredReply) -> set[str]:
    """Return who answered about the points of a reply."""
    return {answer.by for answer in answered.points}
