"""Write splits: a loaded one in another format, and a new one to begin with."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from h2htalk.data.case import STUDIES, Case
from h2htalk.data.files import require_new_folder, write_jsonl, write_text
from h2htalk.data.languages import Language, find_language
from h2htalk.data.parquet import write_parquet
from h2htalk.data.releases.release_folder import private_folder
from h2htalk.data.scenario import Persona, Scenario
from h2htalk.data.splits import HEADER, INVENTED, OPTIONAL, Header, Split, load_split, split_of
from h2htalk.errors import ConfigError, DataError, quoted, suggest

_EXAMPLE = {"source": "an example of h2htalk; write your own"}


def export_split(
    split: Split, folder: Path, file_format: Literal["jsonl", "parquet"] = "jsonl"
) -> list[Path]:
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
    bundled = _bundled_example(language, study)
    first: dict[str, Scenario | Case] = {}
    for item in _examples(bundled, language, study):
        name = item.study if isinstance(item, Case) else item.subtask
        first.setdefault(name, replace(item, id=f"{name}-1", provenance=_EXAMPLE))
    header = Header(
        name=folder.name or "split",
        version="1",
        description="Describe your items here.",
        licence=bundled.licence,
    )
    split = split_of(list(first.values()), bundled.personas, header)
    return export_split(replace(split, invented=bundled.invented), folder)


def write_new_cases(path: Path, language: Language, study: str = "instructions") -> int:
    """Write a file of cases to begin with, the first family of a bundled study; return how many. Raises DataError."""
    examples = _examples(_bundled_example(language, study), language, study)
    cases = [item for item in examples if isinstance(item, Case)]
    exists = os.path.lexists(path)
    if exists or path.suffix != ".jsonl":
        what = "exists" if exists else "is no .jsonl file"
        raise DataError(f"{path}: {what}; name a new .jsonl file")
    family = [case for case in cases if case.family == cases[0].family]
    records = []
    for case in family:
        name = f"mine-1-d{case.degree}" if len(family) > 1 else "mine-1"
        new_case = replace(case, id=name, family="mine-1", provenance=_EXAMPLE)
        records.append(new_case.to_dict())
    return write_jsonl(path, records)


def _bundled_example(language: Language, study: str) -> Split:
    """The bundled split that has items of a study; without a study, the one of scenarios. Raises ConfigError."""
    find_language(language)
    if study and study not in STUDIES:
        raise ConfigError(
            f"no study {quoted(study)}; {suggest(study, STUDIES)}choose from {', '.join(STUDIES)}"
        )
    return load_split("high_risk" if study == "look_alike" else study or "mini")


def _examples(split: Split, language: Language, study: str) -> list[Scenario | Case]:
    """The items of a study in a language; without a study, the scenarios."""
    return [
        item
        for item in split.items
        if item.language == language and getattr(item, "study", "") == study
    ]


def _write_parts(
    split: Split, folder: Path, file_format: Literal["jsonl", "parquet"]
) -> Iterator[Path]:
    """Write the files of a split, yielding each once it exists."""
    records = [item.to_dict() for item in split.items]
    data = folder / f"{'cases' if split.cases else 'scenarios'}.{file_format}"
    if file_format == "jsonl":
        write_jsonl(data, records)
    else:
        _write_parquet(data, records, is_cases=bool(split.cases))
    yield data
    header = []
    for key in HEADER:
        value = getattr(split, key)
        if value or key not in OPTIONAL:
            header.append(f"{key} = {_toml_string(value)}\n")
    texts = {
        # So that `datasets.load_dataset(FOLDER)` finds the items, and not the personas beside them.
        "README.md": f"---\nconfigs:\n- config_name: default\n  data_files: {data.name}\n---\n",
        "split.toml": "".join(header),
    }
    invented = _invented_in(records, split.invented)
    if invented:
        texts[INVENTED] = "\n".join(invented) + "\n"
    for name, text in texts.items():
        write_text(folder / name, text)
        yield folder / name
    yield from write_personas(split.personas.values(), folder)


def _write_parquet(path: Path, records: list[dict[str, Any]], is_cases: bool) -> None:
    """Write records as a table, which has one set of columns for all rows."""
    if not is_cases:
        records = [{"metadata": {}, **record} for record in records]
    if any("references" in record for record in records):
        for record in records:
            if "reference" in record:
                record["references"] = [record.pop("reference")]
    nested: set[str] = set()
    for record in records:
        nested |= {key for key, value in record.items() if isinstance(value, dict | list)}
    write_parquet(path, records, json_columns=sorted(nested))


def _invented_in(records: list[dict[str, Any]], names: Iterable[str]) -> list[str]:
    """Those of the invented names that the records hold."""
    if not names:
        return []
    texts = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    return [name for name in names if json.dumps(name, ensure_ascii=False)[1:-1] in texts]


def write_personas(personas: Iterable[Persona], folder: Path) -> Iterator[Path]:
    """Write each persona into `personas/` of a folder, yielding each file once it exists."""
    for persona in personas:
        lines = [f"id = {_toml_string(persona.id)}", f"relation = {_toml_string(persona.relation)}"]
        for language, name in persona.names.items():
            description = persona.descriptions[language]
            lines += ["", f"[{language}]", f"name = {_toml_string(name)}"]
            lines.append(f"description = {_toml_string(description)}")
        path = folder / "personas" / f"{_file_name(persona.id)}.toml"
        write_text(path, "\n".join(lines) + "\n")
        yield path


def _file_name(persona_id: str) -> str:
    """A name for a file: an id comes from data and is not safe as a path."""
    name = re.sub("[^A-Za-z0-9_-]", "_", persona_id[:64])
    if name == persona_id:
        return name
    return f"{name}-{hashlib.sha256(persona_id.encode()).hexdigest()[:8]}"


def _toml_string(text: str) -> str:
    """Format a TOML basic string (JSON's escapes are TOML's, except DEL)."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
