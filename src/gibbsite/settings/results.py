"""Settings of what comes out: products and the report."""

from typing import Annotated

from pydantic import Field

from gibbsite.settings.section import Section


class Map(Section):
    """What is mapped."""

    class_probabilities: bool = Field(False, description="Keep the probability of every class, one layer each.")


class Products(Section):
    """What is published beside the maps."""

    min_polygon_pixels: Annotated[int, Field(ge=1)] = Field(
        4, description="Smaller patches are merged into their neighbour before polygons are drawn."
    )


class Report(Section):
    """The report page."""

    title: str = Field("Known and new classes", description="Heading of the page.")
