"""The hot loops, in numba, and the only modules that know it: plain arrays in and out, no hidden state."""

from gibbsite.kernels.births import scan_tail
from gibbsite.kernels.lanes import add_up, class_odds, indicate, log_density, uniforms

__all__ = ["add_up", "class_odds", "indicate", "log_density", "scan_tail", "uniforms"]
