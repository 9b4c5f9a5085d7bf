"""Engines by name: ours, installed ones, and names that are neither."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from epicortex.cli import main
from epicortex.engines import check_engine, create, names
from epicortex.engines.serial import SerialEngine
from epicortex.errors import ConfigError, EngineError
from epicortex.machine import available_cores
from tests.contracts.world import settings, setup


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that installs two engines, one of which cannot be imported."""
    (tmp_path / "someones_engine.py").write_text(
        "from epicortex.engines.serial import SerialEngine\nclass Mine(SerialEngine): pass\n"
    )
    info = tmp_path / "someones_engine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: someones-engine\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[epicortex.engines]\nmine = someones_engine:Mine\nbroken = no_such_module:Engine\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no engine is called 'proceses'; did you mean 'processes'\?"):
        check_engine("proceses")
    with pytest.raises(ConfigError, match="there are serial, processes, ray, mpi"):
        create("zzz", None, settings())


def test_nothing_of_an_engine_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, epicortex.engines as e; e.names(); print({'torch', 'cloudpickle'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_ray_and_mpi_are_imported_by_their_own_engines_only() -> None:
    code = """
import sys
import epicortex.cli.evolve, epicortex.run
from epicortex.engines import create, enlisted
from tests.contracts.world import settings
for name in ("serial", "processes"):
    assert not enlisted(name)
    create(name, None, settings()).close()
print({"ray", "mpi4py"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(("name", "module"), [("ray", "ray"), ("mpi", "mpi4py")])
def test_a_missing_extra_gives_the_line_that_installs_it(
    name: str,
    module: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    for imported in [known for known in sys.modules if known.startswith(f"epicortex.engines.{name}")]:
        monkeypatch.delitem(sys.modules, imported)
    assert main(["evolve", "digits", "--engine", name]) == 2
    line = f"epicortex: training.engine: {module} is not installed; pip install 'epicortex[{name}]'\n"
    assert capsys.readouterr().err == line
    assert not list(tmp_path.rglob("*-1"))


@pytest.mark.usefixtures("plugin")
def test_installed_engines_are_found_by_their_name() -> None:
    assert {"mine", "broken"} <= set(names())
    with create("mine", None, settings()) as engine:
        assert isinstance(engine, SerialEngine)
        assert type(engine).__name__ == "Mine"
    with pytest.raises(ConfigError, match=r"'broken' is installed but cannot be loaded: .*No module named"):
        create("broken", None, settings())


def test_a_function_that_cannot_travel_is_refused_with_advice() -> None:
    class Stubborn:
        def __call__(self, logits: object, labels: object) -> float:
            return 0.0

        def __reduce__(self) -> str:
            raise TypeError("not me")

    with pytest.raises(EngineError, match=r"cannot be sent to a worker process \(not me\)"):
        create("processes", setup(settings(), fitness=Stubborn()), settings())


def test_cores_are_limited_by_the_cgroup(tmp_path: Path) -> None:
    plenty = available_cores(tmp_path)
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert available_cores(tmp_path) == plenty
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert available_cores(tmp_path) == 1
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert available_cores(tmp_path) == 1
