"""What must not be published is found wherever it stands, and ordinary text is not taken for it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from sites_made import made_context, made_run, mini, write_site
from tables import table

from h2htalk.benchmark.run import Run
from h2htalk.data.files import write_jsonl
from h2htalk.data.links import add_link
from h2htalk.data.splits import Split, list_splits, load_split
from h2htalk.errors import ConfigError
from h2htalk.rounds.item_sources import input_text
from h2htalk.site.items import share_item, write_items
from h2htalk.site.leaks import LeakCheck
from h2htalk.site.sources import Sources
from h2htalk.text.help_lines import read_help_lines

ENVIRONMENT = {"MAILER_PASSWORD": "tulip-7-garden", "BUILD_ID": "q8Zr4Lw0Xk2Vb6Ty1NpA", "PATH": "/usr/bin:/bin"}
MANIFEST = {"sessions": [{"started": "2026-01-01T00:00:00Z", "endpoint": "https://gpu7.example.edu:8443/v1"}]}
# Twenty things, each of which must stop a site: kind and text.
PLANTED = table("site", "planted")


def run_with(folder: Path, texts: Mapping[int, str], split: Split | None = None, model: str = "server:m") -> Run:
    """A run from which an item was erased, with a round in which two people annotated, and these answers."""
    split = split or mini()
    answers = {s.id: texts.get(n, "I am here with you.") for n, s in enumerate(split.scenarios)}
    run = made_run(folder / "run", split, answers, model, manifest=MANIFEST)
    write_jsonl(folder / "run" / "erased.jsonl", [{"id": "dlg-0417", "items": "0"}])
    people = [{"id": f"{n:012}", "name": name, "languages": ["en"]} for n, name in enumerate(("mei.zhang", "王小明"))]
    write_jsonl(folder / "round" / "private" / "annotators.jsonl", people)
    (folder / "round" / "round.json").write_text("{}")
    add_link(folder / "run", "round", folder / "round")
    return run


def found_in(run: Run, environ: Mapping[str, str] = ENVIRONMENT) -> LeakCheck:
    context = made_context([run])
    check = LeakCheck(context.sources, environ)
    assert dict(write_items(context, check))
    return check


@pytest.mark.parametrize(("kind", "text"), PLANTED)
def test_each_thing_alone_is_found_with_its_item_and_not_shown(tmp_path: Path, kind: str, text: str) -> None:
    run = run_with(tmp_path, {3: f"Well, {text}，好吗"})
    findings = list(found_in(run).findings)
    assert {one.kind for one in findings} == {kind}
    assert {(one.where, one.item) for one in findings} == {("run server:m", run.data.split.scenarios[3].id)}
    assert not any(text in str(one) for one in findings)


@pytest.mark.parametrize(("kind", "text"), table("site", "forms"))
def test_further_forms_are_found_and_words_like_them_are_not(kind: str, text: str) -> None:
    check = LeakCheck(Sources(), {"SMTP_PWD": "hunter22x"})
    check.check("run", "answer", ["a"], [f"({text})"])
    assert {one.kind for one in check.findings} == ({kind} if kind else set())


def test_all_twenty_planted_are_found_in_one_site(tmp_path: Path) -> None:
    split = mini(*range(20))
    run = run_with(tmp_path, {n: f"({text})" for n, (_, text) in enumerate(PLANTED)}, split)
    found = {(one.item, one.kind) for one in found_in(run).findings}
    assert found == {(s.id, kind) for s, (kind, _) in zip(split.scenarios, PLANTED, strict=True)}


@pytest.mark.parametrize("place", ["answer", "thinking", "reference", "prompt", "tag", "id", "model", "person"])
def test_it_is_found_in_every_place(tmp_path: Path, place: str) -> None:
    split, extra = mini(), "192.168.7.7 "
    first = split.scenarios[0]
    changes = {
        "reference": {"references": (extra,)},
        "id": {"id": "x 192.168.7.7"},
        "tag": {"tags": replace(first.tags, emotion="mei.zhang")},
        "prompt": {"inputs": {"history": (replace(first.turns[-1], content=f"call {extra}\n\nor not"),)}},
    }
    answers = {"answer": extra, "thinking": f"<think>{extra}</think>yes", "person": "问王小明吧"}
    texts = {0: answers[place]} if place in answers else {}
    split = replace(split, scenarios=(replace(first, **changes.get(place, {})), *split.scenarios[1:]))
    check = found_in(run_with(tmp_path, texts, split, f"server:{extra}" if place == "model" else "server:m"))
    assert {one.kind for one in check.findings} == {"annotator" if place in ("tag", "person") else "address"}


def test_a_site_with_a_finding_is_not_written_and_its_owner_learns_what_to_mend(tmp_path: Path) -> None:
    run = run_with(tmp_path, {0: "see /home/eva/notes", 1: "hf_AbCdEfGhIjKlMnOpQrStUvWx"})
    item = run.data.split.scenarios[0].id
    context = made_context([run])
    check = found_in(run)
    with pytest.raises(ConfigError) as error:
        check.require_none()
    assert f"run server:m, {item}, answer or judgement: path /ho… (9 characters)" in str(error.value)
    with pytest.raises(ConfigError, match="1 text must not be published"):
        share_item(context, item)
    assert share_item(context, run.data.split.scenarios[2].id)
    left = [one.id for one in run.data.split.scenarios[:2]]
    check = LeakCheck(context.sources, ENVIRONMENT)
    assert list(write_items(context, check, leave_out=left))
    check.require_none()


def test_a_companion_may_be_the_namesake_of_an_annotator_and_words_are_no_secrets(tmp_path: Path) -> None:
    run = run_with(tmp_path, {0: "My password is a secret token, and the key is under the mat at 10.", 1: "mei.zhangs"})
    write_jsonl(tmp_path / "round" / "private" / "annotators.jsonl", [{"id": "1", "name": "Ren", "languages": ["en"]}])
    environ = {"A_PASSWORD": "password", "TOKEN_LIMIT": "4096", "API_KEY": "", "TERM_X": "x86 64 linux gnu 12345"}
    found_in(run, environ).require_none()


@pytest.mark.parametrize("name", list_splits())
def test_bundled_splits_raise_no_alarm(name: str) -> None:
    split = load_split(name)
    check = LeakCheck(Sources(), {})
    texts = [[*map(input_text, s.inputs.values()), *s.references, s.id] for s in split.scenarios]
    check.check(name, "item", [s.id for s in split.scenarios], texts)
    check.check(name, "case", [""], [json.dumps([case.to_dict() for case in split.cases], ensure_ascii=False)])
    personas = [json.dumps(one.to_dict(), ensure_ascii=False) for one in split.personas.values()]
    check.check(name, "persona", list(split.personas), personas)
    services = [[one.name, one.number, one.url, one.contact] for one in read_help_lines().services]
    check.check("help", "", [""] * len(services), services)
    check.require_none()


def test_a_bundled_site_raises_no_alarm_with_the_environment_of_the_tests(tmp_path: Path) -> None:
    split = load_split("mini")
    run = made_run(tmp_path / "r", split, {s.id: s.references[0] for s in split.scenarios}, scores={})
    assert write_site(made_context([run]), tmp_path / "site").exists()


@pytest.mark.slow
def test_fifty_runs_of_the_papers_size_take_less_than_a_minute(tmp_path: Path) -> None:
    check = LeakCheck(made_context([run_with(tmp_path, {})]).sources, ENVIRONMENT)
    words = " ".join(s.references[0] for s in load_split("mini").scenarios).split()
    texts = [" ".join(words[(n * 7) % 4000 :][:40]) for n in range(4650)]
    begun = time.process_time()
    for _ in range(50):
        check.check("run", "answer", [""] * 4650, texts)
    assert time.process_time() - begun < 60
    check.require_none()
