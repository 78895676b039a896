"""Check a release, or a split, by the gates that stop a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from h2htalk.curation.release.build import SPEC, Release, surrogates_of
from h2htalk.curation.release.content import ReleaseContent, read_content
from h2htalk.curation.release.gates import GATES, GateContext, run_gates
from h2htalk.curation.release.items import ReleaseItem
from h2htalk.curation.release.settings import TOTAL, ReleaseSpec, read_stored_spec, spec_of
from h2htalk.curation.workspace import Workspace
from h2htalk.data.arguments import as_path
from h2htalk.data.help_lines import read_help_lines
from h2htalk.data.releases.release_folder import (
    DEV,
    MANIFEST,
    PRIVATE_REFERENCES,
    TEST,
    Manifest,
    is_release,
    private_folder,
    read_manifest,
    release_hash,
    verify_files,
)
from h2htalk.data.splits import load_split, resolve_split


def check_release(folder: str | Path) -> Release:
    """Run all gates over a release's folder, and hold its files against its manifest; or over a split.

    A split has no votes: all gates but `decisions` run over it. Names, dates of birth and addresses of nobody (invented
    by its authors, or public) stand in `invented.txt` of its folder, one a line, as a finding prints them; numbers and
    e-mail addresses cannot.

    What anonymisation put into the texts is known where the private folder beside the release, and the workspace that
    it names, are at hand; else every surrogate counts as personal data.

    Raises:
        DataError: a file is missing or was changed.
    """
    if not is_release(Path(folder)):
        return _check_split(str(folder))
    folder = as_path(folder, "folder")
    verify_files(folder, read_manifest(folder))
    private = private_folder(folder)
    manifest, content = read_content(folder, private / PRIVATE_REFERENCES)
    try:
        spec = read_stored_spec(private / SPEC)
        context = GateContext(spec, surrogates_of(Workspace(Path(spec.workspace)), tuple(content.items())))
    except FileNotFoundError:
        context = GateContext(_spec_of_manifest(manifest, folder))
    return Release(folder, tuple(run_gates(content, context)), content, release_hash(folder))


def _check_split(name: str) -> Release:
    split, source = load_split(name), resolve_split(name)
    allow = [line.number for line in read_help_lines().lines]
    items = () if split.cases else tuple(map(ReleaseItem, split.scenarios))
    content = ReleaseContent({TEST: items}, split.cases, split.personas)
    licences = {item.licence for item in split.items}
    licence = licences.pop() if len(licences) == 1 else split.licence
    raw: dict[str, Any] = {"name": "split", "version": "1.0.0", "licence": licence, "workspace": ".", "cases": "."}
    spec = spec_of(raw | {"other_splits": [], "quotas": {TOTAL: 0}, "allow": allow}, source, name)
    context = GateContext(spec, invented=frozenset(split.invented))
    gates = [gate for gate in GATES.values() if gate.name != "decisions"]
    return Release(
        None,
        tuple(run_gates(content, context, gates)),
        content,
        split.fingerprint,
    )


def _spec_of_manifest(manifest: Manifest, folder: Path) -> ReleaseSpec:
    """What is known of the specification where the private folder is not at hand."""
    quotas, acceptance = dict(manifest.facts.get("quotas", {})), manifest.facts.get("acceptance", {})
    raw = {name: getattr(manifest, name) for name in ("name", "version", "licence")}
    raw |= {"workspace": ".", "cases": ".", "other_splits": [], "acceptance": acceptance, "dev": quotas.pop(DEV, 0)}
    return spec_of(raw | {"quotas": {TOTAL: 0, **quotas}}, folder, str(folder / MANIFEST))
