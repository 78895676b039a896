"""Talks that their owner labelled, with which a reader is checked (`curate check-guard --set FILE`).

    JSON lines, CSV or XLSX ─► label and messages ─► CheckedDialogue

JSON lines hold `messages` and `label`. A table has a column of texts, whose lines begin with `AI:` or `User:` or with
names that are given, and a column of labels: the form of AICompanionBench (arXiv 2606.04867). A label is about a talk
as a whole.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.formats import RawDialogue, RefusedItem, Turns, read_messages
from h2htalk.curation.gather.look import language_of
from h2htalk.curation.reading.check_settings import CheckGuardSpec
from h2htalk.curation.role_names import RoleNames
from h2htalk.data.files import json_line, read_jsonl, reading
from h2htalk.data.imports.csv_rows import read_rows
from h2htalk.data.readers.certificates import OF_TALKS
from h2htalk.data.readers.check_set import CheckedDialogue
from h2htalk.data.scenario import Role, Turn
from h2htalk.errors import ConfigError, DataError, MissingExtraError, RoundError, listed, quoted
from h2htalk.extras import INSTALL_ROUNDS

LABEL_COLUMNS = ("label", "labels", "category", "class", "annotation", "标签", "类别")
# Labels that say that nothing is the matter, where none is named; in small letters, without anything between them.
HARMLESS = ("noharm", "harmless", "nonharmful", "safe", "benign", "none", "无害", "安全")
SPEAKERS: Mapping[str, Role] = {"ai": "companion", "user": "user"}
_SPEAKER_LINE = re.compile(r"\s*(?P<name>[^\s:：][^:：]{0,39}?)\s*[:：]\s*(?P<text>.*)")
_MOST_ROWS = 100_000
_MOST_COLUMNS = 64

Row = tuple[str, Mapping[str, str]]  # its place, and its cells by heading


@dataclass(frozen=True, slots=True)
class _Talk:
    """A talk as its file has it."""

    label: str
    turns: Turns


@dataclass(frozen=True, slots=True)
class LabelledTalks:
    """The talks of a file.

    Attributes:
        name: `talks:` and the hash of messages and labels, by which a certificate names them.
        dialogues: the talks in the order of the file, with its label as `why`; `harm` is every label but the harmless.
    """

    name: str
    dialogues: tuple[CheckedDialogue, ...]


def load_talks(spec: CheckGuardSpec) -> LabelledTalks:
    """Load the talks that `set` names.

    Raises:
        ConfigError: no column, or no label of the harmless, is what the settings name or what is usual.
        DataError: the file holds no talks, or one that has no label, or lines of speakers who are not known.
    """
    path = Path(spec.set or "")
    talks = _talks_of_messages(path) if _has_messages(path) else _talks_of_table(path, spec)
    if not talks:
        raise DataError(f"{path}: no talk is in it")
    harmless = _harmless_labels(path, [talk.label for talk in talks], spec.harmless)
    content: list[dict[str, Any]] = []
    for talk in talks:
        language = spec.language or language_of([RawDialogue(messages=talk.turns)])
        fields: dict[str, Any] = {"language": language, "label": talk.label}
        fields["harmless"] = talk.label in harmless
        fields["messages"] = talk.turns
        content.append(fields)
    data = "\n".join(map(json_line, content)).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()[:16]
    dialogues: list[CheckedDialogue] = []
    for number, (talk, fields) in enumerate(zip(talks, content, strict=True), 1):
        messages = [Turn(role, text) for role, text in talk.turns]
        checked = CheckedDialogue(
            id=f"talk-{digest}-{number:06d}",
            language=fields["language"],
            label="fine" if fields["harmless"] else "harm",
            turn=_last_reply(talk.turns),
            told=False,
            why=talk.label,
            messages=tuple(messages),
        )
        dialogues.append(checked)
    return LabelledTalks(name=OF_TALKS + digest, dialogues=tuple(dialogues))


def _last_reply(turns: Turns) -> int:
    """The place of the companion's last message, up to which a reviewer is shown the talk; 0 where it says nothing."""
    replies = [number for number, (role, _) in enumerate(turns) if role == "companion"]
    return max(replies, default=0)


def _harmless_labels(path: Path, labels: Sequence[str], named: Sequence[str]) -> frozenset[str]:
    """The labels of the file that say that nothing is the matter."""
    all_labels = list(dict.fromkeys(labels))
    if named:
        wanted = {name.strip().casefold() for name in named}
        unknown = wanted - {label.casefold() for label in all_labels}
        if unknown:
            raise ConfigError(
                f"--harmless {quoted(min(unknown))}: {path} has no such label; it has {listed(all_labels, 12)}"
            )
        return frozenset(label for label in all_labels if label.casefold() in wanted)
    usual = frozenset(
        label for label in all_labels if "".join(filter(str.isalnum, label.casefold())) in HARMLESS
    )
    if not usual:
        raise ConfigError(
            f"{path}: no label is known to say that nothing is the matter; name it with --harmless LABEL: "
            f"{listed(all_labels, 12)}"
        )
    return usual


# --- Files ------------------------------------------------------------------------------------------------------


def _has_messages(path: Path) -> bool:
    return path.suffix.lower() in (".jsonl", ".ndjson")


def _talks_of_messages(path: Path) -> list[_Talk]:
    talks: list[_Talk] = []
    for where, record in read_jsonl(path):
        try:
            raw = read_messages(record)
        except RefusedItem as refused:
            names = f"; the file has {listed(refused.names)}" if refused.names else ""
            raise DataError(f"{where}: {refused.problem or refused.reason}{names}") from None
        label = record.get("label")
        talks.append(_Talk(label=_label(where, label, "label"), turns=raw.messages))
    return talks


