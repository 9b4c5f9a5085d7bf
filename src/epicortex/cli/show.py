"""`epicortex show`: the champion, layer by layer, where it comes from, and how the run went.

Everything is read from the run's files, none of which can make anything run; torch is not needed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epicortex.cli.display import Point, fitness_plot, reasons
from epicortex.cli.parsing import Parser
from epicortex.text import NOTHING, clean, count, duration, json_text, percent, plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from epicortex.champion.file import Champion
    from epicortex.ecosystem.state import Event
    from epicortex.families.layered.genome import Genome, Layer, Shape
    from epicortex.run.lineage import Ancestor
    from epicortex.run.record import RunRecord
    from epicortex.storage import NetworkLine

_PLOT_HEIGHT: Final = 10
_FEW_ANCESTORS: Final = 12
_WIDEST: Final = 110


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex show RUN [options]"
    parser.add_argument("folder", metavar="RUN", type=Path, help="the folder of a run")
    parser.add_argument(
        "--all", action="store_true", help="every ancestor of the champion, not only the last"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    """Print what there is to know about a run."""
    story = read(arguments.folder)
    for note in story.run.notes:
        print(f"epicortex: {clean(note)}", file=sys.stderr)
    if arguments.json:
        print(json_text(as_json(story)))
        return 0
    from epicortex.cli.display import plain_console

    console = plain_console()
    console.width = min(console.width, _WIDEST)
    for part in _parts(story, console, every_ancestor=arguments.all):
        console.print(part)
    return 0


@dataclass(frozen=True, slots=True)
class Story:
    """What a run's files say."""

    run: RunRecord
    champion: Champion | None
    """None before the first generation is complete."""
    lineage: tuple[Ancestor, ...]
    failures: Counter[str]
    evaluations: int


def read(folder: Path) -> Story:
    """Read a run's folder; a `StorageError` says what is wrong with it."""
    from epicortex.run import lineage
    from epicortex.run.record import read_run

    record = read_run(folder)
    champion = record.champion() if record.history else None
    failures: Counter[str] = Counter()
    evaluations = 0

    def counted() -> Iterator[NetworkLine]:
        nonlocal evaluations
        for line in record.networks():
            evaluations += 1
            if line.failed is not None:
                failures[clean(line.failed)] += 1
            yield line

    # One pass, line by line: large runs leave gigabytes of them.
    lines = counted()
    ancestors: tuple[Ancestor, ...] = ()
    if champion is not None:
        ancestors = lineage.trace(lines, champion.facts.network, until=champion.facts.generation)
    for _ in lines:
        pass
    return Story(record, champion, ancestors, failures, evaluations)


def as_json(story: Story) -> dict[str, Any]:
    """The story as plain data. Fitness is a fraction from 0 to 1."""
    champion = story.champion
    return {
        "format": 1,
        "run": asdict(story.run.info),
        "status": status(story),
        "config": story.run.config.model_dump(mode="json"),
        "champion": None
        if champion is None
        else {
            **asdict(champion.facts),
            "genome": champion.genome.to_dict(),
            "description": str(champion.genome),
            "parameters": champion.genome.parameters,
            "layer_parameters": champion.genome.layer_parameters,
            "output_shapes": champion.genome.output_shapes,
        },
        "history": story.run.history,
        "lineage": [asdict(ancestor) for ancestor in story.lineage],
        "failures": dict(story.failures),
        "evaluations": story.evaluations,
    }


def status(story: Story) -> str:
    """Whether the run is over, and why."""
    from epicortex.ecosystem import budget
    from epicortex.run.consent import resume_command

    settings, history = story.run.config.evolution, story.run.history
    done = history[-1]["generation"] if history else 0
    best = story.champion.facts if story.champion else None
    if best is not None and settings.target is not None and best.fitness >= settings.target:
        return f"the target of {100 * settings.target:g} % is reached"
    if done >= settings.generations:
        return f"all {settings.generations} generations are done"
    if settings.trainings is not None and budget.spent(story.run.history, settings) >= settings.trainings:
        return f"all {settings.trainings} trainings are done"
    if best is not None and settings.plateau is not None and done - best.generation >= settings.plateau:
        return f"the highest fitness has not risen for {settings.plateau} generations"
    if settings.minutes is not None and _seconds(story) >= 60 * settings.minutes:
        return f"the {settings.minutes:g} minutes are over"
    command = resume_command(story.run.path, story.run.config)
    return f"{done} of {settings.generations} generations are done; {command} goes on"


def _seconds(story: Story) -> float:
    return sum(float(line["seconds"]) for line in story.run.history)


