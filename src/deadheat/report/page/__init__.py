"""Results as one web page that needs nothing but a browser."""

from deadheat.report.page.collection import Collection, System
from deadheat.report.page.render import render_page
from deadheat.report.page.shell import is_page

__all__ = ["Collection", "System", "is_page", "render_page"]
