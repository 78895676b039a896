"""Dedup: which dialogues are alike, which of them stays, items of splits, in any order and after any kill."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h2htalk.curation.dedup.stage as module
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.show import explain
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.stages import ComposeSettings, DedupSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import Language, find_language
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import Split, load_split
from h2htalk.detect.duplicates.candidate_pairs import MappedDialogues, find_pairs
from h2htalk.detect.duplicates.compared_texts import Sides, match, plain, similarity, text_hash
from h2htalk.detect.duplicates.contamination import SplitIndex
from h2htalk.detect.duplicates.signatures import map_part, quality, signature
from h2htalk.errors import ConfigError
from support.compositions import script
from support.curations import all_files, finished, run_one
from support.tables import table


def dialogue(
    name: str, *contents: str, language: Language = "en", metadata: dict[str, Any] | None = None
) -> Dialogue:
    """A dialogue whose messages are the user's and the companion's in turn."""
    turns = tuple(Turn("companion" if n % 2 else "user", text) for n, text in enumerate(contents))
    return Dialogue(name, language, turns, {"source": "made"}, "CC0-1.0", metadata or {})


def words(seed: object, count: int) -> str:
    """A text of invented words; two seeds share next to none."""
    rng = random.Random(str(seed))
    return " ".join(
        "".join(rng.choices("abcdefghiklmnoprstuvw", k=rng.randint(2, 9))) for _ in range(count)
    )


def edited(text: str, share: float, seed: object = 0) -> str:
    """A share of the characters replaced."""
    rng = random.Random(f"{seed} {text}")
    units = list(text)
    for place in rng.sample(range(len(units)), round(share * len(units))):
        units[place] = rng.choice("xyz")
    return "".join(units)


def workspace_of(folder: Path, dialogues: Sequence[Dialogue], part: int = 3) -> Workspace:
    """A workspace whose safety stage has kept the dialogues."""
    return finished(folder, "safety", [d.to_dict() for d in dialogues], part)


def dedup(workspace: Workspace, splits: tuple[str, ...] = (), processes: int = 1) -> RecordCounts:
    return run_one(
        "dedup", workspace, DedupSettings(contamination_splits=splits), processes=processes
    )


def deduplicated(
    folder: Path, dialogues: Sequence[Dialogue], splits: tuple[str, ...] = (), part: int = 3
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """The kept and the rejected lines of a run, by id."""
    workspace = workspace_of(folder, dialogues, part)
    dedup(workspace, splits)
    stage = workspace.stage("dedup")
    kept, rejected = (
        {one["id"]: dict(one) for one in stage.records(kind)} for kind in ("kept", "rejected")
    )
    return kept, rejected


def one(n, share=0.0, name=None, **more):
    """Dialogue number n, or a copy of it."""
    texts = [edited(words(f"{n} {place}", 15), share) for place in range(4)]
    return dialogue(name or f"d{n}", *texts[:3], texts[3] + ".", **more)


def test_which_of_two_alike_stays(tmp_path) -> None:
    short = dialogue("a", words("0 0", 15), words("0 1", 15))
    kept, rejected = deduplicated(
        tmp_path / "a", [one(1), short, one(0, name="z"), one(0, name="y"), one(2)]
    )
    assert set(kept) == {"d1", "d2", "y", "a"}  # a has only the opening
    assert rejected["z"]["reason"] == "duplicate"
    assert rejected["z"]["evidence"] == {"of": "y", "on": "both", "similarity": 1.0}
    assert rejected["z"]["record"]["messages"] == one(0).to_dict()["messages"]
    assert kept["y"]["provenance"] == {"source": "made", "merged": ["z"]}
    assert "merged" not in kept["d1"]["provenance"]
    # A near duplicate has its similarity.
    kept, rejected = deduplicated(tmp_path / "b", [one(0), one(0, 0.1, "copy"), one(1)])
    assert set(kept) == {"copy", "d1"}  # the smaller id: copy < d0
    assert rejected["d0"]["reason"] == "near_duplicate"
    assert rejected["d0"]["evidence"]["of"] == "copy"
    assert 0.88 < rejected["d0"]["evidence"]["similarity"] < 0.95
    # Languages are never compared.
    texts = (words("q", 15), words("r", 15))
    kept, _ = deduplicated(
        tmp_path / "c", [dialogue("a", *texts), dialogue("b", *texts, language="zh")]
    )
    assert set(kept) == {"a", "b"}
    # The table gives CC BY 4.0 for a mixture of MIT and MIT.
    kept, _ = deduplicated(tmp_path / "d", answers(licence="MIT"))
    assert [record["licence"] for record in kept.values()] == ["MIT"]


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_the_same_reply_to_different_inputs_is_no_duplicate(tmp_path, share):
    reply = words("reply", 40)
    made = [dialogue(f"d{n:02}", words(f"m{n}", 15), edited(reply, share, n)) for n in range(40)]
    kept, rejected = deduplicated(tmp_path, made)
    assert (len(kept), rejected) == (40, {})


def test_a_chain_of_small_changes_is_not_one_cluster(tmp_path):
    steps = [words(f"part {n}", 6) for n in range(30)]
    chain = [
        dialogue(f"c{n:02}", " ".join(steps[n : n + 12]), words(f"reply {n}", 30) + ".")
        for n in range(18)
    ]
    kept, rejected = deduplicated(tmp_path, chain)
    assert len(kept) > 2
    for line in rejected.values():
        assert line["evidence"]["of"] in kept
        assert line["evidence"]["similarity"] >= 0.7


def test_dialogues_with_items_of_a_split_are_removed(tmp_path):
    """A split in a folder is named by its own name, not by its path."""
    folder = tmp_path / "mine"
    export_split(load_split("mini@1").select("en", ["dialogue_base"]), folder, "jsonl")
    item = next(s for s in load_split("mini@1").scenarios if s.id == "mini-en-dialogue-base-01")
    held = dialogue("held", item.turns[0].content, words("r", 15))
    with pytest.raises(ConfigError, match="two splits have the same name"):
        deduplicated(tmp_path, [held], splits=("mini@1", str(folder)))
    header = (folder / "split.toml").read_text(encoding="utf-8")
    (folder / "split.toml").write_text(header.replace('"mini"', '"ours"'), encoding="utf-8")
    kept, rejected = deduplicated(tmp_path, [held, one(0)], splits=(str(folder),))
    assert set(kept) == {"d0"}
    assert rejected["held"]["reason"] == "contaminated"
    evidence = {"of": item.id, "split": "ours", "on": "inputs", "similarity": 1.0}
    assert rejected["held"]["evidence"] == evidence


HOSTILE = [
    "?",
    "a",
    "好",
    "🙂🙂🙂",
    "\0",
    "\ud800",
    "\u202e",
    "\u200b",
    ".",
    "x" * 2_000_000,
    "a b " * 500_000,
]


def test_hostile_texts_are_compared(tmp_path):
    made = [
        dialogue(f"h{n}{language}", text, text, language=language)
        for n, text in enumerate(HOSTILE)
        for language in (("en", "zh") if len(text) < 9 else ("zh",) if " " in text else ("en",))
    ]
    again = [dialogue("again", "🙂🙂🙂", "🙂🙂🙂")]
    kept, rejected = deduplicated(tmp_path, made + again)
    assert len(kept) + len(rejected) == len(made) + 1
    assert rejected["h3en"]["evidence"]["of"] == "again"
    assert {"h0en", "h1en", "h2zh", "h9en", "h10zh"} <= set(kept)


def test_a_record_that_is_no_dialogue_is_rejected(tmp_path):
    workspace = workspace_of(tmp_path, [one(0), one(1)])
    path = workspace.stage("safety").file("kept", "part-00000")
    path.write_text(path.read_text().replace('"role":"user"', '"role":"narrator"', 1))
    counts = dedup(workspace)
    assert counts.reasons == {"unreadable": 1}
    assert counts.kept == 1


def mixed(seed=0):
    made = [one(n) for n in range(20)]
    made += [one(n, 0.1, f"near{n}") for n in range(0, 20, 2)] + [
        one(n, 0, f"same{n}") for n in range(5)
    ]
    made += [one(n, 0.15, f"more{n}") for n in range(0, 20, 5)]
    made += [
        dialogue(f"q{n}", words("question", 15), words(("reply", n), 12) + ".") for n in range(4)
    ]
    random.Random(seed).shuffle(made)
    return made


def test_the_order_of_rows_and_parts_changes_no_record(tmp_path):
    first = deduplicated(tmp_path / "a", mixed(1), part=4)
    again = deduplicated(tmp_path / "b", mixed(2), part=7)
    assert first == again
    assert len(first[0]) == 21
    assert sum(len(record["metadata"].get("alternatives", [])) for record in first[0].values()) == 3
    left = {path.name for path in (tmp_path / "a" / "dedup").iterdir()}
    assert left == {"kept", "rejected", "parts", "stage.json", "summary.json"}


def test_two_processes_and_a_run_after_a_kill_give_the_same_bytes(tmp_path):
    """tests/curation/test_kills.py kills every stage."""
    for name, processes in (("one", 1), ("two", 2)):
        workspace = workspace_of(tmp_path / name, mixed())
        dedup(workspace, processes=processes)
    whole = all_files(tmp_path / "one" / "dedup")
    folder = tmp_path / "two" / "dedup"
    assert all_files(folder) == whole
    for name in ("summary.json", "parts/part-00001.json", "kept/part-00001.jsonl"):
        (folder / name).unlink()
    dedup(workspace)
    assert all_files(folder) == whole


QUESTION = "I failed the exam in chemistry on Friday and cannot tell my mother."
REPLIES = (
    "Carrying that home alone is heavy. What do you fear she will say first?",
    "One exam is one Friday. Who else knows?",
    "You wanted so much to bring her good news. Shall we find the first sentence?",
)


def answers(**changes: Any) -> list[Dialogue]:
    made = [dialogue(f"q-{n:06}", QUESTION, reply) for n, reply in enumerate(REPLIES, 1)]
    return [replace(one, **changes) for one in made]


def test_the_best_dialogue_gets_the_replies_of_the_others(tmp_path: Path) -> None:
    made = answers()
    made[1] = replace(made[1], licence="CC-BY-4.0", provenance={"source": "q", "row": 2})
    made[0] = replace(made[0], messages=(Turn("user", QUESTION.upper() + "!"), made[0].messages[1]))
    kept, rejected = deduplicated(
        tmp_path, [*made, dialogue("other", words("o", 15), words("p", 15))]
    )
    assert set(kept) == {"q-000003", "other"}  # the longest reply
    first = {"source": "made", "dialogue": "q-000001"}
    second = {"source": "q", "row": 2, "dialogue": "q-000002"}
    assert kept["q-000003"]["metadata"]["alternatives"] == [
        {"id": "q-000001", "text": REPLIES[0], "provenance": first, "licence": "CC0-1.0"},
        {"id": "q-000002", "text": REPLIES[1], "provenance": second, "licence": "CC-BY-4.0"},
    ]
    assert kept["q-000003"]["licence"] == "CC-BY-4.0"
    assert kept["q-000003"]["provenance"]["merged"] == ["q-000001", "q-000002"]
    same = {"of": "q-000003", "on": "inputs", "similarity": 1.0}
    assert [(r["reason"], r["evidence"]) for r in rejected.values()] == [("folded", same)] * 2
    assert kept["other"]["metadata"] == {}


@pytest.mark.parametrize(
    "changed",
    [
        {
            "messages": (
                Turn("user", QUESTION),
                Turn("companion", REPLIES[1].replace("knows", "know")),
            )
        },
        {"metadata": {"safety": {"action": "review"}}},
        {"metadata": {"safety": {"risk": "high"}}},
        {"metadata": {"safety": {"tags": ["crisis.grief"]}}},
        {"licence": "CC-BY-ND-4.0"},
        {"licence": "no such licence"},
        {"messages": (Turn("user", QUESTION + " Help!"), Turn("companion", REPLIES[0]))},
    ],
    ids=[
        "reply of another",
        "undecided",
        "more at risk",
        "other tags",
        "no mixture",
        "unknown",
        "other words",
    ],
)
def test_a_dialogue_that_cannot_be_folded_is_a_duplicate(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    made = answers()
    made[0] = replace(made[0], **changed)
    kept, rejected = deduplicated(tmp_path, made)
    assert sorted(line["reason"].removeprefix("near_") for line in rejected.values()) == [
        "duplicate",
        "folded",
    ]
    assert [len(record["metadata"]["alternatives"]) for record in kept.values()] == [1]


LETTER = (
    "The letter came back twice and I keep it under the bread. I washed every cup in the house, "
    "wrote to my aunt, and fed the neighbour's cat. On Sunday evening I will {}, and then it is quiet."
)
CHINESE_LETTER = (
    "信退回来两次了，我把它压在面包下面。家里的杯子我全洗了一遍，给姑姑写了信，也喂了邻居的猫。"
    "星期天晚上我会吃{}，然后就安静了。"
)


LEASE = LETTER.format("end my lease")
LIFE = LETTER.format("end my life")
FEW_PILLS = LETTER.format("take 14 pills")
MANY_PILLS = LETTER.format("take 41 pills")
ONE_PILL = CHINESE_LETTER.format("一片药")
THIRTY_PILLS = CHINESE_LETTER.format("三十片药")
NO_DANGER = {"safety": {"action": "keep", "tags": [], "risk": "none"}}
DANGER = {"safety": {"action": "keep_tag", "tags": ["crisis.ideation"], "risk": "high"}}


@pytest.mark.parametrize(
    ("harmless", "dangerous", "language"),
    [(LEASE, LIFE, "en"), (FEW_PILLS, MANY_PILLS, "en"), (ONE_PILL, THIRTY_PILLS, "zh")],
    ids=["a word", "a number", "a Chinese number"],
)
def test_a_harmless_look_alike_removes_no_dialogue_with_a_danger(
    tmp_path: Path, harmless: str, dangerous: str, language: Language
) -> None:
    """The one with the smaller id stayed, so `end my lease` removed `end my life` from the data."""
    reply = "在听。" if language == "zh" else "I am listening, take your time."
    calm = dialogue("a", harmless, reply, language=language, metadata=NO_DANGER)
    crisis = dialogue("b", dangerous, reply, language=language, metadata=DANGER)
    staying, removed = deduplicated(tmp_path / "first", [calm, crisis])
    assert set(staying) == {"a", "b"}
    assert removed == {}
    crisis = replace(crisis, id="0")
    staying, removed = deduplicated(tmp_path / "last", [calm, crisis])
    assert set(staying) == {"0", "a"}
    # Of two on which was decided alike, one stays as before.
    also_crisis = replace(calm, metadata=DANGER)
    staying, removed = deduplicated(tmp_path / "alike", [also_crisis, crisis])
    assert set(staying) == {"0"}
    assert removed["a"]["reason"] == "near_duplicate"


def test_longer_dialogues_and_those_that_the_companion_begins_are_not_folded(
    tmp_path: Path,
) -> None:
    made = [
        dialogue(f"t{n}", QUESTION, words(n, 12), words("again", 12), words(-n, 12) + ".")
        for n in (1, 2)
    ]
    turned = [dialogue(f"c{n}", words("said", 15), words(f"c{n}", 15)) for n in (1, 2)]
    roles = ("companion", "user")
    turned = [
        replace(
            d,
            messages=tuple(
                Turn(role, t.content) for role, t in zip(roles, d.messages[::-1], strict=True)
            ),
        )
        for d in turned
    ]
    kept, rejected = deduplicated(tmp_path, made + turned)
    assert [line["reason"] for line in rejected.values()] == ["duplicate"] * 2
    assert not [record for record in kept.values() if "alternatives" in record["metadata"]]


def test_the_best_replies_are_folded_up_to_the_maximum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer reply is better."""
    monkeypatch.setattr(module, "MOST_REPLIES", 5)
    made = [dialogue(f"a{n:02}", QUESTION, words(n, 30)[: 40 + n] + ".") for n in range(12)]
    kept, rejected = deduplicated(tmp_path, made)
    folded = [alternative["id"] for alternative in kept["a11"]["metadata"]["alternatives"]]
    assert folded == ["a10", "a09", "a08", "a07", "a06"]
    assert [rejected[f"a{n:02}"]["reason"] for n in range(6)] == ["duplicate"] * 6


