"""Gather: raw files and simulated dialogues become records with ids, provenance and a licence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.protocol import Reply, Request
from h2htalk.curation.erase import erase
from h2htalk.curation.gather.simulation import END, Simulation, grid, open_simulation
from h2htalk.curation.show import explain
from h2htalk.curation.stage_folder import Kept, Outcome, RecordCounts, Rejected
from h2htalk.curation.stages import CurateSpec, GatherSettings, SimulateSettings, Source
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_jsonl
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import Dialogue, bundled_personas
from h2htalk.errors import ConfigError, DataError
from support.command_line import h2htalk
from support.curations import all_files, run_one


def talk(text: str, number: int = 0) -> dict[str, Any]:
    said = [{"role": "user", "content": text}, {"role": "assistant", "content": f"I see {number}."}]
    return {"id": f"raw-{number}", "messages": said}


def write(path: Path, *records: Any) -> None:
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def source(
    name: str = "chat", form="messages", path: str = "raw.jsonl", language: Any = "en", **more: Any
) -> Source:
    return Source(name, path, form, language, more.pop("licence", "CC0-1.0"), **more)


def gather(
    tmp_path: Path, *sources: Source, part: int = 4, workspace: str = "work", **settings: Any
) -> RecordCounts:
    place = Workspace(tmp_path / workspace)
    return run_one("gather", place, GatherSettings(sources, **settings), part=part, folder=tmp_path)


def kept(tmp_path: Path, workspace: str = "work") -> list[Dialogue]:
    records = Workspace(tmp_path / workspace).stage("gather").records()
    return [Dialogue.from_dict(record) for record in records]


def lines(tmp_path: Path, kind: str, workspace: str = "work") -> list[Any]:
    return list(Workspace(tmp_path / workspace).stage("gather").records(kind))


def test_records_have_a_source_and_the_users_name_until_anonymize(tmp_path: Path) -> None:
    write(tmp_path / "raw.jsonl", talk("Hi", 1), "{broken", talk("Ho", 3))
    day = [{"query": "Hi", "response": "Hello."}]
    users = {f"User {at}": {"history": {"2023-04-27": day, "2023-04-28": day}} for at in range(9)}
    (tmp_path / "bank.json").write_text(json.dumps(users), encoding="utf-8")
    counts = gather(tmp_path, source(licence="mit"), source("bank", "memory_bank", "bank.json"))
    dialogues = kept(tmp_path)
    assert [d.id for d in dialogues[:2]] == ["chat-000001", "chat-000003"]
    assert {d.licence for d in dialogues} == {"MIT", "CC0-1.0"}
    assert dialogues[0].provenance == {"source": "chat", "row": 1}
    assert dialogues[4].provenance == {"source": "bank", "row": 3, "person": "bank-p0002"}
    assert dialogues[4].metadata == {"date": "2023-04-27", "name": "User 1"}
    assert (counts.read, counts.kept, counts.rejected) == (21, 20, 1)


NO_JSON = {"column": 2, "problem": "no JSON: Expecting property name enclosed in double quotes"}
UNKNOWN_ROLE = {
    "message": 1,
    "problem": 'an unknown role; say who it is: roles = { NAME = "companion" }, or "user"',
}


def test_the_audit_is_an_index_and_rejected_lines_have_no_text(tmp_path: Path) -> None:
    odd = {"messages": [{"role": "Emily Stone", "content": "Hi"}]}
    write(tmp_path / "raw.jsonl", talk("Hi\u202e", 1), "{broken", odd, talk("bye\x00"))
    counts = gather(tmp_path, source())
    index = {"file": "raw.jsonl", "row": 1, "line": 1, "id": "raw-1"}
    audits = lines(tmp_path, "audit")
    marks = [line["raw"].pop("mark") for line in audits]
    assert len(set(marks)) == 4
    assert all(len(mark) == 24 for mark in marks)
    assert audits == [
        {"id": "chat-000001", "raw": index, "removed": {"direction": 1}},
        {"id": "chat-000002", "raw": {"file": "raw.jsonl", "row": 2, "line": 2}},
        {
            "id": "chat-000003",
            "raw": {"file": "raw.jsonl", "row": 3, "line": 3},
            "names": ["Emily Stone"],
        },
        {"id": "chat-000004", "raw": {"file": "raw.jsonl", "row": 4, "line": 4, "id": "raw-0"}},
    ]
    assert lines(tmp_path, "rejected") == [
        {
            "id": "chat-000002",
            "stage": "gather",
            "reason": "broken",
            "evidence": {"line": 2, **NO_JSON},
        },
        {
            "id": "chat-000003",
            "stage": "gather",
            "reason": "role",
            "evidence": {"line": 3, **UNKNOWN_ROLE},
        },
        {
            "id": "chat-000004",
            "stage": "gather",
            "reason": "control",
            "evidence": {"line": 4, "message": 1},
        },
    ]
    assert counts.tags == {"cleaned": 1}


def test_answers_to_one_question_are_linked_and_a_moved_file_is_the_same_setting(
    tmp_path: Path,
) -> None:
    (tmp_path / "raw.csv").write_text(
        "questionID,question,answer\n7,Why?,So.\n8,How?,Thus.\n7,Why?,Who knows.\n"
    )
    first = gather(tmp_path, source(form="question_answers", path="raw.csv"))
    assert [d.provenance["question"] for d in kept(tmp_path)] == [
        "chat-q0001",
        "chat-q0002",
        "chat-q0001",
    ]
    (tmp_path / "raw.csv").rename(tmp_path / "moved.csv")
    assert gather(tmp_path, source(form="question_answers", path="moved.csv")) == first


def test_the_erased_are_recognized_after_lines_were_deleted(tmp_path: Path) -> None:
    """Ids are rows: an erased person came back with another id, and a person with the old id was left out."""
    names = ["Ann", "Bo", "Cy", "Di"]
    records = [{**talk(f"Hi {name}", at), "person": name} for at, name in enumerate(names)]
    write(tmp_path / "raw.jsonl", *records, talk("Nobody's", 8), talk("No one's", 9))
    gather(tmp_path, source())
    place = Workspace(tmp_path / "work")
    for asked in ("Bo", "raw-2", "chat-000005"):
        erase(place, asked)
    # Ann's line is deleted, Bo has another one, and dialogues without a person have other ids.
    more = {**talk("More", 5), "person": "Bo"}
    nameless = [{**talk("Nobody's", 8), "id": "raw-9"}, {**talk("No one's", 9), "id": "raw-10"}]
    write(tmp_path / "raw.jsonl", *records[1:], more, *nameless)
    place.stage("gather").remove()
    gather(tmp_path, source())
    said = [d.messages[0].content for d in kept(tmp_path)]
    assert said == ["Hi Di", "No one's"]
    assert not {d.id for d in kept(tmp_path)} & place.erased()
    assert explain(place, "chat-000003")[0].what == "kept"


def test_a_file_without_the_erased_lines_is_not_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next run was refused for another setting, though `erase` advises to delete the lines."""
    records = [
        {**talk(f"Hi {name}", at), "person": name} for at, name in enumerate(["Ann", "Bo", "Cy"])
    ]
    write(tmp_path / "raw.jsonl", *records)
    gather(tmp_path, source())
    place = Workspace(tmp_path / "work")
    erase(place, "Bo")
    before = all_files(place.stage("gather").path)
    write(tmp_path / "raw.jsonl", records[0], records[2])
    assert gather(tmp_path, source()).kept == 2
    assert "source 'chat' has changed since somebody was erased from it" in capsys.readouterr().err
    assert all_files(place.stage("gather").path) == before
    place.stage("gather").remove()
    write(tmp_path / "raw.jsonl", *records)
    assert gather(tmp_path, source()).kept == 2
    assert "gather: left out 1 erased items of source 'chat'" in capsys.readouterr().err


