"""The report page: its content, and the input that it rejects."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from report_pages import (
    HOSTILE,
    evaluate_quietly,
    parse_data,
    render_comparison,
    run_deadheat,
    write_inputs,
)

import deadheat as dh
from deadheat._internal.remarks import note, warning
from deadheat.cli import output as cli_output, pages
from deadheat.errors import MissingPackageError
from deadheat.evaluation import read_results
from deadheat.provenance import Provenance
from deadheat.report.page import Collection, System, render_page

pytest.importorskip("jinja2", reason="the page needs jinja2: pip install '.[report]'")

# The content of the page.


def test_page_is_one_file_without_external_resources(tmp_path):
    qrels, *runs = write_inputs(tmp_path)
    out = tmp_path / "report.html"
    output = run_deadheat("report", "--qrels", qrels, *runs, "-m", "nDCG@10", "-o", out)
    assert output.endswith("report.html in a browser.\n")
    page = out.read_text(encoding="utf-8")
    assert not re.search(r"<(link|img|iframe|object)\b|@import|url\(|(src|href)=[\"'][^#]", page)
    assert len(page) < 300_000
    assert "default-src 'none'" in page
    result = evaluate_quietly(
        json.loads(Path(qrels).read_text()), json.loads(Path(runs[0]).read_text()), ["nDCG@10"]
    )["nDCG@10"]
    for view in ("expected", "worst", "best", "range", "oblivious"):
        assert f"{getattr(result, view):.4f}" in page
    for text in ("tie_break", "qrels.json", "tied.json", "numpy", dh.__version__):
        assert text in page
    data = parse_data(page)["collections"][0]
    assert {system["name"] for system in data["systems"]} == {"tied", "sharp"}
    assert data["cutoffs"] == {"nDCG@10": 10}
    curves = re.search(r'<section id="curves".*?</section>', page, re.DOTALL)[0]
    assert all(f">nDCG@{k}</th>" in curves for k in (1, 2, 3, 5, 10, 20, 50, 100))


def test_query_values_match_the_result():
    qrels = {"a": {"x": 1}, "b": {"y": 1}}
    run = {"a": {"x": 0.5, "y": 0.5}, "b": {"x": 0.5, "y": 0.25}}
    result = evaluate_quietly(qrels, run, ["MRR"])
    data = parse_data(render_page([Collection("c", [System(result, "s")])]))
    values = data["collections"][0]["systems"][0]["values"]["MRR"]
    assert values == [[0.75, 0.5], [0.5, 0.5], [1, 0.5], [1, 0.5]]


def test_hostile_names_are_escaped(tmp_path):
    qrels, *runs = write_inputs(tmp_path, names=HOSTILE)
    result = evaluate_quietly(dh.read_qrels(qrels), dh.read_run(runs[0]), ["nDCG@10"])
    origin = Provenance(HOSTILE[0], HOSTILE[1], versions={name: name for name in HOSTILE})
    result = replace(result, provenance=origin, remarks=tuple(map(warning, HOSTILE)))
    system = System(result, HOSTILE[0], dh.read_run(runs[0]), HOSTILE[1])
    page = render_page([Collection(HOSTILE[1], [system], dh.read_qrels(qrels))], title=HOSTILE[2])
    assert page.count("<script") == page.count("</script") == 2
    assert not re.search(r"<img|<a href='|<!--", page)
    data = parse_data(page)["collections"][0]
    assert set(HOSTILE) <= set(data["queries"]) and set(HOSTILE) & set(data["documents"])


def test_lone_surrogate_in_a_query_id():
    result = evaluate_quietly({"q": {"x": 1}}, {"q": {"x": 1.0}}, ["MRR"])
    result = replace(result, query_ids=["\ud800"])  # JSON allows it
    render_page([Collection("c", [System(result, "s")])]).encode()


def test_query_table_shows_one_cutoff_per_measure():
    names = [f"{name}@{k}" for name in ("nDCG", "MRR") for k in (1, 5, 10, 20, 50)]
    result = evaluate_quietly(
        {"q": {"x": 1}}, {"q": {"x": 1.0}}, [*names, "Recall@5", "Recall@7", "MAP"]
    )
    page = render_page([Collection("c", [System(result, "s")])])
    assert list(parse_data(page)["collections"][0]["cutoffs"]) == [
        "nDCG@10",
        "MRR@10",
        "Recall@7",
        "MAP",
    ]
    assert re.findall(r'<div class="chart" data-collection="c" data-measure="([^"]+)"', page) == [
        "nDCG@10",
        "MRR@10",
        "Recall@7",
    ], "a single cutoff has no curve"


def test_system_names_are_distinct():
    stored = [
        SimpleNamespace(name="m", model_dtype="bf16", regime=regime)
        for regime in ("native", "hps", "hps")
    ]
    assert pages._name_stored(stored) == ["native", "hps", "hps (2)"]
    assert pages._name_stored(stored[:1]) == ["m · bf16 · native"]
    result = evaluate_quietly({"q": {"x": 1}}, {"q": {"x": 1.0}}, ["MRR"])
    (collection,) = pages.group_results([result, result])
    first, second = collection.results
    assert second == f"{first} (2)"


# The first screen.


def build_two_systems(first: dict, second: dict, *measures: str) -> Collection:
    """Return a collection of two systems, one and two, with the same judgements."""
    qrels = {q: {"x": 1} for q in first}
    results = [evaluate_quietly(qrels, run, list(measures) or ["MRR"]) for run in (first, second)]
    systems = [System(result, name) for name, result in zip(("one", "two"), results, strict=True)]
    return Collection("c", systems).compare(list(results[0].views))


def find_leaderboard(page: str) -> str:
    """Return the HTML of the leaderboard of a page."""
    return re.search(r'<table class="numbers sortable leading">.*?</table>', page, re.DOTALL)[0]


def test_order_of_sections(tmp_path):
    qrels, *runs = write_inputs(tmp_path)
    out = tmp_path / "page.html"
    run_deadheat("report", "--qrels", qrels, *runs, "-m", "nDCG@10", "-o", out)
    page = out.read_text(encoding="utf-8")
    order = re.findall(r'<section id="(\w+)"', page)
    assert order == ["leaderboard", "curves", "comparison", "queries", "words", "notes"]
    places = [page.index(f'class="{name}"') for name in ("finding", "scroll intervals")]
    assert places == sorted(places) and places[-1] < page.index("sortable leading")
    assert page.index("versions.numpy") > page.index('<section id="notes"')


def test_finding_names_the_contested_order_or_the_largest_range():
    tied, sharp = {"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 0.5}
    wrong = {"x": 0.5, "y": 1.0}
    for runs, queries, pattern in (
        ((tied, sharp), 8, r"MRR of one by 0\.5000; .*input order"),
        ((tied, sharp), 8, r"100\.00, 25\.00 above"),
        ((tied, sharp), 1, r"Ties alone decide .*one or two .*MRR"),
        ((sharp, wrong), 8, "Ties cannot move any"),
    ):
        page = render_page(
            [build_two_systems(*({f"q{i}": run for i in range(queries)} for run in runs))]
        )
        assert re.search(pattern, re.search(r'<p class="finding">.*?</p>', page)[0])


def test_best_value_is_bold_only_if_ties_cannot_change_it():
    tied, sharp, wrong = {"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 0.5}, {"x": 0.5, "y": 1.0}
    certain = find_leaderboard(render_page([build_two_systems({"q": sharp}, {"q": wrong})]))
    assert re.findall(r'title="(\w+)">[^<]*</th><td data-sort="[\d.]+" class="main"', certain) == [
        "one"
    ]
    assert "main" not in find_leaderboard(
        render_page([build_two_systems({"q": sharp}, {"q": tied})])
    )
    assert "main" not in find_leaderboard(
        render_page([build_two_systems({"q": sharp}, {"q": sharp})])
    )
    both = build_two_systems({"a": sharp, "b": sharp}, {"a": wrong, "b": wrong})
    fewer = build_two_systems({"a": wrong}, {"a": wrong}).systems[1]
    others = replace(both, systems=[both.systems[0], fewer], comparison=None)
    assert "main" not in find_leaderboard(render_page([others])), (
        "systems with different queries have no best value"
    )


def test_cross_marks_an_oblivious_value_that_differs():
    tied, sharp = {"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 0.5}
    page = find_leaderboard(render_page([build_two_systems({"q": tied}, {"q": sharp})]))
    found = re.findall(r'(<tr data-row=[^\n]*?title="(\w+)"[^\n]*)', page)
    rows = {name: row for row, name in found}
    assert 'class="cross"' in rows["one"] and 'class="cross"' not in rows["two"]
    assert 'class="span"' in rows["one"] and 'class="span"' not in rows["two"]


def parse_copies(page: str) -> dict:
    """Return the copies of the leaderboard by style."""
    found = re.findall(r"data-copies='([^']*)'>(\w+)<", page)
    return {style: json.loads(copies) for copies, style in found}


def test_copies_match_the_tables_of_the_terminal():
    collection = build_two_systems(
        {"q": {"x": 1.0, "y": 1.0}}, {"q": {"x": 1.0, "y": 0.5}}, "MRR", "P@1"
    )
    copies = parse_copies(render_page([collection]))
    fraction, percent = copies["Markdown"]
    assert fraction["head"][0].startswith("| system | MRR expected | MRR worst–best |")
    assert fraction["rows"] == [
        "| two | 1.0000 | 1.0000 | 1.0000 | 1.0000 |",
        "| one | 0.7500 | 0.5000–1.0000 | 0.5000 | 0.0000–1.0000 |",
    ]
    assert percent["rows"][1] == "| one | 75.00 | 50.00–100.00 | 50.00 | 0.00–100.00 |"
    latex = copies["LaTeX"][0]
    assert latex["rows"][1] == r"one & 0.7500 & 0.5000--1.0000 & 0.5000 & 0.0000--1.0000 \\"
    assert latex["head"][0] == r"% \usepackage{booktabs}" and latex["foot"][-1] == r"\end{tabular}"
    (row,) = (line for line in copies["CSV"][0]["rows"] if line.startswith("one"))
    assert row.split(",")[1:5] == ["0.75", "0.5", "1.0", "1.0"]


def test_name_with_newline_stays_in_one_row():
    collection = build_two_systems({"q": {"x": 1.0}}, {"q": {"x": 1.0}})
    first, second = collection.systems
    names = [replace(first, name="a\nb"), replace(second, name="c|d")]
    page = render_page([replace(collection, systems=names, comparison=None)])
    copies = parse_copies(page)
    for style in copies.values():
        assert all(len(parts["rows"]) == 2 for parts in style)
    assert copies["Markdown"][0]["rows"][1].startswith("| c\\|d |")


def test_notes_that_differ_in_numbers_are_merged(tmp_path):
    collection = build_two_systems({"q": {"x": 1.0}}, {"q": {"x": 1.0}})
    remarked = [
        replace(system, result=replace(system.result, remarks=(note("{n:list} cut", n=n),)))
        for n, system in enumerate(collection.systems, 2)
    ]
    page = render_page([replace(collection, systems=remarked)])
    assert "one, two: 2–3 lists cut" in page
    assert page.count("lists cut") == 1
    assert page.count("no ranked lists: ") == 1


# The sources of results.


def store_results(tmp_path: Path, *options: str) -> tuple[Path, list[str]]:
    qrels, *runs = write_inputs(tmp_path)
    out = tmp_path / "results.json"
    args = ("eval", qrels, *runs, "-m", "nDCG@10", *options, "--format", "json", "-o", out)
    run_deadheat(*args)
    return out, runs


def test_ranked_lists_come_from_the_given_runs(tmp_path):
    out, runs = store_results(tmp_path, "--per-query")
    qrels, page = str(tmp_path / "qrels.json"), tmp_path / "page.html"
    (collection,) = pages.group_results(read_results(out), qrels, runs[::-1])
    assert [system.name for system in collection.systems] == ["tied", "sharp"]
    assert [len(set(system.run.scores.tolist())) < 100 for system in collection.systems] == [
        True,
        False,
    ], "each system has its own run"
    renamed = Path(runs[0]).rename(tmp_path / "renamed")
    run_deadheat("report", out, "--qrels", qrels, "--runs", renamed, "--runs", runs[1], "-o", page)
    systems = parse_data(page.read_text())["collections"][0]["systems"]
    assert all(system["lists"] for system in systems)
    run = json.loads(renamed.read_text())
    renamed.write_text(json.dumps({q: dict.fromkeys(docs, 1.0) for q, docs in run.items()}))
    tied, sharp = pages.group_results(read_results(out), qrels, [str(renamed)])[0].systems
    assert tied.run is None and "none of the given runs" in tied.no_run
    assert sharp.run is None
    run_deadheat("report", out, "-o", page, "--force")
    assert "--runs and --qrels" in page.read_text()
    for args, reason in (
        (("--runs", runs[1]), "--runs needs"),
        (("--runs", runs[0], "--qrels", qrels), "no such file"),
        (("--runs", runs[1], "--qrels", runs[0]), "no such file"),
        (("--runs", "-", "--qrels", "-"), "only once"),
    ):
        assert reason in run_deadheat("report", out, *args, "-o", tmp_path / "no.html", status=2)
    assert not (tmp_path / "no.html").exists()


def test_untrusted_result_does_not_open_files(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("root:x:0:0\n")
    out, _ = store_results(tmp_path, "--per-query")
    results = json.loads(out.read_text())
    for result in results:
        result["provenance"].update(run=str(secret), qrels=str(secret))
    out.write_text(json.dumps(results))
    opened: list[str] = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    page = tmp_path / "page.html"
    run_deadheat("report", out, "-o", page)
    assert str(out) in opened and str(secret) not in opened
    assert "root:x" not in page.read_text()


def test_results_with_different_judgements_are_separate_collections(tmp_path):
    one = evaluate_quietly({"a": {"x": 1}}, {"a": {"x": 1.0}}, ["MRR"])
    two = evaluate_quietly({"b": {"x": 1}}, {"b": {"x": 1.0}}, ["MRR"])
    one, two = (
        replace(result, provenance=Provenance("run", qrels))
        for result, qrels in ((one, "one.txt"), (two, "two.txt"))
    )
    path = tmp_path / "both.json"
    path.write_text(json.dumps([one.to_dict(), two.to_dict()]))
    page = tmp_path / "page.html"
    run_deadheat("report", path, "-o", page)
    assert "inside a collection only" in page.read_text()


def test_differences_in_queries_and_measures_are_reported(tmp_path):
    qrels = {"a": {"x": 1}, "b": {"x": 1}}
    run = {q: {"x": 1.0, "y": 0.5} for q in qrels}
    both = evaluate_quietly(qrels, run, ["MRR", "MAP"])
    half = evaluate_quietly({"a": {"x": 1}}, {"a": run["a"]}, ["MRR"])
    other = evaluate_quietly(qrels, run, ["Recall@5"])
    first, second = render_comparison(both, half), render_comparison(both, other)
    assert "on the 1 of 2 queries" in first and 'aria-label="Verdicts in MRR"' in first
    assert "Not compared in MAP" in first
    assert "no measure in common" in second and "Verdicts in" not in second
    assert "two systems or more, not 1" in render_comparison(both)
    shown = parse_data(first)["collections"][0]["systems"][1]["values"]["MRR"]
    assert shown == [[1, None]] * 4


def test_every_pair_has_a_verdict(tmp_path):
    qrels, *runs = write_inputs(tmp_path)
    results = [evaluate_quietly(dh.read_qrels(qrels), dh.read_run(run), ["MRR"]) for run in runs]
    systems = [System(result, str(i)) for i, result in enumerate(results)]
    collection = Collection("c", systems).compare(list(results[0].views))
    page, pairs = render_page([collection]), collection.comparison.pairs
    verdicts = re.search(r'aria-label="Verdicts in MRR".*?</table>', page, re.DOTALL)[0]
    for row in pairs.to_dicts():
        assert f">{row['verdict']}</th>" in verdicts
        assert f'data-sort="{row["difference"]}"' in verdicts
    assert verdicts.count("<tr data-row=") == len(pairs)


def test_ranked_lists_have_grades_and_scores_by_tie_group():
    scores = {f"d{i:03}": 0.0 for i in range(300)} | {"best": 0.1}
    result = evaluate_quietly({"q": {"d001": 1}}, {"q": scores}, ["MRR"])
    system = System(result, "s", dh.read_run({"q": scores}))
    judged = dh.read_qrels({"q": {"d001": 2, "d002": 0, "lost": 1}})
    data = parse_data(render_page([Collection("c", [system], judged)], top=5))["collections"][0]
    ((retrieved, rest, rest_relevant, missing, groups),) = data["systems"][0]["lists"]
    assert (retrieved, rest, rest_relevant, missing) == (301, 296, 0, 1)
    assert groups[0] == [0, 1, [[0, None, 0.1]]]
    above, size, documents = groups[1]
    assert (above, size) == (1, 300)
    named = {data["documents"][number]: (grade, score) for number, grade, score in documents}
    expected = {"d000": None, "d001": 2, "d002": 0, "d003": None}
    assert named == {name: (grade, 0) for name, grade in expected.items()}


def test_report_of_an_experiment_folder(tmp_path):
    pytest.importorskip("sentence_transformers")
    tiny = pytest.importorskip("tiny_models")
    from dataset_folders import write_flat

    from deadheat.lab.experiment import Study, error_budget, load_results, run_study
    from deadheat.tables.cells import headings

    queries = [{"_id": f"q{i}", "text": text} for i, text in enumerate(tiny.QUERIES)]
    corpus = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(tiny.DOCUMENTS)]
    lists = [{"query-id": q["_id"], "corpus-ids": [d["_id"] for d in corpus]} for q in queries]
    judged = [{"query-id": q["_id"], "corpus-id": "d1", "score": 1} for q in queries]
    data = write_flat(
        tmp_path / "data", corpus=corpus, queries=queries, qrels=judged, top_ranked=lists
    )
    model = tiny.xlm_roberta(tmp_path / "model")
    measures = ["nDCG@3", "MRR"]
    study = Study.of(
        models=[str(model)],
        datasets=[str(data)],
        measures=measures,
        model_dtypes=["bf16"],
        batch_size=[2, 8],
    )
    assert not run_study(study, tmp_path / "dir")
    out = tmp_path / "page.html"
    run_deadheat("report", tmp_path / "dir", "-o", out)
    page = out.read_text()
    for text in ("model dtype", "regime", "content_hash", "bf16", "hps", "native"):
        assert text in page
    collection = parse_data(page)["collections"][0]
    assert all(system["lists"] for system in collection["systems"])
    assert collection["queryTexts"] == list(tiny.QUERIES)
    assert set(collection["documentTexts"]) == set(tiny.DOCUMENTS)
    budget = page[page.index('<section id="budget"') : page.index('<section id="queries"')]
    table = error_budget(load_results(tmp_path / "dir"))
    dataset, *others = headings(table, " ")
    assert f">{dataset}</th>" not in budget, "the collection is the dataset"
    assert all(f">{heading}</th>" in budget for heading in others)
    for row in table.frame.iter_rows(named=True):
        assert f'data-percent="{100 * row["tie_range"]:.2f}">{row["tie_range"]:.4f}<' in budget
    assert "compute: batch_size 2 / batch_size 8" in budget
    alone = Collection("c", [System(load_results(tmp_path / "dir")[0].result, "s")])
    assert 'id="budget"' not in render_page([alone])


def test_dataset_texts_are_shown_and_truncated(tmp_path):
    from dataset_folders import write_flat

    corpus = [
        {"_id": "d1", "title": "", "text": "word " * 100},
        {"_id": "d2", "title": "T", "text": "x"},
    ]
    queries = [{"_id": "q1", "text": "what?"}]
    judged = [{"query-id": "q1", "corpus-id": "d1", "score": 1}]
    data = write_flat(tmp_path / "data", corpus=corpus, queries=queries, qrels=judged)
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.5 t\n")
    out = tmp_path / "page.html"
    args = ("--qrels", tmp_path / "qrels.txt", tmp_path / "a.run", "--dataset", data, "-o", out)
    run_deadheat("report", *args)
    collection = parse_data(out.read_text())["collections"][0]
    assert collection["queryTexts"] == ["what?"]
    first, second = collection["documentTexts"]
    assert len(first) < 250 and first.endswith(" …") and second == "T x"


def test_progress_is_reported_on_a_terminal(tmp_path):
    pytest.importorskip("pty", reason="pseudo-terminals are those of Unix")
    from test_terminal import run_in_terminal

    qrels, *runs = (Path(path).name for path in write_inputs(tmp_path))
    screen = run_in_terminal(80, tmp_path, f"report --qrels {qrels} {' '.join(runs)} -o page.html")
    assert "ranked lists" in screen and "2/2" in screen  # earlier steps may have been overwritten
    assert screen.splitlines()[-1] == "Open page.html in a browser."
    steps: list[tuple[str, int, int]] = []
    system = System(evaluate_quietly({"q": {"x": 1}}, {"q": {"x": 1.0}}, ["MRR"]), "s")
    both = Collection("c", [system, replace(system, name="t")])
    page = render_page([both], progress=lambda *s: steps.append(s))
    assert steps == [("ranked lists", 1, 2), ("ranked lists", 2, 2)]
    assert 'id="data"' in page


@pytest.mark.slow
def test_page_of_fifty_real_systems_is_small(tmp_path, shared):
    runs = sorted((shared / "trec-covid/round4/runs").iterdir())[:50]
    out = tmp_path / "page.html"
    args = ("--qrels", shared / "trec-covid/round4.qrels.gz", *runs)
    run_deadheat("report", *args, "--resamples", 999, "-o", out)
    assert out.stat().st_size < 5e6
    (collection,) = parse_data(out.read_text(encoding="utf-8"))["collections"]
    assert len(collection["systems"]) == 50
    assert all(system["lists"] for system in collection["systems"])


# Rejected input.


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no experiment.json"),
        ("[]", "source: the file has no results"),
        ("{}", "not a stored deadheat result"),
        ("[1]", "not a stored deadheat result"),
        ("q Q0 d 1 0.5 t", "for a run file, add --qrels"),
        ('{"a": {"b": 1}}', "not a stored deadheat result"),
        ("[" * 100_000, "not a stored result"),
    ],
)
def test_invalid_result_is_rejected(tmp_path, content, reason):
    source = tmp_path / "source"
    source.mkdir() if content is None else source.write_text(content)
    out = tmp_path / "page.html"
    output = run_deadheat("report", source, "-o", out, status=2)
    assert output.startswith("error: ") and output.count("\n") == 1
    assert reason in output and str(source) in output
    assert not out.exists()


def test_folder_without_an_experiment_is_rejected(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    output = run_deadheat("report", tmp_path, "-o", tmp_path / "page.html", status=2)
    assert "not the folder of an experiment" in output
    output = run_deadheat("report", tmp_path / "nothing", "-o", tmp_path / "page.html", status=2)
    assert "No such file" in output


def test_result_without_queries_suggests_per_query(tmp_path):
    out, _ = store_results(tmp_path)
    assert "--per-query" in run_deadheat("report", out, "-o", tmp_path / "p.html", status=2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda result: result["per_query"]["MRR"].update(expected=[1.0]),
        lambda result: result["per_query"]["MRR"].update(expected=["x", "y"]),
        lambda result: result["per_query"]["MRR"].update(best=[float("nan"), 1.0]),
        lambda result: result["per_query"].update(query_id=["a", "a"]),
        lambda result: result["per_query"].update(query_id=[1, "a"]),
        lambda result: result["per_query"].update(query_id=[1.5, 2.5]),
        lambda result: result["per_query"].update(query_id=[True, False]),
        lambda result: result["per_query"].update(query_id=[1, 1]),
        lambda result: result["per_query"].update(Nonsense={}),
        lambda result: result["per_query"].pop("MRR"),
        lambda result: result.update(provenance=[]),
        lambda result: result.update(remarks=None),
        lambda result: result.update(remarks=[1]),
    ],
)
def test_damaged_result_is_rejected(tmp_path, damage):
    qrels = {"a": {"x": 1}, "b": {"x": 1}}
    data = evaluate_quietly(qrels, {q: {"x": 1.0} for q in qrels}, ["MRR"]).to_dict()
    damage(data)
    path = tmp_path / "r.json"
    path.write_text(json.dumps(data))
    output = run_deadheat("report", path, "-o", tmp_path / "p.html", status=2)
    assert output.startswith(f"error: {path}: ")


def test_evaluation_options_need_runs(tmp_path):
    out, _ = store_results(tmp_path, "--per-query")
    page = tmp_path / "p.html"
    assert "--qrels" in run_deadheat("report", out, "--tie-break", "id_asc", "-o", page, status=2)
    assert "was not evaluated" in run_deadheat("report", out, "-m", "MAP", "-o", page, status=2)


def test_existing_file_is_replaced_only_with_force(tmp_path):
    out, _ = store_results(tmp_path, "--per-query")
    page = tmp_path / "page.html"
    page.write_text("mine")
    assert "--force" in run_deadheat("report", out, "-o", page, status=2)
    assert page.read_text() == "mine"
    run_deadheat("report", out, "-o", page, "--force")
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_page_is_written_atomically(tmp_path, monkeypatch):
    out, _ = store_results(tmp_path, "--per-query")

    def raise_disk_full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli_output.os, "fsync", raise_disk_full)
    output = run_deadheat("report", out, "-o", tmp_path / "new-page.html", status=2)
    assert "No space left" in output
    assert not list(tmp_path.glob("*page*"))


def test_missing_package_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = evaluate_quietly({"q": {"x": 1}}, {"q": {"x": 1.0}}, ["MRR"])
    with pytest.raises(MissingPackageError, match=r"'jinja2': .*pip install .*\[report\]'"):
        render_page([Collection("c", [System(result, "s")])])


def test_demo_writes_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_deadheat("demo").splitlines()[-1].endswith(" deadheat-demo.html")
    assert run_deadheat("demo", "--report", "deadheat-demo.html")  # the default page is replaced
    Path("mine.html").write_text("mine")
    assert "exists already" in run_deadheat("demo", "--report", "mine.html", status=2)
    assert Path("mine.html").read_text() == "mine"
    run_deadheat("demo", "--report", "mine.html", "--force")
    assert "deadheat" in Path("mine.html").read_text(encoding="utf-8")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "[report]'" in run_deadheat("demo").splitlines()[-1]
