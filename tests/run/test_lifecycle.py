"""A whole run on a small data set: the same bytes however it is run, stopped and resumed."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicortex.config import Config
from epicortex.config import resolving as settings
from epicortex.data import DataSet, Scaling, load
from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.state import Tally
from epicortex.engines import Engine, create
from epicortex.errors import ConfigError, DataError, RunError, StorageError
from epicortex.run.lifecycle import INTERRUPTED, evolve, resume
from epicortex.run.loop import Watcher
from epicortex.run.record import load_champion, read_run

GENERATIONS = 4


@pytest.fixture(scope="module")
def data() -> DataSet:
    """Every fourth digit: enough to learn something, quick to train on."""
    digits = load("digits")
    return DataSet(
        name="few digits",
        x_train=digits.x_train[::4],
        y_train=digits.y_train[::4],
        x_test=digits.x_test[::4],
        y_test=digits.y_test[::4],
        classes=digits.classes,
        scaling=digits.scaling,
    )


def config(**changes: Any) -> Config:
    small = {
        "evolution.generations": GENERATIONS,
        "evolution.initial_networks": 6,
        "evolution.max_networks": 8,
        "evolution.initial_species": 2,
        "evolution.max_species": 4,
        "training.min_steps": 5,
        "training.engine": "serial",
    }
    dotted = {name.replace("__", "."): value for name, value in changes.items()}
    return settings.resolve("layered", {**small, **dotted})


def same_bytes(run: Path) -> dict[str, Any]:
    """What has to be equal for two runs to count as the same."""
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    without_clock = [
        {name: value for name, value in line.items() if not name.endswith("seconds")} for line in history
    ]
    champion = {path.name: path.read_bytes() for path in sorted((run / "champion").iterdir())}
    return {"history": without_clock, "networks": (run / "networks.jsonl").read_bytes(), **champion}


@pytest.fixture(scope="module")
def undisturbed(data: DataSet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("runs") / "undisturbed"
    result = evolve(data, config(), out=out)
    assert result.stop_reason == f"all {GENERATIONS} generations are done"
    return same_bytes(out)


class StopAfter(Watcher):
    """Asks the run to stop when so many networks of a generation are back."""

    def __init__(self, generation: int, networks: int) -> None:
        self.stop = threading.Event()
        self._when = (generation, networks)
        self._generation = 1
        self.notes: list[str] = []

    def progress(self, done: int, total: int, failed: str | None = None) -> None:
        if (self._generation, done) == self._when:
            self.stop.set()

    def generation(self, tally: Tally, seconds: float) -> None:
        self._generation = tally.generation + 1
        if (self._generation, 0) == self._when:
            self.stop.set()

    def note(self, text: str) -> None:
        self.notes.append(text)


class CountingEngine(Engine):
    """An engine that counts what it is asked to train."""

    def __init__(self, settings: Config) -> None:
        self._engine = create("serial", None, settings)
        self.submitted: list[tuple[int, int]] = []

    workers = property(lambda self: self._engine.workers)

    def prepare(self, setup: Any) -> None:
        self._engine.prepare(setup)

    def submit(self, job: Any) -> Any:
        self.submitted.append((job.generation, job.network))
        return self._engine.submit(job)

    def close(self) -> None:
        self._engine.close()


def test_a_run_leaves_what_the_design_says(data: DataSet, tmp_path: Path) -> None:
    result = evolve(data, config(), out=tmp_path / "run")
    record = read_run(tmp_path / "run")
    assert record.history == result.history
    assert [line.generation for line in record.history] == [1, 2, 3, 4]
    assert list(asdict(record.history[0])) == [
        *("generation", "networks", "species", "highest_fitness", "average_fitness", "offspring_fitness"),
        *("offspring", "mutations", "mutations_refused", "mutations_failed", "species_founded"),
        *("species_extinct", "culled", "failed", "champion", "champion_parameters", "mean_parameters"),
        *("train_seconds", "evolve_seconds", "seconds"),
    ]
    assert record.history[0].offspring_fitness is None
    networks = list(record.networks())
    assert len(networks) == sum(line.networks for line in record.history)
    champion = record.champion()
    assert champion.facts.fitness == max(line.highest_fitness or 0.0 for line in record.history)
    assert champion.facts.test_accuracy == result.test
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        *("champion", "checkpoints", "config.toml", "history.jsonl", "lock", "networks.jsonl", "tensorboard")
    ]
    assert [p.name for p in sorted((tmp_path / "run" / "checkpoints").iterdir())] == ["00000003", "00000004"]


def test_the_champion_read_back_computes_the_same(data: DataSet, tmp_path: Path) -> None:
    import torch

    from epicortex.champion.module import load

    result = evolve(data, config(), out=tmp_path / "run")
    alone = tmp_path / "sent.safetensors"
    alone.write_bytes((tmp_path / "run" / "champion" / "model.safetensors").read_bytes())
    x = torch.from_numpy(np.array(data.x_test))
    expected = result.module(x)
    assert result.module is result.module
    scaled = torch.from_numpy(data.scaling.apply(np.asarray(data.x_test)))
    for path in (tmp_path / "run", alone):
        assert torch.equal(load(path)(x), expected)
        torch.testing.assert_close(load_champion(path).network()(scaled), expected)


def test_networks_name_their_genome_when_it_is_new_and_its_hash_otherwise(
    data: DataSet, tmp_path: Path
) -> None:
    from epicortex.storage.codec import digest

    evolve(data, config(), out=tmp_path / "run")
    known: dict[int, str] = {}
    for line in read_run(tmp_path / "run").networks():
        if isinstance(line.genome, dict):
            known[line.id] = digest(line.genome)
        else:
            assert known[line.id] == line.genome
        mutated = any(event.outcome == "applied" for event in line.events)
        assert isinstance(line.genome, dict) == (line.birth == line.generation - 1 or mutated)


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_give_the_same_bytes_as_serial(
    data: DataSet, tmp_path: Path, undisturbed: dict[str, Any], workers: int
) -> None:
    evolve(data, config(training__engine="processes", training__workers=workers), out=tmp_path / "run")
    assert same_bytes(tmp_path / "run") == undisturbed


def test_a_run_in_memory_is_the_same_run(data: DataSet, undisturbed: dict[str, Any]) -> None:
    result = evolve(data, config())
    assert result.folder is None
    without_clock = [
        {k: v for k, v in asdict(line).items() if not k.endswith("seconds")} for line in result.history
    ]
    assert without_clock == undisturbed["history"]


@pytest.mark.parametrize(("generation", "networks"), [(1, 2), (2, 0), (3, 3), (4, 2)])
def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_bytes(
    data: DataSet, tmp_path: Path, undisturbed: dict[str, Any], generation: int, networks: int
) -> None:
    watcher = StopAfter(generation, networks)
    stopped = evolve(data, config(), out=tmp_path / "run", watcher=watcher, stop=watcher.stop)
    assert stopped.stop_reason == INTERRUPTED
    assert stopped.interrupted
    assert stopped.state.generation == generation - 1
    engine = CountingEngine(config())
    with engine:
        result = resume(tmp_path / "run", data=data, engine=engine)
    assert result.stop_reason == f"all {GENERATIONS} generations are done"
    assert same_bytes(tmp_path / "run") == undisturbed
    again = sum(1 for asked, _ in engine.submitted if asked == generation)
    total = undisturbed["history"][generation - 1]["networks"]
    assert again <= total - networks


def test_a_run_extended_equals_one_that_was_longer_from_the_start(
    data: DataSet, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    evolve(data, config(evolution__generations=2), out=tmp_path / "run")
    resume(tmp_path / "run", {"evolution.generations": GENERATIONS}, data=data)
    assert same_bytes(tmp_path / "run") == undisturbed
    assert read_run(tmp_path / "run").config.evolution.generations == GENERATIONS


def test_resuming_a_finished_run_changes_nothing(data: DataSet, tmp_path: Path) -> None:
    first = evolve(data, config(), out=tmp_path / "run")
    before = same_bytes(tmp_path / "run")
    again = resume(tmp_path / "run", data=data)
    assert same_bytes(tmp_path / "run") == before
    assert again.history == first.history
    assert again.test == first.test


def test_a_built_in_data_set_is_found_again_by_its_name(tmp_path: Path) -> None:
    evolve("digits", config(evolution__generations=1, training__min_steps=1), out=tmp_path / "run")
    result = resume(tmp_path / "run", {"evolution.generations": 2})
    assert len(result.history) == 2


def test_a_change_that_would_alter_what_is_done_is_refused(data: DataSet, tmp_path: Path) -> None:
    evolve(data, config(evolution__generations=1), out=tmp_path / "run")
    with pytest.raises(ConfigError, match=r"evolution.seed is 1 in this run and cannot become 2"):
        resume(tmp_path / "run", {"evolution.seed": 2}, data=data)
    resume(tmp_path / "run", {"evolution.seed": 1, "training.workers": 2}, data=data)


def test_a_file_cannot_have_a_cluster_joined_or_countless_processes_started(
    data: DataSet, tmp_path: Path
) -> None:
    asked = config(training__workers=9999, ray__address="ray://203.0.113.1:10001", evolution__generations=1)
    evolve(data, asked, out=tmp_path / "run")
    with pytest.raises(ConfigError, match=r"ray://203.0.113.1:10001; give --ray.address again"):
        resume(tmp_path / "run", {"training.engine": "ray"}, data=data)
    watcher = StopAfter(0, 0)
    resume(tmp_path / "run", {"training.engine": "processes"}, data=data, watcher=watcher)
    assert watcher.notes == [
        "the run had 9999 workers, too many for this machine: one a core is used (--workers sets it)"
    ]


def test_an_operator_of_an_installed_package_is_found_by_its_name(
    data: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "installed" / "twins-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: twins\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[epicortex.operators]\nduplicate = tests.families.layered.test_third_party:DuplicateNode\n"
        "broken = nowhere.at.all:Operator\nwrong = tests.families.layered.test_third_party:GENOME\n"
    )
    monkeypatch.syspath_prepend(package.parent)
    result = evolve(data, config(evolution__operators=["layer", "node", "duplicate"]))
    assert result.stop_reason == f"all {GENERATIONS} generations are done"
    for name, reason in [
        ("broken", "'broken' is installed but cannot be loaded: ModuleNotFoundError"),
        ("wrong", "is not an operator called 'wrong'"),
        ("os.system", "no operator is called 'os.system'; there are layer, .*duplicate"),
    ]:
        with pytest.raises(ConfigError, match=reason) as caught:
            evolve(data, config(evolution__operators=["layer", name]))
        assert "\n" not in str(caught.value)


def test_other_data_is_refused_on_resume(data: DataSet, tmp_path: Path) -> None:
    evolve(data, config(evolution__generations=1), out=tmp_path / "run")
    with pytest.raises(DataError, match="not the data"):
        resume(tmp_path / "run", data="digits")
    with pytest.raises(DataError, match="data from a program"):
        resume(tmp_path / "run")


def test_a_folder_that_holds_anything_is_refused(data: DataSet, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("do not lose me")
    with pytest.raises(StorageError, match=r"not empty \(it holds thesis.tex\)"):
        evolve(data, config(), out=tmp_path)
    evolve(data, config(evolution__generations=1), out=tmp_path / "run")
    with pytest.raises(StorageError, match="already holds a run"):
        evolve(data, config(), out=tmp_path / "run")


def test_a_generation_in_which_all_fail_stops_the_run_and_is_tried_again(
    data: DataSet, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    with pytest.raises(RunError, match=r"took longer than the limit.*resuming tries this generation again"):
        evolve(data, config(training__time_limit=1e-9), out=tmp_path / "run")
    resume(tmp_path / "run", {"training.time_limit": None}, data=data)
    assert same_bytes(tmp_path / "run") == undisturbed


def test_failures_decided_by_the_clock_are_replayed(data: DataSet, tmp_path: Path) -> None:
    """Stopped after some networks ran out of time, resumed with time enough: they stay failed."""
    watcher = StopAfter(1, 3)
    with pytest.raises(RunError):
        evolve(data, config(training__time_limit=1e-9), out=tmp_path / "gone")
    evolve(
        data,
        config(training__time_limit=1e-9),
        out=tmp_path / "run",
        watcher=watcher,
        stop=watcher.stop,
    )
    result = resume(tmp_path / "run", {"training.time_limit": None}, data=data)
    assert result.history[0].failed >= 3


def test_an_ancestor_is_the_first_founder_also_after_a_resume(data: DataSet, tmp_path: Path) -> None:
    first = evolve(data, config(evolution__generations=2))
    assert first.champion is not None
    watcher = StopAfter(1, 2)
    evolve(
        data,
        config(evolution__generations=1),
        out=tmp_path / "run",
        ancestor=first.champion.phenotype,
        watcher=watcher,
        stop=watcher.stop,
    )
    resume(tmp_path / "run", data=data)
    evolve(
        data, config(evolution__generations=1), out=tmp_path / "straight", ancestor=first.champion.phenotype
    )
    assert same_bytes(tmp_path / "run") == same_bytes(tmp_path / "straight")
    founder = next(iter(read_run(tmp_path / "run").networks()))
    assert founder.genome == first.champion.description


def test_the_test_set_is_used_once_for_the_champion_and_only_with_validation(data: DataSet) -> None:
    assert evolve(data, config(evolution__generations=1)).test is not None
    assert evolve(data, config(evolution__generations=1, training__fitness_on="test")).test is None


def test_an_optimiser_of_ones_own_trains_to_the_end_and_is_asked_for_again(
    data: DataSet, tmp_path: Path
) -> None:
    import torch

    def calm(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.05)

    first = evolve(data, config(evolution__generations=1), out=tmp_path / "run", optimiser=calm)
    assert first.test is not None
    assert read_run(tmp_path / "run").config.training.optimiser == "calm"
    with pytest.raises(ConfigError, match="calm"):
        resume(tmp_path / "run", {"evolution.generations": 2}, data=data)
    resume(tmp_path / "run", {"evolution.generations": 2}, data=data, optimiser=calm)


def test_minutes_count_over_the_whole_run(data: DataSet, tmp_path: Path) -> None:
    result = evolve(data, config(evolution__minutes=1e-6), out=tmp_path / "run")
    assert result.state.generation == 1
    assert resume(tmp_path / "run", data=data).state.generation == 1
    assert resume(tmp_path / "run", {"evolution.minutes": None}, data=data).state.generation == GENERATIONS


def test_callbacks_see_every_generation_and_every_new_champion(data: DataSet) -> None:
    generations: list[Generation] = []
    champions: list[float] = []
    evolve(
        data,
        config(),
        on_generation=generations.append,
        on_champion=lambda champion: champions.append(champion.facts.fitness),
    )
    assert [line.generation for line in generations] == [1, 2, 3, 4]
    assert champions == sorted(set(champions))
    assert champions[-1] == max(line.highest_fitness or 0.0 for line in generations)


def test_a_fitness_of_ones_own_is_named_in_the_config_and_asked_for_again(
    data: DataSet, tmp_path: Path
) -> None:
    def always_half(logits: Any, labels: Any) -> float:
        return 0.5

    evolve(data, config(evolution__generations=1), out=tmp_path / "run", fitness=always_half)
    assert read_run(tmp_path / "run").config.training.fitness == "always_half"
    with pytest.raises(ConfigError, match="always_half"):
        resume(tmp_path / "run", {"evolution.generations": 2}, data=data)
    result = resume(tmp_path / "run", {"evolution.generations": 2}, data=data, fitness=always_half)
    assert [line.highest_fitness for line in result.history] == [0.5, 0.5]


def test_a_table_evolves_full_layers() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(120, 4)).astype(np.float32)
    table = DataSet(
        name="table",
        x_train=x[:80],
        y_train=(x[:80, 0] > 0).astype(np.int64),
        x_test=x[80:],
        y_test=(x[80:, 0] > 0).astype(np.int64),
        classes=("low", "high"),
        scaling=Scaling(1.0, (0.0,) * 4, (1.0,) * 4),
    )
    assert evolve(table, config(evolution__generations=2)).stop_reason == "all 2 generations are done"
