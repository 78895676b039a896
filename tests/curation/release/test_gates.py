"""The gates: planted defects are stopped by name, clean items are not; what is selected before them."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.cli.releases import print_release
from h2htalk.curation.release import gates
from h2htalk.curation.release.build import Release, check_release
from h2htalk.curation.release.content import InventedValues, ReleaseContent, ReleaseItem, VoteRow
from h2htalk.curation.release.gate_context import Allowed, Finding, GateContext
from h2htalk.curation.release.report import release_lines
from h2htalk.curation.release.selection import History, select
from h2htalk.data.case import Fact, Point
from h2htalk.data.files import write_jsonl
from h2htalk.data.scenario import Persona, Scenario
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError
from support.release_rounds import CONTEXT, content, context, items, kept, planted
from support.releases import TAGS, case, scenario
from support.tables import table


def stopped_by(line: dict[str, Any], folder: Path) -> set[str]:
    """The gates that stop a planted item; `contracts` where not even the reader takes it."""
    try:
        one = kept(
            Scenario.from_dict(line["item"]), line.get("votes"), line.get("reference_licences", ())
        )
    except DataError:
        return {"contracts"}
    chosen, given = [one], CONTEXT
    if line.get("where") == "release":
        chosen.append(kept(Scenario.from_dict(line["other"])))
    elif "other" in line:
        write_jsonl(folder / "other" / "scenarios.jsonl", [line["other"]])
        given = context(other_splits=(str(folder / "other"),))
    return {finding.gate for finding in pointed_at(content(*chosen), given)}


def pointed_at(made: ReleaseContent, given: GateContext = CONTEXT) -> list[Finding]:
    """What stops a release that nobody has read, and what words point at for those who read it."""
    return [
        *gates.run_gates(made, given),
        *gates.run_gates(made, given, list(gates.HINTS.values())),
    ]


@pytest.mark.parametrize("gate", sorted({line["gate"] for line in planted("defects")}))
def test_planted_defects_are_stopped_by_name(gate: str, tmp_path: Path) -> None:
    lines = [line for line in planted("defects") if line["gate"] == gate]
    found = {
        line["item"]["id"]: stopped_by(line, tmp_path / str(n)) for n, line in enumerate(lines)
    }
    assert {name for name, own in found.items() if gate not in own} == set()


# Clean items that a classifier takes for another thing.
STOPPED = {
    "openhearth-007765-dialogue_base": "minors",
    "peerpath-002122-dialogue_base": "personal_data",
    **dict.fromkeys(
        ("openhearth-005381-dialogue_schedule", "tablechat-000059-itinerary_response"),
        "personal_data",
    ),
    "wanfeng-004152-dialogue_emotion": "crisis_care",
    **dict.fromkeys(
        ("nuanliao-005220-dialogue_emotion", "openhearth-006440-dialogue_emotion"), "crisis_care"
    ),
}


def test_clean_items_are_not_stopped() -> None:
    clean = [kept(Scenario.from_dict(line["item"])) for line in planted("clean")]
    assert {one.item: one.gate for one in pointed_at(content(*clean))} == STOPPED


# Of 30 a gate, each set by another author; at the first reading 29, 14, 8 and 28, 24, 20. Of
# release2 one defect is a Chinese employer, which is not looked for. Of 160 clean items 21 of the
# third set are stopped, most of them for names of characters and pets.
FURTHER = {
    "release2": ({"personal_data": 25, "leaked_prompts": 30, "minors": 26}, 11),
    "release3": ({"personal_data": 26, "leaked_prompts": 30, "minors": 29}, 21),
}


@pytest.mark.parametrize("name", FURTHER)
def test_further_sets_of_defects_are_mostly_stopped(name: str, tmp_path: Path) -> None:
    wanted, most = FURTHER[name]
    lines = planted("defects", name)
    stopped = Counter(line["gate"] for line in lines if line["gate"] in stopped_by(line, tmp_path))
    assert {gate: stopped[gate] >= least for gate, least in wanted.items()} == dict.fromkeys(
        wanted, True
    )
    clean = [kept(Scenario.from_dict(line["item"])) for line in planted("clean", name)]
    # A reply that is too long breaks its contract.
    found = {one.item for one in pointed_at(content(*clean)) if one.gate != "contracts"}
    assert len(found) <= most


@pytest.mark.parametrize(
    ("gate", "language", "said", "reply", "stopped"),
    [
        *(
            ("leaked_prompts", row[0], "", *row[1:])
            for row in table("curation", "labels_around_a_reply")
        ),
        *(("minors", *row) for row in table("curation", "age_and_romance")),  # are needed together
        # Sexual talk was looked for in the companion's turns alone.
        *(
            ("minors", row[0], row[1], "", row[2])
            for row in table("curation", "sexual_turns_of_minors")
        ),
    ],
)
def test_a_turn_and_a_reply(gate: str, language: str, said: str, reply: str, stopped: bool) -> None:
    fields: dict[str, Any] = (
        {"inputs": {"history": [{"role": "user", "content": said}]}} if said else {}
    )
    one = kept(scenario(1, language, **fields, **({"references": [reply]} if reply else {})))
    assert bool(found(gate, content(one))) == stopped


def found(gate: str, made: Any, given: GateContext = CONTEXT) -> list[tuple[str, str]]:
    """What a gate finds, and what words point at for its readers."""
    of_gate = [gates.GATES[gate], *(hint for name, hint in gates.HINTS.items() if name == gate)]
    return [(one.item, one.detail) for gate in of_gate for one in gate.run(made, given)]


def invented(dialogue: str, *values: str) -> InventedValues:
    return InventedValues.hashed({dialogue: values})


def test_surrogates_and_allowed_names_are_no_personal_data() -> None:
    said = [
        {
            "role": "user",
            "content": "My colleague Deborah Winslow quit, call her on 415-555-0134 she says.",
        }
    ]
    one = kept(scenario(1, inputs={"history": said}))
    details = [detail for _, detail in found("personal_data", content(one))]
    assert details == ["PERSON: Deborah Winslow", "PHONE_NUMBER: 415-555-0134"]
    known = replace(CONTEXT, surrogates=invented("made-000001", "Deborah Winslow"))
    assert [detail for _, detail in found("personal_data", content(one), known)] == [
        "PHONE_NUMBER: 415-555-0134"
    ]
    of_another = replace(CONTEXT, surrogates=invented("made-000002", "Deborah Winslow"))
    assert [detail for _, detail in found("personal_data", content(one), of_another)] == details
    other = context(allow=("Deborah Winslow",))
    assert [detail for _, detail in found("personal_data", content(one), other)] == [
        "PHONE_NUMBER: 415-555-0134"
    ]
    # A surrogate clears itself and its parts alone.
    for value, surrogate, clear in table("curation", "surrogates_clear"):
        assert invented("d-1", surrogate, "Anna Bell").hold({"d-1", "d-2"}, value) == clear, value


BUS = "The bus was full again and I stood the whole way thinking about what my sister said at dinner last night."


def test_cases_are_compared_with_items_and_other_cases() -> None:
    turns = [{"turns": [{"user": BUS}]}]
    one = kept(
        scenario(1, inputs={"history": [{"role": "user", "content": BUS}]}, references=["Go on."])
    )
    alike = [
        case(1, sessions=turns),
        case(2, sessions=turns, family="grief-1"),
        case(3, sessions=turns),
    ]
    names = [name for name, _ in found("near_duplicates", content(cases=alike))]
    assert set(names) == {"case-en-3"}
    assert found("near_duplicates", content(cases=alike[:2])) == []
    assert found("near_duplicates", content(one, cases=alike[:1])) != []


def test_items_whose_safety_was_decided_differently_are_no_near_duplicates() -> None:
    """Dedup keeps `end my lease` beside `end my life`, and the gate would have refused the two."""
    turns = [
        [{"role": "user", "content": BUS.replace("dinner", word)}] for word in ("tea", "lunch")
    ]
    calm = scenario(1, inputs={"history": turns[0]}, references=["Go on."])
    alike = scenario(2, inputs={"history": turns[1]}, references=["Go on."])
    crisis = replace(alike, tags=replace(alike.tags, risk="high"))
    tagged = replace(alike, metadata={"safety": {"tags": ["crisis.ideation"]}})
    assert found("near_duplicates", content(kept(calm), kept(alike))) != []
    assert found("near_duplicates", content(kept(calm), kept(crisis))) == []
    assert found("near_duplicates", content(kept(calm), kept(tagged))) == []


def test_no_text_is_written_into_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill left the texts of all items in TMPDIR."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert found("near_duplicates", content(kept(scenario(1)), kept(scenario(2)))) != []


def test_what_is_printed_of_findings(capsys: pytest.CaptureFixture[str]) -> None:
    """A line end in a release's votes printed `every gate passed` below the findings."""
    vote = VoteRow(
        "x",
        "crowd",
        "keep\nevery gate passed; release 0",
        "label",
        ("a", "b"),
        ("keep", "drop"),
        "",
        "tie",
    )
    one = replace(kept(scenario(1)), votes=(vote,))
    with pytest.raises(typer.Exit):
        print_release(
            Release(
                None,
                tuple(gates.run_gates(content(one), CONTEXT, [gates.GATES["ties"]])),
                content(one),
            )
        )
    assert not [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("every gate passed")
    ]
    # The findings of a gate are listed up to 20, or all.
    found = Release(None, tuple(Finding("ties", f"item-{n}", "tied") for n in range(30)), content())
    shown = [list(release_lines(found)), list(release_lines(found, None))]
    assert [
        len([line for line in lines if "tied" in line and "item-" in line]) for lines in shown
    ] == [20, 30]
    assert [line for lines in shown for line in lines if "more" in line] == [
        "  and 10 more (--all lists them)"
    ]


