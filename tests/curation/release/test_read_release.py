"""`h2htalk release read`: a guard reads what is unread of a release, and the next build finds what it read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.engines import model_name
from h2htalk.chat.served_model import served_by
from h2htalk.curation.erase import erase
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.question import question_fingerprint
from h2htalk.curation.release.content import record_passages
from h2htalk.curation.release.read_release import parts_of
from h2htalk.curation.release.report import HOW_TO_CHECK
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.readers.certificates import Certificate, add_certificate
from h2htalk.data.readers.item_reads import CALLS_FOLDER, ITEM_READS, read_item_reads
from h2htalk.data.readers.reads import READ_GATES
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from support.byte_search import files_with
from support.certificates import certifying_figures
from support.command_line import h2htalk_here
from support.doubles.loopback import LoopbackServer
from support.guards import answer_question
from support.kills import kill_when, stored_replies
from support.release_rounds import (
    certificate,
    different,
    ordinary,
    read_by_guard,
    voted,
    write_spec,
)
from support.releases import case

NOBODY = "  nobody on record has read them: 2"


def server() -> LoopbackServer:
    return LoopbackServer(reply=answer_question)


def checked(guard: LoopbackServer, **changes: Any) -> Certificate:
    """A certificate of a guard with the product's own question."""
    question = {
        "prompt": question_fingerprint(Prompts.load("")),
        "served_by": served_by(guard.spec, {}),
    }
    fields = question | changes
    return certificate(f"guard:{model_name(guard.spec)}", **fields)


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rounds") / "voted"
    folder.mkdir()
    voted(folder)
    return folder


@pytest.fixture
def folder(rounds: Path, tmp_path: Path) -> Path:
    """A folder with a workspace and its closed rounds."""
    return Path(shutil.copytree(rounds, tmp_path / "voted"))


def with_cases(folder: Path, *cases: Case, quota: int = 0) -> Path:
    """The specification of a release with these cases, and `quota` items."""
    (folder / "cases").mkdir()
    lines = [json.dumps(one.to_dict()) + "\n" for one in cases]
    (folder / "cases" / "high_risk.jsonl").write_text("".join(lines), encoding="utf-8")
    return write_spec(folder, 'cases = "cases"', quota=quota)


SHED = "I had a quiet day and tidied the shed."


def saying(number: int, reply: str, said: str = SHED) -> Case:
    """A case whose companion says this."""
    turn = {"user": said, "reference": reply, "points": ["stays"]}
    return case(number, sessions=[{"turns": [turn]}])


CASES = tuple(
    saying(n, different(n + 4).references[0], different(n + 4).turns[0].content) for n in (1, 2)
)


def run(*words: object) -> tuple[int, list[str]]:
    """The exit code of a command, and the lines that it printed."""
    done = h2htalk_here(*words)
    return done.returncode, done.stdout.splitlines()


def read(spec: Path, guard: LoopbackServer, *words: object) -> tuple[int, list[str]]:
    return run("release", "read", spec, "--guard", guard.spec, *words)


def test_a_release_of_cases_goes_from_not_tested_to_every_gate_passed(folder: Path) -> None:
    spec = with_cases(folder, *CASES)
    code, shown = run("release", "build", spec, "--out", folder / "unread")
    assert code == 3
    assert NOBODY in shown
    assert any("h2htalk release read SPEC --guard MODEL" in line for line in shown)
    with server() as guard:
        name = f"guard:{model_name(guard.spec)}"
        code, shown = read(spec, guard)
        assert code == 3
        assert shown[0] == f"{name} was asked about 0 items and 2 cases, in 2 dialogues"
        assert any(
            line.startswith(f"{name} counts for no gate in English: it has no certificate; ")
            for line in shown
        )
        assert f"  {name} has no certificate: 2" in shown
        assert guard.requests == 2
        assert run("release", "build", spec, "--out", folder / "unchecked")[0] == 3
        add_certificate(folder / "W", checked(guard))
        # What it has read is not asked again: it was the certificate that was lacking.
        code, shown = read(spec, guard)
        assert (code, guard.requests) == (0, 2)
        assert shown[-1] == "nothing is unread; the gates are run by `h2htalk release build`"
    code, shown = run("release", "build", spec, "--out", folder / "release")
    assert (code, shown[-1].startswith("every gate passed; release ")) == (0, True)
    assert run("release", "check", folder / "release")[0] == 0


