"""How a model that reads is called, from the options of a command."""

from __future__ import annotations

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.served_model import served_by
from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.curation.reading.call_options import ModelCallOptions


def reader_call_settings(model: str, options: ModelCallOptions, *, schema: bool) -> CallSettings:
    """How a reader is called. A reply that something else gave is asked for again: who reads is what is certified."""
    return CallSettings(
        model=model,
        max_cost=options.max_cost,
        batch=options.batch,
        prices=str(options.prices or ""),
        schema=schema,
        options=ChatOptions(engine_options=options.engine_options),
        served_by=served_by(model, options.engine_options),
        apart=True,
    )
