"""The item browser: its page, the data that the page loads as scripts, and `data.parquet`.

data/items-SPLIT.js    ids, tags and first words of a split's items, as columns
data/prompts-SPLIT.js  prompts as they were sent, whose paragraphs are stored once, and references that are public
data/scores-SPLIT.js   scores of its runs, as columns in the order of the items
data/texts-RUN.js      answers with their metrics, and what judges and people said of them

A chunk is `h2htalk_chunk("NAME", "...")` with JSON as gzip in base64: a page on a disk may load scripts and nothing
else. Ids and other names of the data are values in it, never keys. `pages/chunks.js` unpacks what is packed here.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.judge import judgements
from h2htalk.benchmark.judge.rubric import PLAN_QUALITIES, POINTS, QUALITIES
from h2htalk.benchmark.metrics.composite import ItemScore, SampleScore, all_columns
from h2htalk.benchmark.report.html_page import script_json
from h2htalk.benchmark.run import Run
from h2htalk.data.files import json_line
from h2htalk.data.languages import Language
from h2htalk.data.responses import FailedResponse, Response, split_thinking
from h2htalk.data.scenario import Scenario, notes_crisis
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.rounds.item_sources import input_text
from h2htalk.site.build import Context
from h2htalk.site.leaks import LeakCheck
from h2htalk.site.sources import RunSource
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.help_lines import describe, read_help_lines

PARTS = (*QUALITIES, *PLAN_QUALITIES, *(point for points in POINTS.values() for point in points))  # of a rubric
TAGS = ("emotion", "complexity", "interaction", "risk")
_SCORES = ("s", "lexical", "ss", "compliance", "rating", "j")
_GIST = 100  # characters of an item in the list
# The fields of a packed sample.
_SAMPLE = [
    "answer",
    "thinking",
    "finish",
    "failure",
    "values",
    "s",
    "rating",
    "j",
    "violations",
    "unscored",
    "unjudged",
    "people",
    "judges",
]


@dataclass(slots=True)
class ItemSet:
    """The items of a split that runs answered, by id, and those runs; items of equal ids are equal."""

    label: str
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    runs: list[RunSource] = field(default_factory=list)
    signed: set[str] = field(default_factory=set)  # fingerprints of their items
    prompts: list[str] = field(default_factory=list)  # what decides the prompts, a text for each version

    @property
    def key(self) -> str:
        return hashlib.sha256(repr([self.label, *self.scenarios]).encode()).hexdigest()[:8]


def item_sets(runs: Sequence[RunSource], leave_out: Collection[str] = ()) -> list[ItemSet]:
    """Sort runs by the splits that they answered; runs of a part of a split lie with those of the whole."""
    sets: list[ItemSet] = []
    for source in runs:
        split, signed = source.run.data.split, source.run.summary.signature.protocol.get("items", "")
        label, items = f"{split.name} {split.version}", [one for one in split.scenarios if one.id not in leave_out]
        own = next(
            (
                one
                for one in sets
                if one.label == label
                if signed in one.signed or all(one.scenarios.get(item.id, item) == item for item in items)
            ),
            None,
        )
        if own is None:
            sets.append(own := ItemSet(label))
        own.scenarios |= {item.id: item for item in items}
        own.runs.append(source)
        own.signed.add(signed)
        own.prompts += [version for version in [_prompt_version(source.run)] if version not in own.prompts]
    return sets


def write_items(
    context: Context, leaks: LeakCheck | None = None, leave_out: Collection[str] = ()
) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the browser's page and of its data, one run after the other.

    `leaks` is given every text; without it, an own check raises ConfigError at the end.
    """
    check, sets = leaks or LeakCheck(context.sources), item_sets(context.sources.runs, leave_out)
    words, columns = context.words["items"], [_item_columns(one.scenarios) for one in sets]
    data = {
        "words": words,
        "rules": [[code, words["rules"][code]] for code in RULES],
        "help": [[name, help_lines_of(name)] for name in sorted({name for of in columns for name in of["language"]})],
        "splits": [
            [
                *(one.key, one.label),
                [[source.key, source.label, one.prompts.index(_prompt_version(source.run))] for source in one.runs],
            ]
            for one in sets
        ],
    }
    check.check("items.html", [("", "", json.dumps(data, ensure_ascii=False))])
    view = {"heading": context.words["nav"]["items"], "data": Markup(script_json(data))}
    page = context.page("items.html", view, scripts=("chunks.js", "item.js", "items.js"))
    yield "items.html", page.encode("utf-8", "replace")
    tables = list[Any]()
    for one, own in zip(sets, columns, strict=True):
        prompts, scores = _packed_prompts(one), [_score_columns(source.run, one.scenarios) for source in one.runs]
        check.check(one.label, _item_texts(one, prompts))
        yield _chunk(f"items-{one.key}", _packed_items(one, own))
        yield _chunk(f"prompts-{one.key}", prompts)
        yield _chunk(f"scores-{one.key}", list(map(_packed_scores, one.runs, scores)))
        tables += map(_table, one.runs, scores, [{"split": [one.label] * len(one.scenarios), **own}] * len(scores))
        for source in one.runs:
            texts = pack_texts(source.run, one.scenarios)
            check.check(f"run {source.label}", _answer_texts(texts, one.scenarios))
            yield _chunk(f"texts-{source.key}", texts)
    yield "data.parquet", _parquet(tables)
    if leaks is None:
        check.require_none()


