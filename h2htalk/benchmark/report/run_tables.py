"""`h2htalk costs`: the costs of a run as text, CSV or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from statistics import stdev
from typing import NamedTuple

from h2htalk.benchmark.metrics.composite import THRESHOLD, ItemScore, columns
from h2htalk.benchmark.report.table2 import (
    FIGURES,
    NOT_SCORED,
    UNJUDGED,
    cell_at,
    cells_of,
    half_width_text,
    has_levels,
    items_text,
    main_row,
    percent_text,
    table_row,
    table_rows,
    table_text,
    value_text,
    with_half_width,
)
from h2htalk.benchmark.statistics import Cell
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.prices import Totals, dollars_text, money_text, sum_totals
from h2htalk.chat.store.call_store import PaidCall, read_costs, read_stores
from h2htalk.data.erasure.erased_ids import require_erased
from h2htalk.data.files import refuse_links, write_text
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, RISKS
from h2htalk.data.signature import HUMAN
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import counted, listed
from h2htalk.text.contracts.contract import RULES
from h2htalk.text.escaping import printable
from h2htalk.text.tables import Table

UNKNOWN = "unknown"
_CALL_FIELDS = (
    *("stage", "call", "items", "billing", "reason", "input_tokens", "cache_read_tokens", "output_tokens"),
    *("usd", "usd_at_most", "batch", "request_id"),
)


def costs_text(run: Path, calls: bool = False, format: str = "terminal") -> str:
    """Format what a run, study or workspace paid, by stage and in total; it may still be in progress.

    `calls`: list every call as well (in CSV: instead). `format`: `terminal`, `csv` or `json`.
    """
    if not any((run / name).exists() for name in ("study.json", "workspace.json")):
        RunFolder(run).read_run()
    else:
        require_erased(run)
        refuse_links(run)
    costs = read_costs(run)
    listed = call_table(call for store in read_stores(run) for call in store.calls) if calls else None
    if format == "json":
        # ASCII, because ids may contain anything and this may be printed on a terminal.
        stages = {name: totals.to_dict() for name, totals in costs.items()}
        table = {"stages": stages, "in_all": sum_totals(costs.values()).to_dict()}
        return json.dumps(table | ({"calls": json.loads(listed.to("json"))["rows"]} if listed else {}), indent=2)
    if format == "csv":
        return (listed or cost_table(costs)).to_csv().rstrip("\n")
    if not costs:
        return "No call has a recorded price."
    lines = (f"{stage}: {totals_text(totals)}" for stage, totals in _rows(costs).items())
    return "\n".join([*([listed.to_terminal(), ""] if listed else []), *lines])


def cost_lines(costs: Mapping[str, Totals]) -> list[str]:
    """Describe what a run cost in one sentence; no line where no call cost anything."""
    return [f"Cost: {totals_text(sum_totals(costs.values()))}"] if costs else []


def totals_text(totals: Totals) -> str:
    """Describe money, calls and tokens."""
    cached = f", {totals.cache_read_tokens:,} from cache" if totals.cache_read_tokens else ""
    price = "price unknown" if totals.usd_paid is None else f"{dollars_text(totals.usd_paid)} US dollars"
    parts = [
        f"{price} for {_calls(totals.paid - totals.unmetered)} ({totals.input_tokens:,} tokens in{cached}; "
        f"{totals.output_tokens:,} out)"
    ]
    doubtful = (
        (totals.possibly_paid, "whose reply never arrived"),
        (totals.unmetered, "whose reply named no usage"),
    )
    named = " and ".join(f"{_calls(n)} {why}" for n, why in doubtful if n)
    if named:
        parts.append(f"{_at_most(totals.usd_possible)} for {named}")
    if totals.open:
        parts.append(f"{_at_most(totals.usd_open)} for {_calls(totals.open)} still open")
    if totals.prices:
        parts.append(f"prices of {totals.prices}")
    return "; ".join(parts)


def _calls(number: int) -> str:
    return f"{number:,} call{'' if number == 1 else 's'}"


def _at_most(dollars: Decimal | None) -> str:
    return "an unknown amount more" if dollars is None else f"at most {dollars_text(dollars, True)} more"


def limit_lines(summary: Summary) -> list[str]:
    """Describe how far `--max-cost` let the run go, and how to continue; no line where it did not stop the run."""
    left = summary.counts.failures.get("max_cost", 0)
    if not left:
        return []
    totals = sum_totals(summary.costs.values())
    spent = f"{dollars_text(totals.usd_committed, True)} US dollars are spent or may be"
    rest = ""
    metered = totals.paid - totals.unmetered  # the others are no part of what was paid
    if totals.usd_paid and metered:
        # The average cost of a paid call: a call may hold several samples, so this is an upper estimate.
        rest = f", the rest will cost about {dollars_text(totals.usd_paid / metered * left)} at this rate"
    return [
        f"--max-cost stopped the run: {left:,} answer{'' if left == 1 else 's'} not asked for; {spent}{rest}. "
        "Raise --max-cost in the same command to go on."
    ]


def _rows(costs: Mapping[str, Totals]) -> dict[str, Totals]:
    """The stages, and the total where there are several."""
    return dict(costs) | ({"in all": sum_totals(costs.values())} if len(costs) > 1 else {})


def cost_table(costs: Mapping[str, Totals]) -> Table:
    """One row for each stage, and a total where there are several, exact; the note says what the run cost."""
    rows = [
        (name, *(UNKNOWN if v is None else v for v in one.to_dict().values())) for name, one in _rows(costs).items()
    ]
    return Table("Costs", ("stage", *Totals().to_dict()), rows, cost_lines(costs))


def call_table(calls: Iterable[PaidCall]) -> Table:
    """One row for each call. `usd` is what it cost, or where that is unknown `usd_at_most` the most."""
    rows = []
    for call in calls:
        known, (_, dollars) = call.cost[0] == "usd_paid", call.cost
        amount = UNKNOWN if dollars is None else money_text(dollars)
        items = " ".join(f"{item_id}#{sample}" for item_id, sample in call.items)
        tokens = (getattr(call.usage, key, None) for key in _CALL_FIELDS[5:8])
        costs = (amount, None) if known or dollars is None else (None, amount)
        ended = (call.billing, call.reason or None)
        rows.append((call.stage, call.number, items, *ended, *tokens, *costs, call.batch, call.request_id))
    return Table("", _CALL_FIELDS, rows)


JUDGED = (
    "Itinerary Basic, Middle and Advanced (levels I-III) are 20 J (Eq. 3); the unjudged 100 S stands apart. "
    "Baselines are unjudged."
)


class Note(NamedTuple):
    """A note that a reader needs to interpret a table. `loud` notes come first, in a warning colour."""

    text: str
    loud: bool = False


def notes(summary: Summary) -> list[Note]:
    """Return the notes on this summary's figures, most important first. Warnings are not included."""
    counts, found = summary.counts, list[Note]()
    if summary.signature.human:
        found.append(Note("Replies written by people, not by a model."))
    if summary.incomplete:
        found.append(Note(_incomplete(summary), loud=True))
    if counts.private:
        whoever = "Whoever has them scores the stored answers with `h2htalk score RUN --references FILE`."
        found.append(Note(f"{NOT_SCORED.capitalize()} ({counted(counts.private, 'item')}). {whoever}", loud=True))
    if counts.erased:
        found.append(Note(f"{counted(counts.erased, 'item')} erased since: the figures leave them out.", loud=True))
    if summary.measure == "lexical":
        found.append(Note("S was not asked for: the figures are means of BLEU-1 to 4, ROUGE-1 and ROUGE-L."))
    elif not summary.s_comparable:
        embedder = summary.signature.protocol.get("embedder", "another embedder")
        why = f"S is not comparable with the paper's: its SS comes from {embedder}, not from BGE-M3."
        found.append(Note(why, loud=True))
    if has_levels(summary.rows.lexical):
        found.append(Note(JUDGED if summary.judged else UNJUDGED))
    if missing := [SUBTASKS[name].title for name in SUBTASKS if name not in main_row(summary).cells]:
        names = listed(missing, len(SUBTASKS))
        are = "is" if len(missing) == 1 else "are"
        found.append(Note(f"No overall: it needs all subtasks, and {names} {are} missing."))
    return found


