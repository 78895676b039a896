"""Write a site: every page and data file into a folder that is replaced as a whole, or not at all.

index.html             the leaderboards, one for each protocol, studies over models, funnels, and the paper's rows
models/KEY.html        a run: subtasks, slices, contracts, judge, costs, signature
studies/KEY.html       a study: its tables, charts and the replies to read first
items.html             the item browser; it loads data/items-*.js, a chunk for the items and one for each run
data.parquet           every score, a row for each run and item
tables/, figures/      what these pages show, as CSV, LaTeX and SVG, and the drawings as PDF where asked for
site.json              what the site was made of, by which an erasure finds it; written last
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from h2htalk.benchmark.report.pdf import print_pdf
from h2htalk.benchmark.studies.report import study_view
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS, ErasableFolder, Record, remove_for_good
from h2htalk.data.files import read_json_object, write_json, write_text, writing
from h2htalk.data.languages import Language
from h2htalk.data.links import add_link, link_copies, remove_link
from h2htalk.data.scenario import is_workspace
from h2htalk.errors import ConfigError, DataError, H2HTalkError, counted
from h2htalk.site.context import Context, read_words
from h2htalk.site.items import help_lines_of, share_item, write_items
from h2htalk.site.leaks import LeakCheck
from h2htalk.site.pages import write_boards
from h2htalk.site.sources import read_sources
from h2htalk.version import __version__

KIND, MARKER = "site", "site.json"
Paths: TypeAlias = Sequence[Path]
Names: TypeAlias = Sequence[str]
_SHEET = "<!doctype html><style>@page{{size:{}px;margin:0}}body{{margin:0}}svg{{display:block;height:99vh}}</style>{}"


def build_site(
    paths: Paths, out: Path, language: Language = "en", title: str = "H2HTalk", leave_out: Names = (), pdf: bool = False
) -> str:
    """Write the site of some folders into another one, which it replaces as a whole; return what it shows.

    `leave_out`: ids of items and cases that the browser and the pages of studies do not show; figures count them.
    `pdf`: print the drawings as PDF too.

    Raises:
        ConfigError: a folder is of another kind, something must not be published (`leaks`), or nothing prints PDFs.
        DataError: a folder was edited, or `out` holds something else.
    """
    context = read_context(paths, language, title)
    if out.is_dir() and any(out.iterdir()) and not (out / MARKER).is_file():
        raise DataError(f"{out}: holds something else than a site; name a new folder with --out")
    for folder in context.sources.folders:  # before the site holds their items: an erasure finds it even if this is cut
        add_link(folder, KIND, out)
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a killed command
    names = [os.path.relpath(os.path.realpath(path), os.path.realpath(out.parent)) for path in paths]
    asked = {"sources": names, "language": language, "title": title, "leave_out": [*leave_out], "pdf": pdf}
    try:
        write_site(context, part, leave_out)
        if pdf and (problem := print_drawings(part)):
            raise ConfigError(f"--pdf: {problem}; the site stays as it was")
        write_json(sources_file(out), asked)
        shutil.rmtree(out, ignore_errors=True)
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        for folder in () if out.exists() else context.sources.folders:
            remove_link(folder, out)
    shown, more = context.sources, f", {counted(len(context.sources.funnels), 'funnel')}"
    runs = f"{counted(len(shown.runs), 'run')}, {counted(len(shown.studies), 'study', 'studies')}"
    return f"{out / 'index.html'}: {runs}{more if shown.funnels else ''}"


def share(paths: Paths, item: str, out: Path, language: Language = "en", title: str = "H2HTalk") -> str:
    """Write the transcript of one item alone as a page that needs no other file. Raises as `build_site`."""
    context = read_context(paths, language, title)
    link_copies(context.sources.folders, out)
    write_text(out, share_item(context, item))
    return f"{out}: {item}"


def read_context(paths: Paths, language: Language, title: str) -> Context:
    """Open what a site shows. Raises as `build_site`."""
    return Context(read_sources(paths), read_words(language), language, title)


def write_site(context: Context, folder: Path, leave_out: Names = ()) -> None:
    """Write all files, the marker last. Raises ConfigError, before the marker, for what must not be published."""
    check, shown = LeakCheck(context.sources), {item.id for split in context.sources.splits for item in split.items}
    pages, items = write_boards(context).items(), write_items(context, check, leave_out)
    for name, content in chain[tuple[str, str | bytes]](pages, study_pages(context, leave_out), items):
        if isinstance(content, str):
            check.check_page(name, content)
        with writing(folder / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    check.require_none()
    write_text(folder / "robots.txt", "User-agent: *\nDisallow: /\n")
    about = {"version": __version__, "language": context.language, "title": context.title, "items": sorted(shown)}
    write_json(folder / MARKER, about)


def study_pages(context: Context, leave_out: Names = ()) -> Iterator[tuple[str, str]]:
    """Yield the page of each study, with its charts as files."""
    for key, result in context.sources.studies:
        view = study_view(result)
        replies = [one for one in view["replies"] if one["case"] not in leave_out]
        shown = {**view, "heading": result.model, "help_lines": help_lines_of(context.language), "replies": replies}
        yield f"studies/{key}.html", context.page("study.html", shown, depth=1)
        for name, chart in view["charts"].items():
            yield f"studies/{key}-{name}.svg", str(chart)


def print_drawings(site: Path) -> str:
    """Print each SVG as PDF beside it, on a page of its size and with a date of 1980; return why not, or nothing."""
    for drawing in sorted(site.rglob("*.svg")):
        svg, page, pdf = drawing.read_text(encoding="utf-8"), drawing.with_suffix(".html"), drawing.with_suffix(".pdf")
        page.write_text(_SHEET.format("px ".join(re.findall(r'(?:width|height)="(\d+)"', svg)[:2]), svg), "utf-8-sig")
        problem = print_pdf(page, pdf)
        page.unlink()
        if problem:
            return problem
        pdf.write_bytes(re.sub(rb"(Date \(D:)\d{14}", rb"\g<1>19800101000000", pdf.read_bytes()))
    return ""


class ErasableSite(ErasableFolder):
    """A site from which items leave: it is made again from its sources, which have lost them already."""

    def items(self) -> Iterator[tuple[str, Record | None]]:
        yield from ((name, None) for name in read_json_object(self.path / MARKER)["items"])
        asked = read_json_object(sources_file(self.path), missing_ok=True)
        for path in filter(is_workspace, (self.path.parent / name for name in asked.get("sources", ()))):
            yield from (("funnel", {"id": name}) for name in Workspace(path).erased())  # which counts them no more

    def remake(self) -> Iterator[str]:
        asked = read_json_object(sources_file(self.path), missing_ok=True)
        paths = [self.path.parent / name for name in asked.get("sources", ())]
        try:
            write_site(read_context(paths, asked["language"], asked["title"]), self.path, asked["leave_out"])
        except (H2HTalkError, KeyError) as error:
            for name in FOLDER_KINDS[KIND].derived.split():  # half a site may be there
                remove_for_good(self.path / name)
            yield f"its pages are deleted, and cannot be made again: {error}; run `h2htalk site` again"
        else:
            problem = f"; no PDFs: {why}" if asked.get("pdf") and (why := print_drawings(self.path)) else ""
            yield f"the folder is made again without them: publish it in place of the one that is out{problem}"


def sources_file(site: Path) -> Path:
    """The file beside a site, and not in it, that names the folders it is made of."""
    return site.with_name(f"{site.name}.sources.json")
