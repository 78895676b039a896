"""From candidates to a release by commands, with both rounds on a real server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from curation_made import finished
from release_items import different
from release_rounds import candidate, write_spec

from h2htalk.data.splits import load_split

pytestmark = [pytest.mark.live, pytest.mark.timeout(900), pytest.mark.usefixtures("signed_in")]
ROOT = Path(__file__).parents[3]
PEOPLE = "name,languages,crisis\n" + "".join(f"rel-{name},en zh,yes\n" for name in "abc")


def test_a_release_of_what_annotators_on_a_server_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    scenarios = [*(different(n) for n in range(1, 5)), *(different(n, "zh") for n in range(21, 25))]
    finished(tmp_path / "W", "compose", [candidate(one).to_dict() for one in scenarios])
    (tmp_path / "people.csv").write_text(PEOPLE)
    write_spec(tmp_path, quota=4)

    def run(*words: str) -> str:
        program = ["-m", "h2htalk"] if words[0] != "simulate" else [str(ROOT / "tools" / "simulate_annotators.py")]
        given = words if words[0] != "simulate" else words[1:]
        done = subprocess.run(
            [sys.executable, *program, *given], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    server = ("--where", "argilla", "--annotators", "people.csv", "--overlap", "3")
    for kind, items in (("crowd", "W"), ("expert", "release-crowd")):
        round = f"release-{kind}"
        run("round", "open", kind, items, "--out", round, *server)
        logins = tmp_path / round / "private" / "argilla_logins.csv"
        if not logins.exists():  # the accounts are those of the first round
            logins.write_bytes((tmp_path / "release-crowd" / "private" / "argilla_logins.csv").read_bytes())
        run("simulate", round, "--drop", "0", "--skill", "1")
        run("round", "close", round)
    assert "every gate passed" in run("release", "build", "release-1.0.0.toml", "--out", "release")
    run("release", "check", "release")
    known = {one.id: one for one in scenarios}
    released = load_split(tmp_path / "release").scenarios
    assert len(released) == 4
    assert all(one.references == known[one.id].references for one in released)
