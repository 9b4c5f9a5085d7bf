"""The page about one run: read from its folder, made, and put in its place."""

from __future__ import annotations

from pathlib import Path

from epicortex.pages.html import page
from epicortex.pages.plots import Figure
from epicortex.registry import Parts
from epicortex.report import amounts, figures, legend, scatter, sections, usage
from epicortex.report.amounts import Judged
from epicortex.report.material import Material, read
from epicortex.storage import atomic


def write(
    run_folder: Path | str,
    out: Path | str | None = None,
    data_dir: Path | str | None = None,
    *,
    parts: Parts | None = None,
    trust: bool = False,
) -> Path:
    """Write a run's report, by default to `report.html` in its folder, and give its path.

    The run may still be going on. `data_dir` is where the built-in data sets are, if not where the run's
    config says. `parts` holds a family of one's own, if the run has one. The data that the run of somebody
    else names is looked at only if you `trust` it.
    """
    place = None if data_dir is None else Path(data_dir)
    material = read(Path(run_folder), data_dir=place, parts=parts, trust=trust)
    path = Path(run_folder) / "report.html" if out is None else Path(out)
    atomic.replace_text(path, render(material))
    return path


def render(material: Material, *, live: bool = False) -> str:
    """The page as text; a `live` one asks its server for news, and has buttons to pause and stop the run."""
    content = sections.content(material)
    model = usage.payload(material.champion) if material.champion else None
    packed = {} if model is None else {"model": model}
    scripts, plots = ("try.js", "live.js") if live else ("try.js",), draw(material)
    return page("epicortex.report", "report.html", content, plots, packed=packed, scripts=scripts, live=live)


def draw(material: Material) -> dict[str, Figure]:
    """The plots that there is something to plot for, by name."""
    history, summary, unit = material.history, material.summary, material.unit
    if material.champion is None:
        return {}
    drawn = {
        "models_parameters": scatter.models(material.models, unit, "parameters"),
        "models_cost": scatter.models(material.models, unit, "multiplications"),
        "fitness": figures.fitness(history, summary, unit, material.plans),
        "species": figures.species(history, summary) if summary.species else None,
        "shapes": figures.shapes(summary) if legend.common_shapes(summary) else None,
        "attempts": figures.attempts(summary) if summary.attempts else None,
        "effects": figures.effects(summary, unit) if summary.attempts else None,
        "seconds": figures.seconds(history, material.unit),
        # Last, as it has the most to draw.
        "sizes": scatter.sizes(summary, unit),
    }
    if isinstance(material.tested, Judged):
        drawn = {**amounts.plots(material.tested), **drawn}
    return {name: figure for name, figure in drawn.items() if figure is not None}
