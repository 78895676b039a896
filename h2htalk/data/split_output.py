"""Splits in other formats, and templates of new ones."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from h2htalk.data.case import STUDIES, Case
from h2htalk.data.files import require_new_folder, write_jsonl, write_text
from h2htalk.data.languages import Language, find_language
from h2htalk.data.releases.release_folder import private_folder
from h2htalk.data.responses import write_parquet
from h2htalk.data.scenario import Persona, Scenario
from h2htalk.data.splits import HEADER, INVENTED, OPTIONAL, Header, Split, load_split, split_of
from h2htalk.errors import ConfigError, DataError, quoted, suggest

_EXAMPLE = {"source": "an example of h2htalk; write your own"}


def export_split(split: Split, folder: Path, file_format: Literal["jsonl", "parquet"] = "jsonl") -> list[Path]:
    """Write a folder that `load_split` reads; return its files. Raises DataError, and leaves nothing then."""
    require_new_folder(folder)
    require_new_folder(private_folder(folder))
    try:
        return list(_write_parts(split, folder, file_format))
    except BaseException:  # passed on; half an export is none
        shutil.rmtree(folder, ignore_errors=True)
        raise


def write_new_split(folder: Path, language: Language, study: str = "") -> list[Path]:
    """Write a split to begin with: a bundled scenario of each subtask, or a case of a study. Raises H2HTalkError."""
    whole, items = _examples(language, study)
    first: dict[str, Scenario | Case] = {}
    for item in items:
        name = item.study if isinstance(item, Case) else item.subtask
        first.setdefault(name, replace(item, id=f"{name}-1", provenance=_EXAMPLE))
    header = Header(folder.name or "split", "1", "Describe your items here.", whole.licence)
    return export_split(replace(split_of([*first.values()], whole.personas, header), invented=whole.invented), folder)


def write_new_cases(path: Path, language: Language, study: str = "instructions") -> int:
    """Write a file of cases to begin with, the first family of a bundled study; return how many. Raises DataError."""
    cases = [item for item in _examples(language, study)[1] if isinstance(item, Case)]
    if os.path.lexists(path) or path.suffix != ".jsonl":
        raise DataError(f"{path}: {'exists' if os.path.lexists(path) else 'is no .jsonl file'}; name a new .jsonl file")
    family = [case for case in cases if case.family == cases[0].family]
    names = [f"mine-1-d{case.degree}" if len(family) > 1 else "mine-1" for case in family]
    own = (replace(c, id=n, family="mine-1", provenance=_EXAMPLE) for c, n in zip(family, names, strict=True))
    return write_jsonl(path, (case.to_dict() for case in own))


def _examples(language: Language, study: str) -> tuple[Split, list[Scenario | Case]]:
    """A bundled split, and its items of a study in a language; without a study, its scenarios."""
    find_language(language)
    if study and study not in STUDIES:
        raise ConfigError(f"no study {quoted(study)}; {suggest(study, STUDIES)}choose from {', '.join(STUDIES)}")
    whole = load_split("high_risk" if study == "look_alike" else study or "mini")
    return whole, [one for one in whole.items if one.language == language and getattr(one, "study", "") == study]


def _write_parts(split: Split, folder: Path, file_format: Literal["jsonl", "parquet"]) -> Iterator[Path]:
    """Write the files of a split, yielding each once it exists."""
    data = folder / f"{'cases' if split.cases else 'scenarios'}.{file_format}"
    records = [item.to_dict() for item in split.items]
    if file_format == "jsonl":
        write_jsonl(data, records)
    else:
        records = [one if split.cases else {"metadata": {}, **one} for one in records]
        if any("references" in one for one in records):  # a file has one column for all rows
            records = [one if "references" in one else one | {"references": [one.pop("reference")]} for one in records]
        nested = {key for one in records for key, value in one.items() if isinstance(value, dict | list)}
        write_parquet(data, records, json_columns=sorted(nested))
    yield data
    header = {key: value for key in HEADER if (value := getattr(split, key)) or key not in OPTIONAL}
    texts = {
        # So that `datasets.load_dataset(FOLDER)` finds the items, and not the personas beside them.
        "README.md": f"---\nconfigs:\n- config_name: default\n  data_files: {data.name}\n---\n",
        "split.toml": "".join(f"{key} = {_toml_string(value)}\n" for key, value in header.items()),
    }
    held = "\n".join(json.dumps(record, ensure_ascii=False) for record in records) if split.invented else ""
    if used := [name for name in split.invented if json.dumps(name, ensure_ascii=False)[1:-1] in held]:
        texts[INVENTED] = "\n".join(used) + "\n"
    for name, text in texts.items():
        write_text(folder / name, text)
        yield folder / name
    yield from write_personas(split.personas.values(), folder)


def write_personas(personas: Iterable[Persona], folder: Path) -> Iterator[Path]:
    """Write each persona into `personas/` of a folder, yielding each file once it exists."""
    for one in personas:
        # An id comes from data and is not safe as a path.
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in one.id[:64])
        name = safe if safe == one.id else f"{safe}-{hashlib.sha256(one.id.encode()).hexdigest()[:8]}"
        lines = [f"id = {_toml_string(one.id)}", f"relation = {_toml_string(one.relation)}"]
        for language, given in one.names.items():
            lines += ["", f"[{language}]", f"name = {_toml_string(given)}"]
            lines.append(f"description = {_toml_string(one.descriptions[language])}")
        path = folder / "personas" / f"{name}.toml"
        write_text(path, "\n".join(lines) + "\n")
        yield path


def _toml_string(text: str) -> str:
    """Format a TOML basic string (JSON's escapes are TOML's, except DEL)."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
