"""`deadheat report`: results in, one web page out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from deadheat.cli.common import check_output, evaluate_options, evaluate_runs, show_warnings, write
from deadheat.errors import InputError
from deadheat.evaluation import DEFAULT_MEASURES
from deadheat.formats import read_qrels, read_run
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