def test_a_rejected_person_can_be_erased_by_name(tmp_path: Path) -> None:
    """The private index had only kept dialogues."""
    write(tmp_path / "raw.jsonl", {**talk("bye\x00", 1), "person": "Emily"}, talk("Hi", 2))
    gather(tmp_path, source())
    erased = erase(Workspace(tmp_path / "work"), "Emily")
    assert (erased.ids, erased.raw) == (("chat-000001", "chat-p0001"), ("raw.jsonl:1",))
    assert lines(tmp_path, "rejected") == []


def test_a_raw_name_is_one_person_or_one_dialogue(tmp_path: Path) -> None:
    """`erase 7` erased dialogue 7 of every source, and of a person called 7 also another person's dialogue 7."""
    records = [
        {**talk("Hi", 1), "id": 7},
        {**talk("Ho", 2), "person": "8"},
        {**talk("Ha", 3), "id": "8", "person": "9"},
        {**talk("He", 4), "person": "Ame\u0301lie"},
        *({**talk("Hm", 5), "id": 9} for _ in range(3)),  # numbered anew in every session
    ]
    write(tmp_path / "raw.jsonl", *records)
    write(tmp_path / "other.jsonl", {**talk("He", 1), "id": 7}, talk("Hu", 2))
    gather(tmp_path, source(), source("other", path="other.jsonl"))
    place = Workspace(tmp_path / "work")
    with pytest.raises(ConfigError, match="choose one: chat:7 or other:7"):
        erase(place, "7")
    assert erase(place, "other:7").ids == ("other-000001",)
    with pytest.raises(ConfigError, match="choose one: chat-p0001 or chat-000003"):
        erase(place, "8")
    assert erase(place, "chat-p0001").ids == ("chat-000002", "chat-p0001")
    assert erase(place, "chat-000006").ids == ("chat-000006",)
    for asked in ("9", "chat:9"):
        with pytest.raises(
            ConfigError, match="choose one: chat-p0002 or chat-000005 or chat-000007"
        ):
            erase(place, asked)
    assert erase(place, "Am\u00e9lie").ids == ("chat-000004", "chat-p0003")


