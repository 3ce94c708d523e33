"""Whole leaderboards: a hundred runs at once, published numbers checked, ranks that ties allow."""

from deadheat.comparison.leaderboard.board import Leaderboard
from deadheat.comparison.leaderboard.make import leaderboard, leaderboards
from deadheat.comparison.leaderboard.published import PublishedBoard, read_published
from deadheat.comparison.leaderboard.rows import ROWS
from deadheat.comparison.leaderboard.rules import FoundRule, Setting
from deadheat.comparison.leaderboard.sources import BoardSpec, read_manifest
from deadheat.comparison.leaderboard.summary import Winner

__all__ = [
    "ROWS",
    "BoardSpec",
    "FoundRule",
    "Leaderboard",
    "PublishedBoard",
    "Setting",
    "Winner",
    "leaderboard",
    "leaderboards",
    "read_manifest",
    "read_published",
]
