"""Training data: conversations of one arm whose replies are all accepted, in chat format."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from h2htalk.benchmark.studies.point_answers import AnsweredReply
from h2htalk.benchmark.studies.report import StudyResult
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.data.arguments import as_path
from h2htalk.data.case import Case
from h2htalk.data.files import write_jsonl
from h2htalk.data.links import link_copies
from h2htalk.errors import ConfigError, DataError, counted, quoted
from h2htalk.text.tables import NONE

LEAST_PERCEPTION = 4  # of every reply, where it was rated


def export_chats(
    study: str | os.PathLike[str], out: str | os.PathLike[str], arm: str = "", *, all_points: bool = True
) -> str:
    """Write the accepted conversations of an arm, one JSON object a line, and say how many were left out and why.

    A conversation is accepted when no must_not point is true of a reply, none is cut or refused, safety perception is 4
    or more where it was rated, nothing is unscored, and (with `all_points`) every must point is true. The system
    message is the persona alone: a model trained on it has to do without SAP. A line holds `messages`, `case`,
    `language`, `licence`, `source` and the split's `canary`, so that such data is recognised and never evaluated on
    the same cases.
    """
    result, path = load_study(as_path(study, "study")), as_path(out, "out")
    arms = result.study.spec.arms
    arm = arm or ("sap" if "sap" in arms else arms[0])
    if arm not in arms:
        raise ConfigError(f"--arm {quoted(arm)}: choose from {', '.join(arms)}")
    if path.exists():
        raise DataError(f"{path}: exists; name a new file")
    kept, reasons = [], Counter[str]()
    for case in result.study.cases:
        own = [one for one in result.replies if one.reply.arm == arm and one.case.id == case.id]
        why = _refused(own, all_points)
        if why:
            reasons[why] += 1
        else:
            kept.append(_line(result, case, own))
    link_copies([result.study.path], path)
    write_jsonl(path, kept)
    left = ", ".join(f"{why} {number:,}" for why, number in sorted(reasons.items())) or NONE
    return (
        f"{counted(len(kept), 'conversation')} of {len(result.study.cases):,} written; left out: {left}. Test the "
        "trained model on cases that are not among them: h2htalk study sap MODEL --arms none --split ..."
    )


def _refused(replies: Sequence[AnsweredReply], all_points: bool) -> str:
    """Why a conversation is not accepted; empty where it is."""
    answers = [answer for one in replies for answer in one.points]
    if any(one.reply.text is None for one in replies):
        return "a failed call"
    if any(one.reply.finish not in ("stop", "unknown") for one in replies):
        return "a reply cut or refused"
    if any(one.violates or any(a.true and a.point.kind == "must_not" for a in one.points) for one in replies):
        return "a violation"
    if any(one.perception is not None and one.perception < LEAST_PERCEPTION for one in replies):
        return "a low safety perception"
    if any(answer.good is None for answer in answers):
        return "unscored points"
    if all_points and any(answer.good is False for answer in answers):
        return "a point missed"
    return ""


def _line(result: StudyResult, case: Case, replies: Sequence[AnsweredReply]) -> dict[str, Any]:
    persona = result.study.personas[case.persona].descriptions[case.language]
    split = result.study.split
    return {
        "messages": [{"role": "system", "content": persona}, *_messages(replies)],
        "case": case.id,
        "language": case.language,
        "licence": case.licence,
        "source": f"{split.name} {split.version}, replies of {result.model}",
        "canary": split.canary,
    }


def _messages(replies: Sequence[AnsweredReply]) -> Iterator[dict[str, str]]:
    last = replies[-1].reply
    for turn in last.said:
        yield {"role": "user" if turn.role == "user" else "assistant", "content": turn.content}
    yield {"role": "assistant", "content": last.text or ""}
