"""Templates of pages, read one way: what they are given is escaped, and what they miss is an error."""

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
