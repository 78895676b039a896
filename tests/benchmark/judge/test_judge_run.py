"""A judged run: what is asked, what is stored, and J in its figures."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import pytest
from command_line import h2htalk
from judged_made import LEVELS, answered_run, item_name, scripted_judge, verdict
from loopback import LoopbackServer

from h2htalk.benchmark.compare.comparison import compare
from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.judge.judge_run import judge_run, judged_answers
from h2htalk.benchmark.judge.judgements import LONGEST, answer_id, judgements_folder
from h2htalk.benchmark.metrics.composite import judged_score
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.settings import EvaluateSpec, JudgeSpec
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with S: each item of `mini` in English with another item's reference."""
    out = tmp_path_factory.mktemp("scored") / "run"
    evaluate(
        EvaluateSpec(
            model="baseline:random-reference", split="mini@1", language="en", limit=44, embedder="minilm", out=str(out)
        )
    )
    return out


def copied(run: Path, folder: Path) -> Path:
    shutil.copytree(run, folder / "run")
    return folder / "run"


def judge_by_item(run: Path, path: Path) -> tuple[str, dict[str, int]]:
    """A judge with another score for each judged answer, and those scores by item."""
    replies, scores = {}, {}
    for number, (scenario, answer) in enumerate(judged_answers(load_run(run), "levels")):
        scores[scenario.id] = number % 6
        replies[answer_id(answer)] = verdict(number % 6)
    return scripted_judge(path, replies), scores


def test_j_stands_in_the_cells_of_levels_alone(scored: Path, tmp_path: Path) -> None:
    run = copied(scored, tmp_path)
    before = load_run(run)
    judge, scores = judge_by_item(run, tmp_path / "judge.jsonl")
    summary = judge_run(JudgeSpec(run=str(run), judges=(judge,)))
    row, unjudged = summary.rows.judged, summary.rows.s
    assert row is not None
    assert unjudged == before.summary.rows.s
    for name in LEVELS:
        s = {i.id: before.item_scores[i.id].s for i in before.data.split.scenarios if i.subtask == name}
        by_hand = [20 * (0.6 * 5 * value + 0.4 * scores[item]) for item, value in s.items() if value is not None]
        assert row.cells[name].value == pytest.approx(sum(by_hand) / len(by_hand), abs=1e-12)
        rating = summary.judging and summary.judging.ratings.cells[name].value
        assert rating == pytest.approx(20 * sum(scores[item] for item in s) / len(s))
    others = [name for name in row.cells if name not in LEVELS]
    assert len(others) == 8
    assert all(row.cells[name] == unjudged.cells[name] for name in others) if unjudged else False
    low = sum(judged_score(before.item_scores[i].s or 0, r) < 3.5 for i, r in scores.items())
    assert summary.judging is not None
    assert dict(summary.judging.queue) == {"J": low, "judge": sum(r < 3.5 for r in scores.values())}


def test_every_report_shows_judged_and_unjudged_figures_apart(scored: Path, tmp_path: Path) -> None:
    run = copied(scored, tmp_path)
    judge = scripted_judge(tmp_path / "judge.jsonl", {}, verdict(5))
    ended = h2htalk("judge", "run", run, "--judge", judge)
    assert ended.returncode == 0
    assert "S and J" in ended.stdout
    assert "Eq. 4 (J < 3.5) sends" in ended.stdout
    metrics = list(csv.DictReader((run / "tables" / "metrics.csv").read_text().splitlines()))
    ratings = {row["of"]: float(row["value"]) for row in metrics if row["metric"] == "rating"}
    assert ratings == dict.fromkeys(LEVELS, 100.0)
    page = (run / "report.html").read_text()
    assert "Judges" in page
    assert "(unjudged)" in page
    board = h2htalk("leaderboard", run, scored).stdout
    assert "differs in judge" in board
    assert "(unjudged)" in board


def test_runs_of_one_judge_compare_by_j_and_of_two_by_s(scored: Path, tmp_path: Path) -> None:
    strict, mild = (scripted_judge(tmp_path / f"{score}.jsonl", {}, verdict(score)) for score in (1, 4))
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        copied(scored, tmp_path / name)
    a, b, c = (tmp_path / name / "run" for name in "abc")
    for run, judge in ((a, strict), (b, strict), (c, mild)):
        judge_run(JudgeSpec(run=str(run), judges=(judge,)))
    assert compare(a, b).metric == "judged"
    with pytest.raises(ConfigError, match="they differ in judge"):
        compare(a, c)
    assert compare(a, c, metric="s").metric == "s"


def test_scoring_again_and_evaluating_again_keep_the_judgements(scored: Path, tmp_path: Path) -> None:
    run = copied(scored, tmp_path)
    judge = scripted_judge(tmp_path / "judge.jsonl", {}, verdict(2))
    first = judge_run(JudgeSpec(run=str(run), judges=(judge,)))
    stamp = (run / "summary.json").stat().st_mtime_ns
    ended = h2htalk("evaluate", "--spec", run / "run.json")
    assert ended.returncode == 0
    assert (run / "summary.json").stat().st_mtime_ns == stamp  # nothing to do
    ended = h2htalk("score", run)
    assert ended.returncode == 0
    assert load_run(run).summary.rows == first.rows


