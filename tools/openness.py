"""Measure how much a tree of Python holds, and how much of it a reader has to unpack.

    python tools/openness.py [FOLDER] [--files N] [--places N] [--names N]
    python tools/openness.py --update

Content is counted in nodes of the syntax tree, not in lines: a packed line makes no house smaller. Nodes that stand for
a context, an operator, an annotation or a docstring do not count. The weight of a file is its nodes a statement, so the
width of its lines does not matter. A place to unpack is a construct that a reader has to take apart before the next
line (section 3 of the design): `find_places` lists them. A name is vague where it does not say what it holds.

`tests/openness.tsv` lists the files that are over a limit of the guards, with their figures. `--update` writes it anew:
a figure that fell is lowered, a file within the limits leaves the list, and nothing is raised or added.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "openness.tsv"
PACKAGE = "h2htalk"
FOLDERS = (PACKAGE, "tests", "tools")

MAX_WEIGHT = 9.0  # nodes a statement
MIN_STATEMENTS = 30  # the weight of a smaller file says little
MAX_LINES = 600
MAX_FUNCTION_LINES = 80
MAX_STATEMENT_NODES = 60
MAX_TUPLE_NODES = 8

VAGUE_NAMES = frozenset(
    """
    own found made known told said one left rest asked given whole here there shown at of begin more
    much other others every ends parts again beside near held taken drawn meant both it way place kept
    """.split()  # noqa: SIM905
)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
UNCOUNTED = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
SIMPLE_STATEMENTS = (ast.Assign, ast.Return, ast.Expr, ast.AugAssign, ast.AnnAssign)
LOOKED_AT = (  # what may be a place to unpack
    *COMPREHENSIONS,
    *SIMPLE_STATEMENTS,
    ast.BinOp,
    ast.Call,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.IfExp,
    ast.Subscript,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A construct to unpack: the line where it stands, and what it is."""

    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Openness:
    """The figures of one file.

    `names` counts all names that are bound, `vague` lists the vague ones, `function_lines` is of the longest function.
    """

    nodes: int
    statements: int
    places: tuple[Place, ...]
    names: int
    vague: tuple[str, ...]
    lines: int
    function_lines: int

    @property
    def weight(self) -> float:
        """Nodes a statement."""
        return self.nodes / max(1, self.statements)


@dataclass(frozen=True, slots=True)
class FlatTree:
    """The nodes of a tree in the order of the source, and how many nodes the subtree of each has."""

    nodes: list[ast.AST]
    sizes: list[int]

    def subtree(self, index: int) -> list[ast.AST]:
        """Return a node and all below it."""
        return self.nodes[index : index + self.sizes[index]]


def flatten(tree: ast.AST) -> FlatTree:
    """Walk a tree once: reading the children of a node is what costs most."""
    flat = FlatTree(nodes=[], sizes=[])
    _append_subtree(tree, flat)
    return flat


def _append_subtree(node: ast.AST, flat: FlatTree) -> None:
    index = len(flat.nodes)
    flat.nodes.append(node)
    flat.sizes.append(1)
    for child in ast.iter_child_nodes(node):
        _append_subtree(child, flat)
    flat.sizes[index] = len(flat.nodes) - index


def measure(text: str) -> Openness:
    """Return the figures of a source."""
    flat = flatten(ast.parse(text))
    nodes, statements = count_nodes(flat)
    names = list(bound_names(flat))
    lengths = [0]
    for node in flat.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)
    return Openness(
        nodes=nodes,
        statements=statements,
        places=tuple(find_places(flat)),
        names=len(names),
        vague=tuple(name for name in names if name in VAGUE_NAMES),
        lines=len(text.splitlines()),
        function_lines=max(lengths),
    )


def count_nodes(flat: FlatTree) -> tuple[int, int]:
    """Return the nodes and the statements of a tree, without docstrings, annotations, contexts and operators."""
    nodes = statements = index = 0
    left_out: set[int] = set()
    while index < len(flat.nodes):
        node = flat.nodes[index]
        if isinstance(node, UNCOUNTED) or id(node) in left_out:
            index += flat.sizes[index]
            continue
        nodes += 1
        if isinstance(node, ast.stmt):
            statements += 1
            left_out.add(id(getattr(node, "returns", None)))
        left_out.add(id(_docstring(node)))
        left_out.add(id(getattr(node, "annotation", None)))
        index += 1
    return nodes, statements


