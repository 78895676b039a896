"""Damage files as disks, editors, other programs and people do, one place at a time, reproducibly by a seed.

path, what = damage(folder, random.Random(7))
"""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from h2htalk.data.imports.zip_members import read_members

# Written in place of a value, as text that `json.dumps` would not write.
_RAW = "@@raw-value@@"
DEEP = 100_000
# What stands in place of a value: of another type, out of range, or no JSON.
VALUES: tuple[Any, ...] = (
    None,
    True,
    "",
    "text",
    "../../etc/passwd",
    "a\u0000b",
    "\ud83d",
    "2026-02-31",
    "NaN",
    0,
    -1,
    1.5,
    1e308,
    2**63,
    10**400,
    [],
    {},
    [None],
    [1],
    ["text"],
    {"a": 1},
    [[]],
    [{}],
    {"": None},
)
RAW_VALUES = (
    "NaN",
    "-Infinity",
    "9" * 5000,
    "[" * DEEP + "]" * DEEP,
    '{"a":' * 500 + "1" + "}" * 500,
    "1e999",
    "",
)
TOML_VALUES = (
    '""',
    '"text"',
    "-1",
    "0",
    "1.5",
    "nan",
    "inf",
    "true",
    "[]",
    "[1]",
    '["text"]',
    "{}",
    "2026-02-28",
)
BINARY = (".xlsx", ".parquet", ".eval", ".npy", ".png", ".pdf")
Damaged = tuple[Path, str]


