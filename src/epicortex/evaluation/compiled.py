"""The evaluator `backprop` on native arithmetic: the same jobs as `trainer.Trainer`, not by torch.

The weights come out slightly different, since sums are made in another order; they are the same bits on every
CPU. What a job consists of is in `training`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex import native
from epicortex.config import TrainingConfig
from epicortex.data import DataSet, Scaling
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.augmentation import TURNS
from epicortex.evaluation.evaluator import NetworkFailed, Pace
from epicortex.evaluation.fitness import FitnessFunction, Values
from epicortex.evaluation.goals import Goal
from epicortex.evaluation.samples import Rows, class_weights, fitness_rows, spread
from epicortex.evaluation.training import ELEMENTWISE, Batch, Model, View, attempt, recipe
from epicortex.families.family import Compilable, Family, HasAverages, Problem, Shape

if TYPE_CHECKING:
    import torch

    from epicortex.evaluation.optimisers import OptimiserFactory

#: How many samples are scored between two signs of life; it alters no bit.
_SCORED: Final = 2048
_OPTIMISERS: Final[Mapping[str, Callable[..., native.Optimiser]]] = {
    "SGD": native.SGD,
    "OrthogonalSGD": native.OrthogonalSGD,
    "Adadelta": native.Adadelta,
    "Adam": native.Adam,
    "AdamW": native.AdamW,
}
_LARGEST: Final = float(np.finfo(np.float32).max)
#: What each of these takes; other arguments (amsgrad, maximize, …) are left to torch's own.
_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    "SGD": frozenset({"lr", "momentum", "dampening", "weight_decay", "nesterov"}),
    "OrthogonalSGD": frozenset({"lr", "momentum", "weight_decay", "nesterov", "matrix_rate", "matrix_decay"}),
    "Adadelta": frozenset({"lr", "rho", "eps", "weight_decay"}),
    "Adam": frozenset({"lr", "betas", "eps", "weight_decay"}),
    "AdamW": frozenset({"lr", "betas", "eps", "weight_decay"}),
}


def why_torch(
    training: TrainingConfig,
    family: Family[Any],
    problem: Problem,
    data: DataSet | None,
    own_optimiser: OptimiserFactory | None,
) -> str | None:
    """Why a run cannot train on native arithmetic; None where it can."""
    dtype = None if data is None else data.x_train.dtype
    dimensions = len(problem.input_shape) - 1
    special = training.decay == "weights" or training.optimiser_state == "inherited"
    alone = own_optimiser is not None or training.optimiser not in ELEMENTWISE | _OPTIMISERS.keys()
    reasons = (
        (not native.available(), native.why_not()),
        (not isinstance(family, Compilable), f"the family {family.name} has no native form"),
        (data is None, "there is no data set"),
        (dimensions > 2, f"{dimensions} spatial dimensions are more than 2"),
        (dtype not in (np.uint8, np.float32), f"values of type {dtype} are neither uint8 nor float32"),
        (training.device != "cpu", f"training.device is {training.device}"),
        (alone, f"the optimiser {training.optimiser} does not work on one vector of parameters"),
        (special and not is_ours(training), f"{training.optimiser} is torch's own, and treats weights alike"),
    )
    return next((reason for holds, reason in reasons if holds), None)


class NativeTrainer:
    """Trains and scores networks on one data set natively; prepared once, used for any number of jobs."""

    def __init__(
        self,
        data: DataSet,
        family: Any,
        training: TrainingConfig,
        *,
        seed: int,
        fitness: FitnessFunction | None = None,
    ) -> None:
        if not native.available():
            raise ConfigError(
                f"this run trains on native arithmetic, which is not there ({native.why_not()}); install "
                "epicortex where there is a C++ compiler"
            )
        if fitness is not None or not is_ours(training) or TURNS & set(training.augment):
            import torch  # noqa: F401  a second, and not one of the first network's time
        self.family = family
        self.training = training
        self.fitness = fitness
        self.goal = Goal.of(data)
        self.scaling = _scaling(data.scaling)
        learnt, measured = fitness_rows(data, training, seed)
        self.learnt, self.measured = _Rows(learnt), _Rows(measured)
        self.samples = len(learnt)
        self.spatial = tuple(self.learnt.x.shape[2:])
        self.labels, self.taught = measured.labels, learnt.labels
        weights = None
        if training.class_weights == "balanced":
            weights = class_weights(self.taught, len(data.classes)).tolist()
        self.rate = self.goal.rate(training.optimiser)
        self.loss = self.goal.native(training.smoothing(len(self.spatial)), weights)

    def run(
        self,
        job: Job,
        *,
        heartbeat: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Outcome:
        """Train and score one network. `heartbeat` is called between batches; so is `should_stop`,
        which breaks off with `Stopped`.
        """
        return attempt(self, job, heartbeat=heartbeat, should_stop=should_stop)

    def model(self, job: Job) -> Model:
        """The network of a job as a program."""
        return _NativeModel(self, job)


class _NativeModel:
    """A network that the native arithmetic trains."""

    def __init__(self, shop: NativeTrainer, job: Job) -> None:
        self._shop, self._job = shop, job
        family = shop.family
        tensors, state = family.tensors(job.phenotype)
        self._program = native.Program(shop.learnt.x.shape[1:], family.operations(job.phenotype), shop.loss)
        self._parameters = self._program.flatten(tensors)
        self._state = self._program.initial_state() if state is None else state.copy()
        self._networks: dict[Shape | None, native.Network] = {}
        self._average: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
        self._kept: Any = None

    def _at(self, size: Shape | None) -> native.Network:
        """The network for images of a size; all share their parameters and their state."""
        if size not in self._networks:
            program = self._program if size is None else self._program.resized(size)
            self._networks[size] = native.Network(program, self._parameters, self._state)
        return self._networks[size]

    def begin(self) -> None:
        training, course = self._shop.training, self._job.course
        factors = recipe(self._shop.family, self._job.phenotype)
        self._stepper = _Stepper(
            self._at(course.size if course else None),
            training,
            self._job.rate * factors.get("rate", 1.0),
            factors.get("decay", 1.0),
            self._shop.rate,
        )
        self._inherits = training.optimiser_state == "inherited"
        held = self._shop.family.momentum(self._job.phenotype) if self._inherits else None
        if held is not None:
            self._stepper.remind(self._program.flatten(held))

    def step(self, batch: Batch, rate: float) -> float:
        learnt = self._shop.learnt
        rows = batch.rows if learnt.whole else learnt.rows[batch.rows]
        x, places = learnt.x, rows
        if batch.augment is not None:
            x, places = batch.augment(x[rows]), np.arange(len(rows))
        if self._job.course is not None:
            self._stepper.slow(rate)
        return self._stepper.step(
            x,
            places,
            learnt.y[rows],
            scaling=self._shop.scaling,
            moves=batch.moves,
            flips=batch.flips,
        )

    def average(self, weight: float) -> None:
        if self._average is None:
            self._average = self._parameters.copy(), self._state.copy()
        for mean, now in zip(self._average, (self._parameters, self._state), strict=True):
            if len(mean):
                native.update_average(mean, now, weight)

    def end(self) -> None:
        family = self._shop.family
        momentum = _tensors(self._program, self._stepper.memory()) if self._inherits else None
        self._kept = self._learned(momentum)
        if self._average is not None and isinstance(family, HasAverages):
            self._parameters[:], self._state[:] = self._average
            self._kept = family.with_average(self._kept, self._learned(None))

    def answers(self, view: View, pace: Pace) -> Values:
        measured = self._shop.measured
        places = measured.rows[spread(len(measured), view.most)]
        return _answers(self._at(view.size), measured.x, places, self._shop.scaling, pace, view)

    def losses(self, answers: Values, labels: Values) -> NDArray[np.float32]:
        return native.sample_losses(self._shop.loss, answers, labels)

    def phenotype(self) -> Any:
        return self._kept

    def _learned(self, momentum: list[NDArray[np.float32]] | None) -> Any:
        family, phenotype = self._shop.family, self._job.phenotype
        learned = _tensors(self._program, self._parameters)
        state = self._state if self._program.state_size else None
        if momentum is not None:
            return family.with_tensors(phenotype, learned, state, momentum)
        return family.with_tensors(phenotype, learned, state)


def answers(family: Any, phenotype: Any, rows: Rows, scaling: Scaling) -> Values:
    """What a network says of samples [samples, outputs]: the same bits on every CPU."""
    tensors, state = family.tensors(phenotype)
    samples = _Rows(rows)
    program = native.Program(samples.x.shape[1:], family.operations(phenotype))
    network = native.Network(program, program.flatten(tensors), state if state is None else state.copy())
    return _answers(network, samples.x, samples.rows, _scaling(scaling), lambda: None, View())


def _answers(
    network: native.Network,
    x: NDArray[Any],
    rows: NDArray[np.int64],
    scaling: native.Scaling,
    pace: Callable[[], None],
    view: View,
) -> Values:
    """What a network says of samples, with a sign of life now and then; NaN fails it."""
    parts = [np.empty((0, network.program.outputs), np.float32)]
    for start in range(0, len(rows), _SCORED):
        pace()
        part = rows[start : start + _SCORED]
        flips = np.ones(len(part), np.bool_) if view.mirrored else None
        shown, places = (x, part) if view.augment is None else (view.augment(x[part]), np.arange(len(part)))
        parts.append(network.score(shown, places, scaling=scaling, flips=flips))
    logits = np.concatenate(parts)
    if not np.isfinite(logits).all():
        raise NetworkFailed("its outputs are not finite (NaN or infinity)")
    return logits


def _scaling(scaling: Scaling) -> native.Scaling:
    return native.Scaling(scaling.divisor, scaling.mean, scaling.std)


class _Rows:
    """Samples as the library takes them: all of them, and which rows are meant."""

    def __init__(self, rows: Rows) -> None:
        # No copy, unless somebody handed over a view, such as every fourth sample.
        self.x: NDArray[Any] = np.ascontiguousarray(rows.x)
        flat = rows.y.ndim == 1
        self.y: NDArray[Any] = rows.y.astype(np.int64) if flat else np.ascontiguousarray(rows.y, np.float32)
        self.whole = rows.index is None
        self.rows: NDArray[np.int64] = np.arange(len(self.y)) if rows.index is None else rows.index

    def __len__(self) -> int:
        return len(self.rows)


class _Stepper:
    """Training steps by the configured optimiser: ours, or torch's own on the same vector."""

    def __init__(
        self, network: native.Network, training: TrainingConfig, rate: float, decay: float, suited: float
    ) -> None:
        """Factors on the rate and on the decay, and on the rate of whatever steps by its gradient alone."""
        self._network = network
        rate *= suited
        self._ours: native.Optimiser | None = None
        self._theirs: torch.optim.Optimizer | None = None
        name, arguments = training.optimiser, dict(training.optimiser_arguments)
        if is_ours(training):
            self._ours = _OPTIMISERS[name](**arguments)
            self._ours.lr *= rate
            self._rate = self._ours.lr
            self._ours.weight_decay *= decay
            if isinstance(self._ours, native.OrthogonalSGD):
                self._ours.matrix_decay *= decay
                self._ours.matrix_rate /= suited
                self._ours.matrices = network.program.matrices()
            if training.decay == "weights":
                self._ours.decayed = network.program.weight_mask()
            return
        import torch

        from epicortex.evaluation.optimisers import find_optimiser

        parameter = torch.nn.Parameter(torch.from_numpy(network.parameters))
        parameter.grad = torch.from_numpy(network.gradient)
        self._theirs = find_optimiser(name)([parameter], **arguments)
        for group in self._theirs.param_groups:
            group["lr"] *= rate
            self._rate = group["lr"]
            if "weight_decay" in group:
                group["weight_decay"] *= decay

    def slow(self, factor: float) -> None:
        """Take the next steps with the learning rate times a factor."""
        if self._ours is not None:
            self._ours.lr = self._rate * factor
        if self._theirs is not None:
            for group in self._theirs.param_groups:
                group["lr"] = self._rate * factor

    def step(self, *batch: Any, **more: Any) -> float:
        """The loss before the step."""
        loss = self._network.step(*batch, **more, optimiser=self._ours)
        if self._theirs is not None:
            self._theirs.step()
        return loss

    def remind(self, momentum: NDArray[np.float32]) -> None:
        """Go on with a momentum of before."""
        assert self._ours is not None
        self._ours.memory, self._ours.steps = [momentum], 1

    def memory(self) -> NDArray[np.float32]:
        """The momentum now."""
        assert self._ours is not None
        return self._ours.memory[0]


