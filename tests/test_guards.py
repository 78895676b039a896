"""The shape of the package: which way imports go, what `--help` loads, that the docs tell the truth."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.engines import ENGINES
from h2htalk.cli import all_commands
from h2htalk.data.languages import LANGUAGES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "h2htalk"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# --- Imports go one way -----------------------------------------------------------------------------------------

# What a room may import, besides itself. `curation`, `benchmark` and `analysis` never see each other.
BOTTOM = {
    "addresses",
    "masking",
    "errors",
    "extras",
    "progress",
    "parallel",
    "interrupts",
    "version",
    "distributions",
}
LAYERS = [*BOTTOM, "data", "text", "chat", "rounds"]
BELOW: dict[str, set[str]] = {
    "__init__": {"version", "data", "rounds", "curation", "benchmark", "analysis"},
    **{name: set[str]() for name in BOTTOM},
    "errors": {"addresses", "masking"},
    "extras": {"errors"},
    "parallel": {"errors", "interrupts"},
    **{name: {*LAYERS[: LAYERS.index(name)]} for name in ("data", "text", "chat", "rounds")},
    # Detectors find and decide nothing; they ask no model of `chat`.
    "detect": {*BOTTOM, "data", "text"},
    "curation": {*LAYERS, "detect"},
    **{name: {*LAYERS} for name in ("benchmark", "analysis")},
    "integrations": {*LAYERS, "__init__", "benchmark"},
    "scale": {*LAYERS, "__init__", "curation", "benchmark"},
    "site": {*LAYERS, "__init__", "benchmark", "analysis", "curation"},
    "cli": {
        *LAYERS,
        "__init__",
        "curation",
        "benchmark",
        "analysis",
        "integrations",
        "scale",
        "site",
    },
    "__main__": {"cli"},
}

# Tables whose records name, as text, functions of the packages above: the rules of a language, how an item leaves a
# folder of that package, and the platforms of rounds. Each module is imported when its function is called.
NAMES_MODULES = (
    "h2htalk.data.languages",
    "h2htalk.data.erasure.folder_kinds",
    "h2htalk.rounds.platforms",
)
MODULE_NAME = re.compile(r"(h2htalk(?:\.\w+)+)(?::\w+)?")  # as in a table of engines


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(module: str) -> str:
    """The room of a module: `h2htalk.data.files` lies in `data`, `h2htalk` itself is `__init__`."""
    return module.split(".")[1] if "." in module else "__init__"


def imported_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every `h2htalk` module that a source imports, with its line: nested and under TYPE_CHECKING too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                (node.lineno, a.name) for a in node.names if a.name.split(".")[0] == "h2htalk"
            )
        elif isinstance(node, ast.ImportFrom) and (
            node.level or str(node.module).split(".")[0] == "h2htalk"
        ):
            base = "." * node.level + (node.module or "")  # a relative import lies in no room
            names = {f"{base}.{a.name}" for a in node.names} & MODULES.keys() or {base}
            yield from ((node.lineno, name) for name in names)


def wrong_imports(module: str, tree: ast.Module) -> list[str]:
    texts = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and module not in NAMES_MODULES
    )
    found = ((node.lineno, MODULE_NAME.fullmatch(str(node.value))) for node in texts)
    # A group of entry points is named like a module of a package that there is not.
    named = [(line, name[1]) for line, name in found if name and room_of(name[1]) in BELOW]
    allowed = BELOW[room_of(module)] | {room_of(module)}
    return [
        f"{module}:{line} imports {name}"
        for line, name in [*imported_modules(tree), *named]
        if room_of(name) not in allowed
    ]


def test_imports_go_one_way() -> None:
    assert {room_of(module) for module in MODULES} <= set(BELOW), (
        "a new package needs its place here and in the design"
    )
    wrong: list[str] = []
    for module, path in MODULES.items():
        wrong += wrong_imports(module, tree_of(path))
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("h2htalk.text.tokens", "def f():\n    from h2htalk.chat import base"),
        (
            "h2htalk.chat.protocol",
            "if TYPE_CHECKING:\n    from h2htalk.benchmark.settings import EvaluateSpec",
        ),
        ("h2htalk.chat.protocol", "ENGINES = {'x': 'h2htalk.benchmark.settings:EvaluateSpec'}"),
    ],
)
def test_the_guard_sees_a_wrong_import_wherever_it_stands(module: str, source: str) -> None:
    assert len(wrong_imports(module, ast.parse(source))) == 1


def test_no_imports_run_in_circles() -> None:
    imported: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        names = imported_modules(tree_of(path))
        imported[module] = {name for _, name in names}
    # Take away what imports nothing that is left: what remains is in a circle or leads to one.
    while free := {
        module for module, named in imported.items() if not named & imported.keys() - {module}
    }:
        imported = {module: named for module, named in imported.items() if module not in free}
    assert imported == {}


# The modules of `benchmark`, from the ground up: each imports what stands before it, and a subpackage what lies in it.
# A subpackage that reads its records below and asks or reports above has rows for its lower modules.
BENCHMARK_ORDER = (
    "statistics",
    "all_pairs",
    "observations",
    "raters",
    "paired_observations",
    "estimate_text",
    "replies",
    "run_facts",
    "settings",
    "prompts",
    "metrics",
    "summary",
    "baselines",
    "run",
    "report.svg",
    "report.charts",
    "report.study_charts",
    "report",
    "judge.rubric",
    "judge.judgements",  # the ratings that scoring joins
    "summarize",
    "report.leaderboard",  # ranks runs by their items' values
    "score_run",
    "evaluate",
    "judge",  # asks judges, and scores again
    "rating_rounds",
    "adjudicate",
    "calibration",
    "split_changes",
    "contamination",
    "studies.settings",
    "studies.conversations",
    "studies.judge_reading",
    "studies.points",
    "planted",  # among the replies that a study's judge reads
    "studies",
    "observed_run",
    "compare",
    "gate",
    "results_export",
    "watch",
)
BENCHMARK = "h2htalk.benchmark."
# A notebook asks a summary for its table: the record names the function that makes it.
SHOWN_BY_NAME = ("h2htalk.benchmark.summary", "h2htalk.benchmark.report.run_tables")


def row_in_benchmark(module: str) -> int | None:
    """Number the row of `BENCHMARK_ORDER` that holds a module, the longest of several; None without a row."""
    row = module.removeprefix(BENCHMARK)
    while row not in BENCHMARK_ORDER:
        row, dot, _ = row.rpartition(".")
        if not dot:
            return None
    return BENCHMARK_ORDER.index(row)


def imports_running_up(module: str, tree: ast.Module) -> list[str]:
    """Name what a module of `benchmark` imports, or names as text, of the modules above it."""
    imported = list(imported_modules(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            match = MODULE_NAME.fullmatch(str(node.value))
            if match and ":" in match[0]:  # without a function it names a folder of files
                imported.append((node.lineno, match[1]))
    row_of_module = row_in_benchmark(module)
    assert row_of_module is not None, f"{module} needs its place in BENCHMARK_ORDER"
    running_up = []
    for line, name in imported:
        row = row_in_benchmark(name) if name.startswith(BENCHMARK) else None
        if row is not None and row > row_of_module and (module, name) != SHOWN_BY_NAME:
            running_up.append(f"{module}:{line} imports {name}")
    return running_up


def test_inside_benchmark_no_import_runs_back_up() -> None:
    modules = [name for name in MODULES if name.startswith(BENCHMARK)]
    running_up = []
    for name in modules:
        running_up += imports_running_up(name, tree_of(MODULES[name]))
    assert running_up == []
    used_rows = {row_in_benchmark(name) for name in modules}
    unused = [row for number, row in enumerate(BENCHMARK_ORDER) if number not in used_rows]
    assert unused == [], "these rows hold no module"


@pytest.mark.parametrize(
    "source",
    [
        "from h2htalk.benchmark.gate.gate import gate",
        "from h2htalk.benchmark import gate",
        "def f():\n    from h2htalk.benchmark.evaluate import evaluate",
        "if TYPE_CHECKING:\n    import h2htalk.benchmark.studies.report.study_page",
        "PATH = 'h2htalk.benchmark.report.run_tables:notebook_table'",
    ],
)
def test_the_guard_sees_an_import_that_runs_up_wherever_it_stands(source: str) -> None:
    assert len(imports_running_up("h2htalk.benchmark.statistics.averages", ast.parse(source))) == 1


def test_the_guard_allows_imports_from_below_and_from_the_same_subpackage() -> None:
    below = "from h2htalk.benchmark.statistics.estimates import Estimate\nfrom h2htalk.data.splits import Split"
    same_subpackage = "from h2htalk.benchmark.judge.probe import judge_probe"
    assert imports_running_up("h2htalk.benchmark.judge.judge_run", ast.parse(below)) == []
    assert imports_running_up("h2htalk.benchmark.judge.judge_run", ast.parse(same_subpackage)) == []


# The stages of curation, with `release`, which reads what they made. What several of them need lies beside them in
# `curation`, and what finds in `detect`.
CURATION = "h2htalk.curation."
STAGES_OF_CURATION = frozenset(
    {"gather", "anonymize", "safety", "dedup", "compose", "review", "release"}
)


def imports_between_stages(module: str, tree: ast.Module) -> set[tuple[str, str]]:
    """Pairs of a module of a stage and a module of another stage that it imports, both without `CURATION`."""
    importer = module.removeprefix(CURATION)
    stage = importer.split(".")[0]
    if not module.startswith(CURATION) or stage not in STAGES_OF_CURATION:
        return set()
    pairs = set()
    for _, name in imported_modules(tree):
        imported = name.removeprefix(CURATION)
        imported_stage = imported.split(".")[0]
        is_stage = name.startswith(CURATION) and imported_stage in STAGES_OF_CURATION
        if is_stage and imported_stage != stage:
            pairs.add((importer, imported))
    return pairs


def test_no_stage_imports_another_stage() -> None:
    pairs: set[tuple[str, str]] = set()
    for module, path in MODULES.items():
        pairs |= imports_between_stages(module, tree_of(path))
    assert pairs == set(), "put what both need into `curation` or `detect`"


@pytest.mark.parametrize(
    "source",
    [
        "from h2htalk.curation.compose.drafts import screen",
        "from h2htalk.curation import compose",
        "def f():\n    from h2htalk.curation.review import stage",
        "if TYPE_CHECKING:\n    import h2htalk.curation.gather.records",
    ],
)
def test_the_guard_sees_an_import_of_another_stage_wherever_it_stands(source: str) -> None:
    tree = ast.parse(source)
    assert len(imports_between_stages("h2htalk.curation.safety.policy", tree)) == 1
    assert imports_between_stages("h2htalk.curation.curate", tree) == set()


# --- Files ------------------------------------------------------------------------------------------------------


def test_no_folder_holds_more_than_20_files() -> None:
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in MODULES.values())
    assert {folder: n for folder, n in counts.items() if n > 20} == {}


def test_no_two_files_of_tests_have_one_name() -> None:
    counts = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, n in counts.items() if n > 1] == [], (
        "pytest imports the first of them alone"
    )


# Parts that only one language or engine has, by design: rules of numbers are chosen by `number_rules` of the record.
OF_ONE = ("h2htalk.detect.personal.", "h2htalk.curation.anonymize.")


def test_languages_and_engines_are_compared_in_no_code_but_asked_for_their_records() -> None:
    names = {*LANGUAGES, *ENGINES}
    compared = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        if not module.startswith(OF_ONE)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Compare)
        and any(
            isinstance(side, ast.Constant) and side.value in names
            for side in (node.left, *node.comparators)
        )
    ]
    assert compared == []


# --- Patterns that Debian 12's own Python matches ---------------------------------------------------------------

# Escapes and character classes are read over; what else matches is a possessive quantifier or an atomic group.
READ_OVER = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?>|(?:[*+?]|\{(?:\d+,?\d*|,\d*)\})\+", re.DOTALL
)


def strings_of(text: str, suffix: str) -> Iterator[str]:
    """The strings of a TOML file, or of a source that imports `re` without docstrings; a field of an f-string is x."""
    if suffix == ".toml":
        text = f"import re\nX = {tomllib.loads(text)!r}"
    nodes = list(ast.walk(ast.parse(text)))
    imported = {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
    if "re" not in imported | {node.module for node in nodes if isinstance(node, ast.ImportFrom)}:
        return
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
            )
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts
        ):
            yield node.value


def possessive(text: str, suffix: str) -> list[str]:
    strings = strings_of(text, suffix)
    return [
        string
        for string in strings
        if any(one[0][0] not in "\\[" for one in READ_OVER.finditer(string))
    ]


def test_no_pattern_has_a_possessive_quantifier_or_an_atomic_group() -> None:
    """`re` of Python 3.11.2 reads a name as `Bethan'` with one: spans, gates and a test differed between machines."""
    suffixes = {".py", ".toml"}
    paths = [
        path
        for folder in (PACKAGE, ROOT / "tools")
        for path in folder.rglob("*")
        if path.suffix in suffixes
    ]
    found = {path.name: possessive(path.read_text(encoding="utf-8"), path.suffix) for path in paths}
    assert {name: strings for name, strings in found.items() if strings} == {}
    assert {path.suffix for path in paths} == suffixes


@pytest.mark.parametrize("suffix", [".py", ".toml"])
def test_the_guard_finds_planted_possessive_quantifiers(suffix: str) -> None:
    patterns = ["a{2,3}+b", "(?>a|b)", r"[*+]+\++a+?(?:b|c{2})+"]  # the last one has none
    text = (
        f"[[table]]\nx = [{{y = {json.dumps(patterns)}}}]"
        if suffix == ".toml"
        else f"import re\nX = {patterns!r}"
    )
    assert possessive(text, suffix) == patterns[:2]


# --- What --help loads ------------------------------------------------------------------------------------------

HEAVY = """torch transformers vllm spacy presidio_analyzer presidio_anonymizer argilla datasets matplotlib pyarrow numpy
openvino openvino_genai jieba sacrebleu rouge_score aiohttp openai anthropic rich nltk pandas sentence_transformers
scipy FlagEmbedding huggingface_hub jinja2 rapidfuzz lemminflect wordcloud tokenizers"""
ALONE = (
    "evaluate",
    "score",
    "report",
    "costs",
    "prompts",
    "leaderboard",
    "split",
    "import",
    "analyze",
)
COMMAND_GROUPS = [[], ["split", "list"], *([name] for name in ALONE)]


def test_help_loads_no_heavy_library() -> None:
    code = f"""
