"""The whole of it: 400 items, 20 annotators of known skill, a crowd, specialists and an adjudicator, on a real server.

The crowd gives five answers an item, so that this takes minutes; H2HTALK_ARGILLA_OVERLAP=20 gives all twenty.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from argilla_annotators import (
    SimulatedAnnotator,
    item_of,
    made_items,
    signed_in,
    truth,
    write_annotators,
    write_items,
)
from argilla_counts import check_counts
from argilla_stack import OWNER_KEY, Stack

from h2htalk.data.files import read_jsonl
from h2htalk.rounds.aggregation.decisions import TIE, decide
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import annotator_id
from h2htalk.rounds.argilla.client import connect
from h2htalk.rounds.argilla.records import record_ids
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.questions import QUESTIONS, SKIPPED
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from h2htalk.rounds.status import Status, round_status

pytestmark = [pytest.mark.live, pytest.mark.timeout(1500)]

ITEMS = 400
OVERLAP = int(os.environ.get("H2HTALK_ARGILLA_OVERLAP", "5"))
NAMES = [f"annotator-{number:02}" for number in range(20)]
SKILLS = {name: 0.4 + 0.02 * number for number, name in enumerate(NAMES)}
# Who is spared crises, and who skips each that comes; where all twenty are asked, nobody.
EVERYBODY = len(NAMES) - 2 <= OVERLAP
SPARED, SKIPPING = ([], "") if EVERYBODY else (NAMES[:2], NAMES[2])
# Annotators at work at once: more than two processors' worth, so that they meet on the same items.
AT_ONCE = 4
Said = dict[tuple[str, str, str], Any]


@dataclass
class Chain:
    """One round after the other, by the same people."""

    base: Path
    stack: Stack
    annotators: list[SimulatedAnnotator] = field(default_factory=list)

    def spec(self, kind: Any, items: str, **more: Any) -> RoundSpec:
        return RoundSpec(
            kind=kind, items=items, where="argilla", annotators=str(self.base / "annotators.csv"), **more
        )

    def open(self, name: str, spec: RoundSpec) -> RoundFolder:
        start = time.perf_counter()
        _, told = open_round(spec, self.base / name)
        took = time.perf_counter() - start
        print(f"\n{name}: opened in {took:.1f} s; {told[-1]}")
        assert took < 60
        return RoundFolder(self.base / name)

    def check(self, round: RoundFolder, said: Said) -> None:
        """What is stored is what was said: nothing lost, nothing doubled; and its decisions follow from that alone."""
        start = time.perf_counter()
        found = round_status(round.path)
        print(f"{round.name}: {len(said)} values read in {time.perf_counter() - start:.1f} s; {found.notes}")
        salt = round.salt()
        expected = {
            (item, annotator_id(name, salt), question): value
            for (item, name, question), value in said.items()
        }
        stored = round.annotations()
        assert {key: one.value for key, one in stored.items()} == expected
        lines = Counter(
            (r["item"], r["annotator"], r["question"])
            for _, r in read_jsonl(round.path / "annotations.jsonl")
        )
        assert set(lines.values()) == {1}
        assert found.mistakes == ()
        answers = [
            Annotation("simulated", *key, value, "2030-01-01T00:00:00+00:00")
            for key, value in expected.items()
        ]
        start = time.perf_counter()
        _, settled = close_round(round.path, early=bool(found.missing))
        print(f"{round.name}: closed in {time.perf_counter() - start:.1f} s")
        assert settled == decide(round.items(), round.questions(), answers, round.spec().answers)
        check_counts(round, said)


@pytest.fixture(scope="module")
def chain(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    base = tmp_path_factory.mktemp("chain")
    write_annotators(base / "annotators.csv", NAMES, SPARED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGILLA_API_URL", stack.url)
        patch.setenv("ARGILLA_API_KEY", OWNER_KEY)
        yield Chain(base, stack)


def test_a_crowd_votes_while_its_server_is_killed(chain: Chain) -> None:
    items = made_items(ITEMS, "crowd")
    hard = {item["id"] for item in items if item.get("crisis")}
    round = chain.open(
        "crowd",
        chain.spec("crowd", str(write_items(chain.base / "crowd.jsonl", items)), overlap=OVERLAP),
    )
    chain.annotators = signed_in(chain.stack.url, round.private / "argilla_logins.csv", SKILLS)

    said: Said = {}
    count = threading.Lock()
    done = Counter[str]()

    def work(annotator: SimulatedAnnotator) -> None:
        sessions = annotator.datasets("crowd")
        random.Random(annotator.name).shuffle(sessions)
        for dataset in sessions:
            answers, told = [], {}
            for record in annotator.pending(dataset):
                item = item_of(record)
                assert item not in hard or annotator.name not in SPARED
                if item in hard and annotator.name == SKIPPING:
                    answers.append((record["id"], {}, "discarded"))
                    told[item, annotator.name, SKIPPED] = "yes"
                    continue
                values = annotator.answer(item, QUESTIONS["crowd"])
                answers.append((record["id"], values, "submitted"))
                told |= {(item, annotator.name, question): value for question, value in values.items()}
            annotator.hand_in(answers)
            with count:
                said.update(told)
                done["answers"] += len(answers)

    start = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as people:
        working = [people.submit(work, annotator) for annotator in chain.annotators]
        wait_until(lambda: done["answers"] > ITEMS * OVERLAP * 0.3)
        chain.stack.end("server", signal.SIGKILL)
        time.sleep(1)
        chain.stack.start_server()
        wait_until(lambda: done["answers"] > ITEMS * OVERLAP * 0.6)
        halfway = round_status(round.path)
        assert halfway.completed > 0
        for one in working:
            one.result()
    took = time.perf_counter() - start
    print(
        f"crowd: {done['answers']} submissions in {took:.0f} s, {1000 * took / done['answers']:.0f} ms each; "
        f"{sum(annotator.again for annotator in chain.annotators)} times not acknowledged"
    )
    chain.check(round, said)
    by_item = round_status(round.path).by_item
    assert min(by_item.values()) >= OVERLAP
    assert round_status(round.path).skipped == sum(question == SKIPPED for _, _, question in said)


def test_specialists_judge_what_the_crowd_kept(chain: Chain) -> None:
    crowd = RoundFolder(chain.base / "crowd")
    decided = [one for _, one in read_jsonl(crowd.path / "decisions.jsonl") if one["question"] == "keep"]
    kept = {one["item"] for one in decided if one["label"] == "keep"}
    assert 0 < len(kept) < ITEMS
    items = write_items(
        chain.base / "expert.jsonl", [one.to_dict() for one in crowd.items() if one.id in kept]
    )
    # Whatever share of it speaks of a crisis.
    spec = chain.spec("expert", str(items), care=Care(session_items=20, crisis_share=0.5))
    round = chain.open("expert", spec)
    assert {one.id for one in round.items()} == kept
    assert not (round.private / "argilla_logins.csv").exists()
    said: Said = {}
    with ThreadPoolExecutor(AT_ONCE) as people:
        results = people.map(
            lambda annotator: (annotator.name, annotator.work_through("expert", "expert")), chain.annotators
        )
        for name, given in results:
            said |= {
                (item, name, key): value for item, values in given.items() for key, value in values.items()
            }
    chain.check(round, said)
    found = round_status(round.path)
    assert (found.missing, min(found.by_item.values()) >= 3) == ({}, True)


def test_an_adjudicator_has_the_word_on_ties(chain: Chain) -> None:
    crowd = RoundFolder(chain.base / "crowd")
    ties = [record for _, record in read_jsonl(crowd.path / "decisions.jsonl") if record["rule"] == TIE]
    assert ties
    write_annotators(chain.base / "judge.csv", NAMES[-1:])
    spec = chain.spec("adjudication", str(crowd.path), care=Care(session_items=20, crisis_share=0.5))
    spec = replace(spec, annotators=str(chain.base / "judge.csv"))
    round = chain.open("words", spec)
    judge = chain.annotators[-1]
    names = record_ids((item.id for item in round.items()), round.salt())
    said: Said = {}
    for dataset in judge.datasets("words"):
        answers = []
        for record in judge.pending(dataset):
            tie = names[record["external_id"]]
            item, _, question = tie.partition("#")
            (tied,) = (one["tied"] for one in ties if (one["item"], one["question"]) == (item, question))
            asked = next(one for one in QUESTIONS["crowd"] if one.name == question)
            word = truth(item, asked) if truth(item, asked) in tied else tied[0]
            answers.append((record["id"], {"label": word}, "submitted"))
            said[tie, judge.name, "label"] = word
        judge.hand_in(answers)
    assert len(said) == len(ties)
    chain.check(round, said)
    _, settled = close_round(crowd.path, adjudication=round.path)
    words = {(one.item, one.question): one.label for one in settled if one.rule == "adjudication"}
    assert words == {tuple(key.split("#")): value for (key, _, _), value in said.items()}
    assert not [one for one in settled if one.rule == TIE]


def test_eight_thousand_answers_are_read_in_a_minute_and_once(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the reading is measured: the owner puts the answers in, as annotators would take minutes for them.

    One answer a dataset is left to its annotator: an owner's leave no sign that something has happened there.
    """
    items = made_items(ITEMS, "crowd", crises=10 * ITEMS)
    spec = chain.spec("crowd", str(write_items(chain.base / "many.jsonl", items)))
    round = chain.open("many", spec)
    wire = connect()
    accounts = {one["username"]: one["id"] for one in wire.get("/api/v1/users")["items"]}
    questions, last = QUESTIONS["crowd"], chain.annotators[-1]
    for place in wire.get("/api/v1/me/workspaces")["items"]:
        if not place["name"].startswith("many-"):
            continue
        for dataset in wire.get("/api/v1/me/datasets", workspace_id=place["id"])["items"]:
            records = wire.get(f"/api/v1/datasets/{dataset['id']}/records", limit=1000)["items"]
            left = records[-1]
            sent = [{"external_id": one["external_id"], "responses": [given(annotator, accounts, one, questions)
                     for annotator in chain.annotators if annotator is not last or one is not left]}
                    for one in records]  # fmt: skip
            wire.call("PUT", f"/api/v1/datasets/{dataset['id']}/records/bulk", {"items": sent})
            last.hand_in([(left["id"], last.answer(item_of(left), questions), "submitted")])
    fetched = whole_records(monkeypatch)
    first, found = timed_status(round)
    assert (found.completed, found.missing, found.notes) == (ITEMS * len(NAMES), {}, ())
    assert found.new == len(round.annotations()) == found.completed * len(questions)
    assert first < 60
    assert fetched
    print(f"many: {found.completed} answers read and stored in {first:.1f} s")

    # Nothing has happened since: no answer is fetched again, and none stored. On loopback this saves next to no time:
    # a look goes through what is stored and what is out there, and fetching 8,000 answers takes about a second.
    fetched.clear()
    stored = (round.path / "annotations.jsonl").read_bytes()
    looks = [timed_status(round) for _ in range(2)]
    print(f"many: looked at again in {', then '.join(f'{took:.1f} s' for took, _ in looks)}")
    assert fetched == []
    assert [again for _, again in looks] == [replace(found, new=0)] * 2
    assert (round.path / "annotations.jsonl").read_bytes() == stored


def timed_status(round: RoundFolder) -> tuple[float, Status]:
    start = time.perf_counter()
    found = round_status(round.path)
    return time.perf_counter() - start, found


def whole_records(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Requests from now on that bring records with the answers on them."""
    request, fetched = httpx.Client.request, list[str]()

    def noted(self: httpx.Client, *arguments: Any, **options: Any) -> httpx.Response:
        reply = request(self, *arguments, **options)
        if "responses" in reply.request.url.params.get_list("include"):
            fetched.append(str(reply.request.url))
        return reply

    monkeypatch.setattr(httpx.Client, "request", noted)
    return fetched


def given(
    annotator: SimulatedAnnotator, accounts: Mapping[str, str], record: Mapping[str, Any], questions: Any
) -> Any:
    said = annotator.answer(item_of(record), questions)
    values = {name: {"value": value} for name, value in said.items()}
    return {"user_id": accounts[annotator.name], "values": values, "status": "submitted"}


def wait_until(holds: Any, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)
