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
from h2htalk.benchmark.statistics.averages import rate_interval
from h2htalk.benchmark.statistics.paired_tests import Difference, paired_result
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
    requests = [_request(f"reference/{item.id}", first, item) for item, first, _ in halves]
    canary = loaded.canary
    if canary:
        requests.append(_request("canary", canary[:-_KEY]))
    settings = call_settings(
        EvaluateSpec(model=model, split=split, out=str(out), prices=prices or None)
    )
    check_model(settings)
    with ModelCalls(settings, as_path(out, "out"), "contamination") as calls:
        replies = {
            name: reply.text for (name, _), reply in calls.ask(requests, "contamination").items()
        }
    references = list[float]()
    controls = list[float]()
    differences = []
    for number, (item, _, second) in enumerate(halves, 1):
        reply = replies[f"reference/{item.id}"]
        # The next half of another item in the same language; its own where there is none.
        turned = (*halves[number:], *halves[:number])
        control = next(half for scenario, _, half in turned if scenario.language == item.language)
        references.append(longest_run(reply, second, item.language))
        controls.append(longest_run(reply, control, item.language))
        # Words in common are no sign, since a reply is about what its user said; a long run is.
        excess = float(references[-1] >= VERBATIM) - float(controls[-1] >= VERBATIM)
        cluster = str(item.provenance.get("family", item.id))
        differences.append(Difference("", cluster, excess))
    p = paired_result(differences).p(above=True)
    key = _letters(canary[-_KEY:])[:VERBATIM]
    is_continued = len(canary) > _KEY and key in _letters(replies.get("canary", ""))
    rows = []
    for what, runs in (("its own second half", references), ("control: another item's", controls)):
        hits = sum(run >= VERBATIM for run in runs)
        share = format_interval(rate_interval(hits, len(runs)), ".1f", 100.0, frame="{} %")
        rows.append((what, fmean(runs), hits, share))
    answer = "no" if canary else "the split has none"
    if is_continued:
        answer = "yes"
    notes = (
        f"One-sided p of more such runs, sign-flip test by family: {format_p(p)}; n {len(halves)}.",
        f"Continues the canary: {answer}.",
    )
    header = ("compared with", "longest shared run", f"runs of {VERBATIM} or more", "share, 95 %")
    table = Table(f"Contamination of {loaded.name} {loaded.version}", header, rows, notes)
    return table, is_continued or p < _ALPHA


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def longest_run(text: str, compared: str, language: Language) -> float:
    """The length of the longest run of words (characters in Chinese) that two texts share, in any letter case."""
    a, b = (language_units(side.casefold(), language) for side in (text, compared))
    return float(SequenceMatcher(None, a, b, autojunk=False).find_longest_match().size)


def _halves(split: Split) -> Iterator[tuple[Scenario, str, str]]:
    """Yield references long enough in two halves of equal length, in an order of their ids' hashes."""

    def digest(scenario: Scenario) -> bytes:
        return hashlib.sha256(scenario.id.encode()).digest()

    for scenario in sorted(split.scenarios, key=digest):
        text = scenario.references[0] if scenario.references else ""
        units = language_units(text, scenario.language)
        if len(units) >= _LEAST:
            end = 0
            for unit in units[: len(units) // 2]:
                end = text.index(unit, end) + len(unit)
            yield scenario, text[:end], text[end:]


def _request(name: str, begun: str, scenario: Scenario | None = None) -> Request:
    language: Language = "en"
    lines = []
    if scenario:
        language = scenario.language
        lines = [turn.content for turn in scenario.turns if turn.role == "user"][-1:]
    messages = (Message("system", _TASK[language]), Message("user", "\n".join([*lines, begun])))
    return Request(
        name, messages, Sampling(0.0, 1.0, _TOKENS, request_seed(0, name, 0), 0), item=name
    )
