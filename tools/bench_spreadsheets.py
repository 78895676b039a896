"""Open a round of 400 items for 20 annotators as spreadsheets, fill them in, and read 24,000 answers back.

    python tools/bench_spreadsheets.py [xlsx | csv]

The figures stand in docs/measurements.md. Peak memory is that of the reading process.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from openpyxl import load_workbook

from h2htalk.rounds.opening import open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.spreadsheets.platform import SpreadsheetPlatform

ITEMS, ANNOTATORS = 400, 20
SAID = "I have been thinking about the evening class all week, and about what you said. " * 2
TYPED = {"subtask": "none", "keep": "Keep", "quality": "4: good"}


def write_inputs(folder: Path) -> None:
    lines = []
    for n in range(ITEMS):
        turns = [{"role": ("user", "companion")[k % 2], "content": f"{n}.{k} {SAID}"} for k in range(5)]
        record = {"id": f"i-{n:03}", "language": "en", "prompt": turns, "response": SAID, "reference": SAID}
        lines.append(json.dumps(record | {"crisis": n % 12 == 0}) + "\n")
    (folder / "items.jsonl").write_text("".join(lines))
    names = "".join(f"v{n:02},en,yes\n" for n in range(ANNOTATORS))
    (folder / "people.csv").write_text("name,languages,crisis\n" + names)


def fill_in(path: Path) -> None:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row | TYPED for row in csv.DictReader(file)]
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return
    book = load_workbook(path)
    for sheet in book.worksheets:
        keys = [cell.value for cell in sheet[1]]
        for row in range(3, sheet.max_row + 1) if "row" in keys else ():
            for key, value in TYPED.items():
                sheet.cell(row, keys.index(key) + 1).value = value
    book.save(path)


def peak_kib() -> int:
    """Peak memory of this process. `getrusage` would tell that of the parent, from before the exec. Linux only."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))


def read_back(folder: Path) -> None:
    before, start = peak_kib(), time.process_time()
    pulled = SpreadsheetPlatform().collect(RoundFolder(folder))
    print(
        f"{len(pulled.annotations):,} answers read, {len(pulled.mistakes)} mistakes: "
        f"{time.process_time() - start:.1f} CPU s, {peak_kib() >> 10} MiB ({before >> 10} before)"
    )


def main(form: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        given = {"annotators": str(folder / "people.csv"), "overlap": ANNOTATORS, "format": form}
        start = time.process_time()
        open_round(make_spec("crowd", str(folder / "items.jsonl"), given), folder / "round")
        print(f"{form}: opened in {time.process_time() - start:.1f} CPU s")
        for path in (folder / "round" / "spreadsheets").glob(f"*.{form}"):
            fill_in(path)
        subprocess.run([sys.executable, __file__, str(folder / "round")], check=True)


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "xlsx"
    main(asked) if asked in ("xlsx", "csv") else read_back(Path(asked))
