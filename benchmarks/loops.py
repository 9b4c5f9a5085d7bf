"""The engine with one worker against loops that a user might write, on 64 networks of a real MNIST run.

Each network trains on a tenth of 60,000 images (47 steps of Adadelta) and is scored on 10,000. The images are
noise: what is measured does not depend on what they show.

- "by hand": stock `nn.Conv2d` networks of the same dense sizes in the better of two memory layouts (tried
  for each network beforehand), images as float tensors in memory, one thread, the foreach optimiser, large
  scoring batches under `inference_mode`, the allocator settings of our workers.
- "as described" in the paper: kernels are separate parameters, padded and stacked before every forward pass;
  a `DataLoader` for each epoch makes every sample from its bytes, in the steps that torchvision's `ToTensor`
  and `Normalize` take.

Run it with `python -m benchmarks.loops`; `--networks` and `--rounds` make it shorter or longer.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, RandomSampler

from benchmarks import real
from benchmarks.measure import row, seconds
from benchmarks.workers import MNIST, random_data, running
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Job
from epicortex.engines import Engine
from epicortex.engines.serving import keep_freed_memory
from epicortex.evaluation.arithmetic import fixed_arithmetic
from epicortex.families.layered.genome import ConvLayer, Genome
from epicortex.families.modules import SmoothRectifier

BATCH, SCORED = 128, 1000


def train_by_hand(model: nn.Module, images: Tensor, labels: Tensor, layout: torch.memory_format) -> None:
    """Six thousand samples, as a careful user trains on them."""
    optimiser = torch.optim.Adadelta(model.parameters(), foreach=True)
    chosen = torch.randperm(len(images))[: len(images) // 10]
    for rows in chosen.split(BATCH):
        x = images[rows].contiguous(memory_format=layout)
        optimiser.zero_grad()
        functional.cross_entropy(model(x), labels[rows]).backward()
        optimiser.step()


def score_by_hand(model: nn.Module, images: Tensor, labels: Tensor, layout: torch.memory_format) -> float:
    """The part that is right."""
    right = 0
    with torch.inference_mode():
        for x, y in zip(images.split(SCORED), labels.split(SCORED), strict=True):
            right += int((model(x.contiguous(memory_format=layout)).argmax(1) == y).sum())
    return right / len(images)


def stock(genome: Genome, convolution: Callable[[int, ConvLayer], nn.Module]) -> nn.Sequential:
    """A genome's layers from stock modules, convolutions by a recipe."""
    modules: list[nn.Module] = []
    for shape, layer in zip(genome.input_shapes, genome.layers, strict=True):
        if isinstance(layer, ConvLayer):
            modules += [convolution(shape[0], layer), nn.LeakyReLU(inplace=True)]
        else:
            flat = nn.Flatten() if len(shape) > 1 else nn.Identity()
            modules += [flat, nn.Linear(int(np.prod(shape)), layer.nodes), SmoothRectifier()]
    return nn.Sequential(*modules[:-1])  # the output layer has no activation