import contextlib, io, sys
from h2htalk.cli import main
for command in {COMMAND_GROUPS!r}:
    sys.argv = ["h2htalk", *command, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        main()
    assert "Usage: h2htalk" in shown.getvalue(), command
print("loaded:", *sorted({{m.partition(".")[0] for m in sys.modules}} & set({HEAVY!r}.split())))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["loaded:"]


@pytest.mark.parametrize(
    "module",
    ["benchmark.report.leaderboard", "benchmark.compare.comparison", "benchmark.gate.gate"],
)
def test_what_compares_runs_loads_no_module_of_rounds(module: str) -> None:
    """`leaderboard` loaded the modules of rounds and payments for one function that writes an input as text."""
    code = f"""
import sys
from types import ModuleType
import h2htalk.cli.comparing
import h2htalk.{module}
for name, loaded in sys.modules.items():
    if name.startswith("h2htalk.rounds.") and type(loaded) is ModuleType:  # the others are lazy
        print(name)
"""
    command = [sys.executable, "-c", code]
    printed = subprocess.check_output(command, text=True, timeout=60)
    names = printed.splitlines()
    assert names == []


# --- The docs ---------------------------------------------------------------------------------------------------

DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# A command ends at the next shell operator, comment or placeholder.
ENDS = re.compile(r"\s(?:#|[|;&<>]|\d?>)|\s*\.\.\.|$")


@cache
def public_commands() -> dict[tuple[str, ...], Any]:
    """`evaluate`, `split list`, ... and what each accepts."""
    found: dict[tuple[str, ...], Any] = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        children = getattr(command, "commands", None)
        if children is None:
            found[words] = command
        for name, child in (children or {}).items():
            walk(child, (*words, name))

    walk(all_commands(), ())
    return found


def documented_commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """`h2htalk ...` in code blocks (a line's start) and in code spans, continued lines joined."""
    in_block = False
    for number, line in enumerate(text.replace("\\\n", "  ").split("\n"), 1):
        if line.lstrip().startswith("```"):
            in_block = not in_block
        if in_block:
            spans = re.findall(
                r"^\s*(?:\$ )?(?:[A-Z_0-9]+=\S+ )*(?:\.venv/bin/)?h2htalk (.*)", line
            )
        else:
            spans = re.findall(r"`(?:\.venv/bin/)?h2htalk ([^`]+)`", line)
        for span in spans:
            yield number, shlex.split(span[: ENDS.search(span).start()])  # type: ignore[union-attr]


def complaint(words: list[str]) -> str | None:
    """What is wrong with a command line, without running it."""
    commands = public_commands()
    named = next(
        (tuple(words[:n]) for n in range(len(words), 0, -1) if tuple(words[:n]) in commands), None
    )
    if named:
        known = {name for p in commands[named].params for name in (*p.opts, *p.secondary_opts)} | {
            "--help"
        }
        options = (
            word.strip("[]").split("=")[0] for word in words if word.strip("[]").startswith("-")
        )
        return next((f"no such option {name}" for name in options if name not in known), None)
    if set(words) <= {"--help", "--version"}:
        return None
    # `split`, `split list|info`, `split --help`
    unknown = [
        one
        for one in words[1:2] and words[1].split("|")
        if one != "--help" and (words[0], one) not in commands
    ]
    known = any(name[0] == words[0] for name in commands)
    return None if known and not unknown else f"no such command: {' '.join(words[:2])}"


def test_every_command_in_the_docs_exists() -> None:
    wrong = [
        f"{path.name}:{number}: h2htalk {' '.join(words)}: {problem}"
        for path in DOCS
        for number, words in documented_commands(path.read_text(encoding="utf-8"))
        if (problem := complaint(words))
    ]
    assert wrong == []


def test_every_public_command_is_in_the_docs() -> None:
    written = (
        path for path in DOCS if path.name != "cli.md"
    )  # that page is generated from the commands
    commands = documented_commands("\n".join(path.read_text(encoding="utf-8") for path in written))
    mentioned = {tuple(words[:length]) for _, words in commands for length in (1, 2)}
    assert sorted(" ".join(c) for c in public_commands() if c not in mentioned) == []


def test_the_docs_name_paths_that_exist() -> None:
    # Inspect names its tasks and scorers like paths: h2htalk/mini.
    inspect = "".join(
        (PACKAGE / f"integrations/inspect/{name}.py").read_text() for name in ("tasks", "scorers")
    )
    registered = {
        f"h2htalk/{name}" for name in re.findall(r"^def ([a-z]\w+)", inspect, re.MULTILINE)
    }
    wrong = [
        f"{path.name}:{number}: {name}"
        for path in [*DOCS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "*planned*" not in line
        for name in re.findall(r"(?<![\w/.-])(?:tests|tools|docs|h2htalk)/[\w./-]*\w", line)
        if name not in registered and not (ROOT / name.partition("/LANGUAGE/")[0]).exists()
    ]
    assert wrong == []


def test_the_overview_names_every_folder() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in MODULES.values()} - {"."}
    assert sorted(folder for folder in folders if f"`{folder}/`" not in text) == []


def test_the_guard_tells_right_commands_from_wrong_ones() -> None:
    right = ["evaluate embedded --no-baselines --limit=5", "split list|info", "--version"]
    wrong = ["evaluat embedded", "evaluate embedded --splits mini", "split list|infos", "--verbose"]
    assert [words for words in right + wrong if complaint(shlex.split(words))] == wrong
