"""What is known of each reader's recall at the end of a run, and the figures of the words in the package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from h2htalk.curation.assessment import assess
from h2htalk.curation.reading.recall import measured_words
from h2htalk.curation.safety.stage import VERSION, model_fingerprints
from h2htalk.data.files import read_jsonl, write_json
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.certificates import Certificate, CertificateFigure, add_certificate
from h2htalk.data.scenario import Dialogue, Turn
from support.command_line import h2htalk
from support.curations import dialogue, finished, run_one, source
from support.doubles.loopback import LoopbackServer
from support.guards import answer_question, guard_settings

GOLDEN = Path(__file__).parents[1] / "golden"
RAW = Path(__file__).parents[3] / "examples" / "raw_en.jsonl"
STAGE_FILE = {"stage": "review", "version": 1, "source": "s", "fingerprint": "f"}
AGAIN = "measure again: python tools/eval_safety.py --measured"


def test_the_figures_of_the_words_are_about_the_rules_that_ship() -> None:
    measured = measured_words()
    assert measured.version == VERSION, AGAIN
    assert measured.models == {
        language: tuple(model_fingerprints(language)) for language in LANGUAGES
    }, AGAIN
    figures = [one for one in measured.figures if one.set in measured.current]
    for language in LANGUAGES:
        of = {one.kind: one.of for one in figures if one.language == language}
        assert of == {
            "harm": 80,
            "harm_look_alike": 80,
            "crisis_own": 30,
            "crisis_other": 16,
            "crisis_past": 14,
            "crisis_look_alike": 40,
            "minor": 40,
            "minor_look_alike": 40,
        }
    assert all(one.found <= one.noted <= one.of for one in measured.figures)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_stored_figure_is_what_the_words_find(language: Language) -> None:
    found = {"minor": 0, "adult": 0}
    for _, row in read_jsonl(GOLDEN / f"worries_minor_{language}.jsonl"):
        turns = tuple(Turn(turn["role"], turn["content"]) for turn in row["messages"])
        found[row["label"]] += "minor" in assess(Dialogue(row["id"], language, turns)).reasons
    stored = {
        one.kind: one.found
        for one in measured_words().figures
        if one.set == f"worries_minor_{language}"
    }
    assert stored == {"minor": found["minor"], "minor_look_alike": found["adult"]}, AGAIN


def curated(folder: Path, safety: str = "") -> tuple[str, Path]:
    """Run the first three stages on four dialogues; returns what was printed, and the workspace."""
    spec = folder / "curate.toml"
    spec.write_text(
        f'workspace = "work"\nprocesses = 1\n{source("made", RAW, "dialogues", "limit = 4")}{safety}'
    )
    stages = [word for name in ("gather", "anonymize", "safety") for word in ("--stage", name)]
    return h2htalk("curate", "run", str(spec), *stages).stdout, folder / "work"


def certificate(reader: str) -> Certificate:
    figures: Mapping[str, tuple[int, int]] = {
        "harm": (19, 20),
        "harm_look_alike": (1, 20),
        "minor": (18, 20),
    }
    return Certificate(
        reader=reader,
        prompt="p",
        set="s",
        date="2026-11-30",
        figures=tuple(
            CertificateFigure(language="en", kind=kind, found=found, of=of)
            for kind, (found, of) in figures.items()
        ),
    )


def test_a_run_without_a_guard_says_what_words_find_and_that_nobody_has_read(
    tmp_path: Path,
) -> None:
    shown, workspace = curated(tmp_path)
    lines = [line for line in shown.splitlines() if line.startswith("words found")]
    # Of Chinese nothing: the corpus has none.
    assert [line.partition(":")[0] for line in lines] == ["words found, en"]
    figure = next(
        one
        for one in measured_words().figures
        if (one.set, one.kind) == ("worries_harm_en", "harm")
    )
    assert f"harm by the companion {figure.found} of 80" in lines[0]
    assert f"rules of version {VERSION}" in lines[0]
    assert "look-alikes of crises" in lines[0]
    again = h2htalk("curate", "funnel", str(workspace)).stdout
    assert all(line in again for line in lines)
    assert "not checked" not in shown


def test_what_certificates_say_is_printed_and_a_reviewer_without_one_is_named(
    tmp_path: Path,
) -> None:
    workspace = finished(tmp_path / "work", "anonymize", [dialogue(1), dialogue(2)])
    with LoopbackServer(reply=answer_question) as server:
        run_one("safety", workspace, guard_settings(server))
    (reader,) = {record["read"]["reader"] for record in workspace.stage("safety").records("audit")}
    add_certificate(workspace.path, certificate(reader))
    shown = h2htalk("curate", "funnel", str(workspace.path)).stdout
    figures = "harm by the companion 19 of 20, look-alikes 1 of 20; users under 18 18 of 20"
    assert (
        f"{reader} found, en: {figures} (checked 2026-11-30, with other dialogues: check it again)"
        in shown
    )
    review = workspace.stage("review").path
    write_json(
        review / "stage.json", {"settings": {"model": "anthropic:claude-sonnet-5"}, **STAGE_FILE}
    )
    shown = h2htalk("curate", "funnel", str(workspace.path)).stdout
    assert "review:anthropic:claude-sonnet-5 was not checked" in shown
    add_certificate(workspace.path, certificate("review:anthropic:claude-sonnet-5"))
    shown = h2htalk("curate", "funnel", str(workspace.path)).stdout
    assert "review:anthropic:claude-sonnet-5 was not checked" not in shown
    assert "review:anthropic:claude-sonnet-5 found, en: " in shown


def test_a_workspace_of_earlier_rules_is_named(tmp_path: Path) -> None:
    _, workspace = curated(tmp_path)
    path = workspace / "safety" / "stage.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**stored, "version": 6}), encoding="utf-8")
    shown = h2htalk("curate", "funnel", str(workspace)).stdout
    assert "this workspace was made by version 6" in shown


def test_before_the_safety_stage_nothing_is_said(tmp_path: Path) -> None:
    workspace = finished(tmp_path / "work", "gather", [dialogue(1)])
    assert "words found" not in h2htalk("curate", "funnel", str(workspace.path)).stdout
