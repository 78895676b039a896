"""The item browser: its page, the data that the page loads as scripts, a table; and one transcript alone.

data/items-SPLIT.js    ids, tags and first words of a split's items, as columns
data/prompts-SPLIT.js  prompts as they were sent, whose paragraphs are stored once, and references that are public
data/scores-SPLIT.js   scores of its runs, as columns in the order of the items
data/texts-RUN.js      answers with their metrics, and what judges and people said of them
data.parquet           a row for each run and item: tags, scores, broken rules, and the bits of `_flags`

A chunk is `h2htalk_chunk("NAME", "...")` with JSON as gzip in base64: a page on a disk may load scripts and nothing
else. Ids and other names of the data are values in it, never keys. `pages/chunks.js` unpacks what is packed here.
"""

from __future__ import annotations

import base64
import gzip
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.judge import judgements
from h2htalk.benchmark.judge.rubric import PLAN_QUALITIES, POINTS, QUALITIES
from h2htalk.benchmark.metrics.composite import ItemScore, SampleScore, all_columns
from h2htalk.benchmark.report.html_page import script_json
from h2htalk.benchmark.run import Run
from h2htalk.data.files import json_line
from h2htalk.data.responses import FailedResponse, Response, split_thinking
from h2htalk.data.scenario import Scenario, notes_crisis
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, quoted, suggest
from h2htalk.rounds.item_sources import input_text
from h2htalk.site.context import Context
from h2htalk.site.leaks import LeakCheck
from h2htalk.site.sources import RunSource, digits_of
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.help_lines import read_help_lines

PARTS = (*QUALITIES, *PLAN_QUALITIES, *(point for points in POINTS.values() for point in points))  # of a rubric
_TAGS = ("emotion", "complexity", "interaction", "risk")
_CODED = ("unscored", "violations")
_SCORES = ("s", "lexical", "ss", "compliance", "rating", "j")


@dataclass(slots=True)
class ItemSet:
    """The items of a split that runs answered, by id, and those runs; items of equal ids are equal."""

    label: str
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    runs: list[RunSource] = field(default_factory=list)
    signed: set[str] = field(default_factory=set)  # fingerprints of their items
    prompts: dict[str, int] = field(default_factory=dict)  # versions of the prompts, and their places

    @property
    def key(self) -> str:
        return digits_of([self.label, *self.scenarios])


def item_sets(runs: Sequence[RunSource], leave_out: Collection[str] = ()) -> list[ItemSet]:
    """Sort runs by the splits that they answered; runs of a part of a split lie with those of the whole."""
    sets: list[ItemSet] = []
    for source in runs:
        split, signed = source.run.data.split, source.run.summary.signature.protocol["items"]
        label, items = f"{split.name} {split.version}", [one for one in split.scenarios if one.id not in leave_out]
        named = (of for of in sets if of.label == label)
        fitting = (of for of in named if signed in of.signed or all(of.scenarios.get(s.id, s) == s for s in items))
        if (own := next(fitting, None)) is None:
            sets.append(own := ItemSet(label))
        own.scenarios |= {one.id: one for one in items}
        own.runs.append(source)
        own.signed.add(signed)
        own.prompts.setdefault(_prompt_version(source.run), len(own.prompts))
    return sets


