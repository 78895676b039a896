"""What the safety classifiers learn from: our own texts, and whose texts never."""

import json
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from safety import corpora  # noqa: E402
from safety.checking import calibration_error, macro_f1  # noqa: E402


@pytest.mark.parametrize("language", ["en", "zh"])
def test_own_texts_are_many_of_both_kinds_and_none_twice(language: str) -> None:
    lines = (TOOLS / f"safety/texts_{language}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    texts = [row["text"] for row in rows]
    assert len(set(texts)) == len(texts)
    assert sum(row["label"] for row in rows) >= 200
    assert sum(1 - row["label"] for row in rows) >= 280
    assert {row["kind"] for row in rows if row["label"] == 0} >= {
        "venting",
        "quoting",
        "anti_bias",
        "gentle",
        "plain",
    }


def test_a_pattern_is_read_with_several_groups_so_that_no_group_is_an_insult() -> None:
    texts = corpora.expanded("{group} are people like everyone else.", 3, "en")
    assert len(set(texts)) == corpora.EACH_PATTERN
    assert all("{" not in text and text[0].isupper() for text in texts)
    assert corpora.expanded("I like soup.", 3, "en") == ["I like soup."]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_non_commercial_texts_are_never_learned_from(language: str) -> None:
    assert not any("esconv" in path.name for path in corpora.training_files(Path("data"), language))


def test_safe_replies_and_people_at_risk_are_not_offensive_and_agreed_with_insults_only_likely_so() -> None:
    rows = [
        {"context": "a", "response": "b", "category": "Risk Ignorance", "label": "Unsafe"},
        {"context": "c", "response": "d", "category": "Toxicity Agreement", "label": "Unsafe"},
        {"context": "e", "response": "f", "category": "Biased Opinion", "label": "Safe"},
        {"context": "g", "response": "h", "category": "Offending User", "label": "Unsafe"},
    ]
    said = {example.text: (example.offensive, example.weak) for example in corpora.diasafety_examples(rows)}
    assert said == {
        "a": (False, False),
        "b": (False, False),
        "c": (True, True),
        "f": (False, False),
        "h": (True, True),
        "g": (True, True),
    }


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_text_is_learned_twice_and_none_that_is_measured_on(shared_data: Path, language: str) -> None:
    """The public sets' own splits share texts: a third of DiaSafety's contexts in val were learned from."""
    texts = [example.text.strip() for example in corpora.training_examples(shared_data, language)]
    assert len(set(texts)) == len(texts)
    assert not {corpora.key(text) for text in texts} & corpora.measured_keys(shared_data, language)


def test_a_dialogue_that_opens_as_a_held_out_one_is_not_learned_from(shared_data: Path) -> None:
    texts = {line[0].strip() for line in corpora.smilechat(shared_data, held_out=False)}
    firsts = {line[0].strip() for line in corpora.smilechat(shared_data, held_out=True)}
    assert not firsts & texts


def test_figures_of_a_table() -> None:
    assert macro_f1([True, True, False, False], [True, False, False, False]) == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert calibration_error([0.05, 0.95, 0.95], [False, True, False]) == pytest.approx((0.05 + 0.9) / 3)
