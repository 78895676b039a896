"""Whether a model knows a split by heart: it continues the canary, and halves of references, better than a control.

A model is shown what a user said and the first half of the reply to it, and is asked how the reply goes on. What it
writes is held against the true second half and, as control, against that of another item: the longest run of words
(characters in Chinese) that they share. A model that has not seen the split shares short runs with both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from difflib import SequenceMatcher
from statistics import fmean

from h2htalk.benchmark.estimate_text import format_interval, format_p
from h2htalk.benchmark.evaluate import call_settings
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.statistics.averages import Difference, paired_result, rate_interval
from h2htalk.chat.engines import require_model
from h2htalk.chat.protocol import Message, Request, Sampling, request_seed
from h2htalk.chat.store.model_calls import ModelCalls, check_model
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Scenario
from h2htalk.data.settings import AnyPath, as_path
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError
from h2htalk.text.counting import language_units
from h2htalk.text.tables import Table

ITEMS = 50
VERBATIM = 8  # words or characters in a row that a reply of one's own does not share with another by chance
_LEAST = 2 * VERBATIM  # of a reference
_ALPHA, _TOKENS, _KEY = 0.05, 128, 24  # of the canary, so many last characters are to be continued
_TASK: dict[Language, str] = {
    "en": "Continue the text exactly as it goes on in the place where you have read it. Write only the continuation.",
    "zh": "按你读到过的原文，一字不差地接着写下去。只写接下去的部分。",
}


def check_contamination(
    model: str, split: str, out: AnyPath, prices: str = ""
) -> tuple[Table, bool]:
    """Ask a model to continue a split's canary and 50 halves of its references; return the table, and whether it
    continues them better than the control. The same call again asks only for what is missing.

    Raises ConfigError for a split without enough references, IncompleteError where calls failed.
    """
    require_model(model)
    loaded = load_split(split)
    halves = list(_halves(loaded))[:ITEMS]
    if len(halves) < 2:
        raise ConfigError(
            f"split {loaded.name}: needs two references of {_LEAST} words or characters"
        )
    asked = [_request(f"reference/{one.id}", first, one) for one, first, _ in halves]
    canary = loaded.canary
    asked += [_request("canary", canary[:-_KEY])] if canary else []
    settings = call_settings(
        EvaluateSpec(model=model, split=split, out=str(out), prices=prices or None)
    )
    check_model(settings)
    with ModelCalls(settings, as_path(out, "out"), "contamination") as calls:
        replies = {
            name: reply.text for (name, _), reply in calls.ask(asked, "contamination").items()
        }
    own = list[float]()
    control = list[float]()
    for at, (one, _, second) in enumerate(halves):
        reply = replies[f"reference/{one.id}"]
        # The next half of another item in the same language; its own where there is none.
        turned = (*halves[at + 1 :], *halves[: at + 1])
        other = next(half for scenario, _, half in turned if scenario.language == one.language)
        own.append(longest_run(reply, second, one.language))
        control.append(longest_run(reply, other, one.language))
    clusters = (str(one.provenance.get("family", one.id)) for one, *_ in halves)
    # Words in common are no sign, since a reply is about what its user said; a long run is.
    differ = (
        float(a >= VERBATIM) - float(b >= VERBATIM) for a, b in zip(own, control, strict=True)
    )
    found = paired_result([Difference("", *row) for row in zip(clusters, differ, strict=True)])
    p = found.p(above=True)
    said, key = (
        "".join(filter(str.isalnum, one.casefold()))
        for one in (replies.get("canary", ""), canary[-_KEY:])
    )
    known = len(canary) > _KEY and key[:VERBATIM] in said
    rows = []
    for what, runs in (("its own second half", own), ("control: another item's", control)):
        hits = sum(run >= VERBATIM for run in runs)
        share = format_interval(rate_interval(hits, len(runs)), ".1f", 100.0, frame="{} %")
        rows.append((what, fmean(runs), hits, share))
    verdict = (
        f"Continues the canary: {'yes' if known else 'no' if canary else 'the split has none'}."
    )
    notes = (
        f"One-sided p of more such runs, sign-flip test by family: {format_p(p)}; n {len(halves)}.",
        verdict,
    )
    header = ("compared with", "longest shared run", f"runs of {VERBATIM} or more", "share, 95 %")
    return Table(
        f"Contamination of {loaded.name} {loaded.version}", header, rows, notes
    ), known or p < _ALPHA


def longest_run(text: str, other: str, language: Language) -> float:
    """The length of the longest run of words (characters in Chinese) that two texts share, in any letter case."""
    a, b = (language_units(one.casefold(), language) for one in (text, other))
    return float(SequenceMatcher(None, a, b, autojunk=False).find_longest_match().size)


def _halves(split: Split) -> Iterator[tuple[Scenario, str, str]]:
    """Yield references long enough in two halves of equal length, in an order of their ids' hashes."""
    for one in sorted(split.scenarios, key=lambda one: hashlib.sha256(one.id.encode()).digest()):
        text = one.references[0] if one.references else ""
        parts = language_units(text, one.language)
        if len(parts) >= _LEAST:
            at = 0
            for part in parts[: len(parts) // 2]:
                at = text.index(part, at) + len(part)
            yield one, text[:at], text[at:]


def _request(name: str, begun: str, scenario: Scenario | None = None) -> Request:
    language = scenario.language if scenario else "en"
    said = [turn.content for turn in scenario.turns if turn.role == "user"][-1:] if scenario else []
    messages = (Message("system", _TASK[language]), Message("user", "\n".join([*said, begun])))
    return Request(
        name, messages, Sampling(0.0, 1.0, _TOKENS, request_seed(0, name, 0), 0), item=name
    )
