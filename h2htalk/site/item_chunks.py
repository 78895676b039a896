"""The items, prompts and scores of a split as the item browser loads them: columns, with texts stored once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from h2htalk.benchmark.metrics.composite import ItemScore
from h2htalk.benchmark.run import TEMPLATE, Run
from h2htalk.data.files import json_line
from h2htalk.data.replies.finish_reasons import is_cut
from h2htalk.data.responses import Response
from h2htalk.data.scenario import TAGS, Scenario, notes_crisis
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.rounds.item_sources import input_text
from h2htalk.site.answer_chunks import pack_answers, reason_kind, ten_thousandths
from h2htalk.site.leaks import LeakCheck
from h2htalk.site.sources import RunSource, digits_of

SCORES = ("s", "lexical", "ss", "compliance", "rating", "j")
# The bits of a row's `flags`, lowest first.
FLAGS = ("a call failed", "an answer is empty", "one was cut", "people rated", "not all are judged")
_FIELDS = ("subtask", "language", "persona")
_CODED = ("unscored", "violations")


@dataclass(slots=True)
class ItemSet:
    """The items of a split that runs answered, by id, and those runs; items of equal ids are equal.

    `signed`: fingerprints of their items. `prompts`: versions of the prompts, and their places.
    """

    label: str
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    runs: list[RunSource] = field(default_factory=list)
    signed: set[str] = field(default_factory=set)
    prompts: dict[str, int] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return digits_of([self.label, *self.scenarios])

    def fits(self, signed: str, scenarios: dict[str, Scenario]) -> bool:
        """Whether items with this fingerprint are equal to those that are here."""
        if signed in self.signed:
            return True
        return all(self.scenarios.get(name, item) == item for name, item in scenarios.items())


def item_sets(runs: Sequence[RunSource], leave_out: Collection[str] = ()) -> list[ItemSet]:
    """Sort runs by the splits that they answered; runs of a part of a split lie with those of the whole."""
    sets: list[ItemSet] = []
    for source in runs:
        split = source.run.data.split
        label = f"{split.name} {split.version}"
        signed = source.run.summary.signature.protocol["items"]
        scenarios = {item.id: item for item in split.scenarios if item.id not in leave_out}
        for item_set in sets:
            if item_set.label == label and item_set.fits(signed, scenarios):
                break
        else:
            item_set = ItemSet(label)
            sets.append(item_set)
        item_set.scenarios |= scenarios
        item_set.runs.append(source)
        item_set.signed.add(signed)
        item_set.prompts.setdefault(prompt_version(source.run), len(item_set.prompts))
    return sets


def prompt_version(run: Run) -> str:
    """Return what decides a run's prompts, as one text."""
    signature = run.summary.signature
    personas = run.data.split.personas
    described = [personas[name].to_dict() for name in sorted(personas)]
    return json_line(
        [
            signature.protocol.get("prompts"),
            signature.subject.get("sap"),
            run.data.prompt_of is None,
            *described,
        ]
    )


def pack_item_set(
    item_set: ItemSet, check: LeakCheck, tables: list[dict[str, list[Any]]]
) -> Iterator[tuple[str, Any]]:
    """Yield name and data of the chunks of a split, and add a table of each run's scores to `tables`."""
    ids = list(item_set.scenarios)
    items = list(item_set.scenarios.values())
    columns: dict[str, list[Any]] = {}
    for name in _FIELDS:
        columns[name] = [getattr(item, name) for item in items]
    for name in TAGS:
        columns[name] = [getattr(item.tags, name) for item in items]
    # What is about a crisis opens behind a note, and does not begin in the list.
    crisis = [int(item.tags.risk != "none" or notes_crisis(item.metadata)) for item in items]
    gists = ["" if hidden else _gist(item) for item, hidden in zip(items, crisis, strict=True)]
    check.check(item_set.label, "item", ids, list(zip(ids, gists, *columns.values(), strict=True)))
    titles = [SUBTASKS[name].title for name in columns["subtask"]]
    coded = map(_coded, {**columns, "subtask": titles}.values())
    yield f"items-{item_set.key}", [ids, crisis, gists, *coded]
    yield f"prompts-{item_set.key}", _pack_prompts(item_set, check)
    scores = [_score_columns(source.run, ids) for source in item_set.runs]
    packed = []
    for source, run_columns in zip(item_set.runs, scores, strict=True):
        values = [list(map(ten_thousandths, run_columns[name])) for name in SCORES]
        codes = [_coded(run_columns[name]) for name in _CODED]
        packed.append([source.key, *values, *codes, run_columns["flags"]])
    yield f"scores-{item_set.key}", packed
    for source, run_columns in zip(item_set.runs, scores, strict=True):
        texts = pack_answers(source.run, item_set.scenarios)
        where = f"run {source.label}"
        check.check(where, "judges", [""], [texts[1]])
        check.check(where, "answer or judgement", ids, texts[-1])
        yield f"texts-{source.key}", texts
        about = {"run": source.key, "model": source.label, "split": item_set.label}
        repeated = {name: list(repeat(text, len(ids))) for name, text in about.items()}
        tables.append({**repeated, "id": ids, **columns, **run_columns})


