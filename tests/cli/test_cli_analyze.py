"""`h2htalk analyze`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import h2htalk, h2htalk_here
from tables import table

from h2htalk.data.files import write_jsonl


def test_a_split_becomes_a_page_and_a_screenful(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    done = h2htalk("analyze", "mini@1", "--language", "en", "--limit", "2", "--processes", "1", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "English, 2 scenarios" in done.stdout
    assert done.stdout.splitlines()[-1] == f"page: {out / 'index.html'}"
    assert "drawing" in done.stderr
    assert list(json.loads((out / "summary.json").read_text())["languages"]) == ["en"]


@pytest.mark.parametrize(("words", "message"), table("cli", "analyze"))
def test_what_cannot_work_is_one_line_before_the_work_and_writes_nothing(
    tmp_path: Path, words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    write_jsonl(tmp_path / "thesis" / "chapter.tex", [])
    done = h2htalk_here("analyze", "--out", "out", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert not (tmp_path / "out").exists()
