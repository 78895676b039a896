"""Check a release, or a split, by the gates that stop a release."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.curation.licences import find_licence, mixture
from h2htalk.curation.release.build import Release
from h2htalk.curation.release.content import ReleaseContent, read_content
from h2htalk.curation.release.gates import GATES, GateContext, read_stored, run_gates
from h2htalk.curation.release.invented_values import InventedValues
from h2htalk.curation.release.items import ReleaseItem
from h2htalk.curation.release.settings import TOTAL, ReleaseSpec, read_stored_spec, spec_of
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import ErasedIds, require_erased
from h2htalk.data.releases.hub import release_folder
from h2htalk.data.releases.release_folder import (
    DEV,
    HUB,
    MANIFEST,
    PRIVATE_REFERENCES,
    SPEC,
    TEST,
    Manifest,
    is_release,
    item_rows,
    private_folder,
    read_manifest,
    release_hash,
    verify_files,
)
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError
from h2htalk.text.escaping import printable
from h2htalk.text.help_lines import read_help_lines

PERSONAL_DATA = "personal_data"


def check_release(folder: str | Path) -> Release:
    """Run all gates over a release, and hold its files against its manifest; or over a split.

    `folder`: whatever is a split for `load_split`; a release, also `hub:OWNER/NAME@TAG`, is checked whole.

    A split has no votes: all gates but `decisions` run over it. Names, dates of birth and addresses of nobody (invented
    by its authors, or public) stand in `invented.txt` of its folder, one a line, as a finding prints them; numbers and
    e-mail addresses cannot.

    Which values anonymisation invented is known from the private folder beside the release or split. A copy without it
    is `unchecked` for personal data, and for private references.

    Raises:
        DataError: a file is missing or was changed, or facts are not what a build writes.
    """
    name = str(folder)
    if not is_release(Path(name)) and (not name.startswith(HUB) or "#" in name):
        return _check_split(name)
    folder = release_folder(name)
    verify_files(folder, read_manifest(folder))
    private = private_folder(folder)
    manifest, content = read_content(folder, private / PRIVATE_REFERENCES)
    for name, kind in {"allowed": list, "quotas": dict, "acceptance": dict}.items():
        if not isinstance(manifest.facts.get(name, kind()), kind):
            raise DataError(f"{folder / MANIFEST}: facts.{name}: not what a build writes; get the release again")
    try:
        spec, known = read_stored_spec(private / SPEC), InventedValues.read(private)
    except FileNotFoundError:
        spec, known = _spec_of_manifest(manifest, folder), None
    allowed, lines = read_stored(manifest.facts.get("allowed", ()), str(folder / MANIFEST))
    notes = tuple(printable(f"allowed by the owner: {line}") for line in lines)
    lacks = bool(manifest.references_sha256) and not (private / PRIVATE_REFERENCES).is_file()
    given = GateContext(spec, known or InventedValues(), allowed=allowed, unread=lacks)
    release = Release(folder, (), content, release_hash(folder), notes=notes)
    return _run(release, given, () if known else (PERSONAL_DATA,))


def require_erased_release(folder: Path) -> None:
    """Raise DataError where the workspace of a release, if it is at hand, erased somebody whose words it holds."""
    try:
        workspace = Workspace(Path(read_stored_spec(private_folder(folder) / SPEC).workspace))
    except FileNotFoundError:
        return
    require_erased(workspace.path)
    erased = ErasedIds(workspace.erased())
    if any(map(erased.covers, item_rows(folder, read_manifest(folder)))):
        raise DataError(
            f"{folder}: holds items that were erased from {workspace.path}: repeat `h2htalk curate erase` with "
            f"`--also {folder}`"
        )


def _check_split(name: str) -> Release:
    split = load_split(name)
    allow = [line.number for line in read_help_lines().lines]
    items = () if split.cases else tuple(map(ReleaseItem, split.scenarios))
    licences = {one for item in items for one in (item.scenario.licence, *item.reference_licences())}
    licences |= {case.licence for case in split.cases}
    named = find_licence(split.licence)
    mixed = None if named or len(licences) < 2 else mixture(licences)
    licence = named.id if named else mixture(licences) or "CC0-1.0"
    known = InventedValues.find(name, items) if split.surrogates else InventedValues()
    allow += known.allow if known else ()
    raw: dict[str, Any] = {"name": "split", "version": "1.0.0", "licence": licence, "workspace": ".", "cases": "."}
    spec = spec_of(raw | {"other_splits": [], "quotas": {TOTAL: 0}, "allow": allow}, Path(), name)
    notes = (f"licences: the split names none; its items may be released under {mixed}",) if mixed else ()
    content = ReleaseContent({TEST: items}, split.cases, split.personas)
    private = bool(split.references_sha256)
    given = GateContext(spec, known or InventedValues(), invented=frozenset(split.invented), unread=private)
    left_out = ["decisions", *([] if known else [PERSONAL_DATA])]
    return _run(Release(None, (), content, split.fingerprint, notes=notes), given, left_out)


def _run(release: Release, context: GateContext, left_out: Collection[str]) -> Release:
    """Run the gates but those that are left out."""
    found = run_gates(release.content, context, [gate for gate in GATES.values() if gate.name not in left_out])
    lacking = {"personal data": PERSONAL_DATA in left_out, "private references": context.unread}
    unchecked = tuple(f"{name}: not checked, needs the private folder" for name, lacks in lacking.items() if lacks)
    return replace(release, findings=tuple(found), unchecked=unchecked)


def _spec_of_manifest(manifest: Manifest, folder: Path) -> ReleaseSpec:
    """What is known of the specification where the private folder is not at hand."""
    quotas, acceptance = dict(manifest.facts.get("quotas", {})), manifest.facts.get("acceptance", {})
    raw = {name: getattr(manifest, name) for name in ("name", "version", "licence")}
    raw |= {"workspace": ".", "cases": ".", "other_splits": [], "acceptance": acceptance, "dev": quotas.pop(DEV, 0)}
    return spec_of(raw | {"quotas": {TOTAL: 0, **quotas}}, folder, str(folder / MANIFEST))
