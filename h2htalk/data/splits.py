"""Splits: named, versioned sets of scenarios. `mini` is bundled; a folder or one file is read in place."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from h2htalk.data.arguments import PathText, as_list, typed
from h2htalk.data.candidate_stages import candidate_records, find_stage_folder, stage_header
from h2htalk.data.files import read_jsonl
from h2htalk.data.parquet import read_parquet
from h2htalk.data.persona import Persona, bundled_personas, read_persona
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS, TOTAL_COUNT, find_subtask
from h2htalk.errors import ConfigError, DataError, quoted, suggest

BUNDLED_FOLDER = Path(str(files("h2htalk.data") / "bundled" / "splits"))
# The keys of `split.toml`, all of them texts.
HEADER = ("name", "version", "description", "licence")


@dataclass(frozen=True, slots=True)
class Split:
    """A set of scenarios with the personas they name.

    `fingerprint` is a SHA-256 over the scenarios (in id order) and their personas: row order and file layout
    do not change it, any change of content does.
    """

    name: str
    version: str
    description: str
    licence: str
    scenarios: tuple[Scenario, ...]
    personas: Mapping[str, Persona]

    @property
    def fingerprint(self) -> str:
        """Hex digest, 16 characters."""
        return fingerprint_of(self.scenarios, self.personas)

    def select(
        self,
        language: str | None = None,
        subtasks: Sequence[str] = (),
        limit: int | None = None,
    ) -> Split:
        """Select the scenarios of one language and of some subtasks, and of those a stratified sample.

        Args:
            language: `en`, `zh`, or None for both.
            subtasks: names; empty means all.
            limit: at most this many, spread over subtasks and languages; which ones depends on the ids alone.

        Raises:
            ConfigError: nothing is left.
        """
        wanted = {find_subtask(name, "--subtask").name for name in as_list(subtasks, "subtasks")} or set(SUBTASKS)
        kept = [s for s in self.scenarios if s.subtask in wanted and language in (None, s.language)]
        if limit is not None:
            kept = stratified_sample(kept, typed(limit, int, "limit"))
        if not kept:
            raise ConfigError(f"split {self.name}: no scenario left after --language, --subtask and --limit")
        return replace(self, scenarios=tuple(kept))


def fingerprint_of(scenarios: Iterable[Scenario], personas: Mapping[str, Persona]) -> str:
    """Compute `Split.fingerprint`."""
    digest = hashlib.sha256()
    used: set[str] = set()
    for scenario in sorted(scenarios, key=lambda s: s.id):
        digest.update(_canonical(scenario.to_dict()))
        used.add(scenario.persona)
    for name in sorted(used):
        digest.update(_canonical(personas[name].to_dict()))
    return digest.hexdigest()[:16]


def _canonical(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def stratified_sample(scenarios: Sequence[Scenario], limit: int) -> list[Scenario]:
    """Sample at most `limit` scenarios, one a stratum (subtask, language) in turn, chosen by a hash of the id.

    Every subtask comes once, its languages by turns, before any comes twice. The sample of a smaller limit is part of
    the sample of a larger one; row order does not matter.
    """
    if limit < 1:
        raise ConfigError(f"--limit is {limit}; it must be 1 or more")
    strata: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in sorted(scenarios, key=lambda s: hashlib.sha256(s.id.encode()).digest()):
        strata.setdefault((scenario.subtask, scenario.language), []).append(scenario)
    chosen: set[str] = set()
    for depth in range(max(map(len, strata.values()), default=0)):
        for key in _strata_in_turn(strata):
            if depth < len(strata[key]) and len(chosen) < limit:
                chosen.add(strata[key][depth].id)
    return [s for s in scenarios if s.id in chosen]


def _strata_in_turn(strata: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Order strata so that every subtask comes once before any comes twice, its languages by turns."""
    languages: dict[str, list[str]] = {}
    for subtask, language in sorted(strata):
        languages.setdefault(subtask, []).append(language)
    turns = range(max(map(len, languages.values()), default=0))
    return [
        (subtask, own[(number + turn) % len(own)])
        for turn in turns
        for number, (subtask, own) in enumerate(languages.items())
        if turn < len(own)
    ]


