"""A scene before and after cleaning, at a glance: a composite of three bands, and the spectra of a few pixels."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from gibbsite import store
from gibbsite.cleaned import Block, CleanedScene

Floats = NDArray[np.float32]

COMPOSITE = (2.53, 1.51, 1.08)
"""µm shown as red, green and blue: the usual infrared composite of CRISM."""
MOST_PIXELS = 320
"""Lines and samples of a composite."""
N_SPECTRA = 3


class Glimpse(NamedTuple):
    """What a quick look shows of some lines."""

    composite: Floats
    """(line, sample, 3), thinned."""
    spectra: list[tuple[int, Floats]]
    """Pixel number and spectrum of chosen pixels."""


class QuickLook:
    """Gathers what is shown while the blocks of a scene pass by; `write` draws it."""

    def __init__(self, scene: CleanedScene) -> None:
        self.scene = scene
        valid = scene.source.valid
        self.every = max(1, -(-max(valid.shape) // MOST_PIXELS))
        usable = np.flatnonzero(valid)
        self.chosen = usable[[(2 * k + 1) * len(usable) // (2 * N_SPECTRA) for k in range(N_SPECTRA)]]
        self.after: list[Glimpse] = []

    def of_strip(self, strip: Block) -> Glimpse:
        """What is shown of a cleaned strip."""
        return self._glimpse((strip.first, strip.start), strip.lines, self.scene.wavelength)

    def add(self, strips: list[Glimpse]) -> None:
        """Take in the strips of some lines, from left to right."""
        width = -(-self.scene.source.valid.shape[1] // self.every)
        composite = np.concatenate([strip.composite for strip in strips], axis=1)[:, :width]
        self.after.append(Glimpse(composite, [chosen for strip in strips for chosen in strip.spectra]))

    def write(self, path: Path) -> None:
        """Draw before and after."""
        source = self.scene.source
        band = self.scene.corrections.band[self.scene.corrections.kept]
        n_lines = source.valid.shape[0]
        before = [
            self._glimpse(
                (start, 0),
                source.lines(slice(start, min(start + source.chunk_lines, n_lines)), band),
                source.wavelength[band],
            )
            for start in range(0, n_lines, source.chunk_lines)
        ]
        figure = Figure(figsize=(9.6, 6.4), layout="constrained")
        axes = figure.subplots(2, 2, width_ratios=(2, 3))
        for row, (name, found) in enumerate((("before", before), ("after", self.after))):
            self._draw(axes[row], name, found)
        done = ", ".join(self.scene.corrections.names) or "none"
        figure.suptitle(f"{source.name}, corrections: {done}", fontsize=11)
        with store.writing(path) as part:
            # No software version or date inside: same scene, same bytes.
            figure.savefig(part, format="png", dpi=100, metadata={"Software": None})

    def _draw(self, axes: Any, name: str, found: list[Glimpse]) -> None:
        image = np.concatenate([glimpse.composite for glimpse in found])
        axes[0].imshow(_stretched(image), interpolation="nearest")
        axes[0].set_title(f"{name}: {', '.join(f'{shown:.2f}' for shown in COMPOSITE)} µm", fontsize=9)
        axes[0].set_axis_off()
        wavelength = self.scene.wavelength
        step = np.diff(wavelength)
        gap = np.flatnonzero(step > 3 * np.median(step)) + 1 if step.size else np.zeros(0, np.intp)
        for pixel, spectrum in (chosen for glimpse in found for chosen in glimpse.spectra):
            line, sample = divmod(pixel, self.scene.source.valid.shape[1])
            axes[1].plot(
                np.insert(wavelength, gap, np.nan), np.insert(spectrum, gap, np.nan), linewidth=0.8,
                label=f"line {line}, sample {sample}",
            )  # fmt: skip
        axes[1].set_title(f"{name}: spectra", fontsize=9)
        axes[1].set_xlabel("wavelength, µm", fontsize=8)
        axes[1].set_ylabel("I/F" if name == "before" else "cleaned", fontsize=8)
        axes[1].tick_params(labelsize=7)
        if axes[1].lines:
            axes[1].legend(fontsize=7)

    def _glimpse(self, corner: tuple[int, int], lines: Floats, wavelength: NDArray[np.float64]) -> Glimpse:
        """What is shown of lines that begin at this line and sample."""
        shown = [int(np.abs(wavelength - wanted).argmin()) for wanted in COMPOSITE]
        first, left = (-begin % self.every for begin in corner)
        thinned = lines[first :: self.every, :, left :: self.every][:, shown].transpose(0, 2, 1)
        places = [divmod(int(pixel), self.scene.source.valid.shape[1]) for pixel in self.chosen]
        inside = [(y - corner[0], x - corner[1]) for y, x in places]
        spectra = [
            (int(pixel), lines[y, :, x].copy())
            for pixel, (y, x) in zip(self.chosen, inside, strict=True)
            if 0 <= y < lines.shape[0] and 0 <= x < lines.shape[2]
        ]
        return Glimpse(np.ascontiguousarray(thinned), spectra)


def _stretched(image: Floats) -> Floats:
    """(line, sample, 3) from 0 to 1: 2 % of the values of each band are cut at either end; black without data."""
    usable = np.isfinite(image).all(axis=2)
    shown = np.zeros(image.shape, np.float32)
    if usable.any():
        low, high = np.percentile(image[usable], [2, 98], axis=0)
        shown[usable] = np.clip((image[usable] - low) / np.maximum(high - low, 1e-6), 0, 1)
    return shown
