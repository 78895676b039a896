"""Verify a bundle: compute its scores again from its answers, and compare them with what it says."""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from h2htalk.benchmark.metrics.composite import Metrics, score_answers
from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.results_export.export import HEAD, SAMPLES, BundleHead, figures_of
from h2htalk.benchmark.results_export.verified_part import (
    describe_edition,
    describe_part,
    describe_unscored,
    load_edition,
)
from h2htalk.benchmark.score_run import (
    REFERENCES_LENGTH,
    REVISION_LENGTH,
    metric_keys,
    open_metrics,
)
from h2htalk.benchmark.statistics.estimates import FIELDS
from h2htalk.data import files
from h2htalk.data.imports.zip_members import read_members
from h2htalk.data.records import read_record
from h2htalk.data.responses import SampleKey, read_response
from h2htalk.data.settings import AnyPath, as_path
from h2htalk.data.signature import FILTERED_KEY, LEAKS_UNCHECKED, UNNAMED
from h2htalk.data.splits import Split, list_splits, load_split, with_references
from h2htalk.errors import ConfigError, DataError, counted, listed, quoted

_JUDGED = {"rating", "j", "people", "unjudged"}  # of judges and people, who cannot be asked again
_ANSWER = {"text", "finish_reason", "failure"}  # keys of a line that are no scores
_LARGEST = {HEAD: 1 << 22, SAMPLES: 1 << 28}  # bytes
TOLERANCE = 1e-9
# Embeddings are numbers of single precision: their last digits depend on the machine.
EMBEDDING_TOLERANCE = 1e-5
Rows = Mapping[SampleKey, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Verification:
    """What of a bundle was confirmed on which split, what differs, and what was not computed again: not verified.

    `part` says which items the bundle holds: they alone are verified. `edition`: of an earlier version of a bundled
    split, which one it is and what was corrected since. `claims` are what no bundle can show, and no computation
    confirms.
    """

    split: str
    part: str
    edition: str = ""
    claims: list[str] = field(default_factory=list)
    matches: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def compare(
        self, name: str, pairs: Iterable[tuple[Any, Any]], tolerance: float = TOLERANCE
    ) -> None:
        """Compare our values with the bundle's."""
        apart = [_distance(ours, theirs) for ours, theirs in pairs]
        if (worst := max(apart, default=0.0)) <= tolerance:
            self.matches.append(
                name if worst <= TOLERANCE else f"{name}, but for the last digits ({worst:.0e})"
            )
        else:
            most = "" if math.isinf(worst) else f", by up to {worst:.3g}"
            self.differs.append(
                f"{name}: {sum(one > tolerance for one in apart):,} of {len(apart):,} values{most}"
            )


def _distance(ours: Any, theirs: Any) -> float:
    """How far two values are apart; infinitely where they are not equal and one is no number."""
    if ours == theirs:
        return 0.0
    try:
        return distance if math.isfinite(distance := abs(ours - theirs)) else math.inf
    except (TypeError, OverflowError):  # no numbers, or one with hundreds of digits
        return math.inf


def verify_results(
    bundle: AnyPath, split: str | None = None, references: AnyPath | None = None
) -> Verification:
    """Compute the scores of a bundle, a folder or .zip of `export_results`, again from its responses, and compare them.

    Args:
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
    path = as_path(bundle, "bundle")
    text = {name: _read(path, name, most) for name, most in _LARGEST.items()}
    head = read_record(BundleHead, text[HEAD], f"{path}: {HEAD}: not a bundle of this version")
    rows = _read_rows(text[SAMPLES], head.samples)
    ids = {item for item, _ in rows}
    if not rows or len(rows) != len(ids) * head.samples:
        raise DataError(
            f"{path}: {counted(len(rows), 'line')} of {quoted(head.samples)} samples an item"
        )
    name, whole = load_edition(split or _find_bundled(head, ids), head.split.get("version", ""))
    asked = _part(whole, ids)
    if unknown := sorted(ids - {s.id for s in asked.scenarios}):
        raise DataError(
            f"{path}: {counted(len(unknown), 'item')} that its split lacks: {quoted(unknown[0])}"
        )
    source = f"{name} ({whole.name} {whole.version}{whole.commit and f', commit {whole.commit}'})"
    part, is_a_choice = describe_part(whole, asked)
    found = Verification(source, part, edition=describe_edition(name, whole, asked))
    if not is_a_choice:
        found.unchecked.append(
            "the choice of these items: nothing says why the others are left out"
        )
    found.compare(
        "the hash of the samples",
        [(hashlib.sha256(text[SAMPLES].encode()).hexdigest(), head.sha256)],
    )
    if "samples" in head.subject:
        found.compare("the samples an item", [(head.subject["samples"], str(head.samples))])
    same = asked.fingerprint == head.split.get("fingerprint")
    version = head.split.get("version", whole.version)
    if same or version == whole.version:
        found.compare(f"the items of {whole.name} {whole.version}", [(same, True)])
        if "items" in head.protocol:
            found.compare(
                "the items that the signature names", [(head.protocol["items"], asked.fingerprint)]
            )
    else:
        which = f"those of version {quoted(version)}, and {name} is version {whole.version}"
        found.unchecked.append(
            f"the items: the bundle says they are {which}; name the split of that version: --split"
        )
    private = "references_sha256" in head.protocol
    if references is not None and not private:
        raise ConfigError(
            "the bundle's answers were not scored with private references; leave out --references"
        )
    if private and references is None:
        found.unchecked.append("the scores: name the file of private references with --references")
    elif same:
        asked = (
            asked
            if references is None
            else with_references(asked, as_path(references, "references"))
        )
        _compare_scores(found, head, asked, rows)
    known = {*metric_keys(Metrics(), asked), "references_sha256"}
    known.add("items")
    claims = {
        **head.subject,
        **{key: value for key, value in head.protocol.items() if key not in known},
    }
    said = listed([f"{quoted(key)[1:-1]} {quoted(value)}" for key, value in claims.items()], 30)
    found.claims.append(f"that {quoted(head.model)} gave these answers, asked with {said}")
    other = "how each answer ended; the hashes of stored answers"
    found.claims.append(f"that h2htalk {quoted(head.package_version)} was used; {other}")
    return found


def _read(path: Path, name: str, most: int) -> str:
    try:
        if path.is_dir():
            return files.read_bounded(path / name, most).decode()
        return next(content for _, content in read_members(path, lambda _: [name], most)).decode()
    except (OSError, ValueError, DataError) as error:
        raise DataError(f"{path}: not a bundle: {name} cannot be read: {error}") from error


def _read_rows(text: str, samples: int) -> dict[SampleKey, dict[str, Any]]:
    """Read the lines by item and sample, each with its `answer`. Raises DataError, also for a second line."""
    rows: dict[SampleKey, dict[str, Any]] = {}
    for number, line in enumerate(io.StringIO(text), 1):
        where = f"{SAMPLES}:{number}"
        record = files.parse_object(line.encode(), where, unique_keys=True)
        answer = read_response(
            {key: record[key] for key in record.keys() & {"id", "sample", *_ANSWER}}, where
        )
        key = answer.id, answer.sample
        if answer.sample >= samples:
            raise DataError(
                f"{where}: sample {answer.sample}, but the bundle has {samples:,} an item, from 0 on"
            )
        if key in rows:
            raise DataError(
                f"{where}: a second line of {quoted(answer.id)}, sample {answer.sample}"
            )
        rows[key] = {name: value for name, value in record.items() if name not in _ANSWER} | {
            "answer": answer
        }
    return rows


def _compare_scores(found: Verification, head: BundleHead, asked: Split, rows: Rows) -> None:
    metrics = _open_metrics(head, found)
    prompts = PromptSet.load()
    prompt_of = None
    lacks_leak_rule = head.protocol.get("contracts", "").endswith(LEAKS_UNCHECKED)
    if lacks_leak_rule:  # scored as it was: both without the rule
        found.unchecked.append(
            "the contract's leak rule: the bundle's answers were scored without it"
        )
    elif prompts.fingerprint == head.protocol.get("prompts"):  # for the contract's leak rule
        prompt_of = prompts.prompt_of(asked, Sap.parse(head.subject.get("sap", "full")))
    else:
        found.unchecked.append(
            "contract violations: the bundle's prompts are not those of this version"
        )
    keys = metric_keys(metrics, asked) | {"embedder": head.protocol.get("embedder", "none")}
    if lacks_leak_rule:
        keys["contracts"] += LEAKS_UNCHECKED
    if (judge := head.protocol.get("judge", "none")) != "none":
        keys["judge"] = judge
        found.unchecked.append(
            f"ratings of {quoted(judge)}, and J: the figures here are those of S"
        )
    if "references_sha256" in head.protocol:
        keys["references_sha256"] = asked.references_sha256[:REFERENCES_LENGTH]
    signed = {**UNNAMED, **head.protocol}
    if (
        signed.get("metrics") != keys["metrics"]
    ):  # of an earlier version, or with metrics that are not installed here
        theirs_are = quoted(signed.get("metrics", "none"))
        ours_are = quoted(keys["metrics"])
        found.unchecked.append(
            f"scores and figures: the bundle's metrics are {theirs_are}, those of this version {ours_are}"
        )
        return
    found.compare(
        "the versions of the metrics", [(value, signed.get(key)) for key, value in keys.items()]
    )
    scores = score_answers(
        asked, {key: row["answer"] for key, row in rows.items()}, head.samples, metrics, prompt_of
    )
    ours = {(row.id, row.sample): row.to_dict() for item in scores.values() for row in item.samples}
    embedded = metrics.embedder is not None or keys["embedder"] == "none"
    # The hash is of the whole stored answer, of which a bundle holds the text alone.
    skipped = {"answer"} | (_JUDGED if judge != "none" else set())
    if prompt_of is None and not lacks_leak_rule:
        skipped.add("violations")
    if not embedded:
        skipped |= {"ss", "s", "unscored"}
    unscored = describe_unscored(row["unscored"] for row in ours.values())
    if unscored:
        found.unchecked.append(unscored)
    columns = {name: None for row in ours.values() for name in row}.keys()
    found.compare("the columns", [(columns, row.keys()) for row in rows.values()])
    for column in [name for name in columns if name not in skipped]:
        tolerance = EMBEDDING_TOLERANCE if column in ("ss", "s") else TOLERANCE
        found.compare(
            column,
            [(row.get(column), rows[key].get(column)) for key, row in ours.items()],
            tolerance,
        )
    if not embedded:
        found.unchecked.append("figures and intervals: they hold S")
        return
    results = figures_of(asked.scenarios, scores)
    missing = (None,) * len(FIELDS)
    pairs: list[tuple[float | None, float | None]] = []
    for task in results.keys() | head.figures.keys():
        ours_of_task = results[task].estimate.fields if task in results else missing
        theirs = head.figures[task].fields if task in head.figures else missing
        pairs += zip(ours_of_task, theirs, strict=True)
    tolerance = TOLERANCE if metrics.embedder is None else EMBEDDING_TOLERANCE
    found.compare("figures and intervals", pairs, 100 * tolerance)  # on the scale from 0 to 100


def _part(whole: Split, ids: Collection[str]) -> Split:
    # A run asks the turns of cases: its fingerprint is that of the turns.
    return replace(
        whole, scenarios=tuple(one for one in whole.scenarios if one.id in ids), cases=()
    )


def _find_bundled(head: BundleHead, ids: Collection[str]) -> str:
    """Find the bundled split of the items. Nothing else that a bundle names is loaded: a forger can publish items."""
    for name in list_splits():
        split = load_split(name)
        if (split.version, _part(split, ids).fingerprint) == (
            head.split.get("version"),
            head.split.get("fingerprint"),
        ):
            return name
    source = head.split.get("source") or head.split.get("name", "")
    commit = head.split.get("commit", "")
    # The tag may be at another commit now.
    name = re.sub("@[^#]*", lambda _: f"@{commit}", source) if commit else source
    raise ConfigError(
        f"the bundle's items are those of {quoted(source)}, it says; if you trust them: --split {name}"
    )


def _open_metrics(head: BundleHead, found: Verification) -> Metrics:
    """The metrics that the bundle names; without its embedder where that is not on this machine."""
    text = head.protocol.get("embedder", "none")
    rouge = head.protocol.get("rouge", "f1")
    contracts = head.protocol.get("contracts", "")
    rule: Any = head.protocol.get(FILTERED_KEY, "refusal")
    name, _, revision = text.partition("(")[0].rpartition("@")
    name = "bge-m3" if name.startswith("bge-m3:") else name
    why = "is neither bge-m3 nor minilm, and is not loaded"  # it may be a folder, which the library may run code of
    if name in ("bge-m3", "minilm"):
        try:
            metrics = open_metrics(name, rouge, contracts, rule)
            if (
                metrics.embedder is not None
                and metrics.embedder.revision[:REVISION_LENGTH] == revision
            ):
                return metrics
            why = "is of another revision here"
        except ConfigError as error:
            why = f"is not on this machine: {error}"
    if text != "none":
        found.unchecked.append(f"SS and S: embedder {quoted(text)} {why}")
    return open_metrics("none", rouge, contracts, rule)
