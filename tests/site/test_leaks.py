"""What must not be published is found wherever it stands, and ordinary text is not taken for it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

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
from support.sites import made_context, made_run, mini, write_site
from support.tables import table

ENVIRONMENT = {
    "MAILER_PASSWORD": "tulip-7-garden",
    "BUILD_ID": "q8Zr4Lw0Xk2Vb6Ty1NpA",
    "PATH": "/usr/bin:/bin",
}
MANIFEST = {
    "sessions": [
        {"started": "2026-01-01T00:00:00Z", "endpoint": "https://gpu7.example.edu:8443/v1"}
    ]
}
# Twenty things, each of which must stop a site: kind and text.
PLANTED = table("site", "planted")


def run_with(
    folder: Path, texts: Mapping[int, str], split: Split | None = None, model: str = "server:m"
) -> Run:
    """A run from which an item was erased, with a round in which two people annotated, and these answers."""
    split = split or mini()
    answers = {s.id: texts.get(n, "I am here with you.") for n, s in enumerate(split.scenarios)}
    run = made_run(folder / "run", split, answers, model, manifest=MANIFEST)
    write_jsonl(folder / "run" / "erased.jsonl", [{"id": "dlg-0417", "items": "0"}])
    people = [
        {"id": f"{n:012}", "name": name, "languages": ["en"]}
        for n, name in enumerate(("mei.zhang", "王小明"))
    ]
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
def test_each_thing_alone_is_found_with_its_item_and_not_shown(
    tmp_path: Path, kind: str, text: str
) -> None:
    run = run_with(tmp_path, {3: f"Well, {text}，好吗"})
    findings = list(found_in(run).findings)
    assert {finding.kind for finding in findings} == {kind}
    assert {(finding.where, finding.item) for finding in findings} == {
        ("run server:m", run.data.split.scenarios[3].id)
    }
    assert not any(text in str(finding) for finding in findings)


@pytest.mark.parametrize(("kind", "text"), table("site", "forms"))
def test_further_forms_are_found_and_words_like_them_are_not(kind: str, text: str) -> None:
    check = LeakCheck(Sources(), {"SMTP_PWD": "hunter22x"})
    check.check("run", "answer", ["a"], [f"({text})"])
    assert {finding.kind for finding in check.findings} == ({kind} if kind else set())


def test_all_twenty_planted_are_found_in_one_site(tmp_path: Path) -> None:
    split = mini(*range(20))
    run = run_with(tmp_path, {n: f"({text})" for n, (_, text) in enumerate(PLANTED)}, split)
    findings_of_run = {(finding.item, finding.kind) for finding in found_in(run).findings}
    assert findings_of_run == {
        (s.id, kind) for s, (kind, _) in zip(split.scenarios, PLANTED, strict=True)
    }


@pytest.mark.parametrize(
    "leaking_file", ["answer", "thinking", "reference", "prompt", "tag", "id", "model", "person"]
)
def test_it_is_found_in_every_place(tmp_path: Path, leaking_file: str) -> None:
    split = mini()
    extra = "192.168.7.7 "
    first = split.scenarios[0]
    changes = {
        "reference": {"references": (extra,)},
        "id": {"id": "x 192.168.7.7"},
        "tag": {"tags": replace(first.tags, emotion="mei.zhang")},
        "prompt": {
            "inputs": {"history": (replace(first.turns[-1], content=f"call {extra}\n\nor not"),)}
        },
    }
    answers = {"answer": extra, "thinking": f"<think>{extra}</think>yes", "person": "问王小明吧"}
    texts = {0: answers[leaking_file]} if leaking_file in answers else {}
    split = replace(
        split, scenarios=(replace(first, **changes.get(leaking_file, {})), *split.scenarios[1:])
    )
    check = found_in(
        run_with(
            tmp_path, texts, split, f"server:{extra}" if leaking_file == "model" else "server:m"
        )
    )
    assert {finding.kind for finding in check.findings} == {
        "annotator" if leaking_file in ("tag", "person") else "address"
    }


def test_a_site_with_a_finding_is_not_written_and_its_owner_learns_what_to_mend(
    tmp_path: Path,
) -> None:
    run = run_with(tmp_path, {0: "see /home/eva/notes", 1: "hf_AbCdEfGhIjKlMnOpQrStUvWx"})
    item = run.data.split.scenarios[0].id
    context = made_context([run])
    check = found_in(run)
    with pytest.raises(ConfigError) as error:
        check.require_none()
    assert f"run server:m, {item}, answer or judgement: path /ho… (9 characters)" in str(
        error.value
    )
    with pytest.raises(ConfigError, match="1 text must not be published"):
        share_item(context, item)
    assert share_item(context, run.data.split.scenarios[2].id)
    without = [scenario.id for scenario in run.data.split.scenarios[:2]]
    check = LeakCheck(context.sources, ENVIRONMENT)
    assert list(write_items(context, check, leave_out=without))
    check.require_none()


def test_a_companion_may_be_the_namesake_of_an_annotator_and_words_are_no_secrets(
    tmp_path: Path,
) -> None:
    run = run_with(
        tmp_path,
        {0: "My password is a secret token, and the key is under the mat at 10.", 1: "mei.zhangs"},
    )
    write_jsonl(
        tmp_path / "round" / "private" / "annotators.jsonl",
        [{"id": "1", "name": "Ren", "languages": ["en"]}],
    )
    environ = {
        "A_PASSWORD": "password",
        "TOKEN_LIMIT": "4096",
        "API_KEY": "",
        "TERM_X": "x86 64 linux gnu 12345",
    }
    found_in(run, environ).require_none()


@pytest.mark.parametrize("name", list_splits())
def test_bundled_splits_raise_no_alarm(name: str) -> None:
    split = load_split(name)
    check = LeakCheck(Sources(), {})
    texts = [[*map(input_text, s.inputs.values()), *s.references, s.id] for s in split.scenarios]
    check.check(name, "item", [s.id for s in split.scenarios], texts)
    check.check(
        name,
        "case",
        [""],
        [json.dumps([case.to_dict() for case in split.cases], ensure_ascii=False)],
    )
    personas = [
        json.dumps(persona.to_dict(), ensure_ascii=False) for persona in split.personas.values()
    ]
    check.check(name, "persona", list(split.personas), personas)
    services = [
        [service.name, service.number, service.url, service.contact]
        for service in read_help_lines().services
    ]
    check.check("help", "", [""] * len(services), services)
    check.require_none()


def test_a_bundled_site_raises_no_alarm_with_the_environment_of_the_tests(tmp_path: Path) -> None:
    split = load_split("mini")
    run = made_run(
        tmp_path / "r", split, {s.id: s.references[0] for s in split.scenarios}, scores={}
    )
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


SECRET = "mEdW9xA/b+Qz==8fL2mN-77p"
SPELLINGS = {
    "upper": SECRET.upper(),
    "lower": SECRET.lower(),
    "JSON": json.dumps(SECRET).replace("/", "\\/"),
    "URL": quote(SECRET, safe=""),
    "URL twice": quote(quote(SECRET, safe=""), safe=""),
    "HTML": "".join(f"&#{ord(sign)};" for sign in SECRET),
    "escapes": "".join(f"\\u{ord(sign):04x}" for sign in SECRET),
    "lines": f"{SECRET[:8]}\n{SECRET[8:16]}\n{SECRET[16:]}",
    "spaces": " ".join(SECRET),
    "zero width": "\u200b".join(SECRET),
    "base64": base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "base64 of URLs": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "hexadecimal": SECRET.encode().hex(),
    "beginning": SECRET[:14],
    "end": SECRET[-14:],
}


@pytest.mark.parametrize("form", SPELLINGS)
def test_a_secret_is_found_in_every_spelling(form: str) -> None:
    """It was found letter for letter only."""
    check = LeakCheck(Sources(), {"MAILER_SECRET": SECRET})
    check.check(
        "run", "answer", ["a", "b", "c"], ["before", f"the key {SPELLINGS[form]} is", "after"]
    )
    assert {(finding.kind, finding.item) for finding in check.findings} == {("environment", "b")}
    assert SPELLINGS[form] not in str(check.findings)


def test_a_long_value_that_is_no_secret_is_found_as_a_whole_only() -> None:
    environ = {"IMAGE": "ghcr.example/lab/qwen2.5-7b-instruct-2026"}
    check = LeakCheck(Sources(), environ)
    check.check("run", "answer", ["a"], ["the model qwen2.5-7b-instruct-2026, and /lab/qwen2.5"])
    assert not check.findings
    check.check("run", "answer", ["a"], [environ["IMAGE"]])
    assert {finding.kind for finding in check.findings} == {"environment"}


DRAWN = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"
KEYS = [
    *(
        f"sk-ant-api03-{DRAWN}",
        f"sk-or-v1-{DRAWN}",
        f"sk-proj-{DRAWN}",
        f"hf_{DRAWN}",
        f"api_org_{DRAWN}",
        f"gsk_{DRAWN}",
    ),
    *(
        f"AIza{DRAWN}",
        f"GOCSPX-{DRAWN}",
        f"ya29.{DRAWN}",
        f"xai-{DRAWN}",
        f"pplx-{DRAWN}",
        f"r8_{DRAWN}",
        f"nvapi-{DRAWN}",
    ),
    *(
        f"fw_{DRAWN}",
        f"tgp_v1_{DRAWN}",
        f"csk-{DRAWN}",
        f"jina_{DRAWN}",
        f"pcsk_{DRAWN}",
        f"pa-{DRAWN}",
        f"ghp_{DRAWN}",
    ),
    f"github_pat_{DRAWN}",
    f"glpat-{DRAWN}",
    f"glrt-{DRAWN}",
    f"dckr_pat_{DRAWN}",
    f"npm_{DRAWN}",
    f"pypi-{DRAWN}",
    f"dop_v1_{DRAWN}",
    f"shpat_{DRAWN}",
    f"sq0atp-{DRAWN}",
    f"xoxb-123-{DRAWN}",
    f"xapp-1-{DRAWN}",
    f"hvs.{DRAWN}",
    f"lin_api_{DRAWN}",
    f"figd_{DRAWN}",
    f"PMAK-{DRAWN}",
    f"tskey-auth-{DRAWN}",
    f"sbp_{DRAWN}",
    f"phc_{DRAWN}",
    f"secret_{DRAWN}",
    f"ntn_{DRAWN}",
    f"AGE-SECRET-KEY-1{DRAWN.upper()}",
    f"SG.{DRAWN}.{DRAWN}",
    f"sk_live_{DRAWN}",
    "AKIA1234567890ABCDEF",
    "ASIA1234567890ABCDEF",
    f"eyJhbGciOiJI.eyJzdWIiOiIx.{DRAWN}",
    f"Bearer {DRAWN}",
    *(
        f"AccountKey={DRAWN}==",
        f"SharedAccessKey={DRAWN}=",
        f"aws_secret_access_key = {DRAWN}",
        f'"api_key": "{DRAWN}"',
    ),
    f"x-api-key: {DRAWN}",
    f"https://h.example/x?sig={DRAWN}",
    f"https://h.example/x?access_token={DRAWN}",
    f"https://hooks.slack.com/services/T0123456/B0123456/{DRAWN}",
    f"123456789:AA{DRAWN[:33]}",
    "SK" + "0a" * 16,
    f"https://discord.com/api/webhooks/123456789012345678/{DRAWN}",
    "dapi" + "0a" * 16,
    f"s3://AKIA:{DRAWN}@b",
]


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_services_are_found(key: str) -> None:
    check = LeakCheck(Sources(), {})
    check.check("run", "answer", ["a"], [f"use ({key}) now"])
    assert "key" in {finding.kind for finding in check.findings}


HOMES = [
    "/gpfs/home/eva",
    "/lustre/home/eva/x",
    "/scratch/eva",
    "/scratch2/eva/run",
    "/export/home/eva",
    "/nfs/home/eva",
    "/data/home/eva",
    "/mnt/c/Users/eva",
    "/home1/eva",
    "/var/home/eva",
    "/Volumes/Users/eva",
    "/gpfs/scratch/eva",
    "/lustre/eva",
    "/beegfs/eva",
    "/p/home/jusers/eva",
    "/cluster/users/eva",
    "/root/x",
    "file:///home/eva",
    *(
        "C:\\Users\\eva",
        "D:\\\\Users\\\\eva",
        "C:/Users/eva",
        "C:\\Documents and Settings\\eva",
        "\\\\server\\home\\eva",
    ),
    "\\\\server\\users$\\eva",
    "\\\\fs01.example\\homes\\eva",
    "\\\\\\\\server\\\\home\\\\eva",
]


@pytest.mark.parametrize("home", HOMES)
def test_homes_on_clusters_and_other_systems_are_found(home: str) -> None:
    check = LeakCheck(Sources(), {})
    check.check("run", "answer", ["a"], [f"saved in {home}/run."])
    assert "path" in {finding.kind for finding in check.findings}


@pytest.mark.parametrize(
    "text",
    [
        "I went home/out with the users/friends, and scratch that.",
        "https://example.org/users/42 and https://example.org/home/page",
        "Key: be kind to yourself. Token of love = a-handwritten-letter-to-her.",
        "the secret_garden_of_my_grandmother and a key-ring-with-many-little-bears",
        "pa-dum, pa-dum: 12 times; pat-a-cake, pat-a-cake",
        "and/or user/companion, e.g. 10:AA batteries",
        "Her secret: she-never-told-anyone-about-it.",
    ],
)
def test_words_like_keys_and_homes_are_no_alarm(text: str) -> None:
    check = LeakCheck(Sources(), {})
    check.check("run", "answer", ["a"], [text])
    assert not check.findings