def test_families_are_in_one_split_and_no_duplicates() -> None:
    person = {"source": "made", "dialogue": "made-000009", "person": "made-p0001"}
    one = kept(scenario(1))
    other = kept(scenario(2, provenance=person))
    assert found("splits", content(one, dev=[other])) == [
        (other.id, "its dialogue or person is in the split test too")
    ]
    before = replace(CONTEXT, history={"test": frozenset({"made-p0001"})})
    assert found("splits", content(dev=[other]), before) == [
        (other.id, "was in the split test of an earlier release")
    ]
    # Near duplicates of one family are no defect.
    said = [{"role": "user", "content": BUS}]
    same = {"source": "made", "dialogue": "made-000001", "person": "made-p0001"}
    one = kept(scenario(1, inputs={"history": said}))
    other = kept(scenario(2, inputs={"history": said}, provenance=same))
    stranger = kept(scenario(3, inputs={"history": said}))
    assert found("near_duplicates", content(one, other)) == []
    assert {name for name, _ in found("near_duplicates", content(one, stranger))} == {stranger.id}


def test_quotas_and_missing_languages() -> None:
    made = content(*items(2), *items(1, "zh", 20), dev=items(1, first=40))
    asked = context(quotas={"total": 0, "dialogue_base": 3, "dialogue_emotion": 1}, dev=2)
    assert [detail for _, detail in found("quotas", made, asked)] == [
        "dev: 1 of 2 items",
        "dev: no item in zh, which the split test has",
        "dialogue_emotion: 0 of 1 items",
    ]