def _incomplete(summary: Summary) -> str:
    """Describe how many items are unscored, and what to do, which depends on where the answers come from."""
    counts, judging = summary.counts, summary.judging
    if not counts.unscored and judging is not None:
        option = "" if judging.failed else " --repeat-unscored"
        failed = counted(judging.failed or sum(judging.unscored.values()), "answer is", "answers are")
        return f"INCOMPLETE: {failed} not judged; run `h2htalk judge run{option}` with the same judges again."
    engine, missing = summary.signature.subject.get("engine"), min(counts.failures.get("missing", 0), counts.unscored)
    advice = "Start the same command again: it sends only those."
    if engine == "baseline":
        advice = "The baseline has no answer to those: use a split with more items for each subtask and language."
    elif engine in ("imported", HUMAN):
        ids = f"id{'s' if missing > 1 else ''}: import a complete one into a new folder."
        advice = f"The imported file has no answer to {missing:,} {ids}" if missing else "Score the run again."
    left_out = f"{counts.unscored:,} of {counts.items:,} items are unscored; the figures leave them out."
    return f"INCOMPLETE: {left_out} {advice}"


def measure_name(summary: Summary) -> str:
    """Return the title of the main column."""
    if summary.rows.judged is not None:
        return "S and J"
    return "S" if summary.measure == "s" else "Lexical mean"


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Sort names by descending count; equal counts by name."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def spread_lines(summary: Summary) -> list[str]:
    """Return a line on how much the headline figure differs between the answers to the same items, if any has two."""
    if not (figures := summary.by_sample):
        return []
    name = "Mean of items" if main_row(summary).overall.value is None else "Overall"
    shown = ", ".join(f"{figure:.2f}" for figure in figures)
    return [f"{name} by sample: {shown} (standard deviation {stdev(figures):.2f})"]