def _docstring(node: ast.AST) -> ast.stmt | None:
    """The first statement of a module, class or function, where it is a string."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body:
        return None
    first = body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return None
    return first if isinstance(first.value.value, str) else None


def bound_names(flat: FlatTree) -> Iterator[str]:
    """Yield each name that is bound: by an assignment, a loop or a parameter."""
    for node in flat.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node.arg


def find_places(flat: FlatTree) -> list[Place]:
    """Return the constructs that a reader has to unpack, by line."""
    constructs = set()
    for index, node in enumerate(flat.nodes):
        if isinstance(node, LOOKED_AT):
            line = getattr(node, "lineno", 0)
            for what in _descriptions(node, flat.subtree(index)):
                constructs.add((line, what))
    return [Place(line=line, what=what) for line, what in sorted(constructs)]


def _descriptions(node: ast.AST, subtree: Sequence[ast.AST]) -> Iterator[str]:
    """Yield what a reader has to unpack at this node; `subtree` is the node and all below it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        if _multiplies_condition(node):
            yield "a condition multiplied"
    elif isinstance(node, ast.Subscript):
        literal = isinstance(node.value, ast.Constant | ast.Tuple | ast.List)
        if literal and not isinstance(node.slice, ast.Constant | ast.Slice):
            yield "a literal indexed by a condition"
    elif isinstance(node, ast.Call):
        splatted = [argument.value for argument in node.args if isinstance(argument, ast.Starred)]
        if any(isinstance(value, ast.Tuple | ast.List | ast.BinOp) for value in splatted):
            yield "a literal splatted into a call"
    elif isinstance(node, COMPREHENSIONS):
        inner = [child for child in subtree if isinstance(child, COMPREHENSIONS)]
        if len(node.generators) > 1 or len(inner) > 1:
            yield "a comprehension in a comprehension"
    elif isinstance(node, ast.IfExp) and isinstance(node.orelse, ast.IfExp):
        yield "a chain of conditional expressions"
    elif isinstance(node, ast.AugAssign) and isinstance(node.value, ast.IfExp):
        yield "an update by a conditional expression"
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        walruses = sum(isinstance(child, ast.NamedExpr) for child in subtree)
        if walruses > 1:
            yield f"{walruses} walruses in {node.name}"
    elif isinstance(node, ast.Assign) and _assigns_tuple(node):
        size = sum(1 for _ in ast.walk(node.value))
        if size > MAX_TUPLE_NODES:
            yield "several statements in a tuple"
    if isinstance(node, SIMPLE_STATEMENTS) and len(subtree) > MAX_STATEMENT_NODES:
        if not any(isinstance(child, ast.Dict) for child in subtree):  # a table of records
            yield f"a statement of {len(subtree)} nodes"


def _assigns_tuple(node: ast.Assign) -> bool:
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def _multiplies_condition(node: ast.BinOp) -> bool:
    """Whether a factor is a condition, or a list is repeated a computed number of times."""
    sides = (node.left, node.right)
    for side in sides:
        if isinstance(side, ast.Compare | ast.BoolOp):
            return True
        if (
            isinstance(side, ast.Call)
            and isinstance(side.func, ast.Name)
            and side.func.id == "bool"
        ):
            return True
    has_list = any(isinstance(side, ast.List | ast.Tuple) for side in sides)
    return has_list and not any(isinstance(side, ast.Constant) for side in sides)


# --- The list of files over a limit -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Excess:
    """The figures of a file that is over a limit; 0 where it is within."""

    weight: float = 0.0
    places: int = 0
    vague: int = 0
    lines: int = 0
    function_lines: int = 0

    def lowered(self, limits: Excess) -> Excess:
        """Return, of each figure, the lower of this and of the limit."""
        lower = map(min, astuple(self), astuple(limits))
        return Excess(*lower)


COLUMNS = ("file", "nodes_a_statement", "places", "vague_names", "lines", "longest_function")


def excesses_of(figures: Mapping[str, Openness]) -> dict[str, Excess]:
    """Return what of each file is over the limits, by its path. Lines are limited in the package alone."""
    excesses = {}
    for name, openness in figures.items():
        excess = excess_of(openness)
        if not name.startswith(f"{PACKAGE}/"):
            excess = replace(excess, lines=0, function_lines=0)
        excesses[name] = excess
    return excesses


def excess_of(openness: Openness) -> Excess:
    """Return what of a file is over the limits."""
    weight = round(openness.weight, 1)
    heavy = openness.statements > MIN_STATEMENTS and weight > MAX_WEIGHT
    long_function = openness.function_lines > MAX_FUNCTION_LINES
    return Excess(
        weight=weight if heavy else 0.0,
        places=len(openness.places),
        vague=len(openness.vague),
        lines=openness.lines if openness.lines > MAX_LINES else 0,
        function_lines=openness.function_lines if long_function else 0,
    )


