"""Planted replies stay with the judge: no figure, page, export, round or site of a study holds a word of them."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from h2htalk.benchmark.planted import draw
from h2htalk.benchmark.planted.draw import PLANTED, read_planted
from h2htalk.benchmark.studies.run_study import run_study, score_study
from h2htalk.data.files import read_jsonl
from h2htalk.data.planted import PlantedPlace
from support.command_line import h2htalk_here
from support.judges import careful, serving
from support.studies import spec

MARK = "Qzxwvu"  # in every wording and passage, and nowhere else


def marked(place: PlantedPlace) -> PlantedPlace:
    """The place with a mark in each of its texts."""

    def with_mark(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(
            f"{text} {MARK}." if place.language == "en" else f"{text}{MARK}。" for text in texts
        )

    return replace(
        place,
        true_wordings=with_mark(place.true_wordings),
        false_wordings=with_mark(place.false_wordings),
        filler=with_mark(place.filler),
    )


def texts_of(path: Path) -> Iterator[str]:
    """What a file says, also where it is packed."""
    raw = path.read_bytes()
    if path.suffix == ".parquet":
        yield str(pq.read_table(path).to_pylist())
    elif zipfile.is_zipfile(io.BytesIO(raw)):
        with zipfile.ZipFile(io.BytesIO(raw)) as packed:
            for info in packed.infolist():
                # Inspect packs by zstandard, which not every Python unpacks.
                if info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    yield packed.read(info).decode("utf-8", "replace")
    else:
        yield raw.decode("utf-8", "replace")
        if raw[:2] == b"\x1f\x8b":
            yield zlib.decompress(raw, 31).decode("utf-8", "replace")


def test_no_writer_hands_a_planted_reply_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only `judgements/` holds them: what a judge was asked and answered."""
    real = draw.load_planted
    monkeypatch.setattr(draw, "load_planted", lambda split: tuple(map(marked, real(split))))
    study = tmp_path / "study"
    other = tmp_path / "other"
    with serving(careful) as server:
        for folder, arms in ((study, ("sap", "none")), (other, ("sap",))):
            asked = spec("sap", server.spec, folder, arms=arms, limit=4, judge=server.spec)
            result = run_study(asked)
        # Judged anew by another, and scored again.
        run_study(replace(asked, judge=server.spec.replace("server:", "server:other-")))
    score_study(study)
    planted = read_planted(result.study)
    assert len(planted) == 2 * 80
    assert all(MARK.lower() in one.text.lower() for one in planted)
    outputs: list[str] = []

    def run(*words: object, codes: tuple[int, ...] = (0,)) -> None:
        done = h2htalk_here(*words)
        assert done.returncode in codes, (words, done.stderr)
        outputs.append(done.stdout + done.stderr)

    out = tmp_path / "out"
    out.mkdir()
    run("report", study, "--format", "csv", codes=(0, 2, 3))
    run("leaderboard", study, other, "--format", "json", codes=(0, 2, 3))
    run("compare", study, other, "--out", out / "compare", codes=(0, 2))
    run("study", "score", study, codes=(0, 3))
    run("study", "export", study, "--out", out / "chats.jsonl", "--no-violations")
    run("study", "dossier", study, "--out", out / "dossier")
    run("study", "open-round", study, "--out", out / "safety", "--ask", "safety")
    run("study", "open-round", study, "--out", out / "points", "--ask", "points")
    run("show", study, "--sample", "400", codes=(0, 2))
    run("costs", study)
    run("runs", tmp_path)
    run("site", study, other, "--out", out / "site", codes=(0, 2))
    files = (
        "--junit",
        out / "gate.xml",
        "--markdown",
        out / "gate.md",
        "--html",
        out / "gate.html",
    )
    policy = tmp_path / "gate.toml"
    policy.write_text('[[criteria]]\nfigure = "violation"\nmax = 0.05\n', encoding="utf-8")
    run("gate", study, "--policy", policy, *files, "--json", out / "gate.json", codes=(0, 3, 4))
    kinds = [
        "eval-results",
        "every-eval-ever",
        "bundle",
        *(["inspect"] if find_spec("inspect_ai") is not None else []),
    ]
    for kind in kinds:
        run("results", "export", study, "--to", kind, "--out", out / f"to-{kind}", codes=(0, 2))
    if "inspect" in kinds:
        run("results", "export", study, "--to", "inspect", "--out", out / "log.json", codes=(0, 2))
    left = [
        path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "judgements"
    ]
    assert len(left) > 40
    ids = {one.id.rpartition("/")[2] for one in planted}
    for name, text in [
        ("printed", "\n".join(outputs)),
        *((str(path), one) for path in left for one in texts_of(path)),
    ]:
        assert MARK.lower() not in text.lower(), name
        assert not [one for one in ids if one in text], name


def test_a_copy_without_its_planted_replies_has_the_same_figures(tmp_path: Path) -> None:
    """They enter no rate: with and without them every figure is the same, but for what the judge is said to be."""
    with serving(careful) as server:
        result = run_study(
            spec("sap", server.spec, tmp_path / "study", arms=("sap",), limit=4, judge=server.spec)
        )
    bare = tmp_path / "bare"
    shutil.copytree(result.study.path, bare)
    ids = {one.id for one in read_planted(result.study)}
    calls = bare / "judgements" / "calls.jsonl"
    kept = [line for _, line in read_jsonl(calls) if line["id"] not in ids]
    calls.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    (bare / "judgements" / PLANTED).unlink()
    again = score_study(bare)
    assert again.planted is None
    assert again.observations == result.observations
    assert [one.reply.id for one in again.replies] == [one.reply.id for one in result.replies]
