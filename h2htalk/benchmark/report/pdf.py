"""Print a page or a drawing as PDF by Chromium, where one is present."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from h2htalk.data.files import replacing
from h2htalk.errors import DataError, shorten

SECONDS = 120.0
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_NONE = subprocess.DEVNULL


def print_pdf(page: Path, pdf: Path) -> str:
    """Write the PDF of a page or an SVG file; return why there is none, empty where there is one."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        return f"none of {', '.join(BROWSERS)} is here"
    try:
        with replacing(pdf) as new:
            command = [
                browser,
                *OPTIONS,
                f"--print-to-pdf={new.resolve()}",
                page.resolve().as_uri(),
            ]
            # Without pipes, which its children would keep open, and in a group of its own, which ends with them.
            with subprocess.Popen(
                command, stdin=_NONE, stdout=_NONE, stderr=_NONE, start_new_session=True
            ) as run:
                try:
                    code = run.wait(SECONDS)
                finally:
                    with suppress(ProcessLookupError):
                        os.killpg(run.pid, signal.SIGKILL)
            if code:
                raise subprocess.CalledProcessError(code, browser)
    except (DataError, OSError, subprocess.SubprocessError) as error:
        return f"{browser} failed ({shorten(' '.join(str(error).split()), 200)})"
    return ""


def page_numbers(pdf: Path) -> dict[str, int]:
    """The page, from 1, of each place that links of a PDF by Chromium lead to; empty for another file."""
    written = pdf.read_bytes()
    pages = {
        number: k
        for k, number in enumerate(re.findall(rb"\n(\d+) 0 obj\n<</Type /Page\n", written), 1)
    }
    places = re.findall(rb"/([\w-]+) \[(\d+) 0 R /XYZ", written)
    return {name.decode(): pages[number] for name, number in places if number in pages}
