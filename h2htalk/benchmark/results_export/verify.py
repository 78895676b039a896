"""Compute the scores of a bundle again, and compare."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from h2htalk.benchmark.generate import PromptOf
from h2htalk.benchmark.metrics.metric_table import Metrics
from h2htalk.benchmark.metrics.scoring import score_answers
from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.results_export.bundle import (
    RESPONSES,
    SCORES,
    BundleHead,
    figure_cells,
    read_bundle,
    records,
    sha256,
)
from h2htalk.benchmark.score_run import REFERENCES_LENGTH, metric_keys, open_metrics
from h2htalk.data.arguments import as_path
from h2htalk.data.releases.private_references import with_references
from h2htalk.data.responses import read_response
from h2htalk.data.run_folder import Answers, fold_answer
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError, MissingExtraError, counted

_JUDGED = ("rating", "j", "people", "unjudged")  # of judges and people, who cannot be asked again
_Rows = Mapping[tuple[Any, Any], Mapping[str, Any]]  # scores by item and sample, or cells by language and name
TOLERANCE = 1e-9
# Embeddings are numbers of single precision: their last digits depend on the machine.
EMBEDDING_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Verification:
    """What of a bundle was confirmed, what differs, and what could not be checked here."""

    matches: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def compare(self, name: str, pairs: Iterable[tuple[Any, Any]], tolerance: float = TOLERANCE) -> None:
        """Compare our values with the bundle's."""
        apart = [_distance(ours, theirs) for ours, theirs in pairs]
        if (worst := max(apart, default=0.0)) <= tolerance:
            self.matches.append(name if worst <= TOLERANCE else f"{name}, but for the last digits ({worst:.0e})")
            return
        most = "" if math.isinf(worst) else f", by up to {worst:.3g}"
        self.differs.append(f"{name}: {sum(one > tolerance for one in apart):,} of {len(apart):,} values{most}")


def _distance(ours: Any, theirs: Any) -> float:
    """How far two values are apart; infinitely where they are not equal and one is no number."""
    numbers = all(isinstance(value, int | float) and math.isfinite(value) for value in (ours, theirs))
    return 0.0 if ours == theirs else abs(ours - theirs) if numbers else math.inf


def _pairs(ours: _Rows, theirs: _Rows, column: str) -> list[tuple[Any, Any]]:
    keys = ours.keys() | theirs.keys()
    return [(ours.get(key, {}).get(column), theirs.get(key, {}).get(column)) for key in keys]


