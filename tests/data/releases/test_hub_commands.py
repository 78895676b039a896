"""The Hub's double against the real clients, each in a process of its own: commands, `datasets`, kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import h2htalk
from hub_double import HubDouble
from hubs_made import MAIN, PATIENT, client_environment, h2htalk_there, python

from h2htalk.data.releases.release_folder import read_manifest
from h2htalk.data.splits import load_split

SECRET = (b"plants", b"PAR1", b"hf_lab")
ROWS = """
import json, sys
import datasets
loaded = datasets.load_dataset(*sys.argv[1:3], **({"revision": sys.argv[3]} if sys.argv[3:] else {}))
print(json.dumps({split: rows.to_list() for split, rows in loaded.items()}))
"""


def test_a_release_goes_to_the_hub_and_back_by_commands(release: Path, tmp_path: Path) -> None:
    """`split info`, `evaluate` and plain `datasets` read it by its name; what the clients keep can be removed."""
    with HubDouble() as hub:
        environment, name = client_environment(hub, tmp_path), "hub:lab/made@v1.0.0"
        plan = h2htalk_there("release", "publish", release, "lab/made", "--dry-run", environment=environment)
        names = ["release.json", *sorted(read_manifest(release).files)]
        assert [line.split()[1] for line in plan.stdout.splitlines()[:-1]] == names, plan.stderr
        assert plan.stdout.splitlines()[-1].endswith("bytes, nothing was sent")
        assert hub.requests == []
        done = h2htalk_there("release", "publish", release, "lab/made", environment=environment)
        commit = hub.dataset("lab/made").tags["v1.0.0"]
        assert done.stdout.startswith(f"{name}: 7 files, "), done.stderr
        assert done.stdout.endswith(f" bytes, commit {commit}\n")
        options = ["--split", name, "--embedder", "none", "--out", tmp_path / "run"]
        run = h2htalk_there("evaluate", "baseline:constant", *options, environment=environment)
        assert run.returncode == 0, run.stderr
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert summary["split"] == f"made 1.0.0 ({name}, commit {commit[:12]})"
        pulled = h2htalk_there("release", "pull", name, "--out", tmp_path / "copy", environment=environment)
        assert pulled.stdout == f"{name} (commit {commit}): {tmp_path / 'copy'}\n"
        assert load_split(tmp_path / "copy") == load_split(release)
        wrong = h2htalk_there("split", "info", "hub:lab/made@v2", environment=environment)
        assert (wrong.returncode, wrong.stderr[:54]) == (2, "error: hub:lab/made@v2: there is no tag v2; choose fro")
        ours = [one for one in load_split(release).scenarios if one.language == "en"]
        for place in (["lab/made", "en", "v1.0.0"], [str(tmp_path / "copy"), "en"]):
            done = python(ROWS, *place, environment=environment)
            assert done.returncode == 0, done.stderr
            rows = json.loads(done.stdout)
            assert list(rows) == ["test", "dev"]
            assert [(r["id"], r["references"]) for r in rows["test"]] == [(s.id, list(s.references)) for s in ours]
            assert [json.loads(row["inputs"]) for row in rows["test"]] == [one.to_dict()["inputs"] for one in ours]
        code = "from h2htalk.data.releases.hub import delete_cached\nprint(len(delete_cached('lab/made')))"
        assert python(code, environment=environment).stdout == "2\n"
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not any(word in path.read_bytes() for path in kept if "copy" not in str(path) for word in SECRET)


def test_a_source_of_a_curation_is_loaded_with_the_same_client(tmp_path: Path) -> None:
    code = """
import sys
from h2htalk.curation.gather.records import dataset_records
print([row["a"] for _, _, row in dataset_records(sys.argv[1], None)])
"""
    with HubDouble() as hub:
        commit = hub.add("lab/talks", private=True).write({"train.csv": b"a,b\n1,2\n3,4\n"})
        environment = client_environment(hub, tmp_path)
        done = python(code, f"hub:lab/talks@{commit}", environment=environment)
        assert done.stdout == "[1, 3]\n", done.stderr
        bad = python(code, f"hub:lab/talks@{commit}", environment={**environment, "HF_TOKEN": "hf läb"})
        assert "HF_TOKEN holds a character that no token has" in bad.stderr


@pytest.mark.parametrize(
    ("point", "sent", "code"), [("commit", signal.SIGKILL, -signal.SIGKILL), ("put", signal.SIGINT, 130)]
)
def test_an_upload_that_hangs_ends_when_told_and_resumes_to_one_complete_commit(
    release: Path, tmp_path: Path, point: str, sent: signal.Signals, code: int
) -> None:
    """After Ctrl-C, it waited two minutes for the client's threads."""
    with HubDouble() as hub:
        environment = client_environment(hub, tmp_path)
        hub.fault(point, "hang", times=1)
        soon = "import h2htalk.data.releases.hub as hub\nhub.LONGEST_STOP = 0.5\n"
        words = [sys.executable, "-c", f"{PATIENT}{soon}{MAIN}", "release", "publish", str(release), "lab/made"]
        running = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL)
        while point not in hub.points():
            assert running.poll() is None
        running.send_signal(sent)
        assert running.wait(30) == code
        done = h2htalk_there("release", "publish", release, "lab/made", environment=environment)
        assert done.returncode == 0, done.stderr
        repo = hub.dataset("lab/made")
        assert repo.tags == {"v1.0.0": repo.head.sha}
        assert len(repo.commits) == 2
        assert repo.files().keys() == {".gitattributes", "release.json", *read_manifest(release).files}


@pytest.mark.parametrize("address", ["http://[::1", "http://host:99999"])
def test_an_address_of_the_hub_that_cannot_be_was_a_traceback(tmp_path: Path, address: str) -> None:
    done = h2htalk("release", "pull", "hub:a/b@v1", "--out", tmp_path / "x", env=os.environ | {"HF_ENDPOINT": address})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("error: HF_ENDPOINT has no usable URL (")
