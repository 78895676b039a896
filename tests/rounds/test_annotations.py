"""Annotations, annotators, questions, settings: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from h2htalk.errors import ConfigError, RoundError
from h2htalk.rounds.annotations import Annotation, changes, latest
from h2htalk.rounds.annotators import annotator_id, merge_annotators, read_annotators
from h2htalk.rounds.questions import QUESTIONS, questions_for
from h2htalk.rounds.settings import RoundSpec, make_spec

ITEMS, ANNOTATORS = st.sampled_from("ab"), st.sampled_from("xyz")
VALUES = st.none() | st.sampled_from(["keep", "drop"]) | st.integers(1, 5)
ASKED = st.sampled_from(["keep", "quality"])
ANSWERS = st.builds(Annotation, st.just("r"), ITEMS, ANNOTATORS, ASKED, VALUES, st.just("2026"))


@given(st.lists(ANSWERS), st.lists(ANSWERS))
def test_storing_changes_gives_what_the_platform_holds(stored: list[Annotation], seen: list[Annotation]) -> None:
    new = changes({answer.key: answer for answer in stored}, seen)
    now = {answer.key: answer for answer in seen}
    kept = {key: answer for key, answer in latest(stored).items() if key not in now}
    held = kept | {key: answer for key, answer in now.items() if answer.value is not None}
    after = latest([*stored, *new])
    assert {key: answer.value for key, answer in after.items()} == {key: answer.value for key, answer in held.items()}
    assert changes({answer.key: answer for answer in [*stored, *new]}, seen) == []


SALT = b"salt"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_lists_of_annotators_are_read_and_merged(tmp_path: Path) -> None:
    path = write(tmp_path / "v.csv", '\ufeffname,languages,crisis\nana,en zh,no\n李雷,"zh,en",\nbo,en,YES\n')
    annotators = read_annotators(path, SALT)
    assert [(v.name, v.languages, v.crisis) for v in annotators] == [
        ("ana", ("en", "zh"), False), ("李雷", ("zh", "en"), False), ("bo", ("en",), True),
    ]  # fmt: skip
    for v in annotators:
        assert v.name not in v.id == annotator_id(v.name, SALT) != annotator_id(v.name, b"other")
    # `bo` and `BO` had spreadsheets of the same name on many file systems.
    path = tmp_path / "v.csv"
    known = read_annotators(write(path, "name,languages\nana,en\nbo,en\nconrad,en\n"), SALT)
    more = read_annotators(write(path, "name,languages,crisis\nbo,zh,no\ncy,en,\n"), SALT)
    both = merge_annotators(known, more, path)
    assert list(both) == ["ana", "bo", "conrad", "cy"]
    assert (both["bo"].languages, both["bo"].crisis) == (("zh",), False)
    with pytest.raises(RoundError, match="'BO' and 'bo' differ only in case"):
        merge_annotators(known, read_annotators(write(path, "name,languages\nBO,en\n"), SALT), path)


@pytest.mark.parametrize(("text", "message"), table("rounds", "invalid_lists"))
def test_invalid_lists(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RoundError, match=message):
        read_annotators(write(tmp_path / "v.csv", text), SALT)


@pytest.mark.parametrize(("text", "languages", "crisis"), table("rounds", "lists_of_annotators"))
def test_separators_spellings_and_consent(tmp_path: Path, text: str, languages: list[str], crisis: bool) -> None:
    (annotator,) = read_annotators(write(tmp_path / "v.csv", text), SALT)
    assert (annotator.name, [*annotator.languages], annotator.crisis) == ("ana", languages, crisis)


LABEL, RATING, SEVERAL = QUESTIONS["crowd"][1], QUESTIONS["crowd"][2], QUESTIONS["safety"][2]


def test_values_and_questions() -> None:
    assert [RATING.read(raw) for raw in (4, 4.0, " 4 ")] == [4] * 3
    for raw in (True, 0, 4.5, "", None, [4], float("nan"), "9" * 5000):
        with pytest.raises(RoundError, match="choose from 1, 2, 3, 4, 5"):
            RATING.read(raw)
    assert LABEL.read("keep") == "keep"
    for raw in ("KEEP", None, ["keep"]):
        with pytest.raises(RoundError, match="choose from keep, drop"):
            LABEL.read(raw)
    assert SEVERAL.read(["privacy", "boundary", "privacy"]) == ("boundary", "privacy")
    assert SEVERAL.read("privacy") == ("privacy",)
    with pytest.raises(RoundError, match="is not valid for violations"):
        SEVERAL.read(["privacy", "rude"])
    # Adjudications ask for a label or a rating.
    assert questions_for("adjudication", [(), ()])[0].name == "rating"
    question = questions_for("adjudication", [("keep", "drop"), ("drop", "none")])[0]
    assert (question.name, question.labels) == ("label", ("drop", "keep", "none"))
    for mixed in ([("keep", "drop"), ()], [("keep",), ("keep", "drop")]):
        with pytest.raises(RoundError, match="open two rounds"):
            questions_for("adjudication", mixed)
    # Other kinds ignore the labels of items.
    assert questions_for("crowd", [("keep", "drop")]) == QUESTIONS["crowd"]


def test_options_override_the_settings_file(tmp_path: Path) -> None:
    path = tmp_path / "round.toml"
    text = 'overlap = 5\nseed = 3\nannotators = "people.csv"\n[adaptive]\non = true\n[care]\nsession_items = 10\n'
    path.write_text(text)
    spec = make_spec("crowd", "mini@1", {"overlap": 7}, path)
    assert (spec.overlap, spec.seed, spec.adaptive.on, spec.care.session_items) == (7, 3, True, 10)
    assert spec.annotators == str(tmp_path / "people.csv")
    assert RoundSpec.from_dict(spec.to_dict(), "x") == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("over_lap = 3", "over_lap: no such field; did you mean 'overlap'"),
        ("[care]\ncrisis_share = 1.5", "care.crisis_share: must be 1 or less"),
        ("overlap = 2\n[adaptive]\non = true", "adaptive.minimum is 3, above the overlap of 2"),
    ],
)
def test_invalid_settings(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "round.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        make_spec("crowd", "mini@1", {}, path)
