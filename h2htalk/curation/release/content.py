"""What a release holds, in memory: written into a folder, read back from one, and compared with another's."""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Self

from h2htalk.curation.candidates import input_passages, input_turns, scenario_passages
from h2htalk.curation.stage_folder import AUDIT, KEPT
from h2htalk.curation.workspace import Workspace, mark
from h2htalk.data.case import STUDIES, Case
from h2htalk.data.erasure.folder_kinds import read_erased
from h2htalk.data.files import reading, write_json
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.links import link_folder
from h2htalk.data.readers.passages import SpokenPassage, conversation_passages
from h2htalk.data.records import read_record, strict_record
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.releases.release_folder import private_folder
from h2htalk.data.scenario import Dialogue, Persona, Scenario, Turn, personas_of
from h2htalk.data.split_output import write_personas
from h2htalk.data.stage_folders import is_workspace
from h2htalk.detect.personal.spans import plain
from h2htalk.detect.personal.values.dialogue_values import name_parts
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.rounds.aggregation.decisions import RULES
from h2htalk.rounds.texts.interface import passage_title
from h2htalk.text.record_diff import RecordDiff, diff_records

_NUMBER = re.compile("[0-9]+([.][0-9]+)?", re.ASCII).fullmatch
# Fields whose texts are those of `item_texts`, and the persona, which is a record of its own.
_SAID = ("inputs", "reference", "references", "sessions", "history", "persona")
_NOBODY = Persona("", "", {}, {})
_LONG = 1_000_000  # a number with the digits of a telephone's
# The key of a scenario's metadata with what is known of each reference.
REFERENCES = "references"


@strict_record
class VoteRow:
    """The votes on one question of one item in a round of a kind (`round`), and what was decided.

    `form` is `label` or `rating`; `annotators` are salted hashes, one a vote. `decision` is the decided label or the
    mean as text, empty for a tie or without votes, by a rule of `rounds.aggregation.decisions.RULES`. `agreement` is
    the share of pairs of votes that are equal, 0 to 1; None below two votes.
    """

    item: str
    round: str
    question: str
    form: str
    annotators: tuple[str, ...]
    values: tuple[str, ...]
    decision: str
    rule: str
    agreement: float | None = None


@dataclass(frozen=True, slots=True)
class ReleaseItem:
    """A scenario with the votes on it."""

    scenario: Scenario
    votes: tuple[VoteRow, ...] = ()

    @property
    def id(self) -> str:
        return self.scenario.id

    def notes(self) -> list[Mapping[str, Any]]:
        """What is known of each reference."""
        return [
            note for note in self.scenario.metadata.get(REFERENCES, ()) if isinstance(note, Mapping)
        ]

    def licences(self) -> list[str]:
        """The licence of the item, and those of references from other dialogues."""
        return [
            self.scenario.licence,
            *(str(note["licence"]) for note in self.notes() if "licence" in note),
        ]

    def family(self) -> frozenset[str]:
        """The item's id, and the ids that items of one family share: of dialogue, duplicates, person, other replies."""
        provenance = self.scenario.provenance
        ids = {
            self.id,
            provenance.get("dialogue"),
            provenance.get("person"),
            *provenance.get("merged", ()),
        }
        ids.update(note.get("dialogue") for note in self.notes())
        return frozenset(str(one) for one in ids if one)


@dataclass(frozen=True, slots=True)
class ReleaseContent:
    """The items of a release by split, its cases (all in split `test`), and the personas that they name by id."""

    splits: Mapping[str, tuple[ReleaseItem, ...]]
    cases: tuple[Case, ...] = ()
    personas: Mapping[str, Persona] = field(default_factory=dict)

    def items(self) -> Iterator[ReleaseItem]:
        """The items of all splits."""
        for items in self.splits.values():
            yield from items

    def records(self) -> list[Scenario | Case]:
        """The scenarios of all splits, then the cases."""
        return [*(item.scenario for item in self.items()), *self.cases]

    def parts(self) -> dict[tuple[str, str], list[Scenario | Case | VoteRow]]:
        """(config, split) -> its records; languages first, `votes` last."""
        found: dict[tuple[str, str], list[Scenario | Case | VoteRow]] = {}
        for language, (split, items) in product(LANGUAGES, self.splits.items()):
            found[language, split] = [
                item.scenario for item in items if item.scenario.language == language
            ]
        for case in sorted(self.cases, key=lambda case: (case.study, case.language, case.id)):
            found.setdefault((f"{case.study}_{case.language}", releases.TEST), []).append(case)
        for split, items in self.splits.items():
            found[releases.VOTES, split] = [vote for item in items for vote in item.votes]
        return {part: records for part, records in found.items() if records}

    def configs(self) -> dict[str, dict[str, int]]:
        """Config -> split -> number of rows."""
        configs: dict[str, dict[str, int]] = {}
        for (config, split), records in self.parts().items():
            configs.setdefault(config, {})[split] = len(records)
        return configs


