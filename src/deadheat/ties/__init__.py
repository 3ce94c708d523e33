"""From scores and judgements to judged lists, counts and tie groups."""

from deadheat.ties.build import tie_groups
from deadheat.ties.counter import TieCounter
from deadheat.ties.counting import BACKEND
from deadheat.ties.groups import TieGroups
from deadheat.ties.rules import TIE_RULES
from deadheat.ties.top import TopCounter

__all__ = ["BACKEND", "TIE_RULES", "TieCounter", "TieGroups", "TopCounter", "tie_groups"]
