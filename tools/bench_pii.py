"""Throughput of our recognisers of personal data beside Presidio's engine, on the same texts and entity types.

    H2HTALK_DATA=... python tools/bench_pii.py [--texts 2000] [--rounds 5] [--language en]

Presidio's engine has the recognisers of patterns that it ships for these types, over spaCy's tokenizer alone: it looks
for no names, ours does. For Chinese it ships patterns for e-mail, URL, IP, card and telephone. Rounds take turns, so
that a busy machine slows both; medians count.
Then one process of ours against two, each with its own share of the texts, recognisers loaded beforehand.
"""

from __future__ import annotations

import argparse
import csv
import json
import logging
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from h2htalk.detect.personal.engine.analyzer import find_spans
from h2htalk.parallel import ProcessPool

# What Presidio has of our types, by its names.
EVERYWHERE = ["EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "URL", "IP_ADDRESS"]
ENTITIES = {"en": [*EVERYWHERE, "US_SSN", "UK_NHS", "US_BANK_NUMBER"], "zh": EVERYWHERE}


def texts_of(folder: Path, language: str, limit: int) -> list[str]:
    """Messages of the public conversations, and of the labelled sentences, in turn."""
    said: list[str] = []
    if language == "en":
        with (folder / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            said += [
                part
                for row in rows
                for part in (row["questionText"] or "").split(". ")
                if part.strip()
            ]
        said += [
            item["full_text"]
            for item in json.loads((folder / "pii/presidio_generated_small.json").read_text())
        ]
    else:
        with (folder / "raw/smilechat_zh.jsonl").open(encoding="utf-8") as file:
            said += [m["content"] for line in file for m in json.loads(line)["messages"]]
    bank = json.loads((folder / f"raw/memorybank_{language}.json").read_text(encoding="utf-8"))
    turns = [turn for user in bank.values() for day in user["history"].values() for turn in day]
    said += [turn[key] for turn in turns for key in ("query", "response")]
    step = max(len(said) // limit, 1)
    return list(islice(said[::step], limit))


def presidio(language: str) -> Callable[[Sequence[str]], int]:
    """Presidio's engine with its own recognisers of patterns."""
    import spacy
    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer import predefined_recognizers as shipped
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    # Its e-mail recogniser would fetch a list of domains; the one that comes with the package does.
    tldextract.extract = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
    logging.getLogger("presidio-analyzer").setLevel(logging.ERROR)
    nlp = SpacyNlpEngine([{"lang_code": language, "model_name": "blank"}])
    nlp.nlp = {language: spacy.blank(language)}
    english = ["UsSsnRecognizer", "NhsRecognizer", "UsBankRecognizer"] if language == "en" else []
    kinds = (
        *(f"{kind}Recognizer" for kind in ("Email", "Phone", "CreditCard", "Iban", "Url", "Ip")),
        *english,
    )
    own: list[Any] = [getattr(shipped, kind)(supported_language=language) for kind in kinds]
    registry = RecognizerRegistry(own, supported_languages=[language])
    engine = AnalyzerEngine(registry=registry, nlp_engine=nlp, supported_languages=[language])

    def run(texts: Sequence[str]) -> int:
        return sum(
            len(engine.analyze(text, language=language, entities=ENTITIES[language]))
            for text in texts
        )

    return run


def ours(texts: Sequence[str], language: str) -> int:
    return sum(len(find_spans(text, language)) for text in texts)


def wall(processes: int, texts: Sequence[str], language: str, rounds: int) -> float:
    """Median seconds in which so many processes read all the texts, once they are warm."""
    shares = [tuple(texts[at::processes]) for at in range(processes)]
    taken = []
    with ProcessPool(processes) as pool:
        for _ in range(rounds + 1):  # the first loads
            start = time.perf_counter()
            for future in [pool.submit(ours, each, language) for each in shares]:
                future.result()
            taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--language", choices=("en", "zh"), default=None)
    args = parser.parse_args()
    for language in [args.language] if args.language else ["en", "zh"]:
        texts = texts_of(Path(os.environ["H2HTALK_DATA"]), language, args.texts)
        print(
            f"# {language}: {len(texts)} texts of {sum(map(len, texts)) / len(texts):.0f} characters"
        )
        runs = {"ours": partial(ours, language=language), "presidio": presidio(language)}
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(args.rounds + 1):  # the first loads
            for name, run in runs.items():
                start = time.process_time()
                run(texts if number else texts[:200])
                taken[name] += [time.process_time() - start] if number else []
        medians = {name: statistics.median(times) for name, times in taken.items()}
        for name, median in medians.items():
            print(
                f"{name:9} {len(texts) / median:8.0f} texts a CPU second, median of {args.rounds}"
            )
        print(f"ours is {medians['presidio'] / medians['ours']:.2f} times as fast")
        one, two = (wall(n, texts * 8, language, args.rounds) for n in (1, 2))
        print(f"2 processes against 1: {one / two:.2f} times (wall clock {one:.2f} s, {two:.2f} s)")


if __name__ == "__main__":
    main()
