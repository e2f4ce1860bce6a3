"""Who owns which tile, who reports to whom, how much memory that takes: laws of plain functions."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbsite.cluster.memory import USABLE, Need
from gibbsite.cluster.ownership import deal, reporters, roots, tile_ranges
from gibbsite.errors import GibbsiteError

names = st.integers(0, 30).map(lambda number: f"tcp://host:{number}")
workers = st.dictionaries(names, st.integers(1, 5), min_size=1, max_size=12)


def test_tiles_cover_every_rank_once() -> None:
    assert tile_ranges(10, 4) == [(0, 4), (4, 8), (8, 10)]


@given(n_tiles=st.integers(1, 60), before=workers, now=workers)
def test_every_tile_has_one_owner_and_shares_go_with_threads(
    n_tiles: int, before: dict[str, int], now: dict[str, int]
) -> None:
    ranges = tile_ranges(n_tiles, 1)
    shares = deal(ranges, now, deal(ranges, before, {}))
    assert Counter(one for share in shares.values() for one in share) == Counter(ranges)
    assert set(shares) == set(now)
    for worker, share in shares.items():
        assert abs(len(share) - n_tiles * now[worker] / sum(now.values())) < 1.0


@given(n_tiles=st.integers(1, 60), threads=workers, newcomer=names)
def test_only_tiles_that_must_move_do(n_tiles: int, threads: dict[str, int], newcomer: str) -> None:
    ranges = tile_ranges(n_tiles, 1)
    owned = deal(ranges, threads, {})
    assert deal(ranges, threads, owned) == owned
    shares = deal(ranges, threads | {newcomer: 1}, owned)
    for worker, share in shares.items():
        kept = set(share) & set(owned.get(worker, ()))
        assert len(kept) == min(len(share), len(owned.get(worker, ()))), "a tile moved though there was room for it"


@given(n_workers=st.integers(1, 700), fanout=st.integers(1, 9))
def test_every_worker_reports_to_exactly_one(n_workers: int, fanout: int) -> None:
    all_workers = [f"tcp://host:{number}" for number in range(n_workers)]
    told = reporters(all_workers, fanout)
    heard = Counter(roots(all_workers, fanout))
    for one in told.values():
        assert len(one) <= fanout
        heard.update(one)
    assert heard == Counter(all_workers)
    # From the client down everybody is reached, so there is no circle.
    reached, level = set(), roots(all_workers, fanout)
    while level:
        reached |= set(level)
        level = [below for one in level for below in told[one]]
    assert reached == set(all_workers)


def test_a_worker_with_too_little_memory_is_told_what_would_do() -> None:
    need = Need(n_pixels=100_000_000, n_features=20, tile_pixels=4_194_304, n_threads=2)
    with pytest.raises(GibbsiteError, match=r"tiles need 5.7 GB per worker, and tcp://a:1 has 1.8 GB of 2.0 GB"):
        need.check("tcp://a:1", 50_000_000, 2e9)
    need.check("tcp://a:1", 50_000_000, 7e9)
    need.check("tcp://a:1", 50_000_000, 0)


@given(
    n_pixels=st.integers(10**6, 10**9), n_features=st.integers(2, 60), tile_pixels=st.integers(256, 10**6),
    n_threads=st.integers(1, 8), limit=st.floats(0.6e9, 64e9),
)  # fmt: skip
def test_the_advice_on_memory_is_true(
    n_pixels: int, n_features: int, tile_pixels: int, n_threads: int, limit: float
) -> None:
    need = Need(n_pixels, n_features, tile_pixels, n_threads)
    try:
        need.check("tcp://a:1", n_pixels, limit)
    except GibbsiteError as error:
        advice = str(error)
    else:
        return
    if found := re.search(r"at least (\d+) workers", advice):
        tiles = tile_ranges(n_pixels, tile_pixels) if n_pixels / tile_pixels < 10_000 else None
        n_workers = int(found[1])
        if tiles is not None:
            share = max(map(len, deal(tiles, {f"{i}": 1 for i in range(n_workers)}, {}).values()))
            assert need.bytes(share * tile_pixels) <= USABLE * limit * (1 + 1e-9)
    if found := re.search(r"tile_pixels ≤ (\d+)", advice):
        smaller = Need(n_pixels, n_features, int(found[1]), n_threads)
        smaller.check("tcp://a:1", n_pixels, limit)
    found = re.search(r"([\d.]+) GB per worker$", advice)
    assert found is not None
    need.check("tcp://a:1", n_pixels, float(found[1]) * 1e9)
