"""A whole curation: what it refuses, it refuses before anything that was made or paid for is removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from providers import ProviderServer, price_file

from h2htalk.curation.curate import curate, summaries
from h2htalk.curation.stages import Incomplete
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


def kept_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


@pytest.mark.parametrize(
    ("old", "new", "stages", "again", "told"),
    [
        ("$H2HTALK_NO_SUCH_FOLDER/en.jsonl", "gone.jsonl", (), "gather", "gone.jsonl: no such file"),
        ("scripted:reviewer.jsonl", "", (), "gather", "review.model is empty"),
        ("scripted:reviewer.jsonl", "", (), "review", "review.model is empty"),
        ("scripted:reviewer.jsonl", "scripted:gone.jsonl", (), "review", "gone.jsonl: cannot be read"),
        ("scripted:reviewer.jsonl", "opnai:gpt-4o", (), "compose", "unknown backend 'opnai'"),
        ("[review]", "[review]\nbatch = true", (), "safety", "scripted has no batches"),
        (
            "[review]",
            '[compose]\nmodel = "scripted:reviewer.jsonl"\nbatch = true\n[review]',
            (),
            "safety",
            "scripted has no batches",
        ),
        ('name = "made"', 'name = "simulated"', (), "gather", "a source cannot be named 'simulated'"),
        ("part = 4", "part = 5", (), "review", "another setting of part; .* --again gather"),
        ("", "", ("review",), "gather", "--again gather would remove it .* only review would be made"),
    ],
)
def test_again_removes_nothing_where_it_cannot_make_it_again(
    spec: Path, old: str, new: str, stages: tuple[str, ...], again: str, told: str
) -> None:
    """A typo with --again cost every stage and every paid reply: it removed first and looked afterwards."""
    curate(spec)
    before = kept_files(spec.parent / "work")
    spec.write_text(SPEC.replace(old, new, 1) if old else SPEC)
    with pytest.raises(ConfigError, match=told):
        curate(spec, stages, again=again)
    assert kept_files(spec.parent / "work") == before


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


@pytest.mark.parametrize("linked", ["06-reviewed", "03-safe", "04-distinct/kept"])
def test_again_removes_nothing_where_a_link_leads_away(spec: Path, linked: str) -> None:
    """It was emptied, and the link itself ended in a traceback."""
    curate(spec)
    path = spec.parent / "work" / linked
    path.rename(spec.parent / "elsewhere")
    path.symlink_to(spec.parent / "elsewhere")
    before = kept_files(spec.parent)
    with pytest.raises(DataError, match="is a symbolic link"):
        curate(spec, again="safety")
    assert kept_files(spec.parent) == before


def test_a_new_workspace_is_its_owners_alone(spec: Path) -> None:
    """Raw conversations lay in it, for everybody on the machine to read."""
    curate(spec, ("gather",))
    assert (spec.parent / "work").stat().st_mode & 0o777 == 0o700


def test_a_stage_alone_needs_only_its_own(spec: Path) -> None:
    spec.write_text(SPEC.replace("scripted:reviewer.jsonl", ""))
    told: list[str] = []
    curate(spec, ("gather", "anonymize"), on_stage=lambda item: told.append(item.stage))
    assert told == ["gather", "anonymize"]
    with pytest.raises(ConfigError, match="03-safe: is not finished"):
        curate(spec, ("dedup",))


def test_an_edited_script_is_asked_again(spec: Path) -> None:
    assert not summaries(curate(spec))[-1].counts.rejected
    script(spec.parent, {"id": "*", "text": verdict(1)})
    with pytest.raises(ConfigError, match="another setting of model"):
        curate(spec)
    assert summaries(curate(spec, again="review"))[-1].counts.rejected


def test_what_was_paid_for_is_not_paid_for_again(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--again, and any change of the review's arithmetic, bought every answer a second time."""
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
        assert len(server.charged()) == calls


def test_after_a_failure_the_advice_is_the_command_without_again(spec: Path) -> None:
    """The same command, with its --again, would have asked everything anew."""
    curate(spec)
    script(spec.parent, {"id": "*", "failure": {"reason": "timeout", "message": "never answered"}})
    with pytest.raises(Incomplete, match=r"the same command asks again, without --again review$"):
        curate(spec, again="review")


def test_what_a_kill_left_of_a_removal_is_not_taken_up(spec: Path) -> None:
    """Old parts without the stage's identity were adopted by the next run, whatever its settings."""
    workspace: Workspace = curate(spec)
    folder = workspace.stage("anonymize")
    whole = kept_files(folder.path)
    (folder.path / "stage.json").unlink()
    folder.file("kept", "part-00000").write_text("")
    curate(spec)
    assert kept_files(folder.path) == whole
