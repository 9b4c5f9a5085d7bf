"""How many evaluations our tasks take, beside neat-python, in one harness: `python -m benchmarks.tasks`.

An evaluation is one network that was given its fitness; champions that live on are counted again in every
generation. A task is solved by the same test for both: XOR when all four outputs are on the right side of a
half by 0.1; two poles with velocities after 100,000 steps; without velocities when the champion of a
generation by Gruau's fitness also balances for 100,000 steps and from 200 of the 625 other starts; an
environment of gymnasium when a network has its threshold in 100 fresh episodes. Ours is then tested on 100
more (`tested`).

neat-python comes from PyPI (`pip install neat-python`) and is no part of the project. For XOR it has the
values of its own example; for poles those in POLES below, tuned by `python -m benchmarks.neat_tuning` on
seeds that are not shown. The lines of all seeds that docs/tasks.md sums up are in tasks.jsonl.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from epicortex.config import resolving
from epicortex.ecosystem.jobs import Outcome
from epicortex.evolution import Evolution
from epicortex.families.unstructured import UnstructuredFamily
from epicortex.families.unstructured.activations import NAMES
from epicortex.families.unstructured.network import Wiring
from epicortex.randomness import generator
from epicortex.tasks import TASKS, find, poles, preset_for
from epicortex.tasks.gym import PREFIX
from epicortex.tasks.physics import Policy, balance
from epicortex.tasks.xor import Xor

#: Above this many evaluations a run counts as unsolved, and as having taken so many.
LIMITS: Final = {
    "xor": 50_000,
    "double-pole": 50_000,
    "double-pole-no-velocities": 100_000,
    "gym:CartPole-v1": 50_000,
    "gym:LunarLander-v3": 100_000,
}


class Solved(Exception):
    """The task is solved, after so many evaluations."""


class Judge:
    """Gives networks their fitness, counts, and says when the task is solved."""

    def __init__(self, name: str) -> None:
        self.task = find(name)
        self.limit = LIMITS[name]
        self.evaluations = 0
        self.tested: float | None = None
        self._best: tuple[float, int, Policy] | None = None

    def fitness(self, policy: Policy, seed: int = 1, generation: int = 1) -> float:
        """The fitness of one network; `Solved` where a single network can solve the task."""
        self.evaluations += 1
        if isinstance(self.task, poles.Gruau):
            fitness, steps = poles.gruau(policy, self.task)
            if self._best is None or fitness > self._best[0]:
                self._best = fitness, steps, policy
            return fitness
        rng = generator(seed, "episodes", generation=generation)
        fitness = self.task.reward(policy, rng, lambda: None)
        assert self.task.solved is not None
        if fitness >= self.task.solved:
            self.tested = self.task.test(policy, generator(seed, "test episodes"))
            raise Solved
        return fitness

    def end_of_generation(self) -> None:
        """Try the champion of a generation, where that is how the task is solved."""
        if self._best is None:
            return
        (_, steps, policy), self._best = self._best, None
        task = self.task
        assert isinstance(task, poles.Gruau)
        if steps < poles.SHORT or balance(policy, task.world, task.start, poles.LONG)[0] < poles.LONG:
            return
        if poles.starts_balanced(policy, task.world) >= poles.ENOUGH:
            raise Solved


def ours(name: str, judge: Judge, seed: int, changes: dict[str, Any]) -> None:
    """A run of EpiCortex as `epicortex evolve NAME` has it, without files."""
    preset, suited = preset_for(name)
    config = resolving.resolve(preset, {**suited, **changes, "evolution.seed": seed})
    family = UnstructuredFamily.from_config(config, judge.task.problem)
    evolution = Evolution(config, family)
    state = evolution.start()
    while judge.evaluations < judge.limit:
        outcomes = []
        for job in evolution.ask(state):
            fitness = judge.fitness(family.build(job.phenotype), job.seed, job.generation)
            outcomes.append(Outcome(job.network, job.generation, job.phenotype, fitness, fitness))
        judge.end_of_generation()
        state = evolution.tell(state, outcomes).state


#: The values of neat-python's own XOR example.
XOR: Final[dict[str, dict[str, Any]]] = {
    "NEAT": {
        "fitness_criterion": "max",
        "fitness_threshold": 3.9,
        "pop_size": 150,
        "reset_on_extinction": False,
        "no_fitness_termination": True,
    },
    "DefaultGenome": {
        "activation_default": "sigmoid",
        "activation_mutate_rate": 0.0,
        "activation_options": "sigmoid",
        "aggregation_default": "sum",
        "aggregation_mutate_rate": 0.0,
        "aggregation_options": "sum",
        "bias_init_mean": 0.0,
        "bias_init_stdev": 1.0,
        "bias_init_type": "gaussian",
        "bias_max_value": 30.0,
        "bias_min_value": -30.0,
        "bias_mutate_power": 0.5,
        "bias_mutate_rate": 0.7,
        "bias_replace_rate": 0.1,
        "compatibility_disjoint_coefficient": 1.0,
        "compatibility_weight_coefficient": 0.5,
        "conn_add_prob": 0.5,
        "conn_delete_prob": 0.5,
        "enabled_default": True,
        "enabled_mutate_rate": 0.01,
        "enabled_rate_to_true_add": 0.0,
        "enabled_rate_to_false_add": 0.0,
        "feed_forward": True,
        "initial_connection": "full",
        "node_add_prob": 0.2,
        "node_delete_prob": 0.2,
        "num_hidden": 0,
        "num_inputs": 2,
        "num_outputs": 1,
        "response_init_mean": 1.0,
        "response_init_stdev": 0.0,
        "response_init_type": "gaussian",
        "response_max_value": 30.0,
        "response_min_value": -30.0,
        "response_mutate_power": 0.0,
        "response_mutate_rate": 0.0,
        "response_replace_rate": 0.0,
        "single_structural_mutation": False,
        "structural_mutation_surer": "default",
        "weight_init_mean": 0.0,
        "weight_init_stdev": 1.0,
        "weight_init_type": "gaussian",
        "weight_max_value": 30,
        "weight_min_value": -30,
        "weight_mutate_power": 0.5,
        "weight_mutate_rate": 0.8,
        "weight_replace_rate": 0.1,
    },
    "DefaultSpeciesSet": {"compatibility_threshold": 3.0},
    "DefaultStagnation": {"species_fitness_func": "max", "max_stagnation": 20, "species_elitism": 2},
    "DefaultReproduction": {"elitism": 2, "survival_threshold": 0.2, "min_species_size": 2},
}
#: What differs for poles.
POLES: Final[dict[str, dict[str, Any]]] = {
    "DefaultGenome": {
        "activation_default": "tanh",
        "activation_options": "tanh",
        "conn_add_prob": 0.1,
        "conn_delete_prob": 0.1,
        "node_add_prob": 0.05,
        "node_delete_prob": 0.05,
    },
    # a quarter of the evaluations that 0.2 takes
    "DefaultReproduction": {"survival_threshold": 0.1},
}


def neat_values(name: str, changes: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """All values of neat-python for a task; `changes` are by section and name, with a dot between."""
    values = {section: dict(found) for section, found in XOR.items()}
    if name != "xor":
        for section, found in POLES.items():
            values[section] |= found
        values["DefaultGenome"] |= {
            "num_inputs": TASKS[name].problem.input_shape[0],
            "feed_forward": not name.endswith("no-velocities"),
        }
    for key, value in (changes or {}).items():
        section, _, own = key.partition(".")
        values[section][own] = value
    return values


def theirs(name: str, judge: Judge, seed: int, changes: dict[str, Any]) -> None:
    """A run of neat-python, its networks judged by our tasks; their seed is Python's own generator's."""
    import random

    import neat

    random.seed(seed)
    config = neat_config(name, changes)

    def evaluate(genomes: Sequence[tuple[int, Any]], config: Any) -> None:
        for _, genome in genomes:
            genome.fitness = judge.fitness(Theirs(genome, config))
            if name == "xor":
                # their example's fitness, so that its values suit it
                genome.fitness = 4.0 - squares(Theirs(genome, config))
        judge.end_of_generation()
        if judge.evaluations >= judge.limit:
            raise TimeoutError

    try:
        neat.Population(config).run(evaluate, 10**9)
    except TimeoutError:
        pass
    except RuntimeError:  # it cannot share out so few places among so many species: unsolved
        judge.evaluations = judge.limit


def neat_config(name: str, changes: Mapping[str, Any] | None = None) -> Any:
    """What neat-python reads from a file."""
    import neat

    text = "\n".join(
        "\n".join([f"[{section}]", *(f"{key} = {value}" for key, value in found.items())])
        for section, found in neat_values(name, changes).items()
    )
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
        file.write(text)
        file.flush()
        return neat.Config(
            neat.DefaultGenome,
            neat.DefaultReproduction,
            neat.DefaultSpeciesSet,
            neat.DefaultStagnation,
            file.name,
        )


def squares(policy: Policy) -> float:
    """The sum of squared errors in XOR."""
    cases = (((0.0, 0.0), 0), ((0.0, 1.0), 1), ((1.0, 0.0), 1), ((1.0, 1.0), 0))
    return sum((Xor._output(policy, case) - truth) ** 2 for case, truth in cases)


class Theirs:
    """A network of neat-python as a policy."""

    def __init__(self, genome: Any, config: Any) -> None:
        import neat

        kind = neat.nn.FeedForwardNetwork if config.genome_config.feed_forward else neat.nn.RecurrentNetwork
        self._network = kind.create(genome, config)
        if kind is neat.nn.RecurrentNetwork:
            self.wiring = None  # type: ignore[assignment, method-assign]

    def reset(self) -> None:
        """Forget."""
        if hasattr(self._network, "reset"):
            self._network.reset()

    def wiring(self) -> Wiring:
        """A feed-forward network for the compiled episodes, so that its runs do not take hours."""
        network = self._network
        numbers = {key: place for place, key in enumerate(network.input_nodes, 1)}
        out = len(numbers) + 1
        numbers[network.output_nodes[0]] = out
        for node, *_ in network.node_evals:
            numbers.setdefault(node, len(numbers) + 1)
        plan = [
            (numbers[node], [(0, bias), *((numbers[one], response * weight) for one, weight in links)])
            for node, _, _, bias, response, links in network.node_evals
        ]
        pairs = [pair for _, wires in plan for pair in wires]
        return Wiring(
            len(network.input_nodes),
            1,
            len(numbers),
            1,
            np.array([target for target, _ in plan], np.int32),
            np.full(len(plan), NAMES.index("tanh"), np.int32),
            np.array([0, *np.cumsum([len(wires) for _, wires in plan])], np.int32),
            np.array([source for source, _ in pairs], np.int32),
            np.array([weight for _, weight in pairs], np.float64),
        )

    def act(self, observation: Sequence[float]) -> Sequence[float]:
        """The outputs for one observation."""
        outputs: Sequence[float] = self._network.activate(observation)
        return outputs


def one_run(who: str, name: str, seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """How a run went, as a line of the results."""
    judge, solved, began = Judge(name), False, time.process_time()
    try:
        {"ours": ours, "neat-python": theirs}[who](name, judge, seed, changes)
    except Solved:
        solved = True
    line = {
        "who": who,
        "task": name,
        "seed": seed,
        "solved": solved,
        "evaluations": judge.evaluations,
        "seconds": round(time.process_time() - began, 2),
    }
    return line if judge.tested is None or not name.startswith(PREFIX) else {**line, "tested": judge.tested}


#: The order of the table, and what the literature has.
PUBLISHED: Final = {
    "xor": "4,755 (NEAT)",
    "double-pole": "3,600 (NEAT), 954 (CoSyNE), 895 (CMA-ES)",
    "double-pole-no-velocities": "33,184 (NEAT), 3,416 (CoSyNE, another fitness)",
    "gym:CartPole-v1": "",
    "gym:LunarLander-v3": "",
}
WHO: Final = {"ours": "EpiCortex", "neat-python": "neat-python 2.0.0"}
KEPT: Final = Path(__file__).with_name("tasks.jsonl")


def table(lines: Sequence[dict[str, Any]]) -> str:
    """A row for each task and each of the two."""
    head = [
        "| task | | seeds | evaluations | median | range | unsolved | CPU s | at most | published |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups = {
        (task, who): [line for line in lines if (line["task"], line["who"]) == (task, who)]
        for task in PUBLISHED
        for who in WHO
    }
    return "\n".join([*head, *(_row(task, who, found) for (task, who), found in groups.items() if found)])


def _row(task: str, who: str, lines: Sequence[dict[str, Any]]) -> str:
    counts = sorted(line["evaluations"] for line in lines)
    spread = statistics.stdev(counts) if len(counts) > 1 else 0.0
    unsolved = sum(not line["solved"] for line in lines)
    seconds = [line["seconds"] for line in lines]
    cells = (
        f"`{task}`",
        WHO[who],
        f"{len(lines)}",
        f"{statistics.mean(counts):,.0f} ± {spread:,.0f}",
        f"{statistics.median(counts):,.0f}",
        f"{counts[0]:,} to {counts[-1]:,}",
        f"{unsolved}",
        f"{statistics.mean(seconds):.2f}",
        f"{max(seconds):.1f}",
        PUBLISHED[task] if who == "ours" else "",
    )
    return f"| {' | '.join(cells)} |"


def kept() -> list[dict[str, Any]]:
    """The lines of all seeds that were kept."""
    return [json.loads(line) for line in KEPT.read_text().splitlines()]


def keep(lines: Sequence[dict[str, Any]]) -> None:
    """Add lines to those that are kept; a seed that was there is replaced."""
    everything = {(line["task"], line["who"], line["seed"]): line for line in (*kept(), *lines)}
    places = list(PUBLISHED)
    ordered = sorted(
        everything.values(), key=lambda line: (places.index(line["task"]), -ord(line["who"][0]), line["seed"])
    )
    KEPT.write_text("".join(json.dumps(line) + "\n" for line in ordered))


def main() -> None:
    """Run the seeds asked for, print every one of them, and end with a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(LIMITS))
    parser.add_argument("--who", nargs="+", default=list(WHO), choices=list(WHO))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument(
        "--set", type=json.loads, default={}, help="other settings of one of them, as a JSON object"
    )
    parser.add_argument("--keep", action="store_true", help="keep the lines in tasks.jsonl, seed by seed")
    parser.add_argument("--table", action="store_true", help="only print the table of what is kept")
    asked = parser.parse_args()
    if asked.table:
        print(table(kept()))
        return
    lines = []
    for name in asked.tasks or ["xor", "double-pole"]:
        for who in asked.who:
            for seed in range(asked.first, asked.first + asked.seeds):
                lines.append(one_run(who, name, seed, asked.set))
                print(json.dumps(lines[-1]), flush=True)
                if asked.keep:
                    keep(lines[-1:])
    print(table(lines))


if __name__ == "__main__":
    main()
