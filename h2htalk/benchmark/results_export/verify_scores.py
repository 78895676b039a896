"""Compute the scores and figures of a bundle again from its answers, and compare them with what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from h2htalk.benchmark.metrics.composite import Metrics, Scores, score_answers
from h2htalk.benchmark.prompts.prompt_set import PromptOf, PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.results_export.bundle_files import Bundle
from h2htalk.benchmark.results_export.export import BundleHead, figures_of
from h2htalk.benchmark.results_export.verification import TOLERANCE, Verification
from h2htalk.benchmark.results_export.verified_part import describe_unscored
from h2htalk.benchmark.score_run import (
    REFERENCES_LENGTH,
    REVISION_LENGTH,
    metric_keys,
    open_metrics,
)
from h2htalk.benchmark.statistics.estimates import FIELDS
from h2htalk.data.signature import FILTERED_KEY, LEAKS_UNCHECKED, UNNAMED
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, quoted

# Embeddings are numbers of single precision: their last digits depend on the machine.
EMBEDDING_TOLERANCE = 1e-5
# The columns of judges and people, who cannot be asked again.
_JUDGED = {"rating", "j", "people", "unjudged"}


def compare_scores(verification: Verification, bundle: Bundle, split: Split) -> None:
    """Compare scores, figures and the versions of the metrics; `split` holds the items of the bundle alone."""
    head = bundle.head
    metrics = _open_metrics(head, verification)
    prompt_of = _prompts_for_leaks(head, split, verification)
    keys = _expected_keys(head, metrics, split)
    judge = keys["judge"]
    if judge != "none":
        verification.unchecked.append(
            f"ratings of {quoted(judge)}, and J: the figures here are those of S"
        )
    signed = {**UNNAMED, **head.protocol}
    # The bundle is of an earlier version, or its metrics are not installed here.
    if signed.get("metrics") != keys["metrics"]:
        theirs = quoted(signed.get("metrics", "none"))
        ours = quoted(keys["metrics"])
        verification.unchecked.append(
            f"scores and figures: the bundle's metrics are {theirs}, those of this version {ours}"
        )
        return
    versions = [(value, signed.get(key)) for key, value in keys.items()]
    verification.compare("the versions of the metrics", versions)
    answers = {key: row["answer"] for key, row in bundle.rows.items()}
    scores = score_answers(split, answers, head.samples, metrics, prompt_of)
    has_s = metrics.embedder is not None or keys["embedder"] == "none"
    # The column `answer` is the hash of the whole stored answer, of which a bundle holds the text alone.
    skipped = {"answer"}
    if judge != "none":
        skipped |= _JUDGED
    if prompt_of is None and not _lacks_leak_rule(head):
        skipped.add("violations")
    if not has_s:
        skipped |= {"ss", "s", "unscored"}
    _compare_columns(verification, bundle, scores, skipped)
    if has_s:
        _compare_figures(verification, head, split, scores, metrics)
    else:
        verification.unchecked.append("figures and intervals: they hold S")


def _open_metrics(head: BundleHead, verification: Verification) -> Metrics:
    """The metrics that the bundle names; without its embedder where that is not on this machine."""
    text = head.protocol.get("embedder", "none")
    rouge = head.protocol.get("rouge", "f1")
    contracts = head.protocol.get("contracts", "")
    rule: Any = head.protocol.get(FILTERED_KEY, "refusal")
    name, _, revision = text.partition("(")[0].rpartition("@")
    name = "bge-m3" if name.startswith("bge-m3:") else name
    # Another name may be a folder, which the library may run code of.
    why = "is neither bge-m3 nor minilm, and is not loaded"
    if name in ("bge-m3", "minilm"):
        try:
            metrics = open_metrics(name, rouge, contracts, rule)
            embedder = metrics.embedder
            if embedder is not None and embedder.revision[:REVISION_LENGTH] == revision:
                return metrics
            why = "is of another revision here"
        except ConfigError as error:
            why = f"is not on this machine: {error}"
    if text != "none":
        verification.unchecked.append(f"SS and S: embedder {quoted(text)} {why}")
    return open_metrics("none", rouge, contracts, rule)


def _lacks_leak_rule(head: BundleHead) -> bool:
    return head.protocol.get("contracts", "").endswith(LEAKS_UNCHECKED)


def _prompts_for_leaks(
    head: BundleHead, split: Split, verification: Verification
) -> PromptOf | None:
    """The prompts that the contract's leak rule reads; None where it cannot be applied."""
    if _lacks_leak_rule(head):
        # The answers are scored here as they were then, without the rule.
        verification.unchecked.append(
            "the contract's leak rule: the bundle's answers were scored without it"
        )
        return None
    prompts = PromptSet.load()
    if prompts.fingerprint != head.protocol.get("prompts"):
        verification.unchecked.append(
            "contract violations: the bundle's prompts are not those of this version"
        )
        return None
    return prompts.prompt_of(split, Sap.parse(head.subject.get("sap", "full")))


def _expected_keys(head: BundleHead, metrics: Metrics, split: Split) -> dict[str, str]:
    """What the bundle's protocol should say of scoring; judge and embedder are those that it names."""
    keys = metric_keys(metrics, split)
    keys["embedder"] = head.protocol.get("embedder", "none")
    keys["judge"] = head.protocol.get("judge", "none")
    if _lacks_leak_rule(head):
        keys["contracts"] += LEAKS_UNCHECKED
    if "references_sha256" in head.protocol:
        keys["references_sha256"] = split.references_sha256[:REFERENCES_LENGTH]
    return keys


def _compare_columns(
    verification: Verification, bundle: Bundle, scores: Scores, skipped: set[str]
) -> None:
    ours: dict[tuple[str, int], Mapping[str, Any]] = {}
    for score in scores.values():
        for sample in score.samples:
            ours[sample.id, sample.sample] = sample.to_dict()
    unscored = describe_unscored(row["unscored"] for row in ours.values())
    if unscored:
        verification.unchecked.append(unscored)
    columns: list[str] = []
    for row in ours.values():
        for name in row:
            if name not in columns:
                columns.append(name)
    in_bundle = [(set(columns), row.keys()) for row in bundle.rows.values()]
    verification.compare("the columns", in_bundle)
    for column in columns:
        if column not in skipped:
            tolerance = EMBEDDING_TOLERANCE if column in ("ss", "s") else TOLERANCE
            pairs = []
            for key, row in ours.items():
                pairs.append((row.get(column), bundle.rows[key].get(column)))
            verification.compare(column, pairs, tolerance)


def _compare_figures(
    verification: Verification, head: BundleHead, split: Split, scores: Scores, metrics: Metrics
) -> None:
    results = figures_of(split.scenarios, scores)
    missing = tuple(None for _ in FIELDS)
    pairs: list[tuple[float | None, float | None]] = []
    for task in results.keys() | head.figures.keys():
        ours = results[task].estimate.fields if task in results else missing
        theirs = head.figures[task].fields if task in head.figures else missing
        pairs += zip(ours, theirs, strict=True)
    tolerance = TOLERANCE if metrics.embedder is None else EMBEDDING_TOLERANCE
    # Figures are on the scale from 0 to 100, so the tolerance is 100 times that of a score.
    verification.compare("figures and intervals", pairs, 100 * tolerance)