def _coded(values: Sequence[Any]) -> list[list[Any]]:
    """Return the different values, and for each value its place among them."""
    different = sorted(set(values), key=str)
    positions = {value: position for position, value in enumerate(different)}
    return [different, [positions[value] for value in values]]


def _gist(scenario: Scenario) -> str:
    """Return the first words of the last turn or input."""
    if scenario.turns:
        text = scenario.turns[-1].content
    else:
        text = input_text(list(scenario.inputs.values())[-1])
    line = " ".join(text[:400].split())
    return line if len(line) <= 100 else f"{line[:100].rstrip()}…"


def _pack_prompts(item_set: ItemSet, check: LeakCheck) -> list[Any]:
    """Return paragraphs, each version's prompts (null where no run of it asked an item), and public references."""
    places: dict[str, int] = {}
    first_items: dict[str, str] = {}
    versions: list[dict[str, Any]] = [{} for _ in item_set.prompts]
    private = False
    for source in item_set.runs:
        split = source.run.data.split
        private = private or bool(split.references_sha256)
        prompts = versions[item_set.prompts[prompt_version(source.run)]]
        for item in split.scenarios:
            if item.id not in item_set.scenarios or item.id in prompts:
                continue
            prompts[item.id] = []
            for role, text in _messages(source.run, item):
                paragraphs = text.split("\n\n")
                for paragraph in paragraphs:
                    places.setdefault(paragraph, len(places))
                    first_items.setdefault(paragraph, item.id)
                prompts[item.id].append([role, [places[paragraph] for paragraph in paragraphs]])
    references = [() if private else item.references for item in item_set.scenarios.values()]
    check.check(item_set.label, "reference", list(item_set.scenarios), references)
    check.check(item_set.label, "prompt", list(first_items.values()), list(places))
    prompts_of_versions = [list(map(prompts.get, item_set.scenarios)) for prompts in versions]
    return [list(places), prompts_of_versions, references]


def _messages(run: Run, item: Scenario) -> list[tuple[str, str]]:
    """Return role and text of what was sent.

    The prompts of imported answers are unknown: the item's inputs stand for them, and after a note for those of
    templates that are not rendered. A site is published, and templates may hold notes of their author.
    """
    if run.data.prompt_of is not None:
        return [(message.role, message.content) for message in run.data.prompt_of(item)]
    inputs = [(name, input_text(value)) for name, value in item.inputs.items()]
    return inputs if run.data.unrendered is None else [(TEMPLATE, ""), *inputs]


def _score_columns(run: Run, ids: Sequence[str]) -> dict[str, list[Any]]:
    """Return the scores of all items; None in every column for one that the run was not asked."""
    rows = []
    for name in ids:
        item = run.item_scores.get(name)
        rows.append({} if item is None else _item_row(run, item))
    columns = {}
    for column in (*SCORES, *_CODED, "flags"):
        columns[column] = [row.get(column) for row in rows]
    return columns


def _item_row(run: Run, item: ItemScore) -> dict[str, Any]:
    """Return the scores of an item, the rules that its answers broke, and the bits of `FLAGS`."""
    broken: set[str] = set()
    failed = empty = cut = people = unjudged = False
    for sample in item.samples:
        answer = run.answers.get((item.id, sample.sample))
        if isinstance(answer, Response):
            empty = empty or not answer.answer.strip()
            cut = cut or is_cut(answer.finish_reason)
        else:
            failed = True
        people = people or bool(sample.people)
        unjudged = unjudged or bool(sample.unjudged)
        broken.update(sample.violations or ())
    flags = (failed, empty, cut, people, unjudged)
    return {
        **{name: getattr(item, name) for name in SCORES},
        "unscored": reason_kind(item.unscored),
        "violations": " ".join(sorted(broken)),
        "flags": sum(flag << bit for bit, flag in enumerate(flags)),
    }
