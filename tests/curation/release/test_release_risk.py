"""`h2htalk release risk`: a model quotes what gives users away, and the gate `reidentification` counts dialogues."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import h2htalk
from h2htalk.chat.engines import model_name
from h2htalk.curation.erase import erase
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.exposure import exposure_fingerprint
from h2htalk.curation.release.exposed import Exposures, measure, reader_of, released_dialogues
from h2htalk.curation.workspace import Workspace
from h2htalk.data.readers.exposures import ExposedDetail, Exposure
from h2htalk.data.readers.item_reads import CALLS_FOLDER, EXPOSED, ITEM_READS, read_item_reads
from h2htalk.data.scenario import Scenario
from h2htalk.rounds.round_folder import RoundFolder
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.doubles.loopback import LoopbackServer
from support.kills import kill_when, stored_replies
from support.release_rounds import ALLOW_UNREAD, close, different, voted, write_spec
from support.releases import case
from support.rounds import crowd

# What the model quotes wherever a user says it: the kind, and how many people it fits.
DETAILS = {
    "the night ferry": ("work", "few"),
    "my twins": ("family", "some"),
    "beside the lock": ("place", "few"),
    "my sister": ("family", "many"),
}
EXPOSED_TEXT = "I came off the night ferry to my twins beside the lock."
_PASSAGE = re.compile(
    r"^\[(\d+)\] (user|companion)[^\n]*:\n(.*?)(?=\n\n\[\d+\] |\n\w{16}>>>)",
    re.MULTILINE | re.DOTALL,
)


def answer_exposure(body: dict[str, Any], _: int = 0) -> str:
    """The reply to the question; none that is valid where a message holds `(silent)`."""
    prompt = str(body["messages"][-1]["content"])
    if "(silent)" in prompt:
        return "I would rather not."
    entries: list[dict[str, Any]] = []
    for number, _role, text in _PASSAGE.findall(prompt):
        quoted = {quote: kind for quote, kind in DETAILS.items() if quote in text}
        if "(invents)" in text:
            quoted["a lighthouse"] = ("work", "few")
        for quote, (kind, fits) in quoted.items():
            entries.append(
                {"message": int(number), "quote": quote, "tells": "", "kind": kind, "fits": fits}
            )
    return json.dumps({"details": entries})


def answer_nothing(body: dict[str, Any], _: int = 0) -> str:
    """The reply of a model that overlooks everything."""
    return json.dumps({"details": []})


def answer_in_own_words(body: dict[str, Any], _: int = 0) -> str:
    """The reply of a model that names three details in words of its own, and one that fits many people."""
    words = [("works at night", "work", "few"), ("has two children of one age", "family", "few")]
    words += [("lives by the water", "place", "few"), ("has a sister", "family", "many")]
    entries = [
        {"message": 1, "quote": quote, "tells": "", "kind": kind, "fits": fits}
        for quote, kind, fits in words
    ]
    return json.dumps({"details": entries})


def answer_of_kinds(*kinds: str) -> Callable[[dict[str, Any], int], str]:
    """Replies of a model that sees details of these kinds alone."""

    def answer(body: dict[str, Any], number: int = 0) -> str:
        details = json.loads(answer_exposure(body, number))["details"]
        return json.dumps({"details": [entry for entry in details if entry["kind"] in kinds]})

    return answer


def server() -> LoopbackServer:
    return LoopbackServer(reply=answer_exposure)


def ask(
    spec: Path, name: str, reply: Callable[[dict[str, Any], int], str], *words: object
) -> tuple[int, list[str]]:
    """Have a model of this name answer."""
    with LoopbackServer(reply=reply) as model:
        named = re.sub(r"^server:[^@]*@", f"server:{name}@", model.spec)
        return run("release", "risk", spec, "--model", named, *words)


def card_of(release: Path) -> str:
    """The card of a release, without the marks before its signs."""
    return (release / "README.md").read_text(encoding="utf-8").replace("\\", "")


def saying(number: int, words: str = "", language: str = "en", **other: Any) -> Scenario:
    """A scenario whose user says these words, too."""
    record = different(number, language).to_dict()
    history = [dict(turn) for turn in record["inputs"]["history"]]
    first = next(turn for turn in history if turn["role"] == "user")
    first["content"] = f"{first['content']} {words}".strip()
    return Scenario.from_dict({**record, "inputs": {"history": history}, **other})


SCENARIOS = [
    saying(1, EXPOSED_TEXT),
    saying(2, "I came off the night ferry and called my sister."),
    saying(3, "A quiet day."),
    saying(4, "(invents)"),
    *(different(number, "zh") for number in range(21, 25)),
]
FIRST = SCENARIOS[0].id
ITEMS = [one.id for one in SCENARIOS]


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rounds") / "voted"
    folder.mkdir()
    voted(folder, SCENARIOS)
    return folder


@pytest.fixture
def folder(rounds: Path, tmp_path: Path) -> Path:
    """A folder with a workspace and its closed rounds."""
    return Path(shutil.copytree(rounds, tmp_path / "voted"))


def run(*words: object) -> tuple[int, list[str]]:
    """The exit code of a command, and the lines that it printed."""
    done = h2htalk_here(*words)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def risk(release: Path, model: LoopbackServer, *words: object) -> tuple[int, list[str]]:
    return run("release", "risk", release, "--model", model.spec, *words)


def build(spec: Path, name: str, *allow: str) -> tuple[int, list[str]]:
    permissions = [word for one in [*ALLOW_UNREAD, *allow] for word in ("--allow", one)]
    return run("release", "build", spec, "--out", spec.parent / name, *permissions)


def facts_of(release: Path) -> Mapping[str, Any]:
    facts = json.loads((release / "release.json").read_text(encoding="utf-8"))["facts"]
    return dict(facts)


def test_shares_are_reported_by_language_and_the_most_exposed_go_to_people_or_stay_out(
    folder: Path,
) -> None:
    spec = write_spec(folder, quota=8)
    with server() as model:
        code, shown = risk(spec, model)
        assert (code, model.requests) == (0, 8)
        # Nothing is asked twice.
        again, _ = risk(spec, model)
        assert (again, model.requests) == (0, 8)
        name = f"risk:{model_name(model.spec)}"
    assert shown[0] == f"{name} was asked about 8 dialogues now"
    ends = "dialogues that were read (0.250; 95 % interval 0.046 to 0.699)"
    assert f"English: 3 or more details in 1 of 4 {ends}" in shown
    assert any(line.startswith("Chinese: 3 or more details in 0 of 4 dialogues") for line in shown)
    assert "1 quote stands in no message of the user, and counts for nothing" in shown
    at = shown.index("most exposed: 1 of 1 dialogue with 3 or more details")
    assert shown[at + 1] == f"  {FIRST}: 3 details: work, place, family"
    quotes = "work: “the night ferry”; place: “beside the lock”; family: “my twins”"
    assert shown[at + 2] == f"    {quotes}"
    assert not any(re.search(r"\b(safe|passed|complete)\b", line) for line in shown)
    exclude = shown[-1].strip()
    assert exclude == f'exclude = ["{FIRST.partition(":")[0]}"]'
    # The file is one that a round takes, and the round is the workspace's.
    out = folder / "people"
    settings = folder / "people.toml"
    settings.write_text("planted = false\n", encoding="utf-8")
    words = [
        "--annotators",
        folder / "people.csv",
        "--out",
        out,
        "--overlap",
        3,
        "--settings",
        settings,
    ]
    code, shown = run("round", "open", "crowd", folder / "W" / EXPOSED, *words)
    assert code == 0, shown
    [item] = RoundFolder(out).items()
    assert (item.id, quotes in item.note) == (FIRST, True)
    assert "people" in (folder / "W" / "links.jsonl").read_text(encoding="utf-8")
    # What people drop there is named by the next build; the round is none of those that accept items.
    close(out, lambda item: crowd(keep="drop"))
    code, shown = run("release", "build", spec, "--out", folder / "unused", "--dry-run")
    note = f'{out}: people dropped 1 exposed item; to leave them out: exclude = ["{FIRST}"]'
    assert (code, note in shown) == (3, True)
    # And the line is one that a specification takes.
    code, shown = build(write_spec(folder, f"risk = 0.05\n{exclude}", quota=7), "release")
    assert code == 0
    assert not any("people dropped" in line for line in shown)
    assert facts_of(folder / "release")["exposure"]["languages"]["en"] == {
        "dialogues": 3,
        "read": 3,
        "exposed": 0,
    }


def test_without_the_setting_there_is_no_gate_and_the_card_says_what_was_measured_or_that_nobody_did(
    folder: Path,
) -> None:
    spec = write_spec(folder, quota=8)
    code, _ = build(spec, "before")
    assert code == 0
    card = (folder / "before" / "README.md").read_text(encoding="utf-8")
    assert "Nobody has measured how many dialogues hold so many such details" in card
    assert "reidentification" not in card
    croissant = json.loads((folder / "before" / "croissant.json").read_text(encoding="utf-8"))
    sensitive = croissant["rai:personalSensitiveInformation"]
    assert any(
        line.startswith("Not replaced is what tells a user's age, school or work year")
        for line in sensitive
    )
    with server() as model:
        # A release that was built here is named as well as its specification.
        code, _ = risk(folder / "before", model)
        assert (code, model.requests) == (0, 8)
        name = model_name(model.spec)
    code, _ = build(spec, "after")
    assert code == 0
    card = (folder / "after" / "README.md").read_text(encoding="utf-8")
    assert "Nobody has measured" not in card
    assert name in card.replace("\\", "")
    assert "in English: 1 of 4 dialogues that were read" in card
    assert "the night ferry" not in (folder / "after" / "release.json").read_text(encoding="utf-8")
    assert run("release", "check", folder / "after")[0] == 0


def test_a_gate_that_is_set_is_not_tested_then_refused_and_leaves_items_out(folder: Path) -> None:
    spec = write_spec(folder, "risk = 0.05", quota=8)
    code, shown = build(spec, "unread")
    assert code == 3
    assert "gate reidentification: not tested: 8 of 8 items unread" in shown
    assert "  no valid answer of a model is on record about what gives their users away: 8" in shown
    assert any("h2htalk release risk SPEC --model MODEL" in line for line in shown)
    assert not any("release read SPEC" in line for line in shown)
    code, shown = run("release", "check", folder / "unread")
    assert (code, "gate reidentification: not tested: 8 of 8 items unread" in shown) == (3, True)
    done = h2htalk_here("release", "publish", folder / "unread", "someone/made", "--dry-run")
    assert "for reidentification `h2htalk release risk`" in done.stderr
    with server() as model:
        risk(spec, model)
        code, shown = build(spec, "refused")
        assert code == 4
        assert not (folder / "refused").exists()
        at = shown.index(
            "gate reidentification: users whom people who know them could recognise: 2 findings"
        )
        assert shown[at + 1].startswith(
            "  English: 3 or more details in 1 of 4 dialogues that were read (0.250; "
        )
        assert (
            'where `risk` allows 0.05: leave dialogues out (`exclude`, or `leave_out = ["reidentification"]`)'
            in (shown[at + 1])
        )
        assert shown[at + 2] == f"  {FIRST}: 3 details: work, place, family"
        without = write_spec(folder, 'risk = 0.05\nleave_out = ["reidentification"]', quota=7)
        code, shown = build(without, "without")
        assert (code, "  refused: left out by the gate reidentification: 1" in shown) == (0, True)
    higher = write_spec(folder, "risk = 0.3", quota=8)
    assert build(higher, "higher")[0] == 0
    card = (folder / "higher" / "README.md").read_text(encoding="utf-8")
    assert "| reidentification | users whom people who know them could recognise | 8 of 8 |" in card
    code, shown = run("release", "check", folder / "higher")
    assert code == 0


def test_what_nobody_was_asked_about_is_published_by_the_owners_word_alone(folder: Path) -> None:
    spec = write_spec(folder, "risk = 0.05", quota=8)
    code, shown = build(spec, "release", "reidentification:unread:8=nobody could be asked")
    assert code == 0
    assert "gate reidentification: unread, as the owner allows: 8 of 8 items unread" in shown
    assert run("release", "check", folder / "release")[0] == 0
    code, shown = build(spec, "fewer", "reidentification:unread:7=nobody could be asked")
    assert code == 3
    assert any("the owner allows 7" in line for line in shown)
    code, shown = build(
        write_spec(folder, quota=8), "none", "reidentification:unread=nobody could be asked"
    )
    assert (code, any("the release has no such gate; set `risk`" in line for line in shown)) == (
        2,
        True,
    )


@pytest.mark.parametrize("value", ["0", "1", "-0.1", "1.5", "nan", '"0.05"', "true"])
def test_a_share_that_is_none_is_refused(folder: Path, value: str) -> None:
    code, shown = run(
        "release", "build", write_spec(folder, f"risk = {value}"), "--out", folder / "release"
    )
    assert (code, any("risk" in line for line in shown)) == (2, True)


def test_items_that_have_no_valid_answer_are_named_and_counted_nowhere(folder: Path) -> None:
    silent = [saying(1, f"{EXPOSED_TEXT} (silent)"), *SCENARIOS[1:]]
    other = folder / "other"
    other.mkdir()
    voted(other, silent)
    spec = write_spec(other, "risk = 0.05", quota=8)
    with server() as model:
        code, shown = risk(spec, model)
        assert code == 3
        dialogue = FIRST.partition(":")[0]
        assert f"English: unread, and counted nowhere: 1 of 4 dialogues: {dialogue}" in shown
        assert f"  no valid answer about {dialogue}: malformed_output" in shown
        assert any(
            line.startswith("English: 3 or more details in 0 of 3 dialogues that were read")
            for line in shown
        )
        asked = model.requests
        # A stored reply is read again, and not asked for again.
        assert risk(spec, model)[0] == 3
        assert model.requests == asked
    code, shown = build(spec, "release")
    assert code == 3
    assert "gate reidentification: not tested: 1 of 8 items unread" in shown


def test_a_dialogue_counts_once_with_all_its_items_and_cases_count_by_themselves() -> None:
    base = SCENARIOS[0].to_dict()
    longer = [
        *base["inputs"]["history"],
        {"role": "companion", "content": "Oh?"},
        {"role": "user", "content": "Yes."},
    ]
    second = Scenario.from_dict({**base, "id": f"{FIRST}-2", "inputs": {"history": longer}})
    first = Scenario.from_dict(base)
    dialogues = released_dialogues([first, second, SCENARIOS[1], case(1), case(2)])
    assert [len(dialogue.records) for dialogue in dialogues] == [2, 1, 1, 1]
    shown = [turn.content for turn in dialogues[0].shown.messages]
    assert len(shown) == len(set(shown))
    assert shown == [turn["content"] for turn in longer]
    assert dialogues[2].id == "case-en-1"


def test_dry_run_prints_calls_and_sends_nothing(folder: Path) -> None:
    spec = write_spec(folder, quota=8)
    with server() as model:
        code, shown = risk(spec, model, "--dry-run")
        assert (code, model.requests) == (0, 0)
    assert "to be asked about 8 of 8 dialogues" in shown[0]
    assert not (folder / "W" / CALLS_FOLDER).exists()


def test_the_embedded_model_and_a_copy_without_its_workspace_are_refused(folder: Path) -> None:
    spec = write_spec(folder, quota=8)
    code, shown = run("release", "risk", spec, "--model", "embedded")
    assert (code, any("too small to read for others" in line for line in shown)) == (2, True)
    build(spec, "release")
    shutil.rmtree(folder / "release.private")
    with server() as model:
        code, shown = risk(folder / "release", model)
        assert (code, model.requests) == (2, 0)
        assert any("name the TOML file of the release instead" in line for line in shown)
        code, shown = risk(folder / "W", model)
        assert (code, any("not a release; name the TOML file" in line for line in shown)) == (
            2,
            True,
        )


def test_an_erasure_takes_quotes_replies_and_the_item_for_people(folder: Path) -> None:
    spec = write_spec(folder, quota=8)
    with server() as model:
        risk(spec, model)
    dialogue = FIRST.partition(":")[0]
    stored = [ITEM_READS, EXPOSED, f"{CALLS_FOLDER}/calls.jsonl"]
    assert set(stored) <= set(files_with(folder / "W", "the night ferry"))
    workspace = Workspace(folder / "W")
    workspace.tombstones_path.write_text(json.dumps({"id": dialogue}) + "\n")
    erase(workspace, dialogue)
    assert dialogue not in read_item_reads(folder / "W")
    assert len(read_item_reads(folder / "W")) == 7
    for path in stored:
        text = (folder / "W" / path).read_text(encoding="utf-8")
        assert "my twins" not in text
        assert dialogue not in text


def test_explain_shows_what_was_quoted(folder: Path) -> None:
    spec = write_spec(folder, quota=8)
    with server() as model:
        risk(spec, model)
        name = f"risk:{model_name(model.spec)}"
    _, shown = run("curate", "explain", folder / "W", FIRST)
    text = "\n".join(shown)
    assert name in text
    assert "3 details: work, place, family" in text


def test_after_a_kill_only_what_was_in_flight_is_asked_again(folder: Path) -> None:
    (folder / "cases").mkdir()
    lines: list[str] = []
    for number in range(1, 61):
        turn = {
            "user": f"What is in shed {number}?",
            "reference": "I do not know.",
            "points": ["stays"],
        }
        lines.append(json.dumps(case(number, sessions=[{"turns": [turn]}]).to_dict()) + "\n")
    (folder / "cases" / "high_risk.jsonl").write_text("".join(lines), encoding="utf-8")
    spec = write_spec(folder, 'cases = "cases"', quota=0)
    calls = folder / "W" / CALLS_FOLDER / "calls.jsonl"
    with LoopbackServer(reply=answer_exposure, latency=0.2) as model:
        command = [
            sys.executable,
            "-m",
            "h2htalk",
            "release",
            "risk",
            str(spec),
            "--model",
            model.spec,
        ]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        kill_when(process, lambda: len(stored_replies(calls)), least=10)
        kept = len(stored_replies(calls))
        model.settle()
        asked = model.requests
        code, _ = risk(spec, model)
        assert (code, model.requests - asked) == (0, 60 - kept)
    assert 10 <= kept < 60
    lines_of_workspace = read_item_reads(folder / "W")
    assert [len(line.exposures) for line in lines_of_workspace.values()] == [1] * 60


def test_a_dialogue_whose_details_a_model_named_in_its_own_words_is_unread(folder: Path) -> None:
    spec = write_spec(folder, "risk = 0.05", quota=8)
    code, shown = ask(spec, "paraphrases", answer_in_own_words)
    assert code == 3
    assert any(
        line.startswith("English: unread, and counted nowhere: 4 of 4 dialogues") for line in shown
    )
    assert not any("dialogues that were read" in line for line in shown)
    assert "24 quotes stand in no message of the user, and count for nothing" in shown
    assert any(
        line.startswith("8 dialogues are unread because such quotes would bring them to 3")
        for line in shown
    )
    dialogue = FIRST.partition(":")[0]
    assert f"  no valid answer about {dialogue}: misquoted" in shown
    code, shown = build(spec, "release")
    assert code == 3
    assert "gate reidentification: not tested: 8 of 8 items unread" in shown
    assert any(
        line.startswith("  misquoted: models named what gives their users away in words")
        for line in shown
    )
    [reading] = facts_of(folder / "release")["exposure"]["readings"]
    assert reading["misquoted"] == 24
    card = card_of(folder / "release")
    assert (
        "24 quotes stand in no message of the user; a dialogue that they would bring to 3 details"
        in card
    )
    assert "in English: no dialogue was read, 4 dialogues are unread" in card
    assert run("release", "check", folder / "release")[0] == 3
    # A model that says nothing refutes nothing; one that quotes the words decides it.
    assert ask(spec, "lazy", lambda *_: json.dumps({"details": []}))[0] == 0
    code, lines = build(spec, "unrefuted")
    assert code == 3
    assert "gate reidentification: not tested: 8 of 8 items unread" in lines
    assert ask(spec, "quotes", answer_exposure)[0] == 0
    assert build(spec, "refused")[0] == 4


def test_details_that_stand_there_expose_a_dialogue_whatever_else_is_misquoted() -> None:
    [dialogue] = released_dialogues([SCENARIOS[0]])
    exposures: list[Exposure] = []
    for quotes in (["the night ferry", "my twins"], ["beside the lock"]):
        details = tuple(ExposedDetail(kind="work", quote=quote) for quote in quotes)
        answer = Exposure(
            reader=f"risk:{len(quotes)}",
            date="2026-11-30",
            passages=tuple(dialogue.hashes),
            details=details,
            misquoted=2,
            prompt=exposure_fingerprint(Prompts.load()),
        )
        exposures.append(answer)
    known = Exposures({dialogue.id: tuple(exposures)})
    for answer in exposures:
        alone = measure([dialogue], known, [reader_of(answer)])
        assert (alone.read, alone.unclear) == ((), (dialogue,))
    together = measure([dialogue], known, known.counted_readers([dialogue]))
    assert (len(together.exposed), together.unread, together.misquoted) == (1, (), 4)


@pytest.mark.parametrize("names", [("aa-strong", "zz-weak"), ("zz-strong", "aa-weak")])
def test_a_weaker_model_that_is_asked_later_hides_nothing_of_what_another_one_quoted(
    folder: Path, names: tuple[str, str]
) -> None:
    strong, weak = names
    spec = write_spec(folder, "risk = 0.05", quota=8)
    assert ask(spec, strong, answer_exposure)[0] == 0
    code, shown = ask(spec, weak, answer_nothing)
    assert code == 0
    assert any(line.startswith("English: 3 or more details in 0 of 4 dialogues") for line in shown)
    together = "for the release all answers to the bundled question count together: in English: 1 of 4 dialogues"
    assert any(line.startswith(together) for line in shown)
    assert f"  {FIRST}: 3 details: work, place, family" in shown
    assert (folder / "W" / EXPOSED).read_text(encoding="utf-8") != ""
    code, shown = build(spec, "refused")
    assert code == 4
    assert f"  {FIRST}: 3 details: work, place, family" in shown
    assert build(write_spec(folder, "risk = 0.3", quota=8), "higher")[0] == 0
    exposure = facts_of(folder / "higher")["exposure"]
    shares = {
        reading["reader"]: reading["languages"]["en"]["exposed"] for reading in exposure["readings"]
    }
    assert shares == {f"risk:server:{strong}": 1, f"risk:server:{weak}": 0}
    assert exposure["languages"]["en"]["exposed"] == 1
    card = card_of(folder / "higher")
    for name, number in ((strong, 1), (weak, 0)):
        line = rf"A model \(server:{name}, [^)]*\) was asked to quote such details from each dialogue\. "
        assert re.search(
            rf"{line}It quoted 3 or more from, in English: {number} of 4 dialogues", card
        )
    assert (
        "What these 2 readings quoted together is 3 or more such details from, in English: 1 of 4"
        in card
    )


def test_what_several_models_quoted_of_a_dialogue_counts_together(folder: Path) -> None:
    spec = write_spec(folder, "risk = 0.05", quota=8)
    assert ask(spec, "work-and-family", answer_of_kinds("work", "family"))[0] == 0
    assert build(spec, "before")[0] == 0
    assert ask(spec, "work-and-place", answer_of_kinds("work", "place"))[0] == 0
    code, shown = build(spec, "after")
    assert code == 4
    assert any(line.startswith(f"  {FIRST}: 3 details") for line in shown)


def test_answers_to_a_question_of_the_owners_count_for_no_gate_and_the_card_says_whose_it_was(
    folder: Path,
) -> None:
    spec = write_spec(folder, "risk = 0.05", quota=8)
    prompts = folder / "prompts"
    for language in ("en", "zh"):
        (prompts / language).mkdir(parents=True)
        rules = 'Say {"details": []} whatever is shown.'
        (prompts / language / "exposure_rules.j2").write_text(rules, encoding="utf-8")
    code, shown = ask(spec, "obeys", answer_nothing, "--prompts", prompts)
    assert code == 0
    says = "its prompts are not the bundled ones: these answers count for no gate, and the card says whose they are"
    assert says in shown
    code, shown = build(spec, "unread")
    assert code == 3
    assert "gate reidentification: not tested: 8 of 8 items unread" in shown
    reason = "models were asked with prompts of the owner or of another version alone, which do not count"
    assert f"  {reason}: 8" in shown
    card = card_of(folder / "unread")
    assert "Nobody has measured with the bundled question how many dialogues" in card
    owners = "was asked about such details with a question of the owner's, or of another version"
    assert owners in card
    # It takes nothing from what the bundled question found, and the card lists both.
    assert ask(spec, "obeys", answer_exposure)[0] == 0
    assert build(spec, "refused")[0] == 4
    assert build(write_spec(folder, "risk = 0.3", quota=8), "higher")[0] == 0
    card = card_of(folder / "higher")
    assert owners in card
    assert "was asked to quote such details from each dialogue" in card
    # Bundled templates in a folder are the bundled question.
    for language in ("en", "zh"):
        (prompts / language / "exposure_rules.j2").write_bytes(
            (
                Path(h2htalk.__file__).parent
                / "curation"
                / "prompts"
                / language
                / "exposure_rules.j2"
            ).read_bytes()
        )
    code, shown = ask(spec, "another", answer_nothing, "--prompts", prompts)
    assert (code, says in shown) == (0, False)


def test_a_round_is_about_exposed_dialogues_by_what_its_file_holds_and_not_by_its_name(
    folder: Path,
) -> None:
    spec = write_spec(folder, quota=8)
    with server() as model:
        risk(spec, model)
    workspace = folder / "W"
    written = workspace / EXPOSED
    renamed = workspace / "for-people.jsonl"
    written.rename(renamed)
    # The owner's own file has the name that the command uses, and says nothing of exposed dialogues.
    item = {
        "item": RoundFolder(folder / "crowd").items()[1].to_dict(),
        "source": SCENARIOS[1].to_dict(),
    }
    written.write_text(json.dumps(item) + "\n", encoding="utf-8")
    settings = folder / "people.toml"
    settings.write_text("planted = false\n", encoding="utf-8")
    for source, out in ((renamed, folder / "about-exposed"), (written, folder / "about-own")):
        words = [
            "--annotators",
            folder / "people.csv",
            "--out",
            out,
            "--overlap",
            3,
            "--settings",
            settings,
        ]
        code, shown = run("round", "open", "crowd", source, *words)
        assert code == 0, shown
    links = (workspace / "links.jsonl").read_text(encoding="utf-8")
    assert ("about-exposed" in links, "about-own" in links) == (True, False)
    close(folder / "about-exposed", lambda item: crowd(keep="drop"))
    code, shown = run("release", "build", spec, "--out", folder / "unused", "--dry-run")
    note = f'{folder / "about-exposed"}: people dropped 1 exposed item; to leave them out: exclude = ["{FIRST}"]'
    assert (code, note in shown) == (3, True)
    # Such a round accepts nothing, also by name.
    spec = write_spec(folder, f'rounds = ["{folder / "about-exposed"}"]', quota=8)
    code, shown = run("release", "build", spec, "--out", folder / "unused", "--dry-run")
    assert (code, any("it accepts no item; take it out of `rounds`" in line for line in shown)) == (
        2,
        True,
    )
