"""A whole curation: what it refuses, it refuses before anything that was made or paid for is removed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from curation_made import all_files
from providers import ProviderServer, price_file

from h2htalk.curation.curate import curate, summaries
from h2htalk.curation.erase import erase
from h2htalk.curation.pipeline import Incomplete
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.errors import ConfigError, DataError

SPEC = """
workspace = "work"
part = 4
processes = 1

[gather]
stand_in = 8

[[gather.sources]]
name = "made"
path = "$H2HTALK_NO_SUCH_FOLDER/en.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"

[review]
model = "scripted:reviewer.jsonl"
"""
CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")


def verdict(score: int = 5) -> str:
    criteria = {name: {"evidence": "Seen.", "score": score} for name in CRITERIA}
    return json.dumps({**criteria, "fitting_subtask": "dialogue_base", "revision": "", "verdict": "accept"})


def script(folder: Path, *lines: dict[str, object]) -> None:
    (folder / "reviewer.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "curate.toml"
    path.write_text(SPEC)
    script(tmp_path, {"id": "*", "text": verdict()})
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace of a finished curation."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "curate.toml").write_text(SPEC)
    script(folder, {"id": "*", "text": verdict()})
    return curate(folder / "curate.toml").path


@pytest.fixture
def curated(spec: Path, finished: Path) -> Path:
    """The specification of a curation that is finished."""
    shutil.copytree(finished, spec.parent / "work")
    return spec


@pytest.mark.parametrize(
    ("old", "new", "stages", "again", "told"),
    [
        ("$H2HTALK_NO_SUCH_FOLDER/en.jsonl", "gone.jsonl", (), "gather", "gone.jsonl: no such file"),
        ("scripted:reviewer.jsonl", "", (), "review", "review.model is empty"),
        ("scripted:reviewer.jsonl", "scripted:gone.jsonl", (), "review", "gone.jsonl: cannot be read"),
        ("scripted:reviewer.jsonl", "opnai:gpt-4o", (), "compose", "unknown engine 'opnai'"),
        ("[review]", "[review]\nbatch = true", (), "safety", "scripted has no batches"),
        ('name = "made"', 'name = "simulated"', (), "gather", "a source cannot be named 'simulated'"),
        ("part = 4", "part = 5", (), "review", "another setting of part; .* --again gather"),
        ("", "", ("review",), "gather", "--again gather would remove it .* only review would be made"),
    ],
)
def test_again_removes_nothing_where_it_cannot_make_it_again(
    curated: Path, old: str, new: str, stages: tuple[str, ...], again: str, told: str
) -> None:
    """A typo with --again cost every stage and every paid reply: it removed first and looked afterwards."""
    before = all_files(curated.parent / "work")
    curated.write_text(SPEC.replace(old, new, 1) if old else SPEC)
    with pytest.raises(ConfigError, match=told):
        curate(curated, stages, again=again)
    assert all_files(curated.parent / "work") == before


def test_what_is_wrong_with_the_reviewer_is_told_before_the_first_stage(spec: Path) -> None:
    """It was told after five stages."""
    spec.write_text(SPEC.replace("scripted:reviewer.jsonl", "scripted:gone.jsonl"))
    with pytest.raises(ConfigError, match=r"gone\.jsonl: cannot be read"):
        curate(spec)
    assert not any((spec.parent / "work" / folder).exists() for folder in STAGES.values())


def test_without_a_reviewer_it_ends_with_candidates_and_says_so(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everything was said to have a default, and the first run was refused for want of a reviewer."""
    spec.write_text(SPEC.replace("scripted:reviewer.jsonl", ""))
    assert [item.stage for item in summaries(curate(spec))] == list(STAGES)[:-1]
    assert "review.model names nobody, so this ends with what compose makes" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"review\.model is empty"):
        curate(spec, ("review",))
    spec.write_text(SPEC)
    assert [item.stage for item in summaries(curate(spec))] == list(STAGES)


@pytest.mark.parametrize("ner", ["spacy:no_such_model", "gliner:nobody/nothing", "lax"])
def test_a_recogniser_that_is_not_there_is_told_before_the_first_stage(spec: Path, ner: str) -> None:
    """It was told after gather, with an option of another command."""
    spec.write_text(SPEC + f'[anonymize]\nner = "{ner}"\n')
    with pytest.raises(ConfigError, match=r'anonymize\.ner, for en: .*anonymize\.ner = "bundled"') as refused:
        curate(spec)
    assert "--" not in str(refused.value)
    assert not any((spec.parent / "work" / folder).exists() for folder in STAGES.values())


@pytest.mark.parametrize("linked", ["06-reviewed", "04-distinct/kept"])
def test_again_removes_nothing_where_a_link_leads_away(curated: Path, linked: str) -> None:
    """It was emptied, and the link itself ended in a traceback."""
    path = curated.parent / "work" / linked
    path.rename(curated.parent / "elsewhere")
    path.symlink_to(curated.parent / "elsewhere")
    before = all_files(curated.parent)
    with pytest.raises(DataError, match="is a symbolic link"):
        curate(curated, again="safety")
    assert all_files(curated.parent) == before


def test_a_stage_alone_needs_only_its_own(spec: Path) -> None:
    spec.write_text(SPEC.replace("scripted:reviewer.jsonl", ""))
    place = curate(spec, ("gather", "anonymize"))
    assert [item.stage for item in summaries(place)] == ["gather", "anonymize"]
    assert place.path.stat().st_mode & 0o777 == 0o700  # raw conversations lie in it
    with pytest.raises(ConfigError, match="03-safe: is not finished"):
        curate(spec, ("dedup",))


def test_an_edited_script_is_asked_again(spec: Path) -> None:
    assert not summaries(curate(spec))[-1].counts.rejected
    script(spec.parent, {"id": "*", "text": verdict(1)})
    with pytest.raises(ConfigError, match="another setting of model"):
        curate(spec)
    assert summaries(curate(spec, again="review"))[-1].counts.rejected


def test_what_was_paid_for_is_not_paid_for_again(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--again, and any change of the review's arithmetic, bought every answer a second time; an erasure buys none."""
    (spec.parent / "prices.toml").write_text(price_file())
    paid = SPEC.replace("scripted:reviewer.jsonl", "anthropic:claude-test")
    paid = paid.replace("[gather]", 'prices = "prices.toml"\n[gather]', 1)
    with ProviderServer() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        spec.write_text(paid)
        workspace = curate(spec)
        calls = len(server.charged())
        assert calls == summaries(workspace)[-1].counts.read
        curate(spec, again="review")
        spec.write_text(paid + "accept = 4.5\naudit = 0.5\n")
        curate(spec)
        erase(workspace, next(workspace.stage("review").records())["id"])
        curate(spec)
        assert summaries(workspace)[-1].counts.read < calls
        assert len(server.charged()) == calls


def test_after_a_failure_the_advice_is_the_command_without_again(curated: Path) -> None:
    """The same command, with its --again, would have asked everything anew."""
    script(curated.parent, {"id": "*", "failure": {"reason": "timeout", "message": "never answered"}})
    with pytest.raises(Incomplete, match=r"the same command asks again, without --again review$"):
        curate(curated, again="review")


def test_what_a_kill_left_of_a_removal_is_not_taken_up(spec: Path) -> None:
    """Old parts without the stage's identity were adopted by the next run, whatever its settings."""
    workspace: Workspace = curate(spec)
    folder = workspace.stage("anonymize")
    whole = all_files(folder.path)
    (folder.path / "stage.json").unlink()
    folder.file("kept", "part-00000").write_text("")
    curate(spec)
    assert all_files(folder.path) == whole
