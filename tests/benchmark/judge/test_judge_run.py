"""A judged run: what is asked, what is stored, and J in its figures."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from byte_search import files_with
from judged_made import LEVELS, answered_run, command, evaluated, judge_file, judging_of, scripted_judge, verdict
from loopback import LoopbackServer

from h2htalk.benchmark.compare.comparison import compare
from h2htalk.benchmark.judge.judge_run import judge_run, judged_answers
from h2htalk.benchmark.judge.judgements import LONGEST, answer_id
from h2htalk.benchmark.metrics.composite import judged_score
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.settings import JudgeSpec
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with S: each item of `mini` in English with another item's reference."""
    return evaluated(tmp_path_factory.mktemp("scored") / "run")


@pytest.fixture
def run(scored: Path, tmp_path: Path) -> Path:
    return shutil.copytree(scored, tmp_path / "run")


def judged(run: Path, *judges: str, **settings: object) -> Summary:
    return judge_run(JudgeSpec(run=str(run), judges=judges, **settings))  # type: ignore[arg-type]


def constant(folder: Path, score: int) -> str:
    """A judge with one score for everything."""
    return scripted_judge(folder / f"{score}.jsonl", {}, verdict(score))


def ratings(run: Path) -> list[float | None]:
    return [item.rating for item in load_run(run).item_scores.values()]


def test_j_stands_in_the_cells_of_levels_alone(run: Path) -> None:
    before = load_run(run)
    answers = judged_answers(before, "levels")
    scores = {scenario.id: number % 6 for number, (scenario, _) in enumerate(answers)}
    summary = judged(run, judge_file(run, scores.__getitem__))
    row, unjudged = summary.rows.judged, summary.rows.s
    assert row is not None
    assert unjudged is not None
    assert unjudged == before.summary.rows.s
    for name in LEVELS:
        s = {i.id: before.item_scores[i.id].s or 0.0 for i in before.data.split.scenarios if i.subtask == name}
        by_hand = [20 * (0.6 * 5 * value + 0.4 * scores[item]) for item, value in s.items()]
        assert row[name].value == pytest.approx(sum(by_hand) / len(by_hand), abs=1e-12)
        rating = judging_of(run).ratings[name].value
        assert rating == pytest.approx(20 * sum(scores[item] for item in s) / len(s))
    others = {name: cell for name, cell in row.items() if name in SUBTASKS and name not in LEVELS}
    assert (len(others), others.items() <= unjudged.items()) == (8, True)
    low = sum(judged_score(before.item_scores[i].s or 0, r) < 3.5 for i, r in scores.items())
    assert dict(judging_of(run).queue) == {"J": low, "judge": sum(r < 3.5 for r in scores.values())}


def test_every_report_shows_judged_and_unjudged_figures_apart(run: Path, scored: Path, tmp_path: Path) -> None:
    shown = command("judge", "run", run, "--judge", constant(tmp_path, 5))
    assert "S and J" in shown
    assert "Eq. 4 (J < 3.5) sends" in shown
    page, board = (run / "report.html").read_text(), command("leaderboard", run, scored)
    assert "Judges" in page
    assert "differs in judge" in board
    assert all("(unjudged)" in text for text in (page, board))
    # Scoring again keeps the judgements.
    first = load_run(run).summary.rows
    command("score", run)
    assert load_run(run).summary.rows == first


def test_runs_of_one_judge_compare_by_j_and_of_two_by_s(scored: Path, tmp_path: Path) -> None:
    a, b, c = (shutil.copytree(scored, tmp_path / name) for name in "abc")
    for run, score in ((a, 1), (b, 1), (c, 4)):
        judged(run, constant(tmp_path, score))
    assert compare(a, b).metric == "judged"
    with pytest.raises(ConfigError, match="they differ in judge"):
        compare(a, c)
    assert compare(a, c, metric="s").metric == "s"


