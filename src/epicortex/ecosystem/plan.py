"""The plan of a generation: counted work, made before the generation begins and written down with the run.

Where a run has minutes, its plans rest on measured speed. Everything else follows from the plans, so that the
same plans give the same bits, on any machine. Who makes them is in `planned`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from epicortex.families.family import Shape

Phase: TypeAlias = Literal["search", "polish"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How one generation of a planned run is spent."""

    generation: int
    phase: Phase
    """Search tries other structures; polish trains those that are left."""
    steps: int
    """The training steps of a network that costs as much as the incumbent of its class."""
    start: int
    """The steps of all generations before: where in the stream of samples this one begins."""
    rates: tuple[float, float]
    """What the learning rate is multiplied by at the beginning and at the end."""
    until: float
    """The minutes, or where there are none the generations, that the whole run was planned for."""
    size: Shape | None = None
    """The spatial size of images while training and scoring; None leaves them as they are."""
    flip: bool = False
    """Whether half of the images are mirrored in training."""
    spared: tuple[int, ...] = ()
    """The classes, by their number, whose images are not mirrored all the same."""
    judge: bool = False
    """Whether incumbents and challengers are compared after this generation."""
    first: bool = False
    """Whether this is the first generation of its phase."""
    last: bool = False
    """Whether this is the last generation of its phase."""
    siblings: int = 1
    """How many copies of a network polish trains side by side."""
    main: int | None = None
    """The species that gets most of the polish."""
    small: int | None = None
    """The species of a smaller network that is polished as well."""
    scored: int | None = None
    """How many samples networks are scored on; None: all."""
    mirrored: bool = False
    """Whether networks are scored on mirrored images, too."""
    augment: tuple[str, ...] = ()
    """How samples are changed in training, where that is found out on the way."""
    changed: tuple[str, ...] = ()
    """Under which changes networks are scored, too."""
    work: float = 0.0
    """The multiplications of all training; 0 where no clock is read."""
    speed: float = 0.0
    """The multiplications a second that were expected of all workers together."""
    begun: float = 0.0
    """The seconds before the first generation: reading and measuring."""

    @property
    def timed(self) -> bool:
        """Whether the run was planned by minutes, not by generations."""
        return self.begun > 0

    @property
    def ends_run(self) -> bool:
        """Whether nothing was planned to come after this generation."""
        return self.last and self.phase == "polish"
