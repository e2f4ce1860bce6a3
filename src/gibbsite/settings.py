"""Settings, validated in one place, with the one source of every default.

One shape serves everywhere: `config/config.yaml`, Snakemake's `config` and the `--settings` of each command are the
same mapping. A step reads only its own sections, so a rule passes only those and reruns only when they change.
`python -m gibbsite.settings` prints the JSON schema that Snakemake validates with.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError, model_validator

from gibbsite.errors import SettingsError


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
# Files have a list where Python has a tuple.
Range = Annotated[tuple[Annotated[float, Written], Annotated[float, Written]], Strict(False)]
PositiveRange = Annotated[tuple[Positive, Positive], Strict(False)]


class Section(BaseModel):
    """A frozen group of settings that refuses keys it does not know, and values of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class Simulate(Section):
    """The simulated observation that the demo, tests and benchmarks use."""

    folder: str | None = Field(None, description="Where the simulated files go; no value: simulate nothing.")
    lines: Annotated[int, Field(ge=24)] = Field(160, description="Lines (along track) of the scene.")
    binning: Literal[1, 2, 5, 10] = Field(
        5, description="Detector binning: 640, 320, 128 or 64 samples for 1, 2, 5 or 10."
    )
    latitude: Annotated[float, Field(ge=-85, le=85), Written] = Field(
        -21.3, description="Centre latitude, degrees north."
    )
    longitude: Annotated[float, Field(ge=-180, le=360), Written] = Field(
        74.7, description="Centre longitude, degrees east."
    )
    noise: Annotated[float, Field(ge=0), Written] = Field(
        1.0, description="Noise against that of a good CRISM scene (1)."
    )


class Ingest(Section):
    """From archive files to a cube."""

    valid_range: Range = Field((-0.05, 1.5), description="I/F outside this range is garbage, not data.")
    max_bad_bands: Fraction = Field(
        0.05, description="A pixel with a larger share of its good bands missing is not used."
    )

    @model_validator(mode="after")
    def _ordered(self) -> "Ingest":
        if self.valid_range[0] >= self.valid_range[1]:
            raise ValueError(f"valid_range must rise, found {list(self.valid_range)}")
        return self


class Clean(Section):
    """Corrections between cube and features."""

    incidence: bool = Field(True, description="Divide by cos(incidence) where the scene has incidence angles.")
    destripe: bool | Literal["auto"] = Field(
        "auto",
        description="Weaken stripes from column to column, band by band; auto: in sensor-space scenes only.",
    )


class Features(Section):
    """From spectra to a few whitened features."""

    wavelengths: PositiveRange = Field((1.0, 2.6), description="Range of bands used, in µm.")
    n_features: Annotated[int, Field(ge=1, le=200)] = Field(10, description="Principal components kept.")

    @model_validator(mode="after")
    def _ordered(self) -> "Features":
        if self.wavelengths[0] >= self.wavelengths[1]:
            raise ValueError(f"wavelengths must rise, found {list(self.wavelengths)}")
        return self


class Labels(Section):
    """From shapes to known classes."""

    train_fraction: Annotated[float, Field(gt=0.0, le=1.0), Written] = Field(
        0.2, description="Share of each class's labelled pixels the model may see; the rest is held out."
    )
    min_train: Count = Field(5, description="At least so many training pixels per class, if it has them.")
    class_field: str = Field("class", description="The column of the label polygons that names the class.")
    observed: list[str] | None = Field(
        None, description="Only these classes are shown to the model; the others are held out whole."
    )


