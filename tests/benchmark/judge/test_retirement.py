"""When judges are switched off, and who is warned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from email.message import Message

import pytest
from http_server import Answer, HttpServer

from h2htalk.benchmark.judge.retirement import WARN_DAYS, Retirement, bundled_retirements, retirement_of
from h2htalk.chat.costs.prices import load_prices

DAY = date(2027, 1, 14)


def test_gpt_4o_leaves_its_api_on_the_day_that_the_bundled_list_says() -> None:
    assert bundled_retirements()["openai:gpt-4o"].day == DAY
    assert "read 2026-11-22" in bundled_retirements()["openai:gpt-4o"].source


@pytest.mark.parametrize(("left", "said"), [(WARN_DAYS + 1, ""), (WARN_DAYS, "in 180 days"), (0, "on 2027-01-14 (")])
def test_a_day_that_is_near_or_past_is_warned_of(left: int, said: str) -> None:
    warning = Retirement(DAY, "a list").warning("openai:gpt-4o", DAY - timedelta(days=left))
    assert said in warning
    assert bool(warning) == bool(said)


def test_listed_models_are_named_as_prices_name_them() -> None:
    engines = {name.partition(":")[0] for name in load_prices().models}
    assert {name.partition(":")[0] for name in bundled_retirements()} <= engines


@dataclass
class ModelList(HttpServer):
    """A provider's list of models: what it says about each."""

    models: dict[str, dict[str, object]] = field(default_factory=dict)

    def serve(self, method: str, target: str, headers: Message, read: Callable[[], bytes]) -> Answer:
        name = target.rpartition("/")[2]
        if name not in self.models:
            return Answer.json({"error": {"message": "no such model", "type": "not_found_error"}}, 404)
        return Answer.json({"id": name, "object": "model", "created": 1, "owned_by": "x", **self.models[name]})


@pytest.mark.parametrize(
    ("model", "listed", "day"),
    [
        ("openai:gpt-4o", {"shutdown_date": "2027-03-01"}, date(2027, 3, 1)),
        ("openai:gpt-4o", {}, DAY),  # the list says nothing, so the bundled one counts
        ("openai:gpt-4o", None, DAY),  # a server without a list
        ("openai:my-own", {}, None),
        ("anthropic:claude-x", {"retires_at": "2027-02-03T00:00:00Z", "lifecycle": "active"}, date(2027, 2, 3)),
    ],
)
def test_the_provider_s_own_list_comes_first(
    model: str, listed: dict[str, object] | None, day: date | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = {} if listed is None else {model.partition(":")[2]: listed}
    with ModelList(models=models) as server:
        for name in ("OPENAI", "ANTHROPIC"):
            monkeypatch.setenv(f"{name}_BASE_URL", server.url)
            monkeypatch.setenv(f"{name}_API_KEY", "sk-none-at-all")
        found = retirement_of(model)
    assert (None if found is None else found.day) == day


def test_a_model_on_this_machine_never_retires() -> None:
    assert retirement_of("embedded") is None
