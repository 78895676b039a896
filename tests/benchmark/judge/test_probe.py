"""The bundled split of the probe, and scripted judges behind real HTTP, told apart by their own figures alone."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from judged_made import command, scripted_judge
from loopback import LoopbackServer

from h2htalk.benchmark.judge import probe as probe_module
from h2htalk.benchmark.judge.judgements import AnswerRating
from h2htalk.benchmark.judge.probe import PAIR_KINDS, probe_rows, probe_split, replies_of, verdict
from h2htalk.benchmark.statistics import rate_interval

SCENARIOS = probe_split().scenarios
Rule = Callable[[str, int, int], float]


def good(kind: str, second: int, _: int) -> float:
    """The rating of a reply of this kind, from whether it is the second and its length."""
    return 3.0 if kind == "repeat" else 1.0 if second else 2.5


# What is wrong with a judge, and the rows that say so.
JUDGES: dict[str, tuple[Rule, set[str]]] = {
    "nothing": (good, set()),
    "it prefers length": (
        lambda kind, second, length: good(kind, second, 0) + length / 120,
        {"accuracy: padded", "padded at least as high"},
    ),
    "it obeys injections": (
        lambda kind, second, _: 5.0 if (kind, second) == ("injection", 1) else good(kind, second, 0),
        {"injections obeyed"},
    ),
    "it is unsteady": (
        # Its repeats differ by 4: orders that seem to raise R by 1.5 are within its own noise.
        lambda kind, second, length: {"repeat": 1.0 + 4 * second * (length % 2), "injection": 2.5 + 1.5 * second}.get(
            kind, good(kind, second, 0)
        ),
        {"repeats: difference"},
    ),
    "it is blind to safety": (
        lambda kind, second, _: 3.0 if kind == "unsafe" else good(kind, second, 0),
        {"accuracy: unsafe"},
    ),
}


@pytest.mark.parametrize(("rule", "wrong"), JUDGES.values(), ids=JUDGES)
def test_a_judge_is_told_by_its_own_figures_alone(rule: Rule, wrong: set[str]) -> None:
    own = [one for one in SCENARIOS if one.language == "en"]
    ratings = {
        (one.id, at): AnswerRating(min(5.0, rule(str(one.metadata["kind"]), at, len(text.encode()))))
        for one in own
        for at, text in enumerate(replies_of(one))
    }
    rows: list[Any] = [*probe_rows("en", own, ratings)]
    assert {row[1] for row in rows if row[-1] == "does not measure"} == wrong
    names = "; ".join(f"{row[1]} (en)" for row in rows if row[1] in wrong)
    assert (f"not shown to measure by {names}: rest" if wrong else "This judge measures by every rule") in verdict(rows)


def form_of(body: dict[str, Any], _: int) -> str:
    """A judge that replies with the example of its prompt: 3 everywhere."""
    return str(body["messages"][0]["content"]).rsplit("\n", 1)[1]


def test_what_failed_is_asked_again_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-made-up-0123456789")
    broken = next(one for one in SCENARIOS if one.id == "en-repeat-01").reference
    words = ("judge", "probe", "openai:gpt-4o", "--language", "en", "--out", tmp_path / "probe")
    with LoopbackServer(reply=form_of) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.url)
        served.faults_at = {broken: "context_length"}
        dry = command(*words, "--dry-run")
        assert re.fullmatch(r"openai:gpt-4o: at most 442 calls, about .* US dollars \(prices of .*\)\n", dry)
        assert (served.requests, list(tmp_path.iterdir())) == (0, [])
        shown = command(*words, code=3)
        assert "the judgements of 2 replies failed; the same command sends only what is missing" in shown
        first = served.counts.copy()
        served.mend()
        again = json.loads(command(*words, "--format", "json"))
        asked = served.counts - first
        assert asked.total() == 2
        assert all(broken in json.loads(body)["messages"][1]["content"] for body in asked)
    rows = {row["figure"]: row for row in again["rows"]}
    assert rows["repeats: difference"] == rows["repeats: difference"] | {"value": 0.0, "verdict": "measures"}
    command(*words[:3], "--out", tmp_path / "probe", code=2)  # of another language's records


def test_what_cannot_be_read_is_shown_and_the_verdict_comes_last(tmp_path: Path) -> None:
    judge = scripted_judge(tmp_path / "judge.jsonl", {}, "I cannot.")
    shown = command("judge", "probe", judge, "--language", "en", "--out", tmp_path / "probe", code=3)
    note, last = shown.splitlines()[-2:]
    assert note.startswith("the first reply that is malformed_output: ")
    assert note.endswith("'I cannot.'")
    assert last.startswith("This judge is not shown to measure by accuracy: shortened (en); ")


def figures_of(kind: str, pairs: list[tuple[float | None, float | None]], name: str) -> tuple[Any, ...]:
    """A figure of scenarios with these ratings: value, low, high, n, of, verdict."""
    own = [one for one in SCENARIOS if one.language == "en" and one.metadata["kind"] == kind][: len(pairs)]
    ratings = {
        (one.id, at): AnswerRating(rating)
        for one, pair in zip(own, pairs, strict=True)
        for at, rating in enumerate(pair)
    }
    (found,) = (row[2:] for row in probe_rows("en", own, ratings) if row[1] == name)
    return found


def test_a_tie_counts_half_and_an_unscored_pair_is_left_out() -> None:
    pairs = [(4.0, 2.0), (3.0, 3.0), (1.0, 2.0), (5.0, 1.0), (4.0, None), (None, 2.0)]
    expected = (2.5 / 4, *rate_interval(2.5, 4), 4, 6, "does not measure")
    assert figures_of("padded", pairs, "accuracy: padded") == figures_of("padded", pairs, "accuracy: all") == expected
    # Of the length: the padded reply is the worse one; a tie is as high.
    assert figures_of("padded", pairs, "padded at least as high")[0] == 2 / 4
    assert figures_of("padded", pairs, "unscored")[0] == 2 / 12


@pytest.mark.parametrize(
    ("kind", "name", "pairs", "expected"),
    [
        # An accuracy measures where its whole interval is above chance: the lower ends are .488 and .521.
        ("unsafe", "accuracy: unsafe", [(4, 2)] * 20 + [(1, 2)] * 10, (20 / 30, "does not measure")),
        ("unsafe", "accuracy: unsafe", [(4, 2)] * 21 + [(1, 2)] * 9, (21 / 30, "measures")),
        # An injection is obeyed from one point on; one record of 22 was "does not measure".
        ("injection", "injections obeyed", [(0.5, 1.5)] * 2 + [(1, 1)] * 20, (2 / 22, "does not measure")),
        ("injection", "injections obeyed", [(0.5, 1.25), (1, 0), (0.5, 3.5)] + [(1, 1)] * 19, (1 / 22, "measures")),
    ],
)
def test_a_figure_measures_within_its_rule(kind: str, name: str, pairs: Any, expected: tuple[float, str]) -> None:
    assert figures_of(kind, pairs, name)[::5] == expected


@pytest.mark.parametrize(
    ("sign", "passed"),
    [(1, {"shortened": 1.0, "unsafe": 0.63}), (-1, {"padded": 1.0, "off_persona": 0.89, "all": 0.57})],
)
def test_what_length_alone_gets_right_is_what_the_docs_say(sign: int, passed: dict[str, float]) -> None:
    texts = {(one.id, at): text for one in SCENARIOS for at, text in enumerate(replies_of(one))}
    ratings = {key: AnswerRating(sign * len(text) / 100) for key, text in texts.items()}
    rows: list[Any] = [row[1:] for row in probe_rows("all", SCENARIOS, ratings) if row[-1] == "measures"]
    right = {name.removeprefix("accuracy: "): round(value, 2) for name, value, *_ in rows if "accuracy" in name}
    assert right == passed


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_split_holds_enough_of_each_kind_and_no_reply_twice(language: str) -> None:
    own = [one for one in SCENARIOS if one.language == language]
    counts = Counter(one.metadata["kind"] for one in own)
    assert min(counts[kind] for kind in (*PAIR_KINDS, "repeat")) >= 30
    assert counts["injection"] >= 20
    replies = [text for one in own for text in {*replies_of(one)}]
    assert len(set(replies)) == len(replies) == 2 * len(own) - counts["repeat"]
    for one in own:
        if (kind := one.metadata["kind"]) in ("padded", "shortened"):
            assert (len(replies_of(one)[1]) > len(one.reference)) is (kind == "padded"), one.id


def test_two_readings_confirm_every_pair() -> None:
    with (Path(probe_module.__file__).parent / "probe_split" / "readings.csv").open(newline="") as file:
        readings = {row["id"]: (row["reader_1"], row["reader_2"]) for row in csv.DictReader(file)}
    assert readings == {one.id: ("better", "better") for one in SCENARIOS if one.metadata["kind"] in PAIR_KINDS}
