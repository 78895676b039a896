"""Whole folders of each kind, made by the commands themselves, and the commands that read them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from h2htalk.data.files import write_jsonl
from h2htalk.data.releases import release_folder as releases
from support.curations import MODELS, source, write_models
from support.damaged_runs import Target
from support.judged_runs import annotators, command, judge_file
from support.rounds import NAMES, answer, begin, expert
from support.runs import baseline_run
from support.studies import arm_lines, cases_of, judge_of, studied, write_cases

FIXTURES = Path(__file__).parents[1] / "data" / "imports" / "fixtures"


def make_logs(folder: Path) -> None:
    shutil.copytree(FIXTURES, folder, dirs_exist_ok=True)


INSPECT = ("once.eval", "epochs.eval", "edited.eval", "killed.eval", "positions.json")
TARGETS = [
    Target(
        f"log {name}",
        lambda folder, name=name: shutil.copy(FIXTURES / name, folder / name),
        (
            f"import inspect ROOT/{name} --out ROOT/run --embedder none",
            f"compare ROOT/{name} ROOT/{name} --metric asks_back",
        ),
    )
    for name in INSPECT
]


def make_mini_log(folder: Path) -> None:
    from test_inspect_log import log_of, write

    write(folder, log_of())


def make_opencompass(folder: Path) -> None:
    from test_opencompass_folder import write_log

    write_log(folder)


TARGETS += [
    Target(
        "log of mini",
        make_mini_log,
        ("import inspect ROOT/log.json --out ROOT/run --embedder none",),
    ),
    Target(
        "log of OpenCompass",
        make_opencompass,
        (
            "import opencompass ROOT/20261126_120000 --out ROOT/run",
            "compare ROOT/20261126_120000 ROOT/20261126_120000",
        ),
        choose=lambda path: "20261126_120000" in path.parts,
    ),
]


def make_lm_eval(folder: Path) -> None:
    shutil.copy(FIXTURES / "replies.jsonl", folder)
    for path in FIXTURES.glob("*2026-11-22T14-47-14*"):
        shutil.copy(path, folder / path.name.replace("2026-11-22T14-47-14.683425", "T"))
    table = ["id,score", *(f"a-{n},{n / 9}" for n in range(9))]
    (folder / "table.csv").write_text("\n".join(table) + "\n")


TARGETS += [
    Target(
        "logs of others",
        make_lm_eval,
        (
            "compare ROOT/samples_companion_T.jsonl ROOT/samples_companion_T.jsonl --metric lexical",
            "import responses ROOT/replies.jsonl --split mini@1 --out ROOT/run --embedder none",
            "compare ROOT/table.csv ROOT/table.csv",
            "evaluate scripted:ROOT/replies.jsonl --split mini@1 --limit 11 --embedder none --no-baselines"
            " --language en --out ROOT/run",
        ),
    ),
]


SMALL = {"limit": 11, "language": "en", "baselines": False}


def make_run(folder: Path) -> None:
    baseline_run(folder / "run", **SMALL)
    baseline_run(folder / "other", "random-reference", **SMALL)
    command("results", "export", folder / "run", "--to", "bundle", "--out", folder / "bundle")


RUN_COMMANDS = (
    "show ROOT/run",
    "report ROOT/run --verbose",
    "report ROOT/run --format terminal",
    "score ROOT/run",
    "compare ROOT/run ROOT/other",
    "leaderboard ROOT/run ROOT/other",
    "runs ROOT",
    "costs ROOT/run --list-calls",
    "gate ROOT/run --reference-run ROOT/other",
    "site ROOT/run ROOT/other --out ROOT/site",
    "evaluate baseline:constant --split mini@1 --limit 11 --embedder none --no-baselines --language en --out ROOT/run",
    "results export ROOT/run --to bundle --out ROOT/bundle-2",
    "split info ROOT/run/inputs/split",
)
TARGETS += [
    Target("run", make_run, RUN_COMMANDS, choose=lambda path: "run" in path.parts[-4:]),
    Target(
        "bundle",
        make_run,
        ("results verify ROOT/bundle", "show ROOT/bundle", "runs ROOT/bundle"),
        choose=lambda path: "bundle" in path.parts,
    ),
]


def make_judged(folder: Path) -> None:
    run = baseline_run(folder / "run", "random-reference", **SMALL)
    command("judge", "run", run, "--judge", judge_file(run))
    people_file = annotators(folder)
    command(
        "adjudicate",
        "open",
        run,
        "--out",
        folder / "round",
        "--annotators",
        people_file,
        "--overlap",
        2,
        "--human-trigger",
        "judge",
    )


TARGETS += [
    Target(
        "judged run",
        make_judged,
        (
            "show ROOT/run",
            "report ROOT/run",
            "score ROOT/run",
            "judge run ROOT/run --judge scripted:ROOT/judge.jsonl",
            "judge plan-labels ROOT/run --half-width 0.5",
            "adjudicate close ROOT/run ROOT/round",
            "round close ROOT/round --force",
            "round status ROOT/round",
            "gate ROOT/run --reference-run ROOT/run",
            "site ROOT/run --out ROOT/site",
            "costs ROOT/run",
        ),
    ),
]


def make_study(folder: Path) -> None:
    every = cases_of("high_risk", "en")
    chosen = [one for one in every if one.study == "high_risk"][:2]
    chosen.append(next(one for one in every if one.study == "look_alike"))
    cases = write_cases(folder / "cases.jsonl", chosen)
    lines = arm_lines("sap", chosen, "It will pass.")
    lines.append({"id": "*", "text": "I hear you, and I am here."})
    studied(folder / "made", "sap", lines, judge_of(chosen), split=cases, arms=("sap", "none"))
    (folder / "people.csv").write_text(
        "name,languages,crisis\n" + "".join(f"{one},en,yes\n" for one in NAMES[:2])
    )


STUDY_COMMANDS = (
    "show ROOT/made/study",
    "study score ROOT/made/study",
    "runs ROOT",
    "costs ROOT/made/study --list-calls",
    "study export ROOT/made/study --all-points --out ROOT/export.jsonl",
    "study dossier ROOT/made/study --out ROOT/dossier",
    "study open-round ROOT/made/study --out ROOT/round --annotators ROOT/people.csv --overlap 2 --ask points",
    "gate ROOT/made/study --reference-run ROOT/made/study",
    "compare ROOT/made/study ROOT/made/study --metric sap/violation",
    "site ROOT/made/study --out ROOT/site",
    "study sap scripted:ROOT/made/model.jsonl --split ROOT/cases.jsonl --language en --embedder none"
    " --arms sap,none --judge scripted:ROOT/made/judge.jsonl --out ROOT/made/study",
)
TARGETS += [Target("study", make_study, STUDY_COMMANDS)]


def make_chats(folder: Path) -> None:
    shutil.copy(
        Path(__file__).parents[1] / "benchmark" / "studies" / "chats.jsonl", folder / "chats.jsonl"
    )
    points = [
        {"id": "kind", "kind": "must", "aspect": "kind", "text": "The reply is kind."},
        {
            "id": "yes",
            "kind": "must_not",
            "aspect": "yes",
            "text": 'The reply is "yes".',
            "check": "exact:yes",
        },
    ]
    write_jsonl(folder / "points.jsonl", points)
    shutil.copy(
        Path(__file__).parents[2] / "h2htalk" / "data" / "bundled" / "personas" / "nora.toml",
        folder / "persona.toml",
    )
    command(
        "study",
        "logs",
        folder / "chats.jsonl",
        "--points",
        folder / "points.jsonl",
        "--out",
        folder / "had",
    )


TARGETS += [
    Target(
        "chats",
        make_chats,
        (
            "study logs ROOT/chats.jsonl --points ROOT/points.jsonl --out ROOT/new",
            "study logs ROOT/chats.jsonl --persona ROOT/persona.toml --out ROOT/new2",
            "study logs ROOT/chats.jsonl --points ROOT/points.jsonl --out ROOT/had",
            "study score ROOT/had",
            "show ROOT/had",
        ),
    ),
]


def make_round(folder: Path) -> None:
    begin(folder, people=3, overlap=3)
    answer(folder / "round", lambda item, name: expert())
    command("round", "status", folder / "round")
    shutil.copytree(folder / "round", folder / "closed")
    command("round", "close", folder / "closed")
    (folder / "settings.toml").write_text('overlap = 2\nseed = 3\nannotators = "people.csv"\n')
    rows = [
        "Submission id,Participant id,Status,Completion code",
        "s1,p1,APPROVED,AAAA",
        "s2,p2,RETURNED,BBBB",
    ]
    (folder / "submissions.csv").write_text("\n".join(rows) + "\n")


TARGETS += [
    Target(
        "round",
        make_round,
        (
            "round status ROOT/round",
            "round close ROOT/round --force",
            "round close ROOT/closed",
            "round reopen ROOT/round --annotators ROOT/people.csv",
            "round reopen ROOT/closed",
            "round list ROOT",
            "round remove-annotator ROOT/closed annalena --why left",
            "round erase-annotator ROOT/closed annalena --no-payments --sent all",
            "round delete ROOT/closed --yes",
            "show ROOT/closed",
            "runs ROOT",
            "round close ROOT/round --force --submissions ROOT/submissions.csv",
            "round open adjudication ROOT/closed --out ROOT/new --annotators ROOT/people.csv --overlap 1",
            "round open expert ROOT/items.jsonl --out ROOT/new2 --settings ROOT/settings.toml",
        ),
    ),
]


def reseal(folder: Path) -> None:
    """Write the hashes of a release's files as they are after a damage."""
    path = folder / "release" / releases.MANIFEST
    try:
        record = json.loads(path.read_bytes())
        record["files"] = releases.hash_files(folder / "release")
        text = json.dumps(record)
    except Exception:  # noqa: BLE001  # the damage is in the manifest, and its readers meet it
        return
    path.write_text(text, encoding="utf-8", errors="surrogatepass")