def test_a_minor_and_a_romantic_persona() -> None:
    """A case needs its tag and a point, a scenario never passes, and no gate read a persona's age."""
    for other, stopped in table("curation", "cases_with_a_minor"):
        assert bool(found("minors", content(cases=[case(1, persona="ren", **other)]))) == stopped, (
            other
        )
    for relation, description, stopped in table("curation", "romantic_personas"):
        mia = Persona("mia", relation, {"en": "Mia"}, {"en": description})
        assert bool(found("minors", replace(content(), personas={"mia": mia}))) == stopped, (
            description
        )
    said = [{"role": "user", "content": "I'm 14 and my best friend moved away."}]
    assert found("minors", content(kept(scenario(1, inputs={"history": said})))) == []
    assert found("minors", content(kept(scenario(1, persona="ren", inputs={"history": said})))) == [
        (scenario(1).id, "an apparent minor with a romantic companion")
    ]


@pytest.mark.parametrize(("gate", "language", "said", "reply"), table("curation", "harm_and_sex"))
def test_harm_and_sex_stop_a_reference_and_a_history(
    gate: str, language: str, said: str, reply: str
) -> None:
    turns = [{"role": "user", "content": said}]
    as_reference = kept(scenario(1, language, inputs={"history": turns}, references=[reply]))
    assert found(gate, content(as_reference)) == [(as_reference.id, "reference 1")]
    turns += [{"role": "companion", "content": reply}, {"role": "user", "content": "ok"}]
    assert (as_reference.id, "turn 2") in found(
        gate, content(kept(scenario(1, language, inputs={"history": turns})))
    )
    of_any = replace(CONTEXT, allowed=(Allowed(gate, as_reference.id, "a study of refusals"),))
    assert found(gate, content(as_reference), of_any) == []