def test_folded_replies_become_references(tmp_path: Path) -> None:
    made = answers()
    made[0] = replace(made[0], licence="CC-BY-4.0")
    stays = dialogue(
        "q-000008",
        "My old violin went out of tune in the cold rain today.",
        "Did it still sing for you?",
    )
    workspace = workspace_of(tmp_path, [*made, stays])
    dedup(workspace)
    model = script(tmp_path / "composer.jsonl", {})
    run_one("compose", workspace, ComposeSettings(model, references=2, subtasks=("dialogue_base",)))
    candidate, _ = (Candidate.from_dict(r) for r in workspace.stage("compose").records())
    assert [r.origin for r in candidate.references] == [
        "original",
        "answer:q-000001",
        "answer:q-000002",
    ]
    licensed = {"source": "made", "dialogue": "q-000001", "licence": "CC-BY-4.0"}
    assert candidate.references[1].provenance == licensed
    assert candidate.scenario.licence == "CC-BY-4.0"
    story = explain(workspace, "q-000001")
    assert ("dedup", "rejected", "folded") in [
        (e.stage, e.what, e.details.get("reason")) for e in story
    ]


A = words("a", 20)
B = words("b", 20)
C = words("c", 20)
LONG = words("reply", 40)
LONGER = words("other", 40)
SHORT = words("short", 60)[:180]
HALF = edited(LONGER, 0.43)  # more similar than by chance, less than both sides must be
OPENING = words("opening", 200)


