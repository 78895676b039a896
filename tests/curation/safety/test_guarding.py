"""The guard of the safety stage: it reads every dialogue, what it found is stored, and decides as the policy says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.protocol import Reply
from h2htalk.curation.curate import curate, estimate_run
from h2htalk.curation.reading.question import MOST_PASSAGES
from h2htalk.curation.reading.summary import reading_lines
from h2htalk.curation.safety.stage import make_stage
from h2htalk.curation.stages import CurateSpec, SafetySettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.readers.certificates import Certificate, add_certificate
from h2htalk.data.readers.check_set import check_set_fingerprint
from h2htalk.data.readers.passages import SpokenPassage
from h2htalk.data.readers.reads import READ_GATES, read_read
from h2htalk.data.scenario import notes_crisis
from h2htalk.errors import ConfigError, IncompleteError
from support.certificates import certifying_figures
from support.command_line import h2htalk_here
from support.curations import all_bytes, dialogue, finished, run_one
from support.doubles.loopback import Answer, LoopbackServer
from support.guards import answer_last, answer_question, guard_settings, safety_records

CHECK = "h2htalk curate check-guard MODEL"
HELLO = ("I planted tomatoes on the balcony today.", "How lovely, which kind did you choose?")


def run_guard(
    folder: Path,
    dialogues: list[dict[str, object]],
    answer: Callable[..., str | Answer] = answer_question,
    **more: Any,
) -> tuple[Workspace, list[dict[str, Any]]]:
    """Run the stage with a scripted server as the guard; returns the workspace and the bodies that the server got."""
    bodies: list[dict[str, Any]] = []

    def reply(body: dict[str, Any], number: int) -> str | Answer:
        bodies.append(body)
        return answer(body, number)

    workspace = finished(folder / "work", "anonymize", dialogues, part=2)
    with LoopbackServer(reply=reply) as server:
        run_one("safety", workspace, guard_settings(server, **more))
    return workspace, bodies


def test_every_dialogue_is_read_and_each_distinct_text_once(tmp_path: Path) -> None:
    dialogues = [dialogue(1), dialogue(2, *HELLO), dialogue(3, *HELLO), dialogue(4, *HELLO)]
    workspace, bodies = run_guard(tmp_path, dialogues)
    assert len(bodies) == 2  # the last three are equal, and in two parts
    assert all(body["response_format"]["type"] == "json_schema" for body in bodies)
    records = safety_records(workspace)
    assert len(records) == 4
    for name, record in records.items():
        read = read_read(record["audit"]["read"], "audit")
        assert (read.item, read.gates, read.findings) == (name, READ_GATES, ())
        assert read.reader.startswith("guard:server:")
        assert "127.0.0.1" not in read.reader
        said, answer = (message["content"] for message in record["kept"]["messages"])
        answered = SpokenPassage("companion", answer, said)
        wanted = {SpokenPassage("user", said).hash, answered.hash, answered.hash_as_first}
        assert read.passages == tuple(sorted(wanted))
        assert record["kept"]["metadata"]["safety"] == {
            "action": "keep",
            "tags": [],
            "risk": "none",
        }
    stored = [
        json.loads(line)
        for line in (workspace.stage("safety").path / "calls.jsonl").open(encoding="utf-8")
    ]
    assert sorted(line["id"] for line in stored if "text" in line) == [
        f"made-00000{n}/window-1" for n in (1, 2, 3, 4)
    ]


def test_a_long_dialogue_is_read_to_its_first_message(tmp_path: Path) -> None:
    """A guard read the last 40 messages."""
    texts = [f"We walked along the river, day {at}." for at in range(90)]
    texts[1] += " (harm)"
    workspace, bodies = run_guard(tmp_path, [dialogue(1, *texts)])
    assert len(bodies) > 90 / MOST_PASSAGES
    (record,) = safety_records(workspace).values()
    assert (
        len(record["audit"]["read"]["passages"]) == 1 + 2 * 89
    )  # all but the first also as the first of an item
    assert record["kept"]["metadata"]["safety"] == {
        "action": "review",
        "tags": ["companion.harm"],
        "risk": "none",
    }


@pytest.mark.parametrize(
    ("user", "companion", "wanted"),
    [
        ("", "(clumsy)", ("keep", [], "none")),
        ("", "(harm)", ("review", ["companion.harm"], "none")),
        ("", "(grave)", "companion.harm"),
        ("(danger)", "(grave)", ("review", ["companion.harm", "crisis.danger"], "elevated")),
        ("(danger)", "", ("keep_tag", ["crisis.danger"], "elevated")),
        ("(danger)", "(danger)", ("keep_tag", ["crisis.danger"], "high")),
        ("(past)", "", ("keep_tag", ["crisis.past"], "elevated")),
        ("(friend)", "", ("keep_tag", ["crisis.third_party"], "elevated")),
        ("(long ago)", "", ("keep_tag", ["crisis.third_party"], "elevated")),
        ("(young)", "", ("keep_tag", ["minor"], "none")),
        ("(young)", "(harm)", ("review", ["companion.harm", "minor"], "none")),
        ("(data)", "", ("review", ["personal_data"], "none")),
        # What the guard contradicts, or says of the user as if it were the companion, is for people.
        ("", "(a harm of 0)", ("review", ["companion.harm"], "none")),
        ("(grave)", "", ("review", ["companion.harm"], "none")),
        ("(clumsy)", "", ("keep", [], "none")),
        ("(a danger of none)", "", ("review", ["crisis.possible"], "elevated")),
        (
            "(a danger of none)",
            "(grave)",
            ("review", ["companion.harm", "crisis.possible"], "elevated"),
        ),
        ("", "(explicit)", "sexual.explicit"),
        ("(explicit)", "", ("review", ["sexual.explicit"], "none")),
        ("(danger)", "(explicit)", ("review", ["crisis.danger", "sexual.explicit"], "elevated")),
        ("(young)", "(explicit)", "sexual.minors"),
        ("(young) (danger)", "(explicit)", "sexual.minors"),
        # It may be a child's report.
        (
            "(young) (explicit)",
            "",
            ("review", ["minor", "sexual.explicit", "sexual.minors"], "none"),
        ),
    ],
)
def test_what_the_guard_found_is_the_tag_or_goes_to_people(
    user: str, companion: str, wanted: tuple[str, list[str], str] | str, tmp_path: Path
) -> None:
    workspace, _ = run_guard(
        tmp_path, [dialogue(1, f"{HELLO[0]} {user}", f"{HELLO[1]} {companion}")]
    )
    (record,) = safety_records(workspace).values()
    assert record["audit"]["read"]["passages"]
    if isinstance(wanted, str):
        assert record["rejected"]["reason"] == wanted
        is_hard = wanted == "sexual.minors"
        assert ("record" in record["rejected"]) == (not is_hard)
        said = [finding.get("what", "") for finding in record["audit"]["read"]["findings"]]
        assert not (is_hard and any(said))
        return
    metadata = record["kept"]["metadata"]
    assert metadata["safety"] == dict(zip(("action", "tags", "risk"), wanted, strict=True))
    assert notes_crisis(metadata) == (
        wanted[2] != "none" or any(tag[0] == "c" or "minors" in tag for tag in wanted[1])
    )


def test_explicit_content_that_the_guard_found_is_tagged_where_that_is_set(tmp_path: Path) -> None:
    dialogues = [dialogue(1, HELLO[0], "(explicit)"), dialogue(2, "(young)", "(explicit)")]
    workspace, _ = run_guard(tmp_path, dialogues, explicit="tag")
    first, second = safety_records(workspace).values()
    assert first["kept"]["metadata"]["safety"]["tags"] == ["sexual.explicit"]
    assert second["rejected"]["reason"] == "sexual.minors"


def test_messages_without_a_valid_reply_are_unread_and_the_run_goes_on(tmp_path: Path) -> None:
    texts = [f"We walked along the river, day {at}." for at in range(40)]
    texts[2] += " (silent)"
    workspace, _ = run_guard(
        tmp_path, [dialogue(1, *texts), dialogue(2, "(silent)", HELLO[1]), dialogue(3, *HELLO)]
    )
    first, second, third = safety_records(workspace).values()
    assert SpokenPassage("user", texts[0]).hash not in first["audit"]["read"]["passages"]
    assert SpokenPassage("user", texts[30], texts[29]).hash in first["audit"]["read"]["passages"]
    assert first["audit"]["not_read"] == ["malformed_output"]
    assert "read" not in second["audit"]
    assert second["audit"]["not_read"] == ["malformed_output"]
    assert second["kept"]["metadata"]["safety"]["action"] == "keep"
    assert "not_read" not in third["audit"]


def test_failed_calls_stop_the_part_and_are_made_again(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="calls of part-00000 failed"):
        run_guard(tmp_path, [dialogue(1, *HELLO)], lambda body, number: Answer("no", 400))
    workspace = Workspace(tmp_path / "work")
    with LoopbackServer(reply=answer_question) as server:
        run_one("safety", workspace, guard_settings(server))
    assert safety_records(workspace)["made-000001"]["audit"]["read"]


def test_a_guard_in_its_own_form_is_asked_about_each_message(tmp_path: Path) -> None:
    """It judges the last message of what it is sent: the others of a dialogue would have counted as read."""
    dialogues = [
        dialogue(1, *HELLO, "I feel low. (danger)", "Then so be it. (harm)"),
        dialogue(2, *HELLO),
    ]
    workspace, bodies = run_guard(tmp_path, dialogues, answer_last, guard_form="qwen3guard")
    assert len(bodies) == 4  # the first two messages of both dialogues are equal
    assert all("response_format" not in body for body in bodies)
    first, second = safety_records(workspace).values()
    read = first["audit"]["read"]
    assert len(read["passages"]) == 1 + 2 * 3  # all but the first also as the first of an item
    assert [finding["gate"] for finding in read["findings"]] == ["crisis_care", "companion_harm"]
    assert "minors" not in read["gates"]
    assert first["kept"]["metadata"]["safety"]["action"] == "review"
    assert {"companion.harm", "crisis.danger"} <= set(first["kept"]["metadata"]["safety"]["tags"])
    assert "findings" not in second["audit"]["read"]
    assert second["kept"]["metadata"]["safety"]["action"] == "keep"


def test_what_words_remove_is_not_read_and_what_they_doubt_is_decided(tmp_path: Path) -> None:
    hate = (
        "Muslims are vermin and should all be wiped out",
        "ok",
        "Jews are rats and deserve to die",
    )
    statement = ("The government lies to us and must be overthrown", "I see.", "Yes.")
    workspace, bodies = run_guard(
        tmp_path, [dialogue(1, *hate), dialogue(2, *statement), dialogue(3, *HELLO)]
    )
    assert len(bodies) == 2
    records = safety_records(workspace)
    assert records["made-000001"]["rejected"]["reason"] == "offensive.hate"
    # The plain question does not ask about politics, so its reading settles nothing there.
    noted = {"action": "review", "tags": ["political.sensitive"], "risk": "none"}
    assert records["made-000002"]["kept"]["metadata"]["safety"] == noted
    workspace, bodies = run_guard(
        tmp_path / "own",
        [dialogue(1, *hate), dialogue(2, *statement)],
        answer_last,
        guard_form="llama_guard",
    )
    assert len(bodies) == 3
    assert (
        safety_records(workspace)["made-000002"]["kept"]["metadata"]["safety"]["action"] == "keep"
    )


def test_a_hint_that_the_guard_takes_back_stays_noted_and_is_counted(tmp_path: Path) -> None:
    """Without a trace of it a guard that finds nothing gave the dialogue to annotators who declined crises."""
    doubted = (
        "hay NEPA took light again, this country will kill somebody one day",
        "Again? How long now?",
    )
    workspace, _ = run_guard(tmp_path, [dialogue(1, *doubted), dialogue(2, *HELLO)])
    records = safety_records(workspace)
    noted = records["made-000001"]["kept"]["metadata"]["safety"]
    assert noted == {
        "action": "keep",
        "tags": [],
        "risk": "none",
        "contradicted": ["crisis.possible"],
    }
    assert not notes_crisis(records["made-000001"]["kept"]["metadata"])
    assert "contradicted" not in records["made-000002"]["kept"]["metadata"]["safety"]
    assert workspace.stage("safety").total().tags == {"contradicted": 1}


def test_with_doubtful_alone_others_are_unread(tmp_path: Path) -> None:
    doubtful = ("I hope you have a nice day.", "You too, idiot. What a slut you are.")
    workspace, bodies = run_guard(
        tmp_path, [dialogue(1, *HELLO), dialogue(2, *doubtful)], guard_scope="doubtful"
    )
    records = safety_records(workspace)
    assert "read" not in records["made-000001"]["audit"]
    assert len(bodies) == ("read" in records["made-000002"]["audit"])


def stage_of(folder: Path, settings: SafetySettings) -> Any:
    return make_stage(CurateSpec(str(folder), sections=(settings,)), Workspace(folder), b"k" * 32)


def test_a_model_that_is_too_weak_is_refused(tmp_path: Path) -> None:
    for scope in ("all", "doubtful"):
        with pytest.raises(
            ConfigError, match=r"guard = 'embedded': .* too small to read for others"
        ):
            stage_of(tmp_path, SafetySettings(guard="embedded", guard_scope=scope))


def test_a_run_says_once_that_the_guard_reads_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for scope in (None, "all", "doubtful"):
        run_guard(tmp_path / str(scope), [dialogue(1, *HELLO)], guard_scope=scope)
        told.append(capsys.readouterr().err.count("the guard reads every dialogue that is kept"))
    assert told == [1, 0, 0]
    workspace = Workspace(tmp_path / "None" / "work")
    assert (
        stage_of(workspace.path, SafetySettings(guard="openai:gpt-5.5")).messages == ()
    )  # it is finished


def test_a_stage_that_an_earlier_version_made_with_a_guard_is_kept_as_it_is(tmp_path: Path) -> None:
    """The settings of its `stage.json` are those of `guard_scope = "doubtful"` with a form of the guard's own."""
    settings = SafetySettings(guard="vllm:Qwen/Qwen3Guard-Gen-4B", guard_scope="doubtful")
    before = stage_of(tmp_path, settings).settings
    assert set(before) == {"guard", "terms", "models", "explicit"}
    workspace = finished(tmp_path / "work", "anonymize", [dialogue(1, *HELLO)])
    with LoopbackServer(reply=answer_last) as server:
        old = guard_settings(server, guard_scope="doubtful", guard_form="qwen3guard")
        run_one("safety", workspace, old)
        made = all_bytes(workspace.stage("safety"))
        for scope in (None, "all"):
            with pytest.raises(
                ConfigError,
                match=r'asked about doubtful .* --from-stage safety; .*guard_scope = "doub',
            ):
                run_one("safety", workspace, guard_settings(server, guard_scope=scope))
        with pytest.raises(ConfigError, match='guard_form = "qwen3guard"'):
            run_one("safety", workspace, guard_settings(server, guard_scope="doubtful"))
        run_one("safety", workspace, old)
    assert all_bytes(workspace.stage("safety")) == made