def damage(
    folder: Path, draw: random.Random, choose: Callable[[Path], bool] = lambda path: True
) -> Damaged:
    """Damage one file of a folder; return it, and what was done to it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and choose(path))
    path = draw.choice(paths)
    return path, damage_file(path, draw)


def damage_file(path: Path, draw: random.Random) -> str:
    """Damage a file; return what was done to it."""
    structured = {
        ".json": damage_json,
        ".jsonl": damage_jsonl,
        ".toml": damage_toml,
        ".csv": damage_table,
        ".eval": damage_zip,
        ".xlsx": damage_zip,
        ".parquet": damage_parquet,
    }
    if path.suffix in structured and draw.random() < 0.8:
        return structured[path.suffix](path, draw)
    return damage_bytes(path, draw)


def damage_bytes(path: Path, draw: random.Random) -> str:
    """Do to a file what needs no knowledge of its form."""
    content = path.read_bytes()
    at = draw.randrange(len(content) + 1)
    changes: dict[str, bytes | None] = {
        "empty": b"",
        "white space": b"  \n\n",
        "cut": content[:at],
        "zeros": content[:at] + bytes(64) + content[at + 64 :],
        "not UTF-8": content[:at] + b"\xff\xfe" + content[at:],
        "a byte order mark": b"\xef\xbb\xbf" + content,
        "UTF-16": content.decode("utf-8", "replace").encode("utf-16"),
        "carriage returns": content.replace(b"\n", b"\r\n"),
        "twice": content + content,
        "a web page": b"<!doctype html><html><body>404</body></html>",
        "a folder": None,
        "missing": None,
        "a link to itself": None,
    }
    name = draw.choice(sorted(changes))
    changed = changes[name]
    if changed is not None:
        path.write_bytes(changed)
        return name
    path.unlink()
    if name == "a folder":
        path.mkdir()
    elif name == "a link to itself":
        path.symlink_to(path.name)
    return name


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value that something else can stand at."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*place, key)
            yield from _places(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield (*place, index)
            yield from _places(inner, (*place, index))


def damage_value(value: Any, draw: random.Random) -> tuple[str, str]:
    """A JSON value with damage at one place, as text, and what was done."""
    places = list(_places(value))
    if not places or draw.random() < 0.05:
        new = draw.choice(VALUES)
        return json.dumps(new), f"all of it is {_brief(new)}"
    # Places of a name that repeats are drawn no more often than others.
    by_name: dict[str, list[tuple[Any, ...]]] = {}
    for place in places:
        by_name.setdefault(".".join(part for part in place if isinstance(part, str)), []).append(
            place
        )
    place = draw.choice(by_name[draw.choice(sorted(by_name))])
    *way, last = place
    parent = value
    for part in way:
        parent = parent[part]
    where = ".".join(map(str, place))
    kind = draw.choice(("value", "value", "value", "raw", "missing", "key", "key twice", "more"))
    if kind == "missing":
        del parent[last]
        return json.dumps(value), f"{where} is missing"
    if kind == "key" and isinstance(parent, dict):
        parent[draw.choice(("", "no such key", "id ", "\ud83d"))] = parent.pop(last)
        return json.dumps(value), f"{where} has another key"
    if kind == "key twice" and isinstance(parent, dict):
        text = json.dumps(parent | {last: _RAW})
        repeated = (
            f"{json.dumps(parent[last])}, {json.dumps(last)}: {json.dumps(draw.choice(VALUES))}"
        )
        parent.clear()
        parent[_RAW] = None
        inner = text.replace(json.dumps(_RAW), repeated)
        whole = json.dumps(value).replace(f'{{"{_RAW}": null}}', inner)
        return whole, f"{where} is there twice"
    if kind == "more" and isinstance(parent, list):
        parent.insert(last, parent[last])
        return json.dumps(value), f"{where} is there twice"
    if kind == "raw":
        new = draw.choice(RAW_VALUES)
        parent[last] = _RAW
        return json.dumps(value).replace(json.dumps(_RAW), new), f"{where} is {new[:20]}"
    new = draw.choice(VALUES)
    parent[last] = new
    return json.dumps(value), f"{where} is {_brief(new)}"


def _brief(value: Any) -> str:
    text = ascii(value)
    return text if len(text) < 40 else f"{text[:40]}..."


def damage_json(path: Path, draw: random.Random) -> str:
    try:
        value = json.loads(path.read_bytes())
    except ValueError:
        return damage_bytes(path, draw)
    text, what = damage_value(value, draw)
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return what


def damage_jsonl(path: Path, draw: random.Random) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines:
        return damage_bytes(path, draw)
    number = draw.randrange(len(lines))
    kind = draw.choice(("value", "value", "value", "value", "cut", "twice", "missing", "moved"))
    what = kind
    if kind == "value":
        try:
            lines[number], what = damage_value(json.loads(lines[number]), draw)
        except ValueError:
            return damage_bytes(path, draw)
    elif kind == "cut":
        lines[number] = lines[number][: draw.randrange(len(lines[number]) + 1)]
    elif kind == "twice":
        lines.append(lines[number])
    elif kind == "missing":
        del lines[number]
    else:
        lines.insert(0, lines.pop(number))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    return f"line {number + 1}: {what}"


def damage_toml(path: Path, draw: random.Random) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    settings = [number for number, line in enumerate(lines) if "=" in line]
    kind = draw.choice(("value", "value", "value", "missing", "twice", "table"))
    if not settings:
        return damage_bytes(path, draw)
    number = draw.choice(settings)
    key = lines[number].partition("=")[0].strip()
    if kind == "value":
        new = draw.choice(TOML_VALUES)
        lines[number] = f"{key} = {new}"
    elif kind == "missing":
        new = "missing"
        del lines[number]
    elif kind == "twice":
        new = "there twice"
        lines.append(lines[number])
    else:
        new = "a table"
        lines[number] = f"{key}.a.b = 1"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"line {number + 1}: {key} is {new}"


def damage_table(path: Path, draw: random.Random) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines:
        return damage_bytes(path, draw)
    number = draw.randrange(len(lines))
    cells = lines[number].split(",")
    kind = draw.choice(("cell", "cell", "cell", "more", "fewer", "quote", "missing"))
    if kind == "cell":
        new = draw.choice(
            ("", "text", "-1", "NaN", "1e400", "9" * 400, "\0", '"', "2026-02-31", "=1+1", "²")
        )
        cells[draw.randrange(len(cells))] = new
        kind = f"a cell is {new[:20]!r}"
    elif kind == "more":
        cells.append("more")
    elif kind == "fewer":
        cells = cells[:-1]
    elif kind == "quote":
        cells[0] = f'"{cells[0]}'
    lines[number] = ",".join(cells)
    if kind == "missing":
        del lines[number]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"line {number + 1}: {kind}"


def damage_zip(path: Path, draw: random.Random) -> str:
    """Damage a member of an archive, or leave it out."""
    names: list[str] = []
    contents = [content for _, content in read_members(path, lambda found: _noted(names, found))]
    members = dict(zip(names, contents, strict=True))
    name = draw.choice(sorted(members))
    if draw.random() < 0.15:
        del members[name]
        what = "missing"
    else:
        work = path.with_name(f"member-{path.name}{Path(name).suffix}")
        work.write_bytes(members[name])
        try:
            what = damage_json(work, draw) if name.endswith(".json") else damage_bytes(work, draw)
            if work.is_file():
                members[name] = work.read_bytes()
            else:
                del members[name]
        finally:
            if work.is_dir():
                work.rmdir()
            else:
                work.unlink(missing_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return f"{name}: {what}"


def _noted(names: list[str], found: list[str]) -> list[str]:
    names += found
    return found


def damage_parquet(path: Path, draw: random.Random) -> str:
    """Leave out a column, give it another type or name, or a cell another value."""
    rows = pq.read_table(path).to_pylist()
    if not rows or not rows[0]:
        return damage_bytes(path, draw)
    column = draw.choice(sorted(rows[0]))
    kind = draw.choice(("missing", "other type", "null", "renamed", "value", "no rows"))
    for row in rows:
        value = row.pop(column)
        if kind == "other type":
            row[column] = draw.choice((1,)) if not isinstance(value, int) else "text"
        elif kind == "null":
            row[column] = None
        elif kind == "renamed":
            row[f"{column} "] = value
        elif kind == "value":
            row[column] = value if row is not rows[-1] else _same_type(value)
        elif kind == "no rows":
            row[column] = value
    table = pa.Table.from_pylist(rows[:0] if kind == "no rows" else rows)
    pq.write_table(table, path)
    return f"{column}: {kind}"


def _same_type(value: Any) -> Any:
    """Another value of a type."""
    if isinstance(value, str):
        return '{"a": [}'
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return -1
    if isinstance(value, float):
        return float("nan")
    return [] if isinstance(value, list) else None


def copy_folder(folder: Path, to: Path) -> Path:
    """A copy of a folder, in place of an earlier one."""
    shutil.rmtree(to, ignore_errors=True)
    return Path(shutil.copytree(folder, to, symlinks=True))
