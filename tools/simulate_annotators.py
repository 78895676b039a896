"""Answer every open assignment of a round, in place of people: for tutorials and tests, and for nothing else.

    python tools/simulate_annotators.py ROUND [--skill 0.9] [--drop 0.1] [--seed 0] [--limit N]

Each item has right answers that depend on its id and the seed alone: its proposed subtask, `keep` (or `drop` for the
share `--drop`), high ratings. An annotator gives the right answer with the probability `--skill`; that nothing is
harmful, or about a real person, everybody answers, as these answers stand for no reading. Spreadsheets are filled in
where they lie; on Argilla (ARGILLA_API_URL) the annotators of `private/argilla_logins.csv` submit responses.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from h2htalk.rounds.argilla.datasets import record_ids
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import NO, Question
from h2htalk.rounds.round_folder import RoundFolder

Answers = dict[str, str | int]


class Simulation:
    """What annotators of one skill answer."""

    def __init__(
        self,
        items: Iterable[Item],
        questions: Iterable[Question],
        skill: float,
        drop: float,
        seed: int,
    ) -> None:
        self.skill, self.drop, self.seed = skill, drop, seed
        self.items = {item.id: item for item in items}
        self.questions = [question for question in questions if question.decided]

    def answers(self, item: Item, annotator: str) -> Answers:
        """An annotator's answers to an item, the same at every call."""
        given: Answers = {}
        for question in self.questions:
            if question.is_reading:
                given[question.name] = self.right(item, question)
                continue
            draw = random.Random(f"{self.seed}/{annotator}/{item.id}/{question.name}")
            choices = [*(item.labels or question.labels or question.ratings)]
            right = self.right(item, question)
            others = [one for one in choices if one != right]
            # A rating that is not the right one is next to it.
            near = [
                one
                for one in others
                if isinstance(one, int) and isinstance(right, int) and abs(one - right) == 1
            ]
            given[question.name] = (
                right if draw.random() < self.skill else draw.choice(near or others)
            )
        return given

    def right(self, item: Item, question: Question) -> str | int:
        draw = random.Random(f"{self.seed}/{item.id}/{question.name}")
        if question.name == "subtask" and item.subtask:
            return item.subtask
        if question.is_reading:
            return str(item.gold.get(question.name, NO))
        if question.name == "keep":
            return (
                "drop"
                if random.Random(f"{self.seed}/{item.id}/keep").random() < self.drop
                else "keep"
            )
        if question.ratings:
            return draw.choice(question.ratings[-2:])
        return draw.choice(item.labels or question.labels)


def fill_spreadsheets(
    folder: RoundFolder, simulation: Simulation, limit: int | None
) -> Iterator[str]:
    """Fill in every row of every spreadsheet that has no answer yet."""
    from openpyxl import load_workbook

    from h2htalk.rounds.round_folder import read_state
    from h2htalk.rounds.spreadsheets.xlsx_writing import spreadsheets_of

    for spreadsheet in filter(None, spreadsheets_of(read_state(folder)).values()):
        items = {one.place: one.item for one in spreadsheet.assignments}
        path = folder.path / "spreadsheets" / f"{spreadsheet.stem}.xlsx"
        left = len(items) if limit is None else limit
        book = load_workbook(path)
        for sheet in book.worksheets:
            keys = [cell.value for cell in sheet[1]]
            for line in sheet.iter_rows(min_row=3) if "skip" in keys else ():
                item = items.get(line[keys.index("item")].value)
                if item is None or not left:
                    continue
                left -= 1
                for key, value in simulation.answers(
                    simulation.items[item], spreadsheet.annotator.id
                ).items():
                    cell = line[keys.index(key)]
                    cell.value = value if cell.value is None else cell.value
        book.save(path)
        yield f"{path.name}: {len(items)} items"


def answer_on_argilla(
    folder: RoundFolder, simulation: Simulation, limit: int | None
) -> Iterator[str]:
    """Submit responses to everything that is pending for each annotator, as the page does."""
    import httpx

    url = os.environ["ARGILLA_API_URL"]
    items = record_ids(simulation.items, folder.salt())
    ids = {annotator.name: annotator.id for annotator in folder.annotators()}
    with (folder.private / "argilla_logins.csv").open(encoding="utf-8", newline="") as file:
        logins = [(row["name"], row["password"]) for row in csv.DictReader(file)]
    pending = {
        "type": "terms",
        "scope": {"entity": "response", "property": "status"},
        "values": ["pending"],
    }
    for name, password in logins:
        with httpx.Client(base_url=url, timeout=60) as client:
            token = client.post(
                "/api/v1/token", data={"username": name, "password": password}
            ).raise_for_status()
            client.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
            done = 0
            for dataset in client.get("/api/v1/me/datasets").raise_for_status().json()["items"]:
                path = f"/api/v1/me/datasets/{dataset['id']}/records/search"
                found = client.post(
                    path, params={"limit": 1000}, json={"filters": {"and": [pending]}}
                )
                records = [one["record"] for one in found.raise_for_status().json()["items"]]
                for record in [one for one in records if one["external_id"] in items][:limit]:
                    item = simulation.items[items[record["external_id"]]]
                    values = {
                        key: {"value": value}
                        for key, value in simulation.answers(item, ids[name]).items()
                    }
                    body = {
                        "items": [
                            {"record_id": record["id"], "status": "submitted", "values": values}
                        ]
                    }
                    reply = (
                        client.post("/api/v1/me/responses/bulk", json=body)
                        .raise_for_status()
                        .json()
                    )
                    done += reply["items"][0]["error"] is None
            yield f"{name}: {done} items"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("round", type=Path)
    parser.add_argument("--skill", type=float, default=0.9)
    parser.add_argument("--drop", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, default=None)
    given = parser.parse_args()
    folder = RoundFolder(given.round)
    simulation = Simulation(folder.items(), folder.questions(), given.skill, given.drop, given.seed)
    answer = answer_on_argilla if folder.spec().where == "argilla" else fill_spreadsheets
    for line in answer(folder, simulation, given.limit):
        print(line, flush=True)


if __name__ == "__main__":
    main()
