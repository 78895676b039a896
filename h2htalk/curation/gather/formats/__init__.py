"""Readers of raw conversations, one a form: each gives every item of a file, read or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from h2htalk.curation.gather.formats import (
    contexts,
    dialogues,
    memory_bank,
    messages,
    openai_messages,
    question_answers,
    sharegpt,
    xtuner,
)
from h2htalk.curation.gather.raw_items import Item, OnRead
from h2htalk.curation.settings import SourceFormat

Reader = Callable[[Path, OnRead], Iterator[Item]]
# Form -> how a file of it is read: `reader(path, on_read)`.
READERS: Mapping[SourceFormat, Reader] = {
    "messages": messages.read,
    "persona": xtuner.read,
    "questions": question_answers.read,
    "memory_bank": memory_bank.read,
    "contexts": contexts.read,
    "openai": openai_messages.read,
    "sharegpt": sharegpt.read,
    "dialogues": dialogues.read,
}