def _chunk(name: str, data: Any) -> tuple[str, bytes]:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half a character, which a model may write, becomes its escape.
    packed = base64.b64encode(gzip.compress(text.encode("utf-8", "backslashreplace"), mtime=0))
    return f"data/{name}.js", b'h2htalk_chunk("%s", "%s");\n' % (name.encode(), packed)


def _coded(values: Sequence[Any]) -> list[list[Any]]:
    """The different values, and for each value its place among them."""
    places = {value: at for at, value in enumerate(sorted(set(values), key=str))}
    return [list(places), [places[value] for value in values]]


def _whole(value: float | None) -> int | None:
    return None if value is None else round(10_000 * value)


def _reason(text: str | None) -> str | None:
    """A reason without the message of an exception, which may name paths and addresses."""
    return text and text.partition(":")[0]


# --- Items ------------------------------------------------------------------------------------------------------------


def help_lines_of(language: Language) -> list[tuple[str, str, str]]:
    """List the help lines for readers of a language: the row, the page that it is from, and when that was read."""
    book, rows = read_help_lines(), list[tuple[str, str, str]]()
    for row in book.overview(language):
        crisis = (one for one in book.services if one.topic == "crisis" and describe(one, language, short=True) in row)
        of = next((one for one in crisis if row.startswith(book.by_code[one.country].names[language])), None)
        rows.append((row, of.url if of else "", of.date.isoformat() if of else ""))
    return rows


def is_crisis(scenario: Scenario) -> bool:
    """Whether an item is about a crisis, so that it opens behind a note."""
    return scenario.tags.risk != "none" or notes_crisis(scenario.metadata)


def _item_columns(scenarios: Mapping[str, Scenario]) -> dict[str, list[Any]]:
    items = scenarios.values()
    own = {name: [getattr(one, name) for one in items] for name in ("id", "subtask", "language", "persona")}
    return own | {name: [getattr(one.tags, name) for one in items] for name in TAGS}


def _packed_items(one: ItemSet, columns: Mapping[str, list[Any]]) -> list[Any]:
    """Ids, whether an item is about a crisis, its first words otherwise, and every other column coded."""
    ids, _, *others = columns.values()
    crisis = [int(is_crisis(item)) for item in one.scenarios.values()]
    gists = ["" if hidden else _gist(item) for item, hidden in zip(one.scenarios.values(), crisis, strict=True)]
    titles = [SUBTASKS[name].title for name in columns["subtask"]]
    return [ids, crisis, gists, *map(_coded, (titles, *others))]