def verify_results(
    bundle: str | os.PathLike[str], split: str | None = None, references: str | os.PathLike[str] | None = None
) -> Verification:
    """Compute the scores of a bundle again from its responses, and compare them.

    Args:
        bundle: a folder or a .zip that `export_results` wrote.
        split: the split that was asked; None loads the release that the bundle names.
        references: the file of the split's private references, if the run was scored with it.

    Examples:
        >>> import h2htalk
        >>> h2htalk.verify_results("bundle", "mini").differs
        []

    Raises:
        ConfigError: the split is not known.
        DataError: `bundle` is no bundle, or one of its lines is broken.
    """
    head, texts = read_bundle(as_path(bundle, "bundle"))
    found = Verification()
    found.compare("the hashes of the files", [(sha256(text), head.files.get(name)) for name, text in texts.items()])
    theirs: _Rows = {(row.get("id"), row.get("sample")): row for _, row in records(SCORES, texts[SCORES])}
    whole, ids = load_split(split or _split_on_hub(head)), {item_id for item_id, _ in theirs}
    asked = replace(whole, scenarios=tuple(s for s in whole.scenarios if s.id in ids))
    if rest := len(whole.scenarios) - len(asked.scenarios):
        part = f"{len(asked.scenarios):,} of {len(whole.scenarios):,} items of split {whole.name}"
        found.unchecked.append(f"{counted(rest, 'item')}: the bundle holds {part}")
    items = asked.fingerprint, head.split.get("fingerprint")
    found.compare(f"the items of {asked.name} {asked.version}", [items])
    private = "references_sha256" in head.protocol
    if private and references is None:
        found.unchecked.append("the scores: name the file of private references with --references")
    if items[0] != items[1] or (private and references is None):
        return found
    if references is not None:
        if not private:
            raise ConfigError("the bundle's answers were not scored with private references; leave out --references")
        asked = with_references(asked, as_path(references, "references"))
    answers: Answers = {}
    for where, record in records(RESPONSES, texts[RESPONSES]):
        fold_answer(answers, read_response(record, where))
    metrics, prompt_of = _open_metrics(head, found), _open_prompts(head, asked, found)
    keys = metric_keys(metrics, asked) | {"embedder": head.protocol.get("embedder", "none")}
    if (judge := head.protocol.get("judge", "none")) != "none":
        keys["judge"] = judge
        found.unchecked.append(f"ratings of {judge}, and J: the figures here are those of S")
    keys |= {"references_sha256": asked.references_sha256[:REFERENCES_LENGTH]} if private else {}
    found.compare("the versions of the metrics", [(value, head.protocol.get(key)) for key, value in keys.items()])
    scores = score_answers(asked, answers, head.samples, metrics, prompt_of)
    ours = {(row.id, row.sample): row.to_dict() for item in scores.values() for row in item.samples}
    embedded = metrics.embedder is not None or keys["embedder"] == "none"
    # The hash is of the whole stored answer, of which a bundle holds the text alone.
    skipped = (
        {"answer", *_JUDGED}
        | (set() if prompt_of else {"violations"})
        | (set() if embedded else {"ss", "s", "unscored"})
    )
    for column in [name for name in next(iter(ours.values())) if name not in skipped]:
        tolerance = EMBEDDING_TOLERANCE if column in ("ss", "s") else TOLERANCE
        found.compare(column, _pairs(ours, theirs, column), tolerance)
    if embedded:
        cells, theirs = _by_name(figure_cells(asked.scenarios, scores)), _by_name(head.figures)
        pairs = [pair for part in ("value", "low", "high", "n", "total") for pair in _pairs(cells, theirs, part)]
        tolerance = TOLERANCE if metrics.embedder is None else EMBEDDING_TOLERANCE
        found.compare("figures and intervals", pairs, 100 * tolerance)  # on the scale from 0 to 100
    return found


def _by_name(figures: Mapping[str, Mapping[str, Any]]) -> _Rows:
    return {(language, name): cell for language, cells in figures.items() for name, cell in cells.items()}


def _split_on_hub(head: BundleHead) -> str:
    source, commit = head.split.get("source", ""), head.split.get("commit")
    if not commit or not source.startswith("hub:"):
        raise ConfigError(f"the bundle's split {head.split.get('name')} is not on the Hub: name it with --split")
    return re.sub("@[^#]*", f"@{commit}", source)  # the tag may be at another commit now


def _open_metrics(head: BundleHead, found: Verification) -> Metrics:
    """The metrics that the bundle names; without its embedder where that is not on this machine."""
    text, rouge = head.protocol.get("embedder", "none"), head.protocol.get("rouge", "f1")
    name, _, revision = text.partition("(")[0].rpartition("@")
    if text != "none":
        try:
            metrics = open_metrics("bge-m3" if name.startswith("bge-m3:") else name, rouge)
            if metrics.embedder is not None and metrics.embedder.revision.startswith(revision):
                return metrics
            found.unchecked.append(f"SS and S: embedder {name} is of another revision here than {revision}")
        except (ConfigError, MissingExtraError) as error:
            found.unchecked.append(f"SS and S: embedder {text} is not on this machine: {error}")
    return open_metrics("none", rouge)


def _open_prompts(head: BundleHead, split: Split, found: Verification) -> PromptOf | None:
    """What the items were asked with, for the contract's leak rule; None where these prompts are not at hand."""
    prompts = PromptSet.load()
    if prompts.fingerprint != head.protocol.get("prompts"):
        found.unchecked.append("contract violations: the bundle's prompts are not those of this version")
        return None
    sap = Sap.parse(head.subject.get("sap", "full"))
    return lambda scenario: prompts.messages(scenario, split.personas[scenario.persona], sap)
