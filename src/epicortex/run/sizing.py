"""What a planned run has to know before it begins: how fast its workers are, and how large founders may be.

With minutes, speed is measured for a second or two; without, nothing is read from a clock. What was found is
written into the run's settings, so that the same settings give the same run.
"""

from __future__ import annotations

import math
import time
import zlib
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex.config import Config
from epicortex.config import resolving as settings
from epicortex.data import DataSet
from epicortex.data.options import TOTAL_PIXELS
from epicortex.ecosystem.jobs import Course, Job
from epicortex.ecosystem.state import EcosystemState
from epicortex.engines import Engine
from epicortex.errors import ConfigError, RunError
from epicortex.families.family import Family, SizesFounders
from epicortex.randomness import generator
from epicortex.run.subject import Subject

#: Without minutes, and so without a clock; of parameters at most.
_COUNTED: Final = {"cost": 2**22, "parameters": 40_000, "siblings": 2}
#: More siblings than this gain little, whatever the number of workers.
_MOST_SIBLINGS: Final = 8
#: What is measured: a founder of this cost, for about so many seconds.
_PROBE_COST: Final = 3_000_000
_PROBE_PARAMETERS: Final = 30_000
_PROBE_SECONDS: Final = 0.6
_PROBE_STEPS: Final = 4096
#: With more time, a part of it goes into more passes over the data, the rest into larger founders.
_PASSES_POWER: Final = 0.63
_USUAL_MINUTES: Final = 10.0
#: And polish takes at least about so many steps in ten minutes.
_STEPS: Final = 2000
#: How many parameters a founder may have for each sample to learn from, times this power of the bytes that a
#: sample holds; but always so many.
_PARAMETERS_A_SAMPLE: Final = 0.038
_BYTES_POWER: Final = 0.6
_FEW_PARAMETERS: Final = 30_000
_TABLE_PARAMETERS: Final = 150
_LOOKED_AT: Final = 2**22
#: Where a person limits parameters, founders take this part of them: the rest is room to grow.
_ROOM: Final = 0.9
#: Samples that are seen so often are learnt by heart, unless they are changed each time.
_OFTEN: Final = 100
_OFTEN_DECAY: Final = 3.0
#: What scoring costs for a sample, where training costs 1; and what is added to any estimate.
_SCORING: Final = 1 / 3
_MARGIN: Final = 1.3


def is_planned(config: Config) -> bool:
    """Whether the budget plans."""
    return config.evolution.budget == "planned"


def check(config: Config) -> None:
    """Refuse a planned run of an evaluator that does not follow plans."""
    if is_planned(config) and config.evaluator != "backprop":
        raise ConfigError(
            f"the preset plans how networks train, and the evaluator {config.evaluator} follows no plan; "
            "take --preset layered, or task for a reward"
        )


def with_pixels(config: Config) -> Config:
    """The settings with the pixels that training pictures may have, by the minutes of a planned run.

    >>> ten, hour = (settings.resolve("default", {"evolution.minutes": minutes}) for minutes in (10.0, 60.0))
    >>> with_pixels(ten).data.total_pixels, with_pixels(hour).data.total_pixels
    (51200000, 307200000)
    """
    minutes = config.evolution.minutes
    if config.data.total_pixels is not None or minutes is None or not is_planned(config):
        return config
    return settings.changed(
        config, data={"total_pixels": round(TOTAL_PIXELS * minutes / _USUAL_MINUTES) or 1}
    )


def needs_clock(config: Config) -> bool:
    """Whether the speed of the workers is still to be measured."""
    return is_planned(config) and config.evolution.minutes is not None and config.budget.speed is None


def counted(config: Config, subject: Subject, seen: float | None = None) -> Config:
    """The settings of a planned run, with what nobody gave filled in without a clock.

    `seen` is about how many samples its largest network will see.
    """
    own, sizes = config.budget, config.residual
    if seen is None:
        seen = _seen(config)
    return settings.changed(
        _suited(config, subject, seen),
        budget={
            "speed": own.speed or 1e9,
            "reserve": own.reserve or 0.0,
            "siblings": own.siblings or _COUNTED["siblings"],
        },
        residual={
            "start_cost": sizes.start_cost or _COUNTED["cost"],
            "start_parameters": _parameters(config, subject, most=_COUNTED["parameters"]),
        },
    )


