"""Compute the scores of a bundle again, and compare."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from h2htalk.benchmark.generate import PromptOf
from h2htalk.benchmark.metrics.metric_table import Metrics
from h2htalk.benchmark.metrics.scoring import score_answers
from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.results_export.export import (
    RESPONSES,
    SCORES,
    BundleHead,
    figure_cells,
    read_bundle,
    read_rows,
    sha256,
)
from h2htalk.benchmark.run import REVISION_LENGTH
from h2htalk.benchmark.score_run import REFERENCES_LENGTH, metric_keys, open_metrics
from h2htalk.data.arguments import as_path
from h2htalk.data.releases.private_references import with_references
from h2htalk.data.responses import Answers, fold_answer, read_response
from h2htalk.data.splits import Split, list_splits, load_split
from h2htalk.errors import ConfigError, DataError, counted, listed, quoted

_JUDGED = ("rating", "j", "people", "unjudged")  # of judges and people, who cannot be asked again
_Rows = Mapping[tuple[Any, Any], Mapping[str, Any]]  # scores by item and sample, or cells by language and name
TOLERANCE = 1e-9
# Embeddings are numbers of single precision: their last digits depend on the machine.
EMBEDDING_TOLERANCE = 1e-5


@dataclass(frozen=True, slots=True)
class Verification:
    """What of a bundle was confirmed on which split, what differs, and what was not computed again: not verified."""

    split: str
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
    if ours == theirs:
        return 0.0
    try:
        return distance if math.isfinite(distance := abs(ours - theirs)) else math.inf
    except (TypeError, OverflowError):  # no numbers, or one with hundreds of digits
        return math.inf


def _pairs(ours: _Rows, theirs: _Rows, column: str) -> list[tuple[Any, Any]]:
    keys = ours.keys() | theirs.keys()
    return [(ours.get(key, {}).get(column), theirs.get(key, {}).get(column)) for key in keys]


def verify_results(
    bundle: str | os.PathLike[str], split: str | None = None, references: str | os.PathLike[str] | None = None
) -> Verification:
    """Compute the scores of a bundle again from its responses, and compare them.

    Args:
        bundle: a folder or a .zip that `export_results` wrote.
        split: the split that was asked; by default the bundled one with the fingerprint of the bundle's items. What the
            bundle names is loaded from the Hub by that name alone.
        references: the file of the split's private references, if the run was scored with it.

    Examples:
        >>> import h2htalk
        >>> h2htalk.verify_results("bundle").differs
        []

    Raises:
        ConfigError: the split is not known, or none was named and no bundled one has the items.
        DataError: `bundle` is no bundle, a line is broken or there twice, or the split lacks an item.
    """
    head, texts = read_bundle(as_path(bundle, "bundle"))
    theirs = {key: row for key, (_, row) in read_rows(SCORES, texts[SCORES], head.samples).items()}
    if not 0 < head.samples <= len(theirs):
        raise DataError(f"{bundle}: {quoted(head.samples)} samples an item, {counted(len(theirs), 'line')} of scores")
    ids = {item_id for item_id, _ in theirs}
    name = split or _find_bundled(head, ids)
    whole = load_split(name)
    commit = f", commit {whole.commit}" if whole.commit else ""
    found = Verification(f"{name} ({whole.name} {whole.version}{commit})")
    found.compare("the hashes of the files", [(sha256(text), head.files.get(name)) for name, text in texts.items()])
    asked = _part(whole, ids)
    if rest := len(whole.scenarios) - len(asked.scenarios):
        part = f"{len(asked.scenarios):,} of {len(whole.scenarios):,} items of split {whole.name}"
        found.unchecked.append(f"{counted(rest, 'item')}: the bundle holds {part}")
    items = asked.fingerprint, head.split.get("fingerprint")
    found.compare(f"the items of {asked.name} {asked.version}", [items])
    if items[0] == items[1]:
        answers: Answers = {}
        for where, record in read_rows(RESPONSES, texts[RESPONSES], head.samples).values():
            fold_answer(answers, read_response(record, where))
        if unknown := sorted((ids | {item_id for item_id, _ in answers}) - {s.id for s in asked.scenarios}):
            raise DataError(f"{bundle}: {counted(len(unknown), 'item')} that its split lacks: {quoted(unknown[0])}")
        _compare_scores(found, head, asked, answers, theirs, references)
    found.unchecked.extend(_claims(head, asked))
    return found


def _compare_scores(
    found: Verification,
    head: BundleHead,
    asked: Split,
    answers: Answers,
    theirs: _Rows,
    references: str | os.PathLike[str] | None,
) -> None:
    """Score the answers, and compare every column and figure."""
    private = "references_sha256" in head.protocol
    if private and references is None:
        found.unchecked.append("the scores: name the file of private references with --references")
        return
    if references is not None:
        if not private:
            raise ConfigError("the bundle's answers were not scored with private references; leave out --references")
        asked = with_references(asked, as_path(references, "references"))
    metrics, prompt_of = _open_metrics(head, found), _open_prompts(head, asked, found)
    keys = metric_keys(metrics, asked) | {"embedder": head.protocol.get("embedder", "none")}
    if (judge := head.protocol.get("judge", "none")) != "none":
        keys["judge"] = judge
        found.unchecked.append(f"ratings of {quoted(judge)}, and J: the figures here are those of S")
    keys |= {"references_sha256": asked.references_sha256[:REFERENCES_LENGTH]} if private else {}
    found.compare("the versions of the metrics", [(value, head.protocol.get(key)) for key, value in keys.items()])
    scores = score_answers(asked, answers, head.samples, metrics, prompt_of)
    ours = {(row.id, row.sample): row.to_dict() for item in scores.values() for row in item.samples}
    embedded = metrics.embedder is not None or keys["embedder"] == "none"
    # The hash is of the whole stored answer, of which a bundle holds the text alone.
    skipped = {"answer", *(_JUDGED if judge != "none" else ())} | (set() if prompt_of else {"violations"})
    skipped |= set() if embedded else {"ss", "s", "unscored"}
    columns = next(iter(ours.values())).keys()
    found.compare("the columns", [(columns, row.keys()) for row in theirs.values()])
    for column in [name for name in columns if name not in skipped]:
        tolerance = EMBEDDING_TOLERANCE if column in ("ss", "s") else TOLERANCE
        found.compare(column, _pairs(ours, theirs, column), tolerance)
    if embedded:
        cells, figures = _by_name(figure_cells(asked.scenarios, scores)), _by_name(head.figures)
        pairs = [pair for part in ("value", "low", "high", "n", "total") for pair in _pairs(cells, figures, part)]
        tolerance = TOLERANCE if metrics.embedder is None else EMBEDDING_TOLERANCE
        found.compare("figures and intervals", pairs, 100 * tolerance)  # on the scale from 0 to 100
    else:
        found.unchecked.append("figures and intervals: they hold S")


def _claims(head: BundleHead, asked: Split) -> Iterator[str]:
    """What a bundle says and nothing in it could show."""
    known = {*metric_keys(Metrics(), asked), "references_sha256"}
    known |= {"items"} if head.protocol.get("items") == asked.fingerprint else set()
    asking = {key: value for key, value in head.protocol.items() if key not in known}
    said = listed([f"{quoted(key)[1:-1]} {quoted(value)}" for key, value in {**head.subject, **asking}.items()], 30)
    yield f"that {quoted(head.model)} gave these answers, asked with {said}"
    yield f"that h2htalk {quoted(head.package_version)} was used; how each answer ended; the hashes of stored answers"


def _by_name(figures: Mapping[str, Mapping[str, Any]]) -> _Rows:
    return {(language, name): cell for language, cells in figures.items() for name, cell in cells.items()}


def _part(whole: Split, ids: Collection[str]) -> Split:
    return replace(whole, scenarios=tuple(one for one in whole.scenarios if one.id in ids))


def _find_bundled(head: BundleHead, ids: Collection[str]) -> str:
    """Find the bundled split of the items. Nothing else that a bundle names is loaded: a forger can publish items."""
    of_bundle = head.split.get("version"), head.split.get("fingerprint")
    for name in list_splits():
        split = load_split(name)
        if (split.version, _part(split, ids).fingerprint) == of_bundle:
            return name
    source, commit = head.split.get("source") or head.split.get("name", ""), head.split.get("commit", "")
    # The tag may be at another commit now.
    name = re.sub("@[^#]*", lambda _: f"@{commit}", source) if commit else source
    raise ConfigError(f"the bundle's items are those of {quoted(source)}, it says; if you trust them: --split {name}")


def _open_metrics(head: BundleHead, found: Verification) -> Metrics:
    """The metrics that the bundle names; without its embedder where that is not on this machine."""
    text, rouge = head.protocol.get("embedder", "none"), head.protocol.get("rouge", "f1")
    contracts = head.protocol.get("contracts", "")
    name, _, revision = text.partition("(")[0].rpartition("@")
    name = "bge-m3" if name.startswith("bge-m3:") else name
    if name not in ("bge-m3", "minilm"):  # any other may be a folder, which the library may run code of
        if text != "none":
            found.unchecked.append(f"SS and S: embedder {quoted(text)} is neither bge-m3 nor minilm, and is not loaded")
    else:
        try:
            metrics = open_metrics(name, rouge, contracts)
            if metrics.embedder is not None and metrics.embedder.revision[:REVISION_LENGTH] == revision:
                return metrics
            found.unchecked.append(f"SS and S: embedder {name} is of another revision here than {quoted(revision)}")
        except ConfigError as error:
            found.unchecked.append(f"SS and S: embedder {name} is not on this machine: {error}")
    return open_metrics("none", rouge, contracts)


def _open_prompts(head: BundleHead, split: Split, found: Verification) -> PromptOf | None:
    """What the items were asked with, for the contract's leak rule; None where these prompts are not at hand."""
    prompts = PromptSet.load()
    if prompts.fingerprint != head.protocol.get("prompts"):
        found.unchecked.append("contract violations: the bundle's prompts are not those of this version")
        return None
    sap = Sap.parse(head.subject.get("sap", "full"))
    return lambda scenario: prompts.messages(scenario, split.personas[scenario.persona], sap)
