"""Count the files of the package in which a function is entered between a call and its written result.

python tools/trace_files.py [--tree TREE] [--list]

Runs an evaluation against the tree's own imitated provider, a judge, a calibration, a round, dedup and anonymisation,
under `sys.setprofile` in all threads. `--tree` names another checkout.
Functions that a module calls while it is imported are not counted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any


@dataclass(frozen=True)
class Window:
    """The first entry of a function, the next return of another (by version), and the number of files asked for."""

    name: str
    start: set[str]
    end: set[str]
    asked: int | None = None


WINDOWS = (
    Window("a paid live call", {"HostedChat.complete"}, {"StageCalls.settle"}, 6),
    Window("a corrected J, from ratings to cells", {"_corrections"}, {"write_sealed"}, 5),
    Window("a cell of Table 2, from scores to tables", {"summarize"}, {"write_tables"}, 8),
    Window(
        "a decision of a round, from annotations to decisions.jsonl", {"decide"}, {"write_jsonl"}, 7
    ),
    Window(
        "a phone number, from a dialogue to its surrogate",
        {"anonymize_dialogue"},
        {"anonymize_dialogue"},
        15,
    ),
    Window(
        "a near duplicate, from the band that it shares to its removal",
        {"band_pairs"},
        {"find_removals"},
        4,
    ),
    Window("an erased person, from the id to the last folder", {"erase"}, {"erase"}, 7),
    Window("all of calibrate", {"calibrate_judge"}, {"calibrate_judge"}),
    Window("all of evaluate", {"evaluate"}, {"evaluate"}, 60),
)


class Tracer:
    """Record the functions of a package that are entered, and the returns that end a window."""

    def __init__(self, package: Path, windows: Sequence[Window] = WINDOWS) -> None:
        self.prefix = f"{package}{os.sep}"
        self.ends = {name for window in windows for name in window.end}
        self.events: list[tuple[CodeType, bool]] = []
        self.importing = threading.local()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        path = frame.f_code.co_filename
        if event not in ("call", "return") or not (
            path.startswith(self.prefix) and path.endswith(".py")
        ):
            return
        depth = getattr(self.importing, "depth", 0)
        if code.co_name == "<module>":
            self.importing.depth = depth + (1 if event == "call" else -1)
        elif not depth and (event == "call" or code.co_qualname in self.ends):
            self.events.append((code, event == "return"))

    def files(self, window: Window) -> list[str]:
        names = [(code.co_qualname, ended) for code, ended in self.events]
        starts = (
            at for at, (name, ended) in enumerate(names) if name in window.start and not ended
        )
        first = next(starts, len(names))
        end = next(
            (at for at in range(first, len(names)) if names[at][1] and names[at][0] in window.end),
            None,
        )
        if end is None:
            sys.exit(
                f"{window.name}: {window.start} to {window.end} did not run; name today's functions in WINDOWS"
            )
        return list(
            dict.fromkeys(
                code.co_filename.removeprefix(self.prefix) for code, _ in self.events[first:end]
            )
        )


def run_everything(folder: Path, tree: Path, tracer: Tracer) -> None:
    """Evaluate a paid model, judge, calibrate and report; made-up items, provider and ratings."""
    tests = tree / "tests"
    sys.path[:0] = [
        str(tree),
        *(str(path) for path in tests.rglob("*") if path.is_dir()),
        str(tests),
    ]
    import h2htalk
    from h2htalk.benchmark.calibration.calibrate import calibrate_judge
    from h2htalk.chat.hosted.hosted_chat import HostedChat
    from support.doubles.providers import ProviderServer, price_file
    from support.judged_runs import scripted_judge, verdict
    from support.splits import write_split

    complete = HostedChat.complete
    run = folder / "run"
    # Requests are made before the window begins, not within it.
    HostedChat.complete = lambda self, requests, *rest: complete(self, list(requests), *rest)  # type: ignore
    (folder / "prices.toml").write_text(price_file())
    split = h2htalk.load_split(str(write_split(folder / "split", 44)))
    levels = [one.id for one in split.scenarios if one.subtask.startswith("itinerary_")]
    judge = scripted_judge(folder / "judge.jsonl", {}, verdict(3))
    ratings = [f"{item},{n % 5}" for n, item in enumerate(levels)]
    (folder / "labels.csv").write_text("\n".join(["id,rating", *ratings]) + "\n")
    places = {
        "split": str(folder / "split"),
        "out": str(run),
        "prices": str(folder / "prices.toml"),
    }
    spec = h2htalk.EvaluateSpec(
        model="openai:gpt-test", embedder="none", max_tokens=64, concurrency=1, **places
    )
    with ProviderServer() as server:
        os.environ.update(server.environment())
        threading.setprofile(tracer)
        sys.setprofile(tracer)
        h2htalk.evaluate(spec)
    h2htalk.judge_run(h2htalk.JudgeSpec(run=str(run), judges=(judge,)))
    many = calibrate_judge.__annotations__["human"] != "Path"  # commit c1ac616 takes several runs
    places = [run, folder / "labels.csv"]
    random_sample = (
        "random_sample" if "random_sample" in calibrate_judge.__annotations__ else "random"
    )
    calibrate_judge(*([place] if many else place for place in places), **{random_sample: True})
    report = sys.modules[
        h2htalk.load_run.__module__.replace("benchmark.run", "benchmark.score_run")
    ].report
    report(run)
    close_made_round(folder)
    remove_made_duplicate(folder)
    anonymize_phone_number(tracer)
    erase_made_person(folder)


def erase_made_person(folder: Path) -> None:
    """Erase one of two people from a workspace with a gathered stage."""
    from h2htalk.curation.erase import erase
    from support.curations import PERSONS, dialogue, gathered

    made = [dialogue(number, person=person) for number, person in enumerate(PERSONS, 1)]
    erase(gathered(folder / "workspace", made), next(iter(PERSONS)))


def remove_made_duplicate(folder: Path) -> None:
    """Deduplicate three dialogues, of which two are nearly the same."""
    from test_dedup import deduplicated, dialogue, edited, words

    texts = [words(place, 20) for place in range(4)]
    made = [dialogue("a", *texts[:2]), dialogue("b", edited(texts[0], 0.1), edited(texts[1], 0.1))]
    deduplicated(folder / "dedup", [*made, dialogue("c", *texts[2:])])


def close_made_round(folder: Path) -> None:
    """Open a round of experts on spreadsheets, answer it and close it."""
    from h2htalk.rounds.lifecycle import close_round
    from support.rounds import answer, begin, expert

    path = begin(folder / "rounds", overlap=2, people=3)
    answer(path, lambda name, _: expert("drop" if name == "en-item-2" else "keep"))
    close_round(path)


def anonymize_phone_number(tracer: Tracer) -> None:
    """Anonymise a dialogue twice; the first time, which loads word lists, is not traced."""
    from h2htalk.curation.anonymize.stage import anonymize_dialogue
    from h2htalk.data.scenario import Dialogue

    turns = [
        {"role": "user", "content": "call me at 415-555-2671"},
        {"role": "companion", "content": "ok"},
    ]
    record = {
        "id": "made-000001",
        "language": "en",
        "messages": turns,
        "provenance": {"source": "made"},
    }
    for profile in (None, tracer):
        sys.setprofile(profile)
        anonymize_dialogue(Dialogue.from_dict(record), b"key")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--tree", type=Path, default=Path(__file__).parents[1], help="the checkout that is measured"
    )
    parser.add_argument("--list", action="store_true", help="name the files")
    given = parser.parse_args()
    tracer = Tracer(given.tree.resolve() / "h2htalk")
    with tempfile.TemporaryDirectory() as folder:
        run_everything(Path(folder), given.tree.resolve(), tracer)
    for window in WINDOWS:
        files = tracer.files(window)
        print(f"{len(files):4}  {window.name}{f' (asked: {window.asked})' if window.asked else ''}")
        print("".join(f"        {name}\n" for name in files) if given.list else "", end="")


if __name__ == "__main__":
    main()
