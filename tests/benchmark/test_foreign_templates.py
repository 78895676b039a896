"""Templates that came with somebody else's run are shown as text: a command renders them only where it names them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.observations import Observation
from h2htalk.benchmark.prompts.prompt_set import PromptSet, export_templates
from h2htalk.benchmark.results_export.verify import verify_results
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import score
from h2htalk.benchmark.studies.run_study import load_study, run_study, score_study
from h2htalk.data.files import write_json, write_jsonl, write_text
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import LEAKS_UNCHECKED, Signature
from h2htalk.errors import ConfigError, DataError
from h2htalk.text import jinja_templates
from support.command_line import h2htalk, h2htalk_here
from support.doubles.loopback import LoopbackServer
from support.judged_runs import verdict
from support.runs import baseline_run
from support.shards import attempt_all, own_words, same_bytes, spec_of
from support.studies import cases_of, spec, write_cases, write_script

NAME = "en/dialogue_base.j2"
_BEGIN = '{% extends "en/_companion.j2" %}\n{% block task %}\n'
HOSTILE = {
    "endless": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "huge": '{{ "x"|center(10**10) }}',
    "markup": "</script><script>alert(document.domain)</script>",
    "no template": "{% endfor %}",
}


def _give_templates(run: Path, changed: Mapping[str, str]) -> None:
    """Put templates into a scored run and sign them, as somebody who gives a folder away can."""
    folder = RunFolder(run)
    before = folder.read_summary()
    for name, text in changed.items():
        write_text(folder.prompts / name, text)
    sources = {
        path.relative_to(folder.prompts).as_posix(): path.read_text()
        for path in folder.prompts.rglob("*.j2")
    }
    prompts = _fingerprint(folder.prompts, sources)
    raw = folder.read_run()
    raw["signature"]["protocol"]["prompts"] = prompts
    write_json(folder.manifest, raw)
    signature = Signature.from_dict(before["signature"], "")
    signed = replace(signature, protocol={**signature.protocol, "prompts": prompts})
    folder.scores(signature).rename(folder.scores(signed))
    record = {key: value for key, value in before.items() if key not in ("sha256", "scores_sha256")}
    folder.write_summary({**record, "signature": signed.to_dict()}, folder.scores(signed))


def _fingerprint(folder: Path, sources: Mapping[str, str]) -> str:
    book = json.loads((folder / "help_lines.json").read_text())
    content = json.dumps(["1", book, sorted(sources.items())], ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@pytest.fixture(scope="module")
def bundled_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return baseline_run(tmp_path_factory.mktemp("runs") / "bundled", language="en", limit=11)


@pytest.fixture
def refuse_children(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise AssertionError("a template of the run was rendered")

    monkeypatch.setattr(jinja_templates, "render_apart", refuse)


@pytest.fixture
def make_foreign(bundled_run: Path, tmp_path: Path) -> Callable[[str], Path]:
    def make(text: str) -> Path:
        run = tmp_path / "foreign"
        shutil.copytree(bundled_run, run)
        _give_templates(run, {NAME: f"{_BEGIN}{text}\n{{% endblock %}}"})
        return run

    return make


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.usefixtures("refuse_children")
def test_commands_on_a_foreign_run_render_none_of_its_templates(
    kind: str, make_foreign: Callable[[str], Path], bundled_run: Path, tmp_path: Path
) -> None:
    """`score`, `report`, `site` and others rendered the templates that lie in the folder of somebody else's run."""
    run = make_foreign(HOSTILE[kind])
    page = tmp_path / "site"
    commands: list[tuple[tuple[object, ...], tuple[int, ...]]] = [
        (("report", run), (0,)),
        (("leaderboard", run, bundled_run), (0, 2)),
        (("compare", run, bundled_run, "--metric", "s"), (0, 2)),
        (("compare", run, run), (0, 2)),
        (("gate", run, "--reference-run", run), (0, 2, 3, 4)),
        (("results", "export", run, "--to", "bundle", "--out", tmp_path / "bundle"), (0,)),
        (("results", "verify", tmp_path / "bundle"), (3,)),
        (("site", run, bundled_run, "--out", page), (0,)),
        (
            ("judge", "run", run, "--judge", write_script(tmp_path / "judge.jsonl", verdict())),
            (0, 3),
        ),
        (("runs", tmp_path), (0,)),
        (("score", run), (0,)),
        (("report", run), (0,)),
        (("site", run, "--out", page), (0,)),
    ]
    # The others try what writes pages and renders.
    tried = commands if kind == "endless" else commands[-3:]
    for words, codes in tried:
        ended = h2htalk_here(*words)
        assert ended.returncode in codes, (words, ended.stdout, ended.stderr)
    for path in (run / "report.html", *page.rglob("*.js"), *page.rglob("*.html")):
        assert "<script>alert(" not in path.read_text(encoding="utf-8")


