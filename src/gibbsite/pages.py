"""What pages are made of: templates, to which all is escaped and nothing may be missing, and pictures."""

import base64
from pathlib import Path

import jinja2


def environment() -> jinja2.Environment:
    """Where the templates are, without filters of any page."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("gibbsite", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def picture(path: Path) -> str:
    """The PNG file at `path` as an address that holds it whole."""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
