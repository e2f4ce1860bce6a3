"""Checkpoints: the chain so far, to go on from after a kill.

A checkpoint is a chain store with fewer sweeps. It lives outside of what Snakemake deletes when a job fails, and is
written whole or not at all. A sweep is a pure function of the state before it, so a chain that goes on from a
checkpoint is the chain that was never killed, byte for byte.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite import chain, start, store, versions
from gibbsite.components import Components
from gibbsite.differences import differences
from gibbsite.errors import InputError, OutputError
from gibbsite.gibbs import ReduceTiles
from gibbsite.sampling import Chain
from gibbsite.start import Pins
from gibbsite.state import Rules, State

log = logging.getLogger(__name__)


@dataclass
class Checkpoint:
    """Where a chain is kept while it grows."""

    path: Path | None
    """None: nowhere."""
    seconds: float
    """From one to the next, at least."""
    facts: Mapping[str, Any]
    """What shapes the chain: only under the same facts may it go on."""
    pins: Pins | None = None
    """What tells the outliers of the chain; kept with it."""
    _written: float = field(default_factory=time.monotonic)
    _newest: Chain | None = None
    _is_failing: bool = False

    def read(self) -> Chain | None:
        """The chain so far, and its pins; None without a checkpoint, refused with one of other facts."""
        if self.path is None:
            return None
        store.recover(self.path)
        if not self.path.exists():
            return None
        begun, found = chain.read_chain(self.path)
        changed = list(differences(found["facts"], self._stamped()))
        if changed:
            raise InputError(
                f"{self.path}: a checkpoint made otherwise: {'; '.join(changed)}. Set these back to go on from "
                f"sweep {begun.last.sweep}, or delete the checkpoint to start anew"
            )
        self.pins = chain.read_pins(self.path)
        return begun

    def keep(self, begun: Chain) -> None:
        """Write the chain so far if it is time; a full disk does not end the chain."""
        self._newest = begun
        if time.monotonic() - self._written >= self.seconds:
            self.write()

    def write(self) -> bool:
        """Write the newest that is to be kept; whether it was. If not, the last checkpoint is as it was."""
        if self.path is None or self._newest is None:
            return False
        self._written = time.monotonic()
        try:
            chain.write_chain(self.path, self._newest, self.pins, facts=self._stamped())
        except OutputError as error:
            # Told once: a disk stays full for many checkpoints.
            if not self._is_failing:
                log.warning("no checkpoint of sweep %d, nor of later ones: %s", self._newest.last.sweep, error)
            self._is_failing = True
            return False
        if self._is_failing:
            log.info("checkpoints are written again, from sweep %d on", self._newest.last.sweep)
        self._is_failing = False
        return True

    def remove(self) -> None:
        """The chain is complete and elsewhere."""
        if self.path is not None:
            store.remove(self.path)
            # The folder too, unless other chains have theirs there.
            with suppress(OSError):
                self.path.parent.rmdir()

    def _stamped(self) -> dict[str, Any]:
        return {**self.facts, "versions": versions.installed(("gibbsite", "numpy", "numba"))}


def check_pixels(state: State, rules: Rules, reduce_tiles: ReduceTiles, path: Path) -> None:
    """Refuse to go on with other pixels or labels: the sums over all components are known, and integers."""
    n_features = state.statistics.total.shape[1]
    everything = Components(
        class_of=np.zeros(1, np.int64),
        log_weight=np.zeros(1),
        mean=np.zeros((1, n_features)),
        centre=np.zeros((1, n_features)),
        whiten=1e-3 * np.eye(n_features)[None],
        log_tail=-np.inf,
    )
    task = start.first_pass(everything, rules)
    found = reduce_tiles(start.unbound(task)).statistics
    sums = state.statistics
    for name in ("n", "total", "outer", "n_pinning"):
        if not np.array_equal(getattr(found, name)[0], getattr(sums, name).sum(0)):
            what = "labels" if name == "n_pinning" else "pixels"
            raise InputError(
                f"{path}: a checkpoint of other {what}; bring back the feature and label stores it was made from, or "
                "delete it to start anew"
            )
