"""Specs: a reward expression written down as YAML, read back exactly, checked before any data is seen.

>>> from guerdon.spec import load_spec
>>> load_spec("reward: {when: [{column: right}, 1, {negate: 0.5}]}").reward.range
Interval(low=-0.5, high=1.0)
"""

from guerdon.spec._check import Finding, axis_problem, check
from guerdon.spec._graph import graph
from guerdon.spec._read import Spec, load_spec
from guerdon.spec._schema import schema
from guerdon.spec._write import dump_spec

__all__ = ["Finding", "Spec", "axis_problem", "check", "dump_spec", "graph", "load_spec", "schema"]
