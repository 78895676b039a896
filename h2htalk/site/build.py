"""Write a site: every page and data file into a folder that is replaced as a whole, or not at all.

index.html             the leaderboards, one for each protocol, studies over models, funnels, and the paper's rows
models/KEY.html        a run: subtasks, slices, contracts, judge, costs, signature
studies/KEY.html       a study: its tables, charts and the replies to read first
items.html             the item browser; it loads data/items-*.js, a chunk for the items and one for each run
data.parquet           every score, a row for each run and item
tables/, figures/      what these pages show, as CSV, LaTeX and SVG, and the drawings as PDF where asked for
site.json              what the site was made of, by which an erasure finds it; written first
"""

from __future__ import annotations

import html
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain, product
from pathlib import Path

from h2htalk.benchmark.report.pdf import print_pdf
from h2htalk.benchmark.studies.report import SHOWN_REPLIES, replies_to_read, study_view
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS, MARK, ErasableFolder, Record, remove_for_good
from h2htalk.data.files import read_json_object, write_json, write_output, writer_lock, writing
from h2htalk.data.languages import Language
from h2htalk.data.links import add_link, link_copies, remove_link
from h2htalk.data.scenario import is_workspace
from h2htalk.errors import ConfigError, DataError, H2HTalkError, counted, quoted
from h2htalk.site.context import Context, read_words
from h2htalk.site.items import share_item, write_items
from h2htalk.site.leaks import LeakCheck
from h2htalk.site.pages import write_boards
from h2htalk.site.sources import read_sources
from h2htalk.version import __version__

KIND, MARKER = "site", "site.json"
SUFFIXES = {".html", ".js", ".svg", ".pdf", ".csv", ".tex"}  # of the files in its folders
ALONE = "<!doctype html><!-- h2htalk item -->"
Paths = Sequence[Path]
Names = Sequence[str]
OWN = {MARKER, MARK, *FOLDER_KINDS[KIND].derived.split()}  # what a site may hold
_SHEET = "<!doctype html><style>@page{{size:{}px;margin:0}}body{{margin:0}}svg{{display:block;height:99vh}}</style>{}"


def build_site(
    paths: Paths, out: Path, language: Language = "en", title: str = "H2HTalk", leave_out: Names = (), pdf: bool = False
) -> str:
    """Write the site of some folders into another one, which it replaces as a whole; return what it shows.

    `leave_out`: ids of items and cases that the browser and the pages of studies do not show; figures count them.
    `pdf`: print the drawings as PDF too.

    Raises:
        ConfigError: a folder is of another kind, something must not be published (`leaks`), or nothing prints PDFs.
        DataError: a folder was edited, `out` holds something else, or another command writes there.
    """
    out = Path(os.path.abspath(out))
    context = Context(read_sources(paths), read_words(language), language, title)
    part = out.with_name(f".{out.name}.part")
    if part.is_symlink() or (os.path.lexists(out) and (out.is_symlink() or not out.is_dir() or not _is_site(out))):
        raise DataError(f"{out}: holds something else than a site; name a new folder with --out")
    names = [os.path.relpath(os.path.realpath(path), os.path.realpath(out.parent)) for path in paths]
    asked = {"sources": names, "language": language, "title": title, "leave_out": [*leave_out], "pdf": pdf}
    with writer_lock(part):
        shutil.rmtree(part, ignore_errors=True)  # of a killed command
        for folder, place in product(context.sources.folders, (out, part)):  # an erasure finds what a kill leaves
            add_link(folder, KIND, place)
        try:
            write_site(context, part, leave_out)
            if pdf and (problem := print_drawings(part)):
                raise ConfigError(f"--pdf: {problem}; the site stays as it was")
            write_json(sources_file(out), asked)
            shutil.rmtree(out, ignore_errors=True)
            part.rename(out)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            for folder, place in product(context.sources.folders, [part] if out.exists() else [part, out]):
                remove_link(folder, place)
    shown, more = context.sources, f", {counted(len(context.sources.funnels), 'funnel')}"
    runs = f"{counted(len(shown.runs), 'run')}, {counted(len(shown.studies), 'study', 'studies')}"
    return f"{out / 'index.html'}: {runs}{more if shown.funnels else ''}"


