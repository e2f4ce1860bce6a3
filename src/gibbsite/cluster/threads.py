"""Threads below the workers: none."""

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
"""Variables for a worker: it is parallel over tiles; libraries below it are not."""
