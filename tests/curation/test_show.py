"""`h2htalk show`: every kind of folder that holds records, and text that must not reach the terminal raw."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import h2htalk
from curation_made import dialogue, dropping, gathered, stage
from typer.testing import CliRunner

from h2htalk.benchmark.score_run import import_responses
from h2htalk.cli import app
from h2htalk.curation.run import RuleFactory, run_stage
from h2htalk.curation.show import show
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError


def test_a_split_shows_the_named_items_whole_or_the_same_sample_each_time() -> None:
    text = "\n".join(show("mini", ["mini-en-dialogue-emotion-11"]))
    assert "user: They read the will." in text
    assert "reference: Nine years" in text
    assert "emotion fury" in text
    assert text.endswith("1 of 352 records of mini")
    assert list(show("mini", sample=3)) == list(show("mini", sample=3))
    with pytest.raises(ConfigError, match="no record 'nobody' among 352 records"):
        list(show("mini", ["nobody"]))


def test_an_error_of_several_lines_is_shown_as_lines(tmp_path: Path) -> None:
    r"""They were one line with the characters \n between them."""
    write_jsonl(tmp_path / "a.jsonl", [{"id": "a\n1", "messages": []}])
    done = h2htalk("show", tmp_path / "a.jsonl")
    assert done.returncode == 2
    assert done.stderr.splitlines()[1].startswith(f"{tmp_path}/a.jsonl:1: ")
    assert done.stderr.count("\\n") == done.stderr.count("a\\n1")


def test_a_stage_shows_what_it_kept_and_what_it_rejected_with_the_reason(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, [dialogue(1), dialogue(2, "My gull says \x1b[31mhello.", "Does it?")])
    run_stage(stage("anonymize", RuleFactory(dropping, ("gull",))), workspace, processes=1)
    text = "\n".join(show(str(tmp_path / "anonymize")))
    assert "── made-000001  en" in text
    assert "kept" in text
    assert "licence: CC0-1.0" in text
    assert "rejected by anonymize: says gull  word gull" in text
    result = CliRunner().invoke(app, ["show", str(tmp_path / "anonymize"), "made-000002"])
    assert result.exit_code == 0
    assert "My gull says" in result.output
    assert "\x1b" not in result.output


def test_a_run_shows_replies_and_failures_beside_their_items(tmp_path: Path) -> None:
    ids = [one.id for one in load_split("mini").select("en", limit=2).scenarios]
    write_jsonl(tmp_path / "replies.jsonl", [{"id": ids[0], "response": "Ah well."}])
    import_responses(tmp_path / "replies.jsonl", "imported", "mini", tmp_path / "run", "none", False)
    assert "reply 0: Ah well." in "\n".join(show(str(tmp_path / "run"), ids[:1]))
    assert "not answered" in "\n".join(show(str(tmp_path / "run"), ids[1:]))
