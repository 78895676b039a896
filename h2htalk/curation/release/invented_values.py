"""The values that anonymisation invented: keyed hashes in the private folder beside a release, or beside a split.

Nothing public says which values are invented: what is not among them would be the real names that were missed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Self

from h2htalk.curation.anonymize.spans import plain
from h2htalk.curation.anonymize.values.dialogue_values import name_parts
from h2htalk.curation.release.content import ReleaseItem
from h2htalk.curation.stage_folder import AUDIT, KEPT
from h2htalk.curation.workspace import Workspace, mark
from h2htalk.data.files import read_json_object, reading, write_json
from h2htalk.data.links import link_folder
from h2htalk.data.records import read_record
from h2htalk.data.releases.release_folder import private_folder
from h2htalk.data.scenario import is_workspace
from h2htalk.errors import ConfigError

FILE = "invented-values.json"
_HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class InventedValues:
    """What was put into dialogues: hash of a dialogue -> the hashes of the parts of each value.

    Whoever has the `key` of the hashes can test guesses. `allow`: names of the specification that are no personal data.
    """

    key: str = ""
    values: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    allow: Sequence[str] = ()

    @classmethod
    def hashed(cls, values: Mapping[str, Iterable[str]]) -> Self:
        """Hash the values of each dialogue, under a new key."""
        one = cls(secrets.token_hex(32))
        parts = {name: [sorted(map(one._mark, _parts(text))) for text in sorted(own)] for name, own in values.items()}
        return cls(one.key, {one._mark(name): own for name, own in parts.items()})

    @classmethod
    def of_workspace(cls, workspace: Workspace, items: Iterable[ReleaseItem]) -> Self:
        """The values that anonymisation put into the dialogues of items, and the companions that their sources name."""
        stage = workspace.stage("anonymize")
        if (stage.path / "stage.json").exists() and not (stage.path / "summary.json").exists():
            raise ConfigError(f"{workspace.path}: anonymize is not finished; run h2htalk curate run first")
        settings = read_json_object(stage.path / "stage.json", missing_ok=True).get("settings", {})
        wanted = {name for item in items for name in item.family()}
        found: dict[str, set[str]] = {}
        for part in stage.parts():
            spans = {record["id"]: record.get("spans", ()) for record in stage.part_records(part, AUDIT)}
            for one in stage.part_records(part, KEPT):
                if (name := one["id"]) in wanted:
                    own = [(one["messages"][s["message"] - 1], s) for s in spans.get(name, ()) if "message" in s]
                    found[name] = {turn["content"][span["start"] : span["end"]] for turn, span in own}
                    source = settings.get("sources", {}).get(one["provenance"].get("source"), {})
                    found[name].update(source.get("companions", ()))
        return cls.hashed(found)

    @classmethod
    def find(cls, name: str, items: Iterable[ReleaseItem]) -> Self | None:
        """The values in items of a workspace, a stage of it, a release or a split; None where they are not known."""
        folder, path = link_folder(name), Path(name)
        if folder is not None and is_workspace(folder):
            return cls.of_workspace(Workspace(folder), items)
        return cls.read(folder or private_folder(path if path.is_dir() else path.parent))

    @classmethod
    def read(cls, private: Path) -> Self | None:
        """The list in a private folder; None where there is none. Raises DataError where it is damaged."""
        with reading(path := private / FILE):
            return read_record(cls, path.read_bytes(), str(path)) if path.exists() else None

    def write(self, private: Path, items: Iterable[ReleaseItem]) -> Path:
        """Write the list of what is in items into a private folder; return its file."""
        names = sorted({self._mark(name) for item in items for name in item.family()} & self.values.keys())
        private.mkdir(mode=0o700, exist_ok=True)
        write_json(private / FILE, asdict(replace(self, values={name: self.values[name] for name in names})))
        return private / FILE

    def hold(self, family: Iterable[str], value: str) -> bool:
        """Whether a value is one that was put into a dialogue of a family, or a part of one, in any format.

        Titles and prefixes are free: of the invented 王小明 also 王老师 and 小王. Digits must be all of them.
        """
        own = set(map(self._mark, _parts(value, found=True)))
        put_in = (one for name in family for one in self.values.get(self._mark(name), ()))
        return bool(own) and any(own.issubset(one) for one in put_in)

    def _mark(self, text: str) -> str:
        return mark(self.key.encode(), text)


def _parts(value: str, *, found: bool = False) -> set[str]:
    """What a value is known by in any format: its words, of Han text the pairs of characters, and all digits together.

    `found`: of a text, which may hold a part of the value: without titles and single characters.
    """
    parts = [part.key for part in name_parts((value,))[value].parts if not (found and part.role == "kept")]
    letters = re.sub(r"[\W\d_]+", "", "".join(parts))
    known = set(parts)
    if _HAN.search(value):
        pairs = set(map("".join, pairwise(letters)))
        known = pairs or set(letters) if found else known | pairs | set(letters)
    digits = re.sub("[^0-9]", "", plain(value))
    return known | ({f"#{digits}"} if digits else set())
