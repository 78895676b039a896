"""A whole curation: errors come before anything that was made or paid for is removed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from command_line import h2htalk
from curation_made import MODELS, all_files, source, write_models
from providers import ProviderServer, price_file

from h2htalk.curation.curate import StageSummary, curate, estimate_run, funnel_table, summaries
from h2htalk.curation.erase import erase
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import ConfigError

RAW = Path(__file__).parents[2] / "examples" / "raw_en.jsonl"
SPEC = f'workspace = "work"\npart = 4\nprocesses = 1\n{source("made", RAW, "dialogues", "limit = 8")}{MODELS}'


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "curate.toml"
    path.write_text(SPEC)
    write_models(tmp_path)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace of a finished curation."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "curate.toml").write_text(SPEC)
    write_models(folder)
    return curate(folder / "curate.toml").path


@pytest.fixture
def curated(spec: Path, finished: Path) -> Path:
    """The specification of a finished curation."""
    shutil.copytree(finished, spec.parent / "work")
    return spec


@pytest.mark.parametrize(
    ("old", "new", "stages", "from_stage", "message"),
    [
        (str(RAW), "gone.jsonl", (), "gather", "gone.jsonl: no such file"),
        ("scripted:reviewer.jsonl", "", (), "review", "review.model is empty"),
        ("part = 4", "part = 5", (), "review", "another setting of part; .* --from-stage gather"),
        ("", "", ("review",), "gather", "--from-stage gather would remove it .* only review would be made"),
        ("", "", (), "gathr", "no stage 'gathr'; did you mean 'gather'"),
    ],
)
def test_from_stage_keeps_what_it_cannot_make(
    curated: Path, old: str, new: str, stages: tuple[str, ...], from_stage: str, message: str
) -> None:
    """A typing error cost every stage and every paid reply: files were removed before the settings were checked."""
    before = all_files(curated.parent / "work")
    curated.write_text(SPEC.replace(old, new, 1) if old else SPEC)
    with pytest.raises(ConfigError, match=message):
        curate(curated, stages, from_stage=from_stage)
    assert all_files(curated.parent / "work") == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SPEC.replace("scripted:reviewer.jsonl", "scripted:gone.jsonl"), r"gone\.jsonl: cannot be read"),
        (f'{SPEC}[anonymize]\nrecognizers = "gone.yaml"\n', r"gone\.yaml: cannot be read"),
    ],
)
def test_errors_of_later_stages_come_before_the_first_stage(spec: Path, text: str, message: str) -> None:
    """A missing script was reported after five stages, a missing recognizer with an option of another command."""
    spec.write_text(text)
    with pytest.raises(ConfigError, match=message) as refused:
        curate(spec)
    assert "--" not in str(refused.value)
    assert not any((spec.parent / "work" / name).exists() for name in STAGES)


def test_an_update_without_anything_new_makes_only_what_is_missing(curated: Path) -> None:
    """It removed the review, and refused compose as made with another stage before it."""
    before = all_files(curated.parent / "work")
    place = curate(curated, update=True)
    assert all_files(place.path) == before
    erase(place, next(place.stage("gather").records())["id"])
    gathered = place.stage("gather").mark("part-00001").stat().st_mtime_ns
    assert [item.stage for item in summaries(curate(curated, update=True))] == list(STAGES)
    assert place.stage("gather").mark("part-00001").stat().st_mtime_ns == gathered


def test_without_a_reviewer_the_run_ends_with_candidates(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One stage needs only the stage before it."""
    spec.write_text(SPEC.replace("scripted:reviewer.jsonl", ""))
    place = curate(spec, ("gather", "anonymize"))
    assert [item.stage for item in summaries(place)] == ["gather", "anonymize"]
    assert place.path.stat().st_mode & 0o777 == 0o700  # it holds raw conversations
    with pytest.raises(ConfigError, match="safety: the stage is not finished"):
        curate(spec, ("dedup",))
    assert [item.stage for item in summaries(curate(spec))] == list(STAGES)[:-1]
    assert "review.model is empty, so the run ends with the results of compose" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"review\.model is empty"):
        curate(spec, ("review",))
    spec.write_text(SPEC)
    assert [item.stage for item in summaries(curate(spec))] == list(STAGES)


