"""`epicortex play`: the champion at its task, as an animation that any browser shows."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from epicortex.cli.parsing import Parser, UsageError, add_plugin

if TYPE_CHECKING:
    from numpy.random import Generator

    from epicortex.champion.file import Champion
    from epicortex.tasks import Policy, Task


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex play RUN [options]"
    parser.add_argument("folder", metavar="RUN", type=Path, help="the folder of a run for a task")
    parser.add_argument(
        "--out",
        "--to",
        metavar="FILE",
        type=Path,
        help="a .gif, or an .mp4 with the extra film (RUN/play.gif); the report shows RUN/play.gif or .mp4",
    )
    parser.add_argument("--seconds", metavar="X", type=float, default=8.0, help="how long it plays (8)")
    parser.add_argument(
        "--seed", metavar="N", type=int, default=1, help="of the episode, where it has chance"
    )
    add_plugin(parser)


def run(arguments: argparse.Namespace) -> int:
    """Record an episode, or print the answers where there is nothing to see."""
    from epicortex import randomness, registry, tasks
    from epicortex.errors import DataError
    from epicortex.evaluation.policies import policy_of, scaled
    from epicortex.run.record import load_champion, read_run
    from epicortex.tasks.xor import Xor

    parts = registry.load(arguments.plugin).parts
    if not 0 < arguments.seconds <= 600:
        raise UsageError(f"--seconds is {arguments.seconds:g}; it must be above 0 and at most 600")
    champion = load_champion(arguments.folder, parts)
    task = tasks.given(read_run(arguments.folder).config.data.source, parts["task"])
    if task is None or not champion.facts.is_reward:
        raise DataError(f"{arguments.folder} is no run for a task; epicortex predict uses its champion")
    policy = scaled(policy_of(champion.network(), champion.outline.input_shape), champion.scaling)
    if isinstance(task, Xor):
        _print_cases(policy)
        return 0
    path = arguments.out or arguments.folder / "play.gif"
    if path.suffix.lower() not in (".gif", ".mp4"):
        raise UsageError(f"--out {path}: the film is a .gif or an .mp4, so its name must end like that")
    rng = randomness.generator(arguments.seed, "play")
    seconds = _record(task, policy, path, arguments.seconds, rng)
    print(f"{path}: {_said(champion)}, {seconds:.1f} s of it")
    return 0


def _said(champion: Champion) -> str:
    return f"network {champion.facts.network} of generation {champion.facts.generation}"


def _record(task: Task, policy: Policy, path: Path, seconds: float, rng: Generator) -> float:
    from epicortex.storage import atomic
    from epicortex.tasks import film

    pictures = list(film.frames(task, policy, seconds=seconds, rng=rng))
    encode = film.mp4 if path.suffix.lower() == ".mp4" else film.gif
    atomic.replace_file(path, [encode(pictures)])
    return len(pictures) / film.RATE


def _print_cases(policy: Policy) -> None:
    from epicortex.tasks.xor import CASES

    for case, truth in CASES:
        policy.reset()
        a, b = (int(bit) for bit in case)
        print(f"{a} xor {b} = {truth}   the network says {policy.act(case)[0]:.3f}")