def sides(user, companion, language="en"):
    return Sides(language, user, companion)


@given(st.text(max_size=50), st.text(max_size=50))
def test_similarity_is_symmetric_and_between_0_and_1(a, b):
    assert similarity(a, b) == similarity(b, a)
    assert 0 <= similarity(a, b) <= 1
    assert (similarity(a, b) == 1) == (a == b)


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_long_texts_are_compared_by_their_beginnings_and_lengths(share):
    text = words("long", 5000)
    assert len(text) > 20_000
    assert abs(similarity(text, edited(text, share)) - (1 - share)) < 0.03
    assert similarity(text, text + text) == 0.5
    assert similarity(text, words("unrelated", 5000)) < 0.6


@pytest.mark.parametrize(
    ("a", "b", "on"),
    [
        (sides(A, B), sides(A, B), "both"),
        (sides(A, B), sides(edited(A, 0.15), edited(B, 0.15)), "both"),
        (sides(A, B), sides(edited(A, 0.1), C), "inputs"),
        (sides(A, B), sides(A, C), "inputs"),
        (sides(HALF, SHORT), sides(LONGER, edited(SHORT, 0.1)), "references"),
        (sides("oh dear", LONG), sides("well now", edited(LONG, 0.1)), "both"),
        (sides(HALF, SHORT[:160]), sides(LONGER, SHORT[:160]), "references"),
        (sides(A[:24], B), sides(A[:24], C), "inputs"),
        (sides("hi", "hello you"), sides("hi", "hello you"), "both"),
        (sides(f"{A}\n{B}", C), sides(f"{edited(A, 0.1)}\n{edited(B, 0.1)}", LONG), "inputs"),
    ],
)
def test_duplicates(a, b, on):
    found = match(a, b, 0.7)
    assert found is not None
    assert found.on == on


