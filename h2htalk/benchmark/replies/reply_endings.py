"""How the replies of a run or a study ended: filtered, refused, cut or empty, and why; what a reader is warned of.

An empty reply scores 0, as it would in a chat, and a filtered one counts as the specification says. Neither is counted
without a word: a figure that rests on a server's setting looks like one that rests on the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from h2htalk.chat.provider_filters import find_filter
from h2htalk.data.replies.finish_reasons import (
    CUT,
    FILTERED,
    REFUSAL,
    TOOL,
    read_finish_reason,
    unknown_reasons_text,
)
from h2htalk.data.replies.reasoning import split_reasoning
from h2htalk.data.responses import FailedResponse, FilterRule, Response, is_filtered
from h2htalk.errors import counted, shorten
from h2htalk.text.typography import seen_text

# Why a reply has no text, by the key in `RunCounts.empty_causes`.
EMPTY_CAUSES: Mapping[str, str] = {
    "filtered": "filtered by the provider",
    "refused": "declined without a word",
    "cut": "cut before the first word",
    "tool_call": "a tool call without text",
    "reasoning_only": "reasoning alone",
    "no_text": "ended without a word",
}
_NAMED = 3  # sentences of providers that a warning quotes
LONGEST_QUOTED = 160  # characters of each


@dataclass(frozen=True, slots=True)
class ReplyEndings:
    """Number of replies by how they ended. `empty`: those without text by cause (`EMPTY_CAUSES`); `reasons`: each as
    its server named it; `filters`: whose filter declined, in the provider's words; `parts`: filtered ones of which the
    filter left text; `unnamed`: refusals without text, which earlier versions stored for filters too."""

    replies: int = 0
    refused: int = 0
    cut: int = 0
    filtered: int = 0
    parts: int = 0
    unnamed: int = 0
    empty: Mapping[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    filters: Mapping[str, int] = field(default_factory=dict)


def count_endings(answers: Iterable[Response | FailedResponse]) -> ReplyEndings:
    """Count how replies ended; failed calls have none."""
    replies = [answer for answer in answers if isinstance(answer, Response)]
    endings = Counter(read_finish_reason(reply.finish_reason) for reply in replies)
    filtered = [reply for reply in replies if is_filtered(reply)]
    filters = Counter(reply.filtered_by or "its words were not stored" for reply in filtered)
    causes = Counter(cause for reply in replies if (cause := empty_cause(reply)) is not None)
    return ReplyEndings(
        replies=len(replies),
        refused=endings[REFUSAL],
        cut=sum(endings[reason] for reason in CUT),
        filtered=len(filtered),
        parts=sum(1 for reply in filtered if reply.answer),
        unnamed=causes["refused"],
        empty={cause: causes[cause] for cause in EMPTY_CAUSES if causes[cause]},
        reasons=tuple(reply.finish_reason for reply in replies),
        filters=dict(filters.most_common()),
    )


def empty_cause(reply: Response) -> str | None:
    """Return why a reply has no text, as a key of `EMPTY_CAUSES`; None where it has one."""
    answer, thinking = split_reasoning(reply.text)
    if seen_text(answer):  # zero-width spaces alone are no text
        return None
    ending = read_finish_reason(reply.finish_reason)
    named = {FILTERED: "filtered", REFUSAL: "refused", TOOL: "tool_call"}
    if ending in named:
        return named[ending]
    if ending in CUT:
        return "cut"
    return "reasoning_only" if thinking or reply.thinking else "no_text"


def ending_warnings(
    endings: ReplyEndings, rule: FilterRule, left_out: int = 0, empty_counts: str = "which scores 0"
) -> list[str]:
    """Warn of replies that were filtered, cut or empty, or ended for reasons that are not known.

    Args:
        endings: the numbers.
        rule: what a filtered reply counts as.
        left_out: items that have no value for a filter's sake.
        empty_counts: what an empty reply counts as.
    """
    warnings = []
    of = f"of {counted(endings.replies, 'reply', 'replies')}"
    if endings.filtered:
        warnings.append(_filter_warning(endings, rule, left_out))
    others = {cause: number for cause, number in endings.empty.items() if cause != "filtered"}
    if others:
        causes = ", ".join(f"{EMPTY_CAUSES[cause]} {number:,}" for cause, number in others.items())
        empty = sum(others.values())
        are = "is" if empty == 1 else "are"
        warnings.append(f"{empty:,} {of} {are} empty, {empty_counts}: {causes}")
    if endings.cut:
        were = "was" if endings.cut == 1 else "were"
        warnings.append(
            f"{endings.cut:,} {of} {were} cut at the budget of tokens or the end of the context (finish reason length)"
        )
    if unknown := unknown_reasons_text(endings.reasons):
        warnings.append(unknown)
    return warnings


def _filter_warning(endings: ReplyEndings, rule: FilterRule, left_out: int) -> str:
    were = "was" if endings.filtered == 1 else "were"
    what = f"{endings.filtered:,} of {counted(endings.replies, 'reply', 'replies')} {were} filtered by the provider"
    if rule == "refusal":
        counts = "counted as refusals of the model (--filtered unscored leaves them out)"
        if endings.parts:
            have = "has" if endings.parts == 1 else "have"
            counts += f"; {endings.parts:,} {have} text that the filter left, which is scored as it stands"
    else:
        items = (
            f", so that {counted(left_out, 'item has', 'items have')} no score" if left_out else ""
        )
        counts = f"left out{items} (--filtered refusal counts them as refusals of the model)"
    named = [
        f"{shorten(words, LONGEST_QUOTED)} ({number:,})"
        for words, number in [*endings.filters.items()][:_NAMED]
    ]
    more = len(endings.filters) - len(named)
    if more > 0:
        named.append(f"{more:,} more")
    return f"{what}: {counts}; {', '.join(named)}"


def earlier_filters(
    answers: Iterable[Response | FailedResponse], endings: ReplyEndings
) -> list[str]:
    """Name what an earlier version, or another tool, stored of filters in other words; it stays as it is stored."""
    notes = []
    failed = [answer for answer in answers if isinstance(answer, FailedResponse)]
    named = [one for one in failed if _names_filter(one.failure.message)]
    if named:
        calls = counted(len(named), "failed call", "failed calls")
        first = shorten(named[0].failure.message, LONGEST_QUOTED)
        notes.append(
            f"{calls} stored by an earlier version: the provider's filter declined ({first}); the command that made "
            "the run asks again, and counts what is declined then as filtered"
        )
    if endings.unnamed:
        refusals = counted(endings.unnamed, "refusal", "refusals")
        notes.append(
            f"{refusals} without text: it is not stored whether the model or a provider's filter declined; counted as "
            "refusals of the model"
        )
    return notes


def _names_filter(message: str) -> bool:
    """Whether the message of a failed call is that of a provider's filter."""
    return (
        "content_filter" in message or find_filter(0, {"error": {"message": message}}) is not None
    )
