"""The data of a run, found again as its config says, and used only if it is still the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from epicortex.config import changed
from epicortex.errors import DataError
from epicortex.run.consent import check_files

if TYPE_CHECKING:
    from epicortex.data import DataSet
    from epicortex.run.record import RunRecord


def find(run: RunRecord, data_dir: Path | None = None, *, trust: bool = False) -> DataSet:
    """The data set; where it is gone, or is another by now, a `DataError` says so.

    `data_dir` is where the built-in data sets are, if not where the config says; `trust` allows the data that
    somebody else's run names.
    """
    from epicortex.run import assembly

    check_files(run.path, run.config, ["data.directory"] if data_dir is not None else [], trust=trust)
    config = run.config
    if config.data.source is None:
        raise DataError("it was handed over by a program, and is not kept in the run's folder.")
    if data_dir is not None:
        config = changed(config, data={"directory": str(data_dir)})
    data = assembly.load_data(config.data.source, config)
    if data.digest != run.info.data_digest:
        raise DataError(f"what is found as {config.data.source} now is not the data of this run.")
    return data
