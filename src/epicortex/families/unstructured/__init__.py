"""The original Cortex: unstructured networks of ordered nodes, with connections as genes."""

from epicortex.families.unstructured.family import UnstructuredFamily
from epicortex.families.unstructured.genome import Genome
from epicortex.families.unstructured.network import Network
from epicortex.families.unstructured.options import UnstructuredOptions
from epicortex.families.unstructured.phenotype import Phenotype

__all__ = ["Genome", "Network", "Phenotype", "UnstructuredFamily", "UnstructuredOptions"]
