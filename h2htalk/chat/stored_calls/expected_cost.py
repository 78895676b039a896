"""What calls would cost, before any is made."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from h2htalk.chat.costs.prices import load_prices
from h2htalk.chat.costs.reservations import add, dollars_text
from h2htalk.chat.costs.token_estimate import prompt_tokens
from h2htalk.chat.engines import parse_model
from h2htalk.chat.protocol import Request
from h2htalk.chat.stored_calls.stored_calls import CallSettings
from h2htalk.data.responses import Usage


def describe_calls(
    settings: CallSettings, requests: Sequence[Request], scale: float = 1.0
) -> tuple[str, Decimal | None]:
    """The calls of a model and their cost, if every reply is as long as it may be."""
    engine, _ = parse_model(settings.model)
    sent, back = sum(map(prompt_tokens, requests)), sum(request.sampling.budget for request in requests)
    calls = (
        f"{settings.model}: at most {round(len(requests) * scale):,} calls, about {round(sent * scale):,} tokens sent, "
        f"at most {round(back * scale):,} tokens back"
    )
    if engine.local:
        return f"{calls}; costs nothing but time", Decimal(0)
    prices = load_prices(Path(settings.prices) if settings.prices else None)
    price = prices.find(settings.model) if engine.hosted else None
    each = [price.cost(Usage(prompt_tokens(r), r.sampling.budget), settings.batch) if price else None for r in requests]
    total = add(*each)
    if price is None or total is None:
        return f"{calls}; the price is unknown", None
    dollars = total * Decimal(scale)
    limit = "" if settings.max_cost is None or dollars <= Decimal(str(settings.max_cost)) else ", more than max_cost"
    return f"{calls}; about {dollars_text(dollars)} US dollars{limit} (prices of {price.date})", dollars