# --- Tables ------------------------------------------------------------------------------------------------------

_MEANS = {"overall": "Overall", "items_mean": "Mean of items", "plain_mean": "Mean of cells"}


def subtask_table(summary: Summary, wide: bool = True) -> tuple[Table, list[str]]:
    """Return the figures by subtask with those of the baselines, and the key of each row, empty of headings.

    Narrow tables have half of each interval, others its ends. A baseline ends with `!` where the model is not above it.
    """
    measures = ["S", "Lexical" if wide else "Lex."] if summary.measure == "s" else ["Lexical mean"]
    if summary.rows.judged:
        measures.insert(0, "S and J")
    baselines = [name if wide else name.replace("-", "-\n") for name in map(printable, summary.baselines)]
    header = ["Subtask", "Items", *measures, "Contract" if wide else "Con-\ntract", *baselines]
    # Subtasks without S are included by their lexical mean.
    at_hand = [SUBTASKS[name] for name in SUBTASKS if name in summary.rows.lexical.cells]
    groups: dict[str, dict[str, str]] = {d: {s.name: s.column for s in at_hand if s.dimension == d} for d in DIMENSIONS}
    groups["averages"] = {f"{d}_avg": d.title() for d in DIMENSIONS if groups[d]} | _MEANS
    rows, keys = list[Sequence[str]](), list[str]()
    for title, labels in groups.items():
        if labels:
            rows.append([title.title(), *[""] * (len(header) - 1)])
            rows += (_line(summary, *one, wide) for one in labels.items())
            keys += ["", *labels]
    return Table("", header, rows), keys


def _line(summary: Summary, key: str, label: str, wide: bool) -> list[str]:
    rows, cell = summary.rows, cell_at(main_row(summary), key)
    # As wide for each, so that values align.
    ends = "" if cell is None or cell.low is None else f"[{cell.low:5.2f}, {cell.high:5.2f}]"
    value = f"{value_text(cell)} {ends:<15}" if wide else f"{value_text(cell)}{half_width_text(cell):>5}"
    unjudged = [value_text(cell_at(rows.s, key))] * (rows.judged is not None)
    lexical = [value_text(cell_at(rows.lexical, key))] * (summary.measure == "s")
    baselines = [
        value_text(cell_at(main_row(summary, own), key)) + "! "[key not in summary.reached[name]]
        for name, own in summary.baselines.items()
    ]
    kept = percent_text(cell_at(rows.compliance, key))
    return [f" {label}", items_text(cell), value, *unjudged, *lexical, kept, *baselines]


def null_class_table(summary: Summary) -> Table:
    """Return how often the model and its baselines say that there is nothing to remember, and are right."""
    rows = []
    for name, of in {summary.model: summary.rows, **summary.baselines}.items():
        if (null := of.null_class) is not None:
            ratios = map(with_half_width, (null.precision, null.recall, null.f1))
            counts = (f"{n:,.1f}".removesuffix(".0") for n in (null.references, null.answers, null.hits))
            rows.append((name, items_text(null.f1), *ratios, *counts))
    header = ("nothing to remember", "items", "precision", "recall", "F1", "null references", "null answers", "both")
    return Table("", header, rows)