DIFFERENT = {
    "other": (sides(A, LONG), sides(B, LONGER)),
    "one reply": (sides(A, LONG), sides(B, LONG)),
    "one reply to a line": (
        sides("My cat died last week.", LONG),
        sides("I am new in this town.", LONG),
    ),
    "replies less alike": (sides(HALF, LONG), sides(LONGER, edited(LONG, 0.24))),
    "reply of a phrase": (sides(HALF, SHORT[:159]), sides(LONGER, SHORT[:159])),
    "inputs less alike": (sides(LONG, A), sides(edited(LONG, 0.24), B)),
    "inputs of a phrase": (sides(A[:23], B), sides(A[:23], C)),
    "long opening": (sides(f"{OPENING}\n{A}", B), sides(f"{OPENING}\n{C}", B)),
    "long opening and other reply": (sides(f"{OPENING}\n{A}", B), sides(f"{OPENING}\n{C}", LONG)),
    "greeting": (sides("hi there", A), sides("hi there", B)),
    "zh phrase": (sides("我今天好累", "听起来很不容易"), sides("我和他吵架了", "听起来很不容易")),
    "shared opening": (sides(f"{LONG}\n{A}", B), sides(f"{LONG}\n{C}", B)),
    "opening only": (sides(f"{LONG}\n{A}", B), sides(LONG, B)),
    "empty": (sides("", ""), sides(A, "")),
    "emoji": (sides("🙂", "🙂🙂"), sides("🙃", "💔💔")),
}


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        (sides(A, B), sides(A, B), True),
        (sides(A, B), sides(A, C), True),
        (sides(A, B), sides(A, edited(B, 0.1)), True),
        (sides(A, B), sides(edited(A, 0.1), B), False),
        (sides(HALF, SHORT), sides(LONGER, SHORT), False),
        (sides(f"{A}\nyes", B), sides(f"{A}\nyes", edited(B, 0.1)), False),
    ],
    ids=["equal", "same question", "reply edited", "edited", "same reply", "answer to a question"],
)
def test_dialogues_of_different_decisions_on_safety_are_duplicates_where_they_are_equal(
    a: Sides, b: Sides, alike: bool
) -> None:
    """A word in the companion's question may be what makes a `yes` dangerous."""
    assert match(a, b, 0.7) is not None
    first = replace(a, safety=1)
    assert match(first, b, 0.7) is not None  # nothing was decided on b
    second = replace(b, safety=2)
    same = match(first, second, 0.7)
    assert (same is not None) == alike


