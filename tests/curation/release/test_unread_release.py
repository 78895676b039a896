"""A release of which items are unread is built, not tested and not published; one that readers read is."""

from __future__ import annotations

import json
from pathlib import Path

from h2htalk.curation.release.report import HOW_TO_ALLOW, HOW_TO_READ, OF_A_SPLIT
from h2htalk.data.files import read_json_object, write_json
from h2htalk.data.readers.certificates import add_certificate
from h2htalk.data.readers.passages import text_hash
from h2htalk.data.readers.reads import READ_GATES
from h2htalk.data.splits import load_split
from support.command_line import h2htalk_here
from support.release_rounds import (
    ALLOW_UNREAD,
    certificate,
    ordinary,
    read_by_guard,
    voted,
    write_spec,
)

GUARD = "guard:scripted:g"


def built(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code of a build, and what it printed."""
    done = h2htalk_here(
        "release", "build", write_spec(folder, quota=4), "--out", folder / "release", *words
    )
    return done.returncode, done.stdout


def checked(folder: Path) -> tuple[int, str]:
    done = h2htalk_here("release", "check", folder / "release")
    return done.returncode, done.stdout


def published(folder: Path) -> tuple[int, str]:
    done = h2htalk_here("release", "publish", folder / "release", "lab/made", "--dry-run")
    return done.returncode, done.stderr


def card_of(folder: Path) -> str:
    return (folder / "release" / "README.md").read_text(encoding="utf-8").replace("\\", "")


def test_what_nobody_read_is_written_and_neither_tested_nor_published(tmp_path: Path) -> None:
    voted(tmp_path)
    code, text = built(tmp_path)
    assert code == 3
    assert (tmp_path / "release" / "release.json").is_file()
    for printed in (text, checked(tmp_path)[1]):
        # People were asked about harm and real people alone, and no planted item showed who reads.
        shown = printed.splitlines()
        assert "gates companion_harm, personal_data: not tested: 4 of 4 items unread" in shown
        assert (
            "gates explicit_content, minors, crisis_care: not tested: 4 of 4 items unread" in shown
        )
        assert "  people:crowd read them, and was not asked about it: 4" in shown
        assert "passed" not in printed
    assert checked(tmp_path)[0] == 3
    code, error = published(tmp_path)
    assert (code, "not tested: unread items by gate: companion_harm 4 of 4" in error) == (2, True)
    card = card_of(tmp_path)
    assert "| nobody | 4 | 4 | 4 | 4 | 4 |" in card
    assert "- minors, 4 of 4 unread" in card
    _, _, body = card.partition("\n---\n")
    assert not [word for word in ("passed", "safe", "complete", "clean") if f" {word} " in body]


def test_what_a_checked_guard_read_is_tested_and_the_card_says_how_it_was_checked(
    tmp_path: Path,
) -> None:
    workspace = voted(tmp_path)
    read_by_guard(workspace, ordinary())
    assert built(tmp_path, "--dry-run")[0] == 3
    add_certificate(workspace.path, certificate(GUARD))
    code, text = built(tmp_path)
    assert (code, text.splitlines()[-1].startswith("every gate passed; release ")) == (0, True)
    assert checked(tmp_path)[0] == 0
    assert published(tmp_path)[0] == 0
    card = card_of(tmp_path)
    assert f"| {GUARD} | 4 | 4 | 4 | 4 | 4 | 2026-11-20 |" in card
    assert "| nobody | 0 | 0 | 0 | 0 | 0 |" in card
    assert (
        f"| {GUARD} | English | harm by the companion | found | 18 of 20 | 0.70 to 0.97 | 2026-11-19 |"
        in card
    )
    assert (
        f"| {GUARD} | Chinese | looks like harm | taken for harm | 1 of 20 | 0.01 to 0.24 | 2026-11-19 |"
        in card
    )
    assert f"| {GUARD} | Chinese | {', '.join(READ_GATES)} |" in card


def test_what_a_guard_marked_is_reported_by_the_build_and_in_no_release(tmp_path: Path) -> None:
    workspace = voted(tmp_path)
    read_by_guard(workspace, ordinary())
    texts = {str(one.provenance["dialogue"]): one.turns[0].content for one in ordinary()}
    for path in (workspace.path / "safety").rglob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            if "read" in line:
                line["read"]["known_by"] = [text_hash(texts[line["id"]])]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    add_certificate(workspace.path, certificate(GUARD))
    code, text = built(tmp_path)
    assert code == 0
    [first] = [line for line in text.splitlines() if line.startswith("report known_users: ")]
    assert first.endswith(": 4 findings")
    assert text.count(f": marked by {GUARD}, for people to read") == 4
    assert "known_by" not in (tmp_path / "release" / "reads.jsonl").read_text(encoding="utf-8")


def test_a_guard_that_was_refused_for_a_gate_leaves_that_gate_untested(tmp_path: Path) -> None:
    workspace = voted(tmp_path)
    read_by_guard(workspace, ordinary())
    others = tuple(gate for gate in READ_GATES if gate != "minors")
    add_certificate(workspace.path, certificate(GUARD, gates={"en": READ_GATES, "zh": others}))
    code, text = built(tmp_path)
    assert code == 3
    assert f"  {GUARD} was refused for minors in Chinese by its certificate: 2" in text.splitlines()
    assert "gate minors: not tested: 2 of 4 items unread" in text.splitlines()
    shown = h2htalk_here("show", tmp_path / "release", "--unread", "--ids")
    unread = {
        item.id for item in load_split(tmp_path / "release").scenarios if item.language == "zh"
    }
    assert set(shown.stdout.split()) == unread
    card = card_of(tmp_path)
    assert f"| {GUARD} | Chinese | {', '.join(others)} |" in card
    assert f"| {GUARD} | English | {', '.join(READ_GATES)} |" in card


def test_an_owner_says_why_unread_items_are_published_and_the_card_prints_it(
    tmp_path: Path,
) -> None:
    voted(tmp_path)
    words = [word for text in ALLOW_UNREAD for word in ("--allow", text)]
    assert built(tmp_path, *words[:2])[0] == 3  # of one gate alone
    (tmp_path / "release").rename(tmp_path / "one")
    (tmp_path / "release.private").rename(tmp_path / "one.private")
    code, text = built(tmp_path, *words)
    assert code == 0
    assert "no gate found anything; what nobody has read is published as its owner allows" in text
    assert "passed" not in text
    hold = "  allowed for 4 of 4 items; to hold it at that in scripts write --allow GATE:unread:4=REASON"
    assert hold in text.splitlines()
    code, text = checked(tmp_path)
    assert hold not in text
    assert (code, "unread, as the owner allows: 4 of 4 items unread" in text, "passed" in text) == (
        0,
        True,
        False,
    )
    assert published(tmp_path)[0] == 0
    assert "- minors, 4 of 4 unread: made for tests" in card_of(tmp_path)
    # It was said of four items.
    raw = read_json_object(tmp_path / "release" / "release.json")
    fewer = [one | {"items": 3} for one in raw["facts"]["allowed_unread"]]
    assert [one["items"] for one in fewer] == [3] * len(READ_GATES)
    refused = replace_facts(tmp_path / "release", allowed_unread=fewer)
    assert (checked(refused)[0], published(refused)[0]) == (3, 2)


def test_a_permission_with_a_number_ends_where_more_is_unread_than_it_says(tmp_path: Path) -> None:
    voted(tmp_path)
    words = [word for gate in READ_GATES for word in ("--allow", f"{gate}:unread:4=made for tests")]
    code, text = built(tmp_path, *words)
    assert (code, "to hold it at that" in text) == (0, False)
    assert (checked(tmp_path)[0], published(tmp_path)[0]) == (0, 0)
    (tmp_path / "release").rename(tmp_path / "one")
    (tmp_path / "release.private").rename(tmp_path / "one.private")
    words[-1] = f"{READ_GATES[-1]}:unread:3=made for tests"
    code, text = built(tmp_path, *words)
    assert code == 3
    assert (
        f"gate {READ_GATES[-1]}: not tested: 4 of 4 items unread; the owner allows 3"
        in text.splitlines()
    )
    assert f"allowed by the owner: {READ_GATES[0]}:unread:4=made for tests" in text.splitlines()
    assert f"allowed by the owner: {words[-1]}" not in text
    assert f"- {READ_GATES[-1]}, 4 of 4 unread\n" in card_of(tmp_path)
    code, text = checked(tmp_path)
    assert (code, "4 of 4 items unread; the owner allows 3" in text) == (3, True)
    assert published(tmp_path)[0] == 2


def test_a_split_says_that_it_keeps_no_record_and_nothing_of_a_build(tmp_path: Path) -> None:
    done = h2htalk_here("release", "check", "mini")
    assert done.returncode == 3
    shown = done.stdout.splitlines()
    assert OF_A_SPLIT in shown
    assert not {HOW_TO_READ, HOW_TO_ALLOW} & {*shown}


def replace_facts(release: Path, **facts: object) -> Path:
    """Change facts of a release; return the folder in which it lies."""
    raw = read_json_object(release / "release.json")
    write_json(release / "release.json", raw | {"facts": raw["facts"] | facts})
    return release.parent