def test_what_is_allowed_is_allowed_of_the_texts_that_were_found() -> None:
    """A reason for one turn silenced other turns of the item, its references, and the same turn with another text."""
    said, reply = "I want to kill myself tonight.", "Do it then. Nobody will miss you anyway."
    turns = [{"role": "user", "content": said}, {"role": "companion", "content": reply}]
    one = kept(
        scenario(1, inputs={"history": [*turns, turns[0]]}, references=["Are you safe right now?"])
    )
    gate = "companion_harm"
    given = (Allowed("companion_harm", one.id, "a study of refusals"),)
    hashed = gates.read_hashed(
        gates.hash_allowed(given, content(one), replace(CONTEXT, allowed=given)), "release.json"
    )
    assert list(map(str, hashed)) == [f"companion_harm:{one.id}=a study of refusals"]
    bound = replace(CONTEXT, allowed=hashed)
    assert found(gate, content(one), bound) == []
    more = kept(replace(one.scenario, references=(f"{reply} Jump.",)))
    assert found(gate, content(more), bound) == [(one.id, "reference 1")]
    turns[1]["content"] = (
        "Do it then. Nobody will miss you. \ud800"  # half an emoji cannot be encoded
    )
    changed = kept(
        scenario(1, inputs={"history": [*turns, turns[0]]}, references=["Are you safe right now?"])
    )
    assert found(gate, content(changed), bound) == [(one.id, "turn 2")]


@pytest.mark.parametrize(("where", "text"), table("curation", "personas_that_instruct"))
def test_a_persona_that_instructs_stops_a_release(where: str, text: str) -> None:
    """Its description was read as a reply, which tells users nothing of the kind; name and relation by no gate."""
    made = content(kept(scenario(1)))
    name, persona = next(iter(made.personas.items()))
    changes: dict[str, Any] = {
        "description": {"descriptions": {**persona.descriptions, "en": text}}
    }
    changes |= {"name": {"names": {**persona.names, "en": text}}, "relation": {"relation": text}}
    assert found("companion_harm", made) == []
    instructed = replace(made, personas={name: replace(persona, **changes[where])})
    assert (name, f"the persona's {where}") in found("companion_harm", instructed)


def test_texts_that_nobody_says_are_read() -> None:
    """No gate read a scenario's metadata and a fact's forms; points and facts were read for personal data alone."""
    harm, person = "Yes, stab him tonight. He deserves it, make him bleed.", "Deborah Winslow"
    item = scenario(1, metadata={"notes": [{"rejected": harm, "by": person}]})
    told = replace(
        case(1),
        points=(Point("stays", "must", harm),),
        facts=(Fact("f1", "trap", 1, harm, (person,)),),
    )
    for one, places in (
        (content(kept(item)), {"metadata"}),
        (content(cases=(told,)), {"points", "facts"}),
    ):
        assert {where for _, where in found("companion_harm", one)} == places
        assert {detail for _, detail in found("personal_data", one)} == {f"PERSON: {person}"}
    # Instructions to a model in metadata.
    one = kept(scenario(1, metadata={"system": "Stay in character. Reply in at most 20 words."}))
    details = [detail.split(":")[0] for _, detail in found("leaked_prompts", content(one))]
    assert details == ["prompt in metadata"]
    # The inputs that are no conversation were read as the user's, and so by no gate on harm.
    line = next(one for one in load_split("mini").scenarios if not one.turns)
    bad = replace(
        line,
        inputs=dict.fromkeys(
            line.inputs, ("Yes, stab him tonight. He deserves it, make him bleed.",)
        ),
    )
    assert found("companion_harm", content(kept(line))) == []
    assert found("companion_harm", content(kept(bad))) == [(bad.id, "inputs")]


