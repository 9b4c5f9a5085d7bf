"""The settings of own data: one flat, frozen record that the config section `data` mirrors.

What each reader does with them is left to the reader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from epicortex.errors import DataError

Channels = Literal["auto", "gray", "rgb"]
Layout = Literal["auto", "channels_first", "channels_last"]
Unreadable = Literal["skip", "refuse"]
Asked = Literal["auto", "classes", "regression", "multilabel"]

TOTAL_PIXELS = 51_200_000
"""As many as CIFAR-10 has, or a thousand pictures of 224 × 224: about what ten minutes are enough for."""

Progress = Callable[[str, int, int], None]
"""Called as progress(what, done, total); total is 0 where it is not known."""


@dataclass(frozen=True, slots=True)
class DataOptions:
    """How a person's own data is read; built-in data sets need none of it.

    >>> DataOptions(image_size=(28, 28)).image_size
    (28, 28)
    """

    image_size: tuple[int, int] | None = None
    """Height and width all images get; None takes the most common size found, within `max_side`."""
    max_side: int | None = None
    """The longest side that images get without `image_size`; None: from 64 to 224, by `total_pixels`."""
    total_pixels: int = TOTAL_PIXELS
    """How many pixels all training pictures may have together before they are made smaller."""
    channels: Channels = "auto"
    """"gray", "rgb", or "auto": gray only if every image is."""
    layout: Layout = "auto"
    """Where arrays have their channels."""
    task: Asked = "auto"
    """What is predicted: one class, numbers, or sets of labels; "auto" finds out from the labels."""
    label_column: str | None = None
    """The column of a table that holds the class; None looks for label, class, target or y.
    Several, with commas between them, hold a number each, or 0 and 1 for a label each."""
    image_column: str | None = None
    """The column of a CSV file that names pictures; None looks for one whose cells end like pictures."""
    group_column: str | None = None
    """The column that says what must not be in two parts at once, such as a patient or a plate."""
    group_level: int | None = None
    """The same for folders: how many levels below the folder of the class the folder of a group is."""
    unreadable: Unreadable = "refuse"
    """What happens if a picture does not open: "refuse" the data, or "skip" the picture and say so."""
    test_fraction: float = 0.2
    """The part of data without a test part of its own that becomes one; 0 leaves it without."""
    min_per_class: int = 2
    """A class with fewer training samples than this is refused."""
    max_pixels: int = 50_000_000
    """A picture that claims more pixels than this is refused before it is decoded."""
    max_bytes: int = 4 * 2**30
    """Data that would be larger than this when prepared is refused."""
    decode_workers: int | None = None
    """Threads that decode pictures; None takes one per core."""

    def __post_init__(self) -> None:
        if self.image_size is not None and not all(1 <= side <= 4096 for side in self.image_size):
            raise DataError(f"data.image_size is {self.image_size}; each side must be from 1 to 4096")
        if not 0 <= self.test_fraction < 1:
            raise DataError(f"data.test_fraction is {self.test_fraction}; it must be from 0 to below 1")
        if self.group_level is not None and self.group_level < 1:
            raise DataError(f"data.group_level is {self.group_level}; it must be at least 1")
        for name in ("max_side", "total_pixels", "min_per_class", "max_pixels", "max_bytes"):
            if (getattr(self, name) or 1) < 1:
                raise DataError(f"data.{name} is {getattr(self, name)}; it must be at least 1")
        if self.decode_workers is not None and self.decode_workers < 1:
            raise DataError(f"data.decode_workers is {self.decode_workers}; it must be at least 1")
