"""`curate run --dry-run`: what each stage would read, whether it is finished, its model calls and what they cost.

Nothing is written, and no model is called. The calls of a stage are made for a sample of the dialogues that are there
now, in the raw files or in the last finished stage, and counted for all: rejected dialogues make them fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path

from h2htalk.chat.prices import add, dollars_text
from h2htalk.chat.protocol import Request
from h2htalk.chat.store.model_calls import describe_calls
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.compose import stage as compose
from h2htalk.curation.curate import choose_stages
from h2htalk.curation.gather.cleaning import clean
from h2htalk.curation.gather.raw_items import RawDialogue, RefusedItem
from h2htalk.curation.gather.settings import GatherSettings
from h2htalk.curation.gather.simulation import open_simulation
from h2htalk.curation.gather.source_files import named_items, plan_source
from h2htalk.curation.review import stage as review
from h2htalk.curation.review.faireval import ORDERS
from h2htalk.curation.review.gold_check import read_gold
from h2htalk.curation.run import StageRun, is_made, require_finished
from h2htalk.curation.safety import guard_model
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.stages import FIRST_STAGE, STAGES, ReviewSettings, find_stage, stage_before
from h2htalk.data.responses import CALLS
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import counted

SAMPLE = 200  # dialogues whose calls are made
_NO_KEY = bytes(32)  # fences of the same length


@dataclass(frozen=True, slots=True)
class _Input:
    """What a stage reads: how many, of what, from where, and some of it. `most`: fewer may be left."""

    count: int
    unit: str
    place: str
    dialogues: Sequence[Dialogue] = ()
    candidates: Sequence[Candidate] = ()
    most: bool = False

    def __str__(self) -> str:
        return f"{'at most ' if self.most else ''}{self.count:,} {self.unit} from {self.place}"


def estimate_run(
    spec_path: str | Path, stages: Sequence[str] = (), *, workspace: str | Path | None = None, from_stage: str = ""
) -> str:
    """Describe what `curate` with these arguments would do, a line a stage.

    Raises:
        ConfigError, DataError: as `curate` would raise, as far as that is known without making a stage.
    """
    chosen = choose_stages(spec_path, stages, workspace, from_stage)
    spec, place, names = chosen.spec, chosen.place, chosen.names()
    finished = [n for n in STAGES if n not in chosen.renewed and (place.stage(n).path / "summary.json").exists()]
    given = _raw_input(spec) if FIRST_STAGE not in finished else None
    lines, costs = [], []
    for name in STAGES:
        folder, before = place.stage(name), stage_before(name)
        if name in names:
            run: StageRun = find_stage(name).make(spec, place, _NO_KEY)
            source = "raw files"
            if before and (before in finished or before not in names):
                source = require_finished(place.stage(before))
            if name not in chosen.renewed and (not before or before in finished):
                is_made(folder, run, source)
            if name in finished:
                counts = folder.total()
                lines.append(f"{name:10} finished: {counts.kept:,} of {counts.read:,} {STAGES[name].reads} kept")
            else:
                given = given or _stage_input(name, place.stage(before), before)
                done = len(folder.parts()) if name not in chosen.renewed else 0
                begun = f", {counted(done, 'part')} of it made" if done else ""
                lines.append(f"{name:10} to make: reads {given}{begun}")
                for what, dollars in _calls(name, run, spec, folder, given):
                    lines.append(f"{'':10} {what}")
                    costs.append(dollars)
        given = _after(name, spec, given) if name not in finished else None
    known_costs = [dollars for dollars in costs if dollars is not None]
    if any(dollars is None or dollars for dollars in costs):
        unknown = "" if len(known_costs) == len(costs) else ", and what has no known price"
        lines.append(f"together about {dollars_text(add(*known_costs))} US dollars{unknown}")
    return "\n".join([*lines, "nothing was written and no model was called"])


# --- What stages read ---------------------------------------------------------------------------------------------


def _raw_input(spec: CurateSpec) -> _Input:
    """The items of all sources, and the simulated dialogues. Data sets on the Hub are not fetched, so not counted."""
    settings = spec.section(GatherSettings)
    count, places = 0, []
    sample: list[Dialogue] = []
    for number, source in enumerate(settings.sources, 1):
        plan = plan_source(source, spec.folder, settings.mock_dialogues)
        if plan.dataset is not None:
            places.append(f"{source.name} ({plan.dataset}, not counted)")
            continue
        items = 0
        for named in named_items(plan, lambda size: None):
            items += 1
            raw = named.item.content
            if isinstance(raw, RawDialogue) and len(sample) < SAMPLE * number / len(settings.sources):
                try:
                    messages = clean(raw, source.language).messages
                except RefusedItem:
                    continue
                sample.append(Dialogue(named.id, source.language, messages, {}, "unknown", {}))
        count += items
        places.append(f"{source.name} ({plan.place or 'mock dialogues'}, {items:,})")
    if settings.simulate.dialogues:
        simulated = settings.simulate.dialogues * len(settings.simulate.languages)
        count += simulated
        places.append(f"simulation ({simulated:,})")
    return _Input(count, "items", ", ".join(places), sample)


def _stage_input(name: str, before: StageFolder, place: str) -> _Input:
    """What a finished stage kept."""
    records = list(islice(before.records(), SAMPLE))
    unit, count = STAGES[name].reads, before.total().written
    if unit == "candidates":
        return _Input(count, unit, place, candidates=[Candidate.from_dict(record) for record in records])
    return _Input(count, unit, place, [Dialogue.from_dict(record) for record in records])


def _after(name: str, spec: CurateSpec, given: _Input | None) -> _Input | None:
    """What the stage after an unfinished one reads at most."""
    if given is None:
        return None
    if name != "compose":
        return _Input(given.count, "dialogues", name, given.dialogues, most=True)
    candidates = list(compose.expected_candidates(spec, given.dialogues))
    count = round(len(candidates) * given.count / max(len(given.dialogues), 1))
    return _Input(count, "candidates", name, candidates=candidates, most=True)


# --- Calls ----------------------------------------------------------------------------------------------------------


def _calls(
    name: str, run: StageRun, spec: CurateSpec, folder: StageFolder, given: _Input
) -> Iterator[tuple[str, Decimal | None]]:
    """A line and the dollars of each model that a stage calls; None where the price is unknown."""
    if not run.calls:
        return
    makers: dict[str, Callable[[], Iterable[Request]]] = {
        "safety": lambda: map(guard_model.request, given.dialogues),
        "compose": lambda: compose.expected_requests(spec, given.dialogues),
        "review": lambda: review.expected_requests(spec, given.candidates),
    }
    stored = sum(b'"text":' in line for path in folder.path.glob(CALLS) for line in path.open("rb"))
    again = f"; {stored:,} stored replies are used again where prompts are the same" if stored else ""
    if name == FIRST_STAGE:
        simulation = open_simulation(spec)
        plans = simulation.plans[:SAMPLE]
        made = list(simulation.expected_requests(plans))
        for role, settings in zip(("user", "companion"), run.calls, strict=True):
            requests = [request for speaker, request in made if speaker == role]
            line, dollars = describe_calls(settings, requests, len(simulation.plans) / max(len(plans), 1))
            yield f"{line}{again}", dollars
        return
    requests = list(makers[name]())
    scale = given.count / max(len(given.candidates or given.dialogues), 1)
    line, dollars = describe_calls(run.calls[0], requests, scale)
    if name == "review" and (path := spec.section(ReviewSettings).gold):
        gold = len(read_gold(Path(path)).candidates) * len(ORDERS) * spec.section(ReviewSettings).samples
        again += f"; and {gold:,} calls of the judge check"
    yield f"{line}{again}", dollars