def list_splits() -> dict[str, str]:
    """List the bundled splits: name -> description."""
    return {path.name: _read_header(path)["description"] for path in sorted(BUNDLED_FOLDER.iterdir()) if path.is_dir()}


def load_split(name: str | Path) -> Split:
    """Load a split whole: a bundled name (`mini`), a folder, one `.jsonl` or `.parquet` file, or candidates.

    A folder holds `*.jsonl` and `*.parquet` files of scenarios, optionally `split.toml` (name, version,
    description, licence) and `personas/*.toml`. A persona there replaces a bundled one of the same id. Candidates are
    those of a curation's stage (`WORKSPACE/compose`), or of a workspace's last finished stage that has some.

    Examples:
        >>> import h2htalk
        >>> len(h2htalk.load_split("mini").select(language="en").scenarios)
        77

    Raises:
        ConfigError: no such split; the message lists what there is.
        DataError: a broken record (file and line), a duplicate id, or a persona without a description.
    """
    source = resolve_split(typed(name, PathText, "name"))
    header = _read_header(source)
    personas = bundled_personas()
    folder = source if source.is_dir() else source.parent
    personas |= _own_personas(folder)
    scenarios: list[Scenario] = []
    seen: dict[str, str] = {}
    for where, scenario in iter_scenarios(source):
        if scenario.id in seen:
            raise DataError(f"{where}: duplicate id {scenario.id} (first in {seen[scenario.id]})")
        seen[scenario.id] = where
        known = personas.get(scenario.persona)
        if known is None or scenario.language not in known.names:
            raise DataError(
                f"{where}: {scenario.id}: persona {quoted(scenario.persona)} has no {scenario.language} description; "
                f"add it to {folder / 'personas'} or choose from {', '.join(sorted(personas))}"
            )
        scenarios.append(scenario)
    if not scenarios:
        raise DataError(f"{source}: holds no scenario")
    used = {s.persona for s in scenarios}
    return Split(
        name=header["name"],
        version=header["version"],
        description=header["description"],
        licence=header["licence"],
        scenarios=tuple(scenarios),
        personas={key: personas[key] for key in sorted(used)},
    )


def _own_personas(folder: Path) -> dict[str, Persona]:
    """Read the personas beside the scenarios, by id."""
    found: dict[str, tuple[Persona, Path]] = {}
    for path in sorted(folder.glob("personas/*.toml")):
        persona = read_persona(_require_file(path))
        if persona.id in found:
            raise DataError(f"{path}: persona {persona.id!r} is in {found[persona.id][1].name} already; keep one")
        found[persona.id] = (persona, path)
    return {key: persona for key, (persona, _) in found.items()}


def resolve_split(name: str) -> Path:
    """Find the folder or file of a split.

    Raises:
        ConfigError: there is no such split, or two: a bundled one, and a folder of that name here.
    """
    if not name.strip():
        raise ConfigError(f"--split is empty: name a bundled split ({', '.join(list_splits())}), a folder or a file")
    if name.startswith("hub:"):
        raise ConfigError(
            f"split {name}: splits on the Hugging Face Hub cannot be loaded yet; "
            "download it and name its folder, or use a bundled split: " + ", ".join(list_splits())
        )
    path = Path(name)
    if any(bundled.name == name and bundled.is_dir() for bundled in BUNDLED_FOLDER.iterdir()):
        if _holds_scenarios(path):
            raise ConfigError(f"split {name}: both a bundled split and a folder here: write ./{name} for the folder")
        return BUNDLED_FOLDER / name
    # os.path: pathlib raises on a name that is too long or a folder without permission to enter.
    if stage := find_stage_folder(path):
        return stage
    if os.path.isdir(path) or (os.path.isfile(path) and _is_scenario_file(path)):
        return path
    raise ConfigError(
        f"no split {quoted(name)}: {suggest(name, list_splits())}choose a bundled one ({', '.join(list_splits())}), "
        "or name a folder or a .jsonl or .parquet file"
    )


def _holds_scenarios(folder: Path) -> bool:
    try:
        return any(_is_scenario_file(path) for path in folder.iterdir())
    except OSError:  # missing, no folder, or no permission to enter
        return False


