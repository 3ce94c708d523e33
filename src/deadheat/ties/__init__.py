"""From scores and judgements to tie groups."""

from deadheat.ties.build import Lists, tie_groups
from deadheat.ties.counter import TieCounter
from deadheat.ties.counting import BACKEND
from deadheat.ties.groups import TieGroups
from deadheat.ties.rules import TIE_RULES

__all__ = ["BACKEND", "TIE_RULES", "Lists", "TieCounter", "TieGroups", "tie_groups"]
