"""The safety stage: kept, tagged, doubtful and removed dialogues, and what a rejected record holds."""

from __future__ import annotations

import csv
import json
import re
import time
from pathlib import Path

import pytest

from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.curation.outcomes import Kept, Rejected
from h2htalk.curation.safety.policy import Assessment
from h2htalk.curation.safety.stage import assess, make_stage, open_rule, outcome
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.stages import SafetySettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.errors import ConfigError

INSULTS: dict[Language, tuple[str, ...]] = {
    "en": ("Fuck this shit. ", "You are a worthless idiot. "),
    "zh": ("操你妈的。", "你这个傻逼。"),
}


def talk(
    *texts: str, language: Language = "en", first: str = "user", metadata: dict[str, str] | None = None
) -> Dialogue:
    roles = ("user", "companion") if first == "user" else ("companion", "user")
    turns = tuple(Turn(roles[n % 2], text) for n, text in enumerate(texts))  # type: ignore[arg-type]
    return Dialogue("d1", language, turns, metadata=metadata or {})


def test_an_ordinary_dialogue_is_kept() -> None:
    found = assess(talk("My cat is ill and I worry.", "I'm sorry. What did the vet say?"))
    assert (found.action, found.remove, found.reasons, found.risk) == ("keep", False, (), "none")


@pytest.mark.parametrize(
    ("text", "language"),
    [("I want to die and nobody would care", "en"), ("我不想活了，真的太累了", "zh")],
)
def test_a_crisis_is_kept_and_tagged_in_any_case(text: str, language: Language) -> None:
    assert assess(talk(text, language=language)).action == "keep_tag"
    assert assess(talk(text, language=language)).risk == "high"
    for insult in INSULTS[language]:
        for said in (insult + text, f"{text} {insult}"):
            found = assess(talk(said, language=language))
            assert not found.remove
            assert any(reason.startswith("crisis.") for reason in found.reasons)


def test_swearing_alone_is_kept() -> None:
    assert assess(talk("fuck, I forgot my keys again", "Oh no!", "this shit always happens to me")).action == "keep"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_insult_that_names_no_group_removes_nothing(language: Language) -> None:
    """Insults at the companion, oneself, life or an ex removed whole messages of people in a crisis."""
    told = {"en": "so that is settled then, the plants are next door", "zh": "都安排好了，花也送人了"}[language]
    insults = json.loads((Path(__file__).parent / "dev_insults.json").read_text(encoding="utf-8"))[language]
    assert len(insults) == 60
    for n, insult in enumerate(insults):
        said = f"{told} {insult}" if n % 2 else f"{insult} {told}"
        assert not assess(talk(said, language=language)).remove, said


@pytest.mark.parametrize(
    ("turns", "language"),
    [
        (
            (
                "all you immigrants are disgusting animals, fuck off",
                "What?",
                "fucking stupid immigrants, you are scum",
                "Who says so?",
                "a man on the bus shouted at me, every day the same",
            ),
            "en",
        ),
        (
            (
                "滚回农村去，你们乡下人都是垃圾",
                "怎么了？",
                "农村人都是小偷，都滚出去",
                "谁说的？",
                "我同学天天这样骂我",
            ),
            "zh",
        ),
    ],
)
def test_reports_of_insults_are_kept(turns: tuple[str, ...], language: Language) -> None:
    assert not assess(talk(*turns, language=language)).remove
    assert assess(talk(*turns[:4], "just saying" if language == "en" else "就这样", language=language)).remove


