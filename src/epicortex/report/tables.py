"""The tables behind the plots: the same figures, for those who cannot see a plot or want to copy a number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from epicortex.pages.tables import Table
from epicortex.pages.units import Unit
from epicortex.report import legend, tree
from epicortex.report.material import Material
from epicortex.report.mistakes import Tested
from epicortex.report.summary import Mean
from epicortex.text import NOTHING, count, duration, one_line, share, times

T = TypeVar("T")

_MOST_GENERATIONS: Final = 2000
_MOST_SPECIES: Final = 1000
_MOST_FAILURES: Final = 20
_MOST_FRONT: Final = 200
_MOST_ANCESTORS: Final = 500


def fitness(material: Material) -> Table:
    """Behind the curves."""
    text = material.unit.text
    rows = []
    for line, generation in _latest(zip(material.history, material.summary.generations, strict=True)):
        spread = [text(value) for value in generation.quantiles] if generation.quantiles else [NOTHING] * 5
        curves = map(text, (line.highest_fitness, line.average_fitness, line.offspring_fitness))
        rows.append((line.generation, *curves, *spread, line.networks))
    return Table(
        "Fitness of each generation",
        (
            "generation",
            "best",
            "mean",
            "offspring",
            "5 % are below",
            "25 %",
            "median",
            "75 %",
            "95 %",
            "networks",
        ),
        rows,
    )


def species(material: Material) -> Table | None:
    """Behind the areas: each species with its life. None without speciation."""
    summary = material.summary
    rows = []
    for id, key in summary.species.items():
        lives = [g for g in summary.generations if g.species.get(id)]
        if lives:
            most = max(g.species[id] for g in lives)
            end = lives[-1].generation
            alive = "alive" if end == len(summary.generations) else str(end)
            rows.append((id, one_line(key, 200), lives[0].generation, alive, most))
    head = ("species", "its layers", "first seen", "last seen", "most networks")
    return Table("Every species", head, sorted(rows)[-_MOST_SPECIES:], frozenset({1})) if rows else None


def front(material: Material) -> Table:
    """The Pareto front."""
    rows = [
        (
            count(point.parameters),
            material.unit.text(point.fitness),
            point.network,
            point.generation,
            " → ".join(legend.structure_lines(point.genome)),
        )
        for point in material.summary.front[:_MOST_FRONT]
    ]
    head = ("parameters", "fitness", "network", "generation", "genome")
    return Table("The fittest networks for their size", head, rows, frozenset({4}))


def shapes(material: Material) -> Table | None:
    """Behind the shares of kernel shapes. None where there never was a kernel."""
    shown = legend.common_shapes(material.summary)
    rows = []
    for generation in _latest(material.summary.generations):
        total = sum(generation.kernels.values())
        parts = [share(generation.kernels.get(shape, 0), total) for shape in shown]
        rows.append((generation.generation, count(total), *parts))
    head = ("generation", "kernels", *map(times, shown))
    return Table("The share of each kernel shape", head, rows) if shown else None


def family(material: Material) -> Table:
    """Behind the family tree."""
    rows = [
        (
            one.id,
            one.birth if one.parents else "start",
            tree.origin(one),
            one.until,
            material.unit.text(one.fitness),
            count(one.parameters),
            tree.mutations(one.mutations),
        )
        for one in material.lineage[:_MOST_ANCESTORS]
    ]
    head = ("network", "born", "from", "until", "fitness", "parameters", "mutations")
    return Table("The champion and its ancestors, the youngest first", head, rows, frozenset({2, 6}))


def mutations(material: Material) -> Table | None:
    """Behind the bars, with births and with networks that did not change."""
    summary = material.summary
    rows: list[tuple[Any, ...]] = [
        (
            legend.attempt_name(row),
            *map(count, (row.tried, *(row.outcomes[key] for key in ("applied", "refused", "failed")))),
            *_effect(row.effect, material),
        )
        for row in legend.common_attempts(summary)
    ]
    if not rows and not summary.births:
        return None
    empty = (NOTHING,) * 4
    rows.append(("no mutation", *empty, *_effect(summary.unchanged, material)))
    for kind, effect in (("crossover", summary.crossovers), ("clone", summary.clones)):
        number = count(summary.births[kind])
        rows.append((f"{kind} (*)", number, number, NOTHING, NOTHING, *_effect(effect, material)))
    head = ("type", "tried", "applied", "refused", "failed", "mean effect", "standard error", "measured")
    return Table(
        "Mutations by type; + grows, − shrinks. (*) Births: fitness"
        f"{' before training' if material.unit.trained else ''} less the parents' mean",
        head,
        rows,
    )


def pairs(material: Material) -> Table | None:
    """The most frequent mistakes. None where there are none, or none are known."""
    tested = material.tested
    if not isinstance(tested, Tested):
        return None
    rows = [(is_, for_, number, f"{100 * part:.1f} %") for is_, for_, number, part in tested.pairs]
    head = ("class", "taken for", "times", "share of the class")
    return Table("The most frequent mistakes", head, rows, frozenset({1})) if rows else None


def classes(material: Material) -> Table | None:
    """Every class, those that are recognised least first. None where the test set is not known."""
    tested = material.tested
    if not isinstance(tested, Tested):
        return None
    percent = Unit.of("accuracy").text
    ordered = sorted(tested.rows, key=lambda row: (row.recall is None, row.recall))
    rows = [
        (
            row.name,
            count(row.taught),
            count(row.tested),
            percent(row.recall),
            percent(row.precision),
            row.taken_for,
        )
        for row in ordered
    ]
    head = ("class", "training samples", "test samples", "recall", "precision", "most often taken for")
    return Table("Every class, those that are recognised least first", head, rows, frozenset({5}))


def suspects(material: Material) -> Table | None:
    """Test samples whose label looks wrong. None where there are none, or none are known."""
    tested = material.tested
    if not isinstance(tested, Tested) or not tested.suspects:
        return None
    rows = [
        (one.name, one.is_class, one.taken_for, f"{100 * one.confidence:.1f} %") for one in tested.suspects
    ]
    head = ("file" if tested.suspects[0].file else "sample", "its label", "looks like", "how sure")
    return Table("Labels to check, the likeliest to be wrong first", head, rows, frozenset({1, 2}))


def phases(material: Material) -> Table | None:
    """Search and polish of a planned run. None where there is no plan."""
    rows = []
    for phase in ("search", "polish"):
        plans = [plan for plan in material.plans.values() if plan.phase == phase]
        if plans:
            own = [
                line for line in material.history if line.generation in {plan.generation for plan in plans}
            ]
            rows.append(
                (
                    phase,
                    f"{plans[0].generation} to {plans[-1].generation}",
                    count(sum(line.networks for line in own)),
                    count(sum(plan.steps for plan in plans)),
                    f"{plans[0].rates[0]:.2f} to {plans[-1].rates[1]:.2f}",
                    duration(sum(line.seconds for line in own)),
                )
            )
    head = ("phase", "generations", "trainings", "steps of the incumbent", "learning rate, relative", "time")
    return Table("The phases of the run", head, rows) if rows else None


def time(material: Material) -> Table:
    """Behind the seconds."""
    rows = [
        (
            line.generation,
            *(f"{getattr(line, key):.3f}" for key in ("train_seconds", "evolve_seconds", "seconds")),
            line.networks,
        )
        for line in _latest(material.history)
    ]
    head = ("generation", material.unit.effort, "everything else", "together", "networks")
    return Table("Seconds of each generation", head, rows)


def failures(material: Material) -> Table | None:
    """Why networks failed, and how often."""
    rows = [(reason, count(times)) for reason, times in material.summary.failures.most_common(_MOST_FAILURES)]
    return Table("Reasons", ("reason", "times"), rows) if rows else None


def failed(material: Material) -> Table:
    """The last failures, one by one."""
    rows = [
        (line.id, line.generation, count(line.parameters), one_line(line.failed or "", 200))
        for line in material.summary.failed
    ]
    head = ("network", "generation", "parameters", "reason")
    return Table("The last failures", head, rows, frozenset({3}))


def versions(material: Material) -> Table:
    """What the run depended on."""
    info = material.run.info
    rows = [
        (name, one_line(getattr(info, name), 200))
        for name in ("epicortex", "torch", "numpy", "python", "started", "data", "data_digest", "id")
    ]
    return Table("Versions, data and identity of the run", ("what", "value"), rows, frozenset({1}))


def _latest(generations: Iterable[T]) -> list[T]:
    """The last generations of a very long run; all of any other."""
    return list(generations)[-_MOST_GENERATIONS:]


def _effect(effect: Mean, material: Material) -> tuple[str, ...]:
    error = material.unit.change(effect.error).lstrip("+")
    return material.unit.change(effect.mean), error, count(effect.number)
