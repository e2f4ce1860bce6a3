"""Numbers of others, to stand beside ours.

PAPER: Cheng, Rajwa and Dundar, Bayesian Nonparametrics for Non-exhaustive Learning (2018), its table of F1 scores and
its text; its figure of the simulated data has no numbers. PROGRAM: the authors' own program, run for us elsewhere:
three simulated tables of the same law, 1000 sweeps; real tables, 600 sweeps; one chain each.
"""

MODELS = ("igmm", "i2gmm", "ai2gmm")

Scores = tuple[float, float, float]
"""Mean F1 of igmm, i2gmm and ai2gmm."""

PAPER: dict[tuple[str, int], Scores] = {
    ("nddg1", 0): (0.502, 0.696, 0.718),
    ("nddg1", 2): (0.464, 0.654, 0.674),
    ("nddg1", 4): (0.497, 0.699, 0.734),
    ("nddg1", 6): (0.535, 0.816, 0.803),
    ("nddg1", 7): (0.527, 0.788, 0.787),
    ("flc1", 0): (0.776, 0.777, 0.796),
    ("flc1", 2): (0.758, 0.788, 0.811),
    ("flc1", 4): (0.797, 0.773, 0.821),
    ("flc1", 6): (0.825, 0.872, 0.865),
    ("flc1", 9): (0.822, 0.931, 0.935),
    ("stemcell", 0): (0.514, 0.651, 0.703),
    ("stemcell", 2): (0.487, 0.868, 0.874),
    ("stemcell", 4): (0.566, 0.901, 0.815),
}

PROGRAM: dict[tuple[str, int], Scores] = {
    ("simulated", 0): (0.76, 0.79, 0.82),
    ("simulated", 2): (0.77, 0.75, 0.84),
    ("simulated", 4): (0.76, 0.74, 0.83),
    ("simulated", 6): (0.77, 0.75, 0.86),
    ("simulated", 8): (0.78, 0.79, 0.86),
    ("simulated", 10): (0.81, 0.85, 0.87),
    ("salinas", 0): (0.73, 0.87, 0.86),
    ("salinas", 3): (0.88, 0.98, 0.98),
    ("salinas", 6): (0.95, 0.99, 0.98),
    ("segment", 0): (0.57, 0.60, 0.69),
    ("segment", 3): (0.53, 0.61, 0.57),
    ("segment", 7): (0.48, 0.76, 0.77),
    ("vowel", 0): (0.29, 0.32, 0.31),
    ("vowel", 5): (0.40, 0.45, 0.47),
    ("vowel", 11): (0.47, 0.64, 0.69),
    ("satimage", 0): (0.52, 0.66, 0.54),
    ("satimage", 3): (0.53, 0.65, 0.63),
    ("satimage", 6): (0.64, 0.79, 0.79),
    ("gvhd-1", 0): (0.61, 0.77, 0.68),
    ("gvhd-1", 2): (0.71, 0.90, 0.88),
    ("gvhd-1", 4): (0.81, 0.95, 0.94),
}

CRISM: dict[str, float] = {"igmm": 0.40, "i2gmm": 0.77, "ai2gmm": 0.78}
"""Mean F1 of the held-out labelled pixels of FRT00009971."""

CYTOMETRY: dict[str, tuple[float | None, float, float]] = {
    "igmm": (None, 0.54, 0.86),
    "i2gmm": (0.89, 0.78, 0.90),
    "ai2gmm": (0.87, 0.64, 0.89),
}
"""F1 of the observed class (IGMM: "poor") and of the two rare ones."""

MINUTES = {"nddg1": (18, 24, 29), "flc1": (31, 35, 37), "stemcell": (1.35, 1.4, 1.42)}
"""Average running time of igmm, i2gmm and ai2gmm in the paper."""
