"""The whole life of a round of 12 items, as its manager goes through it with the command line, on any platform.

Opened, half answered, a copyist taken out, reopened, closed and paid, reopened and paid again, adjudicated, an
annotator erased, deleted: the messages of the walk list what is left where.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.rounds.items import Item
from h2htalk.rounds.round_folder import RoundFolder
from support.byte_search import files_with, find_phrases
from support.command_line import h2htalk_here
from support.live.real_servers import made_items
from support.rounds import files_of
from support.spreadsheet_rounds import rows_of

GONE = "bogumil"
COPYIST = "dan"
NAME = "whole"
FIRST = ("anna", GONE, "carla", COPYIST, "gustav", "hanna")
NEXT = ("eve", "frank")
REMARK = "The kettle in this one sings off key."
PARTICIPANT = {
    name: f"5f0a1b2c3d4e5f6a7b8c9d{number:02}" for number, name in enumerate((*FIRST, *NEXT), 10)
}
CODE = "DONE-80"
TIED = ("item-000", "item-001")
HALFWAY = ("anna", GONE, "gustav", "hanna")
RATINGS = ("accuracy", "consistency", "domain_compliance")
# What a closed round has on a platform, outside of its folder.
KINDS_LEFT = {
    "spreadsheets": set[str](),
    "argilla": {"account", "workspace", "dataset"},
    "label-studio": {"account", "project"},
}
ITEM_PAY = Decimal("0.30")
REWARD = Decimal("1.00")
SETTINGS = f"""overlap = 6
minutes = 2.0
hourly = 9.0
reward = {REWARD}
currency = "GBP"
completion = "{CODE}"
contact = "Mara Lind, rounds@example.org"
ethics = "Board 12, protocol 80"
"""


class Platform(Protocol):
    """Where the items of a round are answered."""

    where: str

    def answer(
        self, round: RoundFolder, name: str, answers: Mapping[str, Mapping[str, Any]], most: int
    ) -> int:
        """Answer at most so many of the items that the annotator is offered; `{}` skips. Returns how many."""

    def leave_half_answered(self, round: RoundFolder, name: str) -> None:
        """Leave the next item in the middle: a rating, and nothing else."""

    def stop(self) -> bool:
        """Take the server away; False where there is none."""

    def start(self) -> None:
        """Bring the server back."""

    def traces(self, texts: Sequence[str]) -> dict[str, list[str]]:
        """Text -> where the platform, outside of the folder of the round, holds it."""

    def compact(self) -> None:
        """Rewrite database and search index, as the message of an erasure asks the server's operator to do."""

    def list_rest(self) -> list[str]:
        """What the platform holds of the round, outside of its folder."""


def said_by(name: str, item: Item) -> dict[str, Any]:
    """What an annotator answers: mostly what the item deserves. The copyist answers like carla."""
    draw = random.Random(f"{'carla' if name == COPYIST else name}/{item.id}")
    answers: dict[str, Any] = {}
    for rating in RATINGS:
        is_usual = draw.random() < 0.6
        answers[rating] = 4 if is_usual else draw.choice((1, 2, 3, 5))
    is_dropped = item.id in TIED and name in (GONE, "gustav", "eve")
    answers["keep"] = "drop" if is_dropped else "keep"
    answers["harmful"] = str(item.gold.get("harmful", "no"))
    if name == GONE:
        answers["comment"] = REMARK
    return answers


def assignments_in(status: str) -> str:
    """The line of a status that counts completed assignments."""
    return next(line for line in status.split("\n") if line.startswith("assignments: "))


