"""Maps of hyperspectral scenes in which known classes are classified and unknown classes are discovered."""

__version__ = "0.1.0"
