"""Bundles: what is in them, what is not, and that a verification notices every change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import h2htalk_here, scripted
from judged_made import command

import h2htalk
from h2htalk.benchmark.results_export.export import Verification, without_folders
from h2htalk.benchmark.score_run import score
from h2htalk.data.files import json_line, sha256_of, write_jsonl
from h2htalk.data.split_output import export_split
from h2htalk.errors import ConfigError, DataError

MINI = h2htalk.load_split("mini@1")
PART = "77 items: the bundle holds 77 of 154 items of split mini"


def bundle_of(run: Path, name: str = "bundle") -> Path:
    out = run.parent / name
    h2htalk.export_results(run, "bundle", out)
    return out


def edited(bundle: Path, change: Callable[[list[Any]], Any]) -> Path:
    """The bundle with its samples changed, and with their new hash."""
    path = bundle / "samples.jsonl"
    records = list(map(json.loads, path.read_text().splitlines()))
    change(records)
    path.write_text("".join(map(json_line, records)))
    return edited_head(bundle, lambda head: head.update(sha256=hashlib.sha256(path.read_bytes()).hexdigest()))


def edited_head(bundle: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    head = json.loads((bundle / "bundle.json").read_text())
    change(head)
    (bundle / "bundle.json").write_text(json.dumps(head))
    return bundle


def recomputable(found: Verification) -> list[str]:
    """What was not verified, without the claims that no bundle can show."""
    assert [line[:5] for line in found.unchecked[-2:]] == ["that ", "that "]
    return found.unchecked[:-2]


@pytest.mark.parametrize("name", ["bundle", "bundle.zip"])
def test_scores_are_computed_again(name: str, run_with_s: Path) -> None:
    found = h2htalk.verify_results(bundle_of(run_with_s, name), "mini@1")
    assert (found.differs, recomputable(found)) == ([], [PART])
    columns = {"bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_1", "rouge_l", "ss", "lexical", "s", "violations"}
    assert columns | {"unscored", "figures and intervals", "the items of mini 1"} <= set(found.matches)


def test_a_bundle_holds_no_folder_no_message_and_no_costs(small_run: Path, tmp_path: Path) -> None:
    one, other = (bundle_of(small_run, name).read_bytes() for name in ("one.zip", "other.zip"))
    assert one == other  # the same run gives the same bytes
    with pytest.raises(DataError, match="is there already"):
        bundle_of(small_run, "one.zip")
    where = {"reason": "http_500", "message": "https://user:key-1234@internal.example said no"}
    model = scripted(tmp_path, {"id": "*", "text": "Hi."}, {"id": "mini-en-dialogue-base-01", "failure": where})
    spec = {"split": "mini@1", "out": tmp_path / "run", "embedder": "none", "subtasks": ["dialogue_base"]}
    h2htalk.evaluate(h2htalk.EvaluateSpec(model=model, **spec))
    bundle = bundle_of(tmp_path / "run")
    text = "".join(path.read_text() for path in bundle.iterdir())
    for secret in (str(tmp_path), "key-1234", "internal.example", "cost", "spec"):
        assert secret not in text
    assert h2htalk.verify_results(bundle, "mini@1").differs == []  # the failed call is unscored here too
    folders = {"a": "bge-m3:/data/x/bge@sha256:1(en)", "b": "lab/m", "c": "~/m", "d": "./a/b/c"}
    assert list(without_folders(folders).values()) == ["bge-m3:bge@sha256:1(en)", "lab/m", "m", "c"]


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (
            lambda rows: rows[3].update(bleu_2=rows[3]["bleu_2"] + 1e-8),
            "differs: bleu_2: 1 of 22 values, by up to 1e-08",
        ),
        (lambda rows: rows[3].update(violations=["x"]), "differs: violations:"),
        (lambda rows: rows[3].update(bleu_1=10**400), "differs: bleu_1:"),
        (lambda rows: rows[3].update(accuracy=1.0), "differs: the columns:"),
        (lambda rows: rows[3].update(rating=5.0, j=5.0), "differs: rating:"),  # nobody judged
        (lambda rows: rows[3].update(text="We sit by the kiln and talk."), "differs: lexical:"),
        (lambda rows: rows.append(rows[0] | {"text": "Better."}), "error: samples.jsonl:23: a second line of 'mini-"),
        (lambda rows: rows.append(rows[0] | {"id": "other"}), "1 item that its split lacks: 'other'"),
        (lambda rows: rows[0].update(id=[1]), "samples.jsonl:1: id: must be"),
        (lambda rows: rows.clear(), "0 lines of 1 samples an item"),
    ],
)
def test_an_edited_line_is_noticed(change: Callable[[list[Any]], Any], differs: str, small_run: Path) -> None:
    done = h2htalk_here("results", "verify", edited(bundle_of(small_run), change), "--split", "mini@1")
    assert (done.returncode, differs in done.stdout + done.stderr) in ((4, True), (2, True))


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (lambda head: head["figures"]["overall_zh"].update(value=99.0), "figures and intervals"),
        (lambda head: head["figures"].update(extra=head["figures"]["overall"]), "figures and intervals"),
        (lambda head: head["protocol"].update(metrics="lexical-2"), "the versions of the metrics"),
        (lambda head: head.update(sha256="0" * 64), "the hash of the samples"),
        (lambda head: head["split"].update(fingerprint="0" * 16), "the items of mini 1"),
    ],
)
def test_an_edited_head_is_noticed(change: Callable[[dict[str, Any]], Any], differs: str, small_run: Path) -> None:
    found = h2htalk.verify_results(edited_head(bundle_of(small_run), change), "mini@1")
    assert [line.partition(":")[0] for line in found.differs] == [differs]


def test_what_no_bundle_can_show_was_neither_checked_nor_listed(small_run: Path) -> None:
    def forge(head: dict[str, Any]) -> None:
        head["model"], head["subject"]["model"] = "lab/better\nmatches: all", "lab/best"

    shown = command("results", "verify", edited_head(bundle_of(small_run), forge), "--split", "mini@1", code=3)
    told = "not verified: that 'lab/better\\nmatches: all' gave"
    (line,) = (one for one in shown.splitlines() if one.startswith(told))
    assert "model 'lab/best'" in line


def test_a_figure_of_s_may_differ_in_the_last_digits_of_embeddings_alone(run_with_s: Path) -> None:
    def shift(by: float) -> Verification:
        bundle = bundle_of(run_with_s, f"bundle{by}")
        edited(bundle, lambda rows: rows[0].update(ss=rows[0]["ss"] + by))
        return h2htalk.verify_results(bundle, "mini@1")

    assert "ss, but for the last digits (1e-07)" in shift(1e-7).matches
    assert [line[:3] for line in shift(1e-4).differs] == ["ss:"]


def test_what_is_not_at_hand_is_said_and_the_rest_checked(run_with_s: Path) -> None:
    elsewhere = {"embedder": "/lab/unknown@1", "prompts": "0" * 16}
    bundle = edited_head(bundle_of(run_with_s), lambda head: head["protocol"].update(elsewhere))
    found = h2htalk.verify_results(bundle, "mini@1")
    no_embedder = "SS and S: embedder '/lab/unknown@1' is neither bge-m3 nor minilm, and is not loaded"
    assert found.unchecked[:2] == [PART, no_embedder]
    assert found.unchecked[2].startswith("contract violations: ")
    assert found.differs == []
    assert {"bleu_1", "lexical"} <= set(found.matches)
    assert not {"ss", "s", "violations", "figures and intervals"} & set(found.matches)
    edited_head(bundle, lambda head: head["protocol"].update(embedder="minilm@sha256:0"))
    other = "SS and S: embedder 'minilm@sha256:0' is of another revision here"
    assert h2htalk.verify_results(bundle, "mini@1").unchecked[1] == other


def test_a_run_with_private_references_is_verified_by_their_owner(tmp_path: Path) -> None:
    file, split, run = tmp_path / "references.jsonl", str(tmp_path / "split"), tmp_path / "run"
    write_jsonl(file, ({"id": s.id, "references": [s.reference, f"or {s.id}"]} for s in MINI.scenarios))
    scenarios = tuple(replace(s, references=()) for s in MINI.scenarios)
    export_split(replace(MINI, scenarios=scenarios, references_sha256=sha256_of(file)), tmp_path / "split")
    h2htalk.evaluate(
        h2htalk.EvaluateSpec(model=scripted(tmp_path), split=split, out=str(run), embedder="none", limit=22)
    )
    unscored = bundle_of(run, "unscored")
    assert h2htalk.verify_results(unscored, split).differs == []
    with pytest.raises(ConfigError, match="were not scored with private references"):
        h2htalk.verify_results(unscored, split, file)
    score(run, references=file)
    scored = bundle_of(run, "scored")
    assert f"or {MINI.scenarios[0].id}" not in "".join(path.read_text() for path in scored.iterdir())
    found = h2htalk.verify_results(scored, split)
    missing = "the scores: name the file of private references with --references"
    part = "132 items: the bundle holds 22 of 154 items of split mini"
    assert (found.differs, recomputable(found)) == ([], [part, missing])
    found = h2htalk.verify_results(scored, split, file)
    assert (found.differs, recomputable(found)) == ([], [part])
    assert "figures and intervals" in found.matches


def test_what_is_no_bundle_is_refused(small_run: Path, tmp_path: Path) -> None:
    bundle = bundle_of(small_run)
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(DataError, match=r"not a bundle: bundle.json cannot be read: .*File is not a zip file"):
        h2htalk.verify_results(tmp_path / "text.zip", "mini@1")
    with pytest.raises(DataError, match=r"bundle.json: not a bundle of this version: samples: "):
        h2htalk.verify_results(edited_head(bundle, lambda head: head.update(samples="2")), "mini@1")
    edited_head(bundle, lambda head: head.update(samples=1))
    with pytest.raises(ConfigError, match="those of 'mini', it says; if you trust them: --split mini"):
        h2htalk.verify_results(edited_head(bundle, lambda head: head["split"].update(fingerprint="0" * 16)))
    (bundle / "samples.jsonl").write_text("{")
    with pytest.raises(DataError, match=r"samples.jsonl:1: broken JSON"):
        h2htalk.verify_results(bundle, "mini@1")


def test_the_commands_end_with_3_4_and_2(small_run: Path) -> None:
    out = small_run.parent / "bundle"
    printed = command("results", "export", small_run, "--to", "bundle", "--out", out)
    assert printed.splitlines() == [str(out / name) for name in ("bundle.json", "samples.jsonl")]
    lines = command("results", "verify", out, code=3).splitlines()  # asked for a split, although it is bundled
    assert (lines[0], lines[1][:30]) == ("split: mini@1 (mini 1)", "matches: the hash of the sampl")
    edited(out, lambda rows: rows[0].update(bleu_1=0.9))
    lines = command("results", "verify", out, "--split", "mini@1", code=4).splitlines()
    assert lines[2].startswith("not verified: 132 items")
    assert lines[-1].startswith("differs: bleu_1: 1 of 22 values")
    command("results", "verify", small_run, code=2)
