"""Build judged lists, counts and tie groups from scores and judgements."""

from deadheat.ties.checks import (
    check_groups as check_groups,
    read_places as read_places,
)
from deadheat.ties.counter import TieCounter as TieCounter
from deadheat.ties.counting import (
    BACKEND as BACKEND,
    Counts as Counts,
    count_columns as count_columns,
    find_columns as find_columns,
    to_floats as to_floats,
)
from deadheat.ties.groups import (
    Counted as Counted,
    Floats as Floats,
    Ints as Ints,
    JudgedDocuments as JudgedDocuments,
    TieGroups as TieGroups,
    build_groups as build_groups,
    count_groups as count_groups,
)
from deadheat.ties.lists import (
    JudgedLists as JudgedLists,
    MatchReport as MatchReport,
    list_labelled as list_labelled,
    list_shared as list_shared,
    match_lists as match_lists,
    prepare_scores as prepare_scores,
    rank_nan as rank_nan,
    round_scores as round_scores,
)
from deadheat.ties.ranked import RankedLists as RankedLists, rank_lists as rank_lists
from deadheat.ties.sizes import (
    GroupSizes as GroupSizes,
    run_sizes as run_sizes,
)
from deadheat.ties.top import TopCounter as TopCounter
