"""The hot loops, in numba, and the only modules that know it: plain arrays in and out, no hidden state."""

from gibbsite.kernels.block import scan_block
from gibbsite.kernels.lanes import class_odds, component_odds, find_anchors, indicate, log_density, uniforms
from gibbsite.kernels.seats import change_seat, choose_seats, log_fit, part_seats, take_seats
from gibbsite.kernels.sides import take_sides
from gibbsite.kernels.sums import add_up

__all__ = [
    "add_up",
    "change_seat",
    "choose_seats",
    "class_odds",
    "component_odds",
    "find_anchors",
    "indicate",
    "log_density",
    "log_fit",
    "part_seats",
    "scan_block",
    "take_seats",
    "take_sides",
    "uniforms",
]
