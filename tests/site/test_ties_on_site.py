"""The site shows ties of people, and judges whose answers do not count, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.benchmark.judge.judgements import PeopleRating, write_people_ratings
from h2htalk.benchmark.observations import select
from h2htalk.benchmark.planted.draw import PLANTED
from h2htalk.benchmark.raters import describe_check, describe_rule
from h2htalk.benchmark.studies.run_study import score_study
from h2htalk.site.build import study_pages
from h2htalk.site.context import Context, read_words
from h2htalk.site.leaks import LeakCheck
from h2htalk.site.pages import write_boards
from h2htalk.site.sources import read_sources
from support.studies import cases_of, judge_of, studied


@pytest.mark.parametrize(
    ("language", "tied", "legend", "unchecked"),
    [
        ("en", "1 tied (0.0 to {:.1f})", "people are split evenly", "its answers do not count"),
        ("zh", "，1 条持平（0.0 至 {:.1f}）", "人工意见各半", "其判断不计入"),
    ],
)
def test_ties_stand_beside_the_rates_of_the_site(
    tmp_path: Path, language: str, tied: str, legend: str, unchecked: str
) -> None:
    """The Chinese pages had them in English, and no page said what a tie is, or that a judge was not checked."""
    result = studied(
        tmp_path, "sap", judge=judge_of(cases_of("high_risk", "en")), arms=("none",), limit=4
    )
    path = result.study.path
    replies = [reply.reply.id for reply in result.replies if reply.violates is not None]
    ratings = [PeopleRating(f"{name}:violation", 0.0, 2, "r") for name in replies[1:3]]
    write_people_ratings(
        result.study.folder, [PeopleRating(f"{replies[0]}:violation", 0.5, 2, "r"), *ratings]
    )
    number = len(select(score_study(path).observations, "violation", "none"))
    context = Context(read_sources([path]), read_words(language), language, "H2HTalk")
    site = write_boards(context)
    tie_text = tied.format(100 / number)
    assert site["index.html"].count(tie_text) >= 2  # the list of studies, and the arms
    assert tie_text in site["tables/studies-1.csv"]
    assert legend in site["index.html"]
    assert unchecked not in site["index.html"]
    (page,) = (
        text
        for name, text in study_pages(context, LeakCheck(context.sources))
        if name.endswith(".html")
    )
    assert describe_check(score_study(path).planted, language) in page
    assert describe_rule(language) in page
    (path / "judgements" / PLANTED).unlink()
    score_study(path)
    site = write_boards(Context(read_sources([path]), read_words(language), language, "H2HTalk"))
    assert unchecked in site["index.html"]
