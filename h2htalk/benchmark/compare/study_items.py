"""A study as a comparison sees it: one item for each value of one figure, in one arm."""

from __future__ import annotations

from pathlib import Path

from h2htalk.benchmark.compare.scored_items import ScoredItem, ScoredItems
from h2htalk.benchmark.gate.gated_run import GatedRun, read_gated_run
from h2htalk.benchmark.gate.policy import DEFAULTS
from h2htalk.benchmark.studies.figures import COUNTS, SCALES
from h2htalk.benchmark.studies.observations import NOT_ASKED, Observation, scored
from h2htalk.data.signature import Signature
from h2htalk.errors import ConfigError, quoted


def read_study_items(path: Path, metric: str | None) -> ScoredItems:
    """Read a figure of a scored study. Two studies may have different cases: each case is checked by itself.

    Args:
        metric: `FIGURE` or `ARM/FIGURE`; None: the study's first figure, such as `violation`. Without an arm that of
            `gate`: the first, of memory `whole`.

    Raises:
        ConfigError: no such arm or figure.
        DataError: the study was not scored, or was edited.
    """
    arm, _, figure = (metric or "").rpartition("/")
    study = read_gated_run(path, arm)
    name = figure or DEFAULTS[study.study][0]
    rows = study.values.get(name, ())
    if not scored(rows) or name in COUNTS:
        have = sorted(one for one, own in study.values.items() if scored(own) and one not in COUNTS)
        choices = f"choose a --metric from {', '.join(have)}" if have else "name a --judge, or ask people"
        raise ConfigError(f"{path}: no value of {quoted(name)} in arm {study.arm}; {choices}")
    protocol = {key: value for key, value in study.signature.protocol.items() if key != "items"}
    signature = Signature(protocol | {"judge": study.judge or "-"}, study.signature.subject)
    known = {row.key for row in scored(rows)}
    items = {" ".join(row.key): _item(study, row, row.key in known) for row in rows}
    return ScoredItems(study.label, f"study {study.study}", name, signature, items, {}, lambda _: None)


def _item(study: GatedRun, row: Observation, known: bool) -> ScoredItem:
    least, most = SCALES.get(row.figure, (0.0, 1.0))
    values = () if row.value is None or not known else (100 * (row.value - least) / (most - least),)
    return ScoredItem(
        id=" ".join(row.key),
        subtask="",
        cluster=row.cluster,
        content=study.items.get(row.item, ""),
        values=values,
        unscored=None if values else row.unscored or NOT_ASKED,
        answers=study.show(row)[1:] if values else (),
    )