def answer_tables(summary: Summary) -> list[Table]:
    """Return what kinds of replies came, and the contract rules that they break."""
    counts, samples = summary.counts, max(1, summary.counts.samples)
    kinds = [(name, getattr(counts, name)) for name in ("empty", "truncated", "refused")]
    kinds += [(f"unscored ({r}): {counts.failure_messages.get(r, '')}", n) for r, n in most_first(counts.failures)]
    broken = [(rule, n, f"{100 * n / samples:.1f} %", RULES.get(rule)) for rule, n in most_first(summary.violations)]
    header = ("broken contract rules", "n", "share", "")
    return [Table("", (f"of {counts.samples:,} replies", "n"), kinds), *([Table("", header, broken)] * bool(broken))]


_TAG_ORDERS: dict[str, Sequence[str]] = {
    "complexity": COMPLEXITIES,
    "interaction": INTERACTIONS,
    "risk": RISKS,
    "language": LANGUAGES,
}


def ordered_slices(summary: Summary) -> dict[str, dict[str, Cell]]:
    """Return the slices in the order of their tag's values; emotions by descending number of items."""
    ordered = {}
    for tag, cells in summary.slices.items():
        order = {value: place for place, value in enumerate(_TAG_ORDERS.get(tag, ()))}
        places = sorted(cells, key=lambda value: (order.get(value, len(order)), -cells[value].total, value))
        ordered[tag] = {value: cells[value] for value in places}
    return ordered


def slice_tables(summary: Summary) -> list[Table]:
    """Return the figures of each value of each tag that has several."""
    return [
        Table(
            "", (tag, "items", measure_name(summary)), [(v, items_text(c), with_half_width(c)) for v, c in own.items()]
        )
        for tag, own in ordered_slices(summary).items()
        if len(own) > 1
    ]