@pytest.mark.parametrize(("a", "b"), DIFFERENT.values(), ids=DIFFERENT)
def test_no_duplicates(a, b):
    assert match(a, b, 0.7) is None
    assert match(b, a, 0.7) is None


def test_what_is_compared_hashes_that_never_change_and_a_complete_reply() -> None:
    for text, language, compared in table("curation", "compared_texts"):
        assert plain(text, language) == compared
    assert (text_hash("你好"), int(signature("hello there", 3).sum(dtype="u8"))) == (
        15910808664728542293,
        50579719761,
    )
    # A complete reply ends like a sentence.
    ends = [
        "Good night.",
        "“晚安”",
        "Good night 🌙",
        "嗯……",
        "I think that the",
        "我觉得",
        "其次，",
    ]
    assert [quality(dialogue("a", "Hello", end))[2] for end in ends] == [False] * 4 + [True] * 3
    assert all(quality(dialogue("a", "Hello.", "Yes?", end))[2] for end in ends)  # the user's


def test_many_texts_with_one_phrase_give_few_pairs_each():
    made = [dialogue(f"d{n}", f"{words('frame', 60)} {n:05}", words(n, 9)) for n in range(600)]
    part = map_part(made, SplitIndex([], 0.8))
    first, second = find_pairs(MappedDialogues([part]))
    assert (first < second).all()
    assert 0 < len(first) <= 64 * len(made)