def dense(channels: int, layer: ConvLayer) -> nn.Module:
    """A convolution whose kernels are all as large as the largest."""
    height, width = layer.extent
    return nn.Conv2d(channels, layer.nodes, (height, width), layer.stride, (height // 2, width // 2))  # type: ignore[arg-type]


class Stacked(nn.Module):
    """Kernels as separate parameters, stacked before every forward pass."""

    def __init__(self, channels: int, layer: ConvLayer) -> None:
        super().__init__()
        self.layer = layer
        self.kernels = nn.ParameterList(torch.randn(channels, *shape) * 0.1 for shape in layer.kernels)
        self.biases = nn.ParameterList(torch.zeros(()) for _ in layer.kernels)

    def forward(self, x: Tensor) -> Tensor:
        """Pad every kernel to the largest size, stack them, convolve."""
        height, width = self.layer.extent
        padded = []
        for kernel in self.kernels:
            above, beside = (height - kernel.shape[1]) // 2, (width - kernel.shape[2]) // 2
            padded.append(functional.pad(kernel, (beside, beside, above, above)))
        weight, bias = torch.stack(padded), torch.stack(list(self.biases))
        return functional.conv2d(x, weight, bias, self.layer.stride, (height // 2, width // 2))  # type: ignore[arg-type]


class Pictures(Dataset[tuple[Tensor, int]]):
    """Samples one by one, as torchvision's data set with `ToTensor` and `Normalize` gives them."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        picture = Image.fromarray(self.images[index, 0].numpy())
        return normalised(to_tensor(picture), [0.5], [0.5]), int(self.labels[index])


def to_tensor(picture: Image.Image) -> Tensor:
    """A picture as floats from 0 to 1, channels first."""
    values = torch.from_numpy(np.array(picture, np.uint8, copy=True))
    channels = len(picture.getbands())
    return values.view(picture.height, picture.width, channels).permute(2, 0, 1).contiguous().float().div(255)


def normalised(image: Tensor, mean: list[float], std: list[float]) -> Tensor:
    """A new image with each channel's mean and deviation taken out, both given as lists and checked."""
    means, deviations = (torch.as_tensor(values, dtype=image.dtype) for values in (mean, std))
    if bool((deviations == 0).any()):
        raise ValueError("a deviation of 0")
    return image.clone().sub_(means.view(-1, 1, 1)).div_(deviations.view(-1, 1, 1))


def as_described(model: nn.Module, train: Pictures, test: Pictures) -> None:
    """An epoch over a tenth and a scoring, both through a `DataLoader`."""
    optimiser = torch.optim.Adadelta(model.parameters())
    drawn = RandomSampler(train, num_samples=len(train) // 10)
    for x, y in DataLoader(train, BATCH, sampler=drawn):
        optimiser.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    right = 0
    with torch.no_grad():
        for x, y in DataLoader(test, SCORED):
            right += int((model(x).argmax(1) == y).sum())


def better_layouts(
    genomes: list[Genome], work: Callable[[Genome, torch.memory_format], None]
) -> Iterator[torch.memory_format]:
    """For every network the memory layout in which the loop by hand is faster."""
    for genome in genomes:
        layouts = (torch.contiguous_format, torch.channels_last)
        times = [min(seconds(partial(work, genome, layout)) for _ in range(2)) for layout in layouts]
        yield layouts[times.index(min(times))]


def through(engine: Engine, jobs: list[Job]) -> None:
    """Have an engine do these jobs."""
    for future in [engine.submit(job) for job in jobs]:
        assert future.result().failed is None


def compare(data: DataSet, count: int, rounds: int) -> None:
    """All three on the same networks, in turns."""
    phenotypes = real.phenotypes()[:count]
    genomes = [phenotype.genome for phenotype in phenotypes]
    jobs = [Job(number, 2, 1, phenotype) for number, phenotype in enumerate(phenotypes, 1)]
    raw = [torch.from_numpy(np.array(array)) for array in (data.x_train, data.x_test)]
    floats = [images.to(torch.float32).div_(255).sub_(0.5).div_(0.5) for images in raw]
    labels = [torch.from_numpy(np.array(array)) for array in (data.y_train, data.y_test)]
    train, test = (Pictures(*pair) for pair in zip(raw, labels, strict=True))

    def by_hand(genome: Genome, layout: torch.memory_format) -> None:
        model = stock(genome, dense).to(memory_format=layout)
        train_by_hand(model, floats[0], labels[0], layout)
        score_by_hand(model, floats[1], labels[1], layout)

    def described(genome: Genome) -> None:
        as_described(stock(genome, Stacked), train, test)

    times: dict[str, list[float]] = {"engine": [], "by hand": [], "as described": []}
    with running(data, 1) as engine, fixed_arithmetic(torch.device("cpu")):
        layouts = list(better_layouts(genomes, by_hand))
        for _ in range(rounds):
            for place in range(0, count, 8):  # small pieces in turns, since the machine has other work too
                part = slice(place, place + 8)
                times["engine"].append(seconds(partial(through, engine, jobs[part])))
                times["by hand"].append(seconds(partial(list, map(by_hand, genomes[part], layouts[part]))))
                times["as described"].append(seconds(partial(list, map(described, genomes[part]))))
                print(".", end="", flush=True)
    print()
    total = {name: sum(values) for name, values in times.items()}
    for name, value in total.items():
        row(f"{count} networks of a real run, {name}", f"{count * rounds / value:.2f} networks/s")
    pairs = zip(times["engine"], times["by hand"], strict=True)
    ratios = [ours / theirs for ours, theirs in pairs]
    spread = f"pieces of eight {min(ratios):.2f} to {max(ratios):.2f}"
    row("engine with one worker / loop by hand", f"{total['engine'] / total['by hand']:.3f} ({spread})")
    row("networks a second, engine / as described", f"{total['as described'] / total['engine']:.2f}")


def main() -> None:
    """Print networks a second and the two ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--networks", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    keep_freed_memory()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        compare(random_data(*MNIST, Path(folder) / "mnist"), options.networks, options.rounds)


if __name__ == "__main__":
    main()
