"""`curate run --dry-run` says what every stage would read, call and cost, and changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import h2htalk
from curation_made import all_files

from h2htalk.curation.curate import curate
from h2htalk.curation.dry_run import estimate_run
from h2htalk.errors import ConfigError

SPEC = """
workspace = "work"

[gather]
mock_dialogues = 8

[[gather.sources]]
name = "made"
path = "$H2HTALK_NO_SUCH_FOLDER/en.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"
"""
MODELS = """
[compose]
model = "openai:gpt-4o"
references = 2

[review]
model = "anthropic:claude-sonnet-5"
samples = 1
"""


def test_it_estimates_every_stage_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key is needed: nothing is called."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    spec = tmp_path / "curate.toml"
    spec.write_text(SPEC + MODELS)
    done = h2htalk("curate", "run", str(spec), "--dry-run")
    assert done.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["curate.toml"]
    lines = done.stdout.splitlines()
    assert lines[0] == "gather     to make: reads 8 items from made (mock dialogues, 8)"
    assert "anonymize  to make: reads at most 8 dialogues from gather" in lines
    # Of each dialogue one call for proposals, and two references for each of eight candidates.
    assert "openai:gpt-4o: likely 56, at most 136 calls; likely " in done.stdout
    # Of eight candidates each, three references: three pairs in two orders, and the rubric.
    assert "anthropic:claude-sonnet-5: likely 114, at most 448 calls; likely " in done.stdout
    assert re.fullmatch(r"together likely [\d.]+, at most [\d.]+ US dollars", lines[-2])


def test_it_knows_what_is_finished(tmp_path: Path) -> None:
    spec = tmp_path / "curate.toml"
    spec.write_text(SPEC)
    curate(spec, ["gather", "anonymize"])
    before = all_files(tmp_path)
    text = estimate_run(spec, ["safety"])
    assert text.splitlines()[0] == "safety     to make: reads 8 dialogues from anonymize"
    assert "gather     finished: 8 of 8 dialogues kept" in estimate_run(spec)
    assert "gather     to make: reads 8 items" in estimate_run(spec, from_stage="gather")
    with pytest.raises(ConfigError, match="the stage is not finished"):
        estimate_run(spec, ["dedup"])
    spec.write_text(SPEC.replace("= 8", "= 9"))
    with pytest.raises(ConfigError, match="another setting of sources"):
        estimate_run(spec)
    spec.write_text(SPEC)
    assert all_files(tmp_path) | {"curate.toml": b""} == before | {"curate.toml": b""}
