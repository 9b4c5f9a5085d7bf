"""One tree of exceptions. Each says what is wrong, where, and what to do about it.

Whatever a person can fix (a bad value, a damaged file, a missing data set) is an `EpiCortexError`; the
command line prints it as one line and exits with 2. Anything else that escapes is a bug.
"""

from __future__ import annotations


class EpiCortexError(Exception):
    """The root of every error that EpiCortex raises on purpose."""


class ConfigError(EpiCortexError):
    """A setting has an unknown name or an impossible value."""


class GenomeError(EpiCortexError):
    """A genome breaks a rule; the message names the layer and, where there is one, the kernel."""


class VariationError(EpiCortexError):
    """A mutation or crossover was asked for where it is not possible."""


class DataError(EpiCortexError):
    """A data set is missing, damaged or not what it claims to be."""


class StorageError(EpiCortexError):
    """A run folder cannot be read or written."""


class UnwritableError(StorageError):
    """A run's files can no longer be written: the disk is full, or they are read-only or gone."""


class EngineError(EpiCortexError):
    """Work could not be handed to, or taken back from, a worker."""


class RunError(EpiCortexError):
    """A run cannot go on, such as when every network of a generation failed."""
