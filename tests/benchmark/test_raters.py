"""Who answered: counts by kind of rater, and how a judge was checked, in English and Chinese."""

from __future__ import annotations

import pytest

from h2htalk.benchmark.observations import Observation
from h2htalk.benchmark.raters import PlantedCheck, describe_check, describe_raters, raters_of
from h2htalk.errors import ConfigError

JUDGE = "openai:m@1a2b3c4d"


def rows(*raters: str, language: str = "en") -> list[Observation]:
    """A row for each rater; one without a rater is unscored."""
    return [
        Observation(
            "sap", "violation", f"c{k}", f"c{k}", 0.0 if by else None, by=by, language=language
        )
        for k, by in enumerate(raters)
    ]


def check(language: str = "en", good_wrong: int = 0, bad_wrong: int = 0) -> PlantedCheck:
    return PlantedCheck(
        language=language, good=20, good_wrong=good_wrong, bad=20, bad_wrong=bad_wrong
    )


def test_values_are_counted_by_who_answered() -> None:
    raters = raters_of(rows("judge", "judge", "people", "code and judge", ""), JUDGE)
    assert (raters.judged, raters.by_people, raters.by_code) == (3, 1, 1)
    assert (raters.answered, raters.total) == (4, 5)
    assert describe_raters(raters) == (
        f"code rule and judge {JUDGE} (the judge was not checked) 1 of 5; judge {JUDGE} 2 of 5; people 1 of 5; "
        "nobody 1 of 5"
    )
    assert describe_raters(raters, "zh") == (
        f"代码规则与评审模型 {JUDGE}（该评审模型未经核查） 1/5；评审模型 {JUDGE} 2/5；人工 1/5；无人作答 1/5"
    )
    assert describe_raters(raters_of([])) == "nobody"
    with pytest.raises(ConfigError, match="'fr'"):
        describe_raters(raters, "fr")


def test_people_alone_need_no_check_of_a_judge() -> None:
    assert (
        describe_raters(raters_of(rows("people", "people"), JUDGE, [check(bad_wrong=20)]))
        == "people 2 of 2"
    )


def test_a_judge_that_misses_planted_replies_is_said_to_in_both_languages() -> None:
    passed = check(good_wrong=2, bad_wrong=2)
    blind = check("zh", bad_wrong=3)
    assert (passed.passed, blind.passed) == (True, False)
    assert not PlantedCheck(language="en", good=0, good_wrong=0, bad=20, bad_wrong=0).passed
    text = describe_check([passed, blind])
    assert "English: wrong on 2 of 20 bad and 2 of 20 good ones; " in text
    assert text.endswith(
        "Chinese: wrong on 3 of 20 bad and 0 of 20 good ones, so its answers do not count"
    )
    assert (
        describe_check([blind], "zh")
        == "埋入的中文回复：20 条不良回复判错 3 条，20 条良好回复判错 0 条，因此其判断不计入"
    )


def test_replies_that_cannot_be_read_stand_apart_from_wrong_ones() -> None:
    """ "wrong on 20 of 20 bad ones" was said of a judge none of whose replies could be read."""
    some = PlantedCheck(
        language="en", good=20, good_wrong=0, good_unread=1, bad=20, bad_wrong=1, bad_unread=2
    )
    assert not some.passed  # 1 wrong and 2 unread are more than 2
    assert describe_check([some]) == (
        "planted replies, English: wrong on 1 of 18 bad and 0 of 19 good ones, and its replies about 2 bad and 1 good "
        "ones could not be read, so its answers do not count"
    )
    assert describe_check([some], "zh") == (
        "埋入的英文回复：18 条不良回复判错 1 条，19 条良好回复判错 0 条，"
        "另有 2 条不良回复和 1 条良好回复的评审答复无法解析，因此其判断不计入"
    )
    few = PlantedCheck(language="en", good=20, good_wrong=1, good_unread=1, bad=20, bad_wrong=0)
    assert few.passed
    none = PlantedCheck(
        language="en", good=20, good_wrong=0, good_unread=20, bad=20, bad_wrong=0, bad_unread=20
    )
    assert not none.passed
    assert none.none_read
    assert (
        "none of the judge's replies about 20 bad and 20 good ones could be read"
        in describe_check([none])
    )


def test_a_check_counts_in_the_language_in_which_the_judge_answered() -> None:
    planted = [check("en"), check("zh", bad_wrong=20)]
    assert raters_of(rows("judge"), JUDGE, planted).failed_checks == ()
    assert raters_of(rows("judge", language="zh"), JUDGE, planted).failed_checks == (planted[1],)
    assert describe_check(()) == describe_check(None) == "the judge was not checked"
