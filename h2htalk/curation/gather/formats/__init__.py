"""The table of raw formats: a reader for each, which reads or refuses every item of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from h2htalk.curation.gather.formats import contexts, memory_bank, messages, question_answers
from h2htalk.curation.gather.json_items import ReadRecord, read_objects, read_values
from h2htalk.curation.gather.raw_items import OnRead, RawDialogue, RawItem, read_user_names
from h2htalk.curation.gather.speaker_roles import ROLE_NAMES, RoleNames
from h2htalk.curation.gather.tables import Row

Reader = Callable[[Path, OnRead], Iterator[RawItem]]
# One object an item; those of the first table name the role of each message.
_WITH_ROLES: Mapping[str, Callable[..., RawDialogue]] = {
    "messages": messages.read_messages,
    "openai_messages": messages.read_openai,
    "sharegpt": messages.read_sharegpt,
}
_RECORDS: Mapping[str, ReadRecord] = {
    **_WITH_ROLES,
    "xtuner": messages.read_xtuner,
    "dialogues": messages.read_dialogue,
}


def _record_reader(form: str, roles: RoleNames = ROLE_NAMES, name_keys: Iterable[str] = ()) -> ReadRecord:
    """Reads a record of a format, and the user's names in it."""
    read = partial(_WITH_ROLES[form], roles={**ROLE_NAMES, **roles}) if form in _WITH_ROLES else _RECORDS[form]

    def read_record(record: Any) -> RawDialogue:
        raw = read(record)
        return replace(raw, metadata={**raw.metadata, **read_user_names(record, name_keys)})

    return read_record


# Called as `reader(path, on_read)`; raises DataError for a file whose items cannot be counted.
READERS: Mapping[str, Reader] = {
    **{name: partial(read_objects, _record_reader(name)) for name in _RECORDS},
    "question_answers": question_answers.read,
    "memory_bank": memory_bank.read,
    "contexts": contexts.read,
}


def names_roles(form: str) -> bool:
    """Whether the messages of a format name their roles."""
    return form in _WITH_ROLES


def reads_tables(form: str) -> bool:
    """Whether a format's items may be rows of a table."""
    return form in _RECORDS or form == "question_answers"


def open_reader(form: str, roles: RoleNames, name_keys: Iterable[str]) -> Reader:
    """The reader of a format, with names of roles, and keys of the user's names, beside the usual ones."""
    return partial(read_objects, _record_reader(form, roles, name_keys)) if form in _RECORDS else READERS[form]


def read_rows(
    form: str, rows: Iterator[Row], roles: RoleNames, name_keys: Iterable[str], where: str
) -> Iterator[RawItem]:
    """The items of a table's rows, in a format that `reads_tables`.

    Raises:
        ConfigError: the columns are not those of the format; `where` names the table.
    """
    if form == "question_answers":
        return question_answers.read_rows(rows, where)
    return read_values(_record_reader(form, roles, name_keys), rows)
