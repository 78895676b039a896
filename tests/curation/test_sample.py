"""A sample of the dialogues in which safety found nothing: its draw, its round, and what it says of the curation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.erase import erase
from h2htalk.curation.reading.recall import card_lines
from h2htalk.curation.reading.samples import SampleFigure, describe_figure, read_samples
from h2htalk.curation.release.build import build_release
from h2htalk.curation.release.content import item_texts
from h2htalk.curation.show import explain
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.readers.item_reads import ItemReads, read_item_reads, write_item_reads
from h2htalk.data.readers.reads import READ_GATES
from h2htalk.errors import ConfigError
from h2htalk.rounds.dialogue_sample import shares
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.reads import reads_of_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from support.command_line import h2htalk_here
from support.curations import dialogue, finished, gathered
from support.readers import planted_of
from support.release_rounds import different, voted, write_spec
from support.rounds import NAMES, answer, people

QUIET = {"harmful": "no", "minor": "no", "explicit": "no", "crisis": "no"}
FIRST, SECOND = NAMES[:2]


def kept(
    number: int, *, source: str = "made", language: str = "en", **safety: Any
) -> dict[str, Any]:
    """A dialogue that the safety stage kept, without a tag unless `safety` says otherwise."""
    noted = {"action": "keep", "tags": [], "risk": "none", **safety}
    return {**dialogue(number, source=source), "language": language, "metadata": {"safety": noted}}


TAGGED = (
    kept(90, action="keep_tag", tags=["crisis.ideation"], risk="high"),
    kept(91, action="review", tags=["companion.harm"]),
    kept(92, possible_crisis=True),
    kept(93, crisis_hint=True),
)


def workspace_of(folder: Path, *more: dict[str, Any]) -> Workspace:
    """Nine English dialogues of two sources without a tag, four with something; and `more`."""
    untagged = [kept(number) for number in range(6)] + [
        kept(number, source="other") for number in range(3)
    ]
    return finished(folder / "work", "safety", [*untagged, *TAGGED, *more])


def opened(workspace: Workspace, *words: object) -> Path:
    """Open a sample by the command; two people read English."""
    name = "-".join(str(word) for word in words if not isinstance(word, Path))
    out = workspace.path.parent / f"round-{name}"
    annotators = people(workspace.path.parent / "people.csv", FIRST, SECOND)
    told = ("--annotators", annotators, "--overlap", 2, "--out", out, *words)
    result = h2htalk_here("curate", "sample", workspace.path, *told)
    assert result.returncode == 0, result.stderr
    return out


def drawn(path: Path) -> list[Item]:
    """The items of a sample without the planted ones."""
    return [item for item in RoundFolder(path).items() if not item.planted]


def close(path: Path, typed: Mapping[tuple[str, str], Mapping[str, str]] | None = None) -> str:
    """Answer as told by (item, annotator's name), else with no, and notice planted harm; close by the command."""
    planted = planted_of(path)

    def fill(item: str, annotator: str) -> Mapping[str, str]:
        truth = {"harmful": str(planted[item].gold["harmful"])} if item in planted else {}
        return {**QUIET, **truth, **(typed or {}).get((item, annotator), {})}

    answer(path, fill)
    result = h2htalk_here("round", "close", path)
    assert result.returncode == 0, result.stderr
    return result.stdout


def funnel(workspace: Workspace) -> str:
    return h2htalk_here("curate", "funnel", workspace.path).stdout


@pytest.mark.parametrize(
    ("sizes", "keep", "wanted"),
    [
        ({"a": 60, "b": 30, "c": 10}, 10, {"a": 6, "b": 3, "c": 1}),
        ({"a": 2, "b": 1}, 50, {"a": 2, "b": 1}),
        ({"a": 1, "b": 1, "c": 1}, 2, {"a": 1, "b": 1, "c": 0}),
    ],
)
def test_each_source_gets_its_share(
    sizes: dict[str, int], keep: int, wanted: dict[str, int]
) -> None:
    assert shares(sizes, keep) == wanted


def test_a_sample_is_of_dialogues_without_a_tag_by_language_and_source(tmp_path: Path) -> None:
    chinese = [kept(number, source="zh", language="zh") for number in range(4)]
    workspace = workspace_of(tmp_path, *chinese)
    annotators = tmp_path / "people.csv"
    annotators.write_text("name,languages,crisis\nann,en zh,yes\nbob,en zh,yes\n", encoding="utf-8")
    told = ("--keep", 6, "--annotators", annotators, "--overlap", 2)
    result = h2htalk_here("curate", "sample", workspace.path, *told, "--seed", 3)
    assert result.returncode == 0, result.stderr
    folder = RoundFolder(workspace.path / "samples" / "seed-3")
    items = drawn(folder.path)
    assert Counter(item.id.split("-")[0] for item in items) == {"made": 4, "other": 2, "zh": 4}
    assert not {item.id for item in items} & {record["id"] for record in TAGGED}
    assert all(len(item.turns) == 2 and not item.response for item in items)
    assert [question.name for question in folder.questions()] == [*QUIET, "comment"]
    assert folder.manifest()["sample"]["population"] == {"en": 9, "zh": 4}
    for language in LANGUAGES:
        text = folder.guidelines(language)
        assert "{{" not in text
    assert "A whole conversation" in folder.guidelines("en")
    assert h2htalk_here("curate", "sample", workspace.path, *told, "--seed", 3).returncode == 0
    assert drawn(folder.path) == items


def test_the_draw_depends_on_the_seed_alone(tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path)
    first = [item.id for item in drawn(opened(workspace, "--keep", 4, "--seed", 1))]
    other = [item.id for item in drawn(opened(workspace, "--keep", 4, "--seed", 2))]
    again = workspace_of(tmp_path / "again")
    assert [item.id for item in drawn(opened(again, "--keep", 4, "--seed", 1))] == first
    assert first != other


def test_closing_prints_and_stores_an_interval_of_what_people_found(tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path)
    path = opened(workspace, "--keep", 9, "--seed", 1)
    typed = {
        ("made-000001", FIRST): {"crisis": "yes"},
        ("made-000002", SECOND): {"harmful": "unsure"},
    }
    shown = close(path, typed)
    assert "of 9 en dialogues kept without a tag" in shown
    assert "a person in danger 1 of 9: 2 % to 43 %" in shown
    assert "harm or a real person 0 of 9: at most 30 %, 1 not sure" in shown
    (result,) = read_samples(workspace.path)
    assert (result.seed, result.unread) == (1, 0)
    line = next(line for line in shown.splitlines() if "kept without a tag" in line)
    assert line in funnel(workspace)
    stored = (workspace.path / "samples.jsonl").read_text(encoding="utf-8")
    assert "made-00000" not in stored
    (read, *_) = reads_of_round(read_outcome(path))
    # Also an annotator of nine dialogues meets the two harmful ones that are needed to count as a reader.
    assert "; read by 2 people who noticed planted harm" in line
    assert (read.people, read.gates) == (2, READ_GATES)
    close(opened(workspace, "--keep", 4, "--seed", 2))
    assert [one.seed for one in read_samples(workspace.path)] == [1, 2]
    assert (
        h2htalk_here("round", "close", path).returncode == 0
    )  # again: it replaces what it had stored
    assert sorted(one.seed for one in read_samples(workspace.path)) == [1, 2]


def test_what_fewer_than_two_people_read_is_no_part_of_the_figures(tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path)
    path = opened(workspace, "--keep", 9)
    alone = {"made-000001", "made-000002"}
    planted = planted_of(path)

    def fill(item: str, name: str) -> Mapping[str, str]:
        if name == SECOND and item in alone:
            return {}
        return (
            {**QUIET, "harmful": str(planted[item].gold["harmful"])} if item in planted else QUIET
        )

    answer(path, fill)
    shown = h2htalk_here("round", "close", path, "--force").stdout
    assert "a user under 18 0 of 7: at most 35 %" in shown
    assert "fewer than two people read 2 others" in shown


def test_who_answers_no_without_reading_is_no_reader_of_a_sample(tmp_path: Path) -> None:
    """Two people who typed no fifty times made the figure "0 of 50: at most 7 %"."""
    untagged = [kept(number) for number in range(45)]
    workspace = finished(tmp_path / "work", "safety", untagged)
    checked = opened(workspace, "--keep", 45, "--seed", 1)
    shown = close(checked)
    assert "harm or a real person 0 of 45: at most 8 %" in shown
    assert "; read by 2 people who noticed planted harm" in shown
    typed = opened(workspace, "--keep", 45, "--seed", 2)
    answer(typed, lambda *_: QUIET)
    result = h2htalk_here("round", "close", typed)
    assert result.returncode == 0, result.stderr
    assert "harm or a real person not read" in result.stdout
    missed = (
        "read by 2 people, of whom 0 noticed planted harm; 2 missed it, whose no does not count"
    )
    assert f"; {missed}; fewer than two people read 45 others" in result.stdout
    assert "planted items: 0 of 2 annotators count as readers" in result.stdout
    settings = tmp_path / "round.toml"
    settings.write_text("planted = false\n", encoding="utf-8")
    unchecked = opened(workspace, "--keep", 5, "--seed", 3, "--settings", settings)
    assert "a user under 18 0 of 5" in (shown := close(unchecked))
    assert "; read by people whom nobody checked" in shown


def test_a_sample_of_an_earlier_safety_stage_says_so(tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path)
    assert "the safety stage has changed since" not in close(opened(workspace, "--keep", 4))
    path = workspace.stage("safety").path / "stage.json"
    stage = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**stage, "fingerprint": "another"}), encoding="utf-8")
    assert "the safety stage has changed since" in funnel(workspace)


