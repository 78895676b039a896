"""What can be seen before anything is removed, read or asked: that the stages to be made can be made at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from h2htalk.curation.anonymize.ner_models import BUNDLED, name_finder
from h2htalk.curation.gather import simulation
from h2htalk.curation.gather.stage import require_sources
from h2htalk.curation.model_calls.stored_calls import AskSettings, check_model
from h2htalk.curation.pipeline import require_finished
from h2htalk.curation.review.gold_check import read_gold, require_reachable
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.errors import ConfigError
from h2htalk.text.escaping import printable


def preflight(names: Sequence[str], spec: CurateSpec, base: Path, workspace: Workspace, key: bytes) -> None:
    """See that stages can be made: their sources, settings, models, prices and keys, and the stage that each reads.

    Args:
        names: the stages, in their order; those that are finished and stay need nothing.
        spec: what they are made with.
        base: the folder of the specification.
        workspace: where; nothing in it is touched.
        key: its secret.

    Raises:
        ConfigError: one of them cannot be made, or a package is not installed; says what to change.
        DataError: a split or a script is damaged.
    """
    order = list(STAGES)
    for name in names:
        if name == "gather":
            require_sources(spec, base)
            if spec.gather.simulate.dialogues:
                simulation.open_simulation(spec, base)
            continue
        before = order[order.index(name) - 1]
        if before not in names:
            require_finished(workspace.stage(before))
        if name == "anonymize":
            _require_recogniser(spec)
        if name == "review" and spec.review.gold:
            require_reachable(read_gold(Path(spec.review.gold)))
        import_module(f"h2htalk.curation.{name}.stage").make_stage(spec, workspace, key)
    for settings in models_of(names, spec):
        check_model(settings)


def _require_recogniser(spec: CurateSpec) -> None:
    """See that names can be found in every language that comes in: its model is loaded, here and not in mid-work."""
    languages = {source.language for source in spec.gather.sources}
    if spec.gather.simulate.dialogues:
        languages |= set(spec.gather.simulate.languages)
    for language in sorted(languages):
        try:
            name_finder(spec.anonymize.ner, language)
        except ConfigError as error:
            told = str(error)
            for option in ("--ner ", "--spacy-model "):
                told = told.replace(option, "anonymize.ner ")
            raise ConfigError(
                f'anonymize.ner, for {language}: {told}; or write anonymize.ner = "{BUNDLED}", which is there'
            ) from error


def to_review(names: Sequence[str], spec: CurateSpec, workspace: Workspace) -> list[str]:
    """These stages without the review, where no model is named for it and none was begun.

    Said on standard error.
    """
    if spec.review.model or (workspace.stage("review").path / "stage.json").exists():
        return list(names)
    told = (
        "review: review.model names nobody, so this ends with what compose makes; for the last stage name a model, "
        'such as model = "anthropic:claude-sonnet-5" in [review], and start the same command again'
    )
    print(printable(told), file=sys.stderr, flush=True)
    return [name for name in names if name != "review"]


def models_of(names: Sequence[str], spec: CurateSpec) -> Iterator[AskSettings]:
    """The models that these stages will ask."""
    simulated, guard, compose, review = spec.gather.simulate, spec.safety.guard, spec.compose, spec.review
    if "gather" in names and simulated.dialogues:
        yield AskSettings(simulated.user, simulated.max_cost, prices=spec.prices)
        yield AskSettings(simulated.companion, simulated.max_cost, prices=spec.prices)
    if "safety" in names and guard:
        # Moderation costs nothing and has no price.
        limit = None if "moderation" in guard else spec.safety.max_cost
        yield AskSettings(guard, limit, prices=spec.prices)
    if "compose" in names and compose.model:
        yield AskSettings(compose.model, compose.max_cost, compose.batch, spec.prices)
    if "review" in names:
        yield AskSettings(review.model, review.max_cost, review.batch, spec.prices)
