"""Dedup: recall and precision on planted near duplicates by share edited, and time and memory of many dialogues.

python tools/bench_dedup.py [--count 700] [--data DIR] [--shares 0 0.05 0.15]
python tools/bench_dedup.py --many 1000000 [--processes 2]

`--data` (or H2HTALK_DATA): public dialogues to cut unrelated texts from; else generated sentences.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import dedup_texts as texts

from h2htalk.curation.dedup.stage import make_stage
from h2htalk.curation.run import run_stage
from h2htalk.curation.stage_folder import Kept, StageFolder, part_name
from h2htalk.curation.stages import CurateSpec
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_json
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import Dialogue, Turn

SHARES = (0.0, 0.01, 0.02, 0.05, 0.10, 0.15, 0.20, 0.25, 0.30)


def deduplicate(
    dialogues: Iterable[Dialogue], folder: Path, processes: int, part: int = 250
) -> tuple[Workspace, StageFolder]:
    """Run the stage on dialogues, as if safety had kept them."""
    workspace = Workspace(folder)
    write_dialogues(dialogues, workspace, part)
    return workspace, run_dedup(workspace, processes)


def write_dialogues(dialogues: Iterable[Dialogue], workspace: Workspace, part: int) -> None:
    before = workspace.stage("safety")
    items = iter(dialogues)
    number = 0
    while records := [dialogue.to_dict() for dialogue in islice(items, part)]:
        before.write(part_name(number), [[Kept(record)] for record in records], "safety")
        number += 1
    write_json(before.path / "stage.json", {"fingerprint": "bench"})
    write_json(before.path / "summary.json", {})


def run_dedup(workspace: Workspace, processes: int | None = None) -> StageFolder:
    stage = make_stage(
        CurateSpec(str(workspace.path), processes=processes), workspace, workspace.open_key()
    )
    run_stage(stage, workspace, processes=processes)
    return workspace.stage("dedup")


def curve(options: argparse.Namespace) -> None:
    """Print recall and precision by share, kind of edit and language; and recall by length."""
    found: dict[float, Counter[str]] = {}
    print("share  kind        language  recall  precision  wrong")
    for share in options.shares:
        for kind in texts.KINDS if share else ("characters",):
            for row in measure(share, kind, options.count, options.every, options.data):
                found.setdefault(share, Counter()).update(row.lengths)
                wrong = dict(row.wrong) or ""
                print(
                    f"{share:5.2f}  {kind:10}  {row.language:8}  {row.recall:6.4f}  {row.precision:9.4f}  {wrong}"
                )
    print("\nrecall by share and characters of a side, all kinds of edit")
    for share, counts in found.items():
        sizes = (
            f"{n}: {counts[f'hit {n:04}'] / max(counts[f'all {n:04}'], 1):.3f}"
            for n in texts.LENGTHS
        )
        print(f"{share:5.2f}  " + "  ".join(sizes))


@dataclass(frozen=True, slots=True)
class Row:
    """What was found in one language: shares (0 to 1), what was taken for what, copies planted and hit by length."""

    language: str
    recall: float
    precision: float
    wrong: Counter[str]
    lengths: Counter[str]


def measure(share: float, kind: str, count: int, every: int, data: Path | None) -> list[Row]:
    """One run: unrelated dialogues, a copy of every `every`-th with a share edited, and look-alikes."""
    rng = random.Random(f"{share} {kind}")
    dialogues: list[Dialogue] = []
    for language in LANGUAGES:
        pool = texts.read_pool(data, language, rng)
        bases = texts.unrelated(pool, count, language, "base")
        dialogues += bases + texts.lookalikes(pool, count // 10, language, rng)
        dialogues += [texts.copy_of(dialogue, share, kind, rng) for dialogue in bases[::every]]
    rng.shuffle(dialogues)
    with tempfile.TemporaryDirectory() as folder:
        _, stage = deduplicate(dialogues, Path(folder), 1)
        gone = [(str(r["id"]), str(r["evidence"]["of"])) for r in stage.records("rejected")]
    return [_row(language, dialogues, gone) for language in LANGUAGES]


def _row(language: str, dialogues: list[Dialogue], gone: list[tuple[str, str]]) -> Row:
    planted = {
        _base(d.id) for d in dialogues if d.id.startswith("copy-") and d.language == language
    }
    ours = [(_base(lost), _base(of)) for lost, of in gone if f"-{language}-" in lost]
    wrong = [(lost, of) for lost, of in ours if lost != of]
    hit = planted & {lost for lost, of in ours if lost == of}
    lengths = Counter(f"all {name.split('-')[2]}" for name in planted)
    lengths.update(f"hit {name.split('-')[2]}" for name in hit)
    examples = Counter(f"{lost.split('-')[0]} for {of.split('-')[0]}" for lost, of in wrong)
    return Row(
        language, len(hit) / len(planted), 1 - len(wrong) / max(len(ours), 1), examples, lengths
    )


def _base(name: str) -> str:
    return name.removeprefix("copy-")


def many(options: argparse.Namespace) -> None:
    """Generated short dialogues, one in ten a copy with 5 % of its characters edited."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        _, stage = deduplicate(
            short_dialogues(options.many), Path(folder), options.processes, part=2000
        )
        seconds = time.monotonic() - start
        print(asdict(stage.total()))
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    print(f"{options.many:,} dialogues, writing them included: {seconds:.0f} s, {cpu:.0f} CPU s")
    print(
        f"peak memory: {own.ru_maxrss >> 10} MiB, of the largest worker {children.ru_maxrss >> 10} MiB"
    )


def short_dialogues(count: int) -> Iterator[Dialogue]:
    rng = random.Random(0)
    earlier: dict[str, Dialogue] = {}
    for number in range(count):
        language = LANGUAGES[number % 2]
        if number % 20 in (18, 19) and language in earlier:
            yield texts.copy_of(earlier.pop(language), 0.05, "characters", rng)
            continue
        turns = tuple(
            Turn(role, texts.short_text(language, rng))
            for _ in range(rng.randint(1, 2))
            for role in ("user", "companion")
        )
        dialogue = Dialogue(f"base-{language}-{number:07}", language, turns)
        if number % 20 < 2:
            earlier[language] = dialogue
        yield dialogue


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    data = os.environ.get("H2HTALK_DATA")
    parser.add_argument("--count", type=int, default=350, help="unrelated dialogues a language")
    parser.add_argument("--every", type=int, default=2, help="every so many gets a copy")
    parser.add_argument("--data", type=Path, default=Path(data) if data else None)
    parser.add_argument("--shares", type=float, nargs="+", default=list(SHARES))
    parser.add_argument(
        "--many", type=int, default=0, help="generated dialogues; time and memory only"
    )
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    many(options) if options.many else curve(options)


if __name__ == "__main__":
    main()