def test_who_is_erased_leaves_the_sample_and_the_counts_stay(tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path)
    gathered(workspace.path, [dialogue(number) for number in range(6)])
    path = opened(workspace, "--keep", 9)
    close(path)
    before = (workspace.path / "samples.jsonl").read_bytes()
    erase(workspace, "made-000001")
    assert "made-000001" not in {item.id for item in RoundFolder(path).items()}
    assert (workspace.path / "samples.jsonl").read_bytes() == before
    reads = read_item_reads(workspace.path)
    assert len(reads) == 8
    assert "made-000001" not in reads


def test_what_people_found_in_a_sample_is_open_in_a_release_of_the_dialogue(tmp_path: Path) -> None:
    """Three people said yes, the round was closed, and every gate passed."""
    scenarios = [different(number) for number in range(1, 5)]
    workspace = voted(tmp_path, scenarios)
    dialogues = []
    for number, scenario in enumerate(scenarios, 1):
        texts = [turn.content for turn in item_texts(scenario)]
        name = str(scenario.provenance["dialogue"])
        dialogues.append(
            {
                **kept(number),
                **dialogue(number, *texts),
                "id": name,
                "metadata": kept(number)["metadata"],
            }
        )
    finished(workspace.path, "safety", dialogues)
    path = opened(workspace, "--keep", 9)
    found, other = (str(scenario.provenance["dialogue"]) for scenario in scenarios[:2])
    close(path, {(found, FIRST): {"harmful": "yes"}, (other, SECOND): {"explicit": "unsure"}})
    made = build_release(write_spec(tmp_path, quota=4), tmp_path / "release")
    reader = f"people:safety:{path.name}"
    assert sorted((one.gate, one.item, one.detail.partition(" (")[0]) for one in made.findings) == [
        ("companion_harm", scenarios[0].id, "harmful: yes 1 of 2"),
        ("explicit_content", scenarios[1].id, "not sure: explicit: unsure 1 of 2"),
        ("personal_data", scenarios[0].id, "harmful: yes 1 of 2"),
    ]
    assert all(reader in finding.detail for finding in made.findings)
    assert any(
        (event.stage, event.what) == ("sample", "read") for event in explain(workspace, found)
    )
    lines = read_item_reads(workspace.path)
    assert [len(line.reads) for line in lines.values()] == [1] * 4
    asked = ItemReads(
        id="case-en-1", of=(found,)
    )  # by it an erasure finds what a guard is being asked
    write_item_reads(workspace.path, lines | {asked.id: asked})
    assert (
        h2htalk_here("round", "close", path).returncode == 0
    )  # again: it replaces what it had stored
    assert read_item_reads(workspace.path) == lines | {asked.id: asked}


