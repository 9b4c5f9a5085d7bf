"""Data: built-in data sets, people's own, splits and scaling. `load` makes a `DataSet` of any of them."""

from __future__ import annotations

from epicortex.data.dataset import DataSet, Scaling, tensor
from epicortex.data.inventory import Status, check, get, status
from epicortex.data.loading import load
from epicortex.data.options import DataOptions, Progress
from epicortex.data.places import data_dir
from epicortex.data.readers.pictures import read_image
from epicortex.data.splits import split_validation

__all__ = [
    "DataOptions",
    "DataSet",
    "Progress",
    "Scaling",
    "Status",
    "check",
    "data_dir",
    "get",
    "load",
    "read_image",
    "split_validation",
    "status",
    "tensor",
]