def read_excesses(path: Path = LIST) -> dict[str, Excess]:
    """Return the listed files with their figures; of a file that is listed twice, the lower figures."""
    excesses: dict[str, Excess] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        name, weight, places, vague, lines, function_lines = line.split("\t")
        excess = Excess(
            weight=round(float(weight), 1),
            places=int(places),
            vague=int(vague),
            lines=int(lines),
            function_lines=int(function_lines),
        )
        excesses[name] = excess.lowered(excesses[name]) if name in excesses else excess
    return excesses


def write_excesses(excesses: dict[str, Excess], path: Path = LIST) -> None:
    """Write the list, sorted by file."""
    rows = ["\t".join(COLUMNS)]
    for name, excess in sorted(excesses.items()):
        figures = (excess.places, excess.vague, excess.lines, excess.function_lines)
        rows.append("\t".join([name, f"{excess.weight:g}", *map(str, figures)]))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def measure_folders(root: Path = ROOT, folders: Iterable[str] = FOLDERS) -> dict[str, Openness]:
    """Return the figures of each file of the folders, by its path below the root."""
    figures = {}
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            figures[name] = measure(path.read_text(encoding="utf-8"))
    return figures


def update_list() -> None:
    """Lower the figures of the list to those of today; print each figure that is above the list."""
    today = excesses_of(measure_folders())
    listed = read_excesses()
    updated = {}
    for name, excess in listed.items():
        lowered = excess.lowered(today.get(name, Excess()))
        if lowered != Excess():
            updated[name] = lowered
    for name, excess in today.items():
        allowed = updated.get(name, Excess())
        if excess.lowered(allowed) != excess:
            print(f"{name}: {excess} is above the list: {allowed}", file=sys.stderr)
    write_excesses(updated)
    print(f"{LIST.relative_to(ROOT)}: {len(updated)} files, {len(listed)} before")


# --- The command --------------------------------------------------------------------------------


def print_folder(folder: Path, files: int, places: int, names: int) -> None:
    """Print the figures of a folder by subfolder, its heaviest files, places and vague names."""
    figures = {}
    for path in sorted(folder.rglob("*.py")):
        figures[path] = measure(path.read_text(encoding="utf-8"))
    nodes: Counter[str] = Counter()
    statements: Counter[str] = Counter()
    for path, openness in figures.items():
        folders = path.relative_to(folder).parts[:-1]
        subfolder = folders[0] if folders else "."
        nodes[subfolder] += openness.nodes
        statements[subfolder] += openness.statements
    for subfolder in sorted(nodes):
        _print_figures(subfolder, nodes[subfolder], statements[subfolder])
    _print_figures("all", nodes.total(), statements.total())
    all_places: list[tuple[Path, Place]] = []
    all_vague: Counter[str] = Counter()
    for path, openness in figures.items():
        all_places += [(path, construct) for construct in openness.places]
        all_vague.update(openness.vague)
    bound = sum(openness.names for openness in figures.values())
    print(
        f"places to unpack in 1,000 statements: {1000 * len(all_places) / max(1, statements.total()):.1f} "
        f"({len(all_places):,}); vague names: {100 * all_vague.total() / max(1, bound):.1f} %"
    )
    weighed = [
        (openness.weight, path)
        for path, openness in figures.items()
        if openness.statements > MIN_STATEMENTS
    ]
    over = [path for weight, path in weighed if weight > MAX_WEIGHT]
    print(f"files over {MAX_WEIGHT:g} nodes a statement: {len(over)} of {len(weighed)}")
    for weight, path in sorted(weighed, reverse=True)[:files]:
        print(f"  {weight:5.1f} {path}")
    for path, construct in all_places[:places]:
        print(f"  {path}:{construct.line}: {construct.what}")
    for name, count in all_vague.most_common(names):
        print(f"  {count:5} {name}")


def _print_figures(label: str, nodes: int, statements: int) -> None:
    weight = nodes / max(1, statements)
    print(f"{label:14} {nodes:8,} nodes {statements:7,} statements {weight:5.1f}")


def main() -> None:
    """Run the command that the module's docstring describes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", default="h2htalk", type=Path)
    parser.add_argument(
        "--files", type=int, default=12, help="how many of the heaviest files to name"
    )
    parser.add_argument("--places", type=int, default=0, help="how many places to unpack to name")
    parser.add_argument("--names", type=int, default=0, help="how many vague names to list")
    parser.add_argument(
        "--update", action="store_true", help="lower the figures of tests/openness.tsv"
    )
    options = parser.parse_args()
    if options.update:
        update_list()
    else:
        print_folder(options.folder, options.files, options.places, options.names)


if __name__ == "__main__":
    main()