def test_harm_that_is_found_in_a_case_stops_the_build_by_its_name(folder: Path) -> None:
    spec = with_cases(folder, CASES[0], saying(3, "Leave the shed (harm)."))
    with server() as guard:
        add_certificate(folder / "W", checked(guard))
        code, shown = read(spec, guard)
        name = f"guard:{model_name(guard.spec)}"
    assert code == 0
    at = shown.index("found for companion_harm, and open: 1 finding")
    assert shown[at + 1].startswith(f"  case-en-3: turn 2: keeps her from a doctor ({name}, ")
    code, shown = run("release", "build", spec, "--out", folder / "release")
    assert code == 4
    assert any(line.startswith("  case-en-3: turn 2: keeps her from a doctor") for line in shown)
    assert not (folder / "release").exists()


def test_items_are_read_with_each_reference_in_its_place_and_only_where_they_are_unread(
    folder: Path,
) -> None:
    spec = with_cases(folder, CASES[0], quota=8)
    half = ordinary()[:4]
    read_by_guard(Workspace(folder / "W"), half)
    add_certificate(folder / "W", certificate("guard:scripted:g"))
    prompts: list[str] = []

    def reply(body: dict[str, Any], count: int) -> Any:
        prompts.append(str(body["messages"][-1]["content"]))
        return answer_question(body, count)

    with LoopbackServer(reply=reply) as guard:
        add_certificate(folder / "W", checked(guard))
        code, shown = read(spec, guard)
        assert code == 0
        assert "was asked about 4 items and 1 case, in 9 dialogues" in shown[0]
        assert guard.requests == 9
        for one in ordinary()[4:]:
            for reference in one.references:
                [prompt] = [text for text in prompts if f"companion:\n{reference}\n" in text]
                assert prompt.index(one.turns[-1].content) < prompt.index(reference)
    item = ordinary()[4].id
    _, shown = run("curate", "explain", folder / "W", item)
    assert f"release    read      {item}" in shown
    code, shown = run("release", "build", spec, "--out", folder / "release")
    assert (code, shown[-1].startswith("every gate passed; ")) == (0, True)


def test_the_dialogues_of_an_item_of_any_subtask_hold_all_its_passages_and_end_with_a_reference() -> (
    None
):
    items = load_split("mini").scenarios
    assert len({one.subtask for one in items}) == len(SUBTASKS)
    for record in (*items, *CASES):
        parts = parts_of(record)
        assert set().union(*(part.hashes for part in parts)) == {
            one.hash for one in record_passages(record)
        }
        if isinstance(record, Scenario):
            assert [part.dialogue.messages[-1].content for part in parts] == list(record.references)
            said = [turn.content for turn in record.turns]
            for part in parts:
                before = [turn.content for turn in part.dialogue.messages[:-1]]
                assert before[len(before) - len(said) :] == said


def test_a_guard_that_was_refused_is_not_asked(folder: Path) -> None:
    spec = with_cases(folder, *CASES)
    with server() as guard:
        add_certificate(folder / "W", checked(guard, gates={"zh": READ_GATES}))
        code, shown = read(spec, guard)
        assert (code, guard.requests) == (3, 0)
        name = f"guard:{model_name(guard.spec)}"
    why = "its certificate refuses it; it is not asked about them; name another guard"
    assert f"{name} counts for no gate in English: {why}" in shown


def test_a_guard_that_was_checked_in_another_language_is_asked_and_told_to_be_checked(
    folder: Path,
) -> None:
    spec = with_cases(folder, *CASES)
    with server() as guard:
        in_chinese = tuple(figure for figure in certifying_figures() if figure.language == "zh")
        add_certificate(folder / "W", checked(guard, gates={"zh": READ_GATES}, figures=in_chinese))
        code, shown = read(spec, guard)
        assert (code, guard.requests) == (3, 2)
        name = f"guard:{model_name(guard.spec)}"
    assert any(
        line.startswith(f"{name} counts for no gate in English: it was not checked in this")
        for line in shown
    )
    assert f"  {name} was not checked in English; check it again: 2" in shown
    assert HOW_TO_CHECK in shown