def _is_scenario_file(path: Path) -> bool:
    return path.suffix in (".jsonl", ".parquet")


def iter_scenarios(source: Path) -> Iterator[tuple[str, Scenario]]:
    """Stream `(where, scenario)` from a folder or file in bounded memory; ids are not compared."""
    if is_stage(source):
        for where, record in candidate_records(source):
            yield where, Scenario.from_dict(record, where)
        return
    if source.is_dir():
        paths = sorted(filter(_is_scenario_file, source.iterdir()))
        if not paths:
            raise DataError(f"{source}: holds no .jsonl or .parquet file")
    else:
        paths = [source]
    for path in paths:
        _require_file(path)
        records = read_parquet(path) if path.suffix == ".parquet" else read_jsonl(path, unique_keys=True)
        for where, record in records:
            if "scenario" in record and "subtask" not in record:
                raise DataError(
                    f"{where}: a candidate of a curation stage, not a scenario of a split; name the stage's folder, or "
                    "let people decide on its candidates: `h2htalk round open`"
                )
            yield where, Scenario.from_dict(record, where)


def is_stage(source: Path) -> bool:
    """Whether a split's folder is a stage of a curation."""
    return os.path.isfile(source / "stage.json")


def _require_file(path: Path) -> Path:
    # Reading a pipe would block for ever.
    if not path.is_file():
        raise DataError(f"{path}: is not a file; remove it from the split's folder")
    return path


def _read_header(source: Path) -> dict[str, str]:
    """Read `split.toml` of a split's folder, with defaults for missing keys.

    Raises:
        DataError: not TOML, an unknown key, or a value that is not text.
    """
    # The name is written into tables and TOML, which must be UTF-8; a file name may hold other bytes.
    absolute = Path(os.path.abspath(source))
    name = os.fsencode(absolute.name if source.is_dir() else absolute.stem).decode(errors="replace")
    header = {
        "name": name.strip() or "split",
        "version": "unversioned",
        "description": "",
        "licence": "see each scenario",
    }
    if is_stage(source):
        return header | stage_header(source)
    path = source / "split.toml"
    if not source.is_dir() or not os.path.lexists(path):
        return header
    try:
        raw = tomllib.loads(_require_file(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not readable: {error}") from error
    for key, value in raw.items():
        if key not in HEADER:
            raise DataError(f"{path}: unknown key {quoted(key)}; choose from {', '.join(HEADER)}")
        if not isinstance(value, str) or not (value.strip() or key == "description"):
            raise DataError(f"{path}: {key} must be text that is not empty, in quotes, not {quoted(value)}")
    return header | raw


def describe_split(split: Split) -> str:
    """Describe a split: name, licence, fingerprint, counts beside Table 1's, and the tags."""
    counts = Counter((s.subtask, s.language) for s in split.scenarios)
    languages = sorted({s.language for s in split.scenarios})
    lines = [
        f"{split.name} {split.version}: {len(split.scenarios):,} scenarios, {split.licence}",
        *([split.description] if split.description else []),
        f"fingerprint {split.fingerprint}; personas {', '.join(split.personas)}",
        "",
        f"{'subtask':<28}" + "".join(f"{language:>7}" for language in languages) + f"{'Table 1':>10}",
    ]
    for subtask in SUBTASKS.values():
        row = "".join(f"{counts[subtask.name, language]:>7,}" for language in languages)
        lines.append(f"{subtask.name:<28}{row}{subtask.count:>10,}")
    totals = Counter(s.language for s in split.scenarios)
    row = "".join(f"{totals[language]:>7,}" for language in languages)
    lines.append(f"{'total':<28}{row}{TOTAL_COUNT:>10,}")
    for tag in ("emotion", "complexity", "interaction", "risk"):
        values = Counter(str(getattr(s.tags, tag)) for s in split.scenarios)
        shown = ", ".join(f"{value} {n:,}" for value, n in sorted(values.items(), key=lambda p: (-p[1], p[0])))
        lines += ["", f"{tag}: {shown}"]
    return "\n".join(lines) + "\n"