def _gist(scenario: Scenario) -> str:
    text = scenario.turns[-1].content if scenario.turns else input_text([*scenario.inputs.values()][-1])
    return " ".join(text[: 4 * _GIST].split())[:_GIST]


def _prompt_version(run: Run) -> str:
    """What decides a run's prompts, as one text."""
    signature, personas = run.summary.signature, run.data.split.personas
    own = [signature.protocol.get("prompts"), signature.subject.get("sap"), run.data.prompt_of is None]
    return json_line([*own, *(personas[name].to_dict() for name in sorted(personas))])


def prompt_texts(run: Run, scenario: Scenario) -> list[tuple[str, str]]:
    """Role and text of each message of a prompt; of imported answers, whose prompt is unknown, the item's inputs."""
    if run.data.prompt_of is None:
        return [(name, input_text(value)) for name, value in scenario.inputs.items()]
    return [(message.role, message.content) for message in run.data.prompt_of(scenario)]


def public_references(scenario: Scenario, runs: Sequence[RunSource]) -> tuple[str, ...]:
    """The references of an item; none where the split of a run has private ones."""
    return () if any(one.run.data.split.references_sha256 for one in runs) else scenario.references


def _packed_prompts(one: ItemSet) -> list[Any]:
    """Paragraphs, each version's prompts (null where no run of it asked an item), and references."""
    paragraphs: dict[str, int] = {}
    versions: list[dict[str, Any]] = [{} for _ in one.prompts]
    for run in (source.run for source in one.runs):
        made = versions[one.prompts.index(_prompt_version(run))]
        for item in run.data.split.scenarios:
            if item.id in one.scenarios and item.id not in made:
                texts = [(role, text.split("\n\n")) for role, text in prompt_texts(run, item)]
                made[item.id] = [
                    [role, [paragraphs.setdefault(p, len(paragraphs)) for p in own]] for role, own in texts
                ]
    references = [public_references(item, one.runs) for item in one.scenarios.values()]
    return [list(paragraphs), [[made.get(name) for name in one.scenarios] for made in versions], references]


def _item_texts(one: ItemSet, prompts: Sequence[Any]) -> Iterator[tuple[str, str, str]]:
    paragraphs, versions, references = prompts
    for at, (name, item) in enumerate(one.scenarios.items()):
        yield from ((name, "item", text) for text in (name, item.persona, item.tags.emotion, _gist(item)))
        yield from ((name, "reference", text) for text in references[at])
        parts = (part for version in versions for _, own in version[at] or () for part in own)
        yield from ((name, "prompt", paragraphs[part]) for part in parts)


# --- Runs -------------------------------------------------------------------------------------------------------------


def _score_columns(run: Run, names: Mapping[str, Scenario]) -> dict[str, list[Any]]:
    """Scores of all items; None in every column for one that the run was not asked."""
    scores = [run.item_scores.get(name) for name in names]

    def column(value: Callable[[ItemScore], Any]) -> list[Any]:
        return [None if item is None else value(item) for item in scores]

    own = {name: column(lambda item, name=name: getattr(item, name)) for name in _SCORES}  # type: ignore[misc]
    broken = column(lambda item: " ".join(sorted({rule for one in item.samples for rule in one.violations or ()})))
    flags = column(lambda item: _flags(run, item))
    return own | {"unscored": column(lambda item: _reason(item.unscored)), "violations": broken, "flags": flags}


def _flags(run: Run, item: ItemScore) -> int:
    """Bits: a failed call, an empty answer, one that was cut, ratings of people, an answer that was not judged."""
    answers = [run.answers.get((item.id, one.sample)) for one in item.samples]
    given = [one for one in answers if isinstance(one, Response)]
    empty, cut = any(not one.answer.strip() for one in given), any(one.finish_reason == "length" for one in given)
    people, unjudged = any(one.people for one in item.samples), any(one.unjudged for one in item.samples)
    return sum(flag << bit for bit, flag in enumerate((len(given) < len(answers), empty, cut, people, unjudged)))