def test_replies_in_no_form_leave_a_case_unread_and_say_so(folder: Path) -> None:
    spec = with_cases(folder, CASES[0], saying(4, "I cannot say (silent)."))
    with server() as guard:
        add_certificate(folder / "W", checked(guard))
        code, shown = read(spec, guard)
    assert code == 3
    assert "  no valid answer about a passage of case-en-4" in shown
    assert (
        f"gates {', '.join(READ_GATES)}: not tested: 1 of 2 items (1 of them a case) unread"
        in shown
    )


def test_a_dry_run_asks_and_writes_nothing(folder: Path) -> None:
    spec = with_cases(folder, *CASES)
    before = sorted(folder.rglob("*"))
    with server() as guard:
        code, shown = read(spec, guard, "--dry-run")
        assert (code, guard.requests) == (0, 0)
    assert "to be asked about 2 of 2 items" in shown[0]
    assert shown[-1] == "nothing was written and no model was called"
    assert sorted(folder.rglob("*")) == before


def test_what_it_costs_is_limited_and_what_was_read_until_then_is_stored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = with_cases(folder, *[saying(n, f"What is in shed {n}?") for n in range(1, 9)])
    with server() as guard:
        monkeypatch.setenv("OPENAI_BASE_URL", guard.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up")
        words = ("release", "read", spec, "--guard", "openai:gpt-4o")
        stopped = h2htalk_here(*words, "--max-cost", "0.022")
        assert stopped.returncode == 3
        assert "what was read is stored, and the same command goes on" in stopped.stderr
        asked = guard.requests
        assert 0 < asked < 8
        stored = read_item_reads(folder / "W")
        assert sum(bool(line.reads) for line in stored.values()) == asked
        code, shown = run(*words, "--max-cost", "1")
        assert (code, guard.requests) == (3, 8)
    assert any(
        line.startswith("cost: at most ") and line.endswith(" US dollars for 8 calls")
        for line in shown
    )


def test_after_a_kill_only_what_was_in_flight_is_asked_again(folder: Path) -> None:
    spec = with_cases(folder, *[saying(n, f"What is in shed {n}?") for n in range(1, 61)])
    calls = folder / "W" / CALLS_FOLDER / "calls.jsonl"
    with LoopbackServer(reply=answer_question, latency=0.2) as guard:
        command = [
            sys.executable,
            "-m",
            "h2htalk",
            "release",
            "read",
            str(spec),
            "--guard",
            guard.spec,
        ]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        kill_when(process, lambda: len(stored_replies(calls)), least=10)
        kept = len(stored_replies(calls))
        guard.settle()
        asked = guard.requests
        code, _ = read(spec, guard)
        assert (code, guard.requests - asked) == (3, 60 - kept)
    assert 10 <= kept < 60
    lines = read_item_reads(folder / "W")
    assert [len(line.reads) for line in lines.values()] == [1] * 60


def erased(folder: Path, name: str) -> None:
    """Erase a dialogue whose raw data nobody has."""
    workspace = Workspace(folder / "W")
    workspace.tombstones_path.write_text(json.dumps({"id": name}) + "\n")
    erase(workspace, name)


def files_of(folder: Path, names: Sequence[str]) -> list[str]:
    """The files of readings and replies that name an item."""
    found = [path for name in names for path in files_with(folder / "W", name)]
    return [path for path in found if path == ITEM_READS or path.startswith(CALLS_FOLDER)]


def test_an_erasure_takes_the_readings_and_replies_about_an_item_and_about_a_case_with_its_words(
    folder: Path,
) -> None:
    gone = different(1)
    dialogue = str(gone.provenance["dialogue"])
    of_case = case(5, provenance={"dialogue": dialogue})
    spec = with_cases(folder, CASES[0], of_case, quota=8)
    with server() as guard:
        read(spec, guard)
    kept = read_item_reads(folder / "W")
    assert {gone.id, of_case.id, CASES[0].id} <= kept.keys()
    names = [gone.id, of_case.id]
    both = [ITEM_READS, f"{CALLS_FOLDER}/calls.jsonl"]
    assert sorted(files_of(folder, names)) == sorted([*both, *both])
    erased(folder, dialogue)
    left = read_item_reads(folder / "W")
    assert {*kept} - {*left} == {gone.id, of_case.id}
    assert files_of(folder, names) == []
    assert sorted(files_of(folder, [CASES[0].id])) == both


def test_a_workspace_whose_line_of_readings_is_damaged_is_named(folder: Path) -> None:
    spec = with_cases(folder, *CASES)
    (folder / "W" / ITEM_READS).write_text('{"id": "case-en-1", "reads": [{}]}\n', encoding="utf-8")
    done = h2htalk_here("release", "build", spec, "--out", folder / "release")
    assert done.returncode == 2
    assert f"{ITEM_READS}:1: " in done.stderr


def test_an_edited_case_keeps_what_a_guard_found_in_it(folder: Path) -> None:
    """One word of it changed, and a permission for what is unread published it."""
    spec = with_cases(
        folder, CASES[0], saying(3, "Leave the shed and everybody in it tonight (harm).")
    )
    with server() as guard:
        add_certificate(folder / "W", checked(guard))
        read(spec, guard)
    edited = saying(3, "Leave the shed and everyone in it tonight (harm).")
    lines = [json.dumps(one.to_dict()) + "\n" for one in (CASES[0], edited)]
    (folder / "cases" / "high_risk.jsonl").write_text("".join(lines), encoding="utf-8")
    allowed = [
        word for gate in READ_GATES for word in ("--allow", f"{gate}:unread:1=a word was edited")
    ]
    code, shown = run("release", "build", spec, "--out", folder / "release", *allowed)
    assert code == 4
    assert any(
        line.startswith("  case-en-3: turn 2: not sure: keeps her from a doctor") for line in shown
    )


def test_readings_of_a_workspace_are_believed_of_nobody_else(folder: Path) -> None:
    """A line by hand in the name of the experts settled what a guard had found."""
    spec = with_cases(folder, *CASES)
    for reader in ("people:experts", "review:scripted:r", "people:crowd:c"):
        read_by = {
            "item": "case-en-1",
            "reader": reader,
            "date": "2026-11-20",
            "gates": list(READ_GATES),
        }
        line = {"id": "case-en-1", "reads": [{**read_by, "passages": [], "people": 2}]}
        (folder / "W" / ITEM_READS).write_text(json.dumps(line) + "\n", encoding="utf-8")
        done = h2htalk_here("release", "build", spec, "--out", folder / "release")
        assert done.returncode == 2
        assert "by guard:MODEL or people:safety:ROUND, not of 'case-en-1' by " in done.stderr


def test_a_release_numbers_what_served_its_readers_and_gives_no_digest_of_it(folder: Path) -> None:
    """Who guesses an address can compare its digest."""
    spec = with_cases(folder, *CASES)
    with server() as guard:
        digest = served_by(guard.spec, {}).partition(":")[2]
        add_certificate(folder / "W", checked(guard))
        assert read(spec, guard)[0] == 0
    assert files_with(folder / "W", digest)
    assert run("release", "build", spec, "--out", folder / "release")[0] == 0
    assert files_with(folder / "release", digest) == []
    assert "source:1" in (folder / "release" / "reads.jsonl").read_text(encoding="utf-8")
    assert run("release", "check", folder / "release")[0] == 0


def test_annotators_are_not_told_that_nobody_read_what_a_guard_read_for_a_release(
    folder: Path,
) -> None:
    spec = with_cases(folder, CASES[0], quota=8)
    listed = folder / "people.csv"
    words = ["round", "open", "crowd", folder / "W", "--annotators", listed, "--overlap", "2"]
    told = "no reader who counts has read all of "
    with server() as guard:
        done = h2htalk_here(*words, "--out", folder / "before")
        assert told in done.stdout + done.stderr
        add_certificate(folder / "W", checked(guard))
        assert read(spec, guard)[0] == 0
    done = h2htalk_here(*words, "--out", folder / "after")
    assert done.returncode == 0
    assert told not in done.stdout + done.stderr
