"""The safety stage: kept, tagged, doubtful and removed dialogues; crises, companions' turns, noise, frozen sets."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.chat.protocol import Reply
from h2htalk.curation.assessment import Explicit, assess, decide_safety
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.guards import GuardReader, Safety, Verdict, read_verdict
from h2htalk.curation.reading.question import PlainQuestion
from h2htalk.curation.safety.guarding import Guard
from h2htalk.curation.safety.policy import apply_verdict
from h2htalk.curation.safety.stage import guarded_outcome, make_stage, open_rule, outcome
from h2htalk.curation.stage_folder import Kept, Rejected
from h2htalk.curation.stages import CurateSpec, SafetySettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Dialogue, Scenario, Turn, noted_tags, notes_crisis
from h2htalk.data.splits import load_split
from h2htalk.detect.safety import crisis
from h2htalk.detect.safety.companion import EXPLICIT, HARM, LAYER, REVIEW, find_companion
from h2htalk.detect.safety.content_rules import find_unusable_content
from h2htalk.detect.safety.evidence import Evidence
from h2htalk.detect.safety.lexicons import ALONE, SECOND, find_contempt
from h2htalk.errors import ConfigError
from h2htalk.rounds.item_sources import scenario_item
from support.safety_tables import GOLDEN, HERE, dialogues, ordinary_lines, talk
from support.safety_tables import rows as read_rows
from support.tables import table

INSULTS: dict[Language, tuple[str, ...]] = {
    "en": ("Fuck this shit. ", "You are a worthless idiot. "),
    "zh": ("操你妈的。", "你这个傻逼。"),
}


@pytest.mark.parametrize(("texts", "language", "action"), table("curation", "safety_decisions"))
def test_decisions(texts: tuple[str, ...], language: Language, action: str) -> None:
    assert assess(talk(*texts, language=language)).action == action


@pytest.mark.parametrize(
    ("text", "language"),
    [("I want to die and nobody would care", "en"), ("我不想活了，真的太累了", "zh")],
)
def test_a_crisis_is_kept_and_tagged_in_any_case(text: str, language: Language) -> None:
    found = assess(talk(text, language=language))
    assert (found.action, found.risk) == ("keep_tag", "high")
    for insult in INSULTS[language]:
        for said in (insult + text, f"{text} {insult}"):
            found = assess(talk(said, language=language))
            assert not found.remove
            assert any(reason.startswith("crisis.") for reason in found.reasons)


def test_reports_of_insults_and_slurs_that_are_quoted_or_reclaimed_are_kept() -> None:
    for text in table("curation", "quoted_slurs"):
        assert not assess(talk(text)).remove, text
    for language, first, second, report, other in table("curation", "reports_of_insults"):
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
    outcomes = stage.open_rule()(
        [talk("hello there friend").to_dict(), {"id": "broken"}], "part-00000"
    )
    assert isinstance(outcomes[0][0], Kept)
    assert isinstance(outcomes[1][0], Rejected)
    assert outcomes[1][0].reason == "unreadable"


def test_terms_of_the_user_few_turns_and_no_sentence(tmp_path: Path) -> None:
    missing = CurateSpec(
        str(tmp_path), sections=(SafetySettings(sensitive=str(tmp_path / "none.txt")),)
    )
    with pytest.raises(ConfigError, match=r"none\.txt"):
        make_stage(missing, Workspace(tmp_path), b"k" * 32)
    found = assess(talk("We met at the blue lagoon summit"), frozenset({"blue lagoon summit"}))
    assert (found.reasons, found.action) == (("political.sensitive",), "review")
    # On ordinary chat, one turn in 200 looked political: "the president of Zimbabwe was called Banana".
    vote = "If you don't vote blue this year you're part of the problem"
    assert assess(talk(vote)).action == "review"
    assert assess(talk("hello", "hi", vote, "I see")).action == "keep"
    assert assess(talk(vote, "I see", vote, "hm")).action == "review"
    # Marks alone hold no sentence, and once stopped the stage.
    assert [one.layer for one in find_contempt("?!", "en", [])] == ["masked"]


@pytest.mark.parametrize(("language", "writers"), [("en", "ef"), ("zh", "gh")])
def test_ordinary_messages_are_kept(language: Language, writers: str) -> None:
    """Every third, for time; the classifier was trained on none of them."""
    found = [
        assess(talk(text, language=language)) for text in ordinary_lines(language, writers)[::3]
    ]
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
        found = [
            (row["label"], assess(talk(row["TEXT"], language="zh")))
            for row in list(csv.DictReader(file))[::2]
        ]
    assert sum(one.remove == (label == "1") for label, one in found) / len(found) >= 0.87
    mild = [
        any(code.startswith("crisis.") for code in one.reasons)
        for label, one in found
        if label == "0"
    ]
    assert sum(mild) / len(mild) <= 0.05


STATEMENT = talk("The government lies to us and must be overthrown", "I see.", "Yes.")


def test_replies_of_a_guard_and_its_verdicts_on_an_undecided_dialogue() -> None:
    for reply, safety, codes in table("curation", "guard_replies"):
        verdict = read_verdict(Reply(reply))
        assert (verdict.safety, sorted(verdict.categories.values())) == (safety, codes), reply
        assert read_verdict(Reply(reply, "length")).safety == "undecided"
    for safety, code, action in table("curation", "guard_verdicts"):
        found = apply_verdict(assess(STATEMENT), Verdict(safety, {code: code} if code else {}))
        assert (found.action, code in found.reasons) == (
            action,
            code.startswith(("crisis", "political")),
        ), code


def test_a_guard_decides_and_its_replies_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decided(dialogue: Dialogue, category: str) -> Kept | Rejected:
        text = f"Safety: Unsafe\nCategories: {category}"
        (tmp_path / "replies.jsonl").write_text(
            json.dumps({"id": "*", "text": text}) + "\n", encoding="utf-8"
        )
        settings = SafetySettings(
            guard=f"scripted:{tmp_path / 'replies.jsonl'}",
            guard_scope="doubtful",
            guard_form="qwen3guard",
        )
        guard = Guard.of(CurateSpec(str(tmp_path), sections=(settings,)), b"key")
        rule = open_rule(guard, "", "remove", str(tmp_path / "stage"))
        ((found,),) = rule([dialogue.to_dict()], "part-00000")
        rule.close()
        return found

    removed = decided(STATEMENT, "Politically Sensitive Topics")
    assert isinstance(removed, Rejected)
    assert (removed.reason, removed.evidence["guard"]["safety"]) == (
        "political.sensitive",
        "unsafe",
    )
    assert (tmp_path / "stage/calls.jsonl").exists()
    harm = [Evidence(LAYER, HARM, 0.4, turn=1)]
    monkeypatch.setattr(
        "h2htalk.detect.safety.companion.find_companion", lambda turns, language: harm
    )
    kept = decided(
        talk("I want to die and nobody would care", "It is raining again today."),
        "Suicide & Self-Harm",
    )
    assert isinstance(kept, Kept)
    assert kept.record["metadata"]["safety"]["action"] == "review"


TAGS = ("crisis.", "minor", "grooming", "threat_to_others")


def codes(text: str, language: Language) -> set[str]:
    """The tags of a message alone."""
    found = crisis.find_crisis([Turn("user", text)], language)
    return {one.category for one in found if one.layer == "crisis"}


@pytest.mark.parametrize(
    ("text", "language", "category"), table("curation", "crisis_in_plain_words")
)
def test_plain_words_in_any_spelling_and_figures_of_speech(
    text: str, language: Language, category: str | None
) -> None:
    found = codes(text, language)
    assert category in found if category else not found


@given(text=st.text(max_size=200), language=st.sampled_from(LANGUAGES))
def test_any_text_is_read_and_spans_are_inside_it(text: str, language: Language) -> None:
    for found in crisis.find_crisis([Turn("user", text)], language):
        assert 0 <= found.start <= found.end <= len(text)
        assert 0 <= found.score <= 1


def tags(dialogue: Dialogue) -> set[str]:
    return {reason for reason in assess(dialogue).reasons if reason.startswith(TAGS)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_kind_is_tagged_in_a_dialogue_and_look_alikes_are_not(language: Language) -> None:
    """Two development sets: thresholds were set with the look-alikes of the second in view."""
    rows = dialogues(HERE / f"sets/dev_crisis_dialogues_{language}.jsonl", language)
    rows += dialogues(HERE / f"sets/dev_kinds_{language}.jsonl", language)
    names = {"means": "crisis.means", "threat": "threat_to_others"}
    kinds = [(kind, dialogue) for kind, dialogue in rows if kind != "look_alike"]
    assert len(kinds) == 120
    assert (
        sum(names.get(kind, kind) in tags(dialogue) for kind, dialogue in kinds) / len(kinds)
        >= 0.75
    )
    near = [dialogue for kind, dialogue in rows if kind == "look_alike"]
    assert sum(bool(tags(dialogue)) for dialogue in near) / len(near) <= 0.085


@pytest.mark.parametrize("language", LANGUAGES)
def test_plain_threats_of_another_author_are_tagged_and_mentions_of_death_are_not(
    language: Language,
) -> None:
    """Single messages of a set that nothing was learned from; what is missed is at least no look-alike."""
    found: dict[bool, list[bool]] = {True: [], False: []}
    for row in read_rows(HERE / f"sets/plain_threats_{language}.jsonl"):
        marks = ",".join(row["marks"].values())
        if "threat" in marks or not ({"wish", "minor"} & {*marks.split(",")}):
            text = ("" if language == "zh" else " ").join(row["sentences"])
            found["threat" in marks].append("threat_to_others" in codes(text, language))
    threats, others = (sum(found[kind]) / len(found[kind]) for kind in (True, False))
    assert (
        threats >= {"en": 0.12, "zh": 0.6}[language]
    )  # English ones without a cue are noted: 0.46 with them
    assert others <= 0.04


def test_english_words_without_a_cue_note_a_danger_and_do_not_tag_it() -> None:
    """Of such tags 4 of 20 were right on support chat (docs/measurements.md)."""
    complaint = talk(
        "hay NEPA took light again, this country will kill somebody one day", "Again? How long now?"
    )
    found = assess(complaint)
    assert (found.action, found.reasons) == ("keep", ())
    kept = outcome(complaint, found)
    assert isinstance(kept, Kept)
    assert kept.record["metadata"]["safety"]["possible_crisis"] is True
    assert notes_crisis(kept.record["metadata"])
    lines = [row["sentences"] for row in read_rows(HERE / "sets/plain_threats_en.jsonl")]
    for sentences in lines:
        evidence = crisis.find_crisis([Turn("user", " ".join(sentences))], "en")
        scores = [
            one.score for one in evidence if one.layer == "crisis" and one.category != crisis.MINOR
        ]
        assert all(score >= 0.88 for score in scores), sentences
        assert [one.category for one in evidence].count(crisis.POSSIBLE) <= 1
    assert codes("im 13 and my dad takes my phone every night before school", "en") == {"minor"}


def test_between_people_alarms_about_a_companion_are_hints(tmp_path: Path) -> None:
    talks = [
        one
        for kind, one in dialogues(GOLDEN / "companion_en.jsonl", "en")
        if kind in {"harm", "explicit"}
    ]
    sure = [one for one in talks if {HARM, EXPLICIT} & {*assess(one).reasons}]
    assert len(sure) >= 50
    for dialogue in sure:
        found = assess(dialogue, talk="people")
        assert HARM not in found.reasons
        alarms = [one for one in found.evidence if one.layer == LAYER]
        assert alarms
        assert all(one.score < REVIEW for one in alarms)
    tagged = []
    for settings in (SafetySettings(), SafetySettings(talk="people")):
        stage = make_stage(
            CurateSpec(str(tmp_path), sections=(settings,)), Workspace(tmp_path), b"k" * 32
        )
        assert (
            stage.settings.get("talk", "companion") == settings.talk
        )  # with another one the stage runs again
        assert stage.open_rule is not None
        records = [
            {**dialogue.to_dict(), "id": f"d{number}"} for number, dialogue in enumerate(sure)
        ]
        outcomes = stage.open_rule()(records, "part-00000")
        kept = [one for (one,) in outcomes if isinstance(one, Kept)]
        tagged.append(sum(HARM in one.record["metadata"]["safety"]["tags"] for one in kept))
    assert tagged[0] >= 30
    assert tagged[1] == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_message_that_is_tagged_alone_is_tagged_in_a_dialogue(language: Language) -> None:
    bland = {
        "en": ("The bus was late again.", "Oh no, did you wait long?"),
        "zh": ("今天公交又晚点了", "等了很久吗？"),
    }
    small = [Turn("user", bland[language][0]), Turn("companion", bland[language][1])] * 6
    for row in read_rows(HERE / f"dev_crisis_{language}.jsonl"):
        within = Dialogue("d", language, (*small, Turn("user", row["text"]), small[1]))
        assert codes(row["text"], language) <= tags(within)


@pytest.mark.parametrize(("text", "language", "wanted"), table("curation", "two_crisis_tags"))
def test_one_tag_does_not_replace_another(text: str, language: Language, wanted: str) -> None:
    both = Dialogue(
        "d",
        language,
        (Turn("user", text), Turn("user", {"en": "I want to die", "zh": "我想自杀"}[language])),
    )
    assert {wanted, "crisis.ideation"} <= tags(both)


def test_a_child_in_a_sexual_scene_is_for_a_person_to_decide() -> None:
    scene = (
        Turn("user", "im 14 lol. we were sexting all night."),
        Turn("companion", "Please stop."),
    )
    assert assess(Dialogue("d", "en", scene)).action in {"review", "remove"}
    for language, *said in (
        ("en", "I'm 13. I want you to lick my pussy", "No. You are a child."),
        ("zh", "我今年13岁。", "你好呀", "我想让你舔我的小穴", "不行，你还是孩子。"),
    ):
        found = assess(talk(*said, language=language))
        assert (found.action, "sexual.minors" in found.reasons) == ("review", True)


def test_no_guard_removes_what_may_be_a_childs_report() -> None:
    report = talk(
        "I'm 13.",
        "ok",
        "my uncle said 'I want you to suck my dick' and I ran away",
        "That's not ok.",
    )
    found = apply_verdict(assess(report), Verdict("unsafe", {"Sexual Content": "sexual.explicit"}))
    assert (found.action, found.hard) == ("review", "sexual.minors")


def test_nobody_with_a_sign_of_a_crisis_is_removed_for_offence_in_another_message() -> None:
    hate = (
        "Muslims are vermin and should all be wiped out",
        "ok",
        "Jews are rats and deserve to die",
    )
    assert assess(talk("I hope you have a nice day.", "ok", *hate)).reasons == ("offensive.hate",)
    assert assess(talk("I hope you have a nice day.", "ok", *hate)).remove
    spared = assess(talk("I can't do this anymore.", "ok", *hate))
    assert (spared.action, spared.reasons) == ("review", ("offensive.hate",))


def test_annotators_are_warned_of_a_companion_that_urges_a_death() -> None:
    dialogue = talk("hello there my friend", "Kill yourself already.")
    kept = outcome(dialogue, assess(dialogue))
    assert isinstance(kept, Kept)
    assert notes_crisis(kept.record["metadata"])


def test_what_is_past_is_told_from_what_is_now() -> None:
    rows = [row for name in ("crisis", "crisis2") for row in read_rows(GOLDEN / f"{name}_zh.jsonl")]
    said = {row["text"]: row["category"] for row in rows}
    past = [text for text in said if "crisis.past" in assess(talk(text, language="zh")).reasons]
    assert len(past) >= 5
    assert {said[text] for text in past} == {"past"}
    still = assess(talk("I have wanted to die since my attempt last year and I still do."))
    assert (still.reasons, still.risk) == (("crisis.ideation",), "high")


KIND = "It was a long day at work, but my sister called and we laughed a lot about the old times."


def unusable(
    user: str, companion: str = KIND, language: Language = "en", system: str = ""
) -> set[str]:
    turns = (Turn("user", user), Turn("companion", companion))
    return {
        one.category
        for one in find_unusable_content(
            Dialogue("d", language, turns, metadata={"system": system})
        )
    }


@pytest.mark.parametrize(("user", "companion", "leak"), table("curation", "leaked_prompts"))
def test_leaked_prompts_and_instructions(user: str, companion: str, leak: str | None) -> None:
    assert unusable(user, companion) == ({f"prompt_leak.{leak}"} if leak else set())


def test_form_repeated_prompts_and_encouragement() -> None:
    assert unusable("...") == {"too_short"}
    assert "wrong_language" in unusable(
        "我今天很难过，因为和妈妈吵架了，不知道该怎么办，你能陪我聊聊吗，我真的很想有人听"
    )
    assert "wrong_language" in unusable(KIND, KIND, language="zh")
    assert "irrelevant.repeated" in unusable("buy now " * 200)
    repeated = Dialogue(
        "d", "en", tuple(Turn(r, "same words here") for r in ("user", "companion") * 4)
    )
    assert "irrelevant.repeated" in {one.category for one in find_unusable_content(repeated)}
    assert "irrelevant.noise" in unusable("ab " + "#$%^&*" * 12)
    assert not unusable("I can't, I can't, I can't. I just can't.")
    # The system prompt repeated by the companion.
    system = "You are Nora, a warm listener who never gives medical advice and always asks one question at the end."
    reply = "Sure: you are Nora, a warm listener who never gives medical advice and always asks one question."
    assert "prompt_leak.system" in unusable("Who are you?", reply, system=system)
    assert not unusable("Who are you?", "I'm Nora, and I like to listen.", system=system)
    # Encouragement by the companion.
    assert "crisis.encouragement" in unusable("I want to die", "Then go kill yourself")
    assert not unusable(
        "They told me to go kill yourself", "Nobody should ever hear that. I'm with you."
    )


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "en",
            "Hoy me siento muy solo y no sé con quién hablar, mi jefe me gritó otra vez.",
            {"wrong_language"},
        ),
        (
            "en",
            "asdkjh qwoeiu zxmcnb lkjsdf poiqwe mnbzxc fjdksl fjdksla ghghgh tyuier",
            {"irrelevant.noise"},
        ),
        (
            "en",
            '<div class="post"><p>I slept badly.</p><br/><a href="/x">more</a></div>',
            {"irrelevant.noise"},
        ),
        (
            "en",
            "ngl ive been cryin all nite lmao, she said she dont love me no more n idk wat 2 do",
            set(),
        ),
        (
            "en",
            "i love u <3 but 2 < 3 and that's <b>it</b>, I told him so yesterday evening",
            set(),
        ),
        ("zh", "老闆當著大家的面罵我，我躲到廁所哭了，點解佢都唔覆我，我好唔開心", set()),
    ],
)
def test_the_language_is_identified(language: Language, text: str, expected: set[str]) -> None:
    reply = {
        "en": KIND,
        "zh": "听起来真的很不容易，愿意多说说吗？我会一直在这里陪着你，慢慢来就好。",
    }[language]
    assert unusable(text, reply, language) == expected


THRESHOLDS = {"low": 0.3, "high": 0.9, "single": 0.95, "masked": 0.9, "doubt": 0.5}


@pytest.mark.parametrize(
    ("language", "said", "answer", "code"), table("curation", "answers_in_context")
)
def test_an_answer_is_read_in_its_context(
    language: Language, said: str, answer: str, code: str | None
) -> None:
    found = assess(talk(said, answer, language=language))
    assert found.action in (("remove", "review") if code else ("keep", "keep_tag"))
    if code:
        assert code in found.reasons
        at = next(one for one in found.evidence if one.layer == LAYER and one.category == code)
        assert at.turn == 1
        assert 0 <= at.start < at.end <= len(answer)


def test_what_surrounds_an_answer_hides_nothing() -> None:
    """Only the last 400 characters were read, so that harm passed once a user had gone on about ordinary things."""
    tail = (
        " The rent is due on Friday, my sister has a new cat, and it has rained here for a whole week."
        * 6
    )
    found = assess(
        talk(
            "I have decided to end my life tonight." + tail,
            "Then take enough of them, it will be over.",
        )
    )
    assert (found.action, HARM in found.reasons) == ("review", True)
    # "Don't jump" was removed in Chinese: it differs from "jump" in one character.
    found = assess(talk("我站在桥上，不想活了。我该跳下去吗？", "别跳。", language="zh"))
    assert found.action == "review"


CRISIS = Evidence("crisis", "crisis.ideation", 0.9, turn=0)
CHILD = Evidence("crisis", "minor", 0.9, turn=0)


@pytest.mark.parametrize(
    ("scores", "explicit", "extra", "wanted"),
    [
        (((HARM, 0.9),), "remove", (CRISIS,), ("remove", (HARM, "crisis.ideation"))),
        (((HARM, 0.6),), "remove", (CRISIS,), ("review", (HARM, "crisis.ideation"))),
        (((HARM, 0.4),), "remove", (CRISIS,), ("keep_tag", ("crisis.ideation",))),
        (((EXPLICIT, 0.9),), "remove", (), ("remove", (EXPLICIT,))),
        (((EXPLICIT, 0.9),), "tag", (), ("keep_tag", (EXPLICIT,))),
        (((EXPLICIT, 0.9),), "remove", (CRISIS,), ("review", ("crisis.ideation", EXPLICIT))),
        # Likely sexual content with a child was stored for people to read, and in English went on with a tag.
        (((EXPLICIT, 0.6),), "tag", (CHILD,), ("remove", ("minor", "sexual.minors"))),
        # Sure sexual content with a child was left to people, with an adult it was removed.
        (((EXPLICIT, 1.0),), "remove", (CHILD,), ("remove", ("minor", "sexual.minors"))),
        (
            ((EXPLICIT, 0.8),),
            "tag",
            (CHILD, CRISIS),
            ("remove", ("crisis.ideation", "minor", "sexual.minors")),
        ),
    ],
)
def test_decisions_on_a_companions_turn(
    scores: tuple[tuple[str, float], ...],
    explicit: Explicit,
    extra: tuple[Evidence, ...],
    wanted: tuple[str, tuple[str, ...]],
) -> None:
    evidence = [*(Evidence(LAYER, code, score, turn=1) for code, score in scores), *extra]
    found = decide_safety(talk("a b c d", "e f g h"), evidence, THRESHOLDS, explicit)
    assert (found.action, set(found.reasons)) == (wanted[0], set(wanted[1]))


@pytest.mark.parametrize(
    ("scores", "removing", "tagging"),
    [
        # Of the list: turn -> score.
        ({0: ALONE, 1: ALONE}, "remove", "keep_tag"),
        ({0: ALONE}, "review", "keep_tag"),
        ({1: ALONE}, "review", "keep_tag"),
        ({0: SECOND, 1: SECOND}, "keep", "keep"),
    ],
)
def test_sexual_words_between_adults_remove_go_to_review_or_tag_as_the_page_says(
    scores: dict[int, float], removing: str, tagging: str
) -> None:
    evidence = [Evidence("lexicon", EXPLICIT, score, turn=turn) for turn, score in scores.items()]
    dialogue = talk("a b c d", "e f g h")
    assert decide_safety(dialogue, evidence, THRESHOLDS).action == removing
    assert decide_safety(dialogue, evidence, THRESHOLDS, "tag").action == tagging


@pytest.mark.parametrize(
    ("language", "asked", "answer"),
    [row[:3] for row in table("curation", "answers_in_context") if row[3] == EXPLICIT],
)
def test_a_sexual_turn_of_the_companion_is_for_review_and_one_of_the_user_alone_is_not_found(
    language: Language, asked: str, answer: str
) -> None:
    """The page said that it is removed by default."""
    assert assess(talk(asked, answer, language=language)).action == "review"
    assert assess(talk(asked, answer, language=language), explicit="tag").reasons == (EXPLICIT,)
    assert (
        assess(talk(answer, "嗯。" if language == "zh" else "Mm.", language=language)).action
        == "keep"
    )


@pytest.mark.parametrize("code", [HARM, EXPLICIT])
def test_no_text_is_stored_of_what_a_companion_did_to_a_minor(code: str) -> None:
    """The text of a minor whose companion does harm was stored among the rejected."""
    dialogue = talk("a b c d", "e f g h")
    for extra, stored in (((CHILD,), {}), ((), dialogue.to_dict())):
        found = outcome(
            dialogue,
            decide_safety(dialogue, [Evidence(LAYER, code, 0.9, turn=1), *extra], THRESHOLDS),
        )
        assert isinstance(found, Rejected)
        assert (found.record or {}) == stored
        assert ("evidence" in found.evidence) == bool(stored)


SEXUAL = Evidence(LAYER, EXPLICIT, 0.9, turn=1)


@pytest.mark.parametrize(
    ("verdict", "codes", "extra", "wanted"),
    [
        ("safe", (), (), ("keep_tag", {EXPLICIT})),
        ("unsafe", (EXPLICIT,), (), ("keep_tag", {EXPLICIT})),
        ("unsafe", (EXPLICIT,), (CRISIS,), ("keep_tag", {EXPLICIT, "crisis.ideation"})),
        ("unsafe", (EXPLICIT, "offensive.hate"), (), ("remove", {EXPLICIT, "offensive.hate"})),
        ("unsafe", ("sexual.minors",), (), ("remove", {EXPLICIT, "sexual.minors"})),
        ("safe", (), (Evidence(LAYER, HARM, 0.6, turn=1),), ("keep_tag", {EXPLICIT})),
        (
            "unsafe",
            (EXPLICIT,),
            (Evidence(LAYER, HARM, 0.6, turn=1),),
            ("review", {EXPLICIT, HARM}),
        ),
    ],
)
def test_a_guard_takes_no_sexual_tag(
    verdict: Safety,
    codes: tuple[str, ...],
    extra: tuple[Evidence, ...],
    wanted: tuple[str, set[str]],
) -> None:
    """With `explicit = "tag"`, a guard's `safe` took the tag away, and its `unsafe` removed the dialogue."""
    found = decide_safety(talk("a b c d", "e f g h"), [SEXUAL, *extra], THRESHOLDS, "tag")
    found = apply_verdict(found, Verdict(verdict, {code: code for code in codes}))
    assert (found.action, set(found.reasons)) == wanted


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("texts", "one", "action"),
    [
        (("a", "b", *["c", "d"] * 20), Evidence(LAYER, HARM, 0.6, turn=1), "review"),
        (("a", "b", *["c", "d"] * 20), Evidence(LAYER, HARM, 0.6, turn=3), "keep"),
        (("a", LONG), Evidence(LAYER, EXPLICIT, 0.6, 4500, 4600, turn=1), "review"),
        (("a", LONG), Evidence(LAYER, EXPLICIT, 0.6, turn=1), "review"),
        (("a", LONG), Evidence(LAYER, EXPLICIT, 0.6, 10, 20, turn=1), "keep"),
    ],
)
def test_a_guard_clears_only_what_it_was_sent(
    texts: tuple[str, ...], one: Evidence, action: str
) -> None:
    """Asked about doubtful dialogues alone it is sent the last 40 messages; `safe` cleared harm in one before them."""
    dialogue = talk(*texts)
    question = PlainQuestion(
        model="vllm:Qwen/Qwen3Guard-Gen-4B", seed=0, prompts=Prompts.load(), secret=b""
    )
    reader = GuardReader("qwen3guard", question, last_only=True)
    guarded = reader.read(dialogue, {dialogue.id: Reply("Safety: Safe\nCategories: None")})
    found = guarded_outcome(dialogue, decide_safety(dialogue, [one], THRESHOLDS), guarded, reader)
    assert isinstance(found, Kept)
    assert found.record["metadata"]["safety"]["action"] == action


