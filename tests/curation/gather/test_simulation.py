"""Simulated dialogues: a grid with equal shares, two models with different prompts, no repeated call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from curation_made import run_one

from h2htalk.chat.protocol import Reply, Request
from h2htalk.curation.gather.simulation import END, Simulation, grid, open_simulation
from h2htalk.curation.stage_folder import Kept, Outcome, RecordCounts, Rejected
from h2htalk.curation.stages import CurateSpec, GatherSettings, SimulateSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_jsonl
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import Dialogue, bundled_personas
from h2htalk.errors import ConfigError


@pytest.mark.parametrize("dialogues", [1, 54, 200])
def test_cells_have_equal_shares_in_each_language(dialogues: int) -> None:
    plans = grid(SimulateSettings(dialogues=dialogues), ("nora", "ren", "third"), seed=1)
    assert [plan.id for plan in plans] == [f"simulated-{row:06}" for row in range(1, 2 * dialogues + 1)]
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
    made = SimulateSettings(**{"user": "embedded", "companion": "embedded", "dialogues": 2, "turns": 4, **settings})
    return open_simulation(CurateSpec("work", sections=(GatherSettings(simulate=made),)))


def talk(made: Simulation, user: Speaker, companion: Speaker) -> list[Outcome]:
    return made.talk(made.plans, {"user": user, "companion": companion}, "part-00000")  # type: ignore[dict-item]


def one(reply: Reply, number: int) -> Outcome:
    """The outcome of a dialogue of four messages in which one is this reply."""
    made = simulation(dialogues=1, languages=("en",))
    speaker = Speaker({("simulated-000001", number): reply})
    return talk(made, speaker, speaker)[0]


def texts(outcome: Outcome) -> list[str]:
    assert isinstance(outcome, Kept)
    return [turn.content for turn in Dialogue.from_dict(outcome.record).messages]


def test_all_dialogues_of_a_part_make_a_turn_together_and_each_model_is_the_assistant_of_its_own() -> None:
    user, companion = Speaker(), Speaker()
    outcomes = talk(simulation(), user, companion)
    assert [len(requests) for requests in user.asked + companion.asked] == [4] * 4
    assert [request.sample for requests in user.asked for request in requests] == [0] * 4 + [2] * 4
    assert texts(outcomes[0]) == [f"Line {number} of simulated-000001." for number in range(4)]
    mine = user.asked[1][0].messages
    theirs = companion.asked[1][0].messages
    assert [message.role for message in mine] == ["system", "user", "assistant", "user"]
    assert [message.role for message in theirs] == ["system", "user", "assistant", "user"]
    assert mine[2].content == theirs[1].content == "Line 0 of simulated-000001."


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_model_sees_the_other_ones_instructions(language: str) -> None:
    user, companion = Speaker(), Speaker()
    made = simulation(dialogues=54, languages=(language,))
    talk(made, user, companion)
    descriptions = [persona.descriptions[language] for persona in bundled_personas().values()]  # type: ignore[index]
    for mine, theirs in zip(user.asked[0], companion.asked[0], strict=True):
        system = theirs.messages[0].content
        assert any(text in system for text in descriptions)
        sentences = [piece for text in descriptions for piece in text.replace("。", ". ").split(". ") if len(piece) > 8]
        assert not any(piece in message.content for piece in sentences for message in mine.messages)
        assert END not in system


def test_a_record_names_models_and_tags() -> None:
    made = simulation()
    (kept, *_) = talk(made, Speaker(), Speaker())
    assert isinstance(kept, Kept)
    dialogue = Dialogue.from_dict(kept.record)
    kind = made.plans[0].kind
    made_by = {"user": "embedded", "companion": "embedded", "persona": made.plans[0].persona, **kind}
    assert dialogue.provenance == {"source": "simulated", "row": 1, "simulated": made_by}
    assert kind.items() <= dialogue.metadata.items()
    assert (dialogue.licence, kept.tags) == ("CC-BY-4.0", ("simulated",))


def test_how_a_simulated_dialogue_ends() -> None:
    user, companion = Speaker({("simulated-000001", 2): Reply(f"<think>Bye?</think>Good night! {END}")}), Speaker()
    outcomes = talk(simulation(turns=8), user, companion)
    assert texts(outcomes[0])[2:] == ["Good night!", "Line 3 of simulated-000001."]
    assert len(texts(outcomes[1])) == 8
    # A truncated reply ends with its last complete sentence, and others reject the dialogue.
    outcome = one(Reply("I hear you. It is hard when th", "length"), 1)
    assert texts(outcome)[1] == "I hear you."
    assert isinstance(outcome, Kept)
    assert outcome.tags == ("simulated", "trimmed")
    cut, said = Reply("It is hard when th", "length"), {"empty": Reply(" "), "control": Reply("a\x00b")}
    for reason, reply in ({"truncated": cut, "refused": Reply("", "refusal")} | said).items():
        outcome = one(reply, 1)
        assert isinstance(outcome, Rejected)
        assert outcome.reason == reason
    # It raised IndexError when the companion's turn came.
    outcome = one(Reply(END), 0)
    assert isinstance(outcome, Rejected)
    assert outcome.reason == "empty"


def script(path: Path, turns: int) -> None:
    """Replies of six dialogues."""
    keys = ((f"simulated-{row:06}", number) for row in range(1, 7) for number in range(turns))
    write_jsonl(path, ({"id": name, "sample": number, "text": f"Line {number}."} for name, number in keys))


def gather(tmp_path: Path, workspace: str = "work", **settings: Any) -> RecordCounts:
    model = f"scripted:{tmp_path / 'script.jsonl'}"
    made = SimulateSettings(**{"user": model, "companion": model, "dialogues": 3, "turns": 4, **settings})
    place = Workspace(tmp_path / workspace)
    return run_one("gather", place, GatherSettings(simulate=made), part=4)


def calls(tmp_path: Path) -> int:
    return len((tmp_path / "work/gather/calls.jsonl").read_text().splitlines())


def test_an_edited_script_is_another_setting(tmp_path: Path) -> None:
    script(tmp_path / "script.jsonl", 4)
    gather(tmp_path)
    script(tmp_path / "script.jsonl", 5)
    with pytest.raises(ConfigError, match="another setting of simulate"):
        gather(tmp_path)


def test_the_licence_must_allow_the_release(tmp_path: Path) -> None:
    script(tmp_path / "script.jsonl", 4)
    with pytest.raises(ConfigError, match=r"source 'simulated' cannot enter a release under CC-BY-4\.0"):
        gather(tmp_path, licence="CC-BY-NC-4.0")
    assert not (tmp_path / "work/gather").exists()


def test_a_kill_repeats_no_call_and_gives_the_same_bytes(tmp_path: Path) -> None:
    script(tmp_path / "script.jsonl", 4)
    gather(tmp_path)
    folder = tmp_path / "work/gather"
    before = (folder / "kept/part-00001.jsonl").read_bytes(), calls(tmp_path)
    for name in ("summary.json", "parts/part-00001.json", "kept/part-00001.jsonl"):
        (folder / name).unlink()
    gather(tmp_path)
    assert ((folder / "kept/part-00001.jsonl").read_bytes(), calls(tmp_path)) == before