def test_a_dry_run_estimates_every_stage_and_writes_nothing(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key is needed: nothing is called."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    hosted = SPEC.replace("scripted:composer.jsonl", "openai:gpt-4o")
    spec.write_text(hosted.replace("scripted:reviewer.jsonl", "anthropic:claude-sonnet-5"))
    before = all_files(spec.parent)
    done = h2htalk("curate", "run", str(spec), "--dry-run")
    assert done.returncode == 0
    assert all_files(spec.parent) == before
    lines = done.stdout.splitlines()
    assert lines[0] == f"gather     to make: reads 8 items from made ({RAW}, 8)"
    assert "anonymize  to make: reads at most 8 dialogues from gather" in lines
    # Of each dialogue one call for proposals, and a reference for each of eight candidates.
    assert "openai:gpt-4o: likely 32, at most 72 calls; likely " in done.stdout
    # Of eight candidates each, two references: a pair in two orders, three times, and the rubric.
    assert "anthropic:claude-sonnet-5: likely 78, at most 448 calls; likely " in done.stdout
    assert re.fullmatch(r"together likely [\d.]+, at most [\d.]+ US dollars", lines[-2])


def test_a_dry_run_knows_what_is_finished(spec: Path) -> None:
    curate(spec, ["gather", "anonymize"])
    before = all_files(spec.parent)
    assert estimate_run(spec, ["safety"]).startswith("safety     to make: reads 8 dialogues from anonymize")
    assert "gather     finished: 8 of 8 dialogues kept" in estimate_run(spec)
    assert "gather     to make: reads 8 items" in estimate_run(spec, from_stage="gather")
    with pytest.raises(ConfigError, match="the stage is not finished"):
        estimate_run(spec, ["dedup"])
    assert all_files(spec.parent) == before
    spec.write_text(SPEC.replace("limit = 8", "limit = 9"))
    with pytest.raises(ConfigError, match="another setting of sources"):
        estimate_run(spec)


def test_no_record_depends_on_parts_or_processes(spec: Path, finished: Path) -> None:
    (spec.parent / "work").mkdir(mode=0o700)
    shutil.copy2(finished / "secret.key", spec.parent / "work")
    spec.write_text(SPEC.replace("part = 4\nprocesses = 1", "part = 3\nprocesses = 2"))
    other, place = Workspace(finished), curate(spec)
    for name in STAGES:
        for kind in ("kept", "rejected"):
            assert [*place.stage(name).records(kind)] == [*other.stage(name).records(kind)], (name, kind)


def test_nothing_is_paid_for_twice(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--from-stage` and any change of the review's arithmetic repeated every call; an erasure repeats none."""
    (spec.parent / "prices.toml").write_text(price_file())
    paid = SPEC.replace("scripted:reviewer.jsonl", "anthropic:claude-test")
    paid = paid.replace("[[gather", 'prices = "prices.toml"\n[[gather', 1)
    with ProviderServer() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        spec.write_text(paid)
        workspace = curate(spec)
        calls = len(server.charged())
        assert calls == summaries(workspace)[-1].counts.read
        curate(spec, from_stage="review")
        spec.write_text(paid + "accept = 4.5\naudit = 0.5\n")
        curate(spec)
        erase(workspace, next(workspace.stage("review").records())["id"])
        curate(spec)
        assert summaries(workspace)[-1].counts.read < calls
        assert len(server.charged()) == calls


def test_a_purged_workspace_is_refused_before_anybody_is_told_to_start_again(spec: Path) -> None:
    spec.write_text(SPEC.replace(MODELS, ""))
    (spec.parent / "work").mkdir()
    (spec.parent / "work" / "workspace.json").write_text('{"purged": true}')
    done = h2htalk("curate", "run", spec)
    assert (done.returncode, done.stderr.count("\n"), "was purged" in done.stderr) == (2, 1, True), done.stderr


def test_the_funnel_has_a_row_for_each_stage() -> None:
    counts = {"gather": (10, 8, 2, 8), "compose": (10, 6, 4, 11), "review": (8, 7, 1, 7)}
    stages = [StageSummary(name, RecordCounts(*row, 0, {}, {})) for name, row in counts.items()]
    assert funnel_table(stages).to_csv().splitlines() == [
        "stage,unit,read,kept,rejected,written",
        "gather,dialogues,10,8,2,8",
        "compose,dialogues,10,6,4,11",
        "review,candidates,8,7,1,7",
    ]
