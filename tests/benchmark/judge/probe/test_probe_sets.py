"""The bundled sets: enough of each kind, what each kind claims, and two readings that agree with every order."""

from __future__ import annotations

import csv
import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from h2htalk.benchmark.judge.probe import probe_figures as sets
from h2htalk.benchmark.judge.probe.probe_figures import PAIR_KINDS, SETS, probe_figures, read_probe_set
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError

RECORDS = [record for language in LANGUAGES for record in read_probe_set(language)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_there_are_enough_of_each_kind(language: str) -> None:
    counts = Counter(record.kind for record in read_probe_set(language))
    assert {kind: counts[kind] >= 30 for kind in (*PAIR_KINDS, "repeat")} == dict.fromkeys(
        (*PAIR_KINDS, "repeat"), True
    )
    assert counts["injection"] >= 20


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_record_is_of_its_language_a_subtask_and_a_persona(language: str) -> None:
    personas = tomllib.loads((SETS / "personas.toml").read_text(encoding="utf-8"))
    for record in read_probe_set(language):
        assert record.id.startswith(f"{language}-{record.kind}-")
        assert "/" not in record.id
        assert record.subtask in SUBTASKS
        assert personas[record.persona][language]
        assert "user" in {message.role for message in record.history}


def test_no_id_and_no_reply_stands_twice() -> None:
    assert max(Counter(record.id for record in RECORDS).values()) == 1
    replies = Counter(reply for record in RECORDS for reply in record.replies.values())
    assert [reply for reply, count in replies.items() if count > 1] == []


def test_padded_is_longer_and_shortened_is_shorter() -> None:
    for pair in RECORDS:
        if pair.kind in ("padded", "shortened"):
            assert (len(pair.worse) > len(pair.better)) is (pair.kind == "padded"), pair.id


def test_two_readings_confirm_every_pair() -> None:
    with (SETS / "readings.csv").open(encoding="utf-8", newline="") as file:
        readings = {row["id"]: (row["reader_1"], row["reader_2"]) for row in csv.DictReader(file)}
    assert readings == {pair.id: ("better", "better") for pair in RECORDS if pair.kind in PAIR_KINDS}


@pytest.mark.parametrize(
    ("sign", "passed"),
    [(1, {"shortened": 1.0, "unsafe": 0.63}), (-1, {"padded": 1.0, "off_persona": 0.89, "all": 0.57})],
)
def test_what_length_alone_gets_right_is_what_the_docs_say(sign: int, passed: dict[str, float]) -> None:
    judged = {f"{one.id}/{name}": [(sign * len(text) / 100,)] for one in RECORDS for name, text in one.replies.items()}
    figures = [one for one in probe_figures(RECORDS, judged) if one.language == "all" and one.name.startswith("acc")]
    right = {one.name.removeprefix("accuracy: "): round(one.value or 0, 2) for one in figures if one.measures}
    assert right == passed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "longer"}, "kind: must be 'shortened', "),
        ({"kind": "injection"}, "needs plain and injected"),
        ({"better": 3}, "better: must be text"),
        ({"note": "x"}, "note: no such field"),
        ({"history": [{"role": "assistant", "content": "x"}]}, "history.1.role"),
        ({"worse": None}, "worse"),
    ],
)
def test_a_line_that_is_no_record_is_refused(
    change: dict[str, object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = json.loads((SETS / "en.jsonl").read_text(encoding="utf-8").splitlines()[0])
    (tmp_path / "en.jsonl").write_text(json.dumps(raw) + "\n" + json.dumps(raw | change) + "\n")
    monkeypatch.setattr(sets, "SETS", tmp_path)
    with pytest.raises(DataError, match=f"en.jsonl:2: .*{message}"):
        read_probe_set("en")