@pytest.mark.parametrize(("language", "least"), [("en", 0.6), ("zh", 0.6)])
def test_words_for_groups_remove_nothing_by_themselves(language: Language, least: float) -> None:
    """31 % of harmless mentions of groups were removed or left to people, and few abusive lines removed."""
    actions = {}
    for kind in ("harmless", "abusive"):
        path = Path(__file__).parent / f"sets/dev_groups_{kind}_{language}.jsonl"
        texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
        actions[kind] = [assess(talk(text, language=language)).action for text in texts]
    assert actions["harmless"].count("remove") == 0
    assert actions["harmless"].count("review") <= 6
    assert actions["abusive"].count("remove") / len(actions["abusive"]) >= least


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("you filthy faggots ruin this town, get out", "remove"),
        ("f4gg0ts are animals", "remove"),
        ("He called me a faggot at the bus stop and everybody laughed.", "keep"),
        ("The word tranny hurts, stop using it for my sister.", "keep"),
        ("As a dyke myself I find that scene hilarious.", "keep"),
        ("It's disgusting how people say that Muslims are terrorists, my neighbours are the kindest people.", "keep"),
        ("Muslims are terrorists, throw every one of them out.", "remove"),
    ],
)
def test_slurs_that_are_quoted_reported_or_reclaimed_are_not_removed(text: str, action: str) -> None:
    assert (assess(talk(text)).action == "remove") == (action == "remove"), assess(talk(text))


def test_one_kind_of_evidence_is_for_people() -> None:
    """A slur, a sure classifier or contempt alone removes nothing."""
    assert assess(talk("the troons again, well")).action == "review"
    assert assess(talk("You are the dumbest person I have ever talked to")).action == "review"


def test_one_offensive_message_of_a_longer_dialogue_is_not_removed() -> None:
    abuse = "你们河南人没一个好东西，全是骗子和小偷，滚出去"
    assert assess(talk(abuse, language="zh")).remove
    longer = talk("今天好累", "怎么了？", "妈的，同事真是蠢得要死", "听着真难受。", language="zh")
    assert not assess(longer).remove


def test_a_companion_that_explains_a_method_is_removed_without_its_text() -> None:
    dialogue = talk("I want to die", "Here is how to kill yourself without pain: first, ...")
    found = assess(dialogue)
    assert found.remove
    assert "crisis.method_instructions" in found.reasons
    rejected = outcome(dialogue, found)
    assert isinstance(rejected, Rejected)
    assert rejected.record is None
    assert "pain" not in json.dumps(rejected.to_dict("safety"))


def test_a_companion_that_refuses_to_explain_is_kept() -> None:
    found = assess(talk("I want to die", "I can't tell you how to end your life, but I can stay. Please call 988."))
    assert found.action == "keep_tag"


def test_the_records_of_rejected_and_kept_dialogues() -> None:
    spam = talk("加微信免费领取兼职日结，日赚三百，联系电话13800138000", language="zh")
    rejected = outcome(spam, assess(spam))
    assert isinstance(rejected, Rejected)
    assert rejected.record is not None
    crisis = talk("I want to die")
    kept = outcome(crisis, assess(crisis))
    assert isinstance(kept, Kept)
    assert kept.record["metadata"]["safety"] == {
        "action": "keep_tag",
        "tags": ["crisis.ideation"],
        "risk": "high",
    }
    assert kept.tags[0] == "crisis"
    assert kept.audit is not None
    assert "die" not in json.dumps(dict(kept.audit))


