"""The budget `planned`: a run spends its minutes, or its generations, as one training of one network.

The learning rate rises quickly and falls on a line to zero at the end. In the first part of the time images
are small and structures compete (search); then the best network is trained by siblings that are averaged
after every generation (polish). The last generation trains nobody: it scores the averages on all samples.
All decisions that rest on the clock are made in `PlannedBudget.plan`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from epicortex.config import Config
from epicortex.ecosystem import census
from epicortex.ecosystem.comparison import beside, challengers, leading
from epicortex.ecosystem.history import History
from epicortex.ecosystem.jobs import CHANGED, MIRRORED_CLASS, Course, Job
from epicortex.ecosystem.plan import Phase, Plan
from epicortex.ecosystem.state import Counts, EcosystemState, Individual
from epicortex.families.family import Family, Shape

#: The first slice is this part of a usual one: until it is done, speed is a guess from another network.
_FIRST: Final = 0.25
#: By how much the expected speed may rise or fall from one generation to the next, but for the first.
_CHANGE: Final = 2.0
#: A search of ten minutes has so many rounds, of which the first may be too early to compare; one of other
#: minutes as many more or fewer as the root of their ratio.
_ROUNDS: Final = 8
_ROUNDS_WITHIN: Final = (3, 40)
#: Before this part of the run nobody is compared: what learns fastest in the first seconds is what is small.
_EARLIEST: Final = 0.1
#: No job of a search takes longer than about this, in seconds; those of polish are shorter still, since
#: siblings that are averaged often learn more.
_LONGEST: Final = 25.0
_POLISH: Final = (1.0, 12.0)
_POLISH_GENERATIONS: Final = 40
#: How many samples networks are scored on where structures are compared, and where they only train.
_SCORED: Final = (5000, 500)
#: The most that the learning rate is raised where networks are averaged.
_BOOST: Final = 2.0
#: Images are not made smaller than this.
_SMALLEST: Final = 12
#: Mirrored or changed images are as good as others where a network that never saw one does nearly as well.
_HARMLESS: Final = 0.9
_KNOWS: Final = 0.3
#: Until this part of the run they may be found harmless.
_UNDECIDED: Final = 0.35
#: Which changes are tried where few images are seen often, and what part of what networks know has to be left
#: on changed ones: of photographs it is 0.93 in other colours, and 0.85 where boxes are cut out.
_TRIED: Final = {"colour": _HARMLESS, "cutout": 0.75}


class PlannedBudget:
    """Every network is trained along a course that the generation's plan sets."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._own = config.budget
        self._siblings = config.budget.siblings or 1
        self._reserve = config.budget.reserve or 0.0

    def plan(self, state: EcosystemState, history: History, *, family: Family[Any], elapsed: float) -> Plan:
        """The plan of the next generation, after so many seconds; without minutes those are not looked at."""
        minutes = self._config.evolution.minutes
        if minutes is None:
            return self._counted(state, family)
        total = max(1.0, 60 * minutes - self._reserve)
        before = state.plan
        new = before is None or not before.timed
        begun = elapsed if before is None or new else before.begun
        searching = before is None or (before.phase == "search" and not before.last)
        end_of_search = begun + self._own.search * (total - begun)
        searching = searching and elapsed < end_of_search
        seconds = self._search_slice(total) if searching else _polish_slice(total)
        if new:
            seconds *= _FIRST
        left = (end_of_search if searching else total) - elapsed
        final = left < 1.5 * seconds
        if final and not searching:
            seconds = max(0.05, left)
        whole = max(1e-3, total - begun)
        end = 1.0 if final and not searching else max(0.0, min(1.0, (elapsed + seconds - begun) / whole))
        # Where reading took all of the time, or a later process counts anew, no time is before the first.
        times = max(0.0, min(end, (elapsed - begun) / whole)), end
        size = self._size(state, family, times[0])
        if not new and _decayed(before, minutes):
            return replace(self._closing(state, family), until=minutes, begun=begun)
        plan = self._outline(
            state, family, searching=searching, last=searching and final, times=times, size=size
        )
        networks = self._costs(state, plan, family)
        each = self._config.training.batch_size * networks * _shrunk(state, family, size)
        speed = self._speed(before, history)
        steps = max(1, round(speed * seconds / each))
        return replace(plan, steps=steps, work=steps * each, until=minutes, speed=speed, begun=begun)

    def jobs(self, state: EcosystemState, *, generation: int) -> tuple[Job, ...]:
        """A job for every network, each with its course."""
        plan = state.plan
        if plan is None or plan.generation != generation:
            raise ValueError(f"generation {generation} was not planned")
        groups = census.by_species(state.networks)
        return tuple(
            self._job(network, groups[network.species], plan, generation) for network in state.networks
        )

    def limited(self, jobs: Sequence[Job], history: Sequence[Counts]) -> tuple[Job, ...]:
        """As they are: the plan is the limit."""
        del history
        return tuple(jobs)

    def spent(self, history: Sequence[Counts]) -> int:
        """One for each network and generation."""
        return sum(one.networks for one in history)

    def _job(self, network: Individual, group: list[Individual], plan: Plan, generation: int) -> Job:
        training, steps = self._config.training, plan.steps
        if plan.phase == "polish" and network.species != plan.main:
            steps = round(steps / plan.siblings)
        place = next(place for place, one in enumerate(group) if one.id == network.id)
        course = Course(
            steps=max(min(1, plan.steps), round(steps * network.pace)),
            start=plan.start,
            stream=place,
            size=plan.size,
            rates=plan.rates,
            flip=plan.flip,
            spared=plan.spared,
            augment=training.changes or plan.augment,
            average=not plan.ends_run,
            scored=plan.scored,
            mirrored=plan.mirrored and place == 0,
            changed=plan.changed if place == 0 else (),
        )
        return Job(network.id, generation, self._config.evolution.seed, network.phenotype, course=course)

    def _counted(self, state: EcosystemState, family: Family[Any]) -> Plan:
        """Without minutes: a part of the generations is search, and each has the same number of steps."""
        generations, now = self._config.evolution.generations, state.generation + 1
        counted = state.plan is None or not state.plan.timed
        if counted and _decayed(state.plan, generations):
            return replace(self._closing(state, family), until=float(generations))
        trained = max(1, generations - 1)
        search = math.floor(self._own.search * trained)
        begun = state.plan
        searching = now <= search and (begun is None or (begun.phase == "search" and not begun.last))
        times = min(1.0, (now - 1) / trained), min(1.0, now / trained)
        size = self._size(state, family, times[0])
        last = now == search if searching else now >= generations
        plan = self._outline(state, family, searching=searching, last=last, times=times, size=size)
        return replace(plan, steps=self._own.steps, work=0.0, until=float(generations))

    def _closing(self, state: EcosystemState, family: Family[Any]) -> Plan:
        """The end: what polish has averaged is scored."""
        return self._outline(state, family, searching=False, last=True, times=(1.0, 1.0), size=None)

    def _outline(
        self,
        state: EcosystemState,
        family: Family[Any],
        *,
        searching: bool,
        last: bool,
        times: tuple[float, float],
        size: Shape | None,
    ) -> Plan:
        """The plan but for its work."""
        before, generation = state.plan, state.generation + 1
        main, small = (None, None) if searching else self._species(state, family)
        rounds = self._slices_a_round
        flip, spared = self._flips(state, family)
        undecided = times[0] < _UNDECIDED
        augment, changed = self._changes(state, family, early=times[0] < _EARLIEST)
        judge = searching and (last or (generation % rounds == 0 and times[1] >= _EARLIEST))
        phase: Phase = "search" if searching else "polish"
        return Plan(
            generation=generation,
            phase=phase,
            steps=0,
            start=0 if before is None else before.start + before.steps,
            rates=(self._boost * rate(times[0]), self._boost * rate(times[1])),
            until=0.0,
            size=size,
            flip=flip,
            spared=spared,
            judge=judge,
            first=before is None or before.phase != phase,
            last=last,
            siblings=self._siblings,
            main=main,
            small=small,
            scored=None if last and not searching else _SCORED[0 if judge else 1],
            mirrored=self._asks_for_flips and (not flip or bool(spared)) and undecided,
            augment=augment,
            changed=changed if undecided else (),
        )

    @property
    def _boost(self) -> float:
        """The mean of several networks takes smaller steps than each of them: they may be larger."""
        return min(_BOOST, float(self._siblings)) if self._config.selection.averaging else 1.0

    @property
    def _slices_a_round(self) -> int:
        """How many generations there are between two comparisons of structures."""
        minutes = self._config.evolution.minutes
        if minutes is None:
            return 1
        total = max(1.0, 60 * minutes - self._reserve)
        return max(1, math.ceil(self._own.search * total / _rounds(total) / _LONGEST))

    def _search_slice(self, total: float) -> float:
        return self._own.search * total / _rounds(total) / self._slices_a_round

    def _speed(self, before: Plan | None, history: History) -> float:
        """Multiplications a second, by all workers: halfway from what was expected to what was seen."""
        if before is None or not before.work or not history or history[-1].train_seconds <= 0:
            return self._own.speed or 1e9
        seen = before.work / history[-1].train_seconds
        if before.generation == 1:
            return min(seen, _CHANGE * before.speed)
        # What was replayed from the journal took no time, and says nothing of speed.
        return before.speed * min(_CHANGE, max(1 / _CHANGE, math.sqrt(seen / before.speed)))

    def _costs(self, state: EcosystemState, plan: Plan, family: Family[Any]) -> float:
        """What a step of all networks costs together, for one sample of full size."""
        if plan.phase == "search":
            groups = census.by_species(state.networks).values()
            each = 1 + challengers(self._config, len(groups)) if self._config.evolution.evolve else 1
            costs = [family.cost(group[0].phenotype) for group in groups]
            return float(max(each * sum(costs), self._siblings * max(costs)))
        firsts = {network.species: network for network in reversed(state.networks)}
        total = 0.0
        for species, share in ((plan.main, float(plan.siblings)), (plan.small, 1.0)):
            if species is not None:
                total += share * family.cost(firsts[species].phenotype)
        return total

    def _species(self, state: EcosystemState, family: Family[Any]) -> tuple[int | None, int | None]:
        """Which species is polished most, and which smaller one as well."""
        groups = census.by_species(network for network in state.networks if network.failed is None)
        if state.plan is not None and state.plan.phase == "polish" and state.plan.main in groups:
            small = state.plan.small
            return state.plan.main, small if small in groups else None
        firsts = [min(group, key=lambda one: one.id) for group in groups.values()]
        lead = leading(firsts, family)
        other = beside(firsts, lead, family)
        return lead.species, None if other is None else other.species

    @property
    def _asks_for_flips(self) -> bool:
        return self._config.training.flip == "auto"

    def _flips(self, state: EcosystemState, family: Family[Any]) -> tuple[bool, tuple[int, ...]]:
        """Whether images are mirrored in training, and of which classes not.

        As the settings say, or once mirrored ones are known as well: all of them, or those of some classes.
        """
        training, before = self._config.training, state.plan
        if training.flip != "auto":
            return training.flip, training.unflipped
        flip, spared = (False, ()) if before is None else (before.flip, before.spared)
        if flip and not spared:
            return True, ()
        outputs = family.outline(family.encode(state.networks[0].phenotype)[0]).outputs
        left = set(spared if flip else range(outputs))
        for network in state.networks:
            if _knows_mirrored(network, 1 / outputs if self._config.is_accuracy else 0.0):
                left = set()
            left -= {
                number
                for number in left
                if network.measures.get(f"{MIRRORED_CLASS}{number}", 0.0) >= _HARMLESS
            }
        left |= set(training.unflipped)
        return (True, tuple(sorted(left))) if len(left) < outputs else (False, ())

    def _changes(
        self, state: EcosystemState, family: Family[Any], *, early: bool
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """How images are changed, where that is found out on the way, and which changes are still tried.

        A change is made once networks that never saw it keep enough of what they know on changed images, on
        average: not early, when they only know what is coarse.
        """
        if not self._config.training.tries_augment or len(_spatial(state, family)) != 2:
            return (), ()
        before = () if state.plan is None else state.plan.augment

        def harmless(name: str, part: float) -> bool:
            left = [one.measures[CHANGED + name] for one in state.networks if CHANGED + name in one.measures]
            return not early and bool(left) and sum(left) >= part * len(left)

        used = tuple(name for name, part in _TRIED.items() if name in before or harmless(name, part))
        return used, tuple(name for name in _TRIED if name not in used)

    def _size(self, state: EcosystemState, family: Family[Any], time: float) -> Shape | None:
        """The size of images at a time from 0 to 1 of the run; None: as they are."""
        spatial = _spatial(state, family)
        if len(spatial) != 2 or time >= self._own.small_images:
            return None
        smaller = tuple(round(self._own.small_size * side) for side in spatial)
        return smaller if min(smaller) >= _SMALLEST else None


def _knows_mirrored(network: Individual, chance: float) -> bool:
    """Whether a network that never saw a mirrored image does nearly as well on them, all in all."""
    if network.fitness is None or "mirrored" not in network.measures:
        return False
    known, mirrored = network.fitness - chance, network.measures["mirrored"] - chance
    return known > _KNOWS * (1 - chance) and mirrored >= _HARMLESS * known


def _decayed(before: Plan | None, until: float) -> bool:
    """Whether all training of a run that ends then is done, but not its last score."""
    if before is None or before.until != until:
        return False
    return before.phase == "polish" and before.rates[1] == 0 and not before.last


def rate(time: float) -> float:
    """What the learning rate is multiplied by at a time from 0 to 1 of the run.

    >>> [round(rate(time), 3) for time in (0.0, 0.05, 0.1, 0.5, 1.0)]
    [0.05, 0.76, 0.9, 0.5, 0.0]
    """
    return min(1.0, 15 * time + 0.05) * (1 - time)


def _rounds(total: float) -> int:
    least, most = _ROUNDS_WITHIN
    return max(least, min(most, round(_ROUNDS * math.sqrt(total / 600))))


def _polish_slice(total: float) -> float:
    least, most = _POLISH
    return max(least, min(most, total / _POLISH_GENERATIONS))


def _spatial(state: EcosystemState, family: Family[Any]) -> Shape:
    return family.outline(family.encode(state.networks[0].phenotype)[0]).input_shape[1:]


def _shrunk(state: EcosystemState, family: Family[Any], size: Shape | None) -> float:
    """What a sample of a size costs, where one of full size costs 1."""
    if size is None:
        return 1.0
    return math.prod(size) / math.prod(_spatial(state, family))
