"""Who owns which tile, and who adds up whose answers: plain functions of the workers there are."""

from collections.abc import Mapping, Sequence

Range = tuple[int, int]
Shares = dict[str, list[Range]]

FANOUT = 8
"""Answers that the client, and every worker, adds up besides its own. So many workers report to the client itself."""


def tile_ranges(n_pixels: int, tile_pixels: int) -> list[Range]:
    """Ranks [start, stop) of each tile."""
    return [(start, min(start + tile_pixels, n_pixels)) for start in range(0, n_pixels, tile_pixels)]


def deal(ranges: Sequence[Range], threads: Mapping[str, int], owned: Mapping[str, Sequence[Range]]) -> Shares:
    """The tiles of each worker: shares that go with its threads, and as many tiles as possible where they are."""
    workers = sorted(threads)
    total = sum(threads.values())
    edges = [0]
    for worker in workers:
        edges.append(edges[-1] + threads[worker])
    # Differences of rounded running sums: shares that differ by less than one tile from the ideal and add up to all.
    places = [len(ranges) * edge // total for edge in edges]
    sizes = {worker: places[i + 1] - places[i] for i, worker in enumerate(workers)}
    asked = set(ranges)
    shares = {worker: [one for one in owned.get(worker, ()) if one in asked][: sizes[worker]] for worker in workers}
    placed = {one for share in shares.values() for one in share}
    homeless = iter(one for one in ranges if one not in placed)
    for worker in workers:
        shares[worker] += [next(homeless) for _ in range(sizes[worker] - len(shares[worker]))]
    return shares


def roots(workers: Sequence[str], fanout: int = FANOUT) -> list[str]:
    """The workers that report to the client."""
    return list(workers[:fanout])


def reporters(workers: Sequence[str], fanout: int = FANOUT) -> dict[str, list[str]]:
    """The workers that report to each worker: a tree of this width, filled level by level."""
    return {worker: list(workers[fanout * (i + 1) : fanout * (i + 2)]) for i, worker in enumerate(workers)}
