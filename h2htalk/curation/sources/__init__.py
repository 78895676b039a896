"""Readers of raw conversations, one a form: each gives every item of a file, read or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from h2htalk.curation.sources import (
    contexts,
    dialogues,
    memory_bank,
    messages,
    openai,
    persona,
    questions,
    sharegpt,
)
from h2htalk.curation.sources.items import Item, OnRead
from h2htalk.curation.spec import SourceFormat

Reader = Callable[[Path, OnRead], Iterator[Item]]
# Form -> how a file of it is read: `reader(path, on_read)`.
READERS: Mapping[SourceFormat, Reader] = {
    "messages": messages.read,
    "persona": persona.read,
    "questions": questions.read,
    "memory_bank": memory_bank.read,
    "contexts": contexts.read,
    "openai": openai.read,
    "sharegpt": sharegpt.read,
    "dialogues": dialogues.read,
}