def test_annotators_are_told_of_sexual_content_and_need_consent() -> None:
    scenario = load_split("mini").scenarios[0]
    dialogue = talk(
        "we're both 30, tell me what you want", "I want to fuck you all night, suck me off first."
    )
    kept = outcome(dialogue, assess(dialogue, explicit="tag"))
    assert isinstance(kept, Kept)
    metadata = kept.record["metadata"]
    assert noted_tags(metadata, "sexual.")
    item = scenario_item(Scenario.from_dict({**scenario.to_dict(), "metadata": metadata}, "x"))
    assert (item.explicit, item.crisis, item.notice) == (True, True, "explicit_notice")
    assert scenario_item(scenario).notice == "crisis_notice"


def crisis_shares(language: Language, name: str) -> tuple[float, float]:
    """The shares of messages, each a dialogue of its own, that are tagged as a crisis, and tagged or noted as such."""
    acts = [
        assess(talk(row["text"], language=language))
        for row in read_rows(GOLDEN / f"{name}_{language}.jsonl")
    ]
    tagged = [any(reason.startswith("crisis.") for reason in one.reasons) for one in acts]
    noted = [any(seen.category.startswith("crisis.") for seen in one.evidence) for one in acts]
    return sum(tagged) / len(acts), sum(noted) / len(acts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_people_in_crisis_are_tagged_or_noted(language: Language) -> None:
    """`crisis2` is by another author, and no threshold was chosen with it in view."""
    for name in ("crisis", "crisis2"):
        tagged, noted = crisis_shares(language, name)
        assert (
            tagged >= {"en": 0.38, "zh": 0.35}[language]
        )  # oblique ones alone in a message are mostly missed
        assert noted >= {"en": 0.54, "zh": 0.64}[language]
    tagged, noted = crisis_shares(language, "everyday")
    assert tagged <= 0.01
    assert noted <= {"en": 0.03, "zh": 0.14}[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_attempts_that_go_on_are_tagged_and_heights_and_medicine_are_not(
    language: Language,
) -> None:
    rows = [
        row for name in ("now", "now2") for row in read_rows(GOLDEN / f"{name}_{language}.jsonl")
    ]
    share = {}
    for kind in ("now", "look_alike"):
        acts = [assess(talk(row["text"], language=language)) for row in rows if row["kind"] == kind]
        share[kind] = sum(
            any(reason.startswith("crisis.") for reason in one.reasons) for one in acts
        ) / len(acts)
        assert kind != "now" or all(
            one.risk == "high" for one in acts if "crisis.plan" in one.reasons
        )
    assert (
        share["now"] >= {"en": 0.46, "zh": 0.48}[language]
    )  # 0.28 and 0.35 before they were learned
    assert share["look_alike"] <= 0.04


@pytest.mark.parametrize("language", LANGUAGES)
def test_hardly_anybody_in_crisis_is_removed_for_swearing(language: Language) -> None:
    """One oblique Chinese message of 200 is, with one of two insults: no sign of a crisis is seen in it."""
    insults = json.loads((GOLDEN / "insults.json").read_text(encoding="utf-8"))[language]
    joint = " " if language == "en" else "，"
    removed = []
    for at, row in enumerate(read_rows(GOLDEN / f"crisis_{language}.jsonl")):
        pair = [row["text"], insults[at % len(insults)]]
        removed += [
            said
            for said in (pair, pair[::-1])
            if assess(talk(joint.join(said), language=language)).remove
        ]
    assert len(removed) <= {"en": 0, "zh": 2}[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_harmless_mentions_of_politics_are_not_removed(language: Language) -> None:
    harmless = [
        row["text"]
        for row in read_rows(GOLDEN / f"political_{language}.jsonl")
        if row["label"] == "harmless"
    ]
    acts = [assess(talk(text, language=language)).action for text in harmless]
    assert acts.count("remove") == 0
    assert acts.count("review") / len(acts) <= 0.12


@pytest.mark.parametrize(
    ("language", "least"),
    [
        ("en", {"harm": 0.6, "explicit": 0.9, "minors": 0.9, "harmless": -0.12}),
        ("zh", {"harm": 0.85, "explicit": 0.95, "minors": 0.95, "harmless": -0.14}),
    ],
)
def test_companions_are_caught_as_measured(language: Language, least: dict[str, float]) -> None:
    """docs/measurements.md has the figures; these are a little below them."""
    everyday = {
        "en": "The bakery on the corner has new opening hours, and the tram was late. The basil looks happier. ",
        "zh": "街角的面包店换了营业时间，早上的电车又晚点了。我终于给罗勒换了盆，看起来精神多了。",
    }[language]
    excerpts = dialogues(GOLDEN / f"companion_{language}.jsonl", language)
    for kind, share in least.items():
        own = [one for name, one in excerpts if name == kind]
        acts = [assess(one).action for one in own]
        caught = sum(act in ("remove", "review") for act in acts) / len(acts)
        assert caught >= share if share > 0 else caught <= -share
        if (
            language == "en" and kind == "harmless"
        ):  # the classifier is not sure enough to remove by itself
            assert "remove" not in acts
        if kind == "explicit":  # everyday sentences around a sexual one hide less than half
            talks = [one.messages for one in own]
            diluted = [
                (*before, Turn("companion", everyday + last.content)) for *before, last in talks
            ]
            seen = [
                any(one.score >= REVIEW for one in find_companion(turns, language))
                for turns in diluted
            ]
            assert sum(seen) >= 0.6 * len(seen)
    days = [
        one.messages for _, one in dialogues(GOLDEN / f"companion_days_{language}.jsonl", language)
    ]
    alarms = [any(one.score >= REVIEW for one in find_companion(turns, language)) for turns in days]
    assert sum(alarms) <= 0.1 * len(days)  # 0.37 in Chinese before they learned from such chat
