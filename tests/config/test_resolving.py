"""Presets, files and changes resolve into one frozen config; what is wrong is said in one line."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from epicortex.config import FORMAT_VERSION, Config, EvolutionConfig, TrainingConfig, fields
from epicortex.config import resolving as settings
from epicortex.errors import ConfigError


def refusal(changes: dict[str, Any], preset: str | Path = "default") -> str:
    with pytest.raises(ConfigError) as caught:
        settings.resolve(preset, changes)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    return line


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_paper_preset_is_what_the_models_say() -> None:
    assert settings.resolve("paper") == Config()


def test_the_layered_preset_differs_from_the_paper_where_the_rules_say_so() -> None:
    paper, layered = settings.resolve("paper"), settings.resolve("layered")
    assert layered.family == paper.family == "layered"
    assert layered.training.min_steps == 50
    assert layered.training.fitness_on == "validation"
    assert layered.evolution.kernel_temperature > 1
    assert layered.layered.layer_choice == "type"
    assert paper.training.min_steps == 0
    assert paper.training.fitness_on == "test"
    assert paper.evolution.kernel_temperature == 1
    assert paper.layered.layer_choice == "parameters"


def test_the_default_preset_plans_a_search_of_residual_networks() -> None:
    default = settings.resolve()
    assert (default.family, default.evolution.minutes) == ("residual", 10)
    rules = default.evolution
    assert (rules.budget, rules.speciation, rules.selection, rules.culling) == (
        *("planned", "cost", "challengers"),
        "beaten",
    )
    assert default.training.fitness_on == "validation"


def test_whoever_counts_generations_has_no_minutes_unless_both_are_given() -> None:
    assert settings.resolve("default", {"evolution.generations": 7}).evolution.minutes is None
    both = settings.resolve("default", {"evolution.generations": 7, "evolution.minutes": 2})
    assert both.evolution.minutes == 2
    assert settings.changed(settings.resolve(), evolution={"generations": 7}).evolution.minutes is None
    assert settings.changed(settings.resolve(), evolution={"seed": 7}).evolution.minutes == 10


def test_another_optimiser_does_not_take_the_arguments_of_the_presets_own() -> None:
    def of(**changes: object) -> tuple[dict[str, Any], str]:
        named = {f"training.{name}": value for name, value in changes.items()}
        training = settings.resolve("default", named).training
        return training.optimiser_arguments, training.optimiser_state

    assert of(optimiser="Adam") == ({}, "fresh")
    assert of(optimiser="Adam", optimiser_arguments={"lr": 0.01}) == ({"lr": 0.01}, "fresh")
    assert of(optimiser="SGD", optimiser_state="inherited") == ({}, "inherited")
    assert of(optimiser="OrthogonalSGD") == of()
    assert of(optimiser="SGD") == ({}, "fresh")
    assert of()[1] == "inherited"


def test_the_published_preset_is_the_paper_with_the_readings_of_the_published_code() -> None:
    paper, published = (settings.resolve(name) for name in ("paper", "published"))
    own = {name: fields.value_of(published, name) for name in fields.settings()}
    assert {name: value for name, value in own.items() if value != fields.value_of(paper, name)} == {
        "budget.newborns": "scored",
        "budget.founders": "scored",
        "layered.mutation_choice": "fitness_first",
        "selection.parent_shares": "pair",
        "layered.kernel_start": "perimeter",
        "layered.kernel_weight": "nodes",
        "layered.similarity": "strides",
        "culling.spared": "ecosystem",
        "speciation.refused": "structural",
        "selection.average_start": "zero",
        "speciation.grown_from": "previous",
        "selection.champions": "mutated",
        "selection.deviation": "running",
        "selection.clones": "exact",
        "layered.targets": "size",
    }


def test_a_config_cannot_be_written_to() -> None:
    with pytest.raises(ValidationError):
        Config().evolution.seed = 2  # type: ignore[misc]


def test_every_setting_has_help_and_a_range_in_words() -> None:
    for setting in fields.settings().values():
        assert setting.description.endswith((".", "−1.")), setting.name
        assert setting.allowed, setting.name


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"evolution.generations": 0}, ["evolution.generations is 0;", "a whole number from 1 to 1000000"]),
        ({"evolution.generations": "abc"}, ['is "abc";', "whole number"]),
        ({"evolution.generations": "12"}, ['is "12";', "whole number"]),
        ({"evolution.generations": True}, ["is true;", "whole number"]),
        ({"evolution.generations": 2.5}, ["is 2.5;", "whole number"]),
        ({"evolution.minutes": float("nan")}, ["is NaN;", "a number above 0, or none"]),
        ({"evolution.minutes": float("inf")}, ["is Infinity;", "above 0"]),
        ({"evolution.target": 97}, ["evolution.target is 97;", "above 0 and at most 1"]),
        ({"evolution.seed": -1}, ["evolution.seed is -1;", "at least 0"]),
        ({"evolution.evolve": None}, ["is none;", "true or false"]),
        ({"evolution.speciation": 3}, ["is 3;", "key, none, cost or the name of a rule of your own"]),
        ({"evolution.speciation": "no species"}, ['is "no species";', "key, none, cost or the name"]),
        ({"training.fitness_on": "validaton"}, ["one of test, validation", "did you mean validation?"]),
        ({"training.device": "gpu"}, ['is "gpu";', "cpu, mps, cuda or cuda:N"]),
        ({"data.image_size": [0, 28]}, ["is [0, 28];", "2 whole numbers from 1 to 4096"]),
        ({"training.optimiser_arguments": {"lr": None}}, ["lr", "pairs of name and value"]),
        ({"evolution.operators": ["layer", 3]}, ['is ["layer", 3];', "names"]),
        ({"evolution.initial_species": 17}, ["initial_species is 17;", "at most 16", "max_species (16)"]),
        (
            {"evolution.initial_networks": 4, "evolution.initial_species": 8},
            ["initial_species is 8;", "at most initial_networks", "4"],
        ),
        ({"training.portion": object()}, ["training.portion is", "above 0 and at most 1"]),
        ({"data.source": "\udcff"}, ["not valid Unicode"]),
        ({"data.channels": "x\n" * 99}, ["data.channels is", "one of auto, gray, rgb"]),
    ],
)
def test_an_impossible_value_is_refused_with_field_value_and_range(
    changes: dict[str, Any], parts: list[str]
) -> None:
    line = refusal(changes)
    for part in parts:
        assert part in line


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("evolution.max_networkz", "evolution.max_networks, a whole number from 2 to 1000000"),
        ("evolution.max-networks", "evolution.max_networks"),
        ("evolution.batch_size", "training.batch_size"),
        ("evolution.newborns", "budget.newborns, one of trained, scored"),
        ("training.optimizer", "training.optimiser"),
        ("evolutoin.seed", "(did you mean evolution?)"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_right_one(name: str, meant: str) -> None:
    line = refusal({name: 3})
    assert meant in line
    assert name.partition(".")[0] in line


def test_the_option_a_person_used_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^evolution\.target \(--target\) is 97; it must be"):
        settings.resolve("default", {"evolution.target": 97}, called={"evolution.target": "--target"})


def test_a_larger_start_than_the_limit_is_culled_not_refused() -> None:
    config = settings.resolve("default", {"evolution.max_networks": 32})
    assert (config.evolution.initial_networks, config.evolution.max_networks) == (64, 32)


def test_a_file_may_hold_some_settings_only_and_name_its_base(tmp_path: Path) -> None:
    text = "[evolution]\ngenerations = 7\n"
    over_default = settings.resolve(write(tmp_path, text))
    assert over_default == settings.resolve("default", {"evolution.generations": 7})
    over_paper = settings.resolve(write(tmp_path, 'preset = "paper"\n' + text))
    assert over_paper == settings.resolve("paper", {"evolution.generations": 7})


def test_changes_win_over_the_file_and_the_file_over_its_base(tmp_path: Path) -> None:
    path = write(tmp_path, "[training]\nmin_steps = 5\nportion = 0.5\n")
    config = settings.resolve(path, {"training.portion": 0.25})
    assert (config.training.min_steps, config.training.portion) == (5, 0.25)


def test_none_in_a_file_takes_a_value_back(tmp_path: Path) -> None:
    path = write(tmp_path, '[evolution]\nminutes = "none"\n[training]\nclass_weights = "none"\n')
    config = settings.resolve(path)
    assert config.evolution.minutes is None
    assert config.training.class_weights == "none"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[evolution]\ngenerations = 0", "evolution.generations is 0; it must be a whole number"),
        ("[evolution]\ngenerations = 1979-05-27", 'is "1979-05-27"'),
        ("[evolution]\nmax-networks = 3", "did you mean evolution.max_networks"),
        ("[evolution.deep]\nx = 1", "there is no setting evolution.deep"),
        ("[[evolution]]\nseed = 1", "must be a section"),
        ("evolution = 3", "must be a section"),
        ('plugin = "evil.py"', 'there is no section "plugin"'),
        ("[plugins]\nx = 1", 'there is no section "plugins"'),
        ('preset = "papr"', "did you mean paper?"),
        ("preset = 3", "there is no preset 3"),
        ('preset = "other.toml"', "there is no preset"),
        ("format = 99", "format is 99; this version reads 2"),
        ("x = ", "is not TOML"),
        ("x = " + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_that_names_it(tmp_path: Path, text: str, part: str) -> None:
    path = write(tmp_path, text)
    line = refusal({}, path)
    assert line.startswith(str(path))
    assert part in line


@pytest.mark.parametrize(
    "text",
    [
        "a." * 400_000 + "a = 1",
        '"a" . ' * 100_000 + "a = 1",
        "[" + "a." * 400_000 + "a]",
        "\n".join(f"{'a.' * 14}b{n} = 1" for n in range(20_000)),
        "x = " + "{a = " * 100_000,
        "x = {" + "a." * 400_000 + "a = 1}",
        "x = " + "[" * 500_000,
        "x = " + "9" * 500_000,
        'x = """' + '\\"""' * 100_000,
        "x = '''" + "''" * 200_000,
        "x = 1\n" * 100_000,
        '"' * 500_000,
    ],
    ids=lambda text: text[:12],
)
def test_no_file_takes_long_to_refuse(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    began = time.process_time()
    with pytest.raises(ConfigError):
        settings.resolve(file)
    assert time.process_time() - began < 5


def test_a_file_chooses_no_engine_beyond_this_machine_no_cluster_and_no_crowd(tmp_path: Path) -> None:
    """A preset may come from anyone; what it may not decide, a person can, and the message says how."""
    file = tmp_path / "sent.toml"
    ray = {"training.engine": "ray"}
    for text, changes, says, decided in (
        ('[training]\nengine = "ray"', {}, "give --engine ray", ray),
        ('[training]\nengine = "someones"', {}, "give --engine someones", ray),
        ('[ray]\naddress = "10.0.0.1:1"', ray, "give --ray.address", {**ray, "ray.address": None}),
        ("[training]\nworkers = 4096", {}, "give --workers", {"training.workers": 4096}),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=f"sent.toml: .*{re.escape(says)}"):
            settings.resolve(file, changes)
        settings.resolve(file, decided)
    file.write_text(f'[training]\nengine = "{"x" * 100_000}"')
    with pytest.raises(ConfigError) as refused:
        settings.resolve(file)
    assert len(str(refused.value)) < 400
    file.write_text('[training]\nengine = "serial"\nworkers = 4\n[ray]\naddress = "10.0.0.1:1"')
    assert settings.resolve(file).training.engine == "serial"


def test_a_file_that_cannot_be_a_config_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert "No such file" in refusal({}, path)
    path.write_bytes(b"\xff\xfe")
    assert "not UTF-8" in refusal({}, path)
    path.write_bytes(b"#" * (settings.MAX_FILE_BYTES + 1))
    assert "larger than" in refusal({}, path)
    path.unlink()
    path.mkdir()
    assert "cannot be read" in refusal({}, path)
    assert "null" in refusal({}, "a\0b.toml")


@pytest.mark.parametrize("name", ["papr", "nope", "", "/", ".toml", "paper.yaml"])
def test_an_unknown_preset_is_refused_with_those_there_are(name: str) -> None:
    known = "one of default, layered, paper, published, residual, task, or a file that ends in .toml"
    assert known in refusal({}, name)


@given(
    seed=st.integers(0, 2**63 - 1),
    minutes=st.none() | st.floats(1e-300, 1e300),
    source=st.none() | st.text(st.characters(codec="utf-8")).filter(lambda text: text != "none"),
    arguments=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=5),
        st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(codec="utf-8"), max_size=5),
        max_size=3,
    ),
)
def test_a_config_written_and_read_is_the_same(
    seed: int, minutes: float | None, source: str | None, arguments: dict[str, Any]
) -> None:
    config = settings.resolve(
        "default",
        {
            "evolution.seed": seed,
            "evolution.minutes": minutes,
            "data.source": source,
            "training.optimiser_arguments": arguments,
        },
    )
    assert settings.loads(settings.dumps(config), origin="config.toml") == config


def test_a_written_config_holds_every_field_so_later_defaults_change_nothing() -> None:
    text = "\n" + settings.dumps(Config())
    for setting in fields.settings().values():
        assert f"\n{setting.field} = " in text


def test_a_written_config_is_also_a_preset(tmp_path: Path) -> None:
    config = settings.resolve("paper", {"evolution.seed": 5})
    written = f'format = {FORMAT_VERSION}\n{settings.dumps(config)}\n[run]\nversion = "1.2.3"\n'
    assert settings.resolve(write(tmp_path, written)) == config


def test_a_config_of_format_1_says_the_same_in_other_sections(tmp_path: Path) -> None:
    text = """
