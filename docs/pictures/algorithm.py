"""Draws the pictures of docs/algorithm.md from real objects: `python docs/pictures/algorithm.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from epicortex.families.layered import Rules, cross, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, Genome
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.layered.placing import kernel_mask

IMAGES = Path(__file__).parent.parent / "images"
BLUE, RED, GREY = "#2b6cb0", "#c53030", "#a0aec0"
KERNELS = ((3, 3), (5, 1), (1, 7), (5, 5), (1, 1))


def draw_kernel(axes: Axes, weight: np.ndarray, mask: np.ndarray, colour: str) -> None:
    """One kernel in the frame of its layer: entries in colour, the exact zeros around it empty."""
    rows, columns = mask.shape
    top = np.abs(weight).max() or 1.0
    for row in range(rows):
        for column in range(columns):
            inside = bool(mask[row, column])
            strength = min(1.0, 0.15 + 0.85 * float(abs(weight[row, column]) / top))
            axes.add_patch(
                Rectangle(
                    (column, rows - 1 - row),
                    1,
                    1,
                    facecolor=colour if inside else "white",
                    alpha=strength if inside else 1.0,
                    edgecolor="none",
                )
            )
            axes.add_patch(
                Rectangle((column, rows - 1 - row), 1, 1, fill=False, edgecolor="#cbd5e0", linewidth=0.5)
            )
    axes.add_patch(Rectangle((columns // 2, rows // 2), 1, 1, fill=False, edgecolor="black", linewidth=1.4))
    axes.set(xlim=(-0.05, columns + 0.05), ylim=(-0.05, rows + 0.05), aspect="equal")
    axes.axis("off")


def phenotype(seed: int, kernels: tuple[tuple[int, int], ...]) -> Phenotype:
    """A network with one irregular layer."""
    genome = Genome((1, 16, 16), (ConvLayer(kernels, (1, 1)),), 10)
    return draw_phenotype(genome, rng=np.random.default_rng(seed))


def stacking() -> None:
    """The kernels of a layer, and how they stand on their centres in one dense weight."""
    network = phenotype(1, KERNELS)
    weight = network.weights[0].weight
    mask = kernel_mask(KERNELS)
    figure = plt.figure(figsize=(9.5, 2.4), layout="constrained")
    grid = figure.add_gridspec(1, len(KERNELS) + 2, width_ratios=[1] * len(KERNELS) + [0.15, 1.6])
    for index, shape in enumerate(KERNELS):
        axes = figure.add_subplot(grid[index])
        draw_kernel(axes, weight[index, 0], mask[index, 0], BLUE)
        axes.set_title(f"kernel {index + 1}: {shape[0]}×{shape[1]}", fontsize=10)
    overlap = mask[:, 0].sum(axis=0)
    axes = figure.add_subplot(grid[-1])
    axes.imshow(overlap, cmap="Blues", vmin=0, vmax=len(KERNELS) + 1)
    for (row, column), count in np.ndenumerate(overlap):
        axes.text(column, row, str(count), ha="center", va="center", fontsize=8)
    axes.set(xticks=[], yticks=[])
    axes.set_title("stacked on their centres:\nkernels with an entry there", fontsize=10)
    figure.suptitle(
        f"{network.genome}   —   dense weight {'×'.join(map(str, weight.shape))}, "
        f"{network.genome.layer_connections[0]} of {weight.size} entries are weights, "
        f"the rest exactly 0.0",
        fontsize=10,
    )
    figure.savefig(IMAGES / "irregular-layer.png", dpi=150)
    plt.close(figure)


def crossover() -> None:
    """Two parents of a species and their child, whose every kernel is a parent's, bit for bit."""
    one = phenotype(2, ((3, 3), (5, 1), (1, 7), (3, 5)))
    other = phenotype(3, ((1, 3), (5, 5), (7, 1), (1, 1)))
    share = 0.6
    child = cross(one, other, share=share, rules=Rules(), rng=np.random.default_rng(5))
    names = [f"parent 1 (share {share:.0%})", f"parent 2 (share {1 - share:.0%})", "child"]
    figure, grid = plt.subplots(3, 4, figsize=(7.5, 6.2), layout="constrained")
    for row, network in enumerate((one, other, child)):
        layer = network.genome.hidden[0]
        assert layer.type == "conv"
        mask, weight = kernel_mask(layer.kernels), network.weights[0].weight
        for node in range(layer.nodes):
            colour = (BLUE, RED)[row] if row < 2 else (BLUE if _is_gene_of(child, one, node) else RED)
            draw_kernel(grid[row, node], weight[node, 0], mask[node, 0], colour)
            height, width = layer.kernels[node]
            grid[row, node].set_title(f"{names[row]}\ngene {node + 1}: {height}×{width}", fontsize=8)
    figure.savefig(IMAGES / "crossover.png", dpi=150)
    plt.close(figure)


def _is_gene_of(child: Phenotype, parent: Phenotype, node: int) -> bool:
    shapes = [network.genome.hidden[0].kernels[node] for network in (child, parent)]
    if shapes[0] != shapes[1]:
        return False
    values = []
    for network in (child, parent):
        layer, weight = network.genome.hidden[0], network.weights[0].weight[node]
        assert layer.type == "conv"
        values.append(weight[:, kernel_mask(layer.kernels)[node, 0]])
    return bool((values[0] == values[1]).all())


if __name__ == "__main__":
    mpl.use("Agg")
    IMAGES.mkdir(exist_ok=True)
    stacking()
    crossover()
