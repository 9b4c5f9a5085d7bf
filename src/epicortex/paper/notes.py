"""What is said about an experiment as a whole: how complete it is, and how it compares with the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from epicortex.config.fields import shown, value_of
from epicortex.paper.published import GENERATIONS, INITIAL_NETWORKS, MAX_NETWORKS, RUNS
from epicortex.paper.results import Results
from epicortex.paper.tables import is_paper_size, other_settings, size_words
from epicortex.text import plural

BUDGET: Final = (
    "The cost of a run is counted in trainings: one network trained in one generation on its portion of the "
    "training set is one training, also if it fails. A control may spend exactly as many as the run with the "
    "same data, mode and seed did; where its last generation would take more, only as many networks are "
    "trained as are left, drawn evenly, and the others are scored as they are. The average fitness is that "
    "of the last generation in which all were trained. The highest is the best of unequally many networks, "
    "chosen by the samples that it is measured on, which favours whoever has more of them."
)
BANDS: Final = "Curves are means over the runs; bands reach from the lowest run to the highest."
TESTS: Final = (
    "p is that of the two-sided Mann-Whitney test; p (Holm) takes into account how many rows the table has."
)
DEVIATIONS: Final = "Deviations are standard deviations with n − 1; a single run has none."


def standing(results: Results) -> Iterator[str]:
    """How complete the experiment is, and how it compares with the paper's."""
    counting = sum(one.counts for one in results.runs)
    wanting = len(results.runs) - counting
    if results.complete:
        yield f"Complete: {plural(counting, 'run')}, all finished."
    else:
        parts = [f"{plural(counting, 'run')} finished"]
        parts += [f"{wanting} begun that {'does' if wanting == 1 else 'do'} not count"] if wanting else []
        parts += [f"{len(results.due)} not begun"] if results.due else []
        yield f"Incomplete: {', '.join(parts)}."
    numbers = [len(results.of(one)) for one in results.experiments if one.control is None]
    if numbers and min(numbers) < RUNS:
        most = f"{min(numbers)} to {max(numbers)}" if min(numbers) < max(numbers) else f"{max(numbers)}"
        yield (
            f"The paper has {RUNS} runs of each experiment; the runs that count here are {most} of each. "
            "Few runs tell little about how much runs differ."
        )
    if not is_paper_size(results.plan.config):
        yield (
            f"These runs are of another size than the paper's: {size_words(results.plan.config)}, against "
            f"{INITIAL_NETWORKS} → {MAX_NETWORKS} networks and {GENERATIONS} generations. The published "
            "figures stand beside ours for orientation only."
        )
    if names := other_settings(results.plan.config):
        values = (f"{name} is {shown(value_of(results.plan.config, name))}" for name in names)
        yield f"These runs have other settings than the preset paper: {', '.join(values)}."
    if results.plan.config.training.fitness_on == "test":
        yield (
            "As in the paper, fitness is the accuracy on the test set, which evolution selects by: these "
            "figures compare with the published ones, and overestimate how well a network generalises."
        )
