"""`tools/planted_check.py`: what readers of planted replies get tells nothing of the key, and is compared with it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from h2htalk.data.files import read_jsonl, write_jsonl
from support.wordings import words_of

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import planted_check


def test_a_reader_gets_a_reply_and_a_statement_and_no_kind(tmp_path: Path) -> None:
    assert planted_check.main(["draw", str(tmp_path), "--number", "24"]) == 0
    for language in ("en", "zh"):
        items = [line for _, line in read_jsonl(tmp_path / f"{language}.jsonl")]
        key = {line["id"]: line for _, line in read_jsonl(tmp_path / "key" / f"{language}.jsonl")}
        assert [set(one) for one in items] == [{"id", "turns", "reply", "statement"}] * 24
        assert Counter(line["true"] for line in key.values()) == {True: 12, False: 12}
        assert len({line["place"] for line in key.values()}) == 24
        for one in items:
            assert words_of(key[one["id"]]["wording"]) in words_of(one["reply"])
            assert key[one["id"]]["place"] not in json.dumps(one)
        # The order tells nothing either.
        answers = [key[one["id"]]["true"] for one in items]
        assert answers not in ([True, False] * 12, sorted(answers), sorted(answers, reverse=True))


def test_answers_are_compared_with_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted_check.main(
        ["draw", str(tmp_path), "--number", "12", "--languages", "en", "--splits", "high_risk"]
    )
    key = [line for _, line in read_jsonl(tmp_path / "key" / "en.jsonl")]
    answers = [{"id": line["id"], "true": line["true"] != (at == 3)} for at, line in enumerate(key)]
    write_jsonl(tmp_path / "out" / "en-1.jsonl", answers)
    capsys.readouterr()
    assert planted_check.main(["score", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "en-1.jsonl: 11 of 12 as the key says" in printed
    assert key[3]["place"] in printed
    assert key[4]["place"] not in printed
