"""Settings, validated in one place, with the one source of every default.

One shape serves everywhere: `config/config.yaml`, Snakemake's `config` and the `--settings` of each command are the
same mapping. A step reads only its own sections, so a rule passes only those and reruns only when they change.
`python -m gibbsite.settings` prints the JSON schema that Snakemake validates with.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, Field, ValidationError

from gibbsite.errors import SettingsError
from gibbsite.settings.cluster import Cluster
from gibbsite.settings.experiments import Experiments
from gibbsite.settings.results import Interpret, Map, Products, Report, Spectra
from gibbsite.settings.sampler import Fit, Select
from gibbsite.settings.scenes import Clean, Features, Ingest, Labels, Simulate
from gibbsite.settings.section import Folder, Section


class Settings(Section):
    """Everything a user may set."""

    scenes: str = Field("config/scenes.tsv", description="Table of scenes, one row each.")
    results: Folder = Field("results", description="Folder of all results.")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(1, description="Same seed and settings: same bytes.")
    simulate: Simulate = Simulate()
    ingest: Ingest = Ingest()
    clean: Clean = Clean()
    features: Features = Features()
    labels: Labels = Labels()
    fit: Fit = Fit()
    select: Select = Select()
    cluster: Cluster = Cluster()
    map: Map = Map()
    products: Products = Products()
    spectra: Spectra = Spectra()
    interpret: Interpret = Interpret()
    report: Report = Report()
    experiments: Experiments = Experiments()


def validate(mapping: Mapping[str, Any], source: str) -> Settings:
    """Validated settings; `source` names the mapping in the error."""
    # A section whose keys were all deleted or commented out reads as None.
    given = {key: value for key, value in mapping.items() if value is not None or not _is_section(key)}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        raise SettingsError(f"{source}: " + "; ".join(_explain(item) for item in error.errors())) from None


def load(sources: Sequence[str]) -> Settings:
    """Settings from YAML or JSON files and inline JSON; a later source's sections replace an earlier one's."""
    merged: dict[str, Any] = {}
    for source in sources:
        merged |= _read(source)
    names = ", ".join("--settings" if _is_inline(source) else source for source in sources)
    return validate(merged, names)


def _is_inline(source: str) -> bool:
    return source.lstrip().startswith("{")


def _read(source: str) -> dict[str, Any]:
    """The mapping of one source."""
    if _is_inline(source):
        return _read_inline(source)
    try:
        found = yaml.safe_load(Path(source).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{source}: cannot read settings ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{source}: not valid YAML ({' '.join(str(error).split())})") from None
    if not isinstance(found, dict | None):
        raise SettingsError(f"{source}: found {type(found).__name__}, expected 'key: value' settings")
    return found or {}


def _read_inline(source: str) -> dict[str, Any]:
    """The mapping of inline JSON; it starts with a brace, so it is one or nothing."""
    try:
        return dict(json.loads(source))
    except ValueError as error:
        raise SettingsError(f"--settings: not valid JSON ({error}); put names and words in double quotes") from None


def schema() -> str:
    """The JSON schema of the settings, as text."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(dialect | Settings.model_json_schema(), indent=2, ensure_ascii=False) + "\n"


def _explain(item: Any) -> str:
    """One fault in words: key, what was found, what is allowed."""
    place, section = _place(item["loc"])
    key = ".".join(place) or "settings"
    if item["type"] == "extra_forbidden":
        return f"unknown key '{key}'; known keys are {', '.join(section.model_fields)}"
    if item["type"] == "model_type":
        message = f"expected keys of its own: {', '.join(section.model_fields)}"
    elif item["type"] == "missing":
        message = "expected one value more"
    else:
        message = item["msg"].removeprefix("Value error, ")
    return f"{key}: found {item['input']!r}; {message[0].lower()}{message[1:]}"


def _place(location: tuple[Any, ...]) -> tuple[list[str], type[BaseModel]]:
    """The key at a location as the user wrote it, and the last section on the way there."""
    place: list[str] = []
    section: type[BaseModel] = Settings
    for part in location:
        # Behind the key come positions in a list and the alternatives of a type, which no user wrote.
        place.append(str(part))
        if part not in section.model_fields or not isinstance(section.model_fields[part].annotation, type):
            break
        if not issubclass(section.model_fields[part].annotation, BaseModel):  # type: ignore[arg-type]
            break
        section = section.model_fields[part].annotation  # type: ignore[assignment]
    return place, section


def _is_section(key: str) -> bool:
    return key in Settings.model_fields and isinstance(Settings.model_fields[key].default, Section)
