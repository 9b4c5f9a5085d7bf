"""How to use the model: commands that can be copied, what it takes on a device, and the smaller ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from epicortex.champion import browser, c_source
from epicortex.champion.c_source import Size
from epicortex.champion.file import Champion
from epicortex.errors import EpiCortexError
from epicortex.pages.tables import Table
from epicortex.report.material import Material
from epicortex.text import NOTHING, count, shell


@dataclass(frozen=True, slots=True)
class Way:
    """One way to use the model."""

    what: str
    code: str


def ways(material: Material, champion: Champion) -> list[Way]:
    """What to type, with the run's own folder in it."""
    run = str(material.run.path)
    shape = ", ".join(map(str, champion.outline.input_shape))
    if champion.facts.is_reward:
        python = f"import epicortex\n\nnetwork = epicortex.load_champion({run!r}).network()"
        seen = f"print(network(x))  # x: what it sees [samples, {shape}]"
        play = Way("Watch it", shell(["epicortex", "play", run]))
        return [play, Way("In Python", f"{python}\n{seen}")]
    pictures = len(champion.outline.input_shape) == 3 and champion.outline.input_shape[0] in (1, 3)
    values = 'model.read("photo.jpg")' if pictures else "x"
    note = "" if pictures else f"  # x: raw values [samples, {shape}]"
    python = f"import epicortex\n\nmodel = epicortex.load({run!r})\nprint(model.predict({values})){note}"
    found = [Way("In Python", python)]
    if pictures:
        what = "Classify pictures" if champion.facts.task == "classes" else "Ask it about pictures"
        found.insert(0, Way(what, shell(["epicortex", "predict", run, "photo.jpg", "folder"])))
    elif champion.facts.table is not None:
        found.insert(0, Way("Ask it about rows", shell(["epicortex", "predict", run, "rows.csv"])))
    found.append(Way("For other programs", shell(["epicortex", "export", run, "--to", "model.onnx"])))
    if _size(champion) is not None:
        found.append(Way("For a microcontroller", shell(["epicortex", "export", run, "--to", "model.c"])))
    return found


def device(champion: Champion) -> str:
    """What the model takes on a device, in words; empty where it cannot be written in C."""
    size = _size(champion)
    if size is None:
        return ""
    return (
        f"In C it takes {_bytes(size.flash)} of flash, {_bytes(size.ram)} of RAM and "
        f"{count(size.multiplications)} multiplications for a sample."
    )


def models(material: Material) -> Table | None:
    """The champion and the smaller models of the run; None where it is the only one."""
    if len(material.models) < 2:
        return None
    return Table(
        "The models of this run, from the smallest on",
        (
            "parameters",
            "multiplications",
            "flash",
            "RAM",
            material.unit.name,
            f"test {material.test_unit.name}",
        ),
        [tuple(_row(material, one)) for one in material.models],
    )


def smaller(material: Material) -> str:
    """The command that takes the smallest model; with another number it takes another."""
    limit = ["--max-parameters", str(material.models[0].outline.parameters)]
    return shell(["epicortex", "export", str(material.run.path), "--to", "model.onnx", *limit])


def payload(champion: Champion) -> dict[str, Any] | None:
    """The champion for the card that tries it; None where there is none such."""
    shape = champion.outline.input_shape
    if len(shape) != 3 or shape[0] not in (1, 3):
        return None
    try:
        return browser.payload(champion)
    except EpiCortexError:
        return None


def _row(material: Material, one: Champion) -> Iterator[str]:
    size, outline, tested = _size(one), one.outline, one.facts.test_accuracy
    yield count(outline.parameters)
    yield count(outline.cost)
    yield from (NOTHING, NOTHING) if size is None else (_bytes(size.flash), _bytes(size.ram))
    yield material.unit.text(one.facts.fitness)
    yield NOTHING if tested is None else material.test_unit.text(tested)


def _size(champion: Champion) -> Size | None:
    try:
        return c_source.measure(champion)
    except EpiCortexError:
        return None


def _bytes(number: int) -> str:
    """A number of bytes as people say it.

    >>> _bytes(900), _bytes(25_300), _bytes(3_400_000)
    ('900 bytes', '25.3 kB', '3.4 MB')
    """
    if number < 1000:
        return f"{number} bytes"
    return f"{number / 1000:.1f} kB" if number < 1_000_000 else f"{number / 1_000_000:.1f} MB"
