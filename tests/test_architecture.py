"""The rooms of the house stand in one order: nothing lower imports anything higher, and nothing in a circle.

Imports within functions count as well. Those for type checkers alone do not, since they never happen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import epicortex

PACKAGE = Path(epicortex.__file__).parent
#: From the lowest to the highest. Rooms of one row do not import each other.
ROWS = (
    ("errors", "machine", "markup", "text", "randomness", "versions"),
    ("measures",),
    ("registry",),
    ("config",),
    ("native",),
    ("families",),
    ("ecosystem",),
    ("evolution",),
    ("storage",),
    ("data", "tasks"),
    ("evaluation",),
    ("engines",),
    ("champion",),
    ("run",),
    ("pages",),
    ("report",),
    ("paper",),
    ("sklearn",),
    ("cli",),
    # The flat public namespace, and `python -m epicortex`.
    ("__init__", "__main__"),
)
ROW = {room: number for number, rooms in enumerate(ROWS) for room in rooms}


def _name(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(file): file for file in PACKAGE.rglob("*.py")}


def room(module: str) -> str:
    """The room that a module is in."""
    return module.split(".")[1] if "." in module else "__init__"


def _statements(nodes: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that can happen, wherever they stand."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _statements(node.orelse)
        else:
            yield from _statements(ast.iter_child_nodes(node))


def _imported(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Our modules that a statement imports."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names if alias.name in MODULES)
        return
    assert statement.level == 0, "imports are written out in full"
    for alias in statement.names:
        within = f"{statement.module}.{alias.name}"
        if within in MODULES:
            yield within
        elif statement.module in MODULES:
            yield str(statement.module)


@cache
def graph() -> dict[str, set[str]]:
    """What each module imports."""
    return {
        name: {
            imported
            for statement in _statements([ast.parse(file.read_text("utf-8"))])
            for imported in _imported(statement)
        }
        - {name}
        for name, file in MODULES.items()
    }


def test_every_module_is_in_a_room_of_the_house() -> None:
    assert {room(module) for module in MODULES} <= set(ROW)
    assert len(MODULES) > 100


def test_nothing_lower_imports_anything_higher() -> None:
    upward = [
        f"{module} imports {imported}"
        for module, imports in sorted(graph().items())
        for imported in sorted(imports)
        if room(imported) != room(module) and ROW[room(imported)] >= ROW[room(module)]
    ]
    assert upward == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_imports_in_functions_count_and_those_for_type_checkers_do_not() -> None:
    source = """
if TYPE_CHECKING:
    from epicortex.cli import main
else:
    from epicortex import text
def f():
    import epicortex.errors
    from epicortex.config import Config, fields
"""
    found = [name for statement in _statements([ast.parse(source)]) for name in _imported(statement)]
    assert found == ["epicortex.text", "epicortex.errors", "epicortex.config", "epicortex.config.fields"]
