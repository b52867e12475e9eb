"""Adapters that make mechanisms from other packages.

A package is imported when it is first used.
"""

from dpaudit.adapters.drawing import Drawn
from dpaudit.adapters.engines import pipeline_dp, smartnoise_sql
from dpaudit.adapters.gradients import Gradient, jax_gradient, torch_gradient
from dpaudit.adapters.measurements import opendp, opendp_query, pydp
from dpaudit.adapters.models import diffprivlib_mechanism, diffprivlib_model, diffprivlib_tool
from dpaudit.adapters.training import jax_privacy, opacus

__all__ = [
    "Drawn",
    "Gradient",
    "diffprivlib_mechanism",
    "diffprivlib_model",
    "diffprivlib_tool",
    "jax_gradient",
    "jax_privacy",
    "opacus",
    "opendp",
    "opendp_query",
    "pipeline_dp",
    "pydp",
    "smartnoise_sql",
    "torch_gradient",
]
