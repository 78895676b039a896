"""JSON Schemas of the settings files, with what the source says of each setting, so that an editor completes them.

A description is the field's own (`Field(description=...)`), the row of a table in the documentation, what the record's
docstring says of it, or the comment beside or above it. `make_schemas.py` writes the schemas.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, get_args, get_type_hints

from h2htalk.benchmark.gate.policy import Policy
from h2htalk.benchmark.studies.applications import Adapter
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.curation.stages import STAGES, GeneralSettings
from h2htalk.data.records import adapter
from h2htalk.rounds.settings import RoundSpec
from h2htalk.scale.suite import Suite

Schema = dict[str, Any]
RELEASES = Path(__file__).parents[1] / "docs/reference/releases.md"
# A field in a docstring: a line of "Attributes:", or a sentence that begins with names in backquotes and a colon.
_ATTRIBUTE = re.compile(r"^ {4,}(\w+): (.*(?:\n {8,}\S.*)*)", re.MULTILINE)


def settings_schemas() -> Mapping[str, Schema]:
    """The schema of each settings file, by the name that `h2htalk schema` has for it."""
    return {
        "curate": curate_schema(),
        "release": release_schema(),
        "round": round_schema(),
        "gate": file_schema(Policy, "gate.toml: what a run must keep"),
        "app": file_schema(Adapter, "app.toml: how an application is called"),
        "suite": file_schema(Suite, "models.toml: the models of a suite, and how it runs"),
    }


def curate_schema() -> Schema:
    """The schema of a curation: the general settings, and a table for each stage."""
    schema = file_schema(GeneralSettings, "curate.toml: the stages of a curation")
    for stage in STAGES.values():
        section = file_schema(stage.settings, "")
        schema.setdefault("$defs", {}).update(section.pop("$defs", {}))
        del section["$schema"], section["title"]
        schema["properties"][stage.name] = section
    return schema


def release_schema() -> Schema:
    """The schema of a release, whose settings a page describes."""
    schema = file_schema(ReleaseSpec, "release.toml: what a release holds")
    rows = table_rows(RELEASES.read_text(encoding="utf-8"))
    for table in (schema, *schema["$defs"].values()):
        for name, setting in table["properties"].items():
            if name in rows:
                setting["description"] = rows[name]
    return schema


def round_schema() -> Schema:
    """The schema of a round's settings; its kind and items are named in the command."""
    schema = file_schema(RoundSpec, "round.toml: the settings of a round")
    for name in ("kind", "items"):
        del schema["properties"][name]
    del schema["required"]
    return schema


def file_schema(record: type[Any], title: str) -> Schema:
    """The schema of a record: no other settings than its own, with descriptions, in it and in the records within."""
    kind: Any = record
    schema: Schema = adapter(kind).json_schema()
    defined = schema.get("$defs", {})
    for inner in records_in(record):
        table = schema if inner is record else defined.get(inner.__name__)
        if table is not None:
            describe_table(table, inner)
    for_editors = _for_editors(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **for_editors,
        "title": title,
    }


def _for_editors(schema: Any) -> Any:
    """A schema without the value null, which TOML does not have, and without patterns that few validators know."""
    if isinstance(schema, list):
        return [_for_editors(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    values = {name: _for_editors(value) for name, value in schema.items()}
    if values.get("default", "") is None:
        del values["default"]
    if "\\p{" in str(values.get("pattern", "")):
        del values["pattern"]
    choices = [choice for choice in values.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        del values["anyOf"]
        return {**choices[0], **values}
    return {**values, "anyOf": choices} if choices else values


def describe_table(table: Schema, record: type[Any]) -> None:
    """Forbid other settings in the schema of a record, and describe its own."""
    for key in ("additionalProperties", "description"):  # which stand behind all others then
        table.pop(key, None)
    table["additionalProperties"] = False
    paragraph = (inspect.getdoc(record) or "").partition("\n\n")[0]
    if paragraph:
        table["description"] = " ".join(paragraph.split())
    texts = descriptions(record)
    for name, setting in table["properties"].items():
        setting.pop("title", None)
        if name in texts:
            setting.setdefault("description", texts[name])


def table_rows(page: str) -> dict[str, str]:
    """What the tables of a page say of each setting, without links; the first row of a name counts."""
    rows: dict[str, str] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) > 1:
            text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", cells[1])
            for name in re.findall(r"`\[?(\w+)\]?`", cells[0]):
                rows.setdefault(name, text)
    return rows


def records_in(kind: Any) -> Iterator[type[Any]]:
    """A record, and every record in the types of its fields."""
    if isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__") or hasattr(kind, "model_fields")
    ):
        yield kind
        for hint in get_type_hints(kind).values():
            yield from records_in(hint)
    else:
        for argument in get_args(kind):
            yield from records_in(argument)


def descriptions(record: type[Any]) -> dict[str, str]:
    """What the source of a record, and of the records that it extends, says of each field."""
    texts: dict[str, str] = {}
    for parent in reversed(record.__mro__):
        if parent.__module__.startswith("h2htalk."):
            texts |= comments_of(parent) | docstring_texts(parent)
    for name, setting in getattr(record, "model_fields", {}).items():
        if setting.alias and name in texts:
            texts[setting.alias] = texts.pop(name)
    return {name: text[0].upper() + text[1:] for name, text in texts.items()}


def docstring_texts(record: type[Any]) -> dict[str, str]:
    """What the docstring of a record says of its fields."""
    text = inspect.getdoc(record) or ""
    texts = {name: " ".join(words.split()) for name, words in _ATTRIBUTE.findall(text)}
    for sentence in re.split(r"(?<=[.;]) (?=`)", " ".join(text.split())):
        names, colon, words = sentence.partition(": ")
        if colon and re.fullmatch(r"(?:`\w+`(?:, | and )?)+(?: \([^)]*\))?", names):
            for name in re.findall(r"`(\w+)`", names):
                texts.setdefault(name, words.rstrip(".;"))
    return texts


@dataclass(slots=True)
class _SourceLines:
    """The comments of a source by line; `alone`: the lines that hold nothing else."""

    comments: dict[int, str] = field(default_factory=dict)
    alone: set[int] = field(default_factory=set)

    @classmethod
    def read(cls, source: str) -> _SourceLines:
        lines = cls()
        for token in tokenize.generate_tokens(StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                number = token.start[0]
                lines.comments[number] = token.string.lstrip("# ")
                if not token.line[: token.start[1]].strip():
                    lines.alone.add(number)
        return lines

    def about(self, first: int, last: int) -> str:
        """The comment above and beside the lines of a field."""
        above: list[str] = []
        number = first - 1
        while number in self.alone:
            above.insert(0, self.comments[number])
            number -= 1
        comments = [
            self.comments[number] for number in range(first, last + 1) if number in self.comments
        ]
        return " ".join([*above, *comments])


def comments_of(record: type[Any]) -> dict[str, str]:
    """The comments of a record's fields."""
    source = textwrap.dedent(inspect.getsource(record))
    lines = _SourceLines.read(source)
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = lines.about(statement.lineno, statement.end_lineno or statement.lineno)
            if text:
                texts[statement.target.id] = text
    return texts