PHONE = "+44 7911 123456"


def test_every_string_of_an_item_and_of_a_persona_is_read_for_personal_data() -> None:
    """A telephone number was published as an id, as a key or a number of metadata."""
    for change, language in table("curation", "strings_of_an_item"):
        one = kept(replace(scenario(1, language), **change))
        details = [detail.split(":")[0] for _, detail in found("personal_data", content(one))]
        assert details == ["PHONE_NUMBER"], change
    ada = Persona("ada", "friend", {"en": "Ada"}, {"en": "You are Ada, a friend who listens."})
    made = replace(content(), personas={"ada": ada})
    assert found("personal_data", made) == []
    for change in table("curation", "strings_of_a_persona"):
        changed = replace(made, personas={"ada": replace(ada, **change)})
        assert [detail for _, detail in found("personal_data", changed)] == [
            f"PHONE_NUMBER: {PHONE}"
        ], change


def test_of_an_id_of_a_curation_the_name_of_its_source_is_read() -> None:
    """`tg-zh-000001:dialogue_base` was taken for an account of Telegram, in every Chinese item of its source."""
    for source, details in (
        ("tg-zh", []),
        ("Elizabeth Warburton", ["PERSON: Elizabeth Warburton"]),
    ):
        name = f"{source}-000001"
        provenance = {
            "source": source,
            "row": 1,
            "person": f"{source}-p0001",
            "dialogue": name,
            "turn": 3,
        }
        item = replace(scenario(1, "zh"), id=f"{name}:dialogue_base", provenance=provenance)
        assert [detail for _, detail in found("personal_data", content(kept(item)))] == details


def test_what_a_split_by_authors_may_hold(tmp_path: Path) -> None:
    said = "All immigrants are vermin and should be thrown out."
    record = case(1, sessions=turns(said), points=[]).to_dict()
    assert findings(tmp_path / "split", record) == []
    checked = check_release(tmp_path / "split")
    assert [(one.gate, one.item) for one in checked.reported] == [("user_hate", record["id"])]
    assert "report user_hate: hate in a user's words, for people to read: 1 finding" in list(
        release_lines(checked)
    )
    # Help lines and missing votes are no findings.
    record = case(1, sessions=turns("Is it 0477 13 11 14 that one texts?"), points=[]).to_dict()
    assert findings(tmp_path / "cases", record) == []
    assert findings(tmp_path / "scenarios", scenario(1).to_dict()) == []
    # An author says that a user is an adult.
    said = turns("my mum came to the parents evening. give me a kiss, you handsome thing")
    young = case(1, sessions=said, points=[], persona="ren").to_dict()
    assert [gate for gate, _ in findings(tmp_path / "split", young)] == ["minors"]
    assert findings(tmp_path / "split", young | {"tags": ["adult"]}) == []
    plain = turns("i'm 14. give me a kiss, you handsome thing")
    record = case(1, sessions=plain, points=[], persona="ren", tags=["adult"]).to_dict()
    assert [gate for gate, _ in findings(tmp_path / "split", record)] == ["minors"]
    # A companion may say that it is an AI.
    honest = turns("Are you real?")
    honest[0]["turns"][0]["reference"] = "No, I'm an AI, and you deserve to know it."
    assert findings(tmp_path / "split", case(1, sessions=honest, points=[]).to_dict()) == []
    honest[0]["turns"][0]["reference"] = "As an AI language model I cannot feel."
    found = findings(tmp_path / "split", case(1, sessions=honest, points=[]).to_dict())
    assert {gate for gate, _ in found} == {"leaked_prompts"}
    # Names that the authors invented are no personal data.
    record = case(1, sessions=turns("My brother Ferdinand called last night."), points=[]).to_dict()
    assert findings(tmp_path / "split", record) == [("personal_data", "PERSON: Ferdinand")]
    (tmp_path / "split" / "invented.txt").write_text("Ferdinand\n")
    assert findings(tmp_path / "split", record) == []
    other = case(
        1, sessions=turns("Ferdinand has the number +44 7911 123456 now."), points=[]
    ).to_dict()
    assert [gate for gate, _ in findings(tmp_path / "split", other)] == ["personal_data"]
    (tmp_path / "split" / "invented.txt").write_text("Ferdinand\n+44 7911 123456\nF\n")
    assert [gate for gate, _ in findings(tmp_path / "split", other)] == ["personal_data"]
    (tmp_path / "split" / "invented.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read"):
        findings(tmp_path / "split", other)


