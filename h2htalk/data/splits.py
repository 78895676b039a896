"""Splits: named, versioned sets of scenarios or cases. Some are bundled; a folder or one file is read in place."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from h2htalk.data.case import Case, turn_scenarios
from h2htalk.data.erasure.folder_kinds import read_erased
from h2htalk.data.files import (
    json_line,
    read_bounded,
    read_json_object,
    read_jsonl,
    read_toml,
    reading,
    sha256_of,
)
from h2htalk.data.languages import find_language
from h2htalk.data.parquet import read_parquet
from h2htalk.data.records import Id, Text, read_record, strict_record
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.sampling import stratified_sample
from h2htalk.data.scenario import Persona, References, Scenario, personas_of
from h2htalk.data.stage_folders import find_stage_folder
from h2htalk.data.subtasks import find_subtask
from h2htalk.errors import ConfigError, DataError, MissingExtraError, counted, quoted, suggest

_SUFFIXES = (".jsonl", ".parquet")
BUNDLED_FOLDER = Path(__file__).parent / "bundled" / "splits"
# Keys that are left out of `split.toml` where they are empty.
OPTIONAL = ("references_sha256", "canary", "surrogates")
# In a folder: names, dates of birth and addresses of nobody, or public ones, one a line.
INVENTED = "invented.txt"


@strict_record
class Header:
    """The content of a `split.toml`."""

    name: Text
    version: Text = "unversioned"
    description: str = ""
    licence: Text = "see each scenario"
    # The hash of the file of private references; empty where there is none.
    references_sha256: releases.SHA256 = ""
    canary: Text = ""
    # `private`: anonymisation put values into the items, which the private folder lists.
    surrogates: Text = ""


HEADER = tuple(key.name for key in fields(Header))


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Header):
    """A set of scenarios, or of the cases of a study, with the personas they name."""

    scenarios: tuple[Scenario, ...]
    personas: Mapping[str, Persona]
    cases: tuple[Case, ...] = ()
    source: str = ""  # the name and hash of a release, or its name on the Hub
    commit: str = ""  # its commit on the Hub
    invented: tuple[str, ...] = ()  # the names, dates and addresses that `invented.txt` lists

    @property
    def items(self) -> tuple[Scenario, ...] | tuple[Case, ...]:
        """The cases, or else the scenarios."""
        return self.cases or self.scenarios

    @property
    def fingerprint(self) -> str:
        """Hash the items in id order and their personas, as 16 hexadecimal digits; row order and files do not count."""
        return fingerprint_of(self.items, self.personas)

    def select(
        self, language: str | None = None, subtasks: Sequence[str] = (), limit: int | None = None
    ) -> Split:
        """Select the scenarios, or user turns of cases, of one language and of some subtasks; of those a sample.

        No language, no subtasks and no limit mean all. `limit` is spread over subtasks (kinds of cases) and languages;
        which ones are chosen depends on the ids alone. Raises ConfigError for an unknown language, for
        subtasks of cases, and where nothing is left.
        """
        if self.cases and subtasks:
            raise ConfigError(
                f"split {self.name}: cases of a study have no subtasks; leave out --subtask"
            )
        if language is not None:
            find_language(language)
        chosen_subtasks = {find_subtask(name, "--subtask").name for name in subtasks}
        selected = []
        for scenario in self.scenarios:
            in_subtask = not chosen_subtasks or scenario.subtask in chosen_subtasks
            if in_subtask and language in (None, scenario.language):
                selected.append(scenario)
        if limit is not None:
            selected = stratified_sample(selected, limit)
        if not selected:
            raise ConfigError(
                f"split {self.name}: no scenario left after --language, --subtask and --limit"
            )
        return replace(self, scenarios=tuple(selected), cases=())

    def to_dataset(self) -> Any:
        """Return the items as a `datasets.Dataset`; what is no text or number is JSON. Raises MissingExtraError."""
        try:
            from datasets import Dataset
        except ImportError as error:
            raise MissingExtraError("Split.to_dataset", 'pip install "h2htalk[release]"') from error
        columns: dict[str, list[Any]] = {}
        items: Sequence[Scenario | Case] = self.items
        for position, item in enumerate(items):
            for name, value in item.to_dict().items():
                if isinstance(value, dict | list):
                    value = json_line(value)[:-1]
                column = columns.setdefault(name, [None] * len(items))
                column[position] = value
        if not self.cases:
            columns["references"] = [list(scenario.references) for scenario in self.scenarios]
        return Dataset.from_dict(columns)


def fingerprint_of(items: Iterable[Scenario | Case], personas: Mapping[str, Persona]) -> str:
    """Compute `Split.fingerprint`."""
    ordered = sorted(items, key=lambda item: item.id)
    names = sorted({item.persona for item in ordered})
    digest = hashlib.sha256()
    for record in (*ordered, *(personas[name] for name in names)):
        line = json.dumps(record.to_dict(), sort_keys=True, separators=(",", ":"))
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()[:16]


def list_splits() -> dict[str, str]:
    """List the bundled splits: name -> description."""
    return {
        path.name: split_header(path).description
        for path in sorted(BUNDLED_FOLDER.iterdir())
        if path.is_dir()
    }


def is_bundled(name: str) -> bool:
    """Whether a bundled split has the name, `mini` or `mini@1`."""
    return any(path.name == name and path.is_dir() for path in BUNDLED_FOLDER.iterdir())


def load_split(name: str | Path) -> Split:
    """Load a split whole: a bundled name (`mini`), a folder, one `.jsonl` or `.parquet` file, candidates, or a release.

    A folder holds `*.jsonl` and `*.parquet` files of scenarios or of cases (docs/reference), optionally `split.toml`
    (the keys of HEADER) and `personas/*.toml`. A persona there replaces a bundled one of the same id. Candidates are
    those of a curation's stage (`WORKSPACE/compose`), or of a workspace's last finished stage that has some. The folder
    of a release, or `hub:OWNER/NAME@TAG`, gives its split `test`; `RELEASE#dev` another one, `RELEASE#high_risk` or
    `RELEASE#high_risk/dev` the cases of a study.

    Examples:
        >>> import h2htalk
        >>> len(h2htalk.load_split("mini").select(language="en").scenarios)
        176

    Raises ConfigError for no such split, DataError (file and line) for a broken record, and HubError.
    """
    text = str(name)
    if text.startswith(releases.HUB):
        from h2htalk.data.releases.hub import load_release

        loaded = load_release(text)
        split = _read_release(loaded.folder, loaded.manifest, loaded.part, text, loaded.erased)
        return replace(split, source=text, commit=loaded.commit)
    named = release_part(text)
    if named is not None:
        folder, part = named
        manifest = releases.read_manifest(folder)
        releases.verify_files(folder, manifest)
        split = _read_release(folder, manifest, part, str(folder))
        release = f"{manifest.name} {manifest.version}, release {releases.release_hash(folder)}"
        return replace(split, source=release)
    source = resolve_split(text)
    header = split_header(source)
    personas = personas_of(source)
    items = [item for _, item in read_items(source, personas) if item]
    folder = source if source.is_dir() else source.parent
    return replace(split_of(items, personas, header), invented=_read_invented(folder / INVENTED))


def _read_invented(path: Path) -> tuple[str, ...]:
    """The lines of `invented.txt`; none without it."""
    with reading(path):
        if not os.path.lexists(path):
            return ()
        lines = read_bounded(path).decode("utf-8-sig").splitlines()
    return tuple(filter(None, map(str.strip, lines)))


def release_part(name: str) -> tuple[Path, str] | None:
    """The folder of a release and the part that `RELEASE#PART` names; None where it names no release."""
    folder, part = name, ""
    if "#" in name and not os.path.exists(name):
        folder, _, part = name.rpartition("#")
    return (Path(folder), part) if releases.is_release(Path(folder)) else None


def split_of(
    items: Sequence[Scenario | Case], personas: Mapping[str, Persona], header: Header
) -> Split:
    """Make a split of items, of `personas` those that they name, and of a header."""
    cases = tuple(item for item in items if isinstance(item, Case))
    scenarios: list[Scenario] = []
    for case in cases:
        scenarios += turn_scenarios(case)
    if not scenarios:
        scenarios = [item for item in items if isinstance(item, Scenario)]
    names = sorted({item.persona for item in items})
    return Split(
        scenarios=tuple(scenarios),
        personas={name: personas[name] for name in names},
        cases=cases,
        **asdict(header),
    )


def _read_release(
    folder: Path,
    manifest: releases.Manifest,
    fragment: str,
    name: str,
    erased: frozenset[str] = frozenset(),
) -> Split:
    """Read a part of a release, without items that were `erased`, or are listed as erased in it."""
    study, split = releases.choose_part(manifest, fragment, name)
    published = list(releases.read_items(folder, manifest, study, split))
    erased |= frozenset(read_erased(folder / releases.TOMBSTONES))
    items = [item for item in published if item.id not in erased]
    dropped = len(published) - len(items)
    if dropped:
        print(
            f"{name}: {counted(dropped, 'item')} left out, erased after it was published",
            file=sys.stderr,
        )
    personas = personas_of(folder)
    for item in items:
        _require_persona(item, personas, str(folder))
    part = [name for name in (study, split) if name]
    if not items:
        raise DataError(f"{name}: holds no item in split {quoted('/'.join(part))}")
    is_main = split == releases.TEST and not study
    header = Header(
        name=manifest.name if is_main else "-".join([manifest.name, *part]),
        version=manifest.version,
        description=manifest.description,
        licence=manifest.licence,
        canary=manifest.canary,
        surrogates="" if study else "private",
    )
    return split_of(items, personas, header)


def _require_persona(item: Scenario | Case, personas: Mapping[str, Persona], where: str) -> None:
    if item.persona in personas and item.language in personas[item.persona].names:
        return
    raise DataError(
        f"{where}: {item.id}: persona {quoted(item.persona)} has no {item.language} description; "
        f"add it to the folder personas of the split, or choose from {', '.join(sorted(personas))}"
    )


def resolve_split(name: str) -> Path:
    """Find the folder or file of a split. Raises ConfigError for none, or two: a bundled one, and a folder here."""
    if not name.strip():
        bundled = ", ".join(list_splits())
        raise ConfigError(
            f"a split's name is empty: give a bundled one ({bundled}), a folder or a file"
        )
    path = Path(name)
    if is_bundled(name):
        if os.path.isdir(path) and _scenario_files(path):
            raise ConfigError(
                f"split {name}: both a bundled split and a folder here: write ./{name} for the folder"
            )
        return BUNDLED_FOLDER / name
    # os.path: pathlib raises on a name that is too long or a folder without permission to enter.
    stage = find_stage_folder(path)
    if stage is not None:
        return stage
    if os.path.isdir(path) or (os.path.isfile(path) and path.suffix in _SUFFIXES):
        return path
    names = list_splits()
    raise ConfigError(
        f"no split {quoted(name)}: {suggest(name, names)}choose a bundled one ({', '.join(names)}), "
        "or name a folder, a .jsonl or .parquet file, or hub:OWNER/NAME@TAG"
    )


def _scenario_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES)


def read_items(
    source: Path, personas: Mapping[str, Persona], errors: list[str] | None = None
) -> Iterator[tuple[str, Scenario | Case | None]]:
    """Stream `(where, item)` from a folder or file of at least one item. Raises DataError for a wrong record.

    A repeated id, an unknown persona, and a case among scenarios are wrong too. With `errors`, this list receives the
    messages, and None stands for the item.
    """
    seen: dict[str, str] = {}
    kinds: set[type] = set()
    for where, record in _iter_records(source, errors):
        try:
            item = read_item(record, where)
            if item.id in seen:
                raise DataError(f"{where}: duplicate id {item.id} (first in {seen[item.id]})")
            if kinds - {type(item)}:
                raise DataError(
                    f"{where}: a split holds scenarios or cases, and this file has both; make two splits"
                )
            _require_persona(item, personas, where)
        except DataError as error:
            if errors is None:
                raise
            errors += str(error).splitlines()
            yield where, None
        else:
            seen[item.id] = where
            kinds.add(type(item))
            yield where, item
    if not seen and not errors:
        raise DataError(f"{source}: holds no scenario")


def read_item(record: Mapping[str, Any], where: str) -> Scenario | Case:
    """Read a record of a split: with `study` a case, else a scenario. Raises DataError."""
    return Case.from_dict(record, where) if "study" in record else Scenario.from_dict(record, where)


def _iter_records(
    source: Path, broken: list[str] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a folder or file; `broken`: see `read_jsonl`."""
    if os.path.isfile(source / "stage.json"):  # the reference of a candidate is its first one
        for path in sorted((source / "kept").glob("part-*.jsonl")):
            for where, record in read_jsonl(path, unique_keys=True):
                if not isinstance(record.get("scenario"), dict):
                    raise DataError(f"{where}: not a candidate: scenario is missing")
                yield where, record["scenario"]
        return
    paths = _scenario_files(source) if source.is_dir() else [source]
    if not paths:
        raise DataError(f"{source}: holds no .jsonl or .parquet file")
    for path in paths:
        if path.suffix == ".parquet":
            yield from read_parquet(path)
        else:
            yield from read_jsonl(path, unique_keys=True, broken=broken)