def timed(
    config: Config, family: Family[Any], subject: Subject, engine: Engine, ancestor: Any | None = None
) -> Config:
    """The settings of a planned run with minutes, after a look at how fast its workers are."""
    minutes, own, data = config.evolution.minutes, config.budget, subject.data
    if minutes is None or data is None:
        raise ConfigError("evolution.budget: planned needs a data set to plan for")
    workers = own.siblings or max(1, min(_MOST_SIBLINGS, engine.workers))
    learnt, scored = _counts(config, data)
    parameters = _parameters(config, subject)
    speed = measured_speed(config, family, engine, workers, parameters)
    seconds = 60 * minutes * (1 - own.search) * 0.9
    passes = own.passes * (minutes / _USUAL_MINUTES) ** _PASSES_POWER
    # few large images: not many samples make a network small, but that it has to take many steps
    steps = _STEPS * (minutes / _USUAL_MINUTES) ** _PASSES_POWER
    work = max(passes * learnt, steps * config.training.batch_size)
    cost = config.residual.start_cost or max(1, round(speed * seconds / work))
    largest = family.cost(ancestor or founder(config, family, cost, parameters))
    one_core = speed / min(workers, engine.workers)
    # the champion and a smaller model are scored on both parts
    samples = 1.5 * len(data.y_test) + (2.5 + 1 / workers) * scored
    reserve = _MARGIN * _SCORING * largest * samples / one_core + 1.0
    return counted(
        settings.changed(
            config,
            budget={
                "speed": speed,
                "reserve": own.reserve if own.reserve is not None else min(reserve, 12 * minutes),
                "siblings": workers,
            },
            residual={"start_cost": cost, "start_parameters": parameters},
        ),
        subject,
        60 * minutes * speed / largest,
    )


def _seen(config: Config) -> float:
    """About how many samples a network of the usual cost sees, siblings together."""
    minutes, own = config.evolution.minutes, config.budget
    if minutes is not None:
        return 60 * minutes * (own.speed or 1e9) / (config.residual.start_cost or _COUNTED["cost"])
    siblings = own.siblings or _COUNTED["siblings"]
    return own.steps * config.evolution.generations * config.training.batch_size * siblings


def _suited(config: Config, subject: Subject, seen: float) -> Config:
    """The settings with what suits images that are seen so often, all together, or samples that are not.

    Few images that are seen often are learnt by heart: there weights decay faster, and changes are tried.
    """
    if subject.data is None:
        return config
    learnt, _ = _counts(config, subject.data)
    often = len(subject.problem.input_shape) == 3 and seen >= _OFTEN * learnt
    decay = config.residual.start_decay or (_OFTEN_DECAY if often else 1.0)
    tried = not config.training.tries_augment or often
    return settings.changed(
        config, training={} if tried else {"augment": ()}, residual={"start_decay": decay}
    )


def timed_on(
    config: Config, family: Family[Any], subject: Subject, engine: Engine, state: EcosystemState
) -> Config:
    """The settings of a run that counted generations, and goes on by the clock with the networks it has."""
    # without a clock nothing was kept back, unless somebody asked for it
    unknown = settings.changed(config, budget={"speed": None, "reserve": config.budget.reserve or None})
    dearest = max((one.phenotype for one in state.networks), key=family.cost)
    found = timed(unknown, family, subject, engine, dearest)
    # what its first networks were made for stays
    return settings.changed(
        found,
        training={"augment": config.training.augment},
        residual={"start_decay": config.residual.start_decay},
    )


