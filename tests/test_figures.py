"""Figures: file formats, plotted values, and readability of the text."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import deadheat as dh
from deadheat.cli import main
from deadheat.errors import InputError, MissingPackageError
from deadheat.evaluation import rank_query
from deadheat.provenance import DatasetProvenance
from deadheat.report import figures
from deadheat.report.figures.comparison import lanes_of, overlapping
from deadheat.report.figures.ranked_list import shown_rows
from deadheat.scoring.regimes import scoring_provenance
from deadheat.settings import EvalSettings
from deadheat.ties.sizes import run_sizes

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install '.[plots]'")
Image = pytest.importorskip("PIL.Image", reason="matplotlib brings Pillow")

QRELS = {"q": {"d1": 1, "d2": 1, "d3": 1}}
RUN = {"q": {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5}}
CURVE = [m @ k for m in (dh.nDCG, dh.MRR, dh.MAP, dh.Recall) for k in (1, 2, 3, 5, 8)]


def make_result(seed: int = 0, measures=CURVE, step: float = 0.5, queries: int = 12, **provenance):
    """Return a result with many ties: its scores are rounded to a coarse grid."""
    rng = np.random.default_rng(seed)
    relevance = np.zeros((queries, 20))
    relevance[:, :4] = 1
    scores = rng.normal(size=relevance.shape) + relevance * (1 + 0.05 * seed)
    evaluated = dh.evaluate_arrays(relevance, np.round(scores / step) * step, measures)
    return replace(evaluated, provenance=replace(evaluated.provenance, **provenance))


def draw_list(*what, width: str = "column", **options) -> figures.Plot:
    """Plot the ranked list of one query."""
    ranked = rank_query(*what, settings=EvalSettings(**options))
    return figures.ranked_list(ranked, width=width)


def draw_tie_sizes(runs: dict) -> figures.Plot:
    return figures.tie_sizes({name: run_sizes(dh.read_run(run)) for name, run in runs.items()})


def visible_texts(plot: figures.Plot):
    """Return every visible text of a figure with its bounding box."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(plot.figure)
    plot.figure.set_dpi(300)
    with figures.style.styled():
        canvas.draw()
    renderer = canvas.get_renderer()
    elements = [t for t in plot.figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    # Ticks outside the axis limits exist but are not drawn.
    hidden = {
        id(tick.label1)
        for axes in plot.figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        if not axes.axison or tick not in axis._update_ticks()
    }
    return [(t.get_text(), t.get_window_extent(renderer)) for t in elements if id(t) not in hidden]


def assert_readable(plot: figures.Plot) -> None:
    """Check that texts do not overlap and lie inside the figure."""
    boxes = visible_texts(plot)
    assert boxes
    page = plot.figure.bbox
    for text, box in boxes:
        assert box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1, f"{text!r} is outside the figure"
        assert box.y0 >= page.y0 - 1 and box.y1 <= page.y1 + 1, f"{text!r} is outside the figure"
    for (a, box), (b, other) in combinations(boxes, 2):
        width = min(box.x1, other.x1) - max(box.x0, other.x0)
        height = min(box.y1, other.y1) - max(box.y0, other.y0)
        assert width <= 0.5 or height <= 0.5, f"{a!r} and {b!r} overlap"


# Files


@pytest.mark.parametrize("extension", figures.ENDINGS)
def test_save_writes_the_format_of_the_extension_reproducibly(tmp_path, extension):
    path = tmp_path / f"figure.{extension}"
    plots = [draw_list(QRELS, RUN, "q", "Recall@3") for _ in range(2)]
    assert plots[0].save(path) == path
    content = path.read_bytes()
    assert content.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[extension])
    assert content == plots[1].render(extension)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if extension == "png":
        image = Image.open(io.BytesIO(content))
        assert image.width == 990  # 3.3 inches at 300 dots
        assert image.info["Description"] == plots[0].caption
    if extension == "svg":
        text = "".join(ElementTree.fromstring(content).itertext())
        assert plots[0].caption in text
    if extension == "pdf":
        assert b"/CIDFontType2" in content and b"/Type3" not in content  # embedded as TrueType


def test_save_overwrites_only_with_force(tmp_path):
    path = tmp_path / "figure.svg"
    path.write_text("mine")
    plot = figures.comparison({"a": make_result(0), "b": make_result(1)}, "nDCG@5")
    with pytest.raises(InputError, match="exists already"):
        plot.save(path)
    assert path.read_text() == "mine"
    plot.save(path, force=True)
    assert path.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("name", ["figure.gif", "figure", "pdf"])
