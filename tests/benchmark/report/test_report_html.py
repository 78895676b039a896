"""The page as a file; what a browser makes of it is tested in tests/live/browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from summaries_made import failed_item, made_item, made_summary, mini_scenarios, same_values

from h2htalk.benchmark.report.html_page import ItemView, write_page
from h2htalk.benchmark.statistics import Cell
from h2htalk.benchmark.summary import Summary
from h2htalk.data.responses import Failure

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}{% raw %}<!--\u2028\x00\u202e"


def page(folder: Path, summary: Summary | None = None, items: list[ItemView] | None = None) -> str:
    path = folder / "report.html"
    write_page(path, summary or made_summary(), iter(items or []))
    return path.read_bytes().decode()


def data_of(text: str) -> dict[str, Any]:
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert block
    found = json.loads(block[1])
    assert isinstance(found, dict)
    return found


def prompt_of(data: dict[str, Any], item: int) -> list[tuple[str, str]]:
    messages = data["items"][item][8]
    return [(role, "\n\n".join(data["paragraphs"][n] for n in numbers)) for role, numbers in messages]


def test_hostile_text_is_data_everywhere(tmp_path: Path) -> None:
    scenario = replace(mini_scenarios(1)[0], id=HOSTILE, references=(HOSTILE,), persona=HOSTILE)
    items = [
        made_item(scenario, HOSTILE, HOSTILE, finish_reason=HOSTILE, thinking=HOSTILE, request_id=HOSTILE),
        failed_item(scenario, Failure(HOSTILE, HOSTILE)),
    ]
    summary = made_summary(
        model=HOSTILE,
        split=HOSTILE,
        subject={HOSTILE: HOSTILE},
        baselines={HOSTILE: same_values(0.1)},
        violations={HOSTILE: 1},
        warnings=(HOSTILE,),
        package_version=HOSTILE,
    )
    summary = replace(summary, slices={"emotion": {name: Cell(1.0, None, None, 1, 1) for name in (HOSTILE, "calm")}})
    text = page(tmp_path, summary, items)
    assert len(re.findall(r"<script", text)) == len(re.findall(r"</script", text)) == 2
    assert "<img" not in text
    assert "<!--" not in text
    assert not set("\x00\u2028\u202e") & set(text.split('<script type="application/json"')[0])
    assert data_of(text)["items"][0][0] == HOSTILE


def test_the_prompt_is_kept_exactly_and_what_repeats_is_stored_once(tmp_path: Path) -> None:
    prompts = [f"You are Ren.\n\n{'Be kind. ' * 400}\n\n\nday {n}\n\n" for n in range(20)]
    items = [made_item(s, prompt=p) for s, p in zip(mini_scenarios(20), prompts, strict=True)]
    data = data_of(page(tmp_path, items=items))
    assert [prompt_of(data, n)[0] for n in range(20)] == [("system", prompt) for prompt in prompts]
    assert data["paragraphs"].count("Be kind. " * 400) == 1


def test_an_item_holds_prompt_response_reference_and_scores(tmp_path: Path) -> None:
    scenario = mini_scenarios(1)[0]
    raw = "<think>hm</think> I am here."
    item = made_item(scenario, raw, violations=("too_long",), finish_reason="length")
    packed = data_of(page(tmp_path, items=[item]))["items"][0]
    assert (packed[0], packed[2], packed[5]) == (scenario.id, scenario.language, list(scenario.references))
    number, scored, reply, failure = packed[9][0]
    assert (number, failure) == (0, None)
    assert reply == [raw, "I am here.", None, "length", 11, 7, None]
    assert scored == [[0.5, 0.4, 0.3, 0.2, 0.6, 0.55, 0.7], 0.7, 0.46429, ["too_long"], None]


def test_figures_baselines_and_cautions_are_on_the_page(tmp_path: Path) -> None:
    values = {**same_values(0.4), "dialogue_base": [0.05, None]}
    summary = made_summary(values, baselines={"constant": same_values(0.1)}, comparable=False)
    text = page(tmp_path, replace(summary, counts=replace(summary.counts, failures={"timeout": 1})))
    assert "INCOMPLETE: 1 of 22 items" in text
    assert "S is not comparable" in text
    # The cell, which one item cannot decide, and the averages of cells that it is part of; the mean over items can.
    assert len(re.findall(r">\d+\.\d\d!", text)) == 4
    assert "40.00 [28.31, 52.95]" in text
    assert "unscored (timeout)" in text