REVIEW = {"safety": {"action": "review"}}


def test_the_better_of_two_is_decided_by_safety_turns_an_end_a_longer_reply_or_its_id() -> None:
    for better, worse in (
        (
            dialogue("b", "Hi.", "Yes."),
            dialogue("a", "Hi.", "Yes.", "And?", "No.", metadata=REVIEW),
        ),
        (
            dialogue("b", "Hi.", "Yes", "And?", "No"),
            dialogue("a", "Hi.", "A much longer reply is here."),
        ),
        (dialogue("b", "Hi.", "Yes."), dialogue("a", "Hi.", "Yes, I have been meaning to")),
        (
            dialogue("b", "Hi.", "Yes, go on."),
            dialogue("a", "Hi, this is how it all began, listen.", "No."),
        ),
        (dialogue("a", "Hi.", "Yes."), dialogue("b", "Hi.", "Yes.")),
    ):
        assert quality(better) < quality(worse)


MINI = load_split("mini@1")
CHATS = [s for s in MINI.scenarios if s.subtask == "dialogue_base"]
INDEX = SplitIndex([MINI], 0.8)


def find_items(*dialogues):
    return [INDEX.find(one) for one in dialogues]


def holding(scenario, share=0.0, reference="nothing of it"):
    """A longer dialogue from which a scenario's history could be extracted."""
    before = (Turn("user", words("before", 12)), Turn("companion", words("reply", 12)))
    own = (Turn(turn.role, edited(turn.content, share)) for turn in scenario.turns)
    after = (Turn("companion", reference), Turn("user", words("after", 12)))
    return Dialogue("held", scenario.language, (*before, *own, *after))


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_histories_are_found_in_longer_dialogues(share):
    held = find_items(*(holding(scenario, share) for scenario in CHATS))
    assert [f and f["of"] for f in held] == [scenario.id for scenario in CHATS]
    assert all(
        f["on"] == "inputs" and f["split"] == "mini" and f["similarity"] >= 0.8 for f in held
    )