def test_save_rejects_an_unknown_extension(tmp_path, name):
    with pytest.raises(InputError, match=r"use \.png, \.svg, \.pdf"):
        draw_list(QRELS, RUN, "q").save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_save_into_a_missing_folder_raises(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        draw_list(QRELS, RUN, "q").save(tmp_path / "none" / "figure.png")


def test_failed_save_leaves_no_file(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("deadheat._internal.output.os.fsync", fail)
    with pytest.raises(InputError, match="No space left"):
        draw_list(QRELS, RUN, "q").save(tmp_path / "figure.png")
    assert not list(tmp_path.iterdir())


def test_figures_ignore_and_preserve_rcparams(tmp_path):
    import matplotlib

    plain = draw_list(QRELS, RUN, "q").render()
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 10}):
        assert draw_list(QRELS, RUN, "q").render() == plain
        assert matplotlib.rcParams["font.size"] == 30


def test_missing_matplotlib_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"pip install .*\[plots\]"):
        draw_list(QRELS, RUN, "q")


def test_plot_command_imports_matplotlib_lazily():
    code = "import sys, deadheat.cli.plot; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Curves


def test_curves_plot_the_values_of_the_results():
    results = {"BF16": make_result(0), "FP32": make_result(1, step=0.001)}
    plot = figures.curves(results, percent=True)
    assert [axes.get_title() for axes in plot.figure.axes] == [
        f"{name}@k (%)" for name in ("nDCG", "MRR", "MAP", "Recall")
    ]
    for axes, measure in zip(plot.figure.axes, (dh.nDCG, dh.MRR, dh.MAP, dh.Recall), strict=True):
        for i, each in enumerate(results.values()):
            summaries = [each[measure @ k] for k in (1, 2, 3, 5, 8)]
            colour = figures.style.COLOURS[i]
            lines = [line for line in axes.lines if line.get_color() == colour]
            (oblivious,) = (line for line in lines if line.get_marker() == "x")
            (expected,) = (line for line in lines if line.get_marker() == "os"[i])
            for line, view in ((oblivious, "oblivious"), (expected, "expected")):
                assert list(line.get_xdata()) == [1, 2, 3, 5, 8]
                drawn = [100 * getattr(summary, view) for summary in summaries]
                np.testing.assert_allclose(line.get_ydata(), drawn)
            band = axes.collections[i].get_paths()[0].vertices
            for k, summary in zip((1, 2, 3, 5, 8), summaries, strict=True):
                at = band[band[:, 0] == k, 1]
                np.testing.assert_allclose(
                    [at.min(), at.max()], [100 * summary.worst, 100 * summary.best]
                )
    assert_readable(plot)


@pytest.mark.parametrize("width", ["column", "full", 4.5])
@pytest.mark.parametrize("families", [1, 2, 3, 4])
def test_curves_are_readable_at_every_width(width, families):
    measures = [m for m in CURVE if m.name in ("nDCG", "MRR", "MAP", "Recall")[:families]]
    labels = ["BF16", "BF16 + HPS", "BF16 + FP32 head"]
    plot = figures.curves(
        {label: make_result(i, measures) for i, label in enumerate(labels)}, width=width
    )
    assert len(plot.figure.axes) == families
    assert_readable(plot)


def test_curves_with_many_cutoffs_use_a_log_axis():
    plot = figures.curves(make_result(0, [dh.nDCG @ k for k in range(1, 101)]))
    (axes,) = plot.figure.axes
    assert axes.get_xscale() == "log"
    assert len(axes.lines[-1].get_xdata()) == 100
    assert len(axes.lines[-1].get_markevery()) <= 12
    assert_readable(plot)


def test_eight_curves_have_distinct_markers():
    plot = figures.curves({f"system {i}": make_result(i) for i in range(8)})
    lines = [line for line in plot.figure.axes[0].lines if line.get_marker() not in ("x", "None")]
    assert (
        len({line.get_marker() for line in lines}) == len({line.get_color() for line in lines}) == 8
    )
    assert_readable(plot)
    with pytest.raises(InputError, match="choose up to 8"):
        figures.curves({f"system {i}": make_result(i) for i in range(9)})


