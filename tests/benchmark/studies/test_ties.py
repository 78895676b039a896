"""Ties of people: what they would make of a rate stands beside it, in every form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from h2htalk.benchmark.estimate_text import format_figure, format_percent
from h2htalk.benchmark.judge.judgements import PeopleRating, write_people_ratings
from h2htalk.benchmark.observations import (
    NOT_ASKED,
    TIED,
    Observation,
    blindness,
    figure_of,
    select,
)
from h2htalk.benchmark.studies.report.study_page import study_text
from h2htalk.benchmark.studies.run_study import score_study
from support.command_line import h2htalk_here
from support.studies import cases_of, judge_of, studied


def observed(figure: str, value: float, number: int, tied: int) -> list[Observation]:
    """So many scored values, and so many ties."""
    known = [
        Observation("sap", figure, f"c{k}", f"c{k}", value, by="people") for k in range(number)
    ]
    return known + [
        Observation("sap", figure, f"t{k}", f"t{k}", None, unscored=TIED) for k in range(tied)
    ]


def test_a_rate_says_what_the_ties_would_make_of_it() -> None:
    """16 of 175 replies that one of two people called harmful left the rate: 0.0 % (0.0 to 2.4)."""
    found = figure_of(observed("violation", 0.0, 159, 16))
    assert format_percent(found, count=True) == "0.0 % (0.0 to 2.4), 0 of 159, 16 tied (0.0 to 9.1)"
    assert (found.n, found.total, found.tied) == (159, 175, 16)
    assert found.tie_range == pytest.approx((0, 16 / 175))
    assert format_percent(figure_of(observed("violation", 0.0, 159, 0))) == "0.0 % (0.0 to 2.4)"
    shares = figure_of(observed("points", 0.5, 30, 10))
    assert format_figure(shares, factor=100).endswith(", 10 tied (37.5 to 62.5)")
    assert figure_of(observed("violation", 0.0, 0, 3)).tie_range == (0, 1)
    assert figure_of(observed("perception", 4.0, 5, 3)).tied == 0  # a mean of ratings has no ties


def test_blindness_counts_the_hints_about_which_people_are_tied() -> None:
    def need(family: str, degree: int, value: float | None) -> Observation:
        row = Observation("full", "need_met", f"{family}{degree}", family, value, degree=degree)
        return row if value is not None else replace(row, unscored=TIED)

    rows = [
        need("a", 0, 1.0),
        need("a", 3, 1.0),
        need("b", 0, 1.0),
        need("b", 3, None),
        need("c", 0, 0.0),
    ]
    found = blindness(rows)
    assert (found.value, found.n, found.tied, found.tie_range) == (0.0, 1, 1, (0.0, 0.5))


def test_every_form_of_a_study_shows_the_ties(tmp_path: Path) -> None:
    result = studied(
        tmp_path, "sap", judge=judge_of(cases_of("high_risk", "en")), arms=("none",), limit=4
    )
    path = result.study.path
    replies = [one.reply.id for one in result.replies if one.violates is not None]
    ratings = [PeopleRating(f"{name}:violation", 0.0, 2, "r") for name in replies[1:]]
    write_people_ratings(
        result.study.folder, [PeopleRating(f"{replies[0]}:violation", 0.5, 2, "r"), *ratings]
    )
    result = score_study(path)
    violations = select(result.observations, "violation", "none")
    assert [row.unscored for row in violations if row.value is None] == [TIED]
    assert TIED not in {row.unscored for row in select(result.observations, "perception")}
    shown = f"1 tied (0.0 to {100 / len(violations):.1f})"
    done = h2htalk_here("study", "dossier", path, "--out", tmp_path / "dossier")
    assert done.returncode == 0, done.stderr
    texts = [
        (path / name).read_text()
        for name in ("report.html", "tables/table3.csv", "tables/table3.md")
    ]
    for text in [*texts, study_text(result)]:
        assert shown in text
        assert "Tied: people are split evenly" in " ".join(text.split()) or text == texts[1]
    assert "Left out: 1 tie of people." in (path / "figures" / "turns_violation.svg").read_text()
    assert shown in json.dumps(json.loads((path / "summary.json").read_text())["tables"])
    assert "people are tied about 1: 0.0 –" in (tmp_path / "dossier" / "dossier.html").read_text()


def test_a_value_that_nobody_was_asked_about_is_no_tie(tmp_path: Path) -> None:
    """People were tied about one of two open points: the order of the points said whether that was a tie."""
    result = studied(tmp_path, "instructions", arms=("full",), limit=4)
    several = next(one for one in result.replies if len(one.points) > 1)
    points = [one.point.id for one in several.points]
    for tied, why in (((points[0],), NOT_ASKED), (points, TIED)):
        ratings = [PeopleRating(f"{several.reply.id}:{point}", 0.5, 2, "r") for point in tied]
        write_people_ratings(result.study.folder, ratings)
        rows = select(score_study(result.study.path).observations, "points", "full")
        at = [
            row for row in rows if (row.item, row.place) == (several.case.id, several.reply.place)
        ]
        assert [row.unscored for row in at] == [why]