@pytest.mark.parametrize("scenario", CHATS, ids=lambda s: s.id)
def test_a_reference_is_found_as_a_reply_and_within_one(scenario):
    plain, longer = (
        dialogue("d", words("u", 10), text, language=scenario.language)
        for text in (scenario.reference, f"{words('x', 8)}. {scenario.reference}")
    )
    assert [f and (f["of"], f["on"]) for f in find_items(plain, longer)] == [
        (scenario.id, "reference")
    ] * 2


WRITTEN = {
    "zh-Hans": "妈妈又来电话，问我为什么还没结婚。我说工作很忙，挂了以后在厨房坐了很久，灯也没开。",
    "zh-Hant": "媽媽又來電話，問我為什麼還沒結婚。我說工作很忙，掛了以後在廚房坐了很久，燈也沒開。",
}


@pytest.mark.parametrize("of_item", WRITTEN)
@pytest.mark.parametrize("of_dialogue", WRITTEN)
def test_an_item_is_found_in_the_other_script(of_item: str, of_dialogue: str) -> None:
    """Of 16 test items in traditional characters 2 were found; one reader learns the item from either script."""
    scenario = next(s for s in CHATS if s.language == "zh")
    inputs = {"history": (Turn("user", WRITTEN[of_item]),)}
    item = replace(scenario, inputs=inputs, references=("好。",))
    index = SplitIndex([replace(MINI, scenarios=(item,))], 0.8)
    evidence = index.find(dialogue("d", WRITTEN[of_dialogue], "嗯。", language="zh"))
    assert evidence is not None
    assert evidence["similarity"] == 1.0


