"""Results as one web page that needs nothing but a browser."""

from deadheat.report.page.render import is_page, render_page
from deadheat.report.page.sources import (
    Collection,
    System,
    collect,
    read_experiment,
    read_results,
)

__all__ = [
    "Collection",
    "System",
    "collect",
    "is_page",
    "read_experiment",
    "read_results",
    "render_page",
]
