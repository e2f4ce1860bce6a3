"""Run one chain of the sampler over all scenes."""

import argparse
import logging
from pathlib import Path

from gibbsite import chain, checkpoint, cluster, plan, sampling, start
from gibbsite.checkpoint import Checkpoint
from gibbsite.errors import InputError, SettingsError
from gibbsite.gibbs import ReadPixels, ReduceTiles
from gibbsite.pixels import Pixels, open_pixels, pinned_reader
from gibbsite.progress import Progress
from gibbsite.sampling import Chain
from gibbsite.settings import Fit, Settings
from gibbsite.state import Rules

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The step's flags."""
    parser.add_argument("--features", type=Path, nargs="+", required=True, help="feature stores, one per scene")
    parser.add_argument("--labels", type=Path, nargs="+", required=True, help="label stores of the same scenes")
    parser.add_argument("--chain", type=int, required=True, help="number of the chain, from 1: each has its own chance")
    parser.add_argument("--checkpoint", type=Path, help="store that keeps the chain so far; left out: none")
    parser.add_argument("--timings", type=Path, help="table of seconds per sweep to write; left out: none")
    parser.add_argument("--out", type=Path, required=True, help="chain store to write")


def run(args: argparse.Namespace, settings: Settings) -> None:
    """Sample, and write the chain."""
    if args.chain < 1:
        raise SettingsError(f"--chain: found {args.chain}, expected the number of a chain; give 1 or more")
    pixels = open_pixels(args.features, args.labels)
    fit = settings.fit
    prior = plan.first_prior(fit, pixels.n_features)
    sizes = (pixels.n_pixels, pixels.n_features, len(pixels.known))
    rules = plan.chain_rules(fit, plan.chain_seed(settings.seed, args.chain), sizes, pixels.step)
    log.info("%d pixels, %d features, %d known classes", *sizes)
    # Only what shapes the result: the same chain on any cluster, and among any others, must be the same bytes.
    shaping = settings.model_dump(mode="json", include={"seed", "fit"}, exclude={"fit": {"chains"}})
    facts = {"chain": args.chain, "known": list(pixels.known), "basis": pixels.basis, "settings": shaping}
    data = {"n_pixels": list(pixels.counts), "labels": pixels.fingerprint_of_labels()}
    kept = Checkpoint(args.checkpoint, settings.cluster.checkpoint_seconds, facts | data)
    begun = kept.read()
    learnt = None if begun else _learn(pixels, rules, settings, prior)
    kept.pins = learnt.pins if learnt else kept.pins
    read = pinned_reader(pixels, kept.pins)
    with cluster.holding_tiles(read, pixels.n_pixels, settings.cluster) as reduce_tiles:
        reads = (reduce_tiles, read)
        if begun is None:
            cells = (fit.start_components, fit.label_components)
            begun = sampling.begin(start.first_state(learnt, rules, prior, cells, reads))
        else:
            checkpoint.check_pixels(begun.last, rules, reduce_tiles, args.checkpoint)
            log.info("chain %d goes on from sweep %d (%s)", args.chain, begun.last.sweep, args.checkpoint)
        progress = Progress(args.chain, fit.sweeps, begun.last.sweep, lambda: reduce_tiles.overhead)
        try:
            sampled = _sample(begun, rules, fit, reads, kept, progress)
        finally:
            progress.write(args.timings)
    chain.write_chain(args.out, sampled, kept.pins, **facts)
    kept.remove()


def _sample(
    begun: Chain,
    rules: Rules,
    fit: Fit,
    reads: tuple[ReduceTiles, ReadPixels],
    kept: Checkpoint,
    progress: Progress,
) -> Chain:
    """The whole chain; what there is of it is kept when it is interrupted."""

    def tell(so_far: Chain) -> None:
        kept.keep(so_far)
        progress.tell(so_far)

    try:
        return sampling.sample(begun, rules, plan.n_sweeps(fit), reads, tell)
    except BaseException:
        if kept.write():
            log.info("what there is of the chain is kept in %s; run again to go on", kept.path)
        raise
    finally:
        progress.close()


def _learn(pixels: Pixels, rules: Rules, settings: Settings, prior: start.Prior) -> start.Learnt | None:
    """What the labelled pixels teach; nothing when there are none."""
    if not pixels.known:
        log.info("no labelled pixels: every class is to be discovered")
        return None
    labelled = pixels.labelled(settings.cluster.tile_pixels)
    for index, name in enumerate(pixels.known):
        if not (labelled.known == index).any():
            raise InputError(f"class {name!r} has no training pixel; label usable pixels of it or leave it out")
    return start.learn(labelled, rules, prior, settings.fit.pre_sweeps, settings.fit.outlier_fraction)
