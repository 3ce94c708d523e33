"""Leaderboards: evaluate all runs, check published numbers, find the ranks that ties allow."""

from deadheat.comparison.leaderboard.board import Leaderboard as Leaderboard
from deadheat.comparison.leaderboard.make import (
    leaderboard as leaderboard,
    leaderboards as leaderboards,
)
from deadheat.comparison.leaderboard.published import (
    PublishedBoard as PublishedBoard,
    read_published as read_published,
)
from deadheat.comparison.leaderboard.rules import FoundRule as FoundRule
from deadheat.comparison.leaderboard.sources import (
    find_runs as find_runs,
    read_manifest as read_manifest,
)
from deadheat.comparison.leaderboard.standings import (
    DecisionError as DecisionError,
    Winner as Winner,
)
from deadheat.comparison.leaderboard.tables import (
    error_lines as error_lines,
    row_columns as row_columns,
    summary_table as summary_table,
    winner_parts as winner_parts,
)
