"""What the item browser is given: chunks that unpack to what was asked and answered, and nothing that is private."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from h2htalk.benchmark.judge.judgements import PeopleRating, answer_id, write_people_ratings
from h2htalk.benchmark.judge.rubric import QUALITIES
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.score_run import apply_judgements
from h2htalk.data.responses import Failure, Response
from h2htalk.data.scenario import Tags
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError
from h2htalk.site.answer_chunks import PARTS
from h2htalk.site.build import Context, read_words
from h2htalk.site.items import share_item
from h2htalk.site.sources import RunSource, Sources
from h2htalk.text.contracts.violations import RULES
from support.judged_runs import answered_run, command, scripted_judge, verdict
from support.sites import CHUNK, chunks_of, items_of, made_context, made_run, mini

HOSTILE = [
    "__proto__",
    "constructor",
    "</script><img onerror=alert(1)>",
    "a\u202eb",
    "x/../../y",
    "\x1b[31m",
]


def two_runs(folder: Path, split: Split) -> list[Run]:
    texts = [
        {s.id: f"{who} {n}" for n, s in enumerate(split.scenarios)} for who in ("first", "second")
    ]
    return [made_run(folder / f"r{n}", split, text, f"server:m{n}") for n, text in enumerate(texts)]


def hostile_split() -> Split:
    split = mini(*range(len(HOSTILE)))
    scenarios = [
        replace(s, id=text, references=(text,))
        for s, text in zip(split.scenarios, HOSTILE, strict=True)
    ]
    return replace(split, scenarios=tuple(scenarios))


def labels_page(context: Context) -> dict[str, Any]:
    page = items_of(context)["items.html"].decode()
    return json.loads(
        page.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    )


def test_chunks_hold_what_was_asked_and_answered(tmp_path: Path) -> None:
    split = mini()
    chunks = chunks_of(made_context(two_runs(tmp_path, split)))
    ids, _, gists, subtasks, languages, *_ = chunks["items"]
    assert ids == [s.id for s in split.scenarios]
    assert [languages[0][n] for n in languages[1]] == [s.language for s in split.scenarios]
    assert [subtasks[0][n] for n in subtasks[1]] == ["DialogueBase"] * 7 + ["DialogueEmotion"]
    assert gists[0].startswith(" ".join(split.scenarios[0].turns[-1].content.split())[:60])
    paragraphs, (version,), references = chunks["prompts"]
    assert references == [list(s.references) for s in split.scenarios]
    runs = two_runs(tmp_path / "again", split)
    for n, scenario in enumerate(split.scenarios):
        sent = [
            [role, "\n\n".join(paragraphs[p] for p in paragraphs_of_page)]
            for role, paragraphs_of_page in version[n]
        ]
        assert sent == [[m.role, m.content] for m in runs[0].data.prompt_of(scenario)]
        assert chunks["0000000a"][3][n][0][:4] == [f"first {n}", None, "stop", None]
        assert chunks["0000000b"][3][n][0][0] == f"second {n}"
    key, s, lexical, *_ = chunks["scores"][1]
    assert (key, s) == ("0000000b", [None] * 8)  # without an embedder
    assert lexical[3] == round(10_000 * runs[1].item_scores[ids[3]].lexical)


def test_an_item_about_a_crisis_has_no_first_words_in_the_list(tmp_path: Path) -> None:
    split = mini()
    risks = [s.tags.risk != "none" for s in split.scenarios]
    assert any(risks)
    noted = replace(split.scenarios[0], metadata={"safety": {"possible_crisis": True}})
    split = replace(split, scenarios=(noted, *split.scenarios[1:]))
    _, crisis, gists, *_ = chunks_of(made_context(two_runs(tmp_path, split)))["items"]
    assert crisis == [1, *map(int, risks[1:])]
    assert [not gist for gist in gists] == [True, *risks[1:]]


def test_private_references_are_in_no_file(tmp_path: Path) -> None:
    split = mini(references_sha256="0" * 64)
    secret = [s.references[0] for s in split.scenarios]
    context = made_context(two_runs(tmp_path, split))
    assert chunks_of(context)["prompts"][2] == [[]] * 8
    files = [
        content.decode("utf-8", "replace")
        for name, content in items_of(context).items()
        if name[:5] != "data/"
    ]
    unpacked = json.dumps(chunks_of(context), ensure_ascii=False)
    everything = "\n".join(
        [unpacked, *files, *(share_item(context, s.id) for s in split.scenarios)]
    )
    assert not any(text in everything or json.dumps(text)[1:-1] in everything for text in secret)


def test_hostile_ids_and_texts_come_through_and_close_no_block(tmp_path: Path) -> None:
    split = hostile_split()
    run = made_run(
        tmp_path / "r", split, {s.id: s.id + "\ud800" for s in split.scenarios}, "__proto__"
    )
    context = made_context([run])
    chunks = chunks_of(context)
    assert chunks["items"][0] == HOSTILE
    assert [prompt[0][0] for prompt in chunks["0000000a"][3]] == [
        text + "\ud800" for text in HOSTILE
    ]
    files = items_of(context)
    assert (files["items.html"].count(b"</script>"), b"<img" in files["items.html"]) == (2, False)
    assert all(CHUNK.fullmatch(files[name]) for name in files if name.startswith("data/"))
    assert labels_page(context)["splits"][0][2] == [["0000000a", "__proto__", 0]]
    assert share_item(context, "</script><img onerror=alert(1)>").count("</script>") == 2


def test_a_failure_and_an_error_are_named_without_their_message(tmp_path: Path) -> None:
    split = mini(0, 1)
    first, second = (s.id for s in split.scenarios)
    run = made_run(
        tmp_path / "r",
        split,
        {first: Failure("http_500", "at http://10.0.0.5:8000/v1", 2), second: "yes"},
    )
    score = run.item_scores[second]
    why = {"unscored": "embedder: OSError: /home/eva/model"}
    scores = {
        **run.item_scores,
        second: replace(score, samples=(replace(score.samples[0], **why),), **why),
    }
    chunks = chunks_of(made_context([replace(run, item_scores=scores)]))
    (failed,), (unscored,) = chunks["0000000a"][3]
    assert failed[:4] == [None, None, None, "http_500"]
    assert unscored[9] == "embedder"
    *_, (reasons, places), _, flags = chunks["scores"][0]
    assert [reasons[n] for n in places] == ["http_500", "embedder"]
    assert flags == [1, 0]


def test_runs_of_a_part_of_a_split_lie_with_those_of_the_whole_and_others_apart(
    tmp_path: Path,
) -> None:
    full_split = mini()
    part = mini(2, 3)
    changed = replace(
        part, scenarios=(replace(part.scenarios[0], references=("another",)), part.scenarios[1])
    )
    answers = [
        (split, {s.id: "yes" for s in split.scenarios}) for split in (part, full_split, changed)
    ]
    runs = [made_run(tmp_path / str(n), *answer) for n, answer in enumerate(answers)]
    splits = labels_page(made_context(runs))["splits"]
    assert [[key for key, *_ in split] for *_, split in splits] == [
        ["0000000a", "0000000b"],
        ["0000000c"],
    ]
    files = items_of(made_context(runs))
    assert sum(name.startswith("data/items-") for name in files) == 2
    prompts = chunks_of(made_context(runs[:2]))["0000000a"][3]
    assert [prompt is not None for prompt in prompts] == [True, True, *[False] * 6]


def test_the_table_holds_a_row_for_each_run_and_item_that_is_not_left_out(tmp_path: Path) -> None:
    split = mini()
    runs = two_runs(tmp_path, split)
    gone = split.scenarios[2].id
    for without in ([], [gone]):
        content = items_of(made_context(runs), without)["data.parquet"]
        rows = pq.read_table(io.BytesIO(content)).to_pylist()
        remaining = [s.id for s in split.scenarios if s.id not in without]
        assert [(row["model"], row["id"]) for row in rows] == [
            (f"server:m{n}", item_id) for n in (0, 1) for item_id in remaining
        ]
        assert [row["lexical"] for row in rows[len(remaining) :]] == [
            runs[1].item_scores[item].lexical for item in remaining
        ]


@pytest.fixture
def judged(tmp_path: Path) -> Run:
    """Three answers of level I, judged, of which people rated the first."""
    run = answered_run(tmp_path, ["one", "two", "three"], ("itinerary_basic",))
    replies = {"*": verdict(2, "itinerary_basic", points=True, contextual_awareness=4)}
    command("judge", "run", run, "--judge", scripted_judge(tmp_path / "judge.jsonl", replies))
    loaded = load_run(run)
    first = next(answer for answer in loaded.answers.values() if isinstance(answer, Response))
    write_people_ratings(loaded.data.folder, [PeopleRating(answer_id(first), 4.5, 2, "low")])
    apply_judgements(run)
    return load_run(run)


def test_judges_evidence_and_who_decided_are_beside_each_answer(judged: Run) -> None:
    context = Context(
        Sources((RunSource("0000000a", "m", judged),)), read_words("en"), "en", "H2HTalk"
    )
    _, judges, paragraphs_of_page, samples = chunks_of(context)["0000000a"]
    assert (len(judges), tuple(paragraphs_of_page)) == (1, PARTS)
    by_people = samples[0][0]
    by_judges = samples[1][0]
    assert (by_people[6], by_people[11], by_judges[11]) == (45_000, [2, "low"], None)
    ((judge, unscored, evidence_lines),) = by_judges[12]
    assert (judge, unscored) == (0, None)
    named = {
        paragraphs_of_page[number]: (value, evidence) for number, value, evidence in evidence_lines
    }
    assert named["contextual_awareness"] == (4, "...")
    assert named["planning_fragmentation"] == (1, "...")
    assert by_judges[6] == round(10_000 * (2 * 5 + 4) / 6)
    assert chunks_of(context)["scores"][0][-1] == [8, 0, 0]  # rated by people
    page = share_item(context, next(iter(judged.item_scores)))
    assert "planning_fragmentation" in page


def test_one_transcript_alone_needs_no_other_file_and_names_what_is_unknown(tmp_path: Path) -> None:
    split = mini()
    context = made_context(two_runs(tmp_path, split))
    crisis = next(s for s in split.scenarios if s.tags.risk != "none")
    page = share_item(context, crisis.id)
    for text in ('<meta name="robots" content="noindex">', split.canary, "988 Suicide", "second 5"):
        assert text in page
    assert split.scenarios[0].id not in page
    with pytest.raises(ConfigError, match="did you mean 'mini-en-dialogue-base-0"):
        share_item(context, "mini-en-dialogue-base-0")


def test_every_rule_quality_and_tag_has_its_words() -> None:
    english = read_words("en")["items"]  # test_board_pages compares the languages
    assert english["rules"] == RULES
    assert set(english["qualities"]) >= set(QUALITIES)
    assert {*english["qualities"], *english["points"]} == {*PARTS}
    assert Tags.__annotations__.keys() == set(english["tags"])