@pytest.mark.usefixtures("refuse_children")
def test_templates_of_a_foreign_run_are_shown_as_text(make_foreign: Callable[[str], Path]) -> None:
    """The page rendered the templates; now it shows them, and the inputs of the item."""
    run = load_run(make_foreign(HOSTILE["endless"]))
    item = next(one for one in run.data.split.scenarios if one.subtask == "dialogue_base")
    messages = run.data.shown_prompt(item)
    (template,) = (
        text
        for role, text in messages
        if role == "template" and text.startswith(f"--- {NAME} ---\n")
    )
    assert "{% for a in range(99999) %}" in template
    shown = dict.fromkeys(name for name, _ in messages)
    assert list(shown) == ["template", *item.inputs]
    h2htalk_here("report", run.data.folder.path)
    assert "{% for a in range(99999) %}" in run.data.folder.page.read_text(encoding="utf-8")


def _page_of(run: Path) -> str:
    ended = h2htalk_here("report", run)
    assert ended.returncode == 0, ended.stderr
    return RunFolder(run).page.read_text(encoding="utf-8")


@pytest.mark.usefixtures("refuse_children")
def test_long_templates_of_a_foreign_run_make_no_long_page(
    make_foreign: Callable[[str], Path],
) -> None:
    """Each item's part of the page listed every paragraph of every template: megabytes gave a page of their product."""
    run = make_foreign("Answer as you like.")
    before = _page_of(run)
    lines = "a\n\n" * 30_000
    preamble = "en/sap/preamble.j2"
    unknown = "en/sap/another.j2"
    task = f"{_BEGIN}{lines}{{% endblock %}}"
    _give_templates(run, {preamble: f"{lines}THE END", unknown: "A NOTE", NAME: task})
    page = _page_of(run)
    assert len(page) < len(before) + 100_000
    assert page.count(f"--- {preamble} ---") == 1
    assert "70,007 more characters: see the file]" in page
    assert "THE END" not in page
    assert "A NOTE" not in page  # no template of this version has its name


@pytest.mark.parametrize(("number", "length"), [(11, 95_000), (1_000, 1)])
def test_a_folder_of_templates_is_read_within_bounds(
    number: int, length: int, make_foreign: Callable[[str], Path]
) -> None:
    """Every command read any number of files, under any names, into memory."""
    run = make_foreign("Answer as you like.")
    for k in range(number):
        write_text(run / "inputs/prompts" / f"en/other-{k}.j2", "x" * length)
    for command in ("leaderboard", "score", "report"):
        ended = h2htalk_here(command, run)
        assert ended.returncode == 2
        message = " ".join(ended.stderr.split())
        assert f"{run}/inputs/prompts: " in message
        assert "more than" in message


@pytest.mark.usefixtures("refuse_children")
def test_every_refusal_names_the_command_that_scores_with_the_leak_rule(
    make_foreign: Callable[[str], Path], tmp_path: Path
) -> None:
    """`score RUN` was advised, which left the leak rule unchecked a second time, or no command at all."""
    run = make_foreign("Answer as you like.")
    other = tmp_path / "scored"
    shutil.copytree(run, other)
    score(other)
    advice = "one was scored without the contract's leak rule: `h2htalk score RUN --prompts DIR`"
    refused = [
        ("compare", run, other),
        ("compare", run, other, "--metric", "compliance"),
        ("gate", other, "--reference-run", run),
        ("correlate", run, other),
    ]
    for words in refused:
        ended = h2htalk_here(*words)
        assert ended.returncode == 2
        assert advice in " ".join(ended.stderr.split()), words
    ended = h2htalk_here("leaderboard", run, other)
    assert ended.returncode == 0, ended.stderr
    assert advice in " ".join(ended.stdout.split())
    assert h2htalk_here("compare", run, other, "--metric", "lexical").returncode == 0


