"""A split's figures and description: what goes in, what comes out, and what bad input gives."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.analysis.analyze import Analysis, AnalyzeSpec, analyze
from h2htalk.analysis.measures.scenario_texts import SIDES, side_texts
from h2htalk.analysis.measures.words import count_words
from h2htalk.analysis.report.overview import overview
from h2htalk.analysis.split_description import describe_split
from h2htalk.analysis.verb_nouns.pairs import count_pairs, iter_pairs
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError
from h2htalk.text.parsing.parsing import MODELS, pieces
from support.releases import case, make_release

MINI = load_split("mini@1")


def records(*texts: tuple[str, str], language: str = "en") -> list[dict[str, Any]]:
    """Scenarios of (diary, reference)."""
    like = next(
        s for s in MINI.scenarios if (s.language, s.subtask) == (language, "dialogue_base")
    ).to_dict()
    scenarios = []
    for number, (diary, reference) in enumerate(texts):
        inputs = {**like["inputs"], "history": [{"role": "user", "content": diary}]}
        scenario = {**like, "id": f"made-{language}-{number}", "inputs": inputs}
        scenarios.append({**scenario, "reference": reference})
    return scenarios


def split_of(folder: Path, scenarios: Sequence[Mapping[str, Any]], name: str = "split") -> str:
    write_jsonl(folder / name / "scenarios.jsonl", scenarios)
    return str(folder / name)


def only(analysis: Analysis) -> Any:
    (part,) = analysis.split.languages
    return part


@pytest.fixture(scope="module")
def mini() -> Analysis:
    return analyze(AnalyzeSpec("mini@1", processes=1))


def test_each_language_of_a_split_is_counted_by_its_functions(mini: Analysis) -> None:
    assert [part.language for part in mini.split.languages] == ["en", "zh"]
    assert [part.scenarios for part in mini.split.languages] == [77, 77]
    assert mini.split.fingerprint == mini.split.analysed == MINI.fingerprint
    for part in mini.split.languages:
        assert sum(part.coverage.emotions.values()) == 77
        assert {row.side for row in part.diversity} == set(SIDES)
        assert {s.n for s in part.lengths.summaries if s.group == "all"} == {77}
    # Words and pairs are those of the functions that count them.
    for part in mini.split.languages:
        texts = side_texts([s for s in MINI.scenarios if s.language == part.language])
        for side in SIDES:
            of_side = [text.text for text in texts if text.side == side]
            assert list(part.words[side]) == count_words(of_side, part.language)
            lines = [piece for text in of_side for piece in pieces(text)]
            assert list(part.pairs[side]) == count_pairs([*iter_pairs(lines, part.language)])


def test_what_is_chosen_of_a_split_and_what_cannot_be(tmp_path: Path) -> None:
    some = [s.to_dict() for s in MINI.scenarios[::7]]
    ours, theirs = (
        analyze(AnalyzeSpec(split_of(tmp_path, order, name), processes=1)).split.languages
        for name, order in (("straight", some), ("turned", some[::-1]))
    )
    assert len(ours) == 2
    assert ours == theirs
    # A language and a limit choose scenarios.
    analysis = analyze(AnalyzeSpec("mini@1", language="zh", limit=11, processes=1))
    assert only(analysis).scenarios == 11
    split = analysis.split
    assert (split.total, split.scenarios) == (154, {"zh": 11})
    assert split.fingerprint == MINI.fingerprint != split.analysed
    assert "of 154 in the split" in overview(analysis)
    # Nothing to compare is an error.
    english = split_of(tmp_path, records(("Hello.", "Hi.")), "english")
    chinese = split_of(tmp_path, records(("你好。", "好。"), language="zh"), "chinese")
    with pytest.raises(ConfigError, match="chinese: it has no language in common with english"):
        analyze(AnalyzeSpec(english, chinese))
    # An empty split is an error.
    with pytest.raises(DataError, match="holds no scenario"):
        analyze(AnalyzeSpec(split_of(tmp_path, [])))


def test_both_chinese_scripts_give_the_same_words_pairs_and_lengths(tmp_path: Path) -> None:
    """Traditional text was cut into wrong words and pairs, and nothing said so."""
    simple = records(
        ("我给奶奶剪指甲、梳头发，她忘了我的名字。", "她记得你的声音。"),
        ("医生说药要减量，我想换工作。", "先喝杯热水，再写计划。"),
        language="zh",
    )
    traditional = records(
        ("我給奶奶剪指甲、梳頭髮，她忘了我的名字。", "她記得你的聲音。"),
        ("醫生說藥要減量，我想換工作。", "先喝杯熱水，再寫計劃。"),
        language="zh",
    )
    simple_split = split_of(tmp_path, simple, "simple")
    full_split = split_of(tmp_path, traditional, "full")
    first = analyze(AnalyzeSpec(simple_split, processes=1))
    second = analyze(AnalyzeSpec(full_split, processes=1))
    assert only(second).words == only(first).words
    assert only(second).pairs == only(first).pairs
    assert only(second).lengths == only(first).lengths
    nouns = {pair.noun for pair in only(second).pairs["instruction"]}
    assert "指甲" in nouns
    assert "工作" in nouns
    assert first.notes == ()
    assert second.notes[0].startswith("full: 4 of 4 Chinese texts have traditional characters;")
    assert f"note: {second.notes[0]}" in overview(second)
    # Splits of the two scripts can be compared.
    compared = analyze(AnalyzeSpec(simple_split, full_split, processes=1))
    log_odds = {row.log_odds for row in compared.comparisons[0].rows}
    assert log_odds == {0.0}
    assert compared.notes == second.notes


def test_two_splits_are_compared_in_the_language_that_both_have(tmp_path: Path) -> None:
    tea = records(*((f"I drink tea with friend {n}.", "Enjoy the tea!") for n in range(40)))
    walk = records(*((f"I take a walk with dog {n}.", "Enjoy the walk!") for n in range(40)))
    chinese = records(("我喝茶。", "好的。"), language="zh")
    spec = AnalyzeSpec(
        split_of(tmp_path, [*tea, *chinese], "tea"), split_of(tmp_path, walk, "walk"), processes=1
    )
    analysis = analyze(spec)
    kinds = [(c.language, c.kind, c.side) for c in analysis.comparisons]
    assert kinds == [
        *(("en", kind, side) for side in SIDES for kind in ("words", "pairs")),
        ("en", "emotions", None),
    ]
    words = {row.item: row for row in analysis.comparisons[0].rows}
    assert words["tea"].low > 0 > words["walk"].high
    assert words["tea"].clear
    assert "differences in zh (walk has no scenario of this language)" in analysis.unmeasured
    assert re.search(
        r"English words, instructions: \d+ of \d+ differ; more [^;]*\btea\b", overview(analysis)
    )


def test_without_a_tokenizer_tokens_are_said_to_be_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec = AnalyzeSpec(split_of(tmp_path, records(("I drink tea.", "Good."))), processes=1)
    analysis = analyze(spec)
    assert analysis.tokenizer is None
    assert any(
        text.startswith("model tokens (") and "--tokenizer" in text for text in analysis.unmeasured
    )
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match="pip install"):
        analyze(replace(spec, tokenizer=str(tmp_path / "tokenizer.json")))


def test_a_named_pipeline_parses_in_the_place_of_the_bundled_one(tmp_path: Path) -> None:
    source = str(MODELS / "en_parser")
    spec = AnalyzeSpec("mini@1", language="en", limit=11, processes=1)
    bundled = analyze(spec)
    named = analyze(replace(spec, spacy_models=(source,)))
    assert [model.source for model in named.parsers] == [source]
    assert named.parsers[0].name.startswith("en_")
    assert only(named).pairs == only(bundled).pairs


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": "nowhere"}, "no split 'nowhere'"),
        ({"compare_with": ""}, "compare.with: must be text that is not empty"),
        ({"language": "fr"}, "--language 'fr': choose from en, zh"),
        ({"limit": 0}, "--limit is 0"),
        ({"processes": 0}, "--processes is 0"),
        ({"tokenizer": ""}, "name a tokenizer.json"),
        ({"spacy_models": ("nowhere",)}, "no spaCy pipeline 'nowhere'"),
        ({"embedder": "/nowhere/model"}, "nowhere"),
    ],
    ids=str,
)
def test_what_is_not_there_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        analyze(replace(AnalyzeSpec("mini@1", limit=4, processes=1), **changes))


def test_a_split_is_described_beside_table_1() -> None:
    split = load_split("mini@1")
    counts = Counter((s.subtask, s.language) for s in split.scenarios)
    rows = {
        line.split()[0]: line.split()[1:]
        for line in describe_split(split).splitlines()
        if line.strip()
    }
    assert rows["subtask"] == ["en", "zh", "Table", "1"]
    for name, subtask in SUBTASKS.items():
        assert rows[name] == [
            str(counts[name, "en"]),
            str(counts[name, "zh"]),
            f"{subtask.count:,}",
        ]
    assert describe_split(split).startswith(
        f"mini 1: {len(split.scenarios)} scenarios, CC-BY-4.0\n"
    )
    assert rows["total"][2] == "4,650"
    # Several and private references are counted.
    split = load_split("mini@1")
    assert "references:" not in describe_split(split)
    first, second, *unchanged = split.scenarios
    several = replace(first, references=("One.", "Two."))
    private = replace(second, references=())
    scenarios = (several, private, *unchanged)
    text = describe_split(replace(split, scenarios=scenarios, references_sha256="0a" * 32))
    assert f"\nthe file of the private references has the SHA-256 {'0a' * 32}\n" in text
    assert "\nreferences: 1 of the scenarios have several, 1 have none (private)\n" in text


def test_cases_are_counted_by_kind_and_language(tmp_path: Path) -> None:
    folder = make_release(
        tmp_path / "release", cases=[case(1), case(2, kind="self_harm"), case(1, "zh")]
    )
    split = load_split(f"{folder}#high_risk")
    text = describe_split(split)
    assert text.startswith("made-high_risk-test 1.0.0: 3 cases, CC-BY-4.0\n")
    rows = [line.split() for line in text.split("\n\n")[1].splitlines()]
    assert rows[0] == ["kind", "en", "en", "turns", "zh", "zh", "turns"]
    assert rows[1:] == [
        ["grief", "1", "1", "1", "1"],
        ["self_harm", "1", "1", "0", "0"],
        ["total", "2", "2", "1", "1"],
    ]
    assert "\nen: characters of a reference  " in text
