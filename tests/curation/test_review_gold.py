"""Gold that shows nothing is refused or named: too many ties, too few lines, another language than is compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from h2htalk.curation.asking import Asking
from h2htalk.curation.curate import curate
from h2htalk.curation.parts import StageFolder
from h2htalk.curation.prompting import Prompts
from h2htalk.curation.review_forms import Reviewer
from h2htalk.curation.review_gate import Gatekeeper, Gold, read_gold, require_reachable
from h2htalk.curation.spec import ReviewSettings
from h2htalk.errors import ConfigError

SPEC = """
workspace = "work"

[gather]
stand_in = 4

[[gather.sources]]
name = "made"
path = "$H2HTALK_NO_SUCH_FOLDER/en.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"

[review]
model = "scripted:reviewer.jsonl"
gold = "gold.jsonl"
"""


def gold_of(folder: Path, wins: int, ties: int = 0) -> Gold:
    lines = [
        {
            "id": f"g{n}",
            "language": "en",
            "subtask": "dialogue_base",
            "prompt": f"I burnt cake {n}.",
            "a": "Is there flour left?",
            "b": "Use a timer.",
            "better": "a" if n < wins else "tie",
        }
        for n in range(wins + ties)
    ]
    path = folder / "gold.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_gold(path)


@pytest.mark.parametrize(("wins", "ties"), [(4, 0), (30, 0), (20, 10)])
def test_gold_that_the_best_would_pass_is_taken(tmp_path: Path, wins: int, ties: int) -> None:
    require_reachable(gold_of(tmp_path, wins, ties))


@pytest.mark.parametrize(("wins", "ties"), [(3, 0), (1, 29), (2, 8)])
def test_gold_that_nobody_could_pass_is_refused(tmp_path: Path, wins: int, ties: int) -> None:
    """It was asked for, paid for, and refused every reviewer."""
    told = f"all {wins + ties} comparisons right would be refused .*; {ties} of them are ties: give more"
    with pytest.raises(ConfigError, match=told):
        require_reachable(gold_of(tmp_path, wins, ties))


def test_it_is_refused_before_the_first_stage(tmp_path: Path) -> None:
    gold_of(tmp_path, 1, 29)
    (tmp_path / "curate.toml").write_text(SPEC)
    (tmp_path / "reviewer.jsonl").write_text('{"id": "*", "text": "x"}\n')
    with pytest.raises(ConfigError, match="29 of them are ties"):
        curate(tmp_path / "curate.toml")
    assert not (tmp_path / "work" / "01-gathered").exists()


def test_a_language_that_gold_does_not_hold_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reviewer that knew its English passed for Chinese, and nobody was told."""
    folder, asking = StageFolder(tmp_path / "06-reviewed"), cast(Asking, None)  # the gate was asked already
    folder.remark("gate", {"accepted": True, "told": "gate: passed"})
    reviewer = Reviewer("scripted:x", 1.0, 0, Prompts.load(None), b"")
    keeper = Gatekeeper(folder, gold_of(tmp_path, 30), reviewer, ReviewSettings())
    assert keeper.admits(asking, {"en"})
    assert folder.remarks()["gate"]["told"] == "gate: passed"
    for _ in range(2):
        assert keeper.admits(asking, {"en", "zh"})
    said = "; gold holds nothing in zh, so nothing shows it there"
    assert folder.remarks()["gate"]["told"] == f"gate: passed{said}"
    assert capsys.readouterr().err == f"review: gate{said}\n"