@pytest.mark.usefixtures("refuse_children")
def test_the_warning_of_the_leak_rule_is_the_same_on_the_page(
    make_foreign: Callable[[str], Path],
) -> None:
    """The page shortens paths in warnings: of the option's folder it left one word, which made no sense."""
    run = make_foreign("Answer as you like.")
    ended = h2htalk_here("score", run)
    command = "h2htalk score RUN --prompts RUN/inputs/prompts"
    assert f"`{command}` checks it" in " ".join(ended.stdout.split())
    assert command in RunFolder(run).page.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["json", "csv", "latex"])
def test_a_report_of_figures_takes_no_prompts(form: str, bundled_run: Path) -> None:
    """--prompts was ignored with another format than terminal, even where no such folder is."""
    ended = h2htalk_here("report", bundled_run, "--format", form, "--prompts", "nowhere")
    assert ended.returncode == 2
    assert "--prompts" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.usefixtures("refuse_children")
def test_the_leak_rule_of_unrendered_templates_is_marked_as_not_checked(
    make_foreign: Callable[[str], Path],
) -> None:
    """Without the prompt, whether an answer repeats it is not known: warning and signature say so."""
    run = make_foreign(HOSTILE["huge"])
    stored = load_run(run)
    assert (
        LEAKS_UNCHECKED not in stored.summary.signature.protocol["contracts"]
    )  # figures of its owner stay
    ended = h2htalk_here("score", run)
    assert "not checked: whether answers repeat the prompt" in " ".join(ended.stdout.split())
    scored = load_run(run)
    assert scored.summary.signature.protocol["contracts"].endswith(LEAKS_UNCHECKED)
    assert scored.summary.signature.differing(stored.summary.signature)
    ended = h2htalk_here("compare", run, stored.data.folder.path, "--metric", "compliance")
    assert ended.returncode == 0  # the same run


def test_named_templates_are_rendered_under_limits(make_foreign: Callable[[str], Path]) -> None:
    """With --prompts the templates are rendered, in the child under limits of memory and time."""
    run = make_foreign(HOSTILE["huge"])
    ended = h2htalk("score", run, "--prompts", run / "inputs/prompts")
    assert ended.returncode == 2
    assert "dialogue_base.j2" in ended.stderr
    assert "GiB of memory to render" in " ".join(ended.stderr.split())


def test_named_templates_give_the_figures_that_they_gave_before(
    bundled_run: Path, tmp_path: Path
) -> None:
    """A run of one's own prompts keeps its figures and prompts with --prompts, by either folder."""
    own = tmp_path / "own"
    write_text(own / NAME, f"{_BEGIN}Answer as you like.\n{{% endblock %}}")
    run = baseline_run(tmp_path / "run", language="en", limit=11, prompts=str(own))
    before = load_run(run, own)
    assert before.data.prompt_of is not None
    page = RunFolder(run).page.read_text(encoding="utf-8")
    assert "Answer as you like." in page
    assert '["template",' not in page
    assert score(run).signature != before.summary.signature
    for prompts in (own, run / "inputs" / "prompts"):
        ended = h2htalk_here("score", run, "--prompts", prompts)
        assert ended.returncode == 0, ended.stderr
        assert load_run(run).summary.signature == before.summary.signature
        assert load_run(run).summary.rows == before.summary.rows
        assert '["template",' not in RunFolder(run).page.read_text(encoding="utf-8")


def test_the_command_that_made_a_run_needs_no_other_option(tmp_path: Path) -> None:
    """`evaluate` again, with the prompts that it was given, scores and shows them as before."""
    own = tmp_path / "own"
    write_text(own / NAME, f"{_BEGIN}Answer as you like.\n{{% endblock %}}")
    words = (
        "evaluate",
        "baseline:constant",
        "--split",
        "mini",
        "--language",
        "en",
        "--limit",
        11,
        "--embedder",
        "none",
    )
    for _ in range(2):
        ended = h2htalk_here(*words, "--prompts", own, "--out", tmp_path / "run")
        assert ended.returncode == 0, ended.stderr
        assert "not checked" not in ended.stdout
    score(tmp_path / "run")  # without the leak rule
    h2htalk_here(*words, "--prompts", own, "--out", tmp_path / "run")
    assert LEAKS_UNCHECKED not in load_run(tmp_path / "run").summary.signature.protocol["contracts"]