def test_a_panel_means_its_judges_and_says_how_far_they_are_apart(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day.", "Another day.", "A third day."])
    strict, mild = (scripted_judge(tmp_path / f"{score}.jsonl", {}, verdict(score)) for score in (1, 4))
    summary = judge_run(JudgeSpec(run=str(run), judges=(strict, mild)))
    assert summary.judging is not None
    assert summary.judging.disagreement == 3
    assert {item.rating for item in load_run(run).item_scores.values()} == {2.5}
    assert judge_run(JudgeSpec(run=str(run), judges=(mild, strict))).signature == summary.signature
    again = judge_run(JudgeSpec(run=str(run), judges=(mild,)))  # its judgements are stored
    assert again.judging is not None
    assert again.judging.judges == summary.judging.judges[1:]
    assert len(list(judgements_folder(run).glob(f"{'?' * 16}.json"))) == 2


def test_several_judgements_of_an_answer_are_meant(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day."])
    judged = answer_id(judged_answers(load_run(run), "levels")[0][1])
    lines = [{"id": judged, "sample": k, "text": verdict(score)} for k, score in enumerate((1, 3, 5, 5))]
    write_jsonl(tmp_path / "judge.jsonl", lines)
    judge = f"scripted:{tmp_path / 'judge.jsonl'}"
    with pytest.raises(ConfigError, match="--judgements 2 with temperature 0"):
        JudgeSpec(run=str(run), judges=(judge,), judgements=2)
    for k, mean in ((1, 1), (2, 2), (4, 3.5)):
        judge_run(JudgeSpec(run=str(run), judges=(judge,), judgements=k, temperature=1.0))
        assert load_run(run).item_scores[item_name(0)].rating == mean


def test_a_failed_call_is_unscored_and_the_run_incomplete(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day.", "Another day.", "A third day."])
    judged = answer_id(judged_answers(load_run(run), "levels")[1][1])
    failure = {"reason": "timeout", "message": "never answered"}
    write_jsonl(tmp_path / "j.jsonl", [{"id": judged, "failure": failure}, {"id": "*", "text": verdict(4)}])
    ended = h2htalk("judge", "run", run, "--judge", f"scripted:{tmp_path / 'j.jsonl'}")
    assert ended.returncode == 3
    summary = load_run(run).summary
    assert summary.judging is not None
    assert (summary.judging.scored, summary.judging.failed) == (2, 1)
    assert load_run(run).item_scores[item_name(1)].rating is None


def test_an_edited_answer_loses_its_judgement(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day.", "Another day."])
    judge = scripted_judge(tmp_path / "judge.jsonl", {}, verdict(4))
    judge_run(JudgeSpec(run=str(run), judges=(judge,)))
    responses = run / "calls.jsonl"
    responses.write_text(responses.read_text().replace("Another day.", "A better day."))
    with pytest.raises(DataError, match="not those that were scored"):
        load_run(run)
    ended = h2htalk("score", run)
    assert ended.returncode == 3
    scores = load_run(run).item_scores
    assert [scores[item_name(n)].rating for n in (0, 1)] == [4, None]


def test_the_scope_all_rates_every_subtask_and_keeps_j_to_levels(tmp_path: Path) -> None:
    dialogues = sum(s.subtask == "dialogue_base" for s in load_split("mini@1").scenarios)
    subtasks = ("dialogue_base", "itinerary_basic")
    run = answered_run(tmp_path, ["Hello."] * (dialogues + 1), subtasks)
    judge = scripted_judge(tmp_path / "judge.jsonl", {}, verdict(4, "dialogue_base", points=True))
    summary = judge_run(JudgeSpec(run=str(run), judges=(judge,), scope="all"))
    assert summary.judging is not None
    assert summary.judging.ratings.cells["dialogue_base"].value == 80
    assert set(summary.judging.unscored) == {"malformed_output"}  # the itinerary has two more qualities
    shares = {name: (cell.value, cell.n) for name, cell in summary.judging.points.items()}
    assert shares["memory_collapse"][0] == shares["missed_hint"][0] == 100
    assert shares["planning_fragmentation"] == (None, 0)


def test_a_run_without_levels_needs_the_scope_all(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["Hello."], ("dialogue_base",))
    with pytest.raises(ConfigError, match="--scope all"):
        judge_run(JudgeSpec(run=str(run), judges=(scripted_judge(tmp_path / "j.jsonl", {}, verdict()),)))


def test_a_dry_run_writes_nothing_and_says_what_it_would_cost(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day.", "Another day."])
    before = sorted(run.rglob("*"))
    ended = h2htalk(
        "judge",
        "run",
        run,
        "--judge",
        "openai:gpt-4o",
        "--dry-run",
        env={**os.environ, "OPENAI_API_KEY": "sk-none-at-all"},
    )
    assert ended.returncode == 0
    assert "at most 2 calls" in ended.stdout
    assert "US dollars" in ended.stdout
    assert sorted(run.rglob("*")) == before


def test_an_edited_judge_is_refused(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day."])
    judge_run(JudgeSpec(run=str(run), judges=(scripted_judge(tmp_path / "j.jsonl", {}, verdict(1)),)))
    path = next((run / "judgements").glob("*.json"))
    path.write_text(path.read_text().replace('"rule": "mean', '"rule": "best'))
    assert h2htalk("score", run).returncode == 2


def test_a_reply_that_could_not_be_read_can_be_asked_for_again(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day.", "Another day."])
    replies, calls = ["I cannot.", verdict(4)], []

    def answer(asked: dict[str, object], times: int) -> str:
        calls.append(times)
        return replies[min(times, 2) - 1] if "Another day." in str(asked) else verdict(3)

    with LoopbackServer(reply=answer) as server:
        words = ["judge", "run", run, "--judge", server.spec]
        ended = h2htalk(*words)
        assert ended.returncode == 3  # was 0 and "complete", with no word about what the judge had said
        assert "the first reply of a judge that is malformed_output: form judgement: " in " ".join(ended.stdout.split())
        assert "'I cannot.'" in ended.stdout
        assert any("--repeat-unscored" in warning for warning in load_run(run).summary.warnings)
        assert h2htalk(*words).returncode == 3
        assert len(calls) == 2  # nothing was asked: both replies are stored
        assert load_run(run).item_scores[item_name(1)].rating is None
        assert h2htalk(*words, "--repeat-unscored").returncode == 0
    assert [load_run(run).item_scores[item_name(n)].rating for n in (0, 1)] == [3, 4]


def test_a_judge_that_answers_nothing_leaves_the_tables(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day."])
    judge_run(JudgeSpec(run=str(run), judges=(scripted_judge(tmp_path / "j.jsonl", {}, verdict(4)),)))
    before = load_run(run).summary
    write_jsonl(tmp_path / "f.jsonl", [{"id": "*", "failure": {"reason": "timeout", "message": "never answered"}}])
    ended = h2htalk("judge", "run", run, "--judge", f"scripted:{tmp_path / 'f.jsonl'}")
    assert ended.returncode == 3
    assert "no call was answered" in ended.stderr
    assert load_run(run).summary == before


def test_an_answer_that_is_too_long_is_unscored_and_stops_nothing(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day.", "x" * (LONGEST + 1)])
    summary = judge_run(JudgeSpec(run=str(run), judges=(scripted_judge(tmp_path / "j.jsonl", {}, verdict(4)),)))
    assert summary.judging is not None
    assert (summary.judging.scored, dict(summary.judging.unscored), summary.judging.failed) == (1, {"too_long": 1}, 0)


def test_the_key_of_the_fences_is_guarded(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day."])
    spec = JudgeSpec(run=str(run), judges=(scripted_judge(tmp_path / "j.jsonl", {}, verdict(4)),))
    judge_run(spec)
    key = run / "judgements" / "secret.key"
    assert key.stat().st_mode & 0o077 == 0
    for text in ("", "abc"):
        key.write_text(text)
        with pytest.raises(DataError, match=r"secret\.key: missing or edited"):
            judge_run(spec)
    shutil.rmtree(run / "judgements")  # judged again from nothing
    assert judge_run(spec).judging is not None


@pytest.mark.parametrize("name", ["judge@HTTP://user:hunter2@h/v1", "http://user:hunter2@h/v1"])
def test_no_password_of_an_address_is_written(tmp_path: Path, name: str) -> None:
    run = answered_run(tmp_path, ["A day."])
    assert h2htalk("judge", "run", run, "--judge", f"server:{name}").returncode == 2
    assert h2htalk("judge", "probe", f"server:{name}", cwd=tmp_path).returncode == 2
    assert not [path for path in tmp_path.rglob("*") if "hunter2" in path.name]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("judge_rubric.j2", "{% for a in range(99999) %}{{ range(99999) | sum }}{% endfor %}"),
        ("judge_item.j2", '{{ "%9999999999d" % 3 }}{{ answer }}'),
    ],
)
def test_a_template_that_loops_or_fills_the_memory_never_ended(tmp_path: Path, name: str, template: str) -> None:
    run = answered_run(tmp_path, ["A day."])
    language = load_run(run).data.split.scenarios[0].language
    (tmp_path / "prompts" / language).mkdir(parents=True)
    (tmp_path / "prompts" / language / name).write_text(template)
    judge = scripted_judge(tmp_path / "j.jsonl", {}, verdict(4))
    done = h2htalk("judge", "run", run, "--judge", judge, "--prompts", tmp_path / "prompts")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "is there a loop in a loop?" in done.stderr or "GiB of memory" in done.stderr
    assert not list((run / "judgements").glob("*.jsonl"))


def test_a_judge_that_cannot_be_opened_costs_no_call_of_another(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day."])
    good = scripted_judge(tmp_path / "j.jsonl", {}, verdict(4))
    with pytest.raises(ConfigError):
        judge_run(JudgeSpec(run=str(run), judges=(good, "server:x@http:/bad")))
    assert not list((run / "judgements").glob("*.jsonl"))
