"""Settings of what comes out: products, spectra, their interpretation and the report."""

from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from gibbsite.settings.section import Count, Fraction, Positive, PositiveRange, Range, Section, Written


class Map(Section):
    """What is mapped."""

    class_probabilities: bool = Field(False, description="Keep the probability of every class, one layer each.")


class Products(Section):
    """What is published beside the maps."""

    min_polygon_pixels: Annotated[int, Field(ge=1)] = Field(
        4, description="Smaller patches are merged into their neighbour before polygons are drawn."
    )
    crs: Literal["scene", "equirectangular", "polar"] = Field(
        "scene",
        description="The scene's own grid, or a common map: IAU_2015:49910, or 49930/49935 at the poles.",
    )
    resolution: Annotated[float, Field(ge=0.1, le=1e5), Written] | None = Field(
        None, description="Pixel size on the common map, metres; without a value that of the scene."
    )


class Spectra(Section):
    """Class spectra."""

    wavelengths: PositiveRange = Field(
        (1.0, 2.6), description="Range, in µm, in which the continuum is removed and bland pixels are judged."
    )
    quantiles: Range = Field((0.1, 0.9), description="Low and high quantile of the pixels of a class.")

    @model_validator(mode="after")
    def _ordered(self) -> "Spectra":
        if self.wavelengths[0] >= self.wavelengths[1]:
            raise ValueError(f"wavelengths must rise, found {list(self.wavelengths)}")
        low, high = self.quantiles
        if not 0.0 <= low < high <= 1.0:
            raise ValueError(f"quantiles must rise within 0 and 1, found {list(self.quantiles)}")
        return self


class Interpret(Section):
    """What classes may be, and whether they may be artefacts."""

    built_in: bool = Field(True, description="Compare with the built-in table of absorption bands.")
    libraries: list[str] = Field(
        [], description="Spectral libraries: .sli or .csv files, or folders of CRISM type spectra (PDS labels)."
    )
    candidates: Count = Field(5, description="Matches kept per class, the best first.")
    min_depth: Fraction = Field(0.01, description="Shallower dips count as no absorption band.")


class Report(Section):
    """The report page."""

    title: str = Field("Known and new classes", description="Heading of the page.")
    composite: Annotated[tuple[Positive, Positive, Positive], Strict(False)] = Field(
        (2.53, 1.51, 1.08), description="Wavelengths, in µm, shown red, green and blue behind the class map."
    )
