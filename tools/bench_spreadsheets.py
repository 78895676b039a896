"""Measure opening a round of 400 items for 20 annotators as spreadsheets, and its status and closing by 8,000 answers.

    python tools/bench_spreadsheets.py

The results are in docs/measurements.md. Peak memory is that of the process that reads the answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from openpyxl import load_workbook

from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.settings import make_spec

ITEMS, ANNOTATORS, STATUSES = 400, 20, 10
TEXT = "I have been thinking about the evening class all week, and about what you said. " * 2
ANSWERS = {"subtask": "none", "keep": "Keep", "quality": "4: good", "harmful": "No"}


def write_inputs(folder: Path) -> None:
    lines = []
    for n in range(ITEMS):
        turns = [
            {"role": ("user", "companion")[k % 2], "content": f"{n}.{k} {TEXT}"} for k in range(5)
        ]
        record = {
            "id": f"i-{n:03}",
            "language": "en",
            "prompt": turns,
            "response": TEXT,
            "reference": TEXT,
        }
        lines.append(json.dumps(record | {"crisis": n % 12 == 0}) + "\n")
    (folder / "items.jsonl").write_text("".join(lines))
    names = "".join(f"v{n:02},en,yes\n" for n in range(ANNOTATORS))
    (folder / "people.csv").write_text("name,languages,crisis\n" + names)


def fill_in(path: Path) -> None:
    book = load_workbook(path)
    for sheet in book.worksheets:
        keys = [cell.value for cell in sheet[1]]
        for row in range(3, sheet.max_row + 1) if "skip" in keys else ():
            for key, value in ANSWERS.items():
                sheet.cell(row, keys.index(key) + 1).value = value
    book.save(path)


def peak_kib() -> int:
    """Return the peak memory of this process; `getrusage` would include the parent's. Linux only."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))


def read_back(folder: Path) -> None:
    before, times = peak_kib(), []
    for _ in range(STATUSES):
        start = time.process_time()
        status = round_status(folder)
        times.append(time.process_time() - start)
    print(
        f"status of {status.completed:,} answers, {len(status.mistakes)} mistakes: {times[0]:.1f} CPU s, the second "
        f"time {times[1]:.1f}, the last of {STATUSES} {times[-1]:.1f}; {peak_kib() >> 10} MiB ({before >> 10} before)"
    )
    start = time.process_time()
    close_round(folder)
    print(f"closed in {time.process_time() - start:.1f} CPU s; {peak_kib() >> 10} MiB")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        given = {"annotators": str(folder / "people.csv"), "overlap": ANNOTATORS}
        start = time.process_time()
        open_round(make_spec("crowd", str(folder / "items.jsonl"), given), folder / "round")
        print(f"opened in {time.process_time() - start:.1f} CPU s")
        for path in (folder / "round" / "spreadsheets").glob("*.xlsx"):
            fill_in(path)
        subprocess.run([sys.executable, __file__, str(folder / "round")], check=True)


if __name__ == "__main__":
    read_back(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
