"""The variance of a judged run: components of what was judged in full, costs of its logs, and the design."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import h2htalk
from judged_made import LEVELS, answered_run, item_name, verdict
from splits_made import write_split

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.judge.judge_run import judge_run
from h2htalk.benchmark.judge.judgements import answer_id, read_judge
from h2htalk.benchmark.judge.settings import JudgeSpec
from h2htalk.benchmark.judge.variance import judge_variance
from h2htalk.benchmark.load_run import load_run
from h2htalk.benchmark.run_costs import costs_folder
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.statistics.variance_components import cheapest, variance_components
from h2htalk.chat.calls import Bound
from h2htalk.chat.costs.ledger import Ledger
from h2htalk.chat.costs.prices import load_prices
from h2htalk.data.files import write_jsonl
from h2htalk.data.responses import Response, Usage
from h2htalk.errors import ConfigError

ITEMS = 8
NONE: dict[str, float | None] = {}
Score = Callable[[int, int, int], int]


def score(item: int, sample: int, number: int) -> int:
    return (2 * item + sample * (item % 3) + number * (item % 2)) % 6


def judged_run(
    folder: Path, samples: int, judgements: int, *, bad: int = -1, silent: int = -1, items: int = ITEMS
) -> Path:
    """A judged run; a judgement of the item `bad` cannot be read, the second answer to `silent` failed."""
    write_split(folder / "split", items, LEVELS)
    failure = {"failure": {"reason": "timeout", "message": "no answer"}}
    answers = [
        {"id": item_name(n), "sample": k, **(failure if (n, k) == (silent, 1) else {"text": f"Day {n}, {k}."})}
        for n in range(items)
        for k in range(samples)
    ]
    write_jsonl(folder / "answers.jsonl", answers)
    common = {"embedder": "none", "baselines": False, "samples": samples, "temperature": 0.7}
    out = folder / "run"
    evaluate(
        EvaluateSpec(model=f"scripted:{folder / 'answers.jsonl'}", split=str(folder / "split"), out=str(out), **common)
    )
    replies = []
    for (item, sample), answer in load_run(out).answers.items():
        for number in range(judgements):
            if isinstance(answer, Response):
                n = int(item[-5:])
                text = "no" if (n, sample, number) == (bad, 0, 0) else verdict(score(n, sample, number))
                replies.append({"id": answer_id(answer), "sample": number, "text": text})
    write_jsonl(folder / "judge.jsonl", replies)
    judge = f"scripted:{folder / 'judge.jsonl'}"
    judge_run(JudgeSpec(run=str(out), judges=(judge,), judgements=judgements, temperature=1.0))
    return out


def table(items: list[int], samples: int, judgements: int) -> list[list[list[float]]]:
    return [[[score(n, k, j) for j in range(judgements)] for k in range(samples)] for n in items]


def test_items_that_lack_an_answer_or_a_judgement_are_left_out(tmp_path: Path) -> None:
    (found,) = judge_variance(judged_run(tmp_path, 3, 2, bad=1, silent=4), NONE)
    whole = [n for n in range(ITEMS) if n not in (1, 4)]
    assert (found.numbers, found.left_out) == ((6, 3, 2), 2)
    expected = variance_components(table(whole, 3, 2))
    for name in ("items", "answers", "judgements", "error2"):
        assert getattr(found.components, name) == pytest.approx(getattr(expected, name))
    assert expected.judgements > 0


def test_the_command_prints_shares_the_error_and_a_design_for_the_costs(tmp_path: Path) -> None:
    run = judged_run(tmp_path, 2, 2)
    costs = ("--item-cost", 9, "--answer-cost", 0.5, "--judgement-cost", 2)
    ended = h2htalk("judge", "variance", run, "--half-width", 0.4, *costs)
    assert ended.returncode == 0, ended.stderr
    shares = [float(text) for text in re.findall(r"([\d.]+) %\n", ended.stdout)]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    expected = variance_components(table(list(range(ITEMS)), 2, 2))
    assert f"standard error of R {expected.error2**0.5:.3f}," in ended.stdout
    items, k, m, cost = cheapest(expected, 0.4, 9, 0.5, 2)
    words = [f"{n:,} {name}{'s' * (n > 1)}" for n, name in ((items, "item"), (k, "answer"), (m, "judgement"))]
    assert f"with {words[0]}, {words[1]} an item, {words[2]} an answer: {cost:,.2f} (costs as given)" in ended.stdout


@pytest.mark.parametrize(
    ("samples", "judgements", "hidden"),
    [(1, 2, ["answers"]), (2, 1, ["judgements"]), (1, 1, ["answers", "judgements"])],
)
def test_a_level_with_one_each_cannot_be_told_apart(
    samples: int, judgements: int, hidden: list[str], tmp_path: Path
) -> None:
    (found,) = judge_variance(judged_run(tmp_path, samples, judgements), NONE)
    lines = list(found.lines(None))
    assert [line.split()[2] for line in lines if "cannot be told apart" in line] == hidden
    shares = [float(share) for line in lines for share in re.findall(r"([\d.]+) %$", line)]
    assert (len(shares), sum(shares)) == (3 - len(hidden), pytest.approx(100, abs=0.2))


def test_costs_come_from_the_logs_or_are_one(tmp_path: Path) -> None:
    run = judged_run(tmp_path, 2, 2)
    (found,) = judge_variance(run, {"judgement": 3.0})
    assert found.costs == (1.0, 1.0, 3.0)
    assert found.source == "a further item and answer 1, as the run has no cost log"
    (judge,) = (read_judge(run, path.stem) for path in (run / "judgements").glob("*.json"))
    # 2 dollars a million tokens of input, 10 of output: 8 calls with two answers each, 4 of judging.
    pay(costs_folder(run) / "generate.jsonl", "generate", 8, Usage(1000, 200))
    pay(run / "judgements" / "costs" / f"{judge.stage}.jsonl", judge.stage, 4, Usage(3000, 400))
    (found,) = judge_variance(run, NONE)
    assert found.costs == pytest.approx((0.0, 8 * 0.004 / 16, 0.01))
    assert found.source == "a further item and answer and judgement in US dollars of the run's cost logs"


def pay(path: Path, stage: str, calls: int, usage: Usage) -> None:
    prices = path.parent / "prices.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    prices.write_text('date = "2026-11-20"\ncurrency = "USD"\n[models."openai:gpt-4o"]\ninput = "2"\noutput = "10"\n')
    price = load_prices(prices).find("openai:gpt-4o")
    with Ledger(path, model="openai:gpt-4o", price=price, stage=stage) as ledger:
        for number in range(calls):
            ledger.paid(ledger.reserve(((str(number), 0),), Bound(9999, 999)), usage)


@pytest.mark.parametrize(
    ("costs", "half_width", "option"),
    [
        ({"item": -1.0}, None, "item-cost"),
        ({"item": float("inf")}, None, "item-cost"),
        ({"answer": float("nan")}, None, "answer-cost"),
        ({"judgement": 1.1e9}, None, "judgement-cost"),
        *(({}, width, "half-width") for width in (0.0, 1e-200, 0.0009, float("nan"), float("inf"))),
    ],
)
def test_numbers_out_of_range_are_refused(
    costs: dict[str, float | None], half_width: float | None, option: str
) -> None:
    with pytest.raises(ConfigError, match=f"--{option} is .*; it must be"):
        judge_variance("run", costs, half_width)


def test_a_run_without_judgements_is_refused(tmp_path: Path) -> None:
    ended = h2htalk("judge", "variance", answered_run(tmp_path, ["One.", "Two."]))
    assert (ended.returncode, "was not judged; run `h2htalk judge run` first" in ended.stderr) == (2, True)


def test_a_judge_with_one_whole_item_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has not judged two items in full"):
        judge_variance(judged_run(tmp_path, 1, 1, bad=1, items=2), NONE)
