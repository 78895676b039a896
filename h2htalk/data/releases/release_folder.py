"""The folder of a release: its manifest, its rows, the private folder beside it, and how items are erased from it.

RELEASE/
  release.json      the manifest: name, version, licence, rows by config and split, the SHA-256 of every other file
  README.md         the card; croissant.json, eval.yaml: metadata for programs
  history.json      ids that were ever in a split, so that no later release moves them to another one
  tombstones.jsonl  ids of items that were erased from earlier releases
  reads.jsonl       who has read each item, and what for (`data.readers`)
  data/CONFIG/SPLIT-00000-of-00001.parquet
  personas/*.toml   whom the scenarios name
  figures/*
RELEASE.private/    never published: the specification, the list of invented values, links to runs
"""

from __future__ import annotations

import hashlib
import html
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, StringConstraints

from h2htalk.data import files
from h2htalk.data.case import STUDIES, Case
from h2htalk.data.erasure.folder_kinds import (
    ErasableFolder,
    Record,
    remove_for_good,
    require_erased,
)
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.data.records import read_record, strict_record
from h2htalk.data.scenario import TAGS, Scenario
from h2htalk.errors import ConfigError, DataError, listed, quoted, suggest

MANIFEST = "release.json"
CARD = "README.md"
HISTORY = "history.json"
TOMBSTONES = "tombstones.jsonl"
METADATA = "croissant.json"
FIGURES_FOLDER = "figures"
HUB = "hub:"  # OWNER/NAME@TAG follows
SPEC = "spec.json"  # in the private folder
TEST = "test"
DEV = "dev"
VOTES = "votes"
ERASED_ITEMS = "erased_items"  # the fact of how many items left the folder after it was built
SPLITS = (TEST, DEV)
# Columns that hold JSON text, since their fields differ from row to row.
_JSON = ("inputs", "provenance", "metadata", "sessions", "history", "points", "facts")
_COLUMNS = (
    "id", "subtask", "language", "persona", "messages", "inputs", "references", *TAGS, "licence", "provenance",
    "metadata", "canary",
)  # fmt: skip
SHA256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
# A config or a split, which is a part of the name of a file; a path inside the release, no part of it hidden.
_Name = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9][A-Za-z0-9_-]*$")]
_Inside = Annotated[str, StringConstraints(pattern=r"^[^./\\][^/\\]*(/[^./\\][^/\\]*)*$")]


@strict_record
class Manifest:
    """`release.json`: the number of rows by config and split, and the SHA-256 of every other published file by path.

    A model that knows the `canary` was trained on the release. `facts` are what the card shows: counts, agreement,
    funnel, quotas.
    """

    name: str
    version: str
    licence: str
    description: str
    date: str
    canary: str
    configs: Mapping[_Name, Mapping[_Name, Annotated[int, Field(ge=0)]]]
    files: Mapping[_Inside, SHA256]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        files.write_json(folder / MANIFEST, asdict(self))


def is_release(folder: Path) -> bool:
    """Whether a folder holds a release."""
    return os.path.isfile(folder / MANIFEST)  # pathlib raises on a name that is too long


def private_folder(release: Path) -> Path:
    """The folder beside a release that is never published."""
    path = release.resolve()
    return path.with_name(f"{path.name}.private")


def read_manifest(folder: Path) -> Manifest:
    """Read a release's manifest. Raises DataError, also for a file outside the folder, or a split without its file."""
    path = folder / MANIFEST
    require_erased(folder)
    try:
        manifest = read_record(Manifest, files.read_bounded(path), str(path))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read: {error.strerror or error}; is {folder} a release?"
        ) from error
    for config, splits in manifest.configs.items():
        for split in splits:
            name = data_file(config, split)
            if name not in manifest.files:
                raise DataError(
                    f"{path}: configs: files does not list {name}; get the release again"
                )
    return manifest


def release_hash(folder: Path) -> str:
    """What identifies a release: the first 16 hexadecimal digits of the SHA-256 of its manifest."""
    return files.sha256_of(folder / MANIFEST)[:16]