def judge_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield a name and a text for each fact about judges; none for a run that was never judged."""
    if (judging := summary.judging) is None:
        return
    each = counted(judging.judgements, "judgement")
    yield "judges", f"{', '.join(judging.judges)}; {each} of an answer by each; scope {judging.scope}"
    people = f", {judging.people:,} of them by people" if judging.people else ""
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in most_first(judging.unscored))
    unscored = f"; unscored: {reasons}" if reasons else ""
    yield "rated", f"{judging.scored:,} of {counted(judging.total, 'answer')}{people}{unscored}"
    cells = judging.ratings.cells.items()
    yield "20 R", ", ".join(f"{SUBTASKS[name].title} {with_half_width(cell)}{_part(cell)}" for name, cell in cells)
    if judging.items:
        sent, by_judge = judging.queue["J"], judging.queue["judge"]
        by_j = f"by the judge's R, Eq. 4 (J < {THRESHOLD}) sends {sent:,} of {counted(judging.items, 'item')}"
        yield "to people", f"{by_j}, --human-trigger judge (R < {THRESHOLD}) {by_judge:,}"
    if judging.correction:
        names = {name: SUBTASKS[name].title if name in SUBTASKS else "levels I to III" for name in judging.corrected}
        means = ", ".join(f"{names[name]} {with_half_width(cell)}" for name, cell in judging.corrected.items())
        yield "20 J corrected by people's labels", f"{means}; {judging.correction}" if means else judging.correction
    if judging.disagreement is not None:
        yield "disagreement of judges", f"{judging.disagreement:.2f} of 5 on average, highest minus lowest"
    for point, cell in judging.points.items():
        share = "none" if cell.value is None else f"{cell.value:.1f} % {half_width_text(cell)}".rstrip()
        yield point, f"{share} of {counted(cell.n, 'item')}{_part(cell)}, by the judge"


def _part(cell: Cell) -> str:
    """Say how many items a figure rests on, where it is not all."""
    return "" if cell.n == cell.total else f" ({items_text(cell)} items)"


# --- Files -------------------------------------------------------------------------------------------------------

ITEMS = "items.csv"
TABLES = ("table2.csv", "table2.json", "table2.tex", "metrics.csv", "slices.csv", ITEMS, "run.csv")  # of every run


def write_tables(summary: Summary, split: Split, scores: Mapping[str, ItemScore], folder: Path) -> None:
    """Write a run's figures.

    `table2.csv`, `table2.json` and `table2.tex` have the model and its baselines; `metrics.csv` every figure of every
    metric; `slices.csv` the slices; `items.csv` every item.
    """
    rows = table_rows(summary)
    three = (table_text(rows, kind) for kind in ("csv", "json", "latex"))
    others = (metrics_table(summary), slices_table(summary), items_table(split, scores))
    for name, text in zip(TABLES, (*three, *(table.to_csv() for table in others)), strict=False):
        write_text(folder / name, text)


def write_facts(summary: Summary, folder: Path) -> None:
    """Write `run.csv`, how the run was answered, and `costs.csv`, what each stage paid, if any."""
    facts = Table("", ("fact", "value"), [("model", summary.model), *summary.answering.facts()])
    write_text(folder / TABLES[-1], facts.to_csv())
    if summary.costs:
        write_text(folder / "costs.csv", cost_table(summary.costs).to_csv())


def items_table(split: Split, scores: Mapping[str, ItemScore]) -> Table:
    """Return every item: id, subtask, language, why it is unscored, then its means, times 100 as in the tables.

    `contract` is the share of its answers that break no rule; `rating` (R) and `j` (of levels I to III) are 0 to 5.
    What could not be computed is empty.
    """
    rows: list[list[object]] = []
    for scenario in split.scenarios:
        score = scores[scenario.id]
        values = [score.s, score.lexical, *map(score.metric, columns()), score.compliance]
        figures = [None if value is None else 100 * value for value in values]
        judged = [score.rating, score.j if SUBTASKS[scenario.subtask].level else None]
        rows.append([scenario.id, scenario.subtask, scenario.language, score.unscored or "", *figures, *judged])
    heading = ["id", "subtask", "language", "unscored", "s", "lexical", *columns(), "contract", "rating", "j"]
    return Table("", heading, rows)


_OF_S = ("s", "ss", "judged", "corrected")  # metrics of the items that have S
_MARKS = ("complete", "comparable", "judged")


def metrics_table(summary: Summary) -> Table:
    """Return every figure of the model and its baselines: model, source, languages, metric, of, marks, cell.

    `metric` is `s`, `judged` (levels I to III as 20 J), `rating` (20 R of all judged items), `corrected`
    (20 J of `levels` or a level, by people's labels), `share` (in percent, of
    yes to the point that `of` names), `lexical`, `contract`, one of the seven parts of S, or `null_precision`,
    `null_recall` and `null_f1`; `of` a subtask, `<dimension>_avg`, `overall`, `items_mean` or `plain_mean`.
    """
    rows = []
    for baseline in (None, *summary.baselines):
        head = table_row(summary, baseline)
        marks = [str(getattr(head, mark)) for mark in _MARKS]
        for metric, of, cell in _cells(summary, baseline):
            languages = summary.measured if metric in _OF_S else "+".join(summary.languages)
            rows.append([head.model, head.source, languages, metric, of, *marks, *cell.to_dict().values()])
    return Table("", ["model", "source", "languages", "metric", "of", *_MARKS, *FIGURES], rows)


def _cells(summary: Summary, baseline: str | None) -> Iterator[tuple[str, str, Cell]]:
    """Every cell of the model or a baseline, with its metric and what it is of."""
    own = summary.rows if baseline is None else summary.baselines[baseline]
    named = {"s": own.s, "judged": own.judged, "lexical": own.lexical, "contract": own.compliance}
    for metric, row in named.items():
        yield from ((metric, key, cell) for key, cell in cells_of(row).items())
    if (null := own.null_class) is not None:
        of = "+".join(subtask.name for subtask in SUBTASKS.values() if subtask.has_null_line)
        yield from (("null_precision", of, null.precision), ("null_recall", of, null.recall), ("null_f1", of, null.f1))
    if baseline is not None:
        return
    if (judging := summary.judging) is not None:
        by_metric = {"rating": judging.ratings.cells, "corrected": judging.corrected, "share": judging.points}
        yield from ((metric, of, cell) for metric, cells in by_metric.items() for of, cell in cells.items())
    yield from ((metric, of, cell) for of, cells in summary.metrics.items() for metric, cell in cells.items())


def slices_table(summary: Summary) -> Table:
    """Return the slices of the run's measure: tag, its value, languages, measure, marks, then the cell."""
    head = table_row(summary)
    marks = [str(getattr(head, mark)) for mark in _MARKS]
    rows = [
        [tag, of, head.languages, head.measure, *marks, *cell.to_dict().values()]
        for tag, cells in ordered_slices(summary).items()
        for of, cell in cells.items()
    ]
    return Table("", ["tag", "of", "languages", "measure", *_MARKS, *FIGURES], rows)
