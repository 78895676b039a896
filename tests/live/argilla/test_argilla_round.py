"""Rounds with 400 items and 20 annotators of known skill on a real server: crowd, expert, adjudication.

The crowd has five annotators per item, so that this takes minutes; H2HTALK_ARGILLA_OVERLAP=20 uses all twenty.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import read_jsonl
from h2htalk.rounds.aggregation.decisions import TIE, decide
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import annotator_id
from h2htalk.rounds.argilla.client import connect
from h2htalk.rounds.argilla.datasets import record_ids
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from h2htalk.rounds.status import Status
from support.kills import wait_until
from support.live.argilla_server import (
    ASKED,
    SimulatedAnnotator,
    Stack,
    item_of,
    signed_in,
    truth,
    valued,
)
from support.live.real_servers import made_items, write_annotators, write_items

pytestmark = [pytest.mark.live, pytest.mark.timeout(1500)]

ITEMS = 400
OVERLAP = int(os.environ.get("H2HTALK_ARGILLA_OVERLAP", "5"))
NAMES = [f"annotator-{number:02}" for number in range(20)]
SKILLS = {name: 0.4 + 0.02 * number for number, name in enumerate(NAMES)}
# Annotators without consent to crises, and one who skips them; none if all twenty annotate every item.
EVERYBODY = len(NAMES) - 2 <= OVERLAP
SPARED, SKIPPING = ([], "") if EVERYBODY else (NAMES[:2], NAMES[2])
# Annotators at work at once: enough to annotate the same items at the same time.
AT_ONCE = 4
Said = dict[tuple[str, str, str], Any]


@dataclass
class Chain:
    base: Path
    stack: Stack
    annotators: list[SimulatedAnnotator] = field(default_factory=list)

    def spec(self, kind: Any, items: str, **more: Any) -> RoundSpec:
        annotators = str(self.base / "annotators.csv")
        return RoundSpec(
            kind=kind, items=items, where="argilla", annotators=annotators, planted=False, **more
        )

    def open(self, name: str, spec: RoundSpec) -> RoundFolder:
        start = time.perf_counter()
        _, messages = open_round(spec, self.base / name)
        took = time.perf_counter() - start
        print(f"\n{name}: opened in {took:.1f} s; {messages[-1]}")
        assert took < 240  # half a minute on a quiet machine
        return RoundFolder(self.base / name)

    def check(self, round: RoundFolder, said: Said) -> None:
        """Check that what was submitted is stored once, and that the decisions follow from it."""
        start = time.perf_counter()
        status = round_status(round.path)
        print(
            f"{round.name}: {len(said)} values read in {time.perf_counter() - start:.1f} s; {status.notes}"
        )
        salt = round.salt()
        expected = {
            (item, annotator_id(name, salt), question): value
            for (item, name, question), value in said.items()
        }
        assert {key: one.value for key, one in round.annotations().items()} == expected
        rows = [row for _, row in read_jsonl(round.path / "annotations.jsonl")]
        assert len(rows) == len({(row["item"], row["annotator"], row["question"]) for row in rows})
        assert status.mistakes == ()
        answers = [
            Annotation("simulated", *key, value, "2030-01-01T00:00:00+00:00")
            for key, value in expected.items()
        ]
        start = time.perf_counter()
        _, decisions = close_round(round.path, force=bool(status.missing))
        print(f"{round.name}: closed in {time.perf_counter() - start:.1f} s")
        assert decisions == decide(
            round.items(), round.questions(), answers, round.spec().annotators_per_item
        )


@pytest.fixture(scope="module")
def chain(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    base = tmp_path_factory.mktemp("chain")
    write_annotators(base / "annotators.csv", NAMES, SPARED)
    return Chain(base, stack)


def test_a_crowd_round_while_the_server_is_killed(chain: Chain) -> None:
    items = made_items(ITEMS, "crowd")
    hard = {item["id"] for item in items if item.get("crisis")}
    source = write_items(chain.base / "crowd.jsonl", items)
    round = chain.open("crowd", chain.spec("crowd", str(source), overlap=OVERLAP))
    chain.annotators = signed_in(chain.stack.url, round.private / "argilla_logins.csv", SKILLS)

    said: Said = {}
    count = threading.Lock()
    done = Counter[str]()

    def work(annotator: SimulatedAnnotator) -> None:
        sessions = annotator.datasets("crowd")
        random.Random(annotator.name).shuffle(sessions)
        for dataset in sessions:
            answers, given_here = [], {}
            for record in annotator.pending(dataset):
                item = item_of(record)
                assert item not in hard or annotator.name not in SPARED
                if item in hard and annotator.name == SKIPPING:
                    answers.append((record["id"], {}, "discarded"))
                    given_here[item, annotator.name, SKIPPED] = "yes"
                    continue
                values = annotator.answer(item, ASKED["crowd"])
                answers.append((record["id"], values, "submitted"))
                given_here |= {
                    (item, annotator.name, question): value for question, value in values.items()
                }
            annotator.hand_in(answers)
            with count:
                said.update(given_here)
                done["answers"] += len(answers)

    start = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as people:
        working = [people.submit(work, annotator) for annotator in chain.annotators]
        wait_until(lambda: done["answers"] > ITEMS * OVERLAP * 0.3, seconds=600)
        chain.stack.end("server", signal.SIGKILL)
        time.sleep(1)
        chain.stack.start_server()
        wait_until(lambda: done["answers"] > ITEMS * OVERLAP * 0.6, seconds=600)
        assert round_status(round.path).completed > 0
        for one in working:
            one.result()
    took = time.perf_counter() - start
    print(
        f"crowd: {done['answers']} submissions in {took:.0f} s, {1000 * took / done['answers']:.0f} ms each"
    )
    chain.check(round, said)
    status = round_status(round.path)
    assert min(status.by_item.values()) >= OVERLAP
    assert status.skipped == sum(question == SKIPPED for _, _, question in said)


def test_an_expert_round_on_what_the_crowd_kept(chain: Chain) -> None:
    crowd = RoundFolder(chain.base / "crowd")
    decided = [
        one for _, one in read_jsonl(crowd.path / "decisions.jsonl") if one["question"] == "keep"
    ]
    kept = {one["item"] for one in decided if one["label"] == "keep"}
    assert 0 < len(kept) < ITEMS
    items = write_items(
        chain.base / "expert.jsonl", [one.to_dict() for one in crowd.items() if one.id in kept]
    )
    # Any share of the items may be about a crisis.
    spec = chain.spec("expert", str(items), care=Care(session_items=20, crisis_share=0.5))
    round = chain.open("expert", spec)
    assert {one.id for one in round.items()} == kept
    assert not (round.private / "argilla_logins.csv").exists()
    said: Said = {}
    with ThreadPoolExecutor(AT_ONCE) as people:
        results = people.map(
            lambda annotator: annotator.work_through("expert", "expert"), chain.annotators
        )
        for one, given in zip(chain.annotators, results, strict=True):
            said |= {
                (item, one.name, key): value
                for item, values in given.items()
                for key, value in values.items()
            }
    chain.check(round, said)
    status = round_status(round.path)
    assert (status.missing, min(status.by_item.values()) >= 3) == ({}, True)


def test_an_adjudication_of_ties(chain: Chain) -> None:
    crowd = RoundFolder(chain.base / "crowd")
    ties = [
        record for _, record in read_jsonl(crowd.path / "decisions.jsonl") if record["rule"] == TIE
    ]
    assert ties
    write_annotators(chain.base / "judge.csv", NAMES[-1:])
    spec = chain.spec(
        "adjudication", str(crowd.path), care=Care(session_items=20, crisis_share=0.5)
    )
    spec = replace(spec, annotators=str(chain.base / "judge.csv"))
    round = chain.open("adjudication", spec)
    judge = chain.annotators[-1]
    names = record_ids((item.id for item in round.items()), round.salt())
    said: Said = {}
    for dataset in judge.datasets("adjudication"):
        answers = []
        for record in judge.pending(dataset):
            tie = names[record["external_id"]]
            item, _, question = tie.partition("#")
            (tied,) = (
                one["tied"] for one in ties if (one["item"], one["question"]) == (item, question)
            )
            asked = next(one for one in ASKED["crowd"] if one.name == question)
            label = truth(item, asked) if truth(item, asked) in tied else tied[0]
            answers.append((record["id"], {"label": label}, "submitted"))
            said[tie, judge.name, "label"] = label
        judge.hand_in(answers)
    assert len(said) == len(ties)
    chain.check(round, said)
    _, decisions = close_round(crowd.path, adjudication=round.path)
    decided = {
        (one.item, one.question): one.label for one in decisions if one.rule == "adjudication"
    }
    assert decided == {tuple(key.split("#")): value for (key, _, _), value in said.items()}
    assert not [one for one in decisions if one.rule == TIE]


def test_eight_thousand_annotations_are_collected_at_once(chain: Chain) -> None:
    """Only the collection is measured: the owner submits the responses, which would take annotators minutes."""
    items = made_items(ITEMS, "crowd", crises=10 * ITEMS)
    spec = chain.spec("crowd", str(write_items(chain.base / "many.jsonl", items)))
    round = chain.open("many", spec)
    client = connect()
    accounts = {one["username"]: one["id"] for one in client.get("/api/v1/users")["items"]}
    questions = ASKED["crowd"]

    def given(record: Any) -> list[dict[str, Any]]:
        item = item_of(record)
        return [
            {
                "user_id": accounts[one.name],
                "values": valued(one.answer(item, questions)),
                "status": "submitted",
            }
            for one in chain.annotators
        ]

    for place in client.get("/api/v1/me/workspaces")["items"]:
        if not place["name"].startswith("many-"):
            continue
        for dataset in client.get("/api/v1/me/datasets", workspace_id=place["id"])["items"]:
            path = f"/api/v1/datasets/{dataset['id']}/records"
            records = client.get(path, limit=1000)["items"]
            sent = [{"external_id": one["external_id"], "responses": given(one)} for one in records]
            client.call("PUT", f"{path}/bulk", {"items": sent})
    took, status = timed_status(round)
    assert (status.completed, status.missing) == (ITEMS * len(NAMES), {})
    assert all(": slight agreement: " in note for note in status.notes), (
        status.notes
    )  # some guess more than others
    assert status.new == len(round.annotations()) == status.completed * len(questions)
    assert took < 240  # less than a minute on a quiet machine
    # A second status stores nothing.
    stored = (round.path / "annotations.jsonl").read_bytes()
    again_took, again = timed_status(round)
    print(
        f"many: {status.completed} assignments collected in {took:.1f} s, again in {again_took:.1f} s"
    )
    assert again == replace(status, new=0)
    assert (round.path / "annotations.jsonl").read_bytes() == stored


def timed_status(round: RoundFolder) -> tuple[float, Status]:
    start = time.perf_counter()
    status = round_status(round.path)
    return time.perf_counter() - start, status
