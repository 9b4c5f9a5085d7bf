"""What every section of the settings shares: a frozen model, and the types of its fields."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

Scalar: TypeAlias = bool | int | float | str
PartName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")]
"""The name of a replaceable part: ours, an installed package's, or one's own."""
Rate: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Side: TypeAlias = Annotated[int, Field(ge=1, le=4096)]


class Section(BaseModel):
    """A frozen model whose fields carry their description as a docstring."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