def write_data(content: ReleaseContent, folder: Path, canary: str) -> None:
    """Write rows, votes and personas."""
    for (config, split), records in content.parts().items():
        releases.write_rows(
            folder, config, split, [_row(one, content.personas, canary) for one in records]
        )
    list(write_personas(content.personas.values(), folder))


def _row(
    one: Scenario | Case | VoteRow, personas: Mapping[str, Persona], canary: str
) -> dict[str, Any]:
    """A row; that of a scenario shows it as a conversation: the persona as system message, then the inputs.

    A chat is its history; other inputs are one message of the user, each passage under its heading.
    """
    if isinstance(one, VoteRow):
        return asdict(one)
    if isinstance(one, Case):
        return releases.case_row(one, canary)
    messages = [{"role": "system", "content": personas[one.persona].descriptions[one.language]}]
    if passages := [
        f"{passage_title(name, one.language)}\n{text}" for name, text in input_passages(one).items()
    ]:
        messages.append({"role": "user", "content": "\n\n".join(passages)})
    roles = {"user": "user", "companion": "assistant"}
    messages += [{"role": roles[turn.role], "content": turn.content} for turn in one.turns]
    return releases.scenario_row(one, messages, canary)


def read_content(folder: Path) -> tuple[releases.Manifest, ReleaseContent]:
    """Read a release folder back. Raises DataError."""
    manifest = releases.read_manifest(folder)
    splits: dict[str, tuple[ReleaseItem, ...]] = {}
    for split in releases.SPLITS:
        votes: dict[str, list[VoteRow]] = defaultdict(list)
        for where, row in releases.read_rows(folder, manifest, releases.VOTES, split):
            vote = read_record(VoteRow, row, where)
            numbers = (
                [*vote.values, *filter(None, [vote.decision])] if vote.form == "rating" else []
            )
            if (
                len(vote.annotators) != len(vote.values)
                or vote.rule not in RULES
                or not all(map(_NUMBER, numbers))
            ):
                rules = ", ".join(RULES)
                raise DataError(
                    f"{where}: needs an annotator a value, a rule of {rules}, and numbers for a rating"
                )
            votes[vote.item].append(vote)
        if scenarios := [
            one
            for one in releases.read_items(folder, manifest, "", split)
            if isinstance(one, Scenario)
        ]:
            splits[split] = tuple(ReleaseItem(one, tuple(votes[one.id])) for one in scenarios)
    items = (
        one
        for study in STUDIES
        for one in releases.read_items(folder, manifest, study, releases.TEST)
    )
    content = ReleaseContent(
        splits, tuple(one for one in items if isinstance(one, Case)), personas_of(folder)
    )
    # Personas must be there, and the column for readers must show what gates read.
    shown = {}
    for record in content.records():
        if record.language not in content.personas.get(record.persona, _NOBODY).names:
            raise DataError(
                f"{folder}: {record.id}: personas/ lacks {quoted(record.persona)} in its language"
            )
        shown[record.id] = _row(record, content.personas, "")["messages"]
    for config, split in content.parts():
        for where, row in (
            releases.read_rows(folder, manifest, config, split) if config != releases.VOTES else ()
        ):
            if row.get("messages") != shown[row["id"]]:
                raise DataError(
                    f"{where}: the column `messages` is not what the inputs of the row say"
                )
    return manifest, content


def item_texts(one: Scenario | Case) -> list[Turn]:
    """Every text of an item that somebody says or that is an input, with the role of its speaker."""
    if isinstance(one, Scenario):
        return [*input_turns(one), *(Turn("companion", text) for text in one.references)]
    turns = list(one.history)
    for turn in one.turns():
        turns += [
            Turn("user", turn.user),
            *([Turn("companion", turn.reference)] if turn.reference else []),
        ]
    return turns


def compared_dialogue(record: Scenario | Case) -> Dialogue:
    """A record as dedup compares it; an item with what was decided on its safety, its tag `risk` included."""
    metadata: dict[str, Any] = {}
    if isinstance(record, Scenario):
        noted = record.metadata.get("safety")
        safety = dict(noted) if isinstance(noted, Mapping) else {}
        metadata["safety"] = {**safety, "risk": record.tags.risk}
    return Dialogue(
        id=record.id,
        language=record.language,
        messages=tuple(item_texts(record)),
        metadata=metadata,
    )


def record_passages(record: Scenario | Case) -> list[SpokenPassage]:
    """The passages of an item, or case, as readers have them."""
    if isinstance(record, Scenario):
        return scenario_passages(record, record.references)
    return conversation_passages(item_texts(record))


def item_notes(one: Scenario | Case) -> Iterator[tuple[str, str]]:
    """Every other text of an item once, after the name of its field; with the persona's, all that readers get.

    Keys and long numbers of provenance and metadata count as texts.
    """
    said = {turn.content for turn in item_texts(one)}
    for name, value in one.to_dict().items():
        if name not in _SAID:
            texts = dict.fromkeys(_strings(value, name in ("metadata", "provenance")))
            yield from ((name, text) for text in texts if text and text not in said)


