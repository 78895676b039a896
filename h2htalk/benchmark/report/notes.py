"""What stands beside the tables of a run: notes on its figures, facts about judges and answers, what it cost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from statistics import stdev

from h2htalk.benchmark.metrics.composite import THRESHOLD
from h2htalk.benchmark.report import table2
from h2htalk.benchmark.statistics import Cell
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.prices import Totals, dollars_text, money_text, sum_totals
from h2htalk.chat.store.call_store import PaidCall, read_costs, read_stores
from h2htalk.data.erasure.folder_kinds import require_erased
from h2htalk.data.files import refuse_links, write_text
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import HUMAN
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted, listed
from h2htalk.text.tables import Table

JUDGED = (
    "Itinerary Basic, Middle and Advanced (levels I-III) are 20 J (Eq. 3); the unjudged 100 S stands apart. "
    "Baselines are unjudged."
)


def notes(summary: Summary) -> Iterator[tuple[str, bool]]:
    """Yield the notes on this summary's figures, most important first, each with whether it has a warning colour."""
    counts = summary.counts
    if summary.signature.human:
        yield "Replies written by people, not by a model.", False
    if summary.incomplete:
        yield f"INCOMPLETE: {_incomplete(summary)}", True
    if counts.private:
        whoever = "Whoever has them scores the stored answers with `h2htalk score RUN --references FILE`."
        yield f"{table2.NOT_SCORED.capitalize()} ({counted(counts.private, 'item')}). {whoever}", True
    if counts.erased:
        yield f"{counted(counts.erased, 'item')} erased since: the figures leave them out.", True
    if summary.measure == "lexical":
        yield "S was not asked for: the figures are means of BLEU-1 to 4, ROUGE-1 and ROUGE-L.", False
    elif not summary.s_comparable:
        embedder = summary.signature.protocol.get("embedder", "another embedder")
        yield f"S is not comparable with the paper's: its SS comes from {embedder}, not from BGE-M3.", True
    if table2.has_levels(summary.rows.lexical):
        yield JUDGED if summary.judged else table2.UNJUDGED, False
    if missing := [SUBTASKS[name].title for name in SUBTASKS if name not in table2.main_row(summary)]:
        are = "is" if len(missing) == 1 else "are"
        yield f"No overall: it needs all subtasks, and {listed(missing, len(SUBTASKS))} {are} missing.", False


def _incomplete(summary: Summary) -> str:
    """Describe how many items are unscored, and what to do, which depends on where the answers come from."""
    counts, judging = summary.counts, summary.judging
    if not counts.unscored and judging is not None:
        option = "" if judging.failed else " --repeat-unscored"
        failed = counted(judging.failed or sum(judging.unscored.values()), "answer is", "answers are")
        return f"{failed} not judged; run `h2htalk judge run{option}` with the same judges again."
    engine, missing = summary.signature.subject.get("engine"), min(counts.failures.get("missing", 0), counts.unscored)
    advice = "Start the same command again: it sends only those."
    if engine == "baseline":
        advice = "The baseline has no answer to those: use a split with more items for each subtask and language."
    elif engine in ("imported", HUMAN):
        ids = f"id{'s' if missing > 1 else ''}: import a complete one into a new folder."
        advice = f"The imported file has no answer to {missing:,} {ids}" if missing else "Score the run again."
    return f"{counts.unscored:,} of {counts.items:,} items are unscored; the figures leave them out. {advice}"


def spread_lines(summary: Summary) -> list[str]:
    """Return a line on how much the headline figure differs between the answers to the same items, if any has two."""
    if not (figures := summary.by_sample):
        return []
    name = "Mean of items" if table2.main_row(summary)["overall"].value is None else "Overall"
    shown = ", ".join(f"{figure:.2f}" for figure in figures)
    return [f"{name} by sample: {shown} (standard deviation {stdev(figures):.2f})"]


