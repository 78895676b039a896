"""Which version and part of a split a bundle holds, and which of its answers no figure counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from h2htalk.data.editions import describe_later, earlier_edition
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.splits import BUNDLED_FOLDER, Split, is_bundled, load_split, split_header
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, counted, listed


def describe_part(full_split: Split, bundle_split: Split) -> tuple[str, bool]:
    """Say which items of a split a bundle holds, and whether the options of `evaluate` take just these.

    A part that no choice of --language, --subtask and --limit takes may have been picked by its scores.

    Args:
        full_split: the split that was asked.
        bundle_split: the same split with the items of the bundle alone.

    Returns:
        A text as `22 of 44 items of split mini: those of --language en`, and True where the part is one of these.
    """
    total = counted(len(full_split.scenarios), "item")
    if len(bundle_split.scenarios) == len(full_split.scenarios):
        return f"all {total} of split {full_split.name}", True
    part = f"{len(bundle_split.scenarios):,} of {total} of split {full_split.name}"
    options = _options_that_take(full_split, bundle_split)
    if options is None:
        return f"{part}; no --language, --subtask or --limit takes just these", False
    return f"{part}: those of {options}", True


def load_edition(name: str, version: str) -> tuple[str, Split]:
    """Load the split that was named. Of a bundled split, the version of the bundle is loaded where it is kept."""
    full_split = load_split(name)
    if not is_bundled(name) or version == full_split.version:
        return name, full_split
    edition = earlier_edition(full_split.name, version)
    if edition is None:
        return name, full_split
    return edition, load_split(edition)


def describe_edition(name: str, full_split: Split, bundle_split: Split) -> str:
    """Say of which earlier version of a bundled split the items are; an empty text for the newest, and for others."""
    if not is_bundled(name) or not is_bundled(full_split.name):
        return ""
    newest = split_header(BUNDLED_FOLDER / full_split.name).version
    if full_split.version == newest:
        return ""
    items = set()
    for scenario in bundle_split.scenarios:
        # The turns of a case have the ids CASE/sN.tM.
        item, _, _ = scenario.id.partition("/")
        items.add(item)
    return describe_later(full_split.name, full_split.version, newest, items)


def _options_that_take(full_split: Split, bundle_split: Split) -> str | None:
    """The options of `evaluate` that take just these items of a split, or None."""
    ids = {scenario.id for scenario in bundle_split.scenarios}
    present_languages = {scenario.language for scenario in bundle_split.scenarios}
    present_subtasks = {scenario.subtask for scenario in bundle_split.scenarios}
    languages = [None, *[language for language in LANGUAGES if present_languages == {language}]]
    subtasks: list[list[str]] = [[], [name for name in SUBTASKS if name in present_subtasks]]
    limits = (None, len(ids))
    for limit in limits:
        for language in languages:
            for chosen in subtasks:
                try:
                    selected = full_split.select(language, chosen, limit)
                except ConfigError:
                    # Nothing is left, or the split has no subtasks.
                    continue
                if {scenario.id for scenario in selected.scenarios} == ids:
                    return _as_options(language, chosen, limit)
    return None


def _as_options(language: str | None, subtasks: Iterable[str], limit: int | None) -> str:
    words = [] if language is None else [f"--language {language}"]
    words += [f"--subtask {name}" for name in subtasks]
    if limit is not None:
        words.append(f"--limit {limit}")
    return " ".join(words)


def describe_unscored(reasons: Iterable[str | None]) -> str:
    """Say how many answers have no score, by reason, or nothing where each has one.

    Args:
        reasons: of each sample why it has no score, or None.
    """
    reasons_of_all = list(reasons)
    counts = Counter(reason for reason in reasons_of_all if reason is not None)
    if not counts:
        return ""
    causes = listed([f"{reason} {count:,}" for reason, count in counts.most_common()], 5)
    share = f"{counts.total():,} of {counted(len(reasons_of_all), 'answer')}"
    return f"{share} without a score ({causes}): the figures leave them out, and no bundle can show why there is none"