def _strings(value: object, keys: bool) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | Sequence):
        if isinstance(value, Mapping) and keys:
            yield from map(str, value)
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(one, keys)
    elif isinstance(value, int | float) and abs(value) >= _LONG:
        yield f"{value:.15g}"


ERASED, LEFT_OUT = "erased", "no longer accepted, or not chosen"
_COMPARED = ("name", "version", "licence", "description", "date", "canary")


def diff_releases(old: Path, new: Path) -> RecordDiff:
    """Compare the facts, items, cases and personas of two release folders. Raises DataError."""
    (before, was), (after, now) = read_content(old), read_content(new)
    removed = {"": LEFT_OUT} | dict.fromkeys(read_erased(new / releases.TOMBSTONES), ERASED)
    return diff_records(_records(was), _records(now), (_facts(before), _facts(after)), removed)


def _facts(manifest: releases.Manifest) -> dict[str, str]:
    facts = {name: getattr(manifest, name) or "-" for name in _COMPARED}
    for config, splits in manifest.configs.items():
        facts |= {f"{config}, {split}": f"{rows:,} rows" for split, rows in splits.items()}
    return facts


def _records(content: ReleaseContent) -> dict[str, dict[str, Any]]:
    """The records of items, cases and personas with their split, by id."""
    records: dict[str, dict[str, Any]] = {
        f"persona {name}": {"split": "personas", "persona": one}
        for name, one in content.personas.items()
    }
    for split, items in content.splits.items():
        for item in items:
            own = {"references": item.scenario.references, "votes": item.votes, "split": split}
            records[item.id] = {
                key: one for key, one in item.scenario.to_dict().items() if key != "reference"
            } | own
    return records | {case.id: case.to_dict() | {"split": case.study} for case in content.cases}


# --- Values that anonymisation invented ---


FILE = "invented-values.json"
_HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class InventedValues:
    """What anonymisation put into dialogues: hash of a dialogue -> the hashes of the parts of each value.

    They lie in the private folder beside a release, or beside a split. Nothing public says which values are invented:
    what is not among them would be the real names that were missed. Whoever has the `key` can test guesses.
    `allow`: names of the specification, and of the workspace's `[anonymize] allow`, that are no personal data.
    """

    key: str = ""
    values: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    allow: Sequence[str] = ()

    @classmethod
    def hashed(cls, values: Mapping[str, Iterable[str]]) -> Self:
        """Hash the values of each dialogue, under a new key."""
        one = cls(secrets.token_hex(32))
        parts = {
            name: [sorted(map(one._mark, _parts(text))) for text in sorted(own)]
            for name, own in values.items()
        }
        return cls(one.key, {one._mark(name): own for name, own in parts.items()})

    @classmethod
    def of_workspace(cls, workspace: Workspace, items: Iterable[ReleaseItem]) -> Self:
        """The values that anonymisation put into the dialogues of items, and the companions that their sources name."""
        stage = workspace.stage("anonymize")
        if stage.begun and not stage.finished:
            raise ConfigError(
                f"{workspace.path}: anonymize is not finished; run h2htalk curate run first"
            )
        sources = stage.settings().get("sources", {})
        wanted = {name for item in items for name in item.family()}
        found: dict[str, set[str]] = {}
        for part in stage.parts():
            spans = {
                record["id"]: record.get("spans", ()) for record in stage.part_records(part, AUDIT)
            }
            for one in stage.part_records(part, KEPT):
                if (name := one["id"]) in wanted:
                    own = [
                        (one["messages"][s["message"] - 1], s)
                        for s in spans.get(name, ())
                        if "message" in s
                    ]
                    found[name] = {
                        turn["content"][span["start"] : span["end"]] for turn, span in own
                    }
                    found[name].update(
                        sources.get(one["provenance"].get("source"), {}).get("companions", ())
                    )
        return replace(cls.hashed(found), allow=tuple(stage.settings().get("allow", ())))

    @classmethod
    def find(cls, name: str, items: Iterable[ReleaseItem]) -> Self | None:
        """The values in items of a workspace, a stage of it, a release or a split; None where they are not known."""
        folder = link_folder(name)
        path = Path(name)
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
        names = sorted(
            {self._mark(name) for item in items for name in item.family()} & self.values.keys()
        )
        private.mkdir(mode=0o700, exist_ok=True)
        write_json(
            private / FILE,
            asdict(replace(self, values={name: self.values[name] for name in names})),
        )
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
    parts = [
        part.key
        for part in name_parts((value,))[value].parts
        if not (found and part.role == "kept")
    ]
    letters = re.sub(r"[\W\d_]+", "", "".join(parts))
    known = set(parts)
    if _HAN.search(value):
        pairs = set(map("".join, pairwise(letters)))
        known = pairs or set(letters) if found else known | pairs | set(letters)
    digits = re.sub("[^0-9]", "", plain(value))
    return known | ({f"#{digits}"} if digits else set())