def judge_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield a name and a text for each fact about judges; none for a run that was never judged."""
    if (judging := summary.judging) is None:
        return
    each = counted(judging.judgements, "judgement")
    yield "judges", f"{', '.join(judging.judges)}; {each} of an answer by each; scope {judging.scope}"
    people = f", {judging.people:,} of them by people" if judging.people else ""
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in table2.most_first(judging.unscored))
    unscored = f"; unscored: {reasons}" if reasons else ""
    asked = " of itinerary levels I to III (--scope all judges every subtask)" * (judging.scope == "levels")
    yield "rated", f"{judging.scored:,} of {counted(judging.total, 'answer')}{asked}{people}{unscored}"
    cells = [(SUBTASKS[name].title, cell) for name, cell in judging.ratings.items() if name in SUBTASKS]
    yield "20 R", ", ".join(f"{title} {table2.with_half_width(cell)}{_part(cell)}" for title, cell in cells)
    if judging.items:
        sent, by_judge = judging.queue["J"], judging.queue["judge"]
        by_j = f"by the judge's R, Eq. 4 (J < {THRESHOLD}) sends {sent:,} of {counted(judging.items, 'item')}"
        yield "to people", f"{by_j}, --human-trigger judge (R < {THRESHOLD}) {by_judge:,}"
    if judging.correction:
        names = {name: SUBTASKS[name].title if name in SUBTASKS else "levels I to III" for name in judging.corrected}
        means = ", ".join(f"{names[name]} {table2.with_half_width(cell)}" for name, cell in judging.corrected.items())
        yield "20 J corrected by people's labels", f"{means}; {judging.correction}" if means else judging.correction
    if judging.disagreement is not None:
        yield "disagreement of judges", f"{judging.disagreement:.2f} of 5 on average, highest minus lowest"
    for point, cell in judging.points.items():
        share = "none" if cell.value is None else f"{cell.value:.1f} % {table2.half_width_text(cell)}".rstrip()
        yield point, f"{share} of {counted(cell.n, 'item')}{_part(cell)}, by the judge"


def _part(cell: Cell) -> str:
    """Say how many items a figure rests on, where it is not all."""
    return "" if cell.n == cell.total else f" ({table2.items_text(cell)} items)"


UNKNOWN = "unknown"
_TOKENS = ("input_tokens", "cache_read_tokens", "output_tokens")
_CALL_FIELDS = ("stage", "call", "items", "billing", "reason", *_TOKENS, "usd", "usd_at_most", "batch", "request_id")


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
    rows = [(f"{stage} {call}", *rest) for stage, call, *rest in listed.rows] if listed else []
    shown = [Table("", ("call", *_CALL_FIELDS[2:]), rows).to_terminal(), ""] if listed else []
    return "\n".join([*shown, *lines])


def cost_lines(costs: Mapping[str, Totals]) -> list[str]:
    """Describe what a run cost in one sentence; no line where no call cost anything."""
    return [f"Cost: {totals_text(sum_totals(costs.values()))}"] if costs else []


def totals_text(totals: Totals) -> str:
    """Describe money, calls and tokens."""
    cached = f", {totals.cache_read_tokens:,} from cache" if totals.cache_read_tokens else ""
    price = "price unknown" if totals.usd_paid is None else f"{dollars_text(totals.usd_paid)} US dollars"
    tokens = f"({totals.input_tokens:,} tokens in{cached}; {totals.output_tokens:,} out)"
    parts = [f"{price} for {counted(totals.paid - totals.unmetered, 'call')} {tokens}"]
    doubtful = ((totals.possibly_paid, "whose reply never arrived"), (totals.unmetered, "whose reply named no usage"))
    if named := " and ".join(f"{counted(n, 'call')} {why}" for n, why in doubtful if n):
        parts.append(f"{_at_most(totals.usd_possible)} for {named}")
    if totals.open:
        parts.append(f"{_at_most(totals.usd_open)} for {counted(totals.open, 'call')} still open")
    return "; ".join([*parts, *([f"prices of {totals.prices}"] if totals.prices else [])])


def _at_most(dollars: Decimal | None) -> str:
    return "an unknown amount more" if dollars is None else f"at most {dollars_text(dollars, True)} more"


def limit_lines(summary: Summary) -> list[str]:
    """Describe how far `--max-cost` let the run go, and how to continue; no line where it did not stop the run."""
    if not (left := summary.counts.failures.get("max_cost", 0)):
        return []
    totals, rest = sum_totals(summary.costs.values()), ""
    if totals.usd_paid and (metered := totals.paid - totals.unmetered):  # the others are no part of what was paid
        # The average cost of a paid call: a call may hold several samples, so this is an upper estimate.
        rest = f", the rest will cost about {dollars_text(totals.usd_paid / metered * left)} at this rate"
    return [
        f"--max-cost stopped the run: {counted(left, 'answer')} not asked for; "
        f"{dollars_text(totals.usd_committed, True)} US dollars are spent or may be{rest}. "
        "Raise --max-cost in the same command to go on."
    ]


def _rows(costs: Mapping[str, Totals]) -> dict[str, Totals]:
    """The stages, and the total where there are several."""
    return dict(costs) | ({"in all": sum_totals(costs.values())} if len(costs) > 1 else {})


def cost_table(costs: Mapping[str, Totals]) -> Table:
    """One row for each stage, and a total where there are several, exact; the note says what the run cost."""
    rows = [(name, *(UNKNOWN if v is None else v for v in of.to_dict().values())) for name, of in _rows(costs).items()]
    return Table("Costs", ("stage", *Totals().to_dict()), rows, cost_lines(costs))


def call_table(calls: Iterable[PaidCall]) -> Table:
    """One row for each call. `usd` is what it cost, or where that is unknown `usd_at_most` the most."""
    rows = []
    for call in calls:
        known, (_, dollars) = call.cost[0] == "usd_paid", call.cost
        amount = UNKNOWN if dollars is None else money_text(dollars)
        items = " ".join(f"{item_id}#{sample}" for item_id, sample in call.items)
        tokens = (getattr(call.usage, key, None) for key in _TOKENS)
        costs = (amount, None) if known or dollars is None else (None, amount)
        ended = (call.billing, call.reason or None)
        rows.append((call.stage, call.number, items, *ended, *tokens, *costs, call.batch, call.request_id))
    return Table("", _CALL_FIELDS, rows)


def write_facts(summary: Summary, folder: Path) -> None:
    """Write `run.csv`, how the run was answered, and `costs.csv`, what each stage paid, if any."""
    facts = Table("", ("fact", "value"), [("model", summary.model), *summary.answering.facts()])
    write_text(folder / "run.csv", facts.to_csv())
    if summary.costs:
        write_text(folder / "costs.csv", cost_table(summary.costs).to_csv())