def test_caption_contains_tie_rule_queries_and_regimes():
    results = {
        "low": make_result(0, scoring=scoring_provenance("native", "bf16")),
        "high": make_result(0, scoring=scoring_provenance("hps", "bf16")),
    }
    caption = figures.curves(results).caption
    assert "mean of 12 queries" in caption
    assert "ties in input order" in caption
    assert "low (model dtype bf16, scoring dtype bf16, regime native); " in caption
    assert "high (model dtype bf16, scoring dtype fp32, regime hps)" in caption
    assert "low and high coincide." in caption
    rules = {rule: dh.evaluate(QRELS, RUN, CURVE, tie_break=rule) for rule in ("input", "id_desc")}
    caption = figures.curves(rules).caption
    assert "input: ties in input order; id_desc: ties by descending document ids" in caption


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "no result"),
        ([make_result(0, "nDCG@10"), make_result(1, "MRR@10")], "2 systems are called"),
        (
            {"a": make_result(0, "nDCG@5,10"), "b": make_result(1, "MRR@5,10")},
            "no measure in common",
        ),
        ({"a": make_result(0, "nDCG@5,10"), "b": make_result(1, "nDCG@5,7")}, "several cutoffs"),
        (make_result(0, ["nDCG@10", "MRR", "MAP"]), "several cutoffs"),
        ({"a": make_result(0), "b": make_result(1, queries=11)}, "was not evaluated on query"),
        (
            {
                "a": make_result(0, dataset=DatasetProvenance("x", split="test")),
                "b": make_result(1, dataset=DatasetProvenance("x", split="dev")),
            },
            "with the judgements x test, b with x dev",
        ),
    ],
)
def test_curves_reject_incompatible_results(results, message):
    with pytest.raises(InputError, match=message):
        figures.curves(results)


@pytest.mark.parametrize("width", ["wide", 0.5, 100])
def test_invalid_width_is_rejected(width):
    with pytest.raises(InputError, match=r"width .*column, full .*2 to 20 inches"):
        figures.curves(make_result(0), width=width)


# Comparison


@pytest.mark.parametrize("width", ["column", "full"])
@pytest.mark.parametrize("n", [2, 5, 12, 13, 126])
def test_comparison_plots_sorted_intervals_and_readable_names(n, width):
    results = {
        f"system-{i:02d}-of-{n}-with-a-long-name": make_result(i, "nDCG@10") for i in range(n)
    }
    plot = figures.comparison(results, width=width)
    assert plot.figure.get_figheight() < 11  # fits on a page
    axes = plot.figure.axes[0]
    ranked = sorted((r["nDCG@10"] for r in results.values()), key=lambda s: -s.expected)
    expected, oblivious = axes.lines
    np.testing.assert_array_equal(expected.get_xdata(), [s.expected for s in ranked])
    np.testing.assert_array_equal(oblivious.get_xdata(), [s.oblivious for s in ranked])
    for row, (segment, summary) in enumerate(
        zip(axes.collections[0].get_segments(), ranked, strict=True)
    ):
        np.testing.assert_array_equal(segment, [[summary.worst, row], [summary.best, row]])
    assert_readable(plot)
    joined = set()  # pairs of rows that the figure marks as overlapping
    for line in plot.figure.axes[1].lines:
        joined |= set(permutations(map(int, line.get_ydata()), 2))
    for (i, a), (j, b) in permutations(enumerate(ranked), 2):
        assert ((i, j) in joined) == (a.worst <= b.best and b.worst <= a.best)


def test_overlapping_returns_exactly_the_overlapping_pairs():
    base = make_result(0, "nDCG@10")["nDCG@10"]
    ends = [(0.7, 0.8), (0.6, 0.65), (0.3, 0.75), (0.2, 0.25), (0.25, 0.28), (0.1, 0.1)]
    systems = [replace(base, worst=worst, best=best) for worst, best in ends]
    joined = overlapping(systems)
    assert joined == [[0, 2], [1, 2], [3, 4]]
    assert lanes_of(joined) == [[[0, 2], [3, 4]], [[1, 2]]]


def test_comparison_caption_without_overlaps():
    relevance = [[1, 0], [1, 0]]
    results = {
        "good": dh.evaluate_arrays(relevance, [[2, 1], [2, 1]], "MRR"),
        "bad": dh.evaluate_arrays(relevance, [[1, 2], [1, 2]], "MRR"),
    }
    plot = figures.comparison(results)
    assert not plot.figure.axes[1].lines
    assert "cannot change the order" in plot.caption
    assert "intervals overlap" not in [text for text, _ in visible_texts(plot)]


