"""A model that is named by the path of its file, as llama.cpp and vLLM do: no page, table or export holds the path."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import h2htalk
from h2htalk.benchmark.report.leaderboard import labels_of
from h2htalk.benchmark.results_export.export import export_results
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.studies.dossier_document import write_dossier
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.data.files import read_json_object
from h2htalk.site.build import build_site
from support.doubles.loopback import Answer, LoopbackServer, completion
from support.studies import spec

WHOLE = {
    "posix": ("/home/ada/models/quiet-7B.gguf", "/home/ada"),
    "windows": ("C:\\Users\\Ada\\models\\quiet-7B.gguf", "Users"),
    "file url": ("file:///Users/ada/models/quiet-7B.gguf", "/Users"),
}
A = "I hear you. What would help?"


def of_path(path: str, *, failing: bool = False) -> Any:
    """A server whose replies name the model by a path, and one of whose errors does."""

    def reply(body: dict[str, Any], _: int) -> Answer:
        text = str(body["messages"])
        if failing and len(text) % 5 == 0:
            return Answer(
                {"error": {"message": f"failed to load '{path}'", "type": "invalid_request_error"}},
                400,
            )
        return Answer(completion(A) | {"model": path})

    return reply


def evaluated(folder: Path, path: str, typed: str = "", **settings: Any) -> Path:
    with LoopbackServer(reply=of_path(path, failing=settings.pop("failing", False))) as server:
        model = f"server:{typed or path}@{server.url}"
        run_settings = {
            "split": "mini",
            "language": "en",
            "limit": 22,
            "embedder": "none",
            "baselines": False,
        }
        h2htalk.evaluate(
            h2htalk.EvaluateSpec(**{**run_settings, **settings}, model=model, out=str(folder))
        )
    return folder


def require_nowhere(folder: Path, words: str) -> None:
    """No file below a folder holds the words; archives are opened."""
    texts = {}
    for file in (path for path in folder.rglob("*") if path.is_file()):
        texts[file.name] = file.read_bytes()
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                texts |= {f"{file.name}/{name}": archive.read(name) for name in archive.namelist()}
    assert texts
    spellings = {words.encode(), json.dumps(words)[1:-1].encode()}
    assert not [
        name for name, text in texts.items() if any(spelling in text for spelling in spellings)
    ]


@pytest.mark.parametrize("kind", WHOLE)
def test_a_run_of_a_model_named_by_its_path_is_published_under_its_file(
    tmp_path: Path, kind: str
) -> None:
    """`site` refused to build, and report.html, tables and bundles published the path."""
    path, private = WHOLE[kind]
    run = evaluated(tmp_path / "run", path)
    summary = load_run(run).summary
    assert summary.model == "server:quiet-7B.gguf"
    assert dict(summary.run_facts.texts())["model returned"] == "quiet-7B.gguf"
    shared = tmp_path / "shared"
    build_site([run], shared / "site")
    assert "quiet-7B.gguf" in next((shared / "site" / "models").glob("*.html")).read_text()
    export_results(run, "bundle", shared / "bundle.zip")
    export_results(
        run, "every-eval-ever", shared / "eee", model="ada/quiet-7B", organization="A lab"
    )
    list(write_dossier([run], shared / "dossier"))
    for name in ("report.html", "tables"):
        (run / name).rename(shared / name)
    require_nowhere(shared, private)


def test_a_path_in_an_error_of_the_server_stops_no_site(tmp_path: Path) -> None:
    path, private = WHOLE["posix"]
    run = evaluated(tmp_path / "run", path, "quiet", failing=True)
    assert load_run(run).summary.incomplete
    build_site([run], tmp_path / "shared" / "site")
    (run / "report.html").rename(tmp_path / "shared" / "report.html")
    require_nowhere(tmp_path / "shared", private)
    assert "failed to load 'quiet-7B.gguf'" in (
        tmp_path / "shared" / "report.html"
    ).read_text().replace("\\u0027", "'")


def test_a_study_and_its_judge_named_by_paths_are_published_under_their_files(
    tmp_path: Path,
) -> None:
    path, private = WHOLE["posix"]
    points = {f"p{k}": {"evidence": "seen", "answer": True} for k in range(1, 9)}

    def reply(body: dict[str, Any], _: int) -> Answer:
        schema = body.get("response_format")
        if schema is None:
            return Answer(completion(A) | {"model": path})
        names = schema["json_schema"]["schema"]["properties"]
        return Answer(
            completion(json.dumps({name: points[name] for name in names})) | {"model": path}
        )

    with LoopbackServer(reply=reply) as server:
        model = f"server:{path}@{server.url}"
        run_study(
            spec("instructions", model, tmp_path / "study", judge=model, language="en", limit=2)
        )
    study = tmp_path / "study"
    shared = tmp_path / "shared"
    build_site([study], shared / "site")
    list(write_dossier([study], shared / "dossier"))
    for name in ("report.html", "tables", "figures"):
        if (study / name).exists():
            (study / name).rename(shared / name)
    require_nowhere(shared, private)
    assert "quiet-7B.gguf" in (shared / "report.html").read_text()


def test_runs_of_two_files_of_one_name_are_told_apart_by_nothing_private(tmp_path: Path) -> None:
    runs = [evaluated(tmp_path / name, f"/home/{name}/q.gguf") for name in ("ada", "bo")]
    labels = labels_of([load_run(run).summary for run in runs])
    assert not [label for label in labels if "home" in label]


def test_a_summary_of_an_earlier_version_that_holds_a_path_is_shown_without_it(
    tmp_path: Path,
) -> None:
    path, private = WHOLE["posix"]
    run = evaluated(tmp_path / "run", path)
    manifest = read_json_object(run / "run.json")
    manifest["answering"]["models"] = {path: 22}
    (run / "run.json").write_text(json.dumps(manifest))
    build_site([run], tmp_path / "shared" / "site")
    require_nowhere(tmp_path / "shared", private)