def test_a_dialogue_in_both_scripts_is_a_duplicate(tmp_path: Path) -> None:
    """Both stayed, one for each script."""
    first = dialogue("a", WRITTEN["zh-Hans"], "我在听，你说。", language="zh")
    second = dialogue("b", WRITTEN["zh-Hant"], "我在聽，你說。", language="zh")
    staying, removed = deduplicated(tmp_path, [first, second])
    assert set(staying) == {"a"}
    assert removed["b"]["reason"] == "duplicate"


def test_what_is_searched_where() -> None:
    second = "The other good reply tells of the kiln, the wet clay and the long way home by tram."
    scenario = replace(CHATS[0], references=("Yes.", second))
    one = SplitIndex([replace(MINI, scenarios=(scenario,))], 0.8).find(
        dialogue("d", "Hello.", second)
    )
    assert one == {"of": scenario.id, "split": "mini", "on": "reference", "similarity": 1.0}
    # A reference is searched in replies alone.
    assert find_items(
        dialogue("d", CHATS[0].reference, words("r", 10), language=CHATS[0].language)
    ) == [None]
    # Unrelated dialogues contain no item.
    hostile = ["", "?", "🙂🙂", "\0", "\ud800", "a b " * 50_000]
    texts = [(text or "-", text or "-") for text in hostile]
    texts += [(words("u", 10), find_language(language).null_memory) for language in ("en", "zh")]
    for language in ("en", "zh"):
        assert not any(
            find_items(
                *(dialogue(str(n), *pair, language=language) for n, pair in enumerate(texts))
            )
        )
    # A run of turns is found anywhere in its order.
    scenario = next(s for s in CHATS if len(s.turns) == 5)
    said = [turn.content for turn in scenario.turns]
    whole = [*said, "x"]
    swapped = [*reversed(said), "x"]
    held = find_items(
        dialogue("a", words("b", 9), "Oh.", *whole, language=scenario.language),
        dialogue("b", *swapped, language=scenario.language),
    )
    assert (held[0] or {})["similarity"] == 1.0
    assert held[1] is None


def split_of(*openings: str) -> Split:
    scenario = next(s for s in CHATS if s.language == "en")
    made = [
        replace(
            scenario, id=f"i{n:04}", inputs={"history": (Turn("user", text),)}, references=("Yes.",)
        )
        for n, text in enumerate(openings)
    ]
    return replace(MINI, name="many", scenarios=tuple(made))


@pytest.mark.parametrize("count", [1, 51, 400])
def test_an_input_of_many_items_is_found(count):
    """The shingles of more than 50 items were ignored, so the exact copy of a common input was not found."""
    text = words("asked by all", 15)
    index = SplitIndex([split_of(*[text] * count)], 0.8)
    copies = [
        dialogue("a", text, "No."),
        dialogue("b", edited(text, 0.1), "No."),
        dialogue("c", "Well. " + text),
    ]
    found = [index.find(copy) for copy in copies]
    assert [held and held["of"] for held in found] == ["i0000"] * 3
    assert [held["similarity"] for held in found if held][::2] == [1.0, 1.0]


def test_a_text_of_common_phrases_is_found():
    """Each text has two halves, and more than fifty others share one of them with it."""
    asked = [f"{words(a, 6)} {words(-b, 6)}" for a in range(1, 53) for b in range(1, 53)]
    index = SplitIndex([split_of(*asked)], 0.8)
    for share in (0.02, 0.05, 0.1):
        copies = [
            dialogue(f"d{n}", edited(text, share), "No.") for n, text in enumerate(asked[::20])
        ]
        missed = [copy.id for copy in copies if index.find(copy) is None]
        assert not missed, share
