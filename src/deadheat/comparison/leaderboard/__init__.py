"""Whole leaderboards: a hundred runs at once, published numbers checked, ranks that ties allow."""

from deadheat.comparison.leaderboard.board import Leaderboard
from deadheat.comparison.leaderboard.make import build_leaderboard, leaderboard, leaderboards
from deadheat.comparison.leaderboard.published import PublishedBoard, read_published
from deadheat.comparison.leaderboard.rows import ROWS
from deadheat.comparison.leaderboard.rules import FoundRule
from deadheat.comparison.leaderboard.sources import BoardSpec, read_manifest
from deadheat.comparison.leaderboard.summary import DecisionError, Winner

__all__ = [
    "ROWS",
    "BoardSpec",
    "DecisionError",
    "FoundRule",
    "Leaderboard",
    "PublishedBoard",
    "Winner",
    "build_leaderboard",
    "leaderboard",
    "leaderboards",
    "read_manifest",
    "read_published",
]
