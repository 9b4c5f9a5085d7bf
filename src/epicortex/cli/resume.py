"""`epicortex resume`: go on where a run stopped, with the settings that may change."""

from __future__ import annotations

import argparse
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from epicortex.cli import progress
from epicortex.cli.evolve import SHORT, add_common, chosen_fitness, chosen_optimiser
from epicortex.cli.parsing import Parser, add_settings, add_short, add_trust, settings_given

if TYPE_CHECKING:
    from epicortex.run.lifecycle import Result, Watcher

_SHORT: Final = {
    "--generations": ("evolution.generations", "how many generations in all, those done included"),
    "--minutes": ("evolution.minutes", "stop after this many minutes in all, those spent included"),
    "--target": ("evolution.target", "stop at this fitness, such as 97%% or 0.97"),
    "--workers": ("training.workers", "how many networks train at the same time"),
    "--engine": ("training.engine", "who trains: serial, processes, ray or mpi"),
    "--data-dir": ("data.directory", "where the built-in data sets are"),
}


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    from epicortex.config import MAY_CHANGE_ON_RESUME

    parser.usage = "epicortex resume RUN [options]"
    parser.add_argument("folder", metavar="RUN", type=Path, help="the folder of the run")
    add_short(parser, _SHORT)
    # Known, so that the reason for which they are refused can be given.
    fixed = {option: (name, argparse.SUPPRESS) for option, (name, _) in SHORT.items() if option not in _SHORT}
    add_short(parser, fixed)
    add_common(parser)
    add_trust(parser)
    add_settings(parser, MAY_CHANGE_ON_RESUME)


def run(arguments: argparse.Namespace) -> int:
    """Go on, and say where the results are."""
    from epicortex import engines
    from epicortex import registry as plugins
    from epicortex.config import changed, fields
    from epicortex.run import consent
    from epicortex.storage.folder import read_config

    changes, _ = settings_given(arguments)
    before, info = read_config(arguments.folder)
    config = changed(before, **fields.by_section(changes))
    consent.check_engine(config, changes)
    if engines.enlisted(config.training.engine):
        return 0
    extensions = plugins.load(arguments.plugin)

    def go(watcher: Watcher, stop: threading.Event) -> Result:
        from epicortex.run.lifecycle import resume

        return resume(
            arguments.folder,
            changes,
            operators=extensions.operators,
            fitness=chosen_fitness(config, extensions),
            optimiser=chosen_optimiser(config, extensions),
            parts=extensions.parts,
            trust=arguments.trust,
            watcher=watcher,
            stop=stop,
        )

    return progress.watch(arguments, data=info.data, folder=arguments.folder, config=config, go=go)
