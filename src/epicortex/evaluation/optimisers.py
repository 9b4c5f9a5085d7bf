"""Optimisers by name: those of torch.optim, ours, those of installed packages, or one handed over in Python.

Created anew for each network and generation, so nothing of a step outlives its generation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import torch
from torch import nn

from epicortex import registry
from epicortex.errors import ConfigError
from epicortex.evaluation.orthogonal import OrthogonalSGD
from epicortex.text import nearest

OptimiserFactory: TypeAlias = Callable[..., torch.optim.Optimizer]
"""Called with the parameters and the optimiser's arguments, like a class of torch.optim."""

_SHELF: Final = registry.Shelf("optimiser", "training.optimiser", "epicortex.optimisers")
#: Those of ours, which torch.optim does not have.
_OWN: Final[Mapping[str, type[torch.optim.Optimizer]]] = {"OrthogonalSGD": OrthogonalSGD}


def torch_optimisers() -> dict[str, type[torch.optim.Optimizer]]:
    """The optimisers that torch.optim offers, by name."""
    return {
        name: value
        for name, value in vars(torch.optim).items()
        if isinstance(value, type)
        and issubclass(value, torch.optim.Optimizer)
        and value is not torch.optim.Optimizer
    }


def find_optimiser(name: str) -> OptimiserFactory:
    """The optimiser of this name; an unknown one is a `ConfigError` with the nearest right name.

    >>> find_optimiser("SGD").__name__
    'SGD'
    """
    known = {**torch_optimisers(), **_OWN}
    if name in known:
        return without_compiler(known[name])
    points = registry.installed(_SHELF.group)
    if name in points:
        factory: OptimiserFactory = registry.loaded(points[name], _SHELF.setting)
        return factory
    raise registry.unknown(_SHELF.setting, _SHELF.kind, name, sorted({*known, *points}))


def without_compiler(optimiser: type[torch.optim.Optimizer]) -> type[torch.optim.Optimizer]:
    """The same optimiser without the wrappers that are there for torch.compile.

    The first call of a wrapped method imports the whole compiler: over a second and 80 MB for each worker.

    >>> issubclass(without_compiler(torch.optim.SGD), torch.optim.SGD)
    True
    """
    bare_step = inspect.unwrap(optimiser.step)

    def step(self: torch.optim.Optimizer, closure: Callable[[], float] | None = None) -> Any:
        with torch.no_grad():
            return bare_step(self, closure)

    step.__signature__ = inspect.signature(bare_step)  # type: ignore[attr-defined]
    step.hooked = True  # type: ignore[attr-defined]  # or torch wraps it for profilers: a tenth of a small step
    bare = {name: inspect.unwrap(getattr(optimiser, name)) for name in ("add_param_group", "zero_grad")}
    return type(optimiser.__name__, (optimiser,), {**bare, "step": step})


def needs_closure(optimiser: torch.optim.Optimizer) -> bool:
    """Whether its step evaluates the loss itself, as that of LBFGS does."""
    closure = inspect.signature(optimiser.step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


def check_optimiser(factory: OptimiserFactory, name: str, arguments: Mapping[str, Any]) -> None:
    """Create it and take a step on small dense parameters, so that what cannot work is said before a run."""
    _check_names(factory, name, arguments)
    if arguments.get("nesterov", False) not in (True, False):  # torch takes any text as true
        raise ConfigError(
            f"training.optimiser_arguments: nesterov is {arguments['nesterov']!r}; it must be true or false"
        )
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in ((2, 2, 3, 3), (2, 2), (2,))]

    def closure() -> float:
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        return 0.0

    try:
        optimiser = factory(parameters, **arguments)
        closure()
        optimiser.step(closure) if needs_closure(optimiser) else optimiser.step()
    except Exception as error:
        raise ConfigError(
            f"training.optimiser: {name} with {_listed(arguments)} cannot train a network: {_line(error)}"
        ) from None


def _check_names(factory: OptimiserFactory, name: str, arguments: Mapping[str, Any]) -> None:
    known = inspect.signature(factory).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values()):
        return
    names = [entry for entry in known if entry != "params"]
    for argument in arguments:
        if argument not in names:
            near = nearest(argument, names)
            hint = f"did you mean {near!r}?" if near else f"it takes {', '.join(names)}"
            raise ConfigError(f"training.optimiser_arguments: {name} has no argument {argument!r}; {hint}")


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items()) or "no arguments"


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