def _is_site(folder: Path) -> bool:
    names, about = {*os.listdir(folder)}, read_json_object(folder / MARKER, missing_ok=True)
    made = all(one.suffix in SUFFIXES or one.parent == folder for one in folder.rglob("*"))
    return not names or (names <= OWN and made and about.keys() >= {"version", "title", "items"})


def share(paths: Paths, item: str, out: Path, language: Language = "en", title: str = "H2HTalk") -> str:
    """Write the transcript of one item alone as a page that needs no other file. Raises as `build_site`."""
    context = Context(read_sources(paths), read_words(language), language, title)
    write_output(out, share_item(context, item), ALONE)
    link_copies(context.sources.folders, out)
    return f"{out}: {item}"


def write_site(context: Context, folder: Path, leave_out: Names = ()) -> None:
    """Write all files, after the marker, which names all items. Raises ConfigError for what must not be published."""
    check, shown = LeakCheck(context.sources), {item.id for split in context.sources.splits for item in split.items}
    if unknown := [quoted(name) for name in leave_out if name not in shown]:
        raise ConfigError(f"--leave-out {', '.join(unknown)}: there is no such item")
    about = {"version": __version__, "language": context.language, "title": context.title, "items": sorted(shown)}
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / MARKER, about)
    pages, items = write_boards(context).items(), write_items(context, check, leave_out)
    for name, content in chain[tuple[str, str | bytes]](pages, study_pages(context, check, leave_out), items):
        if isinstance(content, str):
            check.check(name, "", [""], [html.unescape(content)])
        with writing(folder / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    check.require_none()


def study_pages(context: Context, check: LeakCheck, leave_out: Names = ()) -> Iterator[tuple[str, str]]:
    """Yield the page of each study, with its charts as files. Chats that people had are theirs: none is shown."""
    for key, result in context.sources.studies:
        view, logs = study_view(result), result.study.spec.study == "logs"
        found = [] if logs else replies_to_read(result, SHOWN_REPLIES, public=True)
        replies = [one for one in found if one["case"] not in leave_out]
        texts = [[one["text"], *(text for _, text in one["said"]), *one["points"]] for one in replies]
        check.check(f"study {result.model}", "reply", [one["case"] for one in replies], texts)
        shown = {**view, "heading": result.model, "replies": replies}
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

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.erased_file = f"../{path.name}.erased.jsonl"  # the folder is published

    def items(self) -> Iterator[tuple[str, Record | None]]:
        yield from ((name, None) for name in read_json_object(self.path / MARKER)["items"])
        asked = read_json_object(sources_file(self.path), missing_ok=True)
        for path in filter(is_workspace, (self.path.parent / name for name in asked.get("sources", ()))):
            yield from (("funnel", {"id": name}) for name in Workspace(path).erased())  # which counts them no more

    def remake(self) -> Iterator[str]:
        asked = read_json_object(sources_file(self.path), missing_ok=True)
        paths = [self.path.parent / name for name in asked.get("sources", ())]
        try:
            context = Context(read_sources(paths), read_words(asked["language"]), asked["language"], asked["title"])
            write_site(context, self.path, asked["leave_out"])
        except (H2HTalkError, KeyError) as error:
            for name in FOLDER_KINDS[KIND].derived.split():  # half a site may be there
                remove_for_good(self.path / name)
            write_json(self.path / MARKER, {"items": []})
            yield f"its pages are deleted, and cannot be made again: {error}; run `h2htalk site` again"
        else:
            problem = f"; no PDFs: {why}" if asked.get("pdf") and (why := print_drawings(self.path)) else ""
            yield f"the folder is made again without them: publish it in place of the one that is out{problem}"


def sources_file(site: Path) -> Path:
    """The file beside a site, and not in it, that names the folders it is made of."""
    return site.with_name(f"{site.name}.sources.json")