def test_other_prompts_than_those_of_the_run_are_refused(bundled_run: Path, tmp_path: Path) -> None:
    export_templates(tmp_path / "mine")
    assert h2htalk_here("report", bundled_run, "--prompts", tmp_path / "mine").returncode == 0
    with (tmp_path / "mine" / NAME).open("a") as file:
        file.write("{# mine #}")
    ended = h2htalk_here("report", bundled_run, "--prompts", tmp_path / "mine")
    assert ended.returncode == 2
    assert "not the prompts that" in ended.stderr


@pytest.mark.usefixtures("refuse_children")
def test_bundled_templates_beside_another_are_not_the_bundled_ones(
    bundled_run: Path, tmp_path: Path
) -> None:
    """Equal templates and one more: the folder is somebody's own, whatever the other one holds."""
    run = tmp_path / "run"
    shutil.copytree(bundled_run, run)
    _give_templates(run, {"en/extra.j2": HOSTILE["huge"]})
    assert load_run(run).data.prompt_of is None
    assert h2htalk_here("report", run).returncode == 0


def test_templates_that_changed_after_the_run_are_refused(
    bundled_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(bundled_run, run)
    with (run / "inputs/prompts" / NAME).open("a") as file:
        file.write("{# later #}")
    with pytest.raises(DataError, match="prompts are not those of the run's signature"):
        load_run(run)


@pytest.mark.parametrize("target", ["file", "folder"])
def test_links_in_a_run_are_refused(target: str, bundled_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(bundled_run, run)
    prompts = run / "inputs/prompts"
    elsewhere = tmp_path / "elsewhere"
    (prompts if target == "folder" else prompts / NAME).rename(elsewhere)
    (prompts if target == "folder" else prompts / NAME).symlink_to(elsewhere)
    with pytest.raises(DataError, match="symbolic link"):
        load_run(run)


@pytest.mark.usefixtures("refuse_children")
def test_an_export_of_prompts_asks_for_the_templates(
    make_foreign: Callable[[str], Path], tmp_path: Path
) -> None:
    """What says which messages were sent has to render them: one line names the option."""
    run = make_foreign("Answer as you like.")
    words = (
        "results",
        "export",
        run,
        "--to",
        "every-eval-ever",
        "--model",
        "a/b",
        "--organization",
        "c",
    )
    ended = h2htalk_here(*words, "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert f"--prompts {run / 'inputs/prompts'}" in " ".join(ended.stderr.split())
    assert not list((tmp_path / "out").rglob("*.jsonl"))


def test_an_export_of_prompts_with_the_templates(
    make_foreign: Callable[[str], Path], tmp_path: Path
) -> None:
    run = make_foreign("Answer as you like.")
    words = (
        "results",
        "export",
        run,
        "--to",
        "every-eval-ever",
        "--model",
        "a/b",
        "--organization",
        "c",
    )
    ended = h2htalk_here(*words, "--out", tmp_path / "out", "--prompts", run / "inputs/prompts")
    assert ended.returncode == 0, ended.stderr
    (samples,) = (tmp_path / "out").rglob("*_samples.jsonl")
    assert "Answer as you like." in samples.read_text(encoding="utf-8")


def test_a_bundle_without_the_leak_rule_is_verified_without_it(
    bundled_run: Path, tmp_path: Path
) -> None:
    """Who knew the prompts scored a bundle with the rule that it claims to lack: *differs*, and every value matched."""
    run = tmp_path / "run"
    shutil.copytree(bundled_run, run)
    item = next(one for one in load_run(run).data.split.scenarios if one.subtask == "dialogue_base")
    prompt = load_run(run).data.prompt_of
    assert prompt is not None
    leaked = prompt(item)[0].content
    lines = [
        json.loads(line)
        for line in RunFolder(run).calls_file.read_text(encoding="utf-8").splitlines()
    ]
    answers = (line | {"text": leaked} if line["id"] == item.id else line for line in lines)
    write_jsonl(RunFolder(run).calls_file, answers)
    _give_templates(run, {NAME: f"{_BEGIN}Answer as you like.\n{{% endblock %}}"})
    score(run)
    ended = h2htalk_here("results", "export", run, "--to", "bundle", "--out", tmp_path / "bundle")
    assert ended.returncode == 0, ended.stderr
    head = json.loads((tmp_path / "bundle" / "bundle.json").read_text())
    head["protocol"]["prompts"] = PromptSet.load().fingerprint  # those of the version that verifies
    write_json(tmp_path / "bundle" / "bundle.json", head)
    verification = verify_results(tmp_path / "bundle")
    assert verification.differs == []
    assert "violations" in verification.matches
    assert (
        "the contract's leak rule: the bundle's answers were scored without it"
        in verification.unchecked
    )
    head["protocol"]["contracts"] = head["protocol"]["contracts"].removesuffix(LEAKS_UNCHECKED)
    write_json(tmp_path / "bundle" / "bundle.json", head)
    assert [line.partition(":")[0] for line in verify_results(tmp_path / "bundle").differs] == [
        "violations"
    ]


def test_a_site_shows_inputs_or_named_prompts(
    make_foreign: Callable[[str], Path], bundled_run: Path, tmp_path: Path
) -> None:
    """A site is published, and templates may hold notes of their author: it has their text only rendered."""
    run = make_foreign("{# a note of the author #}Answer as you like.")

    def prompts_of(*more: object) -> str:
        ended = h2htalk_here("site", run, bundled_run, "--out", tmp_path / "site", *more)
        assert ended.returncode == 0, ended.stderr
        chunks = [
            path.read_text(encoding="utf-8").split('"')[3]
            for path in (tmp_path / "site").rglob("prompts-*.js")
        ]
        return "".join(gzip.decompress(base64.b64decode(chunk)).decode() for chunk in chunks)

    shown = prompts_of()
    assert "Answer as you like." not in shown
    assert '"template"' in shown
    shown = prompts_of("--prompts", run / "inputs/prompts")
    assert "Answer as you like." in shown
    assert '"template"' not in shown
    assert "a note of the author" not in shown
    ended = h2htalk_here(
        "site", bundled_run, "--out", tmp_path / "site", "--prompts", run / "inputs/prompts"
    )
    assert ended.returncode == 2
    assert "none of these runs" in ended.stderr


@pytest.mark.usefixtures("refuse_children")
def test_a_foreign_study_names_no_templates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study's folder was read with the templates of whatever path its study.json names."""
    own = tmp_path / "own"
    export_templates(own)
    model = write_script(tmp_path / "model.jsonl", "I am here.")
    cases = write_cases(tmp_path / "cases.jsonl", cases_of("high_risk", "en")[:2])
    study = tmp_path / "study"
    run_study(spec("sap", model, study, split=str(cases), prompts=str(own)))
    for name in ("preamble", "honesty"):
        for path in own.glob(f"*/sap/{name}*.j2"):
            path.write_text(HOSTILE["endless"], encoding="utf-8")
    raw = json.loads((study / "study.json").read_text())
    raw["signature"]["protocol"]["prompts"] = "0" * 16
    write_json(study / "study.json", raw)
    commands: list[tuple[object, ...]] = [
        ("study", "score", study),
        ("gate", study, "--reference-run", study),
        ("site", study, "--out", tmp_path / "site"),
        ("compare", study, study),
    ]
    for words in commands:
        ended = h2htalk_here(*words)
        assert ended.returncode in (0, 2, 3, 4), (words, ended.stderr)
        assert "a template" not in ended.stderr
    assert not load_study(study).study.prompts.are_known
    with pytest.raises(ConfigError, match="not the prompts that"):
        score_study(study, prompts=own)


def test_a_study_of_other_templates_that_names_no_folder_has_no_sizes(tmp_path: Path) -> None:
    """The templates of this version gave the sizes of prompts that the signature says were others."""
    model = write_script(tmp_path / "model.jsonl", "I am here.")
    cases = write_cases(tmp_path / "cases.jsonl", cases_of("high_risk", "en")[:2])
    study = tmp_path / "study"
    made = run_study(spec("sap", model, study, split=str(cases)))
    assert made.study.prompts.are_known
    assert load_study(study).study.prompts.are_known
    raw = json.loads((study / "study.json").read_text())
    raw["signature"]["protocol"]["prompts"] = "0" * 16
    write_json(study / "study.json", raw)
    scored = score_study(study)
    assert not scored.study.prompts.are_known
    (warning,) = (line for line in scored.warnings() if line.startswith("not known: sizes"))
    assert "`h2htalk study score STUDY --prompts DIR`" in warning


def test_a_study_with_templates_of_its_own_is_scored_with_them(tmp_path: Path) -> None:
    """Tokens that the server does not report are estimated from the prompt: without it they have no figure."""
    own = tmp_path / "own"
    export_templates(own)
    for path in own.glob("en/sap/*.j2"):
        path.write_text(path.read_text() + "\nAnd again.", encoding="utf-8")
    model = write_script(tmp_path / "model.jsonl", "I am here.")
    cases = write_cases(tmp_path / "cases.jsonl", cases_of("high_risk", "en")[:2])
    study = tmp_path / "study"
    made = run_study(spec("sap", model, study, split=str(cases), prompts=str(own)))

    def tokens(rows: Iterable[Observation]) -> list[float | None]:
        return [row.value for row in rows if row.figure == "tokens" and row.arm == "sap"]

    assert made.study.prompts.are_known
    assert not any("not known: sizes" in line for line in made.warnings())
    shutil.move(
        own, tmp_path / "moved"
    )  # a study whose folder of prompts was gone could not be read
    unknown = score_study(study)
    assert any("not known: sizes" in line for line in unknown.warnings())
    assert not tokens(unknown.observations)
    known = score_study(study, prompts=tmp_path / "moved")
    assert known.observations == made.observations
    assert PromptSet.load(tmp_path / "moved").fingerprint == made.study.prompts.prompts.fingerprint


@pytest.fixture(scope="module")
def own_shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of `own` templates, two finished `shards` that were asked with them, and the `single` run of both."""
    folder = tmp_path_factory.mktemp("shards")
    write_text(folder / "own" / NAME, f"{_BEGIN}Answer as you like.\n{{% endblock %}}")
    with LoopbackServer(reply=own_words) as server:
        asked = {"prompts": str(folder / "own"), "limit": 4}
        attempt_all(spec_of(server, folder, **asked), of=2)
        evaluate(spec_of(server, folder, "single", **asked))
    return folder


def _merge(own_shards: Path, out: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return h2htalk_here("merge", own_shards / "shards", "--out", out, *more)


def test_shards_of_prompts_of_one_s_own_merge_with_them(own_shards: Path, tmp_path: Path) -> None:
    """Who merges names the prompts, as who evaluated; a suite knows them. Else the leak rule is not checked."""
    merged = _merge(own_shards, tmp_path / "merged", "--prompts", own_shards / "own")
    assert merged.returncode == 0, merged.stderr
    assert same_bytes(own_shards / "single", tmp_path / "merged") == {}
    assert _merge(own_shards, tmp_path / "unnamed").returncode == 0
    assert load_run(tmp_path / "unnamed").summary.signature.lacks_leak_rule
    score(tmp_path / "unnamed", prompts=own_shards / "own")
    single = load_run(own_shards / "single").summary
    assert load_run(tmp_path / "unnamed").summary.signature == single.signature


def test_a_merge_that_names_the_prompts_later_scores_again(
    own_shards: Path, tmp_path: Path
) -> None:
    """`merge --prompts` of a run that was merged without gave the old figures and warning, with exit code 0."""
    out = tmp_path / "merged"
    _merge(own_shards, out)
    again = _merge(own_shards, out, "--prompts", own_shards / "own")
    assert again.returncode == 0, again.stderr
    assert "not checked" not in again.stdout
    apart = same_bytes(own_shards / "single", out)
    assert [path.partition("/")[0] for path in apart] == [
        "scores"
    ]  # those of the first merge are kept
    scored = (out / "summary.json").stat().st_mtime_ns
    for more in (
        (),
        ("--prompts", own_shards / "own"),
    ):  # what is complete is not scored a second time
        assert _merge(own_shards, out, *more).returncode == 0
        assert (out / "summary.json").stat().st_mtime_ns == scored


@pytest.mark.parametrize("is_merged", [True, False])
def test_a_merge_refuses_prompts_that_are_not_those_of_the_shards(
    is_merged: bool, own_shards: Path, tmp_path: Path
) -> None:
    """Of a run that was merged before, --prompts was not looked at, even where it named no folder."""
    out = tmp_path / "merged"
    if is_merged:
        _merge(own_shards, out)
    write_text(tmp_path / "other" / NAME, f"{_BEGIN}Answer otherwise.\n{{% endblock %}}")
    for folder, message in (
        ("nowhere", "no such prompts folder"),
        ("other", "not the prompts that"),
    ):
        ended = _merge(own_shards, out, "--prompts", tmp_path / folder)
        assert ended.returncode == 2
        assert message in " ".join(ended.stderr.split())
    assert out.exists() == is_merged
