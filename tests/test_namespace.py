"""The public namespace: what is in it, that it resolves, and that it costs nothing until it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import epicortex

PUBLIC = [
    "Activations",
    "Champion",
    "Classifier",
    "Config",
    "ConfigError",
    "ConvLayer",
    "DataConfig",
    "DataError",
    "DataOptions",
    "DataSet",
    "EcosystemState",
    "Engine",
    "EngineError",
    "EpiCortexError",
    "Evaluation",
    "Evaluator",
    "Event",
    "Evolution",
    "EvolutionConfig",
    "EvolvedClassifier",
    "EvolvedRegressor",
    "Facts",
    "Family",
    "FullLayer",
    "Generation",
    "Genes",
    "Genome",
    "GenomeError",
    "Individual",
    "IrregularConv",
    "Job",
    "Labelling",
    "LayeredFamily",
    "MpiConfig",
    "Mutated",
    "Mutation",
    "Network",
    "OPERATORS",
    "Operator",
    "Outcome",
    "Outline",
    "Part",
    "Phenotype",
    "Problem",
    "Quantities",
    "RayConfig",
    "Recipe",
    "ResidualFamily",
    "Result",
    "Rules",
    "RunError",
    "RunRecord",
    "Scaling",
    "Step",
    "StorageError",
    "Strategies",
    "Tally",
    "Trainer",
    "TrainingConfig",
    "UnwritableError",
    "VariationError",
    "Watcher",
    "__version__",
    "configure",
    "draw_phenotype",
    "evaluate",
    "evolve",
    "export",
    "load",
    "load_champion",
    "load_data",
    "read_image",
    "read_run",
    "resume",
    "stop_reason",
]


def test_the_public_names_are_these() -> None:
    assert sorted(epicortex.__all__) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(epicortex, name) is not None
    assert name in dir(epicortex)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(epicortex.__file__).read_text())
    (block,) = [
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    seen = {
        alias.asname or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen | {"__version__"} == set(PUBLIC)


def test_every_error_is_public() -> None:
    from epicortex import errors

    assert {name for name, value in vars(errors).items() if isinstance(value, type)} <= set(PUBLIC)


def test_every_public_name_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text("utf-8")
    for name in set(PUBLIC) - {"__version__"}:
        assert f":: {name}\n" in page or f"`epicortex.{name}`" in page, name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'evolv'"):
        epicortex.evolv  # noqa: B018


def test_importing_epicortex_imports_nothing_heavy() -> None:
    program = (
        "import epicortex, sys; print(sorted({'torch', 'numpy', 'sklearn', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_names_stay_functions_whatever_is_imported_first() -> None:
    """A module of the same name would take the place of the function."""
    program = """
import epicortex.champion.exporting, epicortex.run, epicortex.sklearn, epicortex.cli.export
import epicortex
assert all(callable(getattr(epicortex, name)) for name in ("export", "load", "evolve", "resume", "configure"))
"""
    subprocess.run([sys.executable, "-c", program], check=True)
