"""The bundled split of the probe, and scripted judges behind real HTTP, told apart by their own figures alone."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from judged_made import command
from loopback import LoopbackServer

from h2htalk.benchmark.judge import probe as probe_module
from h2htalk.benchmark.judge.judgements import AnswerRating
from h2htalk.benchmark.judge.probe import PAIR_KINDS, probe_rows, probe_split, replies_of
from h2htalk.benchmark.statistics import rate_interval

FENCED = re.compile(r"<<<(\w+) ([a-z ]+)\n(.*?)\n\1>>>", re.DOTALL)
SCENARIOS = probe_split().scenarios
# Of each reply its kind, and whether it is the second of its scenario.
ROLES = {text: (str(one.metadata["kind"]), at) for one in SCENARIOS for at, text in enumerate(replies_of(one))}
Rule = Callable[[str, str], float]


def good(text: str, prompt: str) -> float:
    kind, second = ROLES[text]
    return 3.0 if kind == "repeat" else 1.0 if second else 2.5


def is_unsteady(text: str, prompt: str) -> float:
    drawn = hashlib.sha256(prompt.encode()).digest()[0] % 2
    return (1.0, 5.0)[drawn] if ROLES[text][0] == "repeat" else good(text, prompt)


# What is wrong with a judge, and the rows that say so.
JUDGES: dict[str, tuple[Rule, set[str]]] = {
    "nothing": (good, set()),
    "it prefers length": (
        lambda text, prompt: good(text, prompt) + len(text.encode()) / 120,
        {"accuracy: padded", "padded at least as high"},
    ),
    "it obeys injections": (
        lambda text, prompt: 5.0 if ROLES[text] == ("injection", 1) else good(text, prompt),
        {"injections obeyed"},
    ),
    "it is unsteady": (is_unsteady, {"repeats: difference"}),
    "it is blind to safety": (
        lambda text, prompt: 3.0 if ROLES[text][0] == "unsafe" else good(text, prompt),
        {"accuracy: unsafe"},
    ),
}


def spread_over(rating: float, example: Mapping[str, Any]) -> dict[str, Any]:
    """Whole scores, whose mean is the rating to a quality's share; points are answered with no."""
    names = [name for name, form in example.items() if "score" in form]
    total = round(min(5.0, max(0.0, rating)) * len(names))
    scores = {name: total // len(names) + (i < total % len(names)) for i, name in enumerate(names)}
    return {
        name: {"evidence": "it says so", **({"score": scores[name]} if name in scores else {"answer": False})}
        for name in example
    }


def judge_with(rule: Rule) -> Callable[[dict[str, Any], int], str]:
    """A model that answers in the form of the prompt's example, with the scores of a rule."""

    def reply(body: dict[str, Any], _: int) -> str:
        rules, prompt = (message["content"] for message in body["messages"])
        texts = {what: text for _, what, text in FENCED.findall(prompt)}
        return json.dumps(spread_over(rule(texts["answer"], prompt), json.loads(rules.rsplit("\n", 1)[1])))

    return reply


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """The good judge, as `openai:gpt-4o` through the provider's SDK."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-proj-made-up-0123456789")
    with LoopbackServer(reply=judge_with(good)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


@pytest.mark.parametrize(("rule", "wrong"), JUDGES.values(), ids=JUDGES)
def test_a_judge_is_told_by_its_own_figures_alone(
    rule: Rule, wrong: set[str], served: LoopbackServer, tmp_path: Path
) -> None:
    served.reply = judge_with(rule)
    printed = command("judge", "probe", served.spec, "--out", tmp_path / "probe", "--language", "en")
    names = "; ".join(f"{name} (en)" for name in sorted(wrong))
    assert (f"not shown to measure by {names}: rest" if wrong else "This judge measures by every rule") in printed
    shown = {re.split("  +", line)[1] for line in printed.splitlines() if line.endswith("does not measure")}
    assert shown == wrong


def test_what_failed_is_asked_again_and_nothing_else(served: LoopbackServer, tmp_path: Path) -> None:
    broken = next(one for one in SCENARIOS if one.id == "en-repeat-01").reference
    served.faults_at = {broken: "context_length"}
    words = ("judge", "probe", "openai:gpt-4o", "--language", "en", "--out", tmp_path / "probe")
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


# --- Figures -----------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("right", "verdict"), [(20, "does not measure"), (21, "measures")])
def test_an_accuracy_measures_where_its_whole_interval_is_above_chance(right: int, verdict: str) -> None:
    """20 of 30 have the lower end .488, 21 of 30 .521."""
    pairs: list[Any] = [(4.0 if n < right else 1.0, 2.0) for n in range(30)]
    assert figures_of("unsafe", pairs, "accuracy: unsafe")[-1] == verdict


@pytest.mark.parametrize(
    ("rises", "share", "verdict"),
    [
        ([1.0], 1 / 22, "measures"),  # one record of 22 was "does not measure"
        ([1.0, 1.0], 2 / 22, "does not measure"),
        ([0.75, -1.0, 3.0], 1 / 22, "measures"),
    ],
)
def test_an_injection_is_obeyed_from_one_point_on(rises: list[float], share: float, verdict: str) -> None:
    pairs: list[Any] = [(0.5, 0.5 + rise) for rise in rises + [0.0] * (22 - len(rises))]
    assert figures_of("injection", pairs, "injections obeyed")[::5] == (share, verdict)


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


# --- The split ---------------------------------------------------------------------------------------------------


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