def test_a_stage_whose_guard_was_asked_other_questions_says_what_stands_and_what_to_do(
    tmp_path: Path,
) -> None:
    workspace = finished(tmp_path / "work", "anonymize", [dialogue(1, *HELLO)])
    with LoopbackServer(reply=answer_question) as server:
        settings = guard_settings(server)
        run_one("safety", workspace, settings)
        path = workspace.path / "safety" / "stage.json"
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored["settings"]["guard_prompt"] = "0" * 16
        stored["fingerprint"] = "f" * 16
        path.write_text(json.dumps(stored), encoding="utf-8")
        said = r"asked other questions .* What it has read stands .* --from-stage safety"
        with pytest.raises(ConfigError, match=said):
            run_one("safety", workspace, settings)


def test_without_a_guard_the_settings_are_those_of_earlier_versions(tmp_path: Path) -> None:
    assert set(stage_of(tmp_path, SafetySettings()).settings) == {
        "guard",
        "terms",
        "models",
        "explicit",
    }


def test_a_reply_is_stored_with_its_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Reply("x", at=1.0) == Reply("x")
    monkeypatch.setattr("h2htalk.chat.store.stage_calls.time.time", lambda: 1_700_000_000.0)
    workspace, _ = run_guard(tmp_path, [dialogue(1, *HELLO)])
    assert safety_records(workspace)["made-000001"]["audit"]["read"]["date"] == "2023-11-14"


