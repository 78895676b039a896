"""`curate run --dry-run`: what each stage would read, whether it is finished, its model calls and what they cost.

Nothing is written, and no model is called. Calls are counted from what is there now, in the raw files or in the last
finished stage, and multiplied by the mean tokens of such a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from h2htalk.chat.engines import parse_model
from h2htalk.chat.prices import add, dollars_text, load_prices
from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.curation.compose.extraction import MOST_DRAFTS
from h2htalk.curation.curate import choose_stages
from h2htalk.curation.gather.source_files import plan_source
from h2htalk.curation.review.faireval import ORDERS
from h2htalk.curation.review.gold_check import read_gold
from h2htalk.curation.run import StageRun, is_made, require_finished
from h2htalk.curation.stages import (
    FIRST_STAGE,
    STAGES,
    ComposeSettings,
    CurateSpec,
    GatherSettings,
    ReviewSettings,
    find_stage,
    stage_before,
)
from h2htalk.data.responses import Usage

# Candidates of a dialogue: likely, and at most (what is extracted, and four proposals).
_CANDIDATES = np.array([3, MOST_DRAFTS + 1 + 4])
_GUARDED = 0.2  # share of the dialogues that a guard is asked about, the undecided ones: an estimate


# Kinds of calls: the mean tokens of the prompt, of the reply, and the most that a reply may have. Prompts of guard,
# compose and review are measured on 200 dialogues of examples/curate.toml; the rest is estimated.
_Kind = tuple[int, int, int]
_GUARD = (350, 15, 64)
_PROPOSALS, _REFERENCE = (1650, 400, 2400), (850, 120, 600)
_RUBRIC, _COMPARISON = (1150, 350, 1200), (800, 110, 600)
_USER_TURN, _COMPANION_TURN = (600, 40, 120), (700, 60, 200)

_Count = NDArray[np.float64]  # of records that a stage reads, or of calls: likely, and at most
_Calls = list[tuple[_Kind, _Count]]
_Cost = tuple[Decimal | None, Decimal | None]  # US dollars likely, and at most; None where the price is unknown


def estimate_run(
    spec_path: str | Path, stages: Sequence[str] = (), *, workspace: str | Path | None = None, from_stage: str = ""
) -> str:
    """Describe what `curate` with these arguments would do, a line a stage.

    Raises:
        ConfigError, DataError: as `curate` would raise, as far as that is known without making a stage.
    """
    chosen = choose_stages(spec_path, stages, workspace, from_stage)
    spec, place, names = chosen.spec, chosen.place, chosen.names()
    finished = [n for n in STAGES if n not in chosen.renewed and place.stage(n).finished]
    lines: list[str] = []
    costs: list[_Cost] = []
    given, where = _raw_items(spec) if FIRST_STAGE not in finished else (np.zeros(2), "")
    for name in names:
        folder, before = place.stage(name), stage_before(name)
        run: StageRun = find_stage(name).make(spec, place, bytes(32))
        source = "raw files"
        if before and (before in finished or before not in names):
            source = require_finished(place.stage(before))
            given, where = np.full(2, float(place.stage(before).total().written)), before
        if name not in chosen.renewed and (not before or before in finished):
            is_made(folder, run, source)
        if name in finished:
            counts = folder.total()
            lines.append(f"{name:10} finished: {counts.kept:,} of {counts.read:,} {STAGES[name].reads} kept")
            continue
        most = "at most " if before and before not in finished else ""
        unit = STAGES[name].reads if before else "items"
        lines.append(f"{name:10} to make: reads {most}{given[1]:,.0f} {unit} from {where}")
        for settings, calls in _calls(name, run, spec, given):
            text, cost = _cost(settings, calls)
            lines.append(f"{'':10} {settings.model}: {text}")
            costs.append(cost)
        if name == "compose":
            given = given * _CANDIDATES
        where = name
    if any(likely is None or likely for likely, _ in costs):
        known = [cost for cost in costs if None not in cost]
        likely, most_paid = (dollars_text(add(*dollars)) for dollars in zip(*known or [(Decimal(0),) * 2], strict=True))
        unknown = "" if len(known) == len(costs) else ", and what has no known price"
        lines.append(f"together likely {likely}, at most {most_paid} US dollars{unknown}")
    return "\n".join([*lines, "nothing was written and no model was called"])


def _raw_items(spec: CurateSpec) -> tuple[_Count, str]:
    """The items of all sources, and the simulated dialogues. Data sets on the Hub are not fetched, so not counted."""
    settings = spec.section(GatherSettings)
    count, places = 0, []
    for source in settings.sources:
        plan = plan_source(source, spec.folder)
        if source.path.startswith("hub:"):
            places.append(f"{source.name} ({source.path}, not counted)")
            continue
        items = sum(1 for _ in plan.items(lambda size: None))
        count += items
        places.append(f"{source.name} ({plan.place}, {items:,})")
    if settings.simulate.dialogues:
        simulated = settings.simulate.dialogues * len(settings.simulate.languages)
        count += simulated
        places.append(f"simulation ({simulated:,})")
    return np.full(2, float(count)), ", ".join(places)


def _calls(name: str, run: StageRun, spec: CurateSpec, given: _Count) -> list[tuple[CallSettings, _Calls]]:
    """The models that a stage calls, and the kinds and numbers of their calls."""
    if not run.calls:
        return []
    if name == FIRST_STAGE:
        simulate = spec.section(GatherSettings).simulate
        turns = simulate.dialogues * len(simulate.languages) * simulate.turns / 2
        kinds = (_USER_TURN, _COMPANION_TURN)
        return [(one, [(kind, np.full(2, turns))]) for one, kind in zip(run.calls, kinds, strict=True)]
    (settings,), references = run.calls, spec.section(ComposeSettings).references
    if name == "safety":
        return [(settings, [(_GUARD, given * (_GUARDED, 1))])]
    if name == "compose":
        return [(settings, [(_PROPOSALS, given), (_REFERENCE, given * _CANDIDATES * references)])]
    review = spec.section(ReviewSettings)
    asked = len(ORDERS) * review.samples
    # The reply of a dialogue is a reference beside those of the model, of every other candidate.
    replies = np.minimum([references + 0.5, references + 1], 4)
    compared = given * replies * (replies - 1) / 2 * asked
    if review.gold:
        compared = compared + len(read_gold(Path(review.gold)).candidates) * asked
    return [(settings, [(_RUBRIC, given), (_COMPARISON, compared)])]


def _cost(settings: CallSettings, calls: _Calls) -> tuple[str, _Cost]:
    """The number and the cost of a model's calls."""
    likely, most = np.sum([count for _, count in calls], axis=0)
    numbers = f"likely {likely:,.0f}, at most {most:,.0f} calls"
    engine, _ = parse_model(settings.model)
    if engine.local:
        return f"{numbers}; costs nothing but time", (Decimal(0), Decimal(0))
    if (price := load_prices(settings.prices).models.get(settings.model) if engine.hosted else None) is None:
        return f"{numbers}; the price is unknown", (None, None)

    def dollars(at: int) -> Decimal | None:
        used = (Usage(kind[0], kind[1 + at]) for kind, _ in calls)
        each = (price.cost(one, settings.batch) for one in used)
        return add(*(one and one * Decimal(count[at]) for one, (_, count) in zip(each, calls, strict=True)))

    cost = dollars(0), dollars(1)
    limit = "" if settings.max_cost is None or (cost[1] or 0) <= settings.max_cost else ", more than max_cost"
    text = f"likely {dollars_text(cost[0])}, at most {dollars_text(cost[1])} US dollars{limit}"
    return f"{numbers}; {text} (prices of {price.date})", cost