def test_what_cannot_be_sampled_is_refused(tmp_path: Path) -> None:
    tagged = finished(tmp_path / "work", "safety", TAGGED)
    result = h2htalk_here("curate", "sample", tagged.path)
    assert (result.returncode, "there is nothing to draw" in result.stderr) == (2, True)
    (tagged.stage("safety").path / "summary.json").unlink()
    result = h2htalk_here("curate", "sample", tagged.path)
    assert (result.returncode, "not finished" in result.stderr) == (2, True)
    result = h2htalk_here("curate", "sample", tmp_path)
    assert result.returncode == 2
    with pytest.raises(ConfigError, match="sample: a round of crowd draws none"):
        make_spec("crowd", "mini", {"sample": {"keep": 5}})


def test_an_interval_says_at_most_where_nothing_was_found() -> None:
    figure = SampleFigure(language="en", question="minor", found=0, of=50)
    assert describe_figure(figure) == "0 of 50: at most 7 %"


def test_the_lines_of_a_card_say_what_people_found_in_a_sample(tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path)
    close(opened(workspace, "--keep", 9))
    lines = card_lines(workspace)
    assert [line.partition(",")[0] for line in lines[:-1]] == ["words found"]  # of its one language
    assert "of 9 en dialogues kept without a tag" in lines[-1]
    assert "a user under 18 0 of 9: at most 30 %" in lines[-1]
