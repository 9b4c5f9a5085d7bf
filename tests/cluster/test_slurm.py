"""The batch script of the documentation: its shell is sound, and it stops, is requeued and goes on."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.test_mpi import ranks_of
from tests.cluster.world import COMMAND, GENERATIONS, at_work
from tests.contracts.cluster import mpiexec, needs_mpi
from tests.contracts.world import PATIENCE
from tests.docs.blocks import blocks
from tests.faults.world import SMALL, same_bytes

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script as the page has it."""
    (block,) = [block for block in blocks(PAGE) if block.file == "epicortex.sbatch"]
    path = tmp_path / "epicortex.sbatch"
    path.write_text(block.body)
    path.chmod(0o755)
    return path


def test_the_shell_is_sound(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)
    head = script.read_text().splitlines()
    assert head[0].startswith("#!")
    options = [line for line in head if line.startswith("#SBATCH")]
    assert all(re.match(r"#SBATCH --[a-z-]+(=\S+)?( +#.*)?$", line) for line in options), options
    assert head.index(options[-1]) < next(
        number for number, line in enumerate(head) if line and not line.startswith("#")
    )


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """Commands of Slurm, as far as the script uses them; the run is a small one."""
    tools = tmp_path / "bin"
    tools.mkdir()
    start = shlex.join([*mpiexec(3), *COMMAND])
    small = shlex.join(SMALL)
    (tools / "srun").write_text(
        f"""#!/usr/bin/env bash
set -euo pipefail
[[ $1 == epicortex ]]
words=()
for word in "${{@:2}}"; do
    case $word in
        mnist) words+=(digits {small} --quiet) ;;
        100) words+=({GENERATIONS}) ;;
        *) words+=("$word") ;;
    esac
done
exec {start} "${{words[@]}}"
"""
    )
    (tools / "scontrol").write_text(f'#!/usr/bin/env bash\necho "$@" >> {tmp_path / "scontrol"}\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    return {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "SLURM_JOB_ID": "4711",
        "SLURM_SUBMIT_DIR": str(tmp_path),
    }


@pytest.mark.cluster
@pytest.mark.skipif(needs_mpi[1].args[0], reason=needs_mpi[1].kwargs["reason"])
def test_a_job_at_its_time_limit_is_requeued_and_goes_on(
    script: Path, slurm: dict[str, str], undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    def submit() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **slurm, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    run = tmp_path / "mnist-run"
    job = submit()
    assert at_work(run, job)
    for pid in ranks_of(job, 3):
        os.kill(pid, signal.SIGTERM)
    _, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 143, err
    assert (tmp_path / "scontrol").read_text() == "requeue 4711\n"
    job = submit()
    _, err = job.communicate(timeout=PATIENCE)
    assert job.returncode == 0, err
    assert (tmp_path / "scontrol").read_text() == "requeue 4711\n"
    assert same_bytes(run) == undisturbed