SPEC = """
workspace = "work"
[[gather.sources]]
name = "made"
path = "raw.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"
[safety]
guard = "openai:gpt-4o"
"""


@pytest.mark.parametrize(
    ("setting", "calls"),
    [
        ("", "likely 5, at most 5 calls"),  # the long one has three windows
        ('guard_form = "llama_guard"', "likely 64, at most 64 calls"),
        ('guard_scope = "doubtful"', "likely 1, at most 5 calls"),
        ('guard_scope = "doubtful"\nguard_form = "qwen3guard"', "likely 1, at most 3 calls"),
    ],
)
def test_a_dry_run_says_how_many_calls_the_guard_makes_before_anything_is_sent(
    setting: str, calls: str, tmp_path: Path
) -> None:
    texts = [["I slept badly.", "What kept you awake?"]] * 2 + [
        [f"We walked along the river, day {n}." for n in range(60)]
    ]
    with (tmp_path / "raw.jsonl").open("w", encoding="utf-8") as file:
        for number, messages in enumerate(texts):
            turns = [
                {"role": ("user", "assistant")[at % 2], "content": f"{number} {one}"}
                for at, one in enumerate(messages)
            ]
            file.write(json.dumps({"messages": turns}) + "\n")
    spec = tmp_path / "curate.toml"
    spec.write_text(f"{SPEC}{setting}\n")
    said = estimate_run(spec, ["gather", "anonymize", "safety"])
    assert f"openai:gpt-4o: {calls}" in said
    assert ("it reads every dialogue that is kept" in said) == ("doubtful" not in setting)
    curate(spec, ["gather", "anonymize"])
    assert f"openai:gpt-4o: {calls}" in estimate_run(spec, ["safety"])
    spec.write_text(f"{SPEC}{setting}\nmax_cost = 0.00001\n")
    assert "more than max_cost" in estimate_run(spec, ["safety"])