@dataclass
class Walk:
    """A round and what its manager read."""

    folder: Path
    platform: Platform
    messages: list[str] = field(default_factory=list)
    # Items that the platform took an answer or a skip to.
    answered: dict[str, int] = field(default_factory=dict)
    # What would name the annotator who is erased.
    identifying: list[str] = field(default_factory=list)

    @property
    def round(self) -> RoundFolder:
        return RoundFolder(self.folder / NAME)

    def do(self, command: str, *words: object, code: int = 0) -> str:
        """Run a command of `h2htalk round` on the round; returns all that it printed."""
        return self.run(command, self.round.path, *words, code=code)

    def run(self, *words: object, code: int = 0) -> str:
        result: subprocess.CompletedProcess[str] = h2htalk_here("round", *words)
        printed = result.stdout + result.stderr
        self.messages.append(f"$ h2htalk round {' '.join(map(str, words))}\n{printed}")
        assert result.returncode == code, printed
        return printed

    def people(self, file: str, **ids: str) -> Path:
        """A list of annotators: name -> participant id of Prolific."""
        lines = ["name,languages,crisis,participant_id,completion_code"]
        lines += [f"{name},en zh,yes,{id},{CODE}" for name, id in ids.items()]
        path = self.folder / file
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def answers(self, name: str, most: int = 100, *, skip: bool = False) -> int:
        """Let an annotator answer or skip at most so many items; returns how many."""
        by_item = {item.id: {} if skip else said_by(name, item) for item in self.round.items()}
        count = self.platform.answer(self.round, name, by_item, most)
        self.answered[name] = self.answered.get(name, 0) + count
        return count

    def bonuses(self) -> dict[str, Decimal]:
        """The list of bonuses as it is sent: participant id -> amount."""
        path = self.round.private / "prolific_bonus.csv"
        if not path.exists():
            return {}
        lines = path.read_text(encoding="utf-8").split()
        pairs = [line.split(",") for line in lines]
        return {participant: Decimal(amount) for participant, amount in pairs}

    # The steps, in their order.

    def open(self) -> None:
        items = made_items(12, "expert")
        items[11]["gold"] = {"keep": "keep"}
        write_jsonl(self.folder / "items.jsonl", items)
        (self.folder / "round.toml").write_text(SETTINGS, encoding="utf-8")
        first = {name: PARTICIPANT[name] for name in FIRST}
        twice = self.people("twice.csv", **{**first, COPYIST: PARTICIPANT["carla"].upper()})
        words = ["open", "expert", self.folder / "items.jsonl", "--out", self.round.path]
        words += ["--settings", self.folder / "round.toml", "--where", self.platform.where]
        refused = self.run(*words, "--annotators", twice, code=2)
        assert "carla" in refused
        assert COPYIST in refused
        self.run(*words, "--annotators", self.people("people.csv", **first))

    def half_answered(self) -> None:
        count = self.answers("carla")
        assert count > 12
        assert self.answers(COPYIST) == count
        for name in HALFWAY:
            assert self.answers(name, 6) == 6
        self.platform.leave_half_answered(self.round, GONE)
        status = self.do("status")
        # Somebody in the middle of an item is no mistake of the round.
        assert "started" in status, status
        assert "gold items: " in status, status
        self.do("close", code=2)

    def reopened(self) -> None:
        for name in HALFWAY:
            assert self.answers(name) > 5
        assert len({self.answered[name] for name in FIRST}) == 1
        status = self.do("status")
        assert "look at the answers of carla and dan" in status, status
        assert status.count("shared answers:") + status.count("identical answers:") == 1, status
        self.do("remove-annotator", COPYIST, "--why", "the answers of another")
        twice = self.people("more-twice.csv", eve=PARTICIPANT["anna"].upper())
        refused = self.do("reopen", "--annotators", twice, code=2)
        assert "'anna' and 'eve'" in refused, refused
        if self.platform.where != "spreadsheets":
            refused = self.do("add", "eve", "--id", PARTICIPANT["anna"].upper(), code=2)
            assert "anna" in refused, refused
        self.do("reopen", "--annotators", self.people("more.csv", eve=PARTICIPANT["eve"]))

    def closed(self) -> None:
        """Eve leaves two items, and the round is closed without them: the first list of bonuses."""
        assert self.answers("eve", 10) == 10
        self.do("close", code=2)
        printed = self.do("close", "--force")
        sums = dict[str, Decimal]()
        for name, count in self.answered.items():
            # Who has not answered everything is not approved: no reward, and the bonus is all.
            reward = Decimal(0) if name == "eve" else REWARD
            sums[PARTICIPANT[name]] = count * ITEM_PAY - reward
        assert self.bonuses() == sums, printed
        assert f"{sum(sums.values())} GBP in all" in printed, printed

    def reopened_and_closed_again(self) -> None:
        """Eve answers the rest, frank skips what he gets: the second list holds the difference."""
        before = self.bonuses()
        self.do("reopen", "--annotators", self.people("last.csv", frank=PARTICIPANT["frank"]))
        assert self.answers("eve") >= 2
        self.answers("frank", skip=True)
        if "items: 12 of 12 done" not in self.do("status"):
            # A tie that eve had left is one only now, with her answer.
            self.do("reopen")
            assert self.answers("frank", skip=True) > 0
        printed = self.do("close")
        sums = dict[str, Decimal]()
        for name, count in self.answered.items():
            owed = count * ITEM_PAY - REWARD - before.get(PARTICIPANT[name], Decimal(0))
            if owed > 0:
                sums[PARTICIPANT[name]] = owed
        assert self.bonuses() == sums, printed

    def adjudicated(self) -> None:
        """An adjudication of the ties, on spreadsheets: it shows votes and comments without names."""
        ties = self.folder / "ties"
        words = ["open", "adjudication", self.round.path, "--out", ties]
        self.run(*words, "--annotators", self.people("judges.csv", jo=""))
        (workbook,) = (ties / "spreadsheets").glob("*.xlsx")
        assert files_with(ties, REMARK)
        rows = str(rows_of(workbook))
        assert GONE not in rows
        for item in TIED:
            assert item not in rows

    def erased(self) -> None:
        """The server is away first: nothing is erased, and the command says so."""
        annotator = next(entry for entry in self.round.annotators() if entry.name == GONE)
        all_annotations = [
            record for _, record in read_jsonl(self.round.path / "annotations.jsonl")
        ]
        their_times = {
            entry["when"] for entry in all_annotations if entry["annotator"] != annotator.id
        }
        times = {entry["when"] for entry in all_annotations if entry["annotator"] == annotator.id}
        self.identifying = [GONE, REMARK, annotator.id, PARTICIPANT[GONE]]
        # A database writes a time without T and zone.
        for when in sorted(times - their_times):
            self.identifying += [when, when[:26].replace("T", " ")]
        decisions = (self.round.path / "decisions.jsonl").read_bytes()
        agreement = (self.round.path / "agreement.json").read_bytes()
        assignments = assignments_in(self.do("status"))
        self.messages.append(f"before the erasure: {self.find_traces()}")
        books = self.folder / "books.csv"
        words = ("erase-annotator", GONE, "--payments", books, "--sent", "all")
        if self.platform.stop():
            # The search below is one that finds what is there.
            assert self.platform.traces([REMARK])[REMARK]
            before = files_of(self.folder)
            refused = self.do(*words, code=2)
            assert "The files of the round have not changed" in refused, refused
            assert files_of(self.folder) == before
            self.platform.start()
        printed = self.do(*words)
        assert (self.round.path / "decisions.jsonl").read_bytes() == decisions
        # The comment is in the items of the adjudication, and in the workbook that shows it.
        for name in ("items.jsonl", "jo.xlsx"):
            assert any(
                line.endswith("remove it there") and name in line for line in printed.split("\n")
            )
        assert GONE in books.read_text(encoding="utf-8")
        assert not any(find_phrases(self.round.path, self.identifying).values())
        self.messages.append(f"after the erasure: {self.find_traces()}")
        self.platform.compact()
        self.messages.append(f"after the server's database was compacted: {self.find_traces()}")
        for places in self.platform.traces(self.identifying).values():
            # The server's logs are its operator's, as the message of the erasure says.
            assert [file for file in places if not file.endswith(".log")] == []
        # Closing again counts the erased votes, which are kept without a name.
        self.do("close")
        assert (self.round.path / "decisions.jsonl").read_bytes() == decisions
        assert (self.round.path / "agreement.json").read_bytes() == agreement
        # Nothing is asked for again, not even of a gold item.
        assert assignments_in(self.do("status")) == assignments

    def deleted(self) -> None:
        entries = self.platform.list_rest()
        kinds = {line.partition(" ")[0] for line in entries}
        assert kinds == KINDS_LEFT[self.platform.where]
        self.messages.append("\n".join(["before the deletion:", *entries]))
        self.do("delete", "--yes")
        self.do("status")
        self.messages.append(f"after the deletion: {self.find_traces()}")
        self.messages.append("\n".join(self.list_files()))
        assert self.platform.list_rest() == []

    def find_traces(self) -> dict[str, list[str]]:
        """Text of the annotator -> where it is: files of the manager, and the server."""
        traces = find_phrases(self.folder, self.identifying)
        for text, places in self.platform.traces(self.identifying).items():
            traces[text] += [f"server: {file}" for file in places]
        return traces

    def list_files(self) -> list[str]:
        """What is left of the round and beside it: files with their sizes in bytes."""
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        return [f"{path.relative_to(self.folder)} ({path.stat().st_size})" for path in files]

    def go(self) -> None:
        """All steps in their order."""
        self.open()
        self.half_answered()
        self.reopened()
        self.closed()
        self.reopened_and_closed_again()
        self.adjudicated()
        self.erased()
        self.deleted()
