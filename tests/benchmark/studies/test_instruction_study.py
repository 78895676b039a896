"""The study of instructions: hints answered as small talk are found; types, cases of one's own, the radar."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from studies_made import REPLY, cases_of, judge_lines, studied

from h2htalk.benchmark.observations import Observation, blindness, figure_of, select, trend
from h2htalk.benchmark.statistics import rate_interval
from h2htalk.benchmark.studies.conversations import StudyFolder
from h2htalk.benchmark.studies.report import StudyResult, write_radar, write_report
from h2htalk.data.case import Case
from h2htalk.data.split_output import write_new_cases
from h2htalk.errors import ConfigError


@pytest.fixture(scope="module")
def small_talk(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    """A companion that follows commands and requests, and answers hints as small talk, but for six families."""
    cases = cases_of("instructions", "en")
    seen = set(sorted({case.family for case in cases})[:6])

    def says(case: Case, place: str, number: int, aspect: str, kind: str) -> bool:
        return kind == "must" and (aspect != "request" or case.degree < 2 or case.family in seen)

    named = {case.id: case.request_type if case.degree < 3 else "space" for case in cases}
    types = [{"id": f"full/type/{k}/s1.t1", "text": json.dumps({"request_type": v})} for k, v in named.items()]
    replies = [{"id": "*", "text": REPLY["en"]}, *types]
    return studied(tmp_path_factory.mktemp("small_talk"), "instructions", replies, judge_lines(cases, says))


def test_blindness_is_found_with_its_interval(small_talk: StudyResult) -> None:
    needs = select(small_talk.observations, "need_met")
    found, families = blindness(needs), len({row.cluster for row in needs})
    assert (found.hits, found.n) == (families - 6, families)
    assert (found.low, found.high) == rate_interval(families - 6, families)
    slope = trend(needs, "degree")
    assert slope is not None
    assert (slope.high or 0) < 0


def test_the_type_of_the_request_is_named_or_not(small_talk: StudyResult, tmp_path: Path) -> None:
    own = select(small_talk.observations, "type_named")
    assert figure_of([row for row in own if row.degree < 3]).value == 1.0
    named = sum(case.request_type == "space" for case in cases_of("instructions", "en") if case.degree == 3)
    assert figure_of([row for row in own if row.degree == 3]).hits == named
    result = studied(tmp_path, "instructions", "They want comfort, I think.", limit=8)  # no answer of the form
    assert {row.unscored for row in select(result.observations, "type_named")} == {"malformed_output"}
    assert not result.incomplete


def test_cases_of_ones_own_begin_with_a_template(tmp_path: Path) -> None:
    assert write_new_cases(tmp_path / "mine.jsonl", "zh") == 4
    result = studied(tmp_path, "instructions", REPLY["zh"], split=tmp_path / "mine.jsonl", language="zh")
    assert [case.id for case in result.study.cases] == [f"mine-1-d{k}" for k in range(4)]


def test_no_figure_shows_an_address(small_talk: StudyResult, tmp_path: Path) -> None:
    """A model behind a server was called by its URL in figures and pages of studies, and by its name in tables."""
    ask = replace(small_talk.study.spec.ask, model="server:qwen@http://10.0.0.7:8000/v1")
    named = replace(small_talk.study, spec=replace(small_talk.study.spec, ask=ask), folder=StudyFolder(tmp_path))
    write_report(replace(small_talk, study=named))
    for path in (tmp_path / "report.html", tmp_path / "figures" / "kinds.svg"):
        assert "server:qwen<" in path.read_text()
        assert "10.0.0.7" not in path.read_text()


def test_a_radar_of_several_models_needs_one_protocol(small_talk: StudyResult, tmp_path: Path) -> None:
    write_radar([small_talk, small_talk], tmp_path / "radar.svg")
    assert (tmp_path / "radar.svg").read_text().count('stroke-width="2"') == 4  # two lines, two keys
    signature = replace(small_talk.study.signature, protocol={"study": "instructions", "items": "others"})
    with pytest.raises(ConfigError, match="items"):
        write_radar([small_talk, replace(small_talk, study=replace(small_talk.study, signature=signature))], tmp_path)


# The needs met by degree: an easier degree does not stand for the hint, nor a family without one.
@pytest.mark.parametrize("needs", [[1, 1, 1, None], [None, 1, 1, 0], [0, 1, 1, 0], [1, 1], [1, 1, 1, 0]])
def test_blindness_compares_the_command_with_the_subtlest_hint(needs: list[float | None]) -> None:
    rows = [Observation("full", "need_met", f"c{k}", "family", value, degree=k) for k, value in enumerate(needs)]
    assert blindness(rows).value == (1.0 if needs == [1, 1, 1, 0] else None)