def hash_files(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file of a release but its manifest, by path."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != MANIFEST:
            hashes[name] = files.sha256_of(path)
    return hashes


def verify_files(folder: Path, manifest: Manifest) -> None:
    """Raise DataError, naming the files, unless the folder holds every file of the manifest unchanged."""
    wrong = []
    for name, sha256 in manifest.files.items():
        path = folder / name
        if not os.path.isfile(path) or files.sha256_of(path) != sha256:
            wrong.append(name)
    if wrong:
        raise DataError(
            f"{folder}: {listed(wrong)}: missing, or not the content that release.json records; "
            "get the release again, or build it again"
        )


def data_file(config: str, split: str) -> str:
    """The path of a split's rows inside a release, in the Hub's layout."""
    return f"data/{config}/{split}-00000-of-00001.parquet"


def scenario_row(scenario: Scenario, messages: list[dict[str, str]], canary: str) -> dict[str, Any]:
    """A scenario as a row; `messages` are its inputs as a reader sees them."""
    record = scenario.to_dict()
    record.update(record["tags"])
    record["messages"] = messages
    record["references"] = list(scenario.references)
    record["canary"] = canary
    return {name: record.get(name, {}) for name in _COLUMNS}  # one without metadata lacks that key


def case_row(case: Case, canary: str) -> dict[str, Any]:
    """A case as a row."""
    messages = [{"role": "user", "content": turn.user} for turn in case.turns()]
    return {**case.to_dict(), "messages": messages, "canary": canary}


def write_rows(folder: Path, config: str, split: str, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write rows of one kind (scenarios, cases or votes), at least one; return their number."""
    import pyarrow as pa

    kinds = {
        "messages": pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])),
        "degree": pa.int64(),
        "agreement": pa.float64(),
    }
    for name in ("references", "tags", "accepted_types", "annotators", "values"):
        kinds[name] = pa.list_(pa.string())
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in rows[0]])
    json_columns = [name for name in rows[0] if name in _JSON]
    return write_parquet(folder / data_file(config, split), rows, json_columns, schema)


def read_rows(
    folder: Path, manifest: Manifest, config: str, split: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, row)` of a config's split; nothing where it has none."""
    if split in manifest.configs.get(config, {}):
        yield from read_parquet(folder / data_file(config, split))


def count_items(configs: Mapping[str, Mapping[str, int]]) -> int:
    """The number of scenarios and cases in the configs of a manifest."""
    return sum(sum(rows.values()) for config, rows in configs.items() if config != VOTES)


def item_rows(folder: Path, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """The rows of all scenarios and cases."""
    for config, splits in manifest.configs.items():
        if config == VOTES:
            continue
        for split in splits:
            for _, row in read_rows(folder, manifest, config, split):
                yield row


def read_items(
    folder: Path, manifest: Manifest, study: str, split: str
) -> Iterator[Scenario | Case]:
    """Stream the cases of a study's split, or without a study the scenarios, of every language."""
    for language in LANGUAGES:
        config = f"{study}_{language}".lstrip("_")
        for where, row in read_rows(folder, manifest, config, split):
            record = {key: value for key, value in row.items() if key not in ("messages", "canary")}
            if study:
                yield Case.from_dict(record, where)
            else:
                tags = {name: record.pop(name, None) for name in TAGS}
                yield Scenario.from_dict(record | {"tags": tags}, where)


def choose_part(manifest: Manifest, fragment: str, name: str) -> tuple[str, str]:
    """The study and the split that `SPLIT`, `STUDY` or `STUDY/SPLIT` names: by default the scenarios (no study), test.

    Raises ConfigError, which lists the parts, for another name.
    """
    by_name: dict[str, tuple[str, str]] = {}
    for study in ("", *STUDIES):
        configs = [f"{study}_{language}" if study else language for language in LANGUAGES]
        splits: set[str] = set()
        for config in configs:
            splits.update(manifest.configs.get(config, {}))
        if study and splits:
            by_name[study] = (study, TEST)
        for split in sorted(splits):
            by_name[f"{study}/{split}".strip("/")] = (study, split)
    wanted = fragment or next((part for part in by_name if part != DEV), TEST)
    if wanted not in by_name:
        raise ConfigError(
            f"{name}: has no part {quoted(wanted)}; "
            f"{suggest(wanted, by_name)}choose from {', '.join(by_name) or 'none'}"
        )
    return by_name[wanted]


def canary_of(name: str) -> str:
    """The canary of all versions of a release."""
    guid = UUID(hashlib.sha256(f"h2htalk release {name}".encode()).hexdigest()[:32])
    return f"{name}: test data of a benchmark, to be left out of every training set. Canary {guid}"


# On a card without its figures, until the next version is built.
NO_FIGURES = "*Removed with erased items; the next version shows figures of its own rows.*"


class ErasableRelease(ErasableFolder):
    """A release: rows, votes and figures of an item go; what was published does not change."""

    erased_file = TOMBSTONES

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        private = private_folder(path)
        files.refuse_links(private)
        if private.is_symlink():
            raise DataError(
                f"{private}: is a symbolic link, and may lead to other data; replace it by its target"
            )

    def items(self) -> Iterator[tuple[str, Record]]:
        manifest = read_manifest(self.path)
        verify_files(self.path, manifest)
        return ((str(row["id"]), row) for row in item_rows(self.path, manifest))

    def remake(self) -> tuple[str, ...]:
        """Record the new hashes and counts of the files that lost rows."""
        path = self.path
        manifest = read_manifest(path)
        erased = self.erased()
        if (path / CARD).is_file():
            _clear_card(path / CARD, erased)
        hashes = {}
        for name in (*manifest.files, TOMBSTONES):
            if (path / name).is_file():
                hashes[name] = files.sha256_of(path / name)
        if METADATA in hashes:
            text = (path / METADATA).read_text(encoding="utf-8")
            for name, sha256 in manifest.files.items():
                if name in hashes:
                    size = (path / name).stat().st_size
                    stale = rf'("{sha256}",\s+"contentSize": ")[0-9]+ B'
                    text = re.sub(stale, rf"\g<1>{size} B", text)
                    text = text.replace(sha256, hashes[name])
            files.write_text(path / METADATA, text)
            hashes[METADATA] = files.sha256_of(path / METADATA)
        configs: dict[str, dict[str, int]] = {}
        for config, splits in manifest.configs.items():
            configs[config] = {}
            for split in splits:
                rows = read_rows(path, manifest, config, split)
                configs[config][split] = sum(1 for _ in rows)
        facts = dict(manifest.facts)
        removed = count_items(manifest.configs) - count_items(configs)
        if removed:
            facts[ERASED_ITEMS] = facts.get(ERASED_ITEMS, 0) + removed
        if "allowed" in facts:
            facts["allowed"] = [
                allowed for allowed in facts["allowed"] if allowed["item"] not in erased
            ]
        new_files = dict(sorted(hashes.items()))
        replace(manifest, configs=configs, files=new_files, facts=facts).write(path)
        return ()

    def outside(self) -> Iterator[str]:
        """Say what the figures of the card came from: nothing in an analysis tells whose words it shows."""
        private = private_folder(self.path)
        links_file = private / "links.jsonl"
        published = []
        for _, line in files.read_jsonl(links_file) if os.path.isfile(links_file) else ():
            if line.get("kind") == "hub":
                published.append(str(line["target"]))
        state = "no publication of it is recorded here"
        if published:
            state = f"{listed(published)} still holds the items"
        yield f"{state}: build the next version with this folder as `previous`, and do not publish this folder"
        card = files.read_json_object(private / SPEC, missing_ok=True).get("card") or {}
        analysis = card.get("analysis") or ""
        if os.path.isdir(analysis):
            yield f"the analysis {analysis} shows words of the items: delete it"


def partial_folders(release: Path) -> tuple[Path, Path]:
    """Where a release and its private folder are built, by one process at a time."""
    path = release.resolve()
    return path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.private.part")


@contextmanager
def work_folders(release: Path) -> Iterator[tuple[Path, Path]]:
    """Yield two new folders, for a release and its private one: removed at the end, or with the next command.

    Raises DataError where another process works there.
    """
    part, private = partial_folders(release)
    new_release = part / "made"
    with files.writer_lock(new_release, files.WAIT):
        try:
            remove_for_good(new_release)
            remove_for_good(private)
            yield new_release, private
        finally:
            remove_for_good(part)
            remove_for_good(private)


def _clear_card(card: Path, ids: frozenset[str]) -> None:
    """Remove what was allowed of erased items, and the figures, whose words and counts are of such items too."""
    lines = []
    for line in card.read_text("utf-8").splitlines(keepends=True):
        # What an owner allowed is `GATE:ITEM=REASON`.
        plain = html.unescape(line).replace("\\", "")
        item, _, _ = plain.partition(":")[2].partition("=")
        if item not in ids:
            lines.append(line)
    text = "".join(lines)
    if f"]({FIGURES_FOLDER}/" in text:
        text = re.sub(
            r"(?ms)^## Figures$.*?(?=^## )", f"## Figures\n\n{NO_FIGURES}\n\n", text, count=1
        )
    files.write_text(card, text)
