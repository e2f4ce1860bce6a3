"""The hot loops, in numba, and the only modules that know it: plain arrays in and out, no hidden state."""

from gibbsite.kernels.bland import best_of_columns, crookedness, divide_by_bland
from gibbsite.kernels.block import scan_block
from gibbsite.kernels.cells import cell_products
from gibbsite.kernels.combinations import (
    combine_bands,
    combine_bands_by_column,
    combine_bands_of_strip,
    project_lines,
)
from gibbsite.kernels.draws import draw_classes
from gibbsite.kernels.hidden import estimate_round
from gibbsite.kernels.lanes import add_odds, find_anchors, fit_best, indicate, lay_out, log_density, uniforms
from gibbsite.kernels.lines import (
    add_artefact,
    bridge_gaps,
    divide_air,
    divide_columns,
    survey_stored,
    take_lines,
    take_stored,
)
from gibbsite.kernels.seats import change_seat, choose_seats, log_fit, part_seats, take_seats
from gibbsite.kernels.sides import take_sides
from gibbsite.kernels.smile import nearest_bands, polynomial_weights
from gibbsite.kernels.spectra import number_cells, take_bands, take_spectra, values_of_rank
from gibbsite.kernels.spikes import despike, despike_columns, despike_spectra
from gibbsite.kernels.stripes import (
    MOST_ADDED,
    add_level_ratios,
    add_ratios,
    keep_level_ratios,
    keep_ratios,
    local_line,
    quantiles_of_keys,
)
from gibbsite.kernels.strips import SOME_KEYS
from gibbsite.kernels.sums import add_up
from gibbsite.kernels.vectors import LANES

__all__ = [
    "LANES",
    "MOST_ADDED",
    "SOME_KEYS",
    "add_artefact",
    "add_level_ratios",
    "add_odds",
    "add_ratios",
    "add_up",
    "best_of_columns",
    "bridge_gaps",
    "cell_products",
    "change_seat",
    "choose_seats",
    "combine_bands",
    "combine_bands_by_column",
    "combine_bands_of_strip",
    "crookedness",
    "despike",
    "despike_columns",
    "despike_spectra",
    "divide_air",
    "divide_by_bland",
    "divide_columns",
    "draw_classes",
    "estimate_round",
    "find_anchors",
    "fit_best",
    "indicate",
    "keep_level_ratios",
    "keep_ratios",
    "lay_out",
    "local_line",
    "log_density",
    "log_fit",
    "nearest_bands",
    "number_cells",
    "part_seats",
    "polynomial_weights",
    "project_lines",
    "quantiles_of_keys",
    "scan_block",
    "survey_stored",
    "take_bands",
    "take_lines",
    "take_seats",
    "take_sides",
    "take_spectra",
    "take_stored",
    "uniforms",
    "values_of_rank",
]