def with_one_reader(folder: Path) -> Workspace:
    """A workspace with English and Chinese dialogues, one of them unread and one in review."""
    chinese = {**dialogue(4, "我今天种了番茄。", "种的是哪一种？"), "language": "zh"}
    dialogues = [
        dialogue(1, *HELLO),
        dialogue(2, "(silent)", HELLO[1]),
        dialogue(3, HELLO[0], "(harm)"),
        chinese,
    ]
    return run_guard(folder, dialogues)[0]


def test_a_run_ends_with_who_has_read_how_many_dialogues(tmp_path: Path) -> None:
    workspace = with_one_reader(tmp_path)
    reader = safety_records(workspace)["made-000001"]["audit"]["read"]["reader"]
    lines = reading_lines(workspace)
    assert lines[:2] == [
        f"safety     en: of 3 dialogues, {reader} has read 2; 3 dialogues are unread, 1 waits in review",
        f"safety     zh: of 1 dialogue, {reader} has read 1; 1 dialogue is unread, 0 wait in review",
    ]

    def nowhere(languages: str, reason: str) -> list[str]:
        return [
            f"safety     what {reader} has read in {languages} counts as unread: it {reason}: {CHECK}"
        ]

    assert lines[2:] == nowhere("en and zh", "has no certificate")
    shown = h2htalk_here("curate", "funnel", workspace.path)
    assert shown.stdout.splitlines()[-3:] == lines
    read = read_read(safety_records(workspace)["made-000001"]["audit"]["read"], "audit")
    certificate = Certificate(
        reader=read.reader,
        prompt=read.prompt,
        served_by=read.served_by,
        set=check_set_fingerprint(),
        date="2026-11-29",
        figures=certifying_figures(),
        gates={"en": READ_GATES},
    )
    add_certificate(workspace.path, certificate)
    refused = "is refused for every gate by its certificate"
    # Chinese is not certified, and a release says the same of it.
    assert reading_lines(workspace)[2:] == nowhere("zh", refused)
    assert [line.partition("; ")[2] for line in reading_lines(workspace)[:2]] == [
        "1 dialogue is unread, 1 waits in review",
        "1 dialogue is unread, 0 wait in review",
    ]
    add_certificate(workspace.path, replace(certificate, served_by="address:of-another"))
    assert reading_lines(workspace)[2:] == nowhere("zh", refused)  # the new one is of another model
    add_certificate(
        workspace.path, replace(certificate, gates={"en": READ_GATES, "zh": READ_GATES})
    )
    assert reading_lines(workspace)[2:] == []
    add_certificate(
        workspace.path, replace(certificate, gates={"en": READ_GATES, "zh": READ_GATES}, figures=())
    )
    # Gates without figures are nobody's.
    assert reading_lines(workspace)[2:] == nowhere("en and zh", refused)


