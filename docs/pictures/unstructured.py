"""Draws the picture of unstructured networks in docs/algorithm.md: `python docs/pictures/unstructured.py`.

The networks are those of the paper's section II-B, made and crossed by the family itself.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from epicortex.families.unstructured import Genome, Phenotype
from epicortex.families.unstructured.crossover import cross

IMAGES = Path(__file__).parent.parent / "images"
BLUE, RED = "#2b6cb0", "#c53030"
FIRST = {5: (7, 8), 6: (1, 3, 8, 9), 7: (1, 2, 3, 4), 8: (1,), 9: (2, 4)}
SECOND = {5: (7,), 6: (8, 9), 7: (1, 3, 4), 8: (2, 3), 9: (1, 2, 4)}
PLACES = {
    **{node: (node - 1.0, 0.0) for node in (1, 2, 3, 4)},
    **{node: (node - 6.5, 1.0) for node in (7, 8, 9)},
    **{node: (node - 4.0, 2.0) for node in (5, 6)},
}


def parent(inward: dict[int, tuple[int, ...]], sign: float) -> Phenotype:
    """A network whose genes can be told by their sign."""
    genome = Genome(4, 2, inward)
    return Phenotype(genome, np.full(len(genome.connections), sign, np.float32))


def draw(axes: Axes, phenotype: Phenotype, title: str) -> None:
    """Nodes and connections, and the genotype as a list below."""
    for (target, source), weight in phenotype.genes.items():
        (x0, y0), (x1, y1) = PLACES[source], PLACES[target]
        axes.plot([x0, x1], [y0, y1], color=BLUE if weight > 0 else RED, linewidth=1.2, zorder=1)
    for node, (x, y) in PLACES.items():
        axes.scatter([x], [y], s=230, color="white", edgecolor="#2d3748", zorder=2)
        axes.text(x, y, str(node), ha="center", va="center", fontsize=9, zorder=3)
    lines = [
        f"{node} | {', '.join(map(str, sources))}"
        for node, sources in sorted(phenotype.genome.inward.items())
    ]
    axes.text(0.6, -0.6, "\n".join(lines), fontsize=9, va="top", family="monospace")
    axes.set_title(title, fontsize=11)
    axes.set_xlim(-0.6, 3.6)
    axes.set_ylim(-2.5, 2.5)
    axes.axis("off")


def main() -> None:
    """Two parents and a child."""
    one, other = parent(FIRST, 1), parent(SECOND, -1)
    child = cross(one, other, share=0.6, rng=np.random.default_rng(6))
    mpl.rcParams["svg.hashsalt"] = "epicortex"
    figure, places = plt.subplots(1, 3, figsize=(9.5, 4.6))
    for axes, network, title in zip(
        places, (one, other, child), ("parent 1", "parent 2", "a child"), strict=True
    ):
        draw(axes, network, title)
    figure.tight_layout()
    figure.savefig(IMAGES / "unstructured.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
