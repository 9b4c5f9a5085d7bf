"""What each section of the page says: words, tables and drawings, ready for the template.

The sentences of the first section are `narrative`'s, the plots `figures`'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from epicortex.champion.file import Champion
from epicortex.pages import commands
from epicortex.report import amounts, anatomy, graphs, legend, narrative, tables, tree, usage
from epicortex.report.amounts import Judged
from epicortex.report.answer import ACCURACY, answer
from epicortex.report.material import Material
from epicortex.report.mistakes import Tested
from epicortex.report.summary import kernel_counts
from epicortex.storage.folder import is_own
from epicortex.text import NOTHING, apart, count, duration, listed, one_line, plural, share, times

#: In the order of the reader: the answer, the model, and then how it came about.
NAMES: Final = {
    "summary": "The answer",
    "mistakes": "What it gets wrong",
    "data": "The data",
    "use": "Use it",
    "try": "Try it",
    "models": "Smaller models",
    "story": "What happened",
    "fitness": "Fitness",
    "species": "Species",
    "sizes": "Parameters",
    "champion": "Architecture",
    "kernels": "Kernels",
    "family": "Family tree",
    "mutations": "Mutations",
    "time": "Time",
    "failures": "Failures",
    "config": "Config",
}
#: Names of classes up to this length stand upright over the confusion matrix.
_SHORT_CLASS: Final = 3
_MARKS: Final = {
    "circle": "kernel",
    "triangle": "node",
    "square": "layer",
    "diamond": "stride",
    "cross": "other",
}


def content(material: Material) -> dict[str, Any]:
    """All that the template asks for, but for scripts and styles."""
    names = NAMES
    if material.champion is not None and material.champion.facts.task == "regression":
        names = {**NAMES, "mistakes": "How far off it is"}
    found: dict[str, Any] = {
        "champion": None,
        "judged": None,
        "names": names,
        "facts": [],
        "answer": None,
        "sentences": [],
        "warnings": [],
    }
    found |= _heading(material) | _config(material)
    if material.champion is not None:
        champion = material.champion
        found |= answer(material, champion) | _overview(material) | _champion(material, champion)
        found["graph"] = graphs.draw(champion)
        found["film"] = graphs.film(material.run.path)
        found |= _use(material, champion) | _family(material) | _mutations(material)
        found |= _mistakes(material) | _time(material)
    found["tables"] = {name: make(material) for name, make in _TABLES.items()} if material.champion else {}
    found["tables"] |= {"failures": tables.failures(material), "failed": tables.failed(material)}
    found["tables"]["versions"] = tables.versions(material)
    found["present"] = _present(material, found)
    found["contents"] = [(id, name) for id, name in names.items() if id in found["present"]]
    return found


def _present(material: Material, found: dict[str, Any]) -> set[str]:
    """The sections that have something to say."""
    if material.champion is None:
        always = {"summary", "config"}
    else:
        always = set(NAMES) - {"failures", "data", "models", "try", "kernels"}
        always -= {"mistakes"} if material.champion.facts.is_reward else set()
        always |= {"data"} if found["tested"] or found["judged"] else set()
        always |= {"models"} if found["tables"]["models"] else set()
        always |= {"try"} if found["try_shape"] else set()
        always |= {"kernels"} if found["kernel_layers"] or found["tables"]["shapes"] else set()
    return always | ({"failures"} if found["tables"]["failures"] else set())


_TABLES: Final = {
    "classes": tables.classes,
    "suspects": tables.suspects,
    "models": usage.models,
    "phases": tables.phases,
    "fitness": tables.fitness,
    "species": tables.species,
    "front": tables.front,
    "shapes": tables.shapes,
    "family": tables.family,
    "mutations": tables.mutations,
    "pairs": tables.pairs,
    "time": tables.time,
}


def _heading(material: Material) -> dict[str, Any]:
    data = one_line(material.run.info.data)
    failures = material.summary.failures.total()
    everyone = count(material.summary.evaluated + failures)
    return {
        "title": f"{data}: EpiCortex report",
        "heading": f"Networks for {data}",
        "status": narrative.status(material),
        "seed": material.run.config.evolution.seed,
        "started": one_line(material.run.info.started[:10]),
        "paragraphs": list(narrative.paragraphs(material)),
        "failures_about": f"{plural(failures, material.unit.work)} of {everyone} failed. A network that "
        "fails is taken out of the ecosystem; the run goes on.",
    }


def _config(material: Material) -> dict[str, Any]:
    config, info = material.run.config, material.run.info
    notes = []
    if config.data.source is None:
        notes.append("The data was handed over by a program, so DATA stands for it.")
    if info.ancestor:
        notes.append("The run began with another run's champion: add --from and that run's folder.")
    return {
        "command": commands.evolve_command(config, "again"),
        "command_notes": notes,
        # nobody is to copy a command that somebody else wrote in our name
        "typed": one_line(info.command, 5000) if is_own(material.run.path) else "",
        "preset": commands.nearest_preset(config),
        "settings": commands.setting_rows(config),
    }


def _overview(material: Material) -> dict[str, Any]:
    summary = material.summary
    dots = "Every network of every generation is a dot"
    if len(summary.points) < summary.evaluated:
        dots = f"{count(len(summary.points))} of {count(summary.evaluated)} networks, evenly chosen, are dots"
    return {
        "species_about": f"{plural(len(summary.species), 'species', 'species')} lived in this run"
        f"{_coloured(len(summary.species))}.",
        "sizes_about": f"{dots}, the later the stronger in colour. Of two equally fit networks, evolution "
        "values the smaller more.",
    }


def _coloured(species: int) -> str:
    """Which species have a colour of their own.

    >>> _coloured(1), _coloured(11), _coloured(40)
    ('', '; each has a colour of its own', '; the 16 largest have a colour of their own')
    """
    if species <= 1:
        return ""
    if species <= legend.MOST_SPECIES:
        return "; each has a colour of its own"
    return f"; the {legend.MOST_SPECIES} largest have a colour of their own"


def _use(material: Material, champion: Champion) -> dict[str, Any]:
    shape = champion.outline.input_shape if usage.payload(champion) else ()
    return {
        "ways": usage.ways(material, champion),
        "device": usage.device(champion),
        "try_shape": shape,
        "smaller": usage.smaller(material),
    }


def _champion(material: Material, champion: Champion) -> dict[str, Any]:
    facts, own = champion.facts, kernel_counts(champion.outline)
    common = legend.last_shapes(material.summary)
    settled = ""
    if common:
        settled = f"In the last generation, {listed(map(times, common))} are the most frequent"
        settled += f"; the champion has {plural(len(own), 'shape')} of kernels." if own else "."
    return {
        "champion": {
            "network": facts.network,
            "generation": facts.generation,
            "fitness": material.unit.text(facts.fitness),
            "parameters": plural(champion.outline.parameters, "parameter"),
            "facts": "; ".join(
                f"{one_line(name)}: {one_line(value)}" for name, value in champion.outline.facts.items()
            ),
        },
        "stations": anatomy.stations(champion.outline),
        "kernel_layers": anatomy.kernel_layers(champion),
        "shapes_about": settled,
    }


def _family(material: Material) -> dict[str, Any]:
    drawn = tree.draw(material.lineage, material.summary, material.unit)
    lineage = material.lineage
    changes = _some(sum(len(one.mutations) for one in lineage), "mutation")
    more = " and training" if material.unit.trained else ""
    if len(lineage) == 1:
        about = f"The champion is a founder: it was there from the start, and has seen {changes}{more}."
    else:
        mates = _some(sum(len(one.parents) == 2 for one in lineage), "crossover")
        clones = _some(sum(len(one.parents) == 1 for one in lineage), "clone")
        founders = plural(sum(not one.parents for one in lineage), "founder")
        about = (
            f"{mates[:1].upper()}{mates[1:]}, {clones} and {changes} lead from {founders} to the champion, "
            "on top. Each line is a network, from its birth to the birth of its last child on the way; its "
            "colour is its species."
        )
    if drawn.left_out:
        about += f" The {len(drawn.rows)} youngest of {len(lineage)} networks are drawn."
    return {"tree": drawn, "marks": _MARKS, "family_about": about}


def _some(number: int, word: str) -> str:
    """So many things, or none.

    >>> _some(0, "clone"), _some(2, "clone")
    ('no clone', '2 clones')
    """
    return plural(number, word) if number else f"no {word}"


def _mutations(material: Material) -> dict[str, Any]:
    rows = legend.common_attempts(material.summary)
    seen = sum(row.tried for row in material.summary.attempts.values())
    tried = sum(line.mutations_tried for line in material.history)
    shown = f" Shown are the {count(seen)} whose networks lived on to the next." if seen < tried else ""
    shown = (
        shown
        if seen or not tried
        else " No network lived on to the next generation after one, so no effect is known."
    )
    return {
        "attempts_drawn": bool(rows),
        "heights": {"mutations": 90 + 44 * max(3, len(rows))},
        "mutations_about": f"{plural(tried, 'mutation')} were tried. One is refused where it would found a "
        f"species too many or break a limit, and fails where nothing is possible.{shown} + grows, − shrinks.",
    }


def _mistakes(material: Material) -> dict[str, Any]:
    tested = material.tested
    if isinstance(tested, Judged):
        return {
            "tested": None,
            "judged": tested,
            "judged_table": amounts.table(tested),
            "judged_plots": list(amounts.plots(tested)),
            "tested_about": amounts.about(tested),
            "data_about": amounts.data_about(tested),
        }
    if not isinstance(tested, Tested):
        return {"tested": None, "tested_missing": tested}
    wrong = count(tested.samples - round(tested.accuracy * tested.samples))
    return {
        "tested": tested,
        "tested_about": f"Of {plural(tested.samples, 'test sample')} the champion gets {wrong} wrong: an "
        f"accuracy of {ACCURACY.text(tested.accuracy)}.",
        "matrix": _cells(tested) if tested.picture is None else [],
        "slanted": max(map(len, tested.classes)) > _SHORT_CLASS,
        "short": dict(zip(tested.classes, apart(tested.classes), strict=True)),
        "data_about": f"{plural(sum(tested.taught), 'sample')} to learn from and {count(tested.samples)} to "
        f"test with, in {plural(len(tested.classes), 'class', 'classes')}. {_taught(tested.taught)}",
    }


def _taught(numbers: Sequence[int]) -> str:
    """How many training samples the classes have.

    >>> _taught([3, 3]), _taught([3, 1])
    ('Each has 3 training samples.', 'The smallest class has 1 training sample, the largest 3.')
    """
    least, most = min(numbers), max(numbers)
    if least == most:
        return f"Each has {plural(least, 'training sample')}."
    return f"The smallest class has {plural(least, 'training sample')}, the largest {count(most)}."


def _cells(tested: Tested) -> list[list[tuple[int, float]]]:
    """Each cell's number and how strong its colour is, in percent."""
    numbers, shares = tested.confusion.tolist(), tested.shares.tolist()
    # The root lets a mistake of one in a hundred be seen.
    return [
        [
            (number, round(100 * (part if row == column else part**0.5), 1))
            for column, (number, part) in enumerate(zip(*rows, strict=True))
        ]
        for row, rows in enumerate(zip(numbers, shares, strict=True))
    ]


def _time(material: Material) -> dict[str, Any]:
    whole = material.seconds
    training = float(sum(line.train_seconds for line in material.history))
    rest = max(0.0, whole - training)
    trained = sum(line.networks for line in material.history)
    each = duration(training / trained) if trained else NOTHING
    effort = material.unit.effort
    return {
        "time_about": f"{duration(training)} of {duration(whole)} went into {effort} "
        f"({share(training, whole)}), {duration(rest)} into everything else: evolution and files. That is "
        f"{each} for each network and generation, with all workers at work.",
        "effort": effort,
        "trained": material.unit.trained,
        "time_training": round(100 * training / whole, 2) if whole else 0,
        "time_shares": f"{effort} {share(training, whole)}, everything else {share(rest, whole)}",
    }
