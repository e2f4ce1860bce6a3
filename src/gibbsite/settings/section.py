"""What sections of settings are made of: frozen groups of keys, and the kinds of value they take."""

import os
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict


def _number(value: Any) -> Any:
    """The number that a text such as 1e-5 stands for; YAML 1.1 takes it for text. Other values stay what they are."""
    is_number = isinstance(value, str) and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+", value)
    return float(value) if is_number else value


# Stands behind the bounds, or the JSON schema would lose them.
Written = BeforeValidator(_number)
Fraction = Annotated[float, Field(ge=0.0, le=1.0), Written]
Positive = Annotated[float, Field(gt=0.0), Written]
Moderate = Annotated[float, Field(ge=1e-9, le=1e9), Written]
Count = Annotated[int, Field(ge=1)]
# Paths are compared as text elsewhere: without a slash at the end, and with ~ written out.
Folder = Annotated[str, Field(min_length=1), AfterValidator(lambda path: os.path.normpath(os.path.expanduser(path)))]
# Files have a list where Python has a tuple.
Range = Annotated[tuple[Annotated[float, Written], Annotated[float, Written]], Strict(False)]
PositiveRange = Annotated[tuple[Positive, Positive], Strict(False)]


class Section(BaseModel):
    """A frozen group of settings that refuses keys it does not know, and values of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)