def _packed_scores(source: RunSource, columns: Mapping[str, list[Any]]) -> list[Any]:
    numbers = [list(map(_whole, columns[name])) for name in _SCORES]
    return [source.key, *numbers, *(_coded(columns[name]) for name in ("unscored", "violations")), columns["flags"]]


def _table(source: RunSource, scores: Mapping[str, list[Any]], items: Mapping[str, list[Any]]) -> Any:
    """One row for each item that a run was asked."""
    import pyarrow as pa

    texts = {"run": [source.key], "model": [source.label]}
    columns = {name: values * len(items["id"]) for name, values in texts.items()} | dict(items) | dict(scores)
    flags = columns.pop("flags")
    table = pa.table(
        {name: pa.array(v, pa.float64() if name in _SCORES else pa.string()) for name, v in columns.items()}
    )
    return table.filter([flag is not None for flag in flags])


def _parquet(tables: Sequence[Any]) -> bytes:
    import pyarrow.parquet as pq

    target = io.BytesIO()
    with pq.ParquetWriter(target, tables[0].schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)
    return target.getvalue()


def pack_texts(run: Run, scenarios: Mapping[str, Scenario]) -> list[Any]:
    """Metrics, judges, parts of the rubric, and the samples of each item; null where the run was not asked it."""
    folder, metrics = run.data.folder, all_columns(item.metrics for item in run.item_scores.values())
    judging = judgements.read_judging(folder)
    judges = [judgements.read_judge(folder.path, name) for name in judging.judges] if judging else []
    panel = [judgements.Judgements(folder.path, one) for one in judges]
    judged = {one.id for one in judging.judged(scenarios.values())} if judging else set()
    people = {one.answer: one for one in judgements.list_people_ratings(folder)}

    def pack(score: SampleScore) -> list[Any]:
        answer, texts, by = run.answers.get((score.id, score.sample)), list[Any](), None
        verdicts: list[Any] = []
        if isinstance(answer, Response):
            thinking = answer.thinking or split_thinking(answer.text)[1]
            texts, by = [answer.answer, thinking, answer.finish_reason, None], people.get(judgements.answer_id(answer))
            for number, judge in enumerate(panel if judging and score.id in judged else ()):
                for one in judge.of(answer, scenarios[score.id].subtask, judging.judgements if judging else 0):
                    said = {**one.scores, **one.points}
                    parts = [[PARTS.index(name), int(said[name]), text] for name, text in one.evidence.items()]
                    verdicts.append([number, _reason(one.unscored), parts])
        else:
            texts = [None, None, None, answer.failure.reason if isinstance(answer, FailedResponse) else "missing"]
        values = [_whole(value) for value in (*map(score.values.get, metrics), score.s, score.rating, score.j)]
        broken = None if score.violations is None else " ".join(score.violations)
        decided = [by.annotators, by.round] if by and score.people else None
        ends = (broken, _reason(score.unscored), _reason(score.unjudged), decided, verdicts)
        return [*texts, values[:-3], *values[-3:], *ends]

    scores = map(run.item_scores.get, scenarios)
    samples = [None if item is None else list(map(pack, item.samples)) for item in scores]
    return [metrics, [one.label for one in judges], PARTS, samples]


def _answer_texts(texts: Sequence[Any], scenarios: Mapping[str, Scenario]) -> Iterator[tuple[str, str, str]]:
    _, judges, _, packed = texts
    yield from (("", "judge", label) for label in judges)
    for name, samples in zip(scenarios, packed, strict=True):
        for place, value in (
            (place, value) for one in samples or () for place, value in zip(_SAMPLE, one, strict=True)
        ):
            yield from ((name, place, text) for text in _strings(value))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