def test_a_source_without_a_dialogue_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "raw.jsonl", {"text": "Hi"}, {"text": "Ho"})
    with pytest.raises(
        DataError, match=r"all 2 items were rejected \(broken 2\); is its format really 'messages'"
    ):
        gather(tmp_path, source())
    assert not (tmp_path / "work/gather/summary.json").exists()
    (tmp_path / "raw.jsonl").write_bytes(
        "".join(json.dumps(talk("你好"), ensure_ascii=False)).encode("gb18030")
    )
    with pytest.raises(DataError, match="iconv -f GB18030"):
        gather(tmp_path, source(), workspace="chinese")
    # After `chat-b-000001` was erased, `chat` could be empty.
    (tmp_path / "raw.jsonl").write_text("\n\n")
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty/tombstones.jsonl", {"id": "chat-b-000001"})
    with pytest.raises(DataError, match="holds no item"):
        gather(tmp_path, source(), workspace="empty")


def test_a_source_and_its_records_have_a_licence_and_a_language(tmp_path: Path) -> None:
    """The licence of a source is checked before anything is read."""
    with pytest.raises(ConfigError, match=r"cannot enter a release under CC-BY-4\.0"):
        gather(tmp_path, source(licence="CC-BY-NC-4.0", path="not-there"))
    assert not (tmp_path / "work/gather").exists()
    kinds = [("en", "CC-BY-NC-4.0"), ("zh", "unknown"), ("en", "MIT")]
    write(
        tmp_path / "raw.jsonl",
        *({**talk("Hi"), "language": one, "licence": licence} for one, licence in kinds),
    )
    counts = gather(tmp_path, source(form="dialogues"))
    assert counts.reasons == {"language": 1, "licence": 1}
    assert [d.licence for d in kept(tmp_path)] == ["MIT"]


def state(
    number: int, messages: int, person: str | None = "ada", topic: str = "the wet cellar"
) -> dict[str, object]:
    """A conversation after so many messages."""
    texts = [f"Message {n} tells of {topic} and of nothing else." for n in range(messages)]
    turns = [
        {"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)
    ]
    return {"id": f"raw-{number}", "messages": turns} | ({"person": person} if person else {})


def log(folder: Path, *records: dict[str, object]) -> Workspace:
    folder.mkdir(exist_ok=True)
    write(folder / "raw.jsonl", *records)
    gather(folder, source("log"), part=2)
    return Workspace(folder / "work")


@pytest.mark.parametrize("person", ["ada", None])
def test_earlier_states_are_no_rejected_dialogues(tmp_path: Path, person: str | None) -> None:
    lines = [
        state(1, 4, person),
        state(2, 8, person),
        state(3, 6, person),
        state(4, 6, topic="a lost cat"),
    ]
    workspace = log(tmp_path, *lines)
    counts = workspace.stage("gather").total()
    assert (counts.read, counts.kept, counts.rejected, counts.earlier) == (4, 2, 0, 2)
    found = {
        line["id"]: line["evidence"]["of"] for line in workspace.stage("gather").records("rejected")
    }
    assert found == {"log-000001": "log-000002", "log-000003": "log-000002"}
    shown = h2htalk("curate", "funnel", str(workspace.path)).stdout
    assert "earlier states of conversations that another item continues: 2" in shown
    # The same beginning of other people is kept.
    hello = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello! How are you?"},
    ]
    more = [
        *hello,
        {"role": "user", "content": "Sad."},
        {"role": "assistant", "content": "I am here."},
    ]
    others = [state(1, 4, "ada"), state(2, 6, "ben"), {"messages": hello}, {"messages": more}]
    workspace = log(tmp_path / "others", *others)
    assert workspace.stage("gather").total().kept == 4