def _parts(story: Story, console: Console, *, every_ancestor: bool) -> Iterator[Any]:
    from rich.text import Text

    yield Text(clean(str(story.run.path)), style="bold")
    yield f"data      {clean(story.run.info.data)}, seed {story.run.config.evolution.seed}"
    yield f"run       {status(story)} ({duration(_seconds(story))})"
    if story.champion is None:
        yield "The first generation is not complete: there is no champion yet."
        return
    yield from _champion(story.champion)
    yield ""
    yield _layers(story.champion.genome)
    yield ""
    points = [
        Point(line["highest_fitness"], line["average_fitness"], line["offspring_fitness"])
        for line in story.run.history
    ]
    yield Text("Fitness in percent, over " + plural(len(points), "generation"), style="bold")
    yield fitness_plot(points, width=console.width - 1, height=_PLOT_HEIGHT)
    yield ""
    yield from _lineage(story.lineage, every=every_ancestor)
    if story.failures:
        failed = plural(story.failures.total(), "training")
        yield ""
        yield f"{failed} of {story.evaluations:,} failed: {reasons(story.failures, most=10)}"


def _champion(champion: Champion) -> Iterator[str]:
    facts = champion.facts
    tested = f", {percent(facts.test_accuracy)} on the test set" if facts.test_accuracy is not None else ""
    yield f"champion  network {facts.network} as it was in generation {facts.generation}"
    yield f"fitness   {percent(facts.fitness)} on the {clean(facts.fitness_on)} set{tested}"
    yield f"size      {plural(champion.genome.parameters, 'parameter')}, {champion.genome.species_key}"


def _layers(genome: Genome) -> Table:
    table = _table()
    for name in ("layer", "nodes"):
        table.add_column(name, no_wrap=True)
    table.add_column("kernels", ratio=1)
    for name in ("stride", "output"):
        table.add_column(name, no_wrap=True)
    table.add_column("parameters", justify="right", no_wrap=True)
    table.add_row("input", "", "", "", _times(genome.input_shape), "")
    rows = zip(genome.layers, genome.output_shapes, genome.layer_parameters, strict=True)
    for number, (layer, shape, parameters) in enumerate(rows, 1):
        stride = _times(layer.stride) if layer.type == "conv" else ""
        name = f"{number} {layer.type}"
        table.add_row(name, count(layer.nodes), kernels(layer), stride, _times(shape), count(parameters))
    return table


def kernels(layer: Layer) -> str:
    """The kernels of a layer, grouped by shape, the most frequent first.

    >>> from epicortex.families.layered.genome import ConvLayer
    >>> kernels(ConvLayer(((3, 3), (1, 5), (3, 3)), (1, 1)))
    '2 × 3×3, 1 × 1×5'
    """
    if layer.type != "conv":
        return ""
    groups = sorted(Counter(layer.kernels).items(), key=lambda group: (-group[1], group[0]))
    return ", ".join(f"{number} × {_times(shape)}" for shape, number in groups)


def _lineage(ancestors: Sequence[Ancestor], *, every: bool) -> Iterator[Any]:
    from rich.text import Text

    if not ancestors:
        yield Text("Lineage: not known, since networks.jsonl is gone", style="bold")
        return
    if len(ancestors) == 1:
        yield Text("Lineage: the champion is a founder", style="bold")
        return
    founders = [str(one.id) for one in ancestors if not one.parents] or ["before networks.jsonl begins"]
    some = founders[:10] + (["…"] if len(founders) > 10 else [])
    whose = f"network {some[0]}" if len(founders) == 1 else f"networks {', '.join(some)}"
    before = plural(len(ancestors) - 1, "ancestor")
    yield Text(f"Lineage: {before}, back to {plural(len(founders), 'founder')} ({whose})", style="bold")
    table = _table()
    for name in ("network", "born", "from"):
        table.add_column(name, no_wrap=True)
    for name in ("fitness", "parameters"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("mutations", ratio=1)
    shown = ancestors if every else ancestors[:_FEW_ANCESTORS]
    for one in shown:
        born = str(one.birth) if one.parents else NOTHING
        size = count(one.parameters)
        table.add_row(str(one.id), born, _origin(one), percent(one.fitness), size, _mutations(one.mutations))
    yield table
    if len(shown) < len(ancestors):
        yield f"… and {len(ancestors) - len(shown)} more; --all shows them"


def _origin(one: Ancestor) -> str:
    if not one.parents:
        return "founder"
    return f"clone of {one.parents[0]}" if len(one.parents) == 1 else " × ".join(map(str, one.parents))


def _mutations(events: Sequence[Event]) -> str:
    """The mutations by type and direction, such as "3 kernel +, 1 layer −"."""
    signs = {"grow": "+", "shrink": "−"}
    groups = Counter(f"{clean(event.type)} {signs[event.direction]}" for event in events)
    return ", ".join(f"{number} {name}" for name, number in groups.most_common())


def _table() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=True)


def _times(shape: Shape) -> str:
    return "×".join(map(str, shape))