def write_items(context: Context, check: LeakCheck, leave_out: Collection[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the browser's page and of its data, run after run; `check` is given every text."""
    tables = list[Any]()
    if not (sets := item_sets(context.sources.runs, leave_out)):
        return
    yield "items.html", _page(context, sets, check, context.words["nav"]["items"]).encode("utf-8", "replace")
    for name, data in (chunk for one in sets for chunk in _chunks(one, check, tables)):
        packed = base64.b64encode(gzip.compress(json_line(data).strip().encode(), mtime=0))
        yield f"data/{name}.js", b'h2htalk_chunk("%s", "%s");\n' % (name.encode(), packed)
    yield "data.parquet", _parquet(tables)


def share_item(context: Context, item: str) -> str:
    """Render one item and the answers of up to three runs as a page that needs no other file.

    Raises ConfigError where no run was asked this item, or the page would show what must not be published.
    """
    check = LeakCheck(context.sources)
    asked = [one for one in context.sources.runs if item in one.run.item_scores]
    if not asked:
        meant = suggest(item, [name for one in context.sources.runs for name in one.run.item_scores])
        raise ConfigError(f"no run of this site was asked {quoted(item)}; {meant}name one that was")
    alone = item_sets(asked[:3])[0]
    alone.scenarios = {item: alone.scenarios[item]}
    chunks = [[name, json_line(data).strip()] for name, data in _chunks(alone, check, [])]
    page = _page(context, [alone], check, alone.label, alone=item, chunks=chunks)
    check.require_none()
    return page


def _page(context: Context, sets: Sequence[ItemSet], check: LeakCheck, heading: str, **more: Any) -> str:
    """The page, with words, and which splits and runs there are; `more`: the chunks of one item."""
    words, shown = context.words["items"], sorted({item.language for one in sets for item in one.scenarios.values()})
    splits = [
        [one.key, one.label, [[own.key, own.label, one.prompts[_prompt_version(own.run)]] for own in one.runs]]
        for one in sets
    ]
    check.check("items.html", "label", [""], [splits])
    rows = {name: read_help_lines().overview(name) for name in shown}
    help_lines = [[name, [[row, one and one.url, one and str(one.date)] for row, one in rows[name]]] for name in shown]
    rules = [[code, words["rules"][code]] for code in RULES]
    data = script_json({"words": words, "rules": rules, "help": help_lines, "splits": splits, **more})
    view = {"heading": heading, "data": Markup(data), "alone": bool(more)}
    return context.page("items.html", view, scripts=("chunks.js", "item.js", "items.js"))


def _chunks(one: ItemSet, check: LeakCheck, tables: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and data of the chunks of a split, and add a table of each run's scores."""
    items, ids = list(one.scenarios.values()), list(one.scenarios)
    columns = {name: [getattr(item, name) for item in items] for name in ("subtask", "language", "persona")}
    columns |= {name: [getattr(item.tags, name) for item in items] for name in _TAGS}
    # What is about a crisis opens behind a note, and does not begin in the list.
    crisis = [int(item.tags.risk != "none" or notes_crisis(item.metadata)) for item in items]
    gists = ["" if hidden else _gist(item) for item, hidden in zip(items, crisis, strict=True)]
    titles = [SUBTASKS[name].title for name in columns["subtask"]]
    check.check(one.label, "item", ids, list(zip(ids, gists, *columns.values(), strict=True)))
    yield f"items-{one.key}", [ids, crisis, gists, *map(_coded, (columns | {"subtask": titles}).values())]
    yield f"prompts-{one.key}", _packed_prompts(one, check)
    scores = [_score_columns(source.run, ids) for source in one.runs]
    packed = [[[*map(_whole, own[n])] for n in _SCORES] + [_coded(own[n]) for n in _CODED] for own in scores]
    yield f"scores-{one.key}", [[r.key, *p, own["flags"]] for r, p, own in zip(one.runs, packed, scores, strict=True)]
    for source, own in zip(one.runs, scores, strict=True):
        texts = pack_texts(source.run, one.scenarios)
        check.check(f"run {source.label}", "judges", [""], [texts[1]])
        check.check(f"run {source.label}", "answer or judgement", ids, texts[-1])
        yield f"texts-{source.key}", texts
        about = {"run": source.key, "model": source.label, "split": one.label}
        tables.append({name: [text] * len(ids) for name, text in about.items()} | {"id": ids} | columns | own)


def _coded(values: Sequence[Any]) -> list[list[Any]]:
    """The different values, and for each value its place among them."""
    places = {value: at for at, value in enumerate(sorted(set(values), key=str))}
    return [list(places), [places[value] for value in values]]


def _whole(value: float | None) -> int | None:
    return None if value is None else round(10_000 * value)


def _reason(text: str | None) -> str | None:
    """A reason without the message of an exception, which may name paths and addresses."""
    return text and text.partition(":")[0]


def _gist(scenario: Scenario) -> str:
    text = scenario.turns[-1].content if scenario.turns else input_text([*scenario.inputs.values()][-1])
    line = " ".join(text[:400].split())
    return line if len(line) <= 100 else f"{line[:100].rstrip()}…"


def _prompt_version(run: Run) -> str:
    """What decides a run's prompts, as one text."""
    signature, personas = run.summary.signature, run.data.split.personas
    own = [signature.protocol.get("prompts"), signature.subject.get("sap"), run.data.prompt_of is None]
    return json_line([*own, *(personas[name].to_dict() for name in sorted(personas))])


def _packed_prompts(one: ItemSet, check: LeakCheck) -> list[Any]:
    """Paragraphs, each version's prompts (null where no run of it asked an item), and references that are public.

    The prompts of imported answers are unknown: the item's inputs stand for them.
    """
    paragraphs: dict[str, tuple[int, str]] = {}  # each with its place, and the first item that has it
    versions: list[dict[str, Any]] = [{} for _ in one.prompts]
    for run in (source.run for source in one.runs):
        made = versions[one.prompts[_prompt_version(run)]]
        for item in (item for item in run.data.split.scenarios if item.id in one.scenarios and item.id not in made):
            sent = [(name, input_text(value)) for name, value in item.inputs.items()]
            if run.data.prompt_of is not None:
                sent = [(message.role, message.content) for message in run.data.prompt_of(item)]
            made[item.id] = [
                [role, [paragraphs.setdefault(part, (len(paragraphs), item.id))[0] for part in text.split("\n\n")]]
                for role, text in sent
            ]
    private = any(source.run.data.split.references_sha256 for source in one.runs)
    references = [() if private else item.references for item in one.scenarios.values()]
    check.check(one.label, "reference", list(one.scenarios), references)
    check.check(one.label, "prompt", [name for _, name in paragraphs.values()], list(paragraphs))
    return [list(paragraphs), [[made.get(name) for name in one.scenarios] for made in versions], references]


def _score_columns(run: Run, ids: Sequence[str]) -> dict[str, list[Any]]:
    """Scores of all items; None in every column for one that the run was not asked."""
    rows = [_scores_of(run, run.item_scores[name]) if name in run.item_scores else {} for name in ids]
    return {name: [row.get(name) for row in rows] for name in (*_SCORES, *_CODED, "flags")}


def _scores_of(run: Run, item: ItemScore) -> dict[str, Any]:
    """Scores of an item with `flags`, bits: a failed call, an empty answer, one that was cut, ratings of people, an
    answer that was not judged."""
    answers = [run.answers.get((item.id, one.sample)) for one in item.samples]
    given = [one for one in answers if isinstance(one, Response)]
    empty, cut = any(not one.answer.strip() for one in given), any(one.finish_reason == "length" for one in given)
    people, unjudged = any(one.people for one in item.samples), any(one.unjudged for one in item.samples)
    flags = sum(flag << bit for bit, flag in enumerate((len(given) < len(answers), empty, cut, people, unjudged)))
    broken = " ".join(sorted({rule for one in item.samples for rule in one.violations or ()}))
    found = {"unscored": _reason(item.unscored), "violations": broken, "flags": flags}
    return {name: getattr(item, name) for name in _SCORES} | found


def _parquet(tables: Sequence[dict[str, list[Any]]]) -> bytes:
    """One row for each run and item that it was asked, a group for each run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target, kinds = io.BytesIO(), dict.fromkeys(_SCORES, pa.float64()) | {"flags": pa.int8()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in tables[0]])
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for table in (pa.table(one, schema) for one in tables):
            writer.write_table(table.filter(table["flags"].is_valid()))
    return target.getvalue()


def pack_texts(run: Run, scenarios: Mapping[str, Scenario]) -> list[Any]:
    """Metrics, judges, parts of the rubric, and the samples of each item; null where the run was not asked it."""
    folder, metrics = run.data.folder, all_columns(item.metrics for item in run.item_scores.values())
    judging = judgements.read_judging(folder)
    judges = [judgements.read_judge(folder.path, name) for name in judging.judges] if judging else []
    panel = [judgements.Judgements(folder.path, one) for one in judges]
    judged = {one.id: judging.judgements for one in judging.judged(scenarios.values())} if judging else {}
    people = {one.answer: one for one in judgements.list_people_ratings(folder)}

    def pack(score: SampleScore) -> list[Any]:
        answer, by, verdicts = run.answers.get((score.id, score.sample)), None, list[Any]()
        if isinstance(answer, Response):
            thinking = answer.thinking or split_thinking(answer.text)[1]
            texts = [answer.answer, thinking, answer.finish_reason, None]
            by = people.get(judgements.answer_id(answer)) if score.people else None
            for number, judge in enumerate(panel if score.id in judged else ()):
                for one in judge.of(answer, scenarios[score.id].subtask, judged[score.id]):
                    said = {**one.scores, **one.points}
                    parts = [[PARTS.index(name), int(said[name]), text] for name, text in one.evidence.items()]
                    verdicts.append([number, _reason(one.unscored), parts])
        else:
            texts = [None, None, None, answer.failure.reason if isinstance(answer, FailedResponse) else "missing"]
        values = [[_whole(score.values.get(name)) for name in metrics], *map(_whole, (score.s, score.rating, score.j))]
        broken = None if score.violations is None else " ".join(score.violations)
        why = _reason(score.unscored), _reason(score.unjudged)
        return [*texts, *values, broken, *why, by and [by.annotators, by.round], verdicts]

    samples = [item and [*map(pack, item.samples)] for item in map(run.item_scores.get, scenarios)]
    return [metrics, [one.label for one in judges], PARTS, samples]
