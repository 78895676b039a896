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
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from pathlib import Path, PurePosixPath

from h2htalk.benchmark.raters import describe_check, describe_rule
from h2htalk.benchmark.report.pdf import print_pdf
from h2htalk.benchmark.studies.report.study_page import SHOWN_REPLIES, replies_to_read, study_view
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS, ErasableFolder, Record, remove_for_good
from h2htalk.data.erasure.unfinished_erasure import MARK
from h2htalk.data.files import read_json_object, write_json, write_output, writer_lock, writing
from h2htalk.data.languages import Language
from h2htalk.data.links import add_link, link_copies, remove_link
from h2htalk.data.stage_folders import is_workspace
from h2htalk.errors import ConfigError, DataError, H2HTalkError, counted, quoted
from h2htalk.progress import QUICK, Progress
from h2htalk.site.context import Context, read_words
from h2htalk.site.items import count_item_files, share_item, write_items
from h2htalk.site.leaks import LeakCheck
from h2htalk.site.pages import write_boards
from h2htalk.site.sources import read_sources
from h2htalk.version import __version__

KIND = "site"
MARKER = "site.json"
SUFFIXES = {".html", ".js", ".svg", ".pdf", ".csv", ".tex"}  # of the files in its folders
ALONE = "<!doctype html><!-- h2htalk item -->"
SITE_FILES = {MARKER, MARK, *FOLDER_KINDS[KIND].derived.split()}  # what a site may hold
_SHEET = "<!doctype html><style>@page{{size:{}px;margin:0}}body{{margin:0}}svg{{display:block;height:99vh}}</style>{}"


def build_site(
    paths: Sequence[Path],
    out: Path,
    language: Language = "en",
    title: str = "H2HTalk",
    leave_out: Sequence[str] = (),
    pdf: bool = False,
    prompts: Sequence[Path] = (),
) -> str:
    """Write the site of some folders into another one, which it replaces as a whole; return what it shows.

    `leave_out`: ids of items and cases that the browser and the pages of studies do not show; figures count them.
    `pdf`: print the drawings as PDF too. `prompts`: as of `read_sources`; a site that an erasure builds again has none.

    Raises:
        ConfigError: a folder is of another kind, something must not be published (`leaks`), or nothing prints PDFs.
        DataError: a folder was edited, `out` holds something else, or another command writes there.
    """
    out = Path(os.path.abspath(out))
    context = Context(read_sources(paths, prompts), read_words(language), language, title)
    part = out.with_name(f".{out.name}.part")
    replaced = out.with_name(f".{out.name}.old")
    if any(map(os.path.islink, (part, replaced, out))):
        raise DataError(f"{out}: holds something else than a site; name a new folder with --out")
    parent = os.path.realpath(out.parent)
    names = [os.path.relpath(os.path.realpath(path), parent) for path in paths]
    settings = {
        "sources": names,
        "language": language,
        "title": title,
        "leave_out": [*leave_out],
        "pdf": pdf,
    }
    with writer_lock(part):
        shutil.rmtree(part, ignore_errors=True)  # of a killed command
        if replaced.exists() and not out.exists():  # it was killed between the two
            replaced.rename(out)
        if os.path.lexists(out) and (not out.is_dir() or not _is_site(out)):
            raise DataError(
                f"{out}: holds something else than a site; name a new folder with --out"
            )
        linked = [out, part, replaced]
        # An erasure finds what a kill leaves.
        for folder, path in product(context.sources.folders, linked):
            add_link(folder, KIND, path)
        try:
            written = write_site(context, part, leave_out)
            if pdf and (problem := print_drawings(part)):
                raise ConfigError(f"--pdf: {problem}; the site stays as it was")
            keep_others(out, part)
            write_json(sources_file(out), {**settings, "files": site_files(written, pdf)})
            shutil.rmtree(replaced, ignore_errors=True)
            if out.exists():
                out.rename(replaced)
            part.rename(out)
            shutil.rmtree(replaced, ignore_errors=True)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            if out.exists():
                linked.remove(out)
            for folder, path in product(context.sources.folders, linked):
                remove_link(folder, path)
    sources = context.sources
    counts = [counted(len(sources.runs), "run"), counted(len(sources.studies), "study", "studies")]
    if sources.funnels:
        counts.append(counted(len(sources.funnels), "funnel"))
    return f"{out / 'index.html'}: {', '.join(counts)}"


def _is_site(folder: Path) -> bool:
    """Whether a folder is empty, or a site; one of an earlier version does not know its files, and holds no others."""
    names = {*os.listdir(folder)}
    if not names:
        return True
    about = read_json_object(folder / MARKER, missing_ok=True)
    if not about.keys() >= {"version", "title", "items"}:
        return False
    if "files" in read_json_object(sources_file(folder), missing_ok=True):
        return True
    return names <= SITE_FILES and all(
        path.suffix in SUFFIXES or path.parent == folder for path in folder.rglob("*")
    )


def site_files(written: Iterable[str], pdf: bool) -> list[str]:
    """The names of the files of a site, by which the next one knows what it may remove."""
    names = {MARKER, *written}
    if pdf:
        names |= {
            str(PurePosixPath(name).with_suffix(".pdf")) for name in names if name.endswith(".svg")
        }
    return sorted(names)


