"""The table of raw formats: a reader for each, which reads or refuses every item of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from h2htalk.curation.gather.formats import (
    contexts,
    dialogues,
    memory_bank,
    messages,
    question_answers,
    xtuner,
)
from h2htalk.curation.gather.json_items import read_objects
from h2htalk.curation.gather.raw_items import OnRead, RawItem

Reader = Callable[[Path, OnRead], Iterator[RawItem]]
# Called as `reader(path, on_read)`; raises DataError for a file whose items cannot be counted.
READERS: Mapping[str, Reader] = {
    "messages": partial(read_objects, messages.read_messages),
    "openai_messages": partial(read_objects, messages.read_openai),
    "sharegpt": partial(read_objects, messages.read_sharegpt),
    "xtuner": partial(read_objects, xtuner.read_record),
    "dialogues": partial(read_objects, dialogues.read_record),
    "question_answers": question_answers.read,
    "memory_bank": memory_bank.read,
    "contexts": contexts.read,
}