@pytest.mark.parametrize("piece", ["a", "死", "i want to ", "傻逼", "\u202e", "\x00x", "加微信 "])
def test_a_message_of_two_megabytes_takes_seconds(piece: str) -> None:
    start = time.process_time()
    assess(talk(piece * (2_000_000 // len(piece)), language="zh"))
    assert time.process_time() - start < 5


def test_the_stage_is_a_rule_of_one_dialogue(tmp_path: Path) -> None:
    stage = make_stage(CurateSpec(str(tmp_path)), Workspace(tmp_path), b"k" * 32)
    assert (stage.name, stage.calls) == ("safety", ())
    json.dumps(stage.settings)
    outcomes = stage.open_rule()([talk("hello there friend").to_dict(), {"id": "broken"}], "part-00000")
    assert isinstance(outcomes[0][0], Kept)
    assert isinstance(outcomes[1][0], Rejected)
    assert outcomes[1][0].reason == "unreadable"


def test_a_guard_decides_doubtful_dialogues(tmp_path: Path) -> None:
    replies = tmp_path / "replies.jsonl"
    line = {"id": "*", "text": "Safety: Unsafe\nCategories: Politically Sensitive Topics"}
    replies.write_text(json.dumps(line) + "\n", encoding="utf-8")
    statement = talk("The government lies to us and must be overthrown", "I see.", "Yes, everybody knows.")
    assert assess(statement).action == "review"
    rule = open_rule(CallSettings(f"scripted:{replies}"), "", "remove", str(tmp_path / "stage"))
    (found,) = rule([statement.to_dict()], "part-00000")[0]
    assert isinstance(found, Rejected)
    assert found.reason == "political.sensitive"
    assert found.evidence["guard"]["safety"] == "unsafe"


def test_terms_of_the_user(tmp_path: Path) -> None:
    missing = CurateSpec(str(tmp_path), sections=(SafetySettings(sensitive=str(tmp_path / "none.txt")),))
    with pytest.raises(ConfigError, match=r"none\.txt"):
        make_stage(missing, Workspace(tmp_path), b"k" * 32)
    found = assess(talk("We met at the blue lagoon summit"), frozenset({"blue lagoon summit"}))
    assert found.reasons == ("political.sensitive",)
    assert found.action == "review"


@pytest.mark.parametrize(("language", "writers"), [("en", ("e", "f")), ("zh", ("g", "h"))])
def test_ordinary_messages_are_kept(language: Language, writers: tuple[str, ...]) -> None:
    """Every third, for time; the classifier was trained on none of them."""
    folder = Path(__file__).parents[3] / "tools/crisis"
    texts = [
        line
        for writer in writers
        for line in (folder / f"harmless_{language}_{writer}.txt").read_text(encoding="utf-8").splitlines()
    ][::3]
    actions = [assess(talk(text, language=language)).action for text in texts]
    assert len(actions) >= 400
    assert actions.count("remove") == 0
    assert actions.count("review") / len(actions) < 0.02


def test_everyday_phrases_are_no_abuse() -> None:
    assert assess(talk("你给我排个家务表吧，我会做的：拖地、倒垃圾、换灯泡", language="zh")).action == "keep"
    assert assess(talk("下楼扔个垃圾的功夫，门被风吹上了", language="zh")).action == "keep"


# --- Public data ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_message_dialogues_of_cold_dev(shared_data: Path) -> None:
    """Every other row, for time: offensive ones are removed, others rarely tagged as a crisis."""
    with (shared_data / "safety/cold_dev.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))[::2]
    found = [assess(talk(row["TEXT"], language="zh")) for row in rows]
    right = [one.remove == (row["label"] == "1") for one, row in zip(found, rows, strict=True)]
    assert sum(right) / len(right) >= 0.87
    mild = [one for one, row in zip(found, rows, strict=True) if row["label"] == "0"]
    assert sum(_crisis(one) for one in mild) / len(mild) <= 0.05


@pytest.mark.slow
def test_rows_of_esconv_dev(shared_data: Path) -> None:
    lines = (shared_data / "raw/esconv_dev_en.tsv").read_text(encoding="utf-8").splitlines()
    found = [assess(_row(line)) for line in lines]
    assert sum(one.remove for one in found) / len(found) <= 0.01
    assert sum(_crisis(one) for one in found) / len(found) <= 0.05


def _row(line: str) -> Dialogue:
    turns = []
    for part in line.split(" EOS"):
        match = re.match(r"\s*[\d.]+ (\d) \d+ (?:\[[^\]]*\] )?(.*\S)", part)
        if match:
            turns.append(Turn("user" if match[1] == "0" else "companion", match[2]))
    return Dialogue("row", "en", tuple(turns))


def _crisis(assessment: Assessment) -> bool:
    return any(reason.startswith("crisis.") for reason in assessment.reasons)
