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
from h2htalk.data.files import json_line, read_bounded, read_json_object, read_jsonl, read_toml, reading, sha256_of
from h2htalk.data.languages import find_language
from h2htalk.data.records import Id, Text, read_record, strict_record
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.responses import read_parquet
from h2htalk.data.scenario import Persona, References, Scenario, find_stage_folder, personas_of, stratified_sample
from h2htalk.data.subtasks import SUBTASKS, find_subtask
from h2htalk.errors import ConfigError, DataError, MissingExtraError, counted, quoted, suggest

_SUFFIXES = (".jsonl", ".parquet")
BUNDLED_FOLDER = Path(__file__).parent / "bundled" / "splits"
OPTIONAL = ("references_sha256", "canary", "surrogates")  # left out of `split.toml` where they are empty
INVENTED = "invented.txt"  # in a folder: names, dates of birth and addresses of nobody, or public, one a line


@strict_record
class Header:
    """The content of a `split.toml`."""

    name: Text
    version: Text = "unversioned"
    description: str = ""
    licence: Text = "see each scenario"
    references_sha256: releases.SHA256 = ""  # of the file of private references; empty where there is none
    canary: Text = ""
    surrogates: Text = ""  # `private`: anonymisation put values into the items, which the private folder lists


HEADER = tuple(one.name for one in fields(Header))


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Header):
    """A set of scenarios, or of the cases of a study, with the personas they name."""

    scenarios: tuple[Scenario, ...]
    personas: Mapping[str, Persona]
    cases: tuple[Case, ...] = ()
    source: str = ""  # of a release: its name and hash, or its name on the Hub
    commit: str = ""  # on the Hub
    invented: tuple[str, ...] = ()  # the names, dates and addresses of nobody that `invented.txt` lists

    @property
    def items(self) -> tuple[Scenario, ...] | tuple[Case, ...]:
        """The cases, or else the scenarios."""
        return self.cases or self.scenarios

    @property
    def fingerprint(self) -> str:
        """Hash the items in id order and their personas, as 16 hexadecimal digits; row order and files do not count."""
        return fingerprint_of(self.items, self.personas)

    def select(self, language: str | None = None, subtasks: Sequence[str] = (), limit: int | None = None) -> Split:
        """Select the scenarios, or user turns of cases, of one language and of some subtasks; of those a sample.

        No language, no subtasks and no limit mean all. `limit` is spread over subtasks (kinds of cases) and languages;
        which ones are chosen depends on the ids alone. Raises ConfigError for an unknown language, for
        subtasks of cases, and where nothing is left.
        """
        if self.cases and subtasks:
            raise ConfigError(f"split {self.name}: cases of a study have no subtasks; leave out --subtask")
        if language is not None:
            find_language(language)
        wanted = {find_subtask(name, "--subtask").name for name in subtasks} or set(SUBTASKS)
        kept = [s for s in self.scenarios if s.subtask in wanted and language in (None, s.language)]
        if limit is not None:
            kept = stratified_sample(kept, limit)
        if not kept:
            raise ConfigError(f"split {self.name}: no scenario left after --language, --subtask and --limit")
        return replace(self, scenarios=tuple(kept), cases=())

    def to_dataset(self) -> Any:
        """Return the items as a `datasets.Dataset`; what is no text or number is JSON. Raises MissingExtraError."""
        try:
            from datasets import Dataset
        except ImportError as error:
            raise MissingExtraError("Split.to_dataset", 'pip install "h2htalk[release]"') from error
        records = (item.to_dict().items() for item in self.items)
        rows = [{k: json_line(v)[:-1] if isinstance(v, dict | list) else v for k, v in one} for one in records]
        columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(k for row in rows for k in row)}
        columns |= {} if self.cases else {"references": [list(one.references) for one in self.scenarios]}
        return Dataset.from_dict(columns)


