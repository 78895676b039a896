"""The folder of a release: its manifest, its rows, the private folder beside it, and how items are erased from it.

RELEASE/
  release.json      the manifest: name, version, licence, rows by config and split, the SHA-256 of every other file
  README.md         the card; croissant.json, eval.yaml: metadata for programs
  history.json      ids that were ever in a split, so that no later release moves them to another one
  tombstones.jsonl  ids of items that were erased from earlier releases
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
from h2htalk.data.erasure.folder_kinds import ErasableFolder, Record, remove_for_good, require_erased
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.records import read_record, strict_record
from h2htalk.data.responses import read_parquet, write_parquet
from h2htalk.data.scenario import Scenario
from h2htalk.errors import ConfigError, DataError, listed, quoted, suggest

MANIFEST, CARD, HISTORY, TOMBSTONES = "release.json", "README.md", "history.json", "tombstones.jsonl"
METADATA, FIGURES_FOLDER = "croissant.json", "figures"
HUB = "hub:"  # OWNER/NAME@TAG follows
SPEC = "spec.json"  # in the private folder
TEST, DEV, VOTES = "test", "dev", "votes"
SPLITS = (TEST, DEV)
TAGS = ("emotion", "complexity", "interaction", "risk")
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
    own = release.resolve()
    return own.with_name(f"{own.name}.private")


def read_manifest(folder: Path) -> Manifest:
    """Read a release's manifest. Raises DataError, also for a file outside the folder, or a split without its file."""
    path = folder / MANIFEST
    require_erased(folder)
    try:
        manifest = read_record(Manifest, files.read_bounded(path), str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}; is {folder} a release?") from error
    for name in (data_file(config, split) for config, splits in manifest.configs.items() for split in splits):
        if name not in manifest.files:
            raise DataError(f"{path}: configs: files does not list {name}; get the release again")
    return manifest


def release_hash(folder: Path) -> str:
    """What identifies a release: the first 16 hexadecimal digits of the SHA-256 of its manifest."""
    return files.sha256_of(folder / MANIFEST)[:16]


def hash_files(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file of a release but its manifest, by path."""
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: files.sha256_of(path) for name, path in paths.items() if name != MANIFEST}


def verify_files(folder: Path, manifest: Manifest) -> None:
    """Raise DataError, naming the files, unless the folder holds every file of the manifest unchanged."""
    named = ((name, folder / name, sha256) for name, sha256 in manifest.files.items())
    if wrong := [name for name, path, sha256 in named if not os.path.isfile(path) or files.sha256_of(path) != sha256]:
        problem = f"{listed(wrong)}: missing, or not the content that release.json records"
        raise DataError(f"{folder}: {problem}; get the release again, or build it again")


def data_file(config: str, split: str) -> str:
    """The path of a split's rows inside a release, in the Hub's layout."""
    return f"data/{config}/{split}-00000-of-00001.parquet"


def scenario_row(scenario: Scenario, messages: list[dict[str, str]], canary: str) -> dict[str, Any]:
    """A scenario as a row; `messages`: its inputs as a reader sees them."""
    record = scenario.to_dict()
    record |= {"messages": messages, "references": list(scenario.references), "canary": canary} | record["tags"]
    return {name: record.get(name, {}) for name in _COLUMNS}  # one without metadata lacks that key


def case_row(case: Case, canary: str) -> dict[str, Any]:
    """A case as a row."""
    messages = [{"role": "user", "content": turn.user} for turn in case.turns()]
    return {**case.to_dict(), "messages": messages, "canary": canary}


def write_rows(folder: Path, config: str, split: str, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write rows of one kind (scenarios, cases or votes), at least one; return their number."""
    import pyarrow as pa

    messages = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    kinds = dict.fromkeys(("references", "tags", "accepted_types", "annotators", "values"), pa.list_(pa.string()))
    kinds |= {"messages": messages, "degree": pa.int64(), "agreement": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in rows[0]])
    return write_parquet(folder / data_file(config, split), rows, [name for name in rows[0] if name in _JSON], schema)


