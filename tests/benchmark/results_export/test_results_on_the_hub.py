"""Results of a release on the Hub: the run knows its commit, a pull request proposes them, a bundle finds its split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from command_line import h2htalk_here, scripted
from hub_double import HubDouble
from hubs_made import hub_here
from releases_made import make_release

import h2htalk
from h2htalk.data.releases.hub import publish

NAME = ".eval_results/lab--made.yaml"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    """With a release and an empty model."""
    with hub_here(tmp_path, monkeypatch) as hub:
        publish(make_release(tmp_path / "release"), "lab/made")
        hub.add("lab/model", "model")
        yield hub


@pytest.fixture
def run(hub: HubDouble, tmp_path: Path) -> Path:
    spec = h2htalk.EvaluateSpec(
        model=scripted(tmp_path), split="hub:lab/made@v1.0.0", out=str(tmp_path / "run"), embedder="none"
    )
    h2htalk.evaluate(spec)
    return spec.out_path


def test_a_pull_request_proposes_the_entries(run: Path, hub: HubDouble, tmp_path: Path) -> None:
    model = hub.repos["model", "lab/model"]
    words = ("results", "export", run, "--to", "eval-results", "--out", tmp_path / "out")
    done = h2htalk_here(*words)
    assert done.returncode == 0, done.stderr
    assert not model.pulls  # only --push sends
    done = h2htalk_here(*words, "--push", "lab/model")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"pull request: {hub.url}/lab/model/discussions/1"
    content = model.files("refs/pr/1")[NAME]
    assert content == (tmp_path / "out" / NAME).read_bytes()
    assert NAME not in model.files()
    entries = yaml.safe_load(content)
    commit = hub.dataset("lab/made").tags["v1.0.0"]
    assert [entry["dataset"] for entry in entries] == [
        {"id": "lab/made", "task_id": task, "revision": commit} for task in ("dialogue_base", "dialogue_base_zh")
    ]
    assert h2htalk_here(*words, "--push", "lab/model").returncode == 0
    assert list(model.pulls) == ["refs/pr/1", "refs/pr/2"]


def test_what_cannot_be_proposed_is_an_error_in_one_line(
    run: Path, hub: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("results", "export", run, "--to", "eval-results", "--out", tmp_path / "out", "--push")
    done = h2htalk_here(*words, "lab/none")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "lab/none: Repository not found (404)" in done.stderr
    monkeypatch.setenv("HF_TOKEN", "hf_expired")
    assert "HF_TOKEN is refused" in h2htalk_here(*words, "lab/model").stderr
    monkeypatch.delenv("HF_TOKEN")
    done = h2htalk_here(*words, "lab/model")
    assert (done.returncode, "HF_TOKEN is not set" in done.stderr) == (2, True)
    done = h2htalk_here(*words[:3], "--to", "bundle", "--out", tmp_path / "bundle", "--push", "lab/model")
    assert (done.returncode, done.stderr) == (2, "error: --push is for --to eval-results\n")
    assert not (tmp_path / "bundle").exists()
    assert not hub.repos["model", "lab/model"].pulls


def test_the_repository_of_a_bundle_was_loaded_although_nobody_had_named_it(
    run: Path, hub: HubDouble, tmp_path: Path
) -> None:
    h2htalk.export_results(run, "bundle", tmp_path / "bundle")
    repo, asked = hub.dataset("lab/made"), len(hub.requests)
    commit = repo.tags["v1.0.0"]
    done = h2htalk_here("results", "verify", tmp_path / "bundle")
    assert (done.returncode, done.stdout, len(hub.requests)) == (2, "", asked)
    assert f"'hub:lab/made@v1.0.0', it says; if you trust them: --split hub:lab/made@{commit}\n" in done.stderr
    repo.tags["v1.0.0"] = repo.write({"README.md": b"Another one."})
    done = h2htalk_here("results", "verify", tmp_path / "bundle", "--split", f"hub:lab/made@{commit}")
    assert done.returncode == 3
    assert done.stdout.splitlines()[0] == f"split: hub:lab/made@{commit} (made 1.0.0, commit {commit})"
    found = h2htalk.verify_results(tmp_path / "bundle", f"hub:lab/made@{commit}")
    assert found.differs == []
    assert "the items of made 1.0.0" in found.matches
