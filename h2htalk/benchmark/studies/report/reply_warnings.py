"""What a reader of a study is warned of about its replies and the judge's (filtered, cut, empty), and cut prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from h2htalk.benchmark.raters import PlantedCheck
from h2htalk.benchmark.replies.prompt_sizes import PromptSize, size_warnings
from h2htalk.benchmark.replies.reply_endings import (
    LONGEST_QUOTED,
    count_endings,
    earlier_filters,
    ending_warnings,
)
from h2htalk.benchmark.studies.conversations import Study
from h2htalk.benchmark.studies.judge_reading import form_advice
from h2htalk.benchmark.studies.points.point_answers import AnsweredReply
from h2htalk.benchmark.studies.settings import StudySpec
from h2htalk.chat.store.reply_marks import mark_warnings
from h2htalk.data.replies.finish_reasons import unknown_reasons_text
from h2htalk.errors import counted, shorten


def reply_warnings(study: Study, replies: Sequence[AnsweredReply]) -> list[str]:
    """Warn of replies of the model and of the judge that were filtered, cut or empty, or ended for unknown reasons."""
    spec = study.spec
    stored = study.folder.answers().items()
    answers = [answer for (name, _), answer in stored if name.partition("/")[0] in spec.arms]
    endings = count_endings(answers)
    warnings = ending_warnings(
        endings, spec.ask.filtered, empty_counts="which counts as an answer without words"
    )
    warnings += earlier_filters(answers, endings)
    warnings += mark_warnings(_answers_and_references(replies), spec.ask.engine)
    if study.prompts.are_known:
        warnings += size_warnings(_prompt_sizes(replies))
    else:
        warnings.append(
            "not known: sizes of prompts, and tokens that the server does not report; the templates of this study are "
            "not those of this version, so they were not rendered; name their folder: "
            "`h2htalk study score STUDY --prompts DIR`"
        )
    declined = _by_reply(replies, "declined")
    if declined:
        number = counted(len(declined), "reply", "replies")
        first = shorten(declined[0], LONGEST_QUOTED)
        warnings.append(
            f"the filter of the judge's provider declined {number} ({first}): their points stay unscored "
            "(judge_filtered), and the same judge is not asked again; name another judge, or ask people"
        )
    reasons = _by_reply(replies, "unknown_reason")
    unknown = unknown_reasons_text(reasons, "the judge's replies")
    if unknown:
        warnings.append(unknown)
    return warnings


def unread_warnings(
    spec: StudySpec, replies: Sequence[AnsweredReply], planted: Sequence[PlantedCheck] | None
) -> list[str]:
    """Warn of replies of the judge that could not be read: how many, one of each kind, what is read, what to do."""
    unread = _by_reply(replies, "unread")
    of_planted = sum(check.unread for check in planted or ())
    if not unread and not of_planted:
        return []
    number = counted(len(unread) + of_planted, "reply", "replies")
    about = f" ({of_planted:,} of them about planted replies)" if of_planted else ""
    first = {text.partition(":")[0]: text for text in reversed(unread)}
    warning = f"{number} of the judge could not be read{about}"
    return ["; ".join([warning, *first.values(), form_advice(spec)])]


def _by_reply(replies: Sequence[AnsweredReply], field: str) -> list[str]:
    """Return what a field says of the judge's replies, once of equal replies in several arms."""
    texts = {reply.reply.id: getattr(reply, field) for reply in replies}
    return [text for text in texts.values() if text]


def _answers_and_references(
    replies: Sequence[AnsweredReply],
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each reply with the references of its case."""
    for answered in replies:
        if answered.reply.text is not None:
            yield answered.reply.text, [turn.reference for turn in answered.case.turns()]


def _prompt_sizes(replies: Sequence[AnsweredReply]) -> list[PromptSize]:
    """The sizes of the prompts behind replies whose tokens the server reported."""
    sizes: list[PromptSize] = []
    for answered in replies:
        reply = answered.reply
        if reply.prompt_tokens:
            size = PromptSize(
                language=answered.case.language,
                characters=reply.prompt_characters,
                tokens=reply.prompt_tokens,
            )
            sizes.append(size)
    return sizes
