"""The paper's experiments, run anew: tables in, trials of methods on them, and what they add up to.

A *trial* is one method on one table with one seed, over all its cases; a *case* says which classes are observed.
"""