def keep_others(site: Path, new: Path) -> None:
    """Copy what a site's folder holds beside the site's own files, such as a `CNAME`, into the one that replaces it.

    Raises DataError where the new site writes a file of the same name.
    """
    about = read_json_object(sources_file(site), missing_ok=True)
    if not site.is_dir() or not isinstance(about.get("files"), list):
        return
    written = {*about["files"], MARKER, MARK}
    for folder, subfolders, names in os.walk(site):
        linked = [name for name in subfolders if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *linked):
            path = Path(folder, name)
            inner = path.relative_to(site)
            if inner.as_posix() in written:
                continue
            if os.path.lexists(new / inner):
                raise DataError(
                    f"{path}: is not of the site, and the new site has a file of that name; move it away"
                )
            with writing(new / inner):
                (new / inner).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, new / inner, follow_symlinks=False)


def share(
    paths: Sequence[Path],
    item: str,
    out: Path,
    language: Language = "en",
    title: str = "H2HTalk",
    prompts: Sequence[Path] = (),
) -> str:
    """Write the transcript of one item alone as a page that needs no other file. Raises as `build_site`."""
    context = Context(read_sources(paths, prompts), read_words(language), language, title)
    write_output(out, share_item(context, item), ALONE)
    link_copies(context.sources.folders, out)
    return f"{out}: {item}"


def write_site(context: Context, folder: Path, leave_out: Sequence[str] = ()) -> list[str]:
    """Write all files, after the marker, which names all items; return their names. Raises ConfigError for what must
    not be published."""
    items: set[str] = set()
    for split in context.sources.splits:
        items |= {item.id for item in split.items}
    unknown = [quoted(name) for name in leave_out if name not in items]
    if unknown:
        raise ConfigError(f"--leave-out {', '.join(unknown)}: there is no such item")
    about = {
        "version": __version__,
        "language": context.language,
        "title": context.title,
        "items": sorted(items),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / MARKER, about)
    written: list[str] = []
    check = LeakCheck(context.sources)
    pages = write_boards(context).items()
    studies = study_pages(context, check, leave_out)
    chunks = write_items(context, check, leave_out)
    total = len(pages) + len(context.sources.studies) + count_item_files(context, leave_out)
    with Progress("writing pages", total, silent=QUICK) as progress:
        for name, content in chain[tuple[str, str | bytes]](pages, studies, chunks):
            if isinstance(content, str):
                check.check(name, "", [""], [html.unescape(content)])
                content = content.encode()
            with writing(folder / name):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            written.append(name)
            # Charts of studies are not in the total.
            if not (name.startswith("studies/") and name.endswith(".svg")):
                progress.advance()
    check.require_none()
    return written


def study_pages(
    context: Context, check: LeakCheck, leave_out: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield the page of each study, with its charts as files. Chats that people had are theirs: none is shown."""
    for key, result in context.sources.studies:
        view = study_view(result)
        replies = []
        cases = []
        texts = []
        if result.study.spec.study != "logs":
            for reply in replies_to_read(result, SHOWN_REPLIES, public=True):
                if reply.case not in leave_out:
                    replies.append(reply)
                    cases.append(reply.case)
                    conversation = [text for _, text in reply.conversation]
                    texts.append([reply.text, *conversation, *reply.points])
        check.check(f"study {result.model}", "reply", cases, texts)
        # Tables and warnings are in English; how the judge was checked stands in the site's language too.
        checked = describe_check(result.planted, context.language) if result.judge else ""
        rule = describe_rule(context.language) if result.judge else ""
        page_view = {
            **view,
            "heading": result.model,
            "replies": replies,
            "checked": checked,
            "rule": rule,
        }
        yield f"studies/{key}.html", context.page("study.html", page_view, depth=1)
        for name, chart in view["charts"].items():
            yield f"studies/{key}-{name}.svg", str(chart)


def print_drawings(site: Path) -> str:
    """Print each SVG as PDF beside it, on a page of its size and with a date of 1980; return why not, or nothing."""
    for drawing in sorted(site.rglob("*.svg")):
        svg = drawing.read_text(encoding="utf-8")
        page = drawing.with_suffix(".html")
        pdf = drawing.with_suffix(".pdf")
        size = re.findall(r'(?:width|height)="(\d+)"', svg)[:2]
        page.write_text(_SHEET.format("px ".join(size), svg), "utf-8-sig")
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
        settings = read_json_object(sources_file(self.path), missing_ok=True)
        for name in settings.get("sources", ()):
            path = self.path.parent / name
            if is_workspace(path):
                for erased in Workspace(path).erased():  # which the funnel counts no more
                    yield "funnel", {"id": erased}

    def remake(self) -> Iterator[str]:
        settings = read_json_object(sources_file(self.path), missing_ok=True)
        paths = [self.path.parent / name for name in settings.get("sources", ())]
        try:
            context = Context(
                read_sources(paths),
                read_words(settings["language"]),
                settings["language"],
                settings["title"],
            )
            written = write_site(context, self.path, settings["leave_out"])
            write_json(
                sources_file(self.path),
                {**settings, "files": site_files(written, bool(settings.get("pdf")))},
            )
        except (H2HTalkError, KeyError) as error:
            for name in FOLDER_KINDS[KIND].derived.split():  # half a site may be there
                remove_for_good(self.path / name)
            write_json(self.path / MARKER, {"items": []})
            yield f"its pages are deleted, and cannot be made again: {error}; run `h2htalk site` again"
        else:
            why = print_drawings(self.path) if settings.get("pdf") else ""
            problem = f"; no PDFs: {why}" if why else ""
            yield f"the folder is made again without them: publish it in place of the one that is out{problem}"


def sources_file(site: Path) -> Path:
    """The file beside a site, and not in it, that names the folders it is made of."""
    return site.with_name(f"{site.name}.sources.json")
