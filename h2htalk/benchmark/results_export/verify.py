"""Verify a bundle: compute its scores again from its answers, and compare them with what it says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import replace

from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.results_export.bundle_files import Bundle, read_bundle
from h2htalk.benchmark.results_export.export import BundleHead
from h2htalk.benchmark.results_export.verification import Verification
from h2htalk.benchmark.results_export.verified_part import (
    describe_edition,
    describe_part,
    load_edition,
)
from h2htalk.benchmark.results_export.verify_scores import compare_scores
from h2htalk.benchmark.score_run import metric_keys
from h2htalk.data.settings import AnyPath, as_path
from h2htalk.data.splits import Split, list_splits, load_split, with_references
from h2htalk.errors import ConfigError, DataError, counted, listed, quoted


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
    loaded = read_bundle(path)
    head = loaded.head
    split_name = split or _find_bundled(head, loaded.ids)
    name, full_split = load_edition(split_name, head.split.get("version", ""))
    bundle_split = _part(full_split, loaded.ids)
    unknown = sorted(loaded.ids - {scenario.id for scenario in bundle_split.scenarios})
    if unknown:
        number = counted(len(unknown), "item")
        raise DataError(f"{path}: {number} that its split lacks: {quoted(unknown[0])}")
    part, is_a_choice = describe_part(full_split, bundle_split)
    verification = Verification(
        split=_describe_source(name, full_split),
        part=part,
        edition=describe_edition(name, full_split, bundle_split),
    )
    if not is_a_choice:
        verification.unchecked.append(
            "the choice of these items: nothing says why the others are left out"
        )
    _compare_samples(verification, loaded)
    _compare_items(verification, head, name, full_split, bundle_split)
    is_private = "references_sha256" in head.protocol
    if references is not None and not is_private:
        raise ConfigError(
            "the bundle's answers were not scored with private references; leave out --references"
        )
    if is_private and references is None:
        verification.unchecked.append(
            "the scores: name the file of private references with --references"
        )
    elif _has_items(head, bundle_split):
        if references is not None:
            bundle_split = with_references(bundle_split, as_path(references, "references"))
        compare_scores(verification, loaded, bundle_split)
    verification.claims.extend(_claims(head, bundle_split))
    return verification


def _describe_source(name: str, split: Split) -> str:
    commit = f", commit {split.commit}" if split.commit else ""
    return f"{name} ({split.name} {split.version}{commit})"


def _has_items(head: BundleHead, bundle_split: Split) -> bool:
    return bundle_split.fingerprint == head.split.get("fingerprint")


def _compare_samples(verification: Verification, bundle: Bundle) -> None:
    head = bundle.head
    digest = hashlib.sha256(bundle.samples_text.encode()).hexdigest()
    verification.compare("the hash of the samples", [(digest, head.sha256)])
    if "samples" in head.subject:
        subject_samples = head.subject["samples"]
        verification.compare("the samples an item", [(subject_samples, str(head.samples))])


def _compare_items(
    verification: Verification, head: BundleHead, name: str, full_split: Split, bundle_split: Split
) -> None:
    is_same = _has_items(head, bundle_split)
    version = head.split.get("version", full_split.version)
    if is_same or version == full_split.version:
        items = f"the items of {full_split.name} {full_split.version}"
        verification.compare(items, [(is_same, True)])
        if "items" in head.protocol:
            pair = head.protocol["items"], bundle_split.fingerprint
            verification.compare("the items that the signature names", [pair])
        return
    versions = f"those of version {quoted(version)}, and {name} is version {full_split.version}"
    verification.unchecked.append(
        f"the items: the bundle says they are {versions}; name the split of that version: --split"
    )


def _claims(head: BundleHead, bundle_split: Split) -> list[str]:
    """What no bundle can show, and no computation confirms."""
    computed = {*metric_keys(Metrics(), bundle_split), "references_sha256", "items"}
    claims = dict(head.subject)
    for key, value in head.protocol.items():
        if key not in computed:
            claims[key] = value
    settings = listed([f"{quoted(key)[1:-1]} {quoted(value)}" for key, value in claims.items()], 30)
    endings = "how each answer ended; the hashes of stored answers"
    return [
        f"that {quoted(head.model)} gave these answers, asked with {settings}",
        f"that h2htalk {quoted(head.package_version)} was used; {endings}",
    ]


def _part(split: Split, ids: Collection[str]) -> Split:
    # A run asks the turns of cases: its fingerprint is that of the turns.
    scenarios = tuple(scenario for scenario in split.scenarios if scenario.id in ids)
    return replace(split, scenarios=scenarios, cases=())


def _find_bundled(head: BundleHead, ids: Collection[str]) -> str:
    """Find the bundled split of the items. Nothing else that a bundle names is loaded: a forger can publish items."""
    version = head.split.get("version")
    for name in list_splits():
        split = load_split(name)
        if split.version == version and _has_items(head, _part(split, ids)):
            return name
    source = head.split.get("source") or head.split.get("name", "")
    commit = head.split.get("commit", "")
    # The tag may be at another commit now.
    name = re.sub("@[^#]*", lambda _: f"@{commit}", source) if commit else source
    raise ConfigError(
        f"the bundle's items are those of {quoted(source)}, it says; if you trust them: --split {name}"
    )
