"""Whole leaderboards: a hundred runs at once, published numbers checked, ranks that ties allow."""

from deadheat.comparison.leaderboard.board import Leaderboard
from deadheat.comparison.leaderboard.make import leaderboard, leaderboards
from deadheat.comparison.leaderboard.published import PublishedBoard, read_published
from deadheat.comparison.leaderboard.rules import FoundRule
from deadheat.comparison.leaderboard.sources import BoardSpec, read_manifest
from deadheat.comparison.leaderboard.standings import ROWS, DecisionError, Winner

__all__ = [
    "ROWS",
    "BoardSpec",
    "DecisionError",
    "FoundRule",
    "Leaderboard",
    "PublishedBoard",
    "Winner",
    "leaderboard",
    "leaderboards",
    "read_manifest",
    "read_published",
]
