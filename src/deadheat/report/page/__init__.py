"""Results as one web page that needs nothing but a browser."""

from deadheat.report.page.collection import (
    Collection as Collection,
    System as System,
    number_repeated as number_repeated,
)
from deadheat.report.page.leaderboard import render_leaderboards as render_leaderboards
from deadheat.report.page.render import render_page as render_page
