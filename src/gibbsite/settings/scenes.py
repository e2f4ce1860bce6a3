"""Settings of what comes before the sampler: scenes, cubes, features, labels."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gibbsite.settings.section import Count, Fraction, PositiveRange, Range, Section, Written


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
    class_field: str = Field("class", description="The column of the label polygons or points that names the class.")
    layer: str | None = Field(None, description="The layer of the label polygons; no value: the only one of the file.")
    observed: list[str] | None = Field(
        None, description="Only these classes are shown to the model; the others are held out whole."
    )
