"""The items of a run's page as JSON, in the forms that records.js reads: prompts, responses, scores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from h2htalk.benchmark.metrics.composite import (
    LEXICAL_FOLDED,
    METRIC_COLUMNS,
    ItemScore,
    SampleScore,
)
from h2htalk.benchmark.run import TEMPLATE
from h2htalk.data.model_names import text_without_paths
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.data.scenario import Scenario, notes_crisis
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.contracts.violations import RULES

_SAMPLE_METRICS = (*METRIC_COLUMNS, LEXICAL_FOLDED)  # in the order of the page
# Characters to escape in a script block: the first three could end the block, the last two end a line of script.
_ACTING = re.compile("[<>&\u2028\u2029]")


class ItemView(NamedTuple):
    """One item as the page shows it: role and text of the messages of its prompt, responses and scores."""

    scenario: Scenario
    messages: tuple[tuple[str, str], ...]
    responses: tuple[Response | FailedResponse, ...]
    score: ItemScore


def items_json(items: Iterable[ItemView]) -> Iterator[str]:
    """Yield the items as JSON. Paragraphs of prompts are stored once, because personas and instructions repeat."""
    paragraphs: dict[str, int] = {}
    subtasks = [[subtask.name, subtask.title] for subtask in SUBTASKS.values()]
    head = script_json({"subtasks": subtasks, "metrics": list(_SAMPLE_METRICS), "rules": RULES})
    yield head[:-1] + ',"items":['
    for number, item in enumerate(items):
        yield ("," if number else "") + script_json(_packed(item, paragraphs))
    yield '],"paragraphs":' + script_json(list(paragraphs)) + "}"


def script_json(value: Any) -> str:
    """JSON for a script block of a page, which no text in it can end."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _ACTING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _packed(item: ItemView, paragraphs: dict[str, int]) -> list[Any]:
    """Pack an item for `unpackItem` of records.js, which defines the order of the fields."""
    scenario = item.scenario
    score = item.score
    tags = scenario.tags
    by_sample = {sample.sample: sample for sample in score.samples}
    messages = [_packed_message(role, text, paragraphs) for role, text in item.messages]
    samples = []
    for response in sorted(item.responses, key=lambda response: response.sample):
        samples.append(_packed_sample(response, by_sample.get(response.sample)))
    tag_values = [tags.emotion, tags.complexity, tags.interaction, tags.risk]
    means = _short([score.s, score.lexical, score.ss, score.compliance])
    is_about_crisis = tags.risk != "none" or notes_crisis(scenario.metadata)
    return [
        scenario.id,
        list(SUBTASKS).index(scenario.subtask),
        scenario.language,
        scenario.persona,
        tag_values,
        list(scenario.references),
        means,
        score.unscored,
        messages,
        samples,
        int(is_about_crisis),
    ]


def _packed_message(role: str, text: str, paragraphs: dict[str, int]) -> list[Any]:
    """Pack a message as its role and the numbers of its paragraphs; a template is one, however many lines it has."""
    pieces = [text]
    if role != TEMPLATE:
        pieces = text.split("\n\n")
    return [role, [paragraphs.setdefault(piece, len(paragraphs)) for piece in pieces]]


def _packed_sample(response: Response | FailedResponse, score: SampleScore | None) -> list[Any]:
    """Pack a sample for `unpackSample` of records.js. An answer equal to the raw text is not written twice."""
    score = score or SampleScore("", 0)
    metrics = None
    if score.values:
        metrics = _short([score.values.get(name) for name in _SAMPLE_METRICS])
    means = _short([score.values.get("ss"), score.s])
    scored = [metrics, *means, list(score.violations or ()), score.unscored]
    if isinstance(response, FailedResponse):
        failure = response.failure
        message = text_without_paths(failure.message)
        return [response.sample, scored, None, [failure.reason, message, failure.attempts]]
    usage = response.usage
    reply = [
        response.text,
        None if response.answer == response.text else response.answer,
        response.thinking,
        response.finish_reason,
        usage.input_tokens,
        usage.output_tokens,
        response.request_id,
    ]
    return [response.sample, scored, reply, None]


def _short(values: Sequence[float | None]) -> list[float | None]:
    """Round to five decimals: a thousandth of what the tables show."""
    return [None if value is None else round(value, 5) for value in values]