@pytest.mark.parametrize("asked", ["raw-1", "log-000003"])
def test_all_states_of_a_conversation_are_erased_together(tmp_path: Path, asked: str) -> None:
    workspace = log(tmp_path, state(1, 4, None), state(2, 6, None, "a lost cat"), state(3, 6, None))
    assert erase(workspace, asked).ids == ("log-000001", "log-000003")
    # The owner deletes only the longest state, which changes the file and so what its rows mean.
    log(tmp_path / "again", state(1, 4, None), state(2, 6, None, "a lost cat"))
    for name in ("secret.key", "tombstones.jsonl"):
        (tmp_path / "again" / "work" / name).write_bytes((workspace.path / name).read_bytes())
    again = Workspace(tmp_path / "again" / "work")
    again.stage("gather").remove()
    (again.path / "workspace.json").unlink()
    gather(tmp_path / "again", source("log"))
    assert [record["id"] for record in again.stage("gather").records()] == ["log-000002"]


def test_public_data(tmp_path: Path, shared_data: Path) -> None:
    """Counted by hand: 5 incomplete replies and one dialogue of one speaker in SmileChat, and one empty day of John
    Zhang."""
    folder = f"{shared_data}/raw"
    counts = gather(
        tmp_path,
        source("smile", "messages", f"{folder}/smilechat_zh.jsonl", "zh"),
        source("aiwei", "messages", f"{folder}/emollm_aiwei_zh.json", "zh"),
        source("counsel", "question_answers", f"{folder}/counselchat_en.csv"),
        source("bank-en", "memory_bank", f"{folder}/memorybank_en.json"),
        source("bank-zh", "memory_bank", f"{folder}/memorybank_zh.json", "zh"),
        part=250,
    )
    assert (counts.read, counts.kept) == (2247, 2240)
    assert (counts.earlier, counts.reasons) == (0, {"truncated": 5, "empty": 1, "one_speaker": 1})
    persons = {d.provenance["person"] for d in kept(tmp_path) if "person" in d.provenance}
    assert len(persons) == 16


@pytest.mark.parametrize("dialogues", [1, 54, 200])
def test_cells_have_equal_shares_in_each_language(dialogues: int) -> None:
    plans = grid(SimulateSettings(dialogues=dialogues), ("nora", "ren", "third"), seed=1)
    assert [plan.id for plan in plans] == [
        f"simulated-{row:06}" for row in range(1, 2 * dialogues + 1)
    ]
    for language in LANGUAGES:
        mine = [tuple(plan.kind.values()) for plan in plans if plan.language == language]
        assert len(mine) == dialogues
        shares = Counter(mine)
        assert max(shares.values()) - (min(shares.values()) if len(shares) == 54 else 0) <= 1