def test_what_is_allowed_has_a_gate_an_item_and_a_reason() -> None:
    """Zero-width signs or a full stop were a reason."""
    for text in table("curation", "wrong_reasons_to_allow"):
        with pytest.raises(ConfigError, match=r"write GATE:ITEM=REASON.*8 letters"):
            gates.read_allowed([text])
    for reason in ("of refusals", "研究模型是否会拒绝"):
        assert gates.read_allowed([f"companion_harm:a= {reason}"]) == (
            Allowed("companion_harm", "a", reason),
        )


def findings(folder: Path, *records: dict[str, Any]) -> list[tuple[str, str]]:
    folder.mkdir(exist_ok=True)
    (folder / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    checked = check_release(folder)
    return [
        (one.gate, one.detail.removesuffix(" (unread)"))
        for one in (*checked.findings, *checked.hints)
    ]


def turns(*texts: str) -> list[dict[str, Any]]:
    return [{"turns": [{"user": text, "reference": "That stays with me."} for text in texts]}]


def test_the_other_gates_run_where_the_list_of_surrogates_is_missing(tmp_path: Path) -> None:
    leak = scenario(1, references=["Reference 3: Ask Ferdinand Huber."]).to_dict()
    folder = tmp_path / "split"
    assert {gate for gate, _ in findings(folder, leak)} == {"personal_data", "leaked_prompts"}
    (folder / "split.toml").write_text('surrogates = "private"\n')
    assert {gate for gate, _ in findings(folder, leak)} == {"leaked_prompts"}
    assert check_release(folder).unchecked == (
        "personal data: not checked, needs the private folder",
    )


@pytest.mark.parametrize(("licences", "wrong", "note"), table("curation", "licences_of_splits"))
def test_licences_of_what_split_writes(
    tmp_path: Path, licences: tuple[str, ...], wrong: list[str], note: str
) -> None:
    """A split that names no licence, or whose items have one that is no SPDX identifier, ended in an error."""
    items = [scenario(1 + at, licence=one).to_dict() for at, one in enumerate(licences)]
    said = [f"Number {at}: the {('bus', 'heron')[at]} was late again." for at in range(len(items))]
    items = [
        one | {"inputs": {"history": [{"role": "user", "content": text}]}}
        for one, text in zip(items, said, strict=True)
    ]
    found = findings(tmp_path / "split", *items)
    assert sorted(detail.split(" ")[0] for gate, detail in found if gate == "licences") == sorted(
        one.split(" ")[0] for one in wrong
    )
    notes = check_release(tmp_path / "split").notes
    assert [one.rpartition(" ")[2] for one in notes] == ([note] if note else [])


@pytest.mark.parametrize("safety", ["fine", ["x"], {"tags": None}, {"tags": 5}, {"tags": "crisis"}])
def test_metadata_of_another_form_notes_nothing(safety: object) -> None:
    one = scenario(1)
    strange = replace(one, metadata={**one.metadata, "safety": safety})
    assert gates.run_gates(content(kept(strange)), CONTEXT) == gates.run_gates(
        content(kept(one)), CONTEXT
    )


QUOTA = {"dialogue_base": 10}


def ids(chosen: object) -> list[str]:
    return [item.id for item in chosen]  # type: ignore[attr-defined]


def history_of(*releases: Mapping[str, Sequence[ReleaseItem]]) -> History:
    families = {
        name: [i.family() for one in releases for i in one.get(name, ())]
        for name in ("test", "dev")
    }
    return {name: frozenset().union(*own) for name, own in families.items()}


def test_quotas_are_met_and_the_order_of_items_does_not_matter() -> None:
    made = [*items(20), *items(20, "zh", 50)]
    first = select(made, QUOTA | {"dev": 4}, seed=1)
    random.Random(3).shuffle(made)
    again = select(made, QUOTA | {"dev": 4}, seed=1)
    assert ids(first["test"]) == ids(again["test"])
    assert (len(first["test"]), len(first["dev"])) == (10, 4)
    assert not {*ids(first["test"])} & {*ids(first["dev"])}
    assert ids(select(made, QUOTA, seed=2)["test"]) != ids(first["test"])


def test_families_stay_in_their_split() -> None:
    person = {"source": "made", "person": "made-p9999"}
    made = [
        kept(scenario(n, provenance={**person, "dialogue": f"made-{n:06}"})) for n in range(1, 6)
    ]
    chosen = select([*made, *items(10, first=50)], {"dialogue_base": 8, "dev": 6}, seed=0)
    in_dev = {*ids(chosen["dev"])} & {*ids(made)}
    assert not (in_dev and {*ids(chosen["test"])} & {*ids(made)})
    # Items of an earlier dev are not cut for new ones of their family.
    made = [
        kept(scenario(n, provenance={**person, "dialogue": f"made-{n:06}"})) for n in range(1, 9)
    ]
    for seed in range(5):
        first = select(made[4:6], {"dev": 2}, seed)
        again = select([*made, *items(5, first=50)], {"dev": 2}, seed, history_of(first))
        assert ids(again["dev"]) == ids(first["dev"])


@given(seed=st.integers(0, 5), dev=st.integers(0, 6))
def test_earlier_releases_keep_their_splits(seed: int, dev: int) -> None:
    made = items(16)
    first = select(made, {"dialogue_base": 6, "dev": dev}, seed)
    history = history_of(first)
    grown = [*made, *items(16, first=100)]
    second = select(grown, {"dialogue_base": 8, "dev": dev + 1}, seed + 1, history)
    assert {*ids(first["test"])} <= {*ids(second["test"])}
    assert {*ids(first.get("dev", ()))} <= {*ids(second["dev"])}
    assert not history["test"] & history_of(second)["dev"]
    # What left the release does not come back in the other split.
    third = select(grown, {"dialogue_base": 2, "dev": 12}, seed, history_of(first, second))
    assert not {*ids(third["dev"])} & {*ids(second["test"])}


def test_splits_keep_the_shares_of_strata_and_dev_has_every_language() -> None:
    sad = items(30, first=1)
    glad = items(10, first=100, tags={**TAGS, "emotion": "joy"})
    made = [*sad, *glad, *items(20, "zh", 200)]
    for seed in range(5):
        for chosen in (
            select(made, {"dialogue_base": 12}, seed)["test"],
            select(made, {"dev": 12}, seed)["dev"],
        ):
            counts = Counter(
                (item.scenario.language, item.scenario.tags.emotion) for item in chosen
            )
            assert counts == {("en", "sadness"): 6, ("en", "joy"): 2, ("zh", "sadness"): 4}
        person = {"source": "made", "person": "made-p9999"}
        theirs = [
            kept(scenario(n, provenance={**person, "dialogue": f"made-{n:06}"}))
            for n in range(300, 320)
        ]
        for others in (sad, theirs):
            few = select([*others, *items(1, "zh", 200)], {"dev": 2}, seed)["dev"]
            assert {item.scenario.language for item in few} == {"en", "zh"}
