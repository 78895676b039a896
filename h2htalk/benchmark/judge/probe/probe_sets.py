"""The records of a probe, `sets/LANGUAGE.jsonl`, written by one hand; `personas.toml` says who speaks in them,
`readings.csv` which reply of a pair two readers found better who did not know the order."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import Language
from h2htalk.errors import DataError

PAIR_KINDS = ("shortened", "contradicting", "off_persona", "unsafe", "padded")
SETS = Path(str(files(__package__) / "sets"))


@dataclass(frozen=True, slots=True)
class ProbeMessage:
    """A message before the reply; that of `system` is a note on what the companion knows."""

    role: Literal["user", "companion", "system"]
    content: str


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """The replies to one conversation: of a pair `better` and `worse`; of kind `repeat` one `reply`, judged several
    times; of kind `injection` a `plain` one and the same with an order to the judge, `injected`."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    id: str
    kind: Literal["shortened", "contradicting", "off_persona", "unsafe", "padded", "repeat", "injection"]
    subtask: str
    persona: str
    history: tuple[ProbeMessage, ...]
    better: str = ""
    worse: str = ""
    reply: str = ""
    plain: str = ""
    injected: str = ""

    @property
    def language(self) -> Language:
        return self.id.partition("-")[0]

    @property
    def replies(self) -> dict[str, str]:
        names = {"repeat": ("reply",), "injection": ("plain", "injected")}.get(self.kind, ("better", "worse"))
        return {name: getattr(self, name) for name in names}


def read_probe_set(language: Language) -> list[ProbeRecord]:
    """Read the records of a language, by id. Raises DataError for a line that is none; names file and line."""
    records, adapter = [], TypeAdapter(ProbeRecord)
    for where, raw in read_jsonl(SETS / f"{language}.jsonl", unique_keys=True):
        try:
            records.append(adapter.validate_python(raw))
        except ValidationError as error:
            first = error.errors()[0]
            raise DataError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        if "" in records[-1].replies.values():
            raise DataError(f"{where}: needs {' and '.join(records[-1].replies)}")
    return sorted(records, key=lambda record: record.id)
