"""What a comparison reads of a run, a study or a log: each item with its value, and what makes it the same item."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path

from h2htalk.benchmark.metrics.composite import (
    LEXICAL_FOLDED,
    METRIC_COLUMNS,
    ItemScore,
    SampleScore,
    all_columns,
)
from h2htalk.benchmark.observations import COUNTS, NOT_ASKED, SCALES, Observation, scored
from h2htalk.benchmark.raters import Raters
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics.averages import clusters_of
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.chat.protocol import Message
from h2htalk.data.erasure.folder_kinds import kind_of
from h2htalk.data.files import sha256_of
from h2htalk.data.imports.harness_log import read_harness_log
from h2htalk.data.imports.log_records import ItemInput, LogRecord
from h2htalk.data.model_names import text_without_paths, without_path
from h2htalk.data.responses import Response
from h2htalk.data.scenario import Scenario, Turn, notes_crisis
from h2htalk.data.signature import FILTERED_KEY, Signature
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, counted, listed, quoted, suggest

COMPLIANCE = "compliance"
JUDGED = "judged"  # the main row of a judged run: levels I to III as 20 J, the others as 100 S
RATING = "rating"  # 20 R
MAX = "max"  # a reducer of epochs, in Inspect's word
# Keys of the protocol that change what a value means, by metric; the others say which items were asked, and how.
_LEXICAL = ("metrics", "tokens", "rouge")
_S = (*_LEXICAL, "embedder")
_MEANING = {"s": _S, "ss": ("metrics", "embedder"), JUDGED: (*_S, "judge"), RATING: ("judge",)}
METRIC_NAMES = (
    "s",
    JUDGED,
    RATING,
    "lexical",
    LEXICAL_FOLDED,
    *METRIC_COLUMNS,
    COMPLIANCE,
)  # what `--metric` may name


@dataclass(frozen=True, slots=True)
class ScoredItem:
    """An item of a run, with a value (0 to 100) and an answer for each sample; without values `unscored` says why.

    `id` is the scenario's, in a log its own (`own_id`) or its position; a log's item has no subtask. Items of a cluster
    are not independent. `content`: what was asked and is scored against, equal in two runs of the same item.
    `failed`: a call gave no answer.
    """

    id: str
    cluster: str
    values: tuple[float, ...]
    unscored: str | None
    answers: tuple[str, ...]
    subtask: str = ""
    content: str = ""
    failed: bool = False
    own_id: bool = True
    crisis: bool = False  # it is about one
    reducer: str = ""  # `MAX`, or empty for the mean
    observation: Observation | None = None  # of a study: what says who answered it

    @property
    def value(self) -> float | None:
        if self.values and self.reducer == MAX:
            return max(self.values)
        return sum(self.values) / len(self.values) if self.values else None


@dataclass(frozen=True, slots=True)
class ScoredItems:
    """A run as a comparison sees it; `metric` is what its values are, `input_of` what an item asked, where known.

    `corrected`: 20 J of levels I to III by people's labels, of a run that was calibrated; `folded`: the folded lexical
    mean (0 to 100) of the items that have one, beside values that the lexical metrics are part of; `harness`, `notes`
    and `reducer` (how its figures make one value of an item's epochs, if not by the mean) of another harness's log;
    `raters`: who answered the values of a study's figure, None for a computed one.
    """

    label: str
    split: str
    metric: str
    signature: Signature
    items: Mapping[str, ScoredItem]
    input_of: Callable[[str], ItemInput | None]
    corrected: Estimate | None = None
    folded: Mapping[str, float] = field(default_factory=dict)
    harness: str = ""
    notes: tuple[str, ...] = ()
    reducer: str = ""
    raters: Raters | None = None

    def meaning(self) -> dict[str, str]:
        """The part of the protocol that decides what a value of the metric means."""
        protocol = self.signature.protocol
        if "study" in protocol:
            return dict(protocol)
        keys: tuple[str, ...] = (
            ("contracts",) if self.metric == COMPLIANCE else _MEANING.get(self.metric, _LEXICAL)
        )
        if "references" in protocol:
            keys = (*keys, "references")
        return {key: protocol.get(key, "-") for key in keys} | {
            FILTERED_KEY: self.signature.filter_rule
        }


def read_folder_items(path: Path, metric: str | None) -> ScoredItems:
    """Read a scored run or study; of a run without a metric, what its main table is made of: `judged`, S, or the
    lexical mean."""
    kind = kind_of(path)
    if kind is not None and kind.name == "study":
        return _read_study_items(path, metric)
    run = load_run(path)
    columns = all_columns(score.metrics for score in run.item_scores.values())
    names = list(dict.fromkeys((*METRIC_NAMES, *columns)))
    if metric not in (None, *names):
        raise ConfigError(
            f"{path}: --metric {metric!r}: {suggest(metric, names)}choose from {', '.join(names)}"
        )
    summary = run.summary
    scenarios = run.data.split.scenarios
    name = metric or (JUDGED if summary.judged else summary.measure)
    clusters = clusters_of(scenarios)
    by_id = {scenario.id: scenario for scenario in scenarios}
    items = {}
    for item, scenario in by_id.items():
        if _is_asked(run.item_scores[item], name):
            items[item] = _item(run, scenario, clusters[item], name)
    if not any(item.values for item in items.values()):
        raise ConfigError(f"{path}: no item has a value of {name}; choose another --metric")
    prompt_of = run.data.prompt_of

    def input_of(item: str) -> ItemInput | None:
        """The prompt; of imported answers the turns of a conversation, None of other scenarios."""
        scenario = by_id[item]
        messages: Sequence[Message | Turn] = ()
        if prompt_of:
            messages = prompt_of(scenario)
        elif SUBTASKS[scenario.subtask].is_chat:
            messages = scenario.turns
        texts = [(message.role, message.content) for message in messages]
        return ItemInput.of(texts, scenario.references) if texts else None

    corrected = None
    if summary.judging is not None and name == JUDGED:
        corrected = summary.judging.corrected.get("levels")
    folded = _folded_means(run, items) if name in ("lexical", "s") else {}
    return ScoredItems(
        summary.model, summary.split, name, summary.signature, items, input_of, corrected, folded
    )


def _folded_means(run: Run, items: Iterable[str]) -> dict[str, float]:
    means = {}
    for name in items:
        mean = run.item_scores[name].metrics.get(LEXICAL_FOLDED)
        if mean is not None:
            means[name] = 100 * mean
    return means


def _item(run: Run, scenario: Scenario, cluster: str, metric: str) -> ScoredItem:
    score = run.item_scores[scenario.id]
    column = metric
    if metric == JUDGED:
        column = "s" if SUBTASKS[scenario.subtask].level is None else "j"
    samples = [_value(sample, column) for sample in score.samples]
    values = tuple(100 * value for value in samples if value is not None)
    unscored = score.unscored or (None if len(values) == len(samples) else f"no {metric}")
    replies = [run.answers.get((scenario.id, k)) for k in range(run.data.spec.samples)]
    return ScoredItem(
        scenario.id,
        cluster,
        values=() if unscored else values,
        unscored=unscored,
        answers=tuple(reply.answer if isinstance(reply, Response) else "" for reply in replies),
        subtask=scenario.subtask,
        content=repr((scenario.inputs, scenario.references)),
        failed=not all(isinstance(reply, Response) for reply in replies),
        crisis=scenario.tags.risk != "none" or notes_crisis(scenario.metadata),
    )


def _is_asked(score: ItemScore, metric: str) -> bool:
    """Whether an item is asked for a metric: an embedder gives S to items in its languages alone, a metric of another
    distribution may not apply, and judges read the items in their scope."""
    if metric == RATING:
        return any(sample.rating is not None or sample.unjudged for sample in score.samples)
    column = {"s": "ss", JUDGED: "ss"}.get(metric, metric)
    return (
        column in ("lexical", COMPLIANCE)
        or score.metrics.get(column) is not None
        or score.unscored is not None
    )


def _value(sample: SampleScore, metric: str) -> float | None:
    if metric == COMPLIANCE:
        is_checked = sample.values and sample.violations is not None
        return float(not sample.violations) if is_checked else None
    if metric not in ("s", "lexical", "j", RATING):
        return sample.values.get(metric)
    value: float | None = getattr(sample, metric)
    return value / 5 if value is not None and metric in ("j", RATING) else value


def read_log_items(path: Path, metric: str | None, scale: str) -> ScoredItems:
    """Read a log of another harness; an item's values are those of its epochs, none where one of them has none."""
    try:
        low, high = map(float, scale.rpartition("-")[::2])
        if not low < high < float("inf"):
            raise ValueError(scale)
    except ValueError as error:
        raise ConfigError(
            f"--scale {quoted(scale)}: write lowest and highest value, such as 0-1 or 1-5"
        ) from error
    log = read_harness_log(path)
    name = log.metric(metric)
    groups = defaultdict[str, list[LogRecord]](list)
    empty = []
    for record in sorted(log.records, key=lambda record: (record.item, record.epoch)):
        groups[record.item].append(record)
        if record.answer == "" and isinstance(record.value(name), float):
            empty.append(record.item)
    items = {}
    inputs = {}
    outside = []
    for item, records in groups.items():
        items[item] = _log_item(item, records, name, low, high)
        inputs[item] = next((record.input for record in records if record.input), None)
        if not all(0 <= value <= 100 for value in items[item].values):
            outside.append(item)
    if outside:
        raise ConfigError(
            f"{path}: {name} of {counted(len(outside), 'item')} outside {scale}: {listed(outside)}; "
            "name the scale of its values with --scale"
        )
    digest = f", sha256 {sha256_of(path)[:12]}" if path.is_file() else ""
    notes = [f"metric {name} on {scale}{digest}", *log.notes]
    if empty:
        answers = counted(len(empty), "empty answer has", "empty answers have")
        notes.append(f"{answers} a score: {listed(empty)}")
    label = f"{text_without_paths(without_path(log.model))} ({log.harness})"
    signature = Signature({}, {})
    return ScoredItems(
        label=label,
        split=log.task,
        metric=name,
        signature=signature,
        items=items,
        input_of=inputs.get,
        harness=log.harness,
        notes=tuple(notes),
        reducer=log.reducer,
    )


def _log_item(
    item: str, records: list[LogRecord], metric: str, low: float, high: float
) -> ScoredItem:
    values = [record.value(metric) for record in records]
    reason = next((value for value in values if isinstance(value, str)), None)
    scaled = tuple(
        100 * ((value - low) / (high - low)) for value in values if not isinstance(value, str)
    )
    answers = tuple(record.answer or "" for record in records)
    failed = any(record.failure for record in records)
    return ScoredItem(
        item,
        item,
        () if reason else scaled,
        reason,
        answers,
        failed=failed,
        own_id=records[0].own_id,
    )


def share_reducer(
    a: ScoredItems, b: ScoredItems
) -> tuple[ScoredItems, ScoredItems, list[str], bool]:
    """Give both runs the values that the figures of their logs are of, where these are maxima in both; means else.

    Also return what must be said of it, and whether a test of the values says anything of the logs' own figures.
    """
    if not a.reducer and not b.reducer:
        return a, b, [], True
    if a.reducer == b.reducer == MAX:
        note = "the figures are of each item's max of its epochs, as the logs' own are"
        return _by_max(a), _by_max(b), [note], True
    reducers = f"A {a.reducer or 'mean'}, B {b.reducer or 'mean'}"
    note = f"the figures are means over epochs, and the logs' own are not ({reducers})"
    return a, b, [f"{note}: the logs may rank the runs otherwise, so nothing is tested"], False


def _by_max(run: ScoredItems) -> ScoredItems:
    items = {}
    for name, item in run.items.items():
        items[name] = replace(item, reducer=MAX)
    return replace(run, items=items)


def align(a: ScoredItems, b: ScoredItems) -> tuple[ScoredItems, ScoredItems, list[str]]:
    """Name the items of B as A does, by id or else by what was asked; return both, and what must be said of it.

    An item that asked something else gets another `content`. Subtasks and clusters are those of our own run.
    """
    names = {
        name: name
        for name, item in b.items.items()
        if item.own_id and name in a.items and a.items[name].own_id
    }
    by_id = len(names)
    for key in (attrgetter("turns"), _last_turn_of):
        names |= _matches(a, b, names, key)
    inputs = {name: (a.input_of(name_in_a), b.input_of(name)) for name, name_in_a in names.items()}
    same = {name for name, pair in inputs.items() if _is_same(*pair)}
    a_items = dict(a.items)
    b_items = {}
    for name, item in b.items.items():
        if name not in names:
            b_items[f"{name} of B" if name in a.items else name] = item
            continue
        match = a.items[names[name]]
        ours = item if a.harness else match
        content = "" if name in same else "changed"
        a_items[names[name]] = replace(
            match, subtask=ours.subtask, cluster=ours.cluster, content=""
        )
        b_items[names[name]] = replace(
            item, subtask=ours.subtask, cluster=ours.cluster, content=content
        )
    notes = [f"A: {note}" for note in a.notes] + [f"B: {note}" for note in b.notes]
    notes.append(
        "not checked, as such logs have no signature: prompts, sampling, tokens, versions of metrics"
    )
    if a.harness and b.harness:
        notes.append(
            "no subtasks are known, nor which items share a dialogue: each counts as independent"
        )
    if len(names) > by_id:
        notes.append(
            f"{counted(len(names) - by_id, 'item')} matched by input, for want of a common id"
        )
    unknown = sum(None in pair for pair in inputs.values())
    if unknown:
        notes.append(
            f"{counted(unknown, 'item')} matched by id alone: a log does not say what was asked"
        )
    differing = sorted(names[name] for name in same if _is_prompted_otherwise(*inputs[name]))
    if differing:
        number = counted(len(differing), "item")
        notes.append(f"{number} with another system prompt or less history: {listed(differing)}")
    return replace(a, items=a_items), replace(b, items=b_items), notes


def _matches(
    a: ScoredItems, b: ScoredItems, names: Mapping[str, str], key: Callable[[ItemInput], object]
) -> Iterator[tuple[str, str]]:
    """(name in B, name in A) of items whose key occurs once among those without a match on either side."""
    keys_a = _keys_of(a, set(names.values()), key)
    keys_b = _keys_of(b, names, key)
    counts_a = Counter(keys_a.values())
    counts_b = Counter(keys_b.values())
    names_by_key = {item_key: name for name, item_key in keys_a.items()}
    for name, item_key in keys_b.items():
        if item_key is not None and counts_a[item_key] == counts_b[item_key] == 1:
            yield name, names_by_key[item_key]


def _keys_of(
    run: ScoredItems, matched: Container[str], key: Callable[[ItemInput], object]
) -> dict[str, object]:
    """The key of each item without a match of which it is known what it asked."""
    keys = {}
    for name in run.items:
        if name not in matched and (item_input := run.input_of(name)):
            keys[name] = key(item_input)
    return keys


def _last_turn_of(item_input: ItemInput) -> object:
    """The last turn and the references; None without references."""
    return (item_input.turns[-1:], item_input.references) if item_input.references else None


def _is_prompted_otherwise(x: ItemInput | None, y: ItemInput | None) -> bool:
    """Whether both messages are known, and differ."""
    return x is not None and y is not None and x.messages != y.messages


def _is_same(x: ItemInput | None, y: ItemInput | None) -> bool:
    """Whether one item's turns end with the other's (its history may be left out), and they share a reference."""
    if x is None or y is None:
        return True
    n = min(len(x.turns), len(y.turns))
    shared = not x.references or not y.references or bool(set(x.references) & set(y.references))
    return n > 0 and x.turns[-n:] == y.turns[-n:] and shared


def _read_study_items(path: Path, metric: str | None) -> ScoredItems:
    """Read a figure of a scored study; two studies may have different cases, and each case is checked by itself.

    `metric`: `FIGURE` or `ARM/FIGURE`; None: the study's first figure. Without an arm that of `gate`.
    """
    # Imported here, with all that asks models, as most comparisons are of runs.
    from h2htalk.benchmark.observed_run import MAIN_FIGURES, read_observed_run

    arm, _, figure = (metric or "").rpartition("/")
    study = read_observed_run(path, arm)
    name = figure or MAIN_FIGURES[study.study][0]
    rows = study.values.get(name, ())
    if not scored(rows) or name in COUNTS:
        have = []
        for figure, observed_rows in sorted(study.values.items()):
            if figure not in COUNTS and scored(observed_rows):
                have.append(figure)
        choices = (
            f"choose a --metric from {', '.join(have)}" if have else "name a --judge, or ask people"
        )
        raise ConfigError(f"{path}: no value of {quoted(name)} in arm {study.arm}; {choices}")
    protocol = {key: value for key, value in study.signature.protocol.items() if key != "items"}
    signature = Signature(protocol | {"judge": study.judge or "-"}, study.signature.subject)
    least, most = SCALES.get(name, (0.0, 1.0))
    items = {}
    for row in rows:
        item = " ".join(row.key)
        observed = ScoredItem(
            id=item,
            cluster=row.cluster,
            values=(),
            unscored=row.unscored or NOT_ASKED,
            answers=(),
            content=study.items.get(row.item, ""),
            crisis=row.study == "high_risk",
            observation=row,
        )
        if row.value is not None:
            percent = 100 * (row.value - least) / (most - least)
            _, text = study.show(row)
            observed = replace(observed, values=(percent,), unscored=None, answers=(text,))
        items[item] = observed
    return ScoredItems(
        label=study.label,
        split=f"study {study.study}",
        metric=name,
        signature=signature,
        items=items,
        input_of=lambda _: None,
        raters=study.raters(name),
    )
