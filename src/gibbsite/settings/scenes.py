"""Settings of what comes before the sampler: scenes, cubes, features, labels."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gibbsite.settings.section import Count, Folder, Fraction, PositiveRange, Range, Section, Written

LEAST_LINES = 24
"""Of a simulated scene."""


class Simulate(Section):
    """The simulated observation that the demo, tests and benchmarks use."""

    folder: Folder | None = Field(None, description="Where the simulated files go; no value: simulate nothing.")
    lines: Annotated[int, Field(ge=LEAST_LINES)] = Field(160, description="Lines (along track) of the scene.")
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
    atmosphere: Literal["2007/1980", "2011/1899"] | None = Field(
        None, description="Divide by the air of a volcano scan, scaled by this pair of wavelengths (nm)."
    )
    volcano_scan: str | None = Field(None, description="The volcano scan (ADR VS or CDR AT) that `atmosphere` takes.")
    despike: bool = Field(True, description="Replace spikes along the spectrum.")
    despike_windows: list[Literal[3, 5, 7, 9, 11]] = Field(
        [11, 7, 3], description="Bands of the running medians that spikes are measured from, one after the other."
    )
    despike_sigma: Annotated[float, Field(ge=1.0, le=100.0), Written] = Field(
        6.0, description="A spike is this many standard deviations from the median, and from its neighbours' course."
    )
    despike_columns: bool = Field(True, description="Replace spikes against the lines above and below.")
    destripe: bool | Literal["auto"] = Field(
        "auto",
        description="Weaken stripes from column to column, band by band; auto: in sensor-space scenes only.",
    )
    ratio: bool = Field(False, description="Divide by the blandest pixels of the same detector column.")
    ratio_lines: Annotated[int, Field(ge=2, le=1000)] = Field(
        50, description="Lines either way in which bland pixels are looked for."
    )
    ratio_pixels: Annotated[int, Field(ge=1, le=20)] = Field(3, description="Bland pixels that are averaged.")
    smile: bool | Literal["auto"] = Field(
        "auto",
        description="Resample every detector column onto the scene's wavelengths; auto: where a WA record was read.",
    )
    smooth: Literal[0, 3, 5, 7, 9, 11, 13, 15] = Field(
        0, description="Bands of the local polynomials that smooth a spectrum; 0: none."
    )
    smooth_order: Annotated[int, Field(ge=0, le=5)] = Field(2, description="Order of these polynomials.")

    @model_validator(mode="after")
    def _complete(self) -> "Clean":
        if self.atmosphere is not None and not self.volcano_scan:
            raise ValueError(
                f"atmosphere is {self.atmosphere} but no volcano_scan is given; name the ADR or AT record of the "
                "scene's sensor and binning, or set atmosphere to null"
            )
        if self.smooth and self.smooth_order >= self.smooth:
            raise ValueError(
                f"smooth_order {self.smooth_order} must be below smooth, the {self.smooth} bands it is fitted to"
            )
        return self


class Features(Section):
    """From spectra to a few whitened features."""

    wavelengths: PositiveRange = Field((1.0, 2.6), description="Range of bands used, in µm.")
    leave_out: list[PositiveRange] = Field([], description="Ranges of bands left out of it, in µm.")
    method: Literal["pca", "mnf"] = Field(
        "pca", description="Components by variance (pca) or by variance over noise (mnf, minimum noise fraction)."
    )
    n_features: Annotated[int, Field(ge=1, le=200)] | Literal["auto"] = Field(
        10, description="Components kept; auto: the leading ones that noise makes up less than half of."
    )

    @model_validator(mode="after")
    def _ordered(self) -> "Features":
        if self.wavelengths[0] >= self.wavelengths[1]:
            raise ValueError(f"wavelengths must rise, found {list(self.wavelengths)}")
        for low, high in self.leave_out:
            if low >= high:
                raise ValueError(f"ranges of leave_out must rise, found {[low, high]}")
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