def test_comparison_requires_two_systems_and_one_measure():
    with pytest.raises(InputError, match="2 to 200 systems"):
        figures.comparison(make_result(0, "nDCG@10"))
    with pytest.raises(InputError, match=r"\(nDCG@5, nDCG@10\), not None"):
        figures.comparison({"a": make_result(0, "nDCG@5,10"), "b": make_result(1, "nDCG@5,10")})
    with pytest.raises(InputError, match="not MAP"):
        figures.comparison(
            {"a": make_result(0, "nDCG@5,10"), "b": make_result(1, "nDCG@5,10")}, "MAP"
        )


def test_special_characters_in_names_are_drawn_literally():
    names = [
        "_a",
        "cost $5 and $6",
        "<script>",
        "x" * 60 + "1" + "y" * 20,
        "x" * 60 + "2" + "y" * 20,
    ]
    results = {
        name: make_result(i, "nDCG@10") for i, name in enumerate([*names, "line\nbreak\x01"])
    }
    plot = figures.comparison(results, width="full")
    shown = [text for text, _ in visible_texts(plot)]
    assert {*names[:3], r"line\nbreak\x01"} <= set(shown)
    assert len([text for text in shown if text.startswith("xxx")]) == 2
    ElementTree.fromstring(plot.render("svg"))


def test_caption_names_at_most_12_systems():
    few, many = ({f"s{i}x": make_result(i, "nDCG@5") for i in range(n)} for n in (12, 13))
    assert "s11x" in figures.comparison(few).caption
    assert "s11x" not in figures.comparison(many).caption


# Ranks


