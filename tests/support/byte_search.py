"""Search files for a phrase: as bytes, and inside archives and Parquet files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path


def files_with(folder: Path, phrase: str) -> list[str]:
    """The files of a folder that hold a phrase, plain or as JSON escapes it, in any letter case."""
    forms = {form.lower().encode() for form in (phrase, json.dumps(phrase)[1:-1])}
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(form in _content(path).lower() for form in forms)
    ]


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return content + b"".join(map(archive.read, archive.namelist()))
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return content + json.dumps(pq.read_table(path).to_pylist(), ensure_ascii=False).encode()
    return content
