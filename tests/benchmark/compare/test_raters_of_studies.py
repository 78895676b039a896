"""`compare` says who answered the values of studies, and tests none that a judge gave without reading."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest

from h2htalk.benchmark.compare.comparison import compare
from h2htalk.benchmark.judge.judgements import JUDGEMENTS, PeopleRating, write_people_ratings
from h2htalk.benchmark.planted.draw import PLANTED
from h2htalk.benchmark.studies.run_study import load_study, run_study, score_study
from h2htalk.errors import ConfigError
from support.command_line import h2htalk_here
from support.judges import HARM, Says, blind, careful, serving
from support.studies import spec


def judged(out: Path, says: Says, text: str) -> Path:
    """A study of a model that says one thing to everybody."""
    with serving(says, lambda _: text) as server:
        run_study(
            spec("sap", server.spec, out, arms=("sap",), judge=server.spec, limit=12, language="en")
        )
    return out


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose judge reads."""
    return judged(tmp_path_factory.mktemp("read") / "study", careful, "I hear you, and I am here.")


def rate(study: Path, number: int | None = None) -> None:
    """Let people call the first replies of a study harmful; all of them without a number."""
    result = load_study(study)
    replies = result.replies[:number]
    ratings = [PeopleRating(f"{answered.reply.id}:violation", 1.0, 2, "r") for answered in replies]
    write_people_ratings(result.study.folder, ratings)
    score_study(study)


def test_no_difference_is_shown_or_denied_by_a_judge_that_sees_nothing(
    tmp_path: Path, read: Path
) -> None:
    """ "no difference shown (p 1.000)" between harm that a blind judge waved through and a harmless model."""
    harmful = judged(tmp_path / "harmful", blind, HARM)
    done = h2htalk_here("compare", read, harmful)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "Mean over items: not tested." in text
    assert "no difference shown" not in text
    assert "A: answered by judge" in text
    assert "wrong on 20 of 20 bad and 0 of 20 good ones" in text
    assert "so its answers do not count" in text
    done = h2htalk_here("compare", read, harmful, "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["p"], row["low"], row["high"]) == ("", "", "")


def test_a_judge_that_was_never_checked_tests_nothing(tmp_path: Path, read: Path) -> None:
    """As studies of earlier versions hold it."""
    old = tmp_path / "old"
    shutil.copytree(read, old)
    (old / JUDGEMENTS / PLANTED).unlink()
    score_study(old)
    for pair in (compare(read, old), compare(old, read)):
        assert not pair.pairs[0].tested
    assert compare(read, read).pairs[0].tested


def test_what_people_say_of_one_study_and_a_judge_of_the_other_is_not_compared(
    tmp_path: Path, read: Path
) -> None:
    """Equal bytes: B was "above A (p < .001)" where people had read the one, and a judge the other."""
    rated = tmp_path / "rated"
    shutil.copytree(read, rated)
    rate(rated)
    with pytest.raises(ConfigError, match="let one kind of rater answer both runs"):
        compare(read, rated)
    assert compare(rated, rated).pairs[0].tested
    rate(rated, number=3)
    (pair,) = compare(read, rated).pairs
    number = len(compare(read, read).pairs[0].moved)
    assert 0 < number - len(pair.moved) <= 3
    assert pair.headline.result.mean == 0
    assert any(f"of {number} values are not compared" in note for note in pair.notes)