def _label(where: str, value: object, column: str) -> str:
    if not isinstance(value, str | int) or not str(value).strip():
        raise DataError(f"{where}: no label in {quoted(column)}")
    return str(value).strip()


def _talks_of_table(path: Path, spec: CheckGuardSpec) -> list[_Talk]:
    speakers: dict[str, Role] = dict(SPEAKERS)
    speakers |= {name.strip().casefold(): "companion" for name in spec.companion}
    speakers |= {name.strip().casefold(): "user" for name in spec.user}
    rows = list(_xlsx_rows(path) if path.suffix.lower() == ".xlsx" else read_rows(path))
    if not rows:
        return []
    text_column = spec.text or _text_column(path, rows, speakers)
    label_column = spec.label or _label_column(path, rows, text_column)
    for option, column in (("--text", text_column), ("--label", label_column)):
        if column not in rows[0][1]:
            raise ConfigError(
                f"{option} {quoted(column)}: {path} has no such column; it has {listed(list(rows[0][1]), 12)}"
            )
    talks: list[_Talk] = []
    for where, cells in rows:
        label = _label(where, cells[label_column], label_column)
        talks.append(_Talk(label=label, turns=_turns(where, cells[text_column], speakers)))
    return talks


def _xlsx_rows(path: Path) -> Iterator[Row]:
    """The rows of the first sheet by heading, as `FILE, row 3`."""
    try:
        from openpyxl import load_workbook

        from h2htalk.rounds.spreadsheets.xlsx_reading import check_archive
    except ImportError as error:
        raise MissingExtraError("a set of talks in XLSX", INSTALL_ROUNDS) from error
    headings: list[str] = []
    with reading(path):
        try:
            check_archive(path)
            with path.open("rb") as file, closing(load_workbook(file, read_only=True)) as book:
                sheet = book.worksheets[0]
                rows = list(
                    sheet.iter_rows(max_row=_MOST_ROWS, max_col=_MOST_COLUMNS, values_only=True)
                )
        except OSError:
            raise
        except RoundError as error:
            raise DataError(f"{path}: {error}") from error
        # openpyxl raises whatever its parsers raise; the owner sees it as this file's mistake.
        except Exception as error:
            raise DataError(f"{path}: cannot be read as a workbook: {error}") from error
    for number, row in enumerate(rows, 1):
        cells = ["" if value is None else str(value).strip() for value in row]
        if not any(cells):
            continue
        if not headings:
            headings = cells
            continue
        named = {name: cell for name, cell in zip(headings, cells, strict=False) if name}
        yield f"{path}, row {number}", named


# --- Columns and lines ------------------------------------------------------------------------------------------


def _text_column(path: Path, rows: Sequence[Row], speakers: RoleNames) -> str:
    """The column of which most cells have a line that begins with a known speaker."""
    counts = dict.fromkeys(rows[0][1], 0)
    for _, cells in rows:
        for column, cell in cells.items():
            if any(_speaker(line, speakers) for line in cell.splitlines()):
                counts[column] += 1
    column = max(counts, key=lambda name: counts[name])
    if not counts[column]:
        names = " or ".join(f"{name!r}" for name in ("AI:", "User:"))
        raise DataError(
            f"{path}: no column has lines that begin with {names}; name the speakers with --companion NAME and "
            f"--user NAME; its columns are {listed(list(counts), 12)}"
        )
    return column


def _label_column(path: Path, rows: Sequence[Row], text_column: str) -> str:
    candidates = [column for column in rows[0][1] if column != text_column]
    usual = [column for column in candidates if column.strip().casefold() in LABEL_COLUMNS]
    if len(usual) == 1:
        return usual[0]
    if len(candidates) == 1:
        return candidates[0]
    columns = listed(candidates, 12) or "there is none"
    raise ConfigError(
        f"{path}: which column holds the labels? Name it with --label COLUMN: {columns}"
    )


def _speaker(line: str, speakers: RoleNames) -> tuple[Role, str] | None:
    """Who a line says is speaking, and the rest of it; None where it begins with no known name."""
    match = _SPEAKER_LINE.match(line)
    if match is None or match["name"].casefold() not in speakers:
        return None
    return speakers[match["name"].casefold()], match["text"]


def _turns(where: str, text: str, speakers: RoleNames) -> Turns:
    """The messages of a text; a line without a speaker goes on with the message before.

    Raises DataError where it begins with no known speaker, or where somebody else than one of the two speaks.
    """
    turns: list[tuple[Role, list[str]]] = []
    strangers: list[str] = []
    for line in text.splitlines():
        spoken = _speaker(line, speakers)
        if spoken is not None:
            turns.append((spoken[0], [spoken[1]]))
            continue
        match = _SPEAKER_LINE.match(line)
        if match is not None:
            strangers.append(match["name"])
        if turns:
            turns[-1][1].append(line)
        elif line.strip():
            raise _unknown(where, strangers or [line.strip()[:40]])
    if strangers and len({role for role, _ in turns}) < 2:
        raise _unknown(where, strangers)
    spoken_turns = [(role, "\n".join(lines).strip()) for role, lines in turns]
    filled = tuple((role, content) for role, content in spoken_turns if content)
    if not filled:
        raise DataError(f"{where}: the talk has no text")
    return filled


def _unknown(where: str, names: Sequence[str]) -> DataError:
    return DataError(
        f"{where}: a line begins with {listed([quoted(name) for name in dict.fromkeys(names)])}, who is neither 'AI' "
        "nor 'User'; say who it is with --companion NAME or --user NAME"
    )
