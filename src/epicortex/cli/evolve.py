"""`epicortex evolve`: options to a config, a config to a run."""

from __future__ import annotations

import argparse
import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from epicortex.cli import progress
from epicortex.cli.parsing import (
    Parser,
    SettingAction,
    UsageError,
    add_plugin,
    add_settings,
    add_short,
    settings_given,
)

if TYPE_CHECKING:
    from epicortex.config import Config
    from epicortex.registry import FromFile, Plugins
    from epicortex.run.lifecycle import Result, Watcher
    from epicortex.run.repeating import Repeated

#: The settings that everyone needs, under short names.
SHORT: Final = {
    "--seed": ("evolution.seed", "every random choice follows from this number (1)"),
    "--generations": ("evolution.generations", "count generations instead of minutes"),
    "--minutes": ("evolution.minutes", "how long it may take, from the start to the test figure (10)"),
    "--target": ("evolution.target", "stop at this fitness, such as 97%%, 0.97 or a reward of 475"),
    "--max-parameters": ("evolution.max_parameters", "refuse larger networks than this"),
    "--family": (
        "family",
        "the kind of network: residual, layered, unstructured, or of a plug-in (residual)",
    ),
    "--evaluator": ("evaluator", "how networks get their fitness: backprop, episodes, or of a plug-in"),
    "--workers": ("training.workers", "how many networks train at the same time (one a core)"),
    "--engine": ("training.engine", "who trains: serial, processes, ray or mpi (processes)"),
    "--device": ("training.device", "where networks train: cpu, cuda, cuda:N or mps (cpu)"),
    "--data-dir": ("data.directory", "where the built-in data sets are"),
}
_RUNS: Final = Path("runs")


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex evolve DATA [options]"
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        help="a built-in name (epicortex data), a task (xor, pole, double-pole, …) or a path",
    )
    parser.add_argument(
        "--preset",
        metavar="NAME|FILE.toml",
        help="default, layered, paper, published, residual, task or a file (default; task for tasks)",
    )
    parser.add_argument("--out", metavar="RUN", type=Path, help="the run's new folder (runs/DATA-N)")
    add_short(parser, SHORT)
    parser.add_argument(
        "--no-speciation",
        dest="evolution.speciation",
        action=SettingAction,
        nargs=0,
        const="none",
        default=argparse.SUPPRESS,
        help="any two networks may mate, not only those of one species",
    )
    parser.add_argument(
        "--plan", metavar="RUN", type=Path, help="repeat the work of a planned run, on any number of workers"
    )
    parser.add_argument(
        "--from",
        dest="ancestor",
        metavar="RUN",
        type=Path,
        help="start from RUN's champion, also with other classes",
    )
    parser.add_argument("--watch", action="store_true", help="show the run as a live page in a browser")
    add_common(parser)
    add_settings(parser)


def add_common(parser: Parser) -> None:
    """The options that `resume` has as well."""
    parser.add_argument("--quiet", action="store_true", help="print the final result only")
    add_plugin(parser)


def run(arguments: argparse.Namespace) -> int:
    """Evolve, and say where the results are."""
    from epicortex import engines, machine, tasks
    from epicortex import registry as plugins
    from epicortex.config import resolving as settings

    changes, called = settings_given(arguments)
    # no file chooses an engine that has ranks; plug-ins and their errors are for the one that leads
    if "training.engine" in changes and engines.enlisted(str(changes["training.engine"])):
        return 0
    extensions = plugins.load(arguments.plugin)
    repeats = _repeats(arguments.plan)
    if repeats is not None:
        changes = {**repeats.settings, **changes}
    preset, suited = tasks.preset_for(arguments.data, extensions.parts["task"])
    if arguments.preset not in (None, preset):
        preset, suited = arguments.preset, {}
    config = settings.resolve(preset, {**suited, **changes}, called=called)
    source: str | None = arguments.data or config.data.source
    if source is None:
        raise UsageError("DATA is missing: a built-in name or a path, as in epicortex evolve digits")
    began = time.monotonic() - machine.process_age()
    folder, fresh = (arguments.out, False) if arguments.out else (_fresh_folder(source), True)

    def go(watcher: Watcher, stop: threading.Event) -> Result:
        from epicortex.run.lifecycle import evolve
        from epicortex.run.record import load_champion

        return evolve(
            source,
            config,
            out=folder,
            operators=extensions.operators,
            fitness=chosen_fitness(config, extensions),
            optimiser=chosen_optimiser(config, extensions),
            parts=extensions.parts,
            ancestor=load_champion(arguments.ancestor, extensions.parts) if arguments.ancestor else None,
            watcher=watcher,
            stop=stop,
            command=arguments.command_line,
            repeats=repeats,
            began=began,
        )

    if arguments.watch:
        _show_live(folder, arguments.plugin)
    try:
        return progress.watch(arguments, data=source, folder=folder, config=config, go=go)
    finally:
        if fresh:
            # A run that was refused leaves no empty folder; one that began is not empty.
            with suppress(OSError):
                folder.rmdir()


def _show_live(folder: Path, plugins: Sequence[Path]) -> None:
    """Start a server for the run's page, which outlives the run until nobody looks, and say where it is."""
    import subprocess
    import sys

    words = [sys.executable, "-m", "epicortex", "watch", str(folder), "--until-end"]
    for plugin in plugins:
        words += ["--plugin", str(plugin)]
    server = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert server.stdout is not None
    for _ in range(2):  # the address and a hint, or why there is none
        if line := server.stdout.readline().rstrip():
            print(line, file=sys.stderr, flush=True)


def _repeats(run: Path | None) -> Repeated | None:
    """The planned run whose work is done again, if one is named."""
    if run is None:
        return None
    from epicortex.run.repeating import repeated

    return repeated(run)


def chosen_fitness(config: Config, extensions: Plugins) -> FromFile | None:
    """The plug-in's function that the config names, if it names one."""
    return extensions.fitness.get(config.training.fitness)


def chosen_optimiser(config: Config, extensions: Plugins) -> FromFile | None:
    """The plug-in's optimiser that the config names, if it names one."""
    return extensions.optimisers.get(config.training.optimiser)


def _fresh_folder(source: str) -> Path:
    """A new folder runs/<data>-<n>, made here so that no other process can choose the same."""
    from epicortex.storage.atomic import explained

    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(source).stem).strip("-.")[:60] or "data"
    with explained(_RUNS):
        _RUNS.mkdir(exist_ok=True)
        number = 1
        while True:
            folder = _RUNS / f"{name}-{number}"
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
            else:
                return folder