def test_a_panel_means_its_judges_and_says_how_far_they_are_apart(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day.", "Another day.", "A third day."])
    strict, mild = (constant(tmp_path, score) for score in (1, 4))
    summary = judged(run, strict, mild)
    assert judging_of(run).disagreement == 3
    assert {*ratings(run)} == {2.5}
    assert judged(run, mild, strict).signature == summary.signature  # in any order
    judges = judging_of(run).judges
    judged(run, mild)  # its judgements are stored
    assert judging_of(run).judges == judges[1:]
    assert len(list((run / "judgements").glob(f"{'?' * 16}.json"))) == 2


def test_several_judgements_of_an_answer_are_meant(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day."])
    name = answer_id(judged_answers(load_run(run), "levels")[0][1])
    lines = [{"id": name, "sample": k, "text": verdict(score)} for k, score in enumerate((1, 3, 5, 5))]
    write_jsonl(tmp_path / "judge.jsonl", lines)
    judge = f"scripted:{tmp_path / 'judge.jsonl'}"
    with pytest.raises(ConfigError, match="--judgements 2 with temperature 0"):
        judged(run, judge, judgements=2)
    for k, mean in ((1, 1), (2, 2), (4, 3.5)):
        judged(run, judge, judgements=k, temperature=1.0)
        assert ratings(run) == [mean]


def test_a_failed_call_an_edited_and_a_too_long_answer_are_unscored(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day.", "Another day.", "x" * (LONGEST + 1)])
    name = answer_id(judged_answers(load_run(run), "levels")[1][1])
    failure = {"reason": "timeout", "message": "never answered"}
    write_jsonl(tmp_path / "j.jsonl", [{"id": name, "failure": failure}, {"id": "*", "text": verdict(4)}])
    command("judge", "run", run, "--judge", f"scripted:{tmp_path / 'j.jsonl'}", code=3)
    judging = judging_of(run)
    assert (judging.scored, judging.failed, judging.unscored) == (1, 1, {"timeout": 1, "too_long": 1})
    responses = run / "calls.jsonl"
    responses.write_text(responses.read_text().replace("A day.", "A better day."))
    with pytest.raises(DataError, match="not those that were scored"):
        load_run(run)
    command("score", run, code=3)
    assert ratings(run) == [None] * 3
    # A judge that answers nothing leaves the tables.
    before = load_run(run).summary
    write_jsonl(tmp_path / "f.jsonl", [{"id": "*", "failure": failure}])
    shown = command("judge", "run", run, "--judge", f"scripted:{tmp_path / 'f.jsonl'}", code=3)
    assert "no call was answered" in shown
    assert load_run(run).summary == before


def test_the_scope_all_rates_every_subtask_and_keeps_j_to_levels(tmp_path: Path) -> None:
    dialogues = sum(s.subtask == "dialogue_base" for s in load_split("mini@1").scenarios)
    run = answered_run(tmp_path, ["Hello."] * (dialogues + 1), ("dialogue_base", "itinerary_basic"))
    judged(run, scripted_judge(tmp_path / "judge.jsonl", {}, verdict(4, "dialogue_base", points=True)), scope="all")
    judging = judging_of(run)
    assert judging.ratings["dialogue_base"].value == 80
    assert set(judging.unscored) == {"malformed_output"}  # the itinerary has two more qualities
    shares = {name: (cell.value, cell.n) for name, cell in judging.points.items()}
    assert shares["memory_collapse"][0] == shares["missed_hint"][0] == 100
    assert shares["planning_fragmentation"] == (None, 0)
    (tmp_path / "chat").mkdir()
    with pytest.raises(ConfigError, match="--scope all"):
        judged(answered_run(tmp_path / "chat", ["Hello."], ("dialogue_base",)), constant(tmp_path, 3))


def test_a_dry_run_writes_nothing_and_says_what_it_would_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = answered_run(tmp_path, ["A day.", "Another day."])
    before = sorted(run.rglob("*"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-at-all")
    shown = command("judge", "run", run, "--judge", "openai:gpt-4o", "--dry-run")
    assert ("at most 2 calls" in shown, "US dollars" in shown) == (True, True)
    assert sorted(run.rglob("*")) == before


def test_a_reply_that_could_not_be_read_can_be_asked_for_again(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day.", "Another day."])
    replies, calls = ["I cannot.", verdict(4)], []

    def answer(asked: dict[str, object], times: int) -> str:
        calls.append(times)
        return replies[min(times, 2) - 1] if "Another day." in str(asked) else verdict(3)

    with LoopbackServer(reply=answer) as server:
        words = ["judge", "run", run, "--judge", server.spec]
        shown = command(*words, code=3)  # was 0 and "complete", with no word about what the judge had said
        assert "'I cannot.'" in shown
        assert any("--repeat-unscored" in warning for warning in load_run(run).summary.warnings)
        command(*words, code=3)
        assert len(calls) == 2  # nothing was asked: both replies are stored
        assert ratings(run) == [3, None]
        command(*words, "--repeat-unscored")
    assert ratings(run) == [3, 4]


def test_the_judges_record_and_the_key_of_the_fences_are_guarded(tmp_path: Path) -> None:
    run, judge = answered_run(tmp_path, ["A day."]), constant(tmp_path, 4)
    judged(run, judge)
    key, record = run / "judgements" / "secret.key", next((run / "judgements").glob("*.json"))
    assert key.stat().st_mode & 0o077 == 0
    key.write_text("abc")
    with pytest.raises(DataError, match=r"secret\.key: missing or edited"):
        judged(run, judge)
    record.write_text(record.read_text().replace('"rule": "mean', '"rule": "best'))
    assert "was edited" in command("score", run, code=2)
    shutil.rmtree(run / "judgements")  # judged again from nothing
    assert judged(run, judge).judging is not None


def test_no_password_of_an_address_is_written(tmp_path: Path) -> None:
    run, name = answered_run(tmp_path, ["A day."]), "server:judge@HTTP://user:hunter2@h/v1"
    command("judge", "run", run, "--judge", name, code=2)
    command("judge", "probe", name, "--out", tmp_path / "probe", code=2)
    assert files_with(tmp_path, "hunter2") == []


def test_a_judge_that_cannot_be_opened_costs_no_call_of_another(tmp_path: Path) -> None:
    run = answered_run(tmp_path, ["A day."])
    with pytest.raises(ConfigError):
        judged(run, constant(tmp_path, 4), "server:x@http:/bad")
    assert not list((run / "judgements").glob("*.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("judge_rubric.j2", "{% for a in range(99999) %}{{ range(99999) | sum }}{% endfor %}"),
        ("judge_item.j2", '{{ "%9999999999d" % 3 }}{{ answer }}'),
    ],
)
def test_a_template_that_loops_or_fills_the_memory_is_ended(tmp_path: Path, name: str, template: str) -> None:
    run = answered_run(tmp_path, ["A day."])
    folder = tmp_path / "prompts" / load_run(run).data.split.scenarios[0].language
    folder.mkdir(parents=True)
    (folder / name).write_text(template)
    words = ("judge", "run", run, "--judge", constant(tmp_path, 4), "--prompts", tmp_path / "prompts")
    message = command(*words, code=2)
    assert message.count("\n") == 1
    assert "is there a loop in a loop?" in message or "GiB of memory" in message