def make_released(folder: Path) -> None:
    from support.release_rounds import ALLOW_UNREAD, voted, write_spec  # needs the extra `rounds`

    voted(folder)
    allow = [word for text in ALLOW_UNREAD for word in ("--allow", text)]
    for version, name in (("1.0.0", "release"), ("1.1.0", "other")):
        command(
            "release", "build", write_spec(folder, version=version), "--out", folder / name, *allow
        )


RELEASE_COMMANDS = (
    "release build ROOT/release-1.0.0.toml --out ROOT/new",
    "release check ROOT/release",
    "release diff ROOT/release ROOT/other",
    "release diff ROOT/other ROOT/release",
    "split info ROOT/release",
    "split check ROOT/release",
    "split export ROOT/release --out ROOT/export",
    "show ROOT/release",
    "runs ROOT",
    "site ROOT/release --out ROOT/site",
    "release publish ROOT/release lab/made --dry-run",
    "evaluate baseline:constant --split ROOT/release --embedder none --no-baselines --out ROOT/run",
)


def in_release(path: Path) -> bool:
    return "release" in path.parts


TARGETS += [
    Target("release", make_released, RELEASE_COMMANDS, choose=in_release),
    Target(
        "release behind its hashes",
        make_released,
        RELEASE_COMMANDS,
        choose=in_release,
        repair=reseal,
    ),
]