def fingerprint_of(items: Iterable[Scenario | Case], personas: Mapping[str, Persona]) -> str:
    """Compute `Split.fingerprint`."""
    digest, ordered = hashlib.sha256(), sorted(items, key=lambda item: item.id)
    for record in (*ordered, *(personas[name] for name in sorted({item.persona for item in ordered}))):
        digest.update(json.dumps(record.to_dict(), sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return digest.hexdigest()[:16]


def list_splits() -> dict[str, str]:
    """List the bundled splits: name -> description."""
    return {path.name: split_header(path).description for path in sorted(BUNDLED_FOLDER.iterdir()) if path.is_dir()}


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
    if found := release_part(text):
        folder, part = found
        releases.verify_files(folder, manifest := releases.read_manifest(folder))
        split = _read_release(folder, manifest, part, str(folder))
        return replace(split, source=f"{manifest.name} {manifest.version}, release {releases.release_hash(folder)}")
    source = resolve_split(text)
    header, personas = split_header(source), personas_of(source)
    items = [item for _, item in read_items(source, personas) if item]
    with reading(path := (source if source.is_dir() else source.parent) / INVENTED):
        lines = read_bounded(path).decode("utf-8-sig").splitlines() if os.path.lexists(path) else ()
    return replace(split_of(items, personas, header), invented=tuple(filter(None, map(str.strip, lines))))


def release_part(name: str) -> tuple[Path, str] | None:
    """The folder of a release and the part that `RELEASE#PART` names; None where it names no release."""
    folder, _, part = name.rpartition("#") if "#" in name and not os.path.exists(name) else (name, "", "")
    return (Path(folder), part) if releases.is_release(Path(folder)) else None


def split_of(items: Sequence[Scenario | Case], personas: Mapping[str, Persona], header: Header) -> Split:
    """Make a split of items, of `personas` those that they name, and of a header."""
    cases = tuple(item for item in items if isinstance(item, Case))
    turns = tuple(scenario for case in cases for scenario in turn_scenarios(case))
    return Split(
        scenarios=turns or tuple(item for item in items if isinstance(item, Scenario)),
        personas={key: personas[key] for key in sorted({item.persona for item in items})},
        cases=cases,
        **asdict(header),
    )


def _read_release(
    folder: Path, manifest: releases.Manifest, fragment: str, name: str, erased: frozenset[str] = frozenset()
) -> Split:
    """Read a part of a release, without items that were `erased`, or are listed as erased in it."""
    study, split = releases.choose_part(manifest, fragment, name)
    published = list(releases.read_items(folder, manifest, study, split))
    erased |= frozenset(read_erased(folder / releases.TOMBSTONES))
    items = [item for item in published if item.id not in erased]
    if dropped := len(published) - len(items):
        print(f"{name}: {counted(dropped, 'item')} left out, erased after it was published", file=sys.stderr)
    personas = personas_of(folder)
    for item in items:
        _require_persona(item, personas, str(folder))
    part, main = [*filter(None, (study, split))], split == releases.TEST and not study
    if not items:
        raise DataError(f"{name}: holds no item in split {quoted('/'.join(part))}")
    title = "-".join([manifest.name, *([] if main else part)])
    header = Header(title, manifest.version, manifest.description, manifest.licence, canary=manifest.canary)
    return split_of(items, personas, replace(header, surrogates="" if study else "private"))


def _require_persona(item: Scenario | Case, personas: Mapping[str, Persona], where: str) -> None:
    if item.persona not in personas or item.language not in personas[item.persona].names:
        what = f"{item.id}: persona {quoted(item.persona)} has no {item.language} description"
        advice = f"add it to the folder personas of the split, or choose from {', '.join(sorted(personas))}"
        raise DataError(f"{where}: {what}; {advice}")


def resolve_split(name: str) -> Path:
    """Find the folder or file of a split. Raises ConfigError for none, or two: a bundled one, and a folder here."""
    if not name.strip():
        names = ", ".join(list_splits())
        raise ConfigError(f"a split's name is empty: give a bundled one ({names}), a folder or a file")
    path = Path(name)
    if any(bundled.name == name and bundled.is_dir() for bundled in BUNDLED_FOLDER.iterdir()):
        if os.path.isdir(path) and _scenario_files(path):
            raise ConfigError(f"split {name}: both a bundled split and a folder here: write ./{name} for the folder")
        return BUNDLED_FOLDER / name
    # os.path: pathlib raises on a name that is too long or a folder without permission to enter.
    if stage := find_stage_folder(path):
        return stage
    if os.path.isdir(path) or (os.path.isfile(path) and path.suffix in _SUFFIXES):
        return path
    raise ConfigError(
        f"no split {quoted(name)}: {suggest(name, list_splits())}choose a bundled one ({', '.join(list_splits())}), "
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
    seen, kinds = dict[str, str](), set[type]()
    for where, record in _iter_records(source, errors):
        try:
            item = read_item(record, where)
            if item.id in seen:
                raise DataError(f"{where}: duplicate id {item.id} (first in {seen[item.id]})")
            if kinds - {type(item)}:
                raise DataError(f"{where}: a split holds scenarios or cases, and this file has both; make two splits")
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


def _iter_records(source: Path, broken: list[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a folder or file; `broken`: see `read_jsonl`."""
    if os.path.isfile(source / "stage.json"):  # the reference of a candidate is its first one
        for path in sorted((source / "kept").glob("part-*.jsonl")):
            for where, record in read_jsonl(path, unique_keys=True):
                if not isinstance(record.get("scenario"), dict):
                    raise DataError(f"{where}: not a candidate: scenario is missing")
                yield where, record["scenario"]
        return
    if not (paths := _scenario_files(source) if source.is_dir() else [source]):
        raise DataError(f"{source}: holds no .jsonl or .parquet file")
    for path in paths:
        yield from (
            read_parquet(path) if path.suffix == ".parquet" else read_jsonl(path, unique_keys=True, broken=broken)
        )


def split_header(source: Path) -> Header:
    """Read `split.toml` of a split's folder, with defaults for missing keys. Raises DataError for a broken one."""
    # The name is written into tables and TOML, which must be UTF-8; a file name may hold other bytes.
    absolute = Path(os.path.abspath(source))
    name = os.fsencode(absolute.name if source.is_dir() else absolute.stem).decode(errors="replace")
    if os.path.isfile(source / "stage.json"):
        summary = read_json_object(source / "summary.json").values()
        notes = [note["message"] for note in summary if isinstance(note, dict) and "message" in note]
        notes = [f"Candidates of a curation's stage {source.name}, on which no people decided", *notes]
        version = str(read_json_object(source / "stage.json").get("fingerprint"))
        title = f"{source.resolve().parent.name}-{source.name}"
        return Header(title, version, ". ".join(notes), surrogates="private")
    header = {"name": name.strip() or "split"}
    if source.is_dir() and os.path.lexists(path := source / "split.toml"):
        return read_record(Header, header | read_toml(path, error=DataError), str(path))
    return Header(**header)


@strict_record
class _Line:
    id: Id
    references: Annotated[References, Field(min_length=1)]


def with_references(split: Split, path: Path, erased: str = "") -> Split:
    """Add the references of a file to the scenarios that have none; it may hold those of other scenarios, too.

    The split names its SHA-256, or where items were erased from the split, `erased` does. Raises DataError.
    """
    private = {scenario.id for scenario in split.scenarios if not scenario.references}
    if not private or not split.references_sha256:
        why = "names no references_sha256 that the file could be checked against" if private else "holds them itself"
        raise DataError(f"{path}: leave out --references: split {split.name} {why}")
    if (found := sha256_of(path)) not in (split.references_sha256, erased):
        named = " or ".join(filter(None, [split.references_sha256, erased]))
        raise DataError(f"{path}: is not the file of references: its SHA-256 is {found}, the split names {named}")
    lines = [read_record(_Line, record, where) for where, record in read_jsonl(path, unique_keys=True)]
    references = {line.id: line.references for line in lines}
    if lacking := sorted(private - set(references)):
        raise DataError(f"{path}: holds no references of {quoted(lacking[0])} ({len(lacking):,} such)")
    scenarios = (s if s.references else replace(s, references=references[s.id]) for s in split.scenarios)
    return replace(split, scenarios=tuple(scenarios), references_sha256=sha256_of(path))