class Speaker:
    """A model that replies by a table of (id, number) and remembers its requests."""

    def __init__(self, answers: dict[tuple[str, int], Reply] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[Sequence[Request]] = []

    def ask(self, requests: Sequence[Request], part: str) -> dict[tuple[str, int], Reply]:
        self.asked.append(requests)
        keys = [(request.id, request.sample) for request in requests]
        return {key: self.answers.get(key, Reply(f"Line {key[1]} of {key[0]}.")) for key in keys}


def simulation(**settings: Any) -> Simulation:
    made = SimulateSettings(
        **{"user": "embedded", "companion": "embedded", "dialogues": 2, "turns": 4, **settings}
    )
    return open_simulation(CurateSpec("work", sections=(GatherSettings(simulate=made),)))


def speak(made: Simulation, user: Speaker, companion: Speaker) -> list[Outcome]:
    return made.talk(made.plans, {"user": user, "companion": companion}, "part-00000")  # type: ignore[dict-item]


def outcome_of(reply: Reply, number: int) -> Outcome:
    """The outcome of a dialogue of four messages in which one is this reply."""
    made = simulation(dialogues=1, languages=("en",))
    speaker = Speaker({("simulated-000001", number): reply})
    return speak(made, speaker, speaker)[0]


def said_in(outcome: Outcome) -> list[str]:
    assert isinstance(outcome, Kept)
    return [turn.content for turn in Dialogue.from_dict(outcome.record).messages]


def test_all_dialogues_of_a_part_make_a_turn_together_and_each_model_is_the_assistant_of_its_own() -> (
    None
):
    user, companion = Speaker(), Speaker()
    outcomes = speak(simulation(), user, companion)
    assert [len(requests) for requests in user.asked + companion.asked] == [4] * 4
    assert [request.sample for requests in user.asked for request in requests] == [0] * 4 + [2] * 4
    assert said_in(outcomes[0]) == [f"Line {number} of simulated-000001." for number in range(4)]
    mine = user.asked[1][0].messages
    theirs = companion.asked[1][0].messages
    assert [message.role for message in mine] == ["system", "user", "assistant", "user"]
    assert [message.role for message in theirs] == ["system", "user", "assistant", "user"]
    assert mine[2].content == theirs[1].content == "Line 0 of simulated-000001."


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_model_sees_the_other_ones_instructions(language: str) -> None:
    user, companion = Speaker(), Speaker()
    made = simulation(dialogues=54, languages=(language,))
    speak(made, user, companion)
    descriptions = [persona.descriptions[language] for persona in bundled_personas().values()]  # type: ignore[index]
    for mine, theirs in zip(user.asked[0], companion.asked[0], strict=True):
        system = theirs.messages[0].content
        assert any(text in system for text in descriptions)
        sentences = [
            piece
            for text in descriptions
            for piece in text.replace("。", ". ").split(". ")
            if len(piece) > 8
        ]
        assert not any(piece in message.content for piece in sentences for message in mine.messages)
        assert END not in system


def test_a_record_names_models_and_tags() -> None:
    made = simulation()
    (kept, *_) = speak(made, Speaker(), Speaker())
    assert isinstance(kept, Kept)
    dialogue = Dialogue.from_dict(kept.record)
    kind = made.plans[0].kind
    made_by = {
        "user": "embedded",
        "companion": "embedded",
        "persona": made.plans[0].persona,
        **kind,
    }
    assert dialogue.provenance == {"source": "simulated", "row": 1, "simulated": made_by}
    assert kind.items() <= dialogue.metadata.items()
    assert (dialogue.licence, kept.tags) == ("CC-BY-4.0", ("simulated",))


def test_how_a_simulated_dialogue_ends() -> None:
    user = Speaker({("simulated-000001", 2): Reply(f"<think>Bye?</think>Good night! {END}")})
    companion = Speaker()
    outcomes = speak(simulation(turns=8), user, companion)
    assert said_in(outcomes[0])[2:] == ["Good night!", "Line 3 of simulated-000001."]
    assert len(said_in(outcomes[1])) == 8
    # A truncated reply ends with its last complete sentence, and others reject the dialogue.
    outcome = outcome_of(Reply("I hear you. It is hard when th", "length"), 1)
    assert said_in(outcome)[1] == "I hear you."
    assert isinstance(outcome, Kept)
    assert outcome.tags == ("simulated", "trimmed")
    cut = Reply("It is hard when th", "length")
    said = {"empty": Reply(" "), "control": Reply("a\x00b")}
    for reason, reply in ({"truncated": cut, "refused": Reply("", "refusal")} | said).items():
        outcome = outcome_of(reply, 1)
        assert isinstance(outcome, Rejected)
        assert outcome.reason == reason
    # It raised IndexError when the companion's turn came.
    outcome = outcome_of(Reply(END), 0)
    assert isinstance(outcome, Rejected)
    assert outcome.reason == "empty"


def script(path: Path, turns: int) -> None:
    """Replies of six dialogues."""
    keys = ((f"simulated-{row:06}", number) for row in range(1, 7) for number in range(turns))
    write_jsonl(
        path, ({"id": name, "sample": number, "text": f"Line {number}."} for name, number in keys)
    )


def simulate(tmp_path: Path, workspace: str = "work", **settings: Any) -> RecordCounts:
    model = f"scripted:{tmp_path / 'script.jsonl'}"
    made = SimulateSettings(
        **{"user": model, "companion": model, "dialogues": 3, "turns": 4, **settings}
    )
    place = Workspace(tmp_path / workspace)
    return run_one("gather", place, GatherSettings(simulate=made), part=4)


def test_a_kill_repeats_no_call_and_an_edited_script_is_another_setting(tmp_path: Path) -> None:
    script(tmp_path / "script.jsonl", 4)
    folder = tmp_path / "work/gather"
    with pytest.raises(
        ConfigError, match=r"source 'simulated' cannot enter a release under CC-BY-4\.0"
    ):
        simulate(tmp_path, licence="CC-BY-NC-4.0")
    assert not folder.exists()
    simulate(tmp_path)
    before = all_files(folder)
    for name in ("summary.json", "parts/part-00001.json", "kept/part-00001.jsonl"):
        (folder / name).unlink()
    simulate(tmp_path)
    assert all_files(folder) == before
    script(tmp_path / "script.jsonl", 5)
    with pytest.raises(ConfigError, match="another setting of simulate"):
        simulate(tmp_path)