TARGETS += [
    Target(
        "workspace",
        make_released,
        (
            "release build ROOT/release-1.0.0.toml --out ROOT/new",
            "curate funnel ROOT/W",
            "curate explain ROOT/W made-000001",
            "show ROOT/W",
            "show ROOT/crowd",
            "round status ROOT/crowd",
            "round close ROOT/experts",
            "round list ROOT",
            "runs ROOT",
            "split from ROOT/W --out ROOT/split",
            "split info ROOT/W/compose",
            "curate erase ROOT/W made-000002",
            "curate purge ROOT/W --yes",
            "site ROOT/W --out ROOT/site",
            "costs ROOT/W",
        ),
        choose=lambda path: not {"release", "other"} & {*path.parts},
    ),
]


def make_curation(folder: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    lines = (examples / "raw_en.jsonl").read_text(encoding="utf-8").splitlines()[:12]
    (folder / "raw.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_models(folder)
    spec = source("made", "raw.jsonl") + MODELS
    (folder / "curate.toml").write_text(f'workspace = "W"\nprocesses = 1\n{spec}', encoding="utf-8")
    command("curate", "run", folder / "curate.toml")


TARGETS += [
    Target(
        "curation",
        make_curation,
        (
            "curate run ROOT/curate.toml",
            "curate funnel ROOT/W",
            "show ROOT/W",
            "show ROOT/W/gather",
            "runs ROOT",
            "curate explain ROOT/W made-000001",
            "curate erase ROOT/W made-000002",
            "curate purge ROOT/W --yes",
        ),
    ),
]


def make_settings(folder: Path) -> None:
    baseline_run(folder / "run", **SMALL)
    (folder / "policy.toml").write_text(
        'alpha = 0.05\n[[criteria]]\nfigure = "lexical.dialogue_base"\nmin = 0.01\n[[criteria]]\nfigure = "refused"\n'
    )
    spec = 'model = "baseline:constant"\nsplit = "mini@1"\nlimit = 11\nlanguage = "en"\nembedder = "none"\nseed = 3\n'
    (folder / "evaluate.toml").write_text(f"{spec}[engine_options]\n")
    (folder / "suite.toml").write_text(
        f'out = "{folder / "runs"}"\nsplits = ["mini@1"]\nsap = ["full"]\nseeds = [0]\n[evaluate]\nembedder = "none"\n'
        '[[models]]\nname = "a"\nmodel = "scripted:x.jsonl"\nshards = 2\n'
    )
    entry = '[models."openai:gpt-made-up"]\ninput = "1.0"\noutput = "2.0"\n'
    (folder / "prices.toml").write_text(f'date = "2026-12-01"\ncurrency = "USD"\n{entry}')
    command("split", "new", folder / "split", "--language", "en")
    command("cases", "new", folder / "cases.jsonl")
    command("prompts", "export", "--out", folder / "prompts")
    (folder / "ratings.csv").write_text("id,rating\nmini-en-dialogue-base-03,3\n")


TARGETS += [
    Target(
        "settings",
        make_settings,
        (
            "gate ROOT/run --reference-run ROOT/run --policy ROOT/policy.toml",
            "evaluate --spec ROOT/evaluate.toml --out ROOT/new --dry-run",
            "evaluate --suite ROOT/suite.toml --dry-run",
            "launch slurm ROOT/suite.toml",
            "launch status ROOT/suite.toml",
            "split info ROOT/split",
            "split check ROOT/split",
            "split check ROOT/cases.jsonl",
            "evaluate baseline:constant --split ROOT/split --embedder none --no-baselines --language en"
            " --prompts ROOT/prompts --out ROOT/new2",
            "evaluate openai:gpt-made-up --split mini@1 --limit 11 --embedder none --no-baselines"
            " --prices ROOT/prices.toml --out ROOT/new3 --dry-run",
            "correlate ROOT/run --ratings ROOT/ratings.csv",
            "prompts show all --split ROOT/split --prompts ROOT/prompts",
        ),
        choose=lambda path: "run" not in path.parts[-4:],
    ),
]
