"""Parameters that a model's server refuses while data are made: named once, with the setting to write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.stages import (
    ComposeSettings,
    GatherSettings,
    ReviewSettings,
    SimulateSettings,
)
from h2htalk.curation.workspace import Workspace
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError
from support.curations import dialogue, finished, run_one
from support.doubles.loopback import Answer, LoopbackServer

REFUSED = {
    "error": {
        "message": "Unsupported value: 'temperature' does not support 1",
        "param": "temperature",
    }
}


def refusing(bodies: list[dict[str, Any]]) -> Callable[[dict[str, Any], int], str | Answer]:
    def reply(body: dict[str, Any], _: int) -> str | Answer:
        bodies.append(body)
        return Answer(REFUSED, 400) if "temperature" in body else "Long day, and I am tired."

    return reply


def simulate(folder: Path, server: str, **more: Any) -> None:
    settings = SimulateSettings(
        user=server, companion=server, dialogues=1, turns=2, languages=("en",), **more
    )
    run_one("gather", Workspace(folder / "work"), GatherSettings(simulate=settings))


def compose(folder: Path, server: str, **more: Any) -> None:
    run_one(
        "compose",
        finished(folder / "work", "dedup", [dialogue(1)]),
        ComposeSettings(model=server, **more),
    )


def review(folder: Path, server: str, **more: Any) -> None:
    (chosen,) = load_split("mini@1").select("en", ["dialogue_base"]).scenarios[:1]
    made = [Candidate(chosen, (Reference(chosen.reference),)).to_dict()]
    run_one(
        "review", finished(folder / "work", "compose", made), ReviewSettings(model=server, **more)
    )


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (simulate, "gather.simulate.engine_options"),
        (compose, "compose.engine_options"),
        (review, "review.engine_options"),
    ],
)
def test_a_refused_parameter_is_named_with_the_setting_of_its_stage(
    make: Callable[..., None], setting: str, tmp_path: Path
) -> None:
    """The advice was an option of another command, and no setting of a curation could leave the parameter out."""
    bodies: list[dict[str, Any]] = []
    with LoopbackServer(reply=refusing(bodies)) as server:
        with pytest.raises(ConfigError, match=f"{setting} temperature=none") as refused:
            make(tmp_path / "refused", server.spec)
        assert "--model-sampling" not in str(refused.value)  # `curate` has no such flag
        assert "temperature" in bodies[-1]
        make(tmp_path / "taken", server.spec, engine_options={"temperature": "none"})
        assert "temperature" not in bodies[-1]


def test_simulated_replies_with_an_unknown_mark_are_warned_of_with_the_setting_of_the_stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reasoning went into the dialogues that are curated, and only `evaluate` and studies said so."""
    with LoopbackServer(reply=lambda *_: "<plan>Ask.</plan>Long day, and I am tired.") as server:
        simulate(tmp_path, server.spec)
        assert not [line for line in capsys.readouterr().err.splitlines() if "begin with" in line]
        settings = SimulateSettings(
            user=server.spec, companion=server.spec, dialogues=2, turns=2, languages=("en",)
        )
        run_one("gather", Workspace(tmp_path / "more"), GatherSettings(simulate=settings))
    (warning,) = (line for line in capsys.readouterr().err.splitlines() if "begin with" in line)
    assert "4 of 4 replies begin with <plan>" in warning
    assert "it is read as part of the reply; " in warning  # nothing is scored here
    assert "gather.simulate.engine_options 'think=<plan>,</plan>'" in warning
    assert "--from-stage gather" in warning


@pytest.mark.parametrize("make", [compose, review])
def test_a_stage_asks_in_every_other_form_one_after_the_other(
    make: Callable[..., None], tmp_path: Path
) -> None:
    """A stage whose server has no structured output asked in `json_object` again, and stopped."""
    forms: list[str] = []

    def reply(body: dict[str, Any], _: int) -> str | Answer:
        form = body.get("response_format", {"type": "none"})["type"]
        forms.append(form)
        if form == "none":
            return json.dumps({"evidence": "Seen.", "proposals": []})
        return Answer({"error": {"message": "This response_format type is unavailable now"}}, 400)

    with LoopbackServer(reply=reply) as server:
        make(tmp_path, server.spec)
    assert list(dict.fromkeys(forms)) == ["json_schema", "json_object", "none"]


def test_engine_options_are_signed_and_a_workspace_without_them_stays_as_it_was(
    tmp_path: Path,
) -> None:
    with LoopbackServer(reply=refusing([])) as server:
        compose(tmp_path, server.spec, engine_options={"temperature": "none"})
    stored = json.dumps(Workspace(tmp_path / "work").stage("compose").settings())
    assert '"engine_options": {"temperature": "none"}' in stored
    with LoopbackServer(reply="Long day.") as server:
        compose(tmp_path / "plain", server.spec)
    assert "engine_options" not in json.dumps(
        Workspace(tmp_path / "plain" / "work").stage("compose").settings()
    )
