"""Maps of hyperspectral scenes in which known classes are classified and unknown classes are discovered."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # The classifier pulls in scikit-learn and numba; `gibbsite --help` must not.
    if name == "NonExhaustiveClassifier":
        from gibbsite.classifier import NonExhaustiveClassifier

        return NonExhaustiveClassifier
    raise AttributeError(f"module 'gibbsite' has no attribute {name!r}")
