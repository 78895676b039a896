"""A whole site: what it holds, that nothing leaks, that it is replaced whole, and that an erasure makes it again."""

from __future__ import annotations

import hashlib
import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import h2htalk
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.data.links import read_links
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError
from h2htalk.site.build import build_site, share, sources_file
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.doubles.loopback import LoopbackServer
from support.runs import baseline_run
from support.studies import cases_of, judge_lines, judge_of, spec, write_cases, write_script

WORDS = "the copper kettle"


def answered(folder: Path, name: str, text: str) -> Path:
    spec = {
        "split": "mini",
        "language": "en",
        "limit": 22,
        "embedder": "none",
        "out": str(folder / name),
    }
    h2htalk.evaluate(h2htalk.EvaluateSpec(model=lambda _: text, name=name, **spec))
    return folder / name


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    cases = [case for case in cases_of("high_risk", "en") if case.study == "high_risk"][:2]
    judge = write_script(tmp_path / "judge.jsonl", judge_of(cases))
    model = write_script(tmp_path / "model.jsonl", "It will pass.")
    study = run_study(
        spec("sap", model, tmp_path / "study", judge=judge, arms=("sap",), language="en", limit=2)
    )
    runs = [
        answered(tmp_path, "nova-7B", f"I put {WORDS} on."),
        answered(tmp_path, "lumen", "I am here."),
    ]
    return [*runs, study.study.path]