def make_ranking(n: int, seed: int = 0, **columns) -> pl.DataFrame:
    """Return a ranking in which ties can change the rank of every third system."""
    rng = np.random.default_rng(seed)
    rank = np.arange(1, n + 1)
    step = np.where(rank % 3 == 0, rng.integers(1, 1 + n // 2, n), 0)
    frame = {
        "system": [f"system-{i:03d}x" for i in rank],
        "rank": rank,
        "best_rank": np.maximum(rank - step, 1),
        "worst_rank": np.minimum(rank + step, n),
        "oblivious_rank": np.clip(rank + step // 2, 1, n),
    }
    return pl.DataFrame({**frame, **columns}).sample(fraction=1, shuffle=True, seed=seed)


def plotted_values(plot: figures.Plot) -> dict[str, dict[int, list[float]]]:
    """Return the x values of bars, crosses and dots by row."""
    points: dict[str, dict[int, list[float]]] = {"bars": {}, "crosses": {}, "dots": {}}
    for line in plot.figure.axes[0].lines:
        kind = {"None": "bars", "x": "crosses"}.get(line.get_marker(), "dots")
        points[kind][int(line.get_ydata()[0])] = [float(x) for x in line.get_xdata()]
    return points


@pytest.mark.parametrize("width", ["column", "full"])
@pytest.mark.parametrize("n", [2, 5, 50, 126])
def test_rank_intervals_plot_the_values_of_the_frame(n, width):
    frame = make_ranking(n)
    groups = {system: f"team {i % 5}" for i, system in enumerate(frame["system"])}
    plot = figures.rank_intervals(frame, groups=groups, what="nDCG@10", width=width)
    values = plotted_values(plot)
    for y, row in enumerate(frame.sort("rank").to_dicts()):
        assert values["bars"][y] == [row["best_rank"], row["worst_rank"]]
        assert values["crosses"][y] == [row["oblivious_rank"]]
        assert values["dots"][y] == [row["rank"]]
    assert_readable(plot)
    assert plot.figure.get_figheight() < 11
    shown = [text for text, _ in visible_texts(plot)]
    assert {"system-001x", "system-002x", "oblivious", "rank by nDCG@10"} <= set(shown)
    moved = (frame["best_rank"] < frame["worst_rank"]).sum()
    assert f" {moved} of {n} systems" in plot.caption


def test_official_ranks_replace_oblivious_ranks():
    frame = make_ranking(4, official_rank=[2, None, 1, 4])
    values = plotted_values(figures.rank_intervals(frame))
    assert values["crosses"] == {0: [2], 2: [1], 3: [4]}
    plot = figures.rank_intervals(make_ranking(4, official_rank=[None, 3, None, None]))
    assert plotted_values(plot)["crosses"] == {1: [3]}
    assert "×: official rank" in plot.caption
    assert "official" in [text for text, _ in visible_texts(plot)]


@pytest.mark.parametrize(
    ("groups", "legend"),
    [
        ([None] * 12, set()),
        (["a", "a", "b", *[None] * 9], {"a (2)", "b (1)", "others (9)"}),
        ([*"abcdefgh", *"abcd"], {"a (2)", "h (1)"}),
        ([*"abcdefghij", "a", "b"], {"a (2)", "g (1)", "others (3)"}),
        ([*"abcdefghij", "a", None], {"a (2)", "g (1)", "others (4)"}),
    ],
)
def test_rank_intervals_use_one_style_per_group_up_to_eight(groups, legend):
    frame = make_ranking(12).sort("rank")
    named = {s: group for s, group in zip(frame["system"], groups, strict=True) if group}
    plot = figures.rank_intervals(frame, groups=named, width="full")
    shown = {text for text, _ in visible_texts(plot)}
    assert legend <= shown
    assert ("a (2)" in shown) == bool(legend)
    dots = [line for line in plot.figure.axes[0].lines if line.get_marker() not in ("None", "x")]
    styles = {group: set() for group in groups}
    for group, line in zip(groups, dots, strict=True):
        styles[group].add((line.get_color(), line.get_marker()))
    assert all(len(style) == 1 for style in styles.values())
    assert len(set.union(*styles.values())) == min(len(styles), 8)


def test_rank_intervals_reject_invalid_input():
    frame = make_ranking(4)
    cases = {
        "no worst_rank here": (frame.drop("worst_rank"), {}),
        "2 to 500 systems, not 1": (frame.head(1), {}),
        "one measure at a time": (pl.concat([frame, frame]), {}),
        "'x' is not among the systems": (frame, {"groups": {"x": "y"}}),
    }
    for message, (ranking, options) in cases.items():
        with pytest.raises(InputError, match=message):
            figures.rank_intervals(ranking, **options)


# Ranked lists


def test_ranked_list_of_the_paper_example():
    plot = draw_list(QRELS, RUN, "q", "Recall@3")
    shown = [text for text, _ in visible_texts(plot)]
    assert {"d1", "d2", "d3", "d4", "2–4", "3 tied, 2 relevant", "k = 3"} <= set(shown)
    assert {"0.7778", "0.6667", "1.0000"} <= set(shown)
    axes, scale = plot.figure.axes
    assert len([line for line in axes.lines if line.get_marker() == "*"]) == 3
    assert [line.get_xdata()[0] for line in scale.lines] == [pytest.approx(7 / 9), 1.0]
    np.testing.assert_allclose(scale.collections[0].get_segments()[0][:, 0], [2 / 3, 1])
    cutoff = next(line for line in axes.lines if len(line.get_xdata()) == 2)
    rows = sorted(patch.get_y() for patch in axes.patches if hasattr(patch, "get_y"))
    assert cutoff.get_ydata()[0] == pytest.approx(3 * (rows[-1] - rows[-2]), abs=0.02)
    assert re.search(r"expected 0\.7778.* 0\.6667.* 1\.0000", plot.caption)
    assert_readable(plot)


@pytest.mark.parametrize("width", ["column", "full"])
@pytest.mark.parametrize("n", [5, 25, 100, 1000])
@pytest.mark.parametrize("cutoff", [10, 50])
def test_ranked_lists_of_any_length_are_readable(n, cutoff, width):
    rng = np.random.default_rng(n)
    scores = np.round(rng.beta(5, 1, n), 2)
    run = {"q": {f"document-{i:06d}": score for i, score in enumerate(scores)}}
    qrels = {"q": {f"document-{i:06d}": int(rng.integers(1, 3)) for i in range(0, n, 4)}}
    plot = draw_list(qrels, run, "q", dh.nDCG @ cutoff, width=width)
    assert plot.figure.get_figheight() < 6.5
    assert_readable(plot)


@pytest.mark.parametrize(("n", "cutoff"), [(5, 3), (25, 10), (100, 50), (1000, None), (30, 99)])
def test_shown_rows_cover_every_document(n, cutoff):
    rows = shown_rows(n, cutoff, 24)
    assert [i for row in rows for i in row] == list(range(n))
    assert len(rows) <= 28
    if cutoff is not None and cutoff < n:
        assert {range(cutoff - 1, cutoff), range(cutoff, cutoff + 1)} <= set(rows)


@pytest.mark.parametrize("rule", list(dh.settings.TIE_RULES))
def test_ranked_list_orders_tied_documents_by_the_tie_rule(rule, tmp_path):
    path = tmp_path / "run.txt"
    rows = [("b", 3, 0.5), ("c", 2, 0.5), ("a", 4, 0.5), ("z", 1, 0.9)]
    path.write_text("".join(f"q Q0 {d} {rank} {score} tag\n" for d, rank, score in rows))
    plot = draw_list({"q": {"a": 1}}, path, "q", "MRR", tie_break=rule)
    heights = {text: box.y0 for text, box in visible_texts(plot) if text in "abcz"}
    drawn = "".join(sorted(heights, key=lambda text: -heights[text]))
    order = {"input": "zbca", "id_asc": "zabc", "rank": "zcba"}.get(rule, "zcba")
    assert drawn == order
    assert f"oblivious {1 / (1 + order.index('a')):.4f}" in plot.caption


def test_ranked_list_shows_enough_digits_to_distinguish_scores():
    scores = {"a": 0.99948066, "b": 0.99948067, "c": 0.5}
    plot = draw_list({"q": {"a": 1}}, {"q": scores}, "q", "MRR")
    assert {"0.99948066", "0.99948067"} <= {text for text, _ in visible_texts(plot)}


def test_ranked_list_rejects_unknown_queries():
    with pytest.raises(InputError, match="qrels: there is no query 'x'"):
        draw_list(QRELS, RUN, "x")
    with pytest.raises(InputError, match="run: there is no query 'x'"):
        draw_list(QRELS | {"x": {"d": 1}}, RUN, "x")
    with pytest.raises(InputError, match="names 2 measures"):
        draw_list(QRELS, RUN, "q", "nDCG@5,10")


# Tie sizes


def test_tie_sizes_count_groups_and_documents():
    run = {"q1": dict(zip("abcdef", [3, 3, 3, 2, 1, 1], strict=True)), "q2": {"a": 3, "b": 2}}
    plot = draw_tie_sizes({"mine": run})
    groups, documents = (axes.patches[0].get_data() for axes in plot.figure.axes)
    assert groups.values.tolist() == [3, 1, 1] and groups.edges.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert documents.values.tolist() == [8, 5, 3]
    assert re.search(r"\b8 documents .*2 queries.* 62\.5% .*group 3\b", plot.caption)
    assert_readable(plot)


@pytest.mark.parametrize("scores", [[1.0], [1, 2, 3], [0.0, -0.0]])
def test_tie_sizes_of_few_documents_have_integer_ticks(scores):
    run = {"q": dict(zip("abc", scores, strict=False))}
    plot = draw_tie_sizes({"few": run})
    assert plot.caption.endswith(f"largest group {2 if len(scores) == 2 else 1}.")
    labels = [text for text, _ in visible_texts(plot) if text.isdigit()]
    assert all(labels.count(label) <= 4 for label in labels)  # once on each of four axes
    for axes in plot.figure.axes:
        assert all(tick == int(tick) for tick in (*axes.get_xticks(), *axes.get_yticks()))
    assert_readable(plot)


def test_tie_sizes_of_large_groups_use_log_bins():
    scores = np.repeat(np.arange(60.0), [1] * 55 + [2, 3, 4, 5, 300])
    runs = {name: {"q": {str(i): s for i, s in enumerate(scores)}} for name in ("one", "two")}
    plot = draw_tie_sizes(runs)
    left, right = plot.figure.axes
    assert left.get_xscale() == right.get_xscale() == left.get_yscale() == "log"
    groups = left.patches[0].get_data()
    assert groups.edges[:5].tolist() == [0.5, 1.5, 2.5, 4.5, 8.5]
    assert groups.values[:4].tolist() == [55, 1, 2, 1] and groups.values.sum() == 60
    assert_readable(plot)


def test_tie_sizes_reject_nan_and_an_empty_list():
    with pytest.raises(InputError, match="NaN"):
        draw_tie_sizes({"bad": {"q": {"a": float("nan")}}})
    with pytest.raises(InputError, match="1 to 8 runs, not 0"):
        figures.tie_sizes({})


# The command line


@pytest.fixture
def files(tmp_path):
    qrels, good, flat = (tmp_path / name for name in ("qrels.txt", "good.run", "flat.run"))
    docs = [(f"q{q}", f"d{i}", 9 - i) for q in range(3) for i in range(10)]
    qrels.write_text("".join(f"{q} 0 {d} {int(s % 4 == 1)}\n" for q, d, s in docs))
    good.write_text("".join(f"{q} Q0 {d} 1 {s} t\n" for q, d, s in docs))
    flat.write_text("".join(f"{q} Q0 {d} 1 {s // 5} t\n" for q, d, s in docs))
    return tmp_path, [str(qrels), str(good), str(flat)]


@pytest.mark.parametrize(
    ("kind", "runs", "options", "text"),
    [
        ("curves", 2, ["-m", "nDCG", "-m", "MRR", "-k", "1..5,8"], "mean of 3 queries: good"),
        ("curves", 1, ["-m", "nDCG@1,5"], "3 queries: good."),
        ("compare", 2, ["-m", "MAP", "--percent", "--tie-break", "id_desc"], "descending doc"),
        ("ranks", 2, ["-m", "MAP", "--group-by", "^."], "2 systems by MAP of 3 queries"),
        ("list", 1, ["--query", "q1", "-m", "MRR@3"], "10 documents, 3 of them relevant"),
        ("sizes", 2, ["--width", "full"], "largest group 5"),
    ],
)
def test_plot_command_writes_a_figure_and_prints_its_caption(files, kind, runs, options, text):
    folder, (qrels, *paths) = files
    output = folder / "figure.png"
    arguments = ["plot", kind, *([] if kind == "sizes" else [qrels]), *paths[:runs], *options]
    done = CliRunner().invoke(main, [*arguments, "-o", str(output)])
    assert done.exit_code == 0, done.output
    assert text in done.stdout
    written = output.read_bytes()
    again = CliRunner().invoke(main, [*arguments, "-o", str(output)])
    assert again.exit_code == 2 and "exists already; use --force" in again.stderr
    forced = CliRunner().invoke(main, [*arguments, "-o", str(output), "--force"])
    assert forced.exit_code == 0 and output.read_bytes() == written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curves", "Q", "R", "-k", "5"], "several cutoffs"),
        (["curves", "Q", "R", "-k", "5..1"], "'5..1'"),
        (["curves", "Q", "R", "-k", "a,b"], "'a,b'"),
        (["curves", "Q", "R", "R"], "is given twice"),
        (["compare", "Q", "R"], "2 to 200 systems"),
        (["ranks", "Q", "R"], "2 to 500 systems"),
        (["ranks", "Q", "R", "--group-by", "("], "--group-by '('"),
        (["list", "Q", "R", "--query", "none"], "no query 'none'"),
        (["list", "-", "-", "--query", "q1"], "only once"),
        (["sizes", "none.run"], "none.run"),
    ],
)
def test_plot_command_with_bad_input_writes_no_file(files, arguments, message):
    folder, (qrels, run, _) = files
    words = [{"Q": qrels, "R": run}.get(word, word) for word in arguments]
    done = CliRunner().invoke(main, ["plot", *words, "-o", str(folder / "figure.pdf")])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ") and message in done.stderr
    assert not (folder / "figure.pdf").exists()


# The documentation


def test_documentation_figures_can_be_generated(tmp_path):
    script = Path(__file__).parents[1] / "docs" / "make_figures.py"
    command = [sys.executable, str(script), "--figures-only", "--output", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    drawn = {path.stem for path in tmp_path.iterdir()}
    assert drawn == {
        "query",
        "ranked-list",
        "curves",
        "comparison",
        "ranks",
        "grades",
        "score-histograms",
    }
    assert "BF16 and BF16 + HPS coincide." in done.stdout
    readme = (script.parents[1] / "README.md").read_text(encoding="utf-8")
    values = re.findall(r"\d\.\d{4}", done.stdout.splitlines()[1])  # of the README's query
    assert len(values) == 4 and all(value in readme for value in values)
    images = script.parent / "images"
    assert {path.name for path in tmp_path.iterdir()} <= {path.name for path in images.iterdir()}
    for figure in (*tmp_path.iterdir(), *images.glob("*.svg")):
        # The colours follow the theme of the browser.
        text = figure.read_text(encoding="utf-8")
        _, style, drawing = re.split(r"(<style>svg .*?</style>)", text, flags=re.DOTALL)
        assert "@media (prefers-color-scheme: dark)" in style
        assert not re.search(r"(fill|stroke): #", drawing), figure