def read_rows(folder: Path, manifest: Manifest, config: str, split: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, row)` of a config's split; nothing where it has none."""
    if split in manifest.configs.get(config, {}):
        yield from read_parquet(folder / data_file(config, split))


def item_rows(folder: Path, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """The rows of all scenarios and cases."""
    for config, splits in manifest.configs.items():
        for split in splits if config != VOTES else ():
            yield from (row for _, row in read_rows(folder, manifest, config, split))


def read_items(folder: Path, manifest: Manifest, study: str, split: str) -> Iterator[Scenario | Case]:
    """Stream the cases of a study's split, or without a study the scenarios, of every language."""
    for language in LANGUAGES:
        for where, row in read_rows(folder, manifest, f"{study}_{language}".lstrip("_"), split):
            record = {key: value for key, value in row.items() if key not in ("messages", "canary")}
            if study:
                yield Case.from_dict(record, where)
            else:
                tags = {name: record.pop(name, None) for name in TAGS}
                yield Scenario.from_dict(record | {"tags": tags}, where)


def choose_part(manifest: Manifest, fragment: str, name: str) -> tuple[str, str]:
    """The study (empty: scenarios) and the split that `SPLIT`, `STUDY` or `STUDY/SPLIT` names; default: test.

    Raises ConfigError, which names the parts, for another one.
    """
    parts: dict[str, tuple[str, str]] = {}
    for study in ("", *STUDIES):
        configs = [f"{study}_{language}" if study else language for language in LANGUAGES]
        splits = sorted({one for config in configs for one in manifest.configs.get(config, {})})
        parts |= {study: (study, TEST)} if study and splits else {}
        parts |= {f"{study}/{one}".strip("/"): (study, one) for one in splits}
    wanted = fragment or next((one for one in parts if one != DEV), TEST)
    if wanted not in parts:
        known = f"{suggest(wanted, parts)}choose from {', '.join(parts) or 'none'}"
        raise ConfigError(f"{name}: has no part {quoted(wanted)}; {known}")
    return parts[wanted]


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
        files.refuse_links(private := private_folder(path))
        if private.is_symlink():
            raise DataError(f"{private}: is a symbolic link, and may lead to other data; replace it by its target")

    def items(self) -> Iterator[tuple[str, Record]]:
        manifest = read_manifest(self.path)
        verify_files(self.path, manifest)
        return ((str(row["id"]), row) for row in item_rows(self.path, manifest))

    def remake(self) -> tuple[str, ...]:
        """Record the new hashes and counts of the files that lost rows."""
        path, manifest, gone = self.path, read_manifest(self.path), self.erased()
        if (path / CARD).is_file():
            _clear_card(path / CARD, gone)
        now = {name: files.sha256_of(path / name) for name in (*manifest.files, TOMBSTONES) if (path / name).is_file()}
        if METADATA in now:
            text = (path / METADATA).read_text(encoding="utf-8")
            for name, sha256 in manifest.files.items():
                text = text.replace(sha256, now.get(name, sha256))
            files.write_text(path / METADATA, text)
            now[METADATA] = files.sha256_of(path / METADATA)
        configs = {
            config: {split: sum(1 for _ in read_rows(path, manifest, config, split)) for split in splits}
            for config, splits in manifest.configs.items()
        }
        allowed = [one for one in manifest.facts.get("allowed", ()) if one["item"] not in gone]
        facts = {**manifest.facts, "allowed": allowed} if "allowed" in manifest.facts else manifest.facts
        replace(manifest, configs=configs, files=dict(sorted(now.items())), facts=facts).write(path)
        return ()

    def outside(self) -> Iterator[str]:
        """Say what the figures of the card came from: nothing in an analysis tells whose words it shows."""
        private = private_folder(self.path)
        links = files.read_jsonl(path) if os.path.isfile(path := private / "links.jsonl") else ()
        published = [str(line["target"]) for _, line in links if line.get("kind") == "hub"]
        held = f"{listed(published)} still holds the items" if published else "no publication of it is recorded here"
        yield f"{held}: build the next version with this folder as `previous`, and do not publish this folder"
        card = files.read_json_object(private / SPEC, missing_ok=True).get("card") or {}
        if os.path.isdir(analysis := card.get("analysis") or ""):
            yield f"the analysis {analysis} shows words of the items: delete it"


def partial_folders(release: Path) -> tuple[Path, Path]:
    """Where a release and its private folder are built, by one process at a time."""
    own = release.resolve()
    return own.with_name(f".{own.name}.part"), own.with_name(f".{own.name}.private.part")


@contextmanager
def work_folders(release: Path) -> Iterator[tuple[Path, Path]]:
    """Yield two new folders, for a release and its private one: removed at the end, or with the next command.

    Raises DataError where another process works there.
    """
    part, private = partial_folders(release)
    with files.writer_lock(made := part / "made", files.WAIT):
        try:
            remove_for_good(made)
            remove_for_good(private)
            yield made, private
        finally:
            remove_for_good(part)
            remove_for_good(private)


def _clear_card(card: Path, ids: frozenset[str]) -> None:
    """Remove what was allowed of erased items, and the figures, whose words and counts are of such items too."""
    lines = ((one, html.unescape(one).replace("\\", "")) for one in card.read_text("utf-8").splitlines(keepends=True))
    # What an owner allowed is `GATE:ITEM=REASON`.
    text = "".join(one for one, plain in lines if plain.partition(":")[2].partition("=")[0] not in ids)
    if f"]({FIGURES_FOLDER}/" in text:
        text = re.sub(r"(?ms)^## Figures$.*?(?=^## )", f"## Figures\n\n{NO_FIGURES}\n\n", text, count=1)
    files.write_text(card, text)