def split_header(source: Path) -> Header:
    """Read `split.toml` of a split's folder, with defaults for missing keys. Raises DataError for a broken one."""
    # The name is written into tables and TOML, which must be UTF-8; a file name may hold other bytes.
    absolute = Path(os.path.abspath(source))
    name = os.fsencode(absolute.name if source.is_dir() else absolute.stem).decode(errors="replace")
    if os.path.isfile(source / "stage.json"):
        summary = read_json_object(source / "summary.json").values()
        notes = [f"Candidates of a curation's stage {source.name}, on which no people decided"]
        for note in summary:
            if isinstance(note, dict) and "message" in note:
                notes.append(note["message"])
        return Header(
            name=f"{source.resolve().parent.name}-{source.name}",
            version=str(read_json_object(source / "stage.json").get("fingerprint")),
            description=". ".join(notes),
            surrogates="private",
        )
    header = {"name": name.strip() or "split"}
    path = source / "split.toml"
    if not source.is_dir() or not os.path.lexists(path):
        return Header(**header)
    return read_record(Header, header | read_toml(path, error=DataError), str(path))


@strict_record
class _ReferencesLine:
    """A line of a file of private references."""

    id: Id
    references: Annotated[References, Field(min_length=1)]


def with_references(split: Split, path: Path, erased: str = "") -> Split:
    """Add the references of a file to the scenarios that have none; it may hold those of other scenarios, too.

    The split names its SHA-256, or where items were erased from the split, `erased` does. Raises DataError.
    """
    private = {scenario.id for scenario in split.scenarios if not scenario.references}
    if not private or not split.references_sha256:
        why = "holds them itself"
        if private:
            why = "names no references_sha256 that the file could be checked against"
        raise DataError(f"{path}: leave out --references: split {split.name} {why}")
    digest = sha256_of(path)
    if digest not in (split.references_sha256, erased):
        named = " or ".join(filter(None, [split.references_sha256, erased]))
        raise DataError(
            f"{path}: is not the file of references: its SHA-256 is {digest}, the split names {named}"
        )
    references: dict[str, tuple[str, ...]] = {}
    for where, record in read_jsonl(path, unique_keys=True):
        line = read_record(_ReferencesLine, record, where)
        references[line.id] = line.references
    lacking = sorted(private - set(references))
    if lacking:
        raise DataError(
            f"{path}: holds no references of {quoted(lacking[0])} ({len(lacking):,} such)"
        )
    scenarios = []
    for scenario in split.scenarios:
        if not scenario.references:
            scenario = replace(scenario, references=references[scenario.id])
        scenarios.append(scenario)
    return replace(split, scenarios=tuple(scenarios), references_sha256=digest)