class Fit(Section):
    """The sampler. A key without value takes the paper's choice for d features, which its description gives."""

    model: Literal["igmm", "i2gmm", "ai2gmm"] = Field("ai2gmm", description="Which mixture model.")
    chains: Count = Field(2, description="Independent chains.")
    sweeps: Count = Field(300, description="Sweeps per chain.")
    burn_in: Fraction = Field(0.5, description="Share of the sweeps before the structure may be taken.")
    start_components: Count = Field(32, description="Components of the k-means++ start.")
    label_components: Annotated[int, Field(ge=0)] = Field(
        256, description="At most so many components more at the start where labelled pixels lie, one for each."
    )
    class_rule: Literal["evidence", "predictive", "reach"] = Field(
        "reach", description="How a component chooses its class."
    )
    reach_weight: Annotated[float, Field(ge=0.0, le=1e6), Written] = Field(
        2.0, description="reach: weight of the prior in how far a class reaches, in components."
    )
    labels: Literal["bind", "vote"] = Field(
        "vote",
        description="bind: labelled pixels sit in components of their class; vote: they choose freely and name them.",
    )
    split_every: Annotated[int, Field(ge=0)] = Field(
        20, description="Sweeps from one proposal of splits and merges to the next; 0: none."
    )
    pre_sweeps: Annotated[int, Field(ge=0)] = Field(100, description="Sweeps on the labelled pixels alone.")
    outlier_fraction: Annotated[float, Field(ge=0.0, lt=1.0), Written] = Field(
        0.2, description="Least likely share of each class's training pixels that do not pin their component."
    )
    alpha: Moderate = Field(1.0, description="Concentration of components (over pixels).")
    gamma: Moderate = Field(1.0, description="Concentration of classes (over components).")
    degrees: Moderate | None = Field(None, description="Degrees m of the covariance prior, above d − 1; d + 2.")
    kappa0: Moderate = Field(0.1, description="Class means about the data mean (start value for ai2gmm).")
    kappa1: Moderate = Field(0.5, description="Component means about their class mean (start value for ai2gmm).")
    c1: Moderate = Field(0.1, description="ai2gmm: pull of the prior mean towards the data mean.")
    c2: Moderate | None = Field(None, description="ai2gmm: Wishart degrees of the prior scale, above d; d + 2.")
    alpha0: Moderate | None = Field(None, description="ai2gmm: gamma shape of kappa0; 0.2 d + 1.")
    beta0: Moderate | None = Field(None, description="ai2gmm: gamma rate of kappa0; 2 d.")
    alpha1: Moderate | None = Field(None, description="ai2gmm: gamma shape of kappa1; d + 1.")
    beta1: Moderate | None = Field(None, description="ai2gmm: gamma rate of kappa1; 2 d.")
    kappa1_at_least_kappa0: bool = Field(
        True,
        description="ai2gmm: components may not scatter more about their class than classes about the whole.",
    )
    birth_block: Count = Field(4096, description="At most so many pixels per sweep may open components.")


class Select(Section):
    """From chains to one model."""

    polish_sweeps: Count = Field(20, description="Draws with frozen structure that give the probabilities.")


class Cluster(Section):
    """Where sweeps run."""

    kind: Literal["local", "none"] = Field("local", description="An embedded Dask cluster, or this process alone.")
    workers: Annotated[int, Field(ge=0)] = Field(1, description="Worker processes; 1: threads in this process.")
    threads: Annotated[int, Field(ge=0)] = Field(0, description="Threads per worker; 0: all cores shared out.")
    tile_pixels: Annotated[int, Field(ge=256, le=4194304)] = Field(
        65536, description="Pixels per tile. The result does not depend on it."
    )
    checkpoint_seconds: Annotated[float, Field(ge=0.0)] = Field(
        60.0, description="At least so long from one checkpoint of a chain to the next; 0: after every sweep."
    )


class Products(Section):
    """What is published beside the maps."""

    min_polygon_pixels: Annotated[int, Field(ge=1)] = Field(
        4, description="Smaller patches are merged into their neighbour before polygons are drawn."
    )


class Report(Section):
    """The report page."""

    title: str = Field("Known and new classes", description="Heading of the page.")


class Settings(Section):
    """Everything a user may set."""

    scenes: str = Field("config/scenes.tsv", description="Table of scenes, one row each.")
    results: str = Field("results", description="Folder of all results.")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(1, description="Same seed and settings: same bytes.")
    simulate: Simulate = Simulate()
    ingest: Ingest = Ingest()
    clean: Clean = Clean()
    features: Features = Features()
    labels: Labels = Labels()
    fit: Fit = Fit()
    select: Select = Select()
    cluster: Cluster = Cluster()
    products: Products = Products()
    report: Report = Report()


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


if __name__ == "__main__":
    print(schema(), end="")
