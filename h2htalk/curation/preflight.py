"""What can be seen before anything is removed, read or asked: that the stages to be made can be made at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from h2htalk.curation import simulate
from h2htalk.curation.asking import AskSettings, check_model
from h2htalk.curation.gather import require_sources
from h2htalk.curation.spec import CurateSpec
from h2htalk.curation.stages import require_finished
from h2htalk.curation.workspace import STAGES, Workspace


def preflight(names: Sequence[str], spec: CurateSpec, base: Path, workspace: Workspace, key: bytes) -> None:
    """See that stages can be made: their sources, settings, models, prices and keys, and the stage that each reads.

    Args:
        names: the stages, in their order; those that are finished and stay need nothing.
        spec: what they are made with.
        base: the folder of the specification.
        workspace: where; nothing in it is touched.
        key: its secret.

    Raises:
        ConfigError: one of them cannot be made; says what to change.
        MissingExtraError: a package is not installed.
        DataError: a split or a script is damaged.
    """
    order = list(STAGES)
    for name in names:
        if name == "gather":
            require_sources(spec, base)
            if spec.gather.simulate.dialogues:
                simulate.open_simulation(spec, base)
            continue
        before = order[order.index(name) - 1]
        if before not in names:
            require_finished(workspace.stage(before))
        import_module(f"h2htalk.curation.{name}").make_stage(spec, workspace, key)
    for settings in models_of(names, spec):
        check_model(settings)


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
