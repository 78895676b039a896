"""The safety stage: kept, tagged, doubtful and removed dialogues, and what a rejected record holds."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest
from safety_made import ordinary_lines, talk
from tables import table

from h2htalk.chat.protocol import Reply
from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.curation.safety.companion import HARM, LAYER
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.lexicons import find_contempt
from h2htalk.curation.safety.policy import Safety, Verdict, apply_verdict
from h2htalk.curation.safety.stage import assess, make_stage, open_rule, outcome, read_verdict
from h2htalk.curation.stage_folder import Kept, Rejected
from h2htalk.curation.stages import CurateSpec, SafetySettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import ConfigError

INSULTS: dict[Language, tuple[str, ...]] = {
    "en": ("Fuck this shit. ", "You are a worthless idiot. "),
    "zh": ("操你妈的。", "你这个傻逼。"),
}


@pytest.mark.parametrize(("texts", "language", "action"), table("curation", "safety_decisions"))
def test_decisions(texts: tuple[str, ...], language: Language, action: str) -> None:
    assert assess(talk(*texts, language=language)).action == action


@pytest.mark.parametrize("text", table("curation", "quoted_slurs"))
def test_slurs_that_are_quoted_reported_or_reclaimed_are_not_removed(text: str) -> None:
    assert not assess(talk(text)).remove


@pytest.mark.parametrize(
    ("text", "language"), [("I want to die and nobody would care", "en"), ("我不想活了，真的太累了", "zh")]
)
def test_a_crisis_is_kept_and_tagged_in_any_case(text: str, language: Language) -> None:
    found = assess(talk(text, language=language))
    assert (found.action, found.risk) == ("keep_tag", "high")
    for insult in INSULTS[language]:
        for said in (insult + text, f"{text} {insult}"):
            found = assess(talk(said, language=language))
            assert not found.remove
            assert any(reason.startswith("crisis.") for reason in found.reasons)


@pytest.mark.parametrize(("language", "first", "second", "report", "other"), table("curation", "reports_of_insults"))
def test_reports_of_insults_are_kept(language: Language, first: str, second: str, report: str, other: str) -> None:
    assert not assess(talk(first, "What?", second, "Who?", report, language=language)).remove
    assert assess(talk(first, "What?", second, "Who?", other, language=language)).remove


def test_a_companion_that_explains_a_method_is_removed_without_its_text() -> None:
    dialogue = talk("I want to die", "Here is how to kill yourself without pain: first, ...")
    rejected = outcome(dialogue, assess(dialogue))
    assert isinstance(rejected, Rejected)
    assert (rejected.record, rejected.reason) == (None, "crisis.method_instructions")
    assert "pain" not in json.dumps(rejected.to_dict("safety"))


@pytest.mark.parametrize("piece", ["a", "死", "i want to ", "傻逼", "\u202e", "\x00x", "加微信 "])
def test_a_message_of_two_megabytes_takes_seconds(piece: str) -> None:
    start = time.process_time()
    assess(talk(piece * (2_000_000 // len(piece)), language="zh"))
    assert time.process_time() - start < 5


def test_the_stage_is_a_rule_of_one_dialogue(tmp_path: Path) -> None:
    stage = make_stage(CurateSpec(str(tmp_path)), Workspace(tmp_path), b"k" * 32)
    assert (stage.name, stage.calls) == ("safety", ())
    assert stage.open_rule is not None
    outcomes = stage.open_rule()([talk("hello there friend").to_dict(), {"id": "broken"}], "part-00000")
    assert isinstance(outcomes[0][0], Kept)
    assert isinstance(outcomes[1][0], Rejected)
    assert outcomes[1][0].reason == "unreadable"


def test_terms_of_the_user(tmp_path: Path) -> None:
    missing = CurateSpec(str(tmp_path), sections=(SafetySettings(sensitive=str(tmp_path / "none.txt")),))
    with pytest.raises(ConfigError, match=r"none\.txt"):
        make_stage(missing, Workspace(tmp_path), b"k" * 32)
    found = assess(talk("We met at the blue lagoon summit"), frozenset({"blue lagoon summit"}))
    assert (found.reasons, found.action) == (("political.sensitive",), "review")


def test_few_turns_and_no_sentence() -> None:
    """On ordinary chat, one turn in 200 looked political: "the president of Zimbabwe was called Banana"."""
    vote = "If you don't vote blue this year you're part of the problem"
    assert assess(talk(vote)).action == "review"
    assert assess(talk("hello", "hi", vote, "I see")).action == "keep"
    assert assess(talk(vote, "I see", vote, "hm")).action == "review"
    # Marks alone hold no sentence, and once stopped the stage.
    assert [one.layer for one in find_contempt("?!", "en", [])] == ["masked"]


@pytest.mark.parametrize(("language", "writers"), [("en", "ef"), ("zh", "gh")])
def test_ordinary_messages_are_kept(language: Language, writers: str) -> None:
    """Every third, for time; the classifier was trained on none of them."""
    found = [assess(talk(text, language=language)) for text in ordinary_lines(language, writers)[::3]]
    actions = [one.action for one in found]
    assert len(actions) >= 400
    assert actions.count("remove") == 0
    assert actions.count("review") / len(actions) < 0.02
    political = [one for one in found if any(seen.layer == "political" for seen in one.evidence)]
    assert len(political) / len(found) <= 0.01


@pytest.mark.slow
def test_one_message_dialogues_of_cold_dev(shared_data: Path) -> None:
    """Every other row, for time: offensive ones are removed, others rarely tagged as a crisis."""
    with (shared_data / "safety/cold_dev.csv").open(encoding="utf-8-sig", newline="") as file:
        found = [(row["label"], assess(talk(row["TEXT"], language="zh"))) for row in list(csv.DictReader(file))[::2]]
    assert sum(one.remove == (label == "1") for label, one in found) / len(found) >= 0.87
    mild = [any(code.startswith("crisis.") for code in one.reasons) for label, one in found if label == "0"]
    assert sum(mild) / len(mild) <= 0.05


STATEMENT = talk("The government lies to us and must be overthrown", "I see.", "Yes.")


@pytest.mark.parametrize(("reply", "safety", "codes"), table("curation", "guard_replies"))
def test_replies(reply: str, safety: str, codes: list[str]) -> None:
    verdict = read_verdict(Reply(reply))
    assert (verdict.safety, sorted(verdict.categories.values())) == (safety, codes)
    assert read_verdict(Reply(reply, "length")).safety == "undecided"


@pytest.mark.parametrize(("safety", "code", "action"), table("curation", "guard_verdicts"))
def test_verdicts_on_an_undecided_dialogue(safety: Safety, code: str, action: str) -> None:
    found = apply_verdict(assess(STATEMENT), Verdict(safety, {code: code} if code else {}))
    assert (found.action, code in found.reasons) == (action, code.startswith(("crisis", "political")))


def test_a_guard_decides_and_its_replies_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decided(dialogue: Dialogue, category: str) -> Kept | Rejected:
        text = f"Safety: Unsafe\nCategories: {category}"
        (tmp_path / "replies.jsonl").write_text(json.dumps({"id": "*", "text": text}) + "\n", encoding="utf-8")
        settings = CallSettings(f"scripted:{tmp_path / 'replies.jsonl'}")
        rule = open_rule(settings, "", "remove", str(tmp_path / "stage"))
        ((found,),) = rule([dialogue.to_dict()], "part-00000")
        rule.close()
        return found

    removed = decided(STATEMENT, "Politically Sensitive Topics")
    assert isinstance(removed, Rejected)
    assert (removed.reason, removed.evidence["guard"]["safety"]) == ("political.sensitive", "unsafe")
    assert (tmp_path / "stage/calls.jsonl").exists()
    harm = [Evidence(LAYER, HARM, 0.4, turn=1)]
    monkeypatch.setattr("h2htalk.curation.safety.companion.find_companion", lambda turns, language: harm)
    kept = decided(talk("I want to die and nobody would care", "It is raining again today."), "Suicide & Self-Harm")
    assert isinstance(kept, Kept)
    assert kept.record["metadata"]["safety"]["action"] == "review"