format = 1
[evolution]
speciation = false
newborns = "scored"
founders = "alike"
parents = "even"
spared = "ecosystem"
full_activation = "relu"
"""
    assert settings.resolve(write(tmp_path, text)) == settings.resolve(
        "default",
        {
            "evolution.speciation": "none",
            "budget.newborns": "scored",
            "speciation.founders": "alike",
            "selection.parents": "even",
            "culling.spared": "ecosystem",
            "layered.full_activation": "relu",
            "training.backend": "torch",
        },
    )
    now = text.replace("format = 1", f"format = {FORMAT_VERSION}")
    assert "did you mean budget.newborns" in refusal({}, write(tmp_path, now))


@pytest.mark.parametrize(
    ("given", "meant"),
    [(True, "key"), (False, "none"), ("on", "key"), ("Off", "none"), ("yes", "key"), (None, "none")],
)
def test_species_can_be_switched_on_and_off(given: object, meant: str) -> None:
    assert settings.resolve("default", {"evolution.speciation": given}).evolution.speciation == meant


def test_a_changed_config_is_checked_anew() -> None:
    config = settings.changed(settings.resolve(), evolution={"generations": 5, "max_species": np.int64(9)})
    assert (config.evolution.generations, config.evolution.max_species) == (5, 9)
    assert config.training.optimiser == "OrthogonalSGD"
    with pytest.raises(ConfigError, match=r"evolution\.generations is -1"):
        settings.changed(config, evolution={"generations": -1})
    with pytest.raises(ConfigError, match="did you mean evolution"):
        settings.changed(config, evolutions={"generations": 1})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("evolution.generations", "12", 12),
        ("evolution.target", "0.97", 0.97),
        ("evolution.target", "97%", 0.97),
        ("evolution.target", "99.5%", 0.995),
        ("evolution.target", "none", None),
        ("evolution.evolve", "off", False),
        ("evolution.evolve", "True", True),
        ("evolution.evolve", "perhaps", "perhaps"),
        ("evolution.speciation", "mine", "mine"),
        ("evolution.generations", "1e3", "1e3"),
        ("evolution.operators", "layer, kernel", ["layer", "kernel"]),
        ("data.image_size", "28x28", [28, 28]),
        ("data.image_size", "28×30", [28, 30]),
        ("data.image_size", "28,a", [28, "a"]),
        ("data.label_column", "label", "label"),
        ("training.class_weights", "none", "none"),
        ("training.optimiser_arguments", "lr=0.1,momentum=0.9", {"lr": 0.1, "momentum": 0.9}),
        ("training.optimiser_arguments", "nesterov=true, mode=fast", {"nesterov": True, "mode": "fast"}),
        ("training.optimiser_arguments", "0.1", "0.1"),
        ("training.optimiser_arguments", "", {}),
    ],
)
def test_text_from_the_command_line_becomes_the_value_it_means(name: str, text: str, value: object) -> None:
    assert fields.from_text(fields.settings()[name], text) == value


def test_the_optimiser_has_its_own_defaults_unless_told() -> None:
    assert settings.resolve("paper", {"training.optimiser": "Adam"}).training.optimiser_arguments == {}


def test_a_smaller_ecosystem_needs_no_other_number_of_species() -> None:
    assert settings.resolve("layered", {"evolution.max_networks": 6}).evolution.initial_species == 3
    assert settings.resolve("layered", {"evolution.initial_networks": 2}).evolution.initial_species == 2
    asked = {"evolution.max_networks": 6, "evolution.initial_species": 2}
    assert settings.resolve("layered", asked).evolution.initial_species == 2


def test_sections_can_be_made_by_themselves() -> None:
    assert EvolutionConfig(max_networks=10, initial_species=4).species_limit == 5
    assert TrainingConfig().optimiser == "Adadelta"
