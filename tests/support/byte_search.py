"""Search files for a phrase: as bytes, and inside archives and Parquet files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path


def files_with(folder: Path, phrase: str) -> list[str]:
    """The files of a folder that hold a phrase, plain or as JSON escapes it, in any letter case."""
    return find_phrases(folder, [phrase])[phrase]


def find_phrases(
    folder: Path, phrases: Iterable[str], without: tuple[str, ...] = ()
) -> dict[str, list[str]]:
    """Phrase -> the files that hold it, each read once. Paths that begin like one of `without` are left out."""
    files: dict[str, list[str]] = {phrase: [] for phrase in phrases}
    forms = {}
    for phrase in files:
        forms[phrase] = {form.lower().encode() for form in (phrase, json.dumps(phrase)[1:-1])}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith(without) or not path.is_file():
            continue
        try:
            content = _content(path).lower()
        except FileNotFoundError:
            # A running server removes files of its own.
            continue
        for phrase, spellings in forms.items():
            if any(form in content for form in spellings):
                files[phrase].append(name)
    return files


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return content + b"".join(map(archive.read, archive.namelist()))
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return content + json.dumps(pq.read_table(path).to_pylist(), ensure_ascii=False).encode()
    return content