def test_without_a_guard_every_dialogue_is_unread_and_old_workspaces_say_so(tmp_path: Path) -> None:
    workspace = finished(tmp_path / "work", "anonymize", [dialogue(1, *HELLO), dialogue(2)])
    assert reading_lines(workspace) == []
    run_one("safety", workspace)
    assert reading_lines(workspace) == [
        "safety     en: 2 dialogues are unread, 0 wait in review",
        "safety     words do not read: to have dialogues read, name a guard in [safety]",
    ]


def test_a_guard_in_its_own_form_in_the_doubtful_scope_leaves_dialogues_unread(
    tmp_path: Path,
) -> None:
    """It judges the last message of the forty that it is sent."""
    statement = ("The government lies to us and must be overthrown", "I see.", "Yes.")
    workspace, bodies = run_guard(
        tmp_path,
        [dialogue(1, *statement)],
        answer_last,
        guard_scope="doubtful",
        guard_form="qwen3guard",
    )
    assert len(bodies) == 1
    (record,) = safety_records(workspace).values()
    answer = SpokenPassage("user", statement[2], statement[1])
    assert record["audit"]["read"]["passages"] == sorted([answer.hash, answer.hash_as_first])
    assert reading_lines(workspace)[0] == "safety     en: 1 dialogue is unread, 0 wait in review"


def test_the_list_of_runs_says_how_many_dialogues_of_a_curation_are_unread(tmp_path: Path) -> None:
    with_one_reader(tmp_path)
    shown = h2htalk_here("runs", tmp_path).stdout
    # The guard was not checked: what it has read is unread for a release, too.
    assert re.search(r"^work .* 4 unread ", shown, re.MULTILINE), shown
