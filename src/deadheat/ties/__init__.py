"""From scores and judgements to judged lists, counts and tie groups."""

from deadheat.ties.build import build_groups
from deadheat.ties.counter import TieCounter
from deadheat.ties.counting import BACKEND
from deadheat.ties.groups import TieGroups
from deadheat.ties.top import TopCounter

__all__ = ["BACKEND", "TieCounter", "TieGroups", "TopCounter", "build_groups"]
