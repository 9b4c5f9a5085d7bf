"""Where the genes of a child come from, told from the child alone, and whether that is allowed."""

from __future__ import annotations

from dataclasses import dataclass

from epicortex.families.layered.genome import ConvLayer, Genome, Layer
from epicortex.families.layered.phenotype import Phenotype
from tests.families.layered import reference


def places(genome: Genome, kind: str) -> list[int]:
    """The layers of one type, from the bottom."""
    return [place for place, layer in enumerate(genome.layers) if layer.type == kind]


@dataclass(frozen=True)
class Lineage:
    """Two parents and their child."""

    one: Phenotype
    other: Phenotype
    child: Phenotype

    @property
    def parents(self) -> tuple[Phenotype, Phenotype]:
        """Both parents."""
        return self.one, self.other

    def sources(self, place: int) -> list[int | None]:
        """The layer of each parent that stands where a layer of the child stands."""
        kind = self.child.genome.layers[place].type
        rank = places(self.child.genome, kind).index(place)
        found = [places(parent.genome, kind) for parent in self.parents]
        return [each[rank] if rank < len(each) else None for each in found]

    def holders(self, place: int, node: int) -> list[int]:
        """The parents that a gene can come from, told by its bias; both where they are related."""
        bias = self.child.weights[place].bias[node].tobytes()
        found = []
        for who, (parent, source) in enumerate(zip(self.parents, self.sources(place), strict=True)):
            there = [] if source is None else list(parent.weights[source].bias[node : node + 1])
            if there and there[0].tobytes() == bias:
                found.append(who)
        assert found, f"layer {place}, node {node} has the bias of neither parent"
        return found

    def origins(self) -> list[list[int | None]]:
        """For every layer and node of the child the parent it comes from; None where both could be it."""
        rows = [[self.holders(place, node) for node in range(layer.nodes)] for place, layer in self._layers()]
        return [[found[0] if len(found) == 1 else None for found in row] for row in rows]

    def check(self) -> list[float]:
        """Check all of a child against the rules; gives what was drawn new."""
        for kind in ("conv", "full", "out"):
            counts = [len(places(each.genome, kind)) for each in (*self.parents, self.child)]
            assert counts[2] in counts[:2], f"{counts[2]} {kind} layers from {counts[:2]}"
        new: list[float] = []
        for place, layer in self._layers():
            self._check_layer(place)
            for node in range(layer.nodes):
                new += self._check_gene(place, node)
        assert all(value != 0 for value in new), "a missing weight was not drawn"
        return new

    def _layers(self) -> list[tuple[int, Layer]]:
        return list(enumerate(self.child.genome.layers))

    def _check_layer(self, place: int) -> None:
        """As many nodes as one parent has there, and the stride of one, within its limits."""
        layer, pairs = self.child.genome.layers[place], zip(self.parents, self.sources(place), strict=True)
        aligned = [parent.genome.layers[source] for parent, source in pairs if source is not None]
        assert layer.nodes in {each.nodes for each in aligned}
        if isinstance(layer, ConvLayer):
            spatial = reference.shapes_of(self.child.genome)[place][1:]
            assert layer.stride in [
                tuple(min(step, max(1, size // 2)) for step, size in zip(each.stride, spatial, strict=True))
                for each in aligned
                if isinstance(each, ConvLayer)
            ]

    def _check_gene(self, place: int, node: int) -> list[float]:
        complaints = []
        for who in self.holders(place, node):
            try:
                return self._compare_gene(who, place, node)
            except AssertionError as complaint:
                complaints.append(complaint)
        raise complaints[0]

    def _compare_gene(self, who: int, place: int, node: int) -> list[float]:
        layer, below = self.child.genome.layers[place], reference.shapes_of(self.child.genome)[place]
        parent, source = self.parents[who], self.sources(place)[who]
        assert source is not None
        old, kernel = parent.genome.layers[source], None
        if isinstance(layer, ConvLayer) and isinstance(old, ConvLayer):
            kernel = layer.kernels[node]
            for got, had, size in zip(kernel, old.kernels[node], below[1:], strict=True):
                limit = max(k for k in range(1, size + 1, 2) if k == 1 or 2 * k <= size)
                assert got == min(had, limit), f"layer {place}, kernel {node}: {got} from {had} over {size}"
        gene = reference.gene(parent, source, node)
        kept = reference.carried(gene, reference.shapes_of(parent.genome)[source], below, kernel)
        return reference.compare(reference.gene(self.child, place, node), kept, f"layer {place}, node {node}")
