"""The decisions of the same annotations on spreadsheets and a real server; from candidates to a release by commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from h2htalk.data.files import read_json_object, read_jsonl
from h2htalk.data.splits import load_split
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from support.curations import finished
from support.live.argilla_server import ASKED, Stack, signed_in
from support.live.real_servers import ROOT, made_items, write_annotators, write_items
from support.release_rounds import ALLOW_UNREAD, candidate, different, write_spec
from support.spreadsheet_rounds import fill, places, workbook_path

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

ITEMS = 30
# All annotate everything, so that the platforms' assignments do not matter.
SKILLS = {"paper-a": 0.9, "paper-b": 0.8, "paper-c": 0.7, "paper-d": 0.55, "paper-e": 0.4}

READ_BY_THE_CROWD = ("companion_harm:", "personal_data:")


def test_spreadsheets_and_a_server_give_the_same_decisions(stack: Stack, tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", made_items(ITEMS, "crowd", crises=7))
    people = write_annotators(tmp_path / "people.csv", SKILLS)
    rounds = {}
    for where in ("argilla", "spreadsheets"):
        spec = RoundSpec(
            kind="crowd", items=str(items), where=where, annotators=str(people), overlap=len(SKILLS),
            planted=False,
            care=Care(session_items=15, crisis_share=0.3),
        )  # fmt: skip
        open_round(spec, tmp_path / f"same-{where}")
        rounds[where] = RoundFolder(tmp_path / f"same-{where}")
    everything = {item.id for item in rounds["argilla"].items()}
    for annotator in signed_in(stack.url, rounds["argilla"].private / "argilla_logins.csv", SKILLS):
        assert annotator.work_through("same-argilla", "crowd").keys() == everything
        numbers = places(rounds["spreadsheets"], annotator.name)
        assert numbers.keys() == everything
        said = {number: annotator.answer(item, ASKED["crowd"]) for item, number in numbers.items()}
        fill(workbook_path(rounds["spreadsheets"], annotator.name), said)

    for round in rounds.values():
        status = round_status(round.path)
        assert (status.completed, status.missing, status.mistakes) == (ITEMS * len(SKILLS), {}, ())
        close_round(round.path)
    online, paper = (
        [record for _, record in read_jsonl(round.path / "decisions.jsonl")]
        for round in rounds.values()
    )
    assert online == paper
    assert len(paper) == ITEMS * len(ASKED["crowd"])
    assert {one["rule"] for one in paper} >= {"majority", "mean", "tie"}
    agreement = [read_json_object(round.path / "agreement.json") for round in rounds.values()]
    assert agreement[0] == agreement[1]


@pytest.mark.usefixtures("stack")
def test_a_release_of_what_annotators_on_a_server_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    scenarios = [*(different(n) for n in range(1, 5)), *(different(n, "zh") for n in range(21, 25))]
    finished(tmp_path / "W", "compose", [candidate(one).to_dict() for one in scenarios])
    write_annotators(tmp_path / "people.csv", [f"rel-{name}" for name in "abc"])
    write_spec(tmp_path, quota=4)

    def run(*words: str) -> str:
        command = [sys.executable, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    server = ("--where", "argilla", "--annotators", "people.csv", "--overlap", "3")
    for kind, items in (("crowd", "W"), ("expert", "release-crowd")):
        round = f"release-{kind}"
        run("-m", "h2htalk", "round", "open", kind, items, "--out", round, *server)
        logins = tmp_path / round / "private" / "argilla_logins.csv"
        if not logins.exists():  # the accounts are those of the first round
            logins.write_bytes(
                (tmp_path / "release-crowd" / "private" / "argilla_logins.csv").read_bytes()
            )
        run(str(ROOT / "tools" / "simulate_annotators.py"), round, "--drop", "0", "--skill", "1")
        run("-m", "h2htalk", "round", "close", round)
    # The crowd was asked whether something is harmful, or about a real person; for the other gates nobody read.
    unread = [text for text in ALLOW_UNREAD if not text.startswith(READ_BY_THE_CROWD)]
    allow = [word for text in unread for word in ("--allow", text)]
    run("-m", "h2htalk", "release", "build", "release-1.0.0.toml", "--out", "release", *allow)
    run("-m", "h2htalk", "release", "check", "release")
    known = {one.id: one for one in scenarios}
    released = load_split(tmp_path / "release").scenarios
    assert len(released) == 4
    assert all(one.references == known[one.id].references for one in released)
