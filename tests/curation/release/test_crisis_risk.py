"""Items about a crisis that no tag announces: people's answers tag them, and an owner has one place to say it.

An owner's best items about a crisis were refused, as a panel called them one and no tag said so.
"""

from __future__ import annotations

from pathlib import Path

from h2htalk.curation.release.build import accept_items, open_spec
from h2htalk.data.scenario import Scenario
from support.command_line import h2htalk_here
from support.release_rounds import ordinary, voted, write_spec
from support.rounds import crowd, expert

FIRST, SECOND, *_ = (scenario.id for scenario in ordinary())


def asked(folder: Path, crowd_found: dict[str, str], experts_found: dict[str, str]) -> None:
    """Closed rounds that asked about crises; what nobody found is answered with no."""
    voted(
        folder,
        ask=["crisis"],
        crowd_says=lambda item: {**crowd(), "crisis": crowd_found.get(item, "no")},
        experts_say=lambda item: {**expert(), "crisis": experts_found.get(item, "no")},
    )


def accepted(folder: Path, settings: str = "") -> dict[str, Scenario]:
    spec, workspace = open_spec(write_spec(folder, settings))
    return {item.id: item.scenario for item in accept_items(spec, workspace).accepted.items}


def built(folder: Path, settings: str = "") -> tuple[int, str]:
    spec = write_spec(folder, settings)
    done = h2htalk_here("release", "build", spec, "--out", folder / "release", "--dry-run")
    return done.returncode, done.stdout + done.stderr


def test_what_people_call_a_crisis_is_tagged_and_not_refused(tmp_path: Path) -> None:
    asked(tmp_path, {FIRST: "yes"}, {FIRST: "yes"})
    risks = {name: scenario.tags.risk for name, scenario in accepted(tmp_path).items()}
    assert risks.pop(FIRST) == "elevated"
    assert set(risks.values()) == {"none"}
    code, text = built(tmp_path)
    assert "gate crisis_care: " not in text
    assert (
        "  1 item is tagged as about a crisis (tags.risk elevated), as people answered yes" in text
    )
    assert code == 3  # two who call everything harmless read nothing


def test_experts_decide_over_the_crowd_where_they_are_sure(tmp_path: Path) -> None:
    asked(tmp_path, {FIRST: "yes", SECOND: "yes"}, {SECOND: "unsure"})
    scenarios = accepted(tmp_path)
    assert (scenarios[FIRST].tags.risk, scenarios[SECOND].tags.risk) == ("none", "elevated")


def test_the_refusal_names_the_file_the_key_and_the_value(tmp_path: Path) -> None:
    asked(tmp_path, {}, {FIRST: "unsure"})
    code, text = built(tmp_path)
    assert code == 4
    advice = next(line for line in text.splitlines() if "[crisis_risk]" in line)
    assert f"under [crisis_risk] of {tmp_path / 'release-1.0.0.toml'}: " in advice
    line = f'"{FIRST}" = "elevated"'
    assert line in advice
    code, text = built(tmp_path, f"[crisis_risk]\n{line}")
    assert (code, "gate crisis_care: " in text) == (3, False)
    scenario = accepted(tmp_path, f"[crisis_risk]\n{line}")[FIRST]
    assert scenario.tags.risk == "elevated"


def test_an_owner_who_has_read_it_may_say_that_nobody_is_in_danger(tmp_path: Path) -> None:
    asked(tmp_path, {SECOND: "yes"}, {FIRST: "unsure", SECOND: "yes"})
    scenario = accepted(tmp_path, f'[crisis_risk]\n"{FIRST}" = "none"')[FIRST]
    assert (scenario.tags.risk, scenario.metadata["risk_reviewed"]) == ("none", True)
    _, text = built(tmp_path, f'[crisis_risk]\n"{FIRST}" = "none"')
    assert f"passes over what its author read and found without danger: {FIRST}\n" in text
    for name, value, message in (
        (SECOND, "none", "people answered that it is about a crisis"),
        (FIRST.partition(":")[0], "high", f"did you mean '{FIRST}'?"),
        (FIRST, "grave", "crisis_risk"),
    ):
        code, text = built(tmp_path, f'[crisis_risk]\n"{name}" = "{value}"')
        assert code == 2
        assert message in text
