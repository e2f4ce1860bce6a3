"""The page of the experiments: tables and figures, everything inside one file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from gibbsite import pages


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    words: str
    figures: tuple[tuple[str, str], ...] = ()
    """Path of each figure without ending, relative to the page, and its caption."""
    tables: tuple[tuple[str, pd.DataFrame], ...] = ()
    """Caption and lines of each table."""


def render(sections: Sequence[Section], left_out: Sequence[str], folder: Path) -> str:
    """The page, its figures read from the folder."""
    environment = pages.environment()
    environment.filters["cell"] = cell
    environment.filters["picture"] = lambda name: pages.picture(folder / f"{name}.png")
    css, _, _ = environment.loader.get_source(environment, "report.css")  # type: ignore[union-attr]
    page = environment.get_template("experiments.html.j2")
    return page.render(sections=sections, left_out=left_out, css=Markup(css))


def short(number: str) -> str:
    """A number as papers write it: without the zero of the whole part."""
    return re.sub(r"\b0\.", ".", number)


def cell(value: Any) -> str:
    """A value of a table as text; F1 without the leading zero."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) > 1 else short(f"{value:.3f}")
    return str(value)