def is_ours(training: TrainingConfig) -> bool:
    """Whether the optimiser runs natively, with all arguments that it is given."""
    name = training.optimiser
    return name in _OPTIMISERS and set(training.optimiser_arguments) <= _ARGUMENTS[name]


def is_sound(training: TrainingConfig) -> bool:
    """Whether the optimiser runs natively with arguments that are right beyond doubt: torch need not judge.

    >>> is_sound(TrainingConfig(optimiser="SGD", optimiser_arguments={"lr": 0.1}))
    True
    >>> is_sound(TrainingConfig(optimiser="SGD", optimiser_arguments={"lr": -1.0}))
    False
    """
    given: dict[str, Any] = dict(training.optimiser_arguments)
    nesterov, betas = given.pop("nesterov", False), given.pop("betas", (0.9, 0.999))
    numbers = (*given.values(), *(betas if isinstance(betas, list | tuple) else (math.nan,)))
    plain = all(type(one) in (int, float) and 0 <= one <= _LARGEST for one in numbers)
    if not plain or not is_ours(training):
        return False
    if len(betas) != 2 or max(*betas, given.get("rho", 0.0)) >= 1:
        return False
    forward = given.get("momentum", 0) > 0 and not given.get("dampening", 0)
    return nesterov is False or (nesterov is True and forward)


def _tensors(program: native.Program, vector: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    return [array.astype(np.float32, copy=False) for array in program.unflatten(vector)]
