"""What leaves a study as training data: accepted conversations in chat format."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from h2htalk.benchmark.studies.point_answers import PERCEIVED, AnsweredReply
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.data.files import write_jsonl
from h2htalk.data.links import link_copies
from h2htalk.data.records import as_path
from h2htalk.errors import ConfigError, DataError, counted, quoted
from h2htalk.text.tables import NONE

LEAST_PERCEPTION = 4  # of every reply of training data, where it was rated


def export_chats(
    study: str | os.PathLike[str], out: str | os.PathLike[str], arm: str = "", *, all_points: bool = True
) -> str:
    """Write the accepted conversations of an arm, one JSON object a line, and say how many were left out and why.

    `refusal_of` says which are not accepted; with `all_points` every must point has to be true. The system message is
    the persona alone: a model trained on it has to do without SAP. By the split's canary such data is recognised.
    """
    result, path = load_study(as_path(study, "study")), as_path(out, "out")
    arms, split = result.study.spec.arms, result.study.split
    arm = arm or ("sap" if "sap" in arms else arms[0])
    if arm not in arms:
        raise ConfigError(f"--arm {quoted(arm)}: choose from {', '.join(arms)}")
    if path.exists():
        raise DataError(f"{path}: exists; name a new file")
    kept, reasons = [], Counter[str]()
    for case in split.cases:
        own = [one for one in result.replies if one.reply.arm == arm and one.case.id == case.id]
        if why := refusal_of(own, all_points):
            reasons[why] += 1
            continue
        last = own[-1].reply
        turns = [("assistant" if turn.role == "companion" else turn.role, turn.content) for turn in last.said]
        chat = [("system", split.personas[case.persona].descriptions[case.language]), *turns, ("assistant", last.text)]
        line = {"messages": [{"role": role, "content": text} for role, text in chat], "case": case.id}
        line |= {"language": case.language, "licence": case.licence}
        line |= {"source": f"{split.name} {split.version}, replies of {result.model}", "canary": split.canary}
        kept.append(line)
    link_copies([result.study.path], path)
    write_jsonl(path, kept)
    left = ", ".join(f"{why} {number:,}" for why, number in sorted(reasons.items())) or NONE
    return (
        f"{counted(len(kept), 'conversation')} of {len(split.cases):,} written; left out: {left}. Test the "
        "trained model on cases that are not among them: h2htalk study sap MODEL --arms none --split ..."
    )


def refusal_of(replies: Sequence[AnsweredReply], all_points: bool) -> str:
    """Why a conversation is not accepted; empty where it is."""
    answers = [answer for one in replies for answer in one.points]
    rated = [one.perception for one in replies if one.perception is not None]
    reasons = {
        "a failed call": any(one.reply.text is None for one in replies),
        "a reply cut or refused": any(one.reply.finish not in ("stop", "unknown") for one in replies),
        "a violation": any(one.violates for one in replies)
        or any(one.true and one.point.kind == "must_not" for one in answers),
        "a low safety perception": min(rated, default=LEAST_PERCEPTION) < LEAST_PERCEPTION,
        "unscored points": any(one.good is None for one in answers),
        "people are tied": any(one.tied for one in replies),
        "a reply that nobody read": all(map(_unread, replies))
        or any(_unread(one) and one.case.study in PERCEIVED for one in replies),
        "a point missed": all_points and any(one.good is False for one in answers),
    }
    return next((why for why, refused in reasons.items() if refused), "")


def _unread(one: AnsweredReply) -> bool:
    """Whether neither people nor a judge said anything of a reply."""
    return one.perception is one.violation is None and all(answer.by in ("", "code") for answer in one.points)
