"""What every family owes the rest of EpiCortex: one suite over all of them.

A family joins by a line in `FAMILIES`: its name, and what makes it for a problem.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from epicortex.errors import GenomeError
from epicortex.families.family import Arrays, Family, Problem
from epicortex.families.layered import LayeredFamily
from epicortex.families.residual import ResidualFamily, ResidualOptions
from epicortex.families.unstructured import UnstructuredFamily, UnstructuredOptions
from tests.beads import BeadFamily
from tests.strategies import seeds, shares

#: Small networks, so that chains of them stay quick.
FAMILIES: Final[list[tuple[str, Callable[[Problem], Family[Any]]]]] = [
    ("layered", LayeredFamily),
    (
        "residual",
        lambda problem: ResidualFamily(problem, ResidualOptions(start_parameters=700, max_parameters=20_000)),
    ),
    ("unstructured", UnstructuredFamily),
    (
        "recurrent",
        lambda problem: UnstructuredFamily(
            problem,
            UnstructuredOptions(
                recurrent=True,
                steps=3,
                node_start="split",
                activations=("sine", "gauss"),
                node_rate=0.4,
                connection_rate=0.3,
            ),
        ),
    ),
    ("beads", lambda problem: BeadFamily(problem=problem)),
]
PROBLEMS: Final = (Problem((3, 10, 9), 4), Problem((1, 30), 3), Problem((6,), 2))


def build(make: Callable[[Problem], Family[Any]]) -> Any:
    family = make(PROBLEMS[0])
    return family.build(family.minimal(np.random.default_rng(1)))


families = pytest.mark.parametrize("make", [make for _, make in FAMILIES], ids=[name for name, _ in FAMILIES])
#: Those whose models are modules of torch, with weights to learn.
learners = pytest.mark.parametrize(
    "make",
    [make for _, make in FAMILIES if isinstance(build(make), torch.nn.Module)],
    ids=[name for name, make in FAMILIES if isinstance(build(make), torch.nn.Module)],
)
problems = st.sampled_from(PROBLEMS)
Maker = Callable[[Problem], Family[Any]]


def fingerprint(family: Family[Any], phenotype: Any) -> tuple[str, dict[str, tuple[Any, ...]]]:
    """All of a phenotype that can differ, bit for bit."""
    description, arrays = family.encode(phenotype)
    return json.dumps(description), {
        name: (array.shape, array.dtype.str, array.tobytes()) for name, array in arrays.items()
    }


def member(family: Family[Any], seed: int, mutations: int = 3, grow: float = 0.7) -> Any:
    """A network some mutations from the smallest."""
    rng = np.random.default_rng([seed, 7])
    phenotype = family.minimal(rng)
    for _ in range(mutations):
        done = family.mutate(phenotype, grow=grow, relative_fitness=0.5, rng=rng)
        phenotype = phenotype if done.phenotype is None else done.phenotype
    return phenotype


def samples(problem: Problem, seed: int) -> torch.Tensor:
    return torch.randn(5, *problem.input_shape, generator=torch.Generator().manual_seed(seed))


def outputs(model: Any, x: torch.Tensor) -> torch.Tensor:
    if isinstance(model, torch.nn.Module):
        model.eval()
    with torch.no_grad():
        return torch.as_tensor(model(x))


STEPS: Final = ("grow", "redraw", "mutate", "cross", "clone", "learned", "stored")


def step(family: Family[Any], name: str, phenotype: Any, mate: Any, rng: np.random.Generator) -> Any:
    """One thing that can happen to a network in a run."""
    if name == "grow":
        return family.grow(phenotype, rng)
    if name == "redraw":
        return family.redraw(phenotype, rng)
    if name == "mutate":
        done = family.mutate(phenotype, grow=0.5, relative_fitness=0.5, rng=rng)
        return phenotype if done.phenotype is None else done.phenotype
    if name == "cross":
        return family.cross(phenotype, mate, share=0.6, rng=rng)
    if name == "clone":
        return family.clone(phenotype, rng)
    if name == "learned":
        return family.learned(phenotype, family.build(phenotype))
    return stored(family, phenotype)


def stored(family: Family[Any], phenotype: Any) -> Any:
    """Through JSON text and copies of the arrays, as files and wires have them."""
    description, arrays = family.encode(phenotype)
    return family.decode(
        json.loads(json.dumps(description)), {n: array.copy() for n, array in arrays.items()}
    )


@families
@given(seeds, problems, st.lists(st.sampled_from(STEPS), min_size=30, max_size=30))
@settings(max_examples=15)
def test_chains_of_steps_are_pure_and_repeatable(
    make: Maker, seed: int, problem: Problem, names: list[str]
) -> None:
    family = make(problem)
    mate = member(family, seed + 1)
    ends = []
    for _ in range(2):
        rng = np.random.default_rng(seed)
        phenotype = family.minimal(rng)
        for name in names:
            before, other = fingerprint(family, phenotype), fingerprint(family, mate)
            following = step(family, name, phenotype, mate, rng)
            assert (fingerprint(family, phenotype), fingerprint(family, mate)) == (before, other)
            phenotype = following
            check(family, phenotype, problem)
        ends.append(fingerprint(family, phenotype))
    assert ends[0] == ends[1]


def check(family: Family[Any], phenotype: Any, problem: Problem) -> None:
    """What the ecosystem and people may rely on, of any network."""
    description, arrays = family.encode(phenotype)
    outline = family.outline(json.loads(json.dumps(description)))
    figures = outline.key, outline.parameters, outline.cost
    assert figures == (family.key(phenotype), family.parameters(phenotype), family.cost(phenotype))
    assert 0 < outline.parameters <= sum(array.size for array in arrays.values())
    assert outline.cost > 0
    assert (outline.input_shape, outline.outputs) == (problem.input_shape, problem.outputs)
    assert sum(part.parameters for part in outline.parts) == outline.parameters
    assert math.prod(outline.parts[-1].output) == problem.outputs
    assert all(array.dtype == np.float32 and np.isfinite(array).all() for array in arrays.values())
    assert "\n" not in outline.text
    assert family.similarity(phenotype, phenotype) == 1.0
    weights = family.kernels(phenotype)
    assert [tuple(weight.shape[1:] for weight in kernels) for kernels in weights] == [
        part.kernels for part in outline.parts
    ]
    assert all(part.title and "\n" not in part.text for part in outline.parts)


@families
@given(seeds, problems)
@settings(max_examples=20)
def test_nothing_is_lost_on_the_way_through_files(make: Maker, seed: int, problem: Problem) -> None:
    family = make(problem)
    phenotype = member(family, seed)
    again = stored(family, phenotype)
    assert fingerprint(family, again) == fingerprint(family, phenotype)
    x = samples(problem, seed)
    assert torch.equal(outputs(family.build(again), x), outputs(family.build(phenotype), x))


@families
@given(seeds, problems)
@settings(max_examples=20)
def test_facts_are_enough_to_build_the_same_function(make: Maker, seed: int, problem: Problem) -> None:
    family = make(problem)
    phenotype = member(family, seed)
    reader = type(family).from_facts(json.loads(json.dumps(family.facts())))
    read = reader.decode(*family.encode(phenotype))
    x = samples(problem, seed)
    assert reader.name == family.name
    assert torch.equal(outputs(reader.build(read), x), outputs(family.build(phenotype), x))


@families
@pytest.mark.parametrize(
    "facts", [{}, {"input_shape": "3", "outputs": []}, {"input_shape": [None], "outputs": 2}]
)
def test_facts_that_do_not_fit_are_refused(make: Maker, facts: dict[str, Any]) -> None:
    with pytest.raises(GenomeError):
        type(make(PROBLEMS[0])).from_facts(facts)


@families
@given(seeds, problems)
@settings(max_examples=20)
def test_a_network_that_learned_nothing_is_the_same(make: Maker, seed: int, problem: Problem) -> None:
    family = make(problem)
    phenotype = member(family, seed)
    learned = family.learned(phenotype, family.build(phenotype))
    assert fingerprint(family, learned) == fingerprint(family, phenotype)


@learners
@given(seeds, problems)
@settings(max_examples=10)
def test_what_a_model_learns_is_taken_back_and_the_parent_stays(
    make: Maker, seed: int, problem: Problem
) -> None:
    family = make(problem)
    phenotype = member(family, seed)
    before, model = fingerprint(family, phenotype), family.build(phenotype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    learned = family.learned(phenotype, model)
    assert fingerprint(family, phenotype) == before != fingerprint(family, learned)
    x = samples(problem, seed)
    torch.testing.assert_close(outputs(family.build(learned), x), outputs(model, x))


@families
@given(seeds, problems, shares)
@settings(max_examples=20)
def test_within_a_species_children_stay_in_it(make: Maker, seed: int, problem: Problem, share: float) -> None:
    family, rng = make(problem), np.random.default_rng(seed)
    one = member(family, seed)
    for other in (family.redraw(one, rng), family.clone(one, rng)):
        assert family.key(other) == family.key(one)
        assert family.key(family.cross(one, other, share=share, rng=rng)) == family.key(one)


@families
@given(seeds, problems, shares)
@settings(max_examples=20)
def test_any_two_networks_of_one_problem_have_a_child(
    make: Maker, seed: int, problem: Problem, share: float
) -> None:
    family = make(problem)
    one, other = member(family, seed), member(family, seed + 1)
    child = family.cross(one, other, share=share, rng=np.random.default_rng(seed))
    check(family, child, problem)
    similarity = family.similarity(one, other)
    assert 0 <= similarity <= 1
    assert similarity == family.similarity(other, one)


@families
@given(seeds, problems, st.sampled_from([0.0, 1.0]))
@settings(max_examples=30)
def test_mutation_takes_the_direction_that_is_asked_for(
    make: Maker, seed: int, problem: Problem, grow: float
) -> None:
    family = make(problem)
    phenotype, rng = member(family, seed, mutations=6, grow=1.0), np.random.default_rng(seed)
    done = family.mutate(phenotype, grow=grow, relative_fitness=0.5, rng=rng)
    # a network this far from the smallest can go both ways; some mutations leave the size as it is
    assert done.direction in ("same", "grow" if grow else "shrink")
    assert done.reason is None
    assert done.type
    if done.phenotype is None:
        return
    assert fingerprint(family, done.phenotype) != fingerprint(family, phenotype)
    if done.direction == "same":
        assert family.parameters(done.phenotype) == family.parameters(phenotype)
    layers = max(len(family.outline(family.encode(p)[0]).parts) for p in (phenotype, done.phenotype))
    assert done.layer is None or 1 <= done.layer <= layers


@families
@given(seeds, problems)
@settings(max_examples=10)
def test_founders_differ_by_their_generator_alone(make: Maker, seed: int, problem: Problem) -> None:
    family = make(problem)
    drawn = [fingerprint(family, family.minimal(np.random.default_rng(seed + n % 9))) for n in range(18)]
    assert drawn[:9] == drawn[9:]
    assert any(other != drawn[0] for other in drawn)


@families
def test_what_is_no_network_of_the_family_is_refused(make: Maker) -> None:
    family = make(PROBLEMS[0])
    phenotype = member(family, 1)
    description, arrays = family.encode(phenotype)
    first = next(iter(arrays))
    bad: list[tuple[Any, Arrays]] = [
        (None, arrays),
        ([], arrays),
        ({}, arrays),
        ("genome", arrays),
        (description, {}),
        (description, {name: array for name, array in arrays.items() if name != first}),
        (description, arrays | {first: arrays[first][:-1]}),
        (description, arrays | {"nobody.weight": arrays[first]}),
        make(PROBLEMS[1]).encode(member(make(PROBLEMS[1]), 1)),
    ]
    for wrong, given_arrays in bad:
        with pytest.raises(GenomeError):
            family.decode(wrong, given_arrays)
    for wrong in (None, [], {}, "genome"):
        with pytest.raises(GenomeError):
            family.outline(wrong)
