"""Settings of what comes out: products and the report."""

from typing import Annotated, Literal

from pydantic import Field

from gibbsite.settings.section import Section, Written


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


class Report(Section):
    """The report page."""

    title: str = Field("Known and new classes", description="Heading of the page.")