def hashes(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def test_two_sites_of_the_same_runs_are_equal_whatever_the_order(
    tmp_path: Path, sources: list[Path]
) -> None:
    text = build_site(sources, tmp_path / "a", title="Our lab")
    build_site(sources[::-1], tmp_path / "b", title="Our lab")
    assert hashes(tmp_path / "a") == hashes(tmp_path / "b")
    assert text == f"{tmp_path / 'a' / 'index.html'}: 2 runs, 1 study"
    index = (tmp_path / "a" / "index.html").read_text()
    study = next((tmp_path / "a" / "studies").glob("*.html"))
    assert f'href="studies/{study.name}"' in index
    assert "Lexical mean" in index
    models = [page.read_text() for page in (tmp_path / "a" / "models").glob("*.html")]
    assert [len(re.findall(r'href="../items.html#run=\w{8}"', page)) > 0 for page in models] == [
        True,
        True,
    ]
    canaries = {load_split(name).canary for name in ("mini", "high_risk")}
    for page in (tmp_path / "a").rglob("*.html"):
        head = page.read_text().partition("<style>")[0]
        assert 'name="robots" content="noindex"' in head
        assert all(canary in head for canary in canaries)
    assert not files_with(tmp_path / "a", str(tmp_path))  # no path of this machine


def test_a_site_is_replaced_whole_and_nothing_else_is(tmp_path: Path, sources: list[Path]) -> None:
    build_site(sources, tmp_path / "site")
    before = hashes(tmp_path / "site")
    build_site(sources[:1], tmp_path / "site")
    assert hashes(tmp_path / "site").keys() < before.keys()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="holds something else than a site"):
        build_site(sources, tmp_path / "other")
    with pytest.raises(ConfigError, match="is no scored run, study, curation or release"):
        build_site([tmp_path / "other"], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_the_site_did_not_write_stays(tmp_path: Path, sources: list[Path]) -> None:
    """A rebuilt site removed a file of the user's below models/, and refused a folder with a CNAME."""
    site = tmp_path / "site"
    build_site(sources, site)
    mine = {
        "CNAME": "lab.example",
        "models/mine.html": "<p>mine</p>",
        ".git/config": "[core]",
        "figures/a/b.svg": "<svg>",
    }
    for name, text in mine.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (site / "linked").symlink_to(tmp_path)
    old = next((site / "studies").glob("*.html")).relative_to(site)
    build_site(sources[:1], site)
    assert {name: (site / name).read_text() for name in mine} == mine
    assert (site / "linked").is_symlink()
    assert not (site / old).exists()
    assert not list(tmp_path.glob(".site.*old*"))
    build_site(sources[:1], site)
    assert {name: (site / name).read_text() for name in mine} == mine
    (site / old).parent.mkdir(exist_ok=True)
    (site / old).write_text("mine")
    before = hashes(site)
    with pytest.raises(
        DataError, match="is not of the site, and the new site has a file of that name"
    ):
        build_site(sources, site)
    assert hashes(site) == before


def test_a_kill_between_two_renames_loses_nothing(tmp_path: Path, sources: list[Path]) -> None:
    site = tmp_path / "site"
    build_site(sources[:1], site)
    (site / "CNAME").write_text("lab.example")
    site.rename(tmp_path / ".site.old")
    build_site(sources[:1], site)
    assert (site / "CNAME").read_text() == "lab.example"
    assert not (tmp_path / ".site.old").exists()


def test_a_leak_stops_the_site_and_leaving_the_item_out_lets_it_go(
    tmp_path: Path, sources: list[Path]
) -> None:
    leaking = answered(tmp_path, "leaky", "my key is sk-abcdefghij0123456789KLMN")
    build_site(sources, tmp_path / "site")
    before = hashes(tmp_path / "site")
    with pytest.raises(ConfigError, match="must not be published") as raised:
        build_site([*sources, leaking], tmp_path / "site")
    assert "sk-abcdefghij" not in str(raised.value)
    assert hashes(tmp_path / "site") == before  # the old one is still whole
    assert not list(tmp_path.glob(".site.part"))
    everything = [scenario.id for scenario in h2htalk.load_run(leaking).data.split.scenarios]
    build_site([*sources, leaking], tmp_path / "site", leave_out=everything)


def test_a_site_that_leaks_leaves_no_link_and_no_page(
    tmp_path: Path, sources: list[Path], monkeypatch: Any
) -> None:
    site = tmp_path / "site"
    with monkeypatch.context() as patch:
        patch.setenv("LAB_SECRET", f"{WORDS} on")
        with pytest.raises(ConfigError, match="must not be published"):
            build_site(sources, site)
        assert not any(map(read_links, sources))
        assert not site.exists()
    build_site(sources, site)
    item = h2htalk.load_run(sources[0]).data.split.scenarios[0].id
    for source in sources:
        erase(source, ErasedIds(frozenset({item})))
    monkeypatch.setenv("LAB_SECRET", f"{WORDS} on")
    done = erase(site, ErasedIds(frozenset({item})))
    assert "cannot be made again" in done.messages[0]
    assert (list(site.rglob("*.html")), (site / "data").exists()) == ([], False)


def test_one_transcript_alone(tmp_path: Path, sources: list[Path]) -> None:
    item = h2htalk.load_run(sources[0]).data.split.scenarios[0].id
    assert share(sources, item, tmp_path / "one.html") == f"{tmp_path / 'one.html'}: {item}"
    assert 'content="noindex"' in (tmp_path / "one.html").read_text()
    assert [link.kind for link in read_links(sources[0])] == ["copy"]
    with pytest.raises(ConfigError, match="was asked"):
        share(sources, "nothing", tmp_path / "two.html")


@pytest.mark.parametrize("moved", [False, True])
def test_an_erasure_reaches_the_site_after_all_its_sources(
    tmp_path: Path, sources: list[Path], moved: bool
) -> None:
    site = tmp_path / "site"
    build_site(sources, site)
    links = chain.from_iterable(map(read_links, sources))
    assert {link.kind for link in links} == {"site"}
    item = h2htalk.load_run(sources[0]).data.split.scenarios[0].id
    gone = ErasedIds(frozenset({item}))
    for source in sources:
        erase(source, gone)
    if moved:
        sources_file(site).unlink()
    done = erase(site, gone)
    assert item in done.items
    if moved:
        assert [message for message in done.messages if "made again" in message] == [
            done.messages[0]
        ]
        assert "cannot be made again" in done.messages[0]
        assert not (site / "index.html").exists()
    else:
        assert item not in json.loads((site / "site.json").read_text())["items"]
        second_site = tmp_path / "again"
        build_site(sources, second_site)
        kept_files = {
            name: digest
            for name, digest in hashes(site).items()
            if not name.startswith((".", "erased"))
        }
        assert kept_files == hashes(second_site)


def test_the_command_line(tmp_path: Path, sources: list[Path]) -> None:
    done = h2htalk_here(
        "site", *sources, "--out", tmp_path / "site", "--language", "zh", "--title", "实验室"
    )
    assert done.returncode == 0, done.stderr
    assert '<html lang="zh">' in (tmp_path / "site" / "index.html").read_text()
    done = h2htalk_here("site", tmp_path, "--out", tmp_path / "new")
    assert (done.returncode, "is no scored run" in done.stderr) == (2, True)


def test_the_address_of_a_server_stays_at_home(tmp_path: Path) -> None:
    with LoopbackServer(faults={"context_length": 0.3}) as server:
        baseline_run(tmp_path / "run", model=f"server:nova@{server.url}", language="en")
        build_site([tmp_path / "run"], tmp_path / "site")
    assert files_with(tmp_path / "site", server.url.split("/")[2]) == []


def test_no_folder_but_a_site_is_replaced_and_no_file_but_a_page(
    tmp_path: Path, sources: list[Path]
) -> None:
    out = tmp_path / "web"
    build_site(sources[:1], out)
    (out / "site.json").write_text('{"name": "vue"}')
    with pytest.raises(DataError, match="something else"):
        build_site(sources[:1], out)
    item = load_split("mini").select("en", limit=22).scenarios[0].id
    with pytest.raises(DataError, match="something else"):
        share(sources[:1], item, sources[0] / "report.html")
    for _ in range(2):
        share(sources[:1], item, tmp_path / "one.html")
    with pytest.raises(ConfigError, match="--leave-out 'nobody'"):
        build_site(sources[:1], tmp_path / "new", leave_out=["nobody"])
    assert not (tmp_path / "new").exists()


def test_no_page_shows_a_reply_that_names_a_method_nor_what_follows_it(tmp_path: Path) -> None:
    case = next(
        case
        for case in cases_of("high_risk", "en")
        if any(p.aspect == "give_means" for p in case.points)
    )
    evidence = f"this is how ({WORDS})"
    judge = judge_lines(
        [case], lambda case, position, number, aspect, kind: kind == "must_not", evidence
    )
    scripts = (
        write_script(tmp_path / "model.jsonl", evidence),
        write_script(tmp_path / "judge.jsonl", judge),
    )
    ask = spec(
        "sap",
        scripts[0],
        tmp_path / "study",
        judge=scripts[1],
        arms=("sap",),
        split=write_cases(tmp_path / "c.jsonl", [case]),
    )
    build_site([run_study(ask).study.path], tmp_path / "site")
    assert files_with(tmp_path / "study", WORDS)
    assert files_with(tmp_path / "site", WORDS) == []