def _parameters(config: Config, subject: Subject, most: int | None = None) -> int:
    """How many parameters the largest founder may have: as the settings say, or by the data, up to `most`."""
    most_ever, given = config.evolution.max_parameters, config.residual.start_parameters
    if given is not None:
        return given if most_ever is None else min(given, most_ever)
    if subject.data is None:
        raise ConfigError("evolution.budget: planned needs a data set to plan for")
    learnt, _ = _counts(config, subject.data)
    by_data = most_parameters(subject.data.x_train, learnt, subject.problem.outputs)
    room = None if most_ever is None else max(1, round(_ROOM * most_ever))
    return min(limit for limit in (by_data, room, most) if limit is not None)


def most_parameters(samples: NDArray[Any], learnt: int, outputs: int) -> int:
    """How many parameters the largest founder gets: more for more samples, and for samples that hold more.

    What an image holds is what is left of it when it is compressed: of a digit on black a quarter, of a
    photograph most of it.

    >>> plain, noise = np.zeros((500, 1, 28, 28), np.uint8), np.random.default_rng(1).bytes(500 * 784)
    >>> rough = np.frombuffer(noise, np.uint8).reshape(plain.shape)
    >>> [round(most_parameters(images, 54_000, 10), -4) for images in (plain, rough)]
    [30000, 110000]
    >>> most_parameters(np.zeros((120, 4), np.float32), 120, 3)
    1050
    """
    if samples.ndim == 2:
        return min(_FEW_PARAMETERS, _TABLE_PARAMETERS * (int(samples.shape[1]) + outputs))
    return max(
        _FEW_PARAMETERS, round(_PARAMETERS_A_SAMPLE * learnt * float(_bytes_held(samples) ** _BYTES_POWER))
    )


def _bytes_held(samples: NDArray[Any]) -> float:
    """How many bytes some of the samples take for each when they are compressed, a byte a number."""
    some = samples[:: max(1, samples.size // _LOOKED_AT)]
    if some.dtype != np.uint8:
        low, high = float(some.min()), float(some.max())
        some = ((some - low) * (255 / max(high - low, 1e-30))).astype(np.uint8)
    return len(zlib.compress(np.ascontiguousarray(some).tobytes(), 1)) / len(some)


def measured_speed(
    config: Config, family: Family[Any], engine: Engine, workers: int, parameters: int
) -> float:
    """Multiplications a second, by so many workers together, while a network of a usual kind trains."""
    probe = founder(config, family, _PROBE_COST, min(_PROBE_PARAMETERS, parameters))
    jobs = partial(_seconds, config, engine, probe, workers)
    steps = 1
    jobs(steps)  # workers wake up
    while (took := jobs(steps)) < _PROBE_SECONDS and steps < _PROBE_STEPS:
        steps = min(_PROBE_STEPS, math.ceil(steps * min(16.0, 1.2 * _PROBE_SECONDS / max(took, 1e-3))))
    return workers * steps * config.training.batch_size * family.cost(probe) / took


def founder(config: Config, family: Family[Any], cost: int, parameters: int) -> Any:
    """A first network within these limits, as measurements take it."""
    if not isinstance(family, SizesFounders):
        raise ConfigError(
            f"evolution.budget is planned; the family {family.name} cannot "
            "size founders: take --preset layered, or another preset of its own"
        )
    rng = generator(config.evolution.seed, "measuring")
    return family.founder(rng, max_cost=cost, max_parameters=parameters)


def _counts(config: Config, data: DataSet) -> tuple[int, int]:
    """How many samples are learnt from, and how many fitness is measured on."""
    if data.y_val is not None:
        return len(data.y_train), len(data.y_val)
    scored = round(len(data.y_train) * config.training.validation_part(len(data.y_train)))
    return len(data.y_train) - scored, scored


def _seconds(config: Config, engine: Engine, probe: Any, workers: int, steps: int) -> float:
    began = time.monotonic()
    # With a rate of zero nothing can diverge, and the work is the same.
    course = Course(steps=steps, rates=(0.0, 0.0), scored=1)
    jobs = [Job(number, 0, config.evolution.seed, probe, course=course) for number in range(workers)]
    for outcome in [future.result() for future in [engine.submit(job) for job in jobs]]:
        if outcome.failed:
            raise RunError(f"a first network could not be trained: {outcome.failed}")
    return time.monotonic() - began
