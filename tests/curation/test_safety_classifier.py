"""The bundled classifier of offensive language. Its figures: tools/train_safety.py --check."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.curation.safety_classifier import DATA, Features, _windows, load, read
from h2htalk.data.dialogue import LANGUAGES, Language
from h2htalk.errors import DataError

SMALL = Features(bits=10, characters=(1, 2), words=(1, 1), spaces=True, window=20)

CRUEL: dict[Language, list[str]] = {
    "en": [
        "You are a worthless idiot, get lost.",
        "shut up you moron",
        "You stupid bitch, nobody wants you here.",
    ],
    "zh": ["你真是个废物，滚远点。", "你这个贱人，怎么不去死。", "河南人都是骗子，没一个好东西。"],
}
HARMLESS: dict[Language, list[str]] = {
    "en": [
        "I feel so fucking tired of everything.",
        "My mother called me a worthless idiot and I cried all night.",
        "It is wrong to say that immigrants are criminals.",
        "I'm such an idiot, I forgot her birthday.",
        "My best friend is a Muslim and we cook together on Fridays.",
        "Thank you for listening.",
    ],
    "zh": [
        "操，我真的好累，撑不下去了。",
        "我妈骂我是废物，我哭了一晚上。",
        "不该因为一个人的籍贯就看不起他。",
        "我怎么这么笨，又忘了她的生日。",
        "我的室友是新疆人，教我跳舞。",
        "谢谢你听我说这些。",
    ],
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_cruelty_to_a_person_stands_above_one_half_and_distress_below_high(language: Language) -> None:
    """Known weak spot, not shown here: text that repeats a prejudice in order to argue against it is often flagged."""
    model = load(language)
    assert min(model.scores(CRUEL[language])) > 0.5
    assert max(model.scores(HARMLESS[language])) < model.high


@pytest.mark.parametrize("language", LANGUAGES)
def test_thresholds_leave_an_undecided_band(language: Language) -> None:
    model = load(language)
    assert 0 < model.low < 0.5 < model.high < 1


def test_a_short_cruelty_is_not_hidden_in_a_long_kind_message() -> None:
    model = load("zh")
    kind, cruel = (
        "今天天气很好，我们去公园散步吧。",
        "你就是个没用的废物，长得又丑又蠢，谁看见你都恶心，滚远点，贱人。",
    )
    assert model.scores([kind * 200])[0] < model.low
    assert model.scores([kind * 200 + cruel * 4 + kind * 200])[0] > 0.5


@pytest.mark.parametrize(
    "disguise", ["你 真 是 个 废 物，滚", "你真是个廢物，滾", "你真是个\u200b废\u200b物，滚"]
)
def test_spaces_traditional_characters_and_what_cannot_be_seen_change_nothing(disguise: str) -> None:
    plain, other = load("zh").scores(["你真是个废物，滚", disguise])
    assert other == pytest.approx(plain)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("text", ["", " \n", "\u200b\u202e", "😂", "\ud800", "\x00", "1"])
def test_hostile_and_empty_texts_get_a_probability(language: Language, text: str) -> None:
    [score] = load(language).scores([text])
    assert 0 <= score <= 1
    assert score == 0 or text.strip("\u200b\u202e \n\x00")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=8), st.randoms())
def test_a_score_depends_on_its_text_alone(texts: list[str], random: object) -> None:
    model = load("en")
    together = model.scores(texts)
    assert together == [model.scores([text])[0] for text in texts]
    assert model.scores(texts[::-1]) == together[::-1]


@given(st.text("ab 。.\n", max_size=200), st.integers(2, 30))
def test_windows_hold_every_character_once_and_none_is_too_long(text: str, limit: int) -> None:
    windows = list(_windows(text, limit))
    assert "".join(windows) == text
    assert max(map(len, windows)) <= limit


def test_windows_end_with_a_sentence_where_they_can() -> None:
    assert list(_windows("one two. three four. five", 12)) == ["one two.", " three four.", " five"]


def test_buckets_are_distinct_and_those_of_the_window_alone() -> None:
    owners, buckets = SMALL.buckets(["abab", "", "ba"])
    pairs = list(zip(owners.tolist(), buckets.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert set(owners.tolist()) == {0, 1, 2}
    _, alone = SMALL.buckets(["ba"])
    assert [bucket for owner, bucket in pairs if owner == 2] == alone.tolist()
    assert (np.diff(owners) >= 0).all()


def test_two_megabytes_pass_in_linear_time() -> None:
    started = time.process_time()
    load("en").scores(["you idiot " * 200_000])
    load("zh").scores(["废" * 700_000])
    assert time.process_time() - started < 6


def test_the_bundled_weights_are_small_and_read_quickly_without_pickle() -> None:
    assert sum(path.stat().st_size for path in DATA.glob("*.npz")) < 2_000_000
    for language in LANGUAGES:
        started = time.process_time()
        read(DATA, language)
        assert time.process_time() - started < 0.3


@pytest.mark.parametrize("damage", ["missing", "truncated", "manifest", "shape"])
def test_damaged_files_are_one_line_of_advice(tmp_path: Path, damage: str) -> None:
    for name in ("manifest.json", "offensive_en.npz"):
        shutil.copy(DATA / name, tmp_path / name)
    weights, manifest = tmp_path / "offensive_en.npz", tmp_path / "manifest.json"
    if damage == "missing":
        weights.unlink()
    elif damage == "truncated":
        weights.write_bytes(weights.read_bytes()[:5000])
    elif damage == "manifest":
        manifest.write_text(json.dumps({"en": {}}), encoding="utf-8")
    else:
        np.savez_compressed(weights, scales=np.zeros(4, np.uint8), weights=np.zeros(4, np.int8))
    with pytest.raises(DataError, match="install h2htalk again"):
        read(tmp_path, "en")


def test_scoring_needs_neither_scikit_learn_nor_scipy() -> None:
    code = (
        "import sys; from h2htalk.curation.safety_classifier import load; load('zh').scores(['a']); "
        "print([name for name in ('sklearn', 'scipy', 'spacy', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_manifest_says_what_the_weights_were_made_from() -> None:
    manifest = json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))
    for language, entry in manifest.items():
        assert f"texts_{language}.jsonl" in entry["training"]["sha256"]
        assert not any("esconv" in name for name in entry["training"]["sha256"])
        assert entry["figures"]


def test_two_thousand_cold_messages_a_second_and_nine_in_ten_right(shared_data: Path) -> None:
    import csv

    with (shared_data / "safety/cold_dev.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [(row["TEXT"], row["label"] == "1") for row in csv.DictReader(file)]
    model = load("zh")
    started = time.process_time()
    scores = model.scores([text for text, _ in rows])
    assert len(rows) / (time.process_time() - started) >= 2000
    for border, floor in ((0.5, 0.90), (model.high, 0.87)):
        right = sum((score >= border) == label for score, (_, label) in zip(scores, rows, strict=True))
        assert right / len(rows) >= floor
