"""The figures as text that stands inside the page."""

import json
from collections.abc import Mapping
from typing import Any

from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.models import Plot
from bokeh.resources import Resources


def document_json(figures: Mapping[str, Plot]) -> str:
    """JSON for the page's script: the document, and which figure goes into which element.

    Bokeh numbers its objects through the life of the process; here they are numbered anew, so that the same
    figures give the same text.
    """
    document = Document()
    for plot in figures.values():
        document.add_root(plot)
    content = json.loads(serialize_json(document.to_json(deferred=False)))
    new_id: dict[str, str] = {}
    content = _renumber(content, new_id)
    roots = {new_id[plot.id]: element for element, plot in figures.items()}
    item = {"docid": "report", "roots": roots, "root_ids": list(roots)}
    return script_json({"docs": {"report": content}, "items": [item]})


def script_json(value: Any) -> str:
    """The value as JSON that may stand in a script element: a class may be named "</script>"."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def bokeh_script() -> str:
    """Bokeh's own script, to stand inside the page."""
    return "\n".join(Resources(mode="inline", components=["bokeh"]).js_raw)


def _renumber(value: Any, new_id: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: new_id.setdefault(part, f"g{len(new_id) + 1}")
            if key == "id" and isinstance(part, str)
            else _renumber(part, new_id)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_renumber(part, new_id) for part in value]
    return value
