"""The report page: what it holds, what it refuses, and how it behaves in a real browser.

The browser tests leave screenshots in the folder that DEADHEAT_SCREENSHOTS names.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import deadheat as dh
from deadheat.cli import common as cli_common
from deadheat.cli import main
from deadheat.cli.pages import GivenRuns, result_collections
from deadheat.errors import InputError, MissingPackageError
from deadheat.evaluation import read_results
from deadheat.provenance import Provenance
from deadheat.remarks import warning
from deadheat.report.page import Collection, System, render_page, with_comparison

pytest.importorskip("plotly", reason="the page needs plotly: pip install 'deadheat[report]'")
pytest.importorskip("jinja2", reason="the page needs jinja2: pip install 'deadheat[report]'")

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "<!--<script>",
    "{{ 7 * 7 }} %{x} &lt;b&gt; \u2028 \u2029",
    "<a href='javascript:alert(4)'>x</a>",
)


def write_inputs(folder: Path, queries: int = 60, *, names: tuple[str, ...] = ()) -> list[str]:
    """Judgements and two runs: one with many ties, one without; JSON, so that ids are free."""
    random = np.random.default_rng(0)
    ids = [*names, *(f"q{i}" for i in range(queries - len(names)))]
    docs = [*names, *(f"d{i}" for i in range(30 - len(names)))]
    qrels = {q: {d: int(random.integers(1, 3)) for d in random.choice(docs, 3)} for q in ids}
    runs = {"tied": {}, "sharp": {}}
    for q in ids:
        scores = random.normal(size=len(docs))
        runs["sharp"][q] = dict(zip(docs, scores.tolist(), strict=True))
        runs["tied"][q] = dict(zip(docs, np.round(scores).tolist(), strict=True))
    paths = [folder / "qrels.json", *(folder / f"{name}.json" for name in runs)]
    for path, data in zip(paths, (qrels, *runs.values()), strict=True):
        path.write_text(json.dumps(data), encoding="utf-8")
    return [str(path) for path in paths]


def deadheat(*words: object, status: int = 0) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == status, done.output
    return done.output


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1])


def without_plotly(page: str) -> str:
    """The page without the charting library."""
    scripts = re.findall(r"<script>.*?</script>", page, re.DOTALL)
    return page.replace(max(scripts, key=len), "")


def evaluated(qrels: dict, run: dict, measures: list[str], **options: object) -> dh.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dh.DeadheatWarning)
        return dh.evaluate(qrels, run, measures, **options)


def compared_page(*results: dh.Result) -> str:
    """The page of results under numbers, compared in their first measures."""
    systems = [System(result, {"system": str(i)}) for i, result in enumerate(results)]
    measures = [measure for result in results for measure in result.views]
    return render_page([with_comparison(Collection("c", systems), measures)])


# What the page holds.


def test_one_file_that_asks_for_nothing_else(tmp_path):
    qrels, *runs = write_inputs(tmp_path)
    out = tmp_path / "report.html"
    said = deadheat("report", "--qrels", qrels, *runs, "-m", "nDCG@10", "-o", out)
    assert "report.html" in said and "MB" in said
    page = out.read_text(encoding="utf-8")
    own = without_plotly(page)
    assert not re.search(r"<(link|img|iframe|object)\b|@import|url\(|(src|href)=[\"'][^#]", own)
    assert "default-src 'none'" in own
    result = evaluated(
        json.loads(Path(qrels).read_text()), json.loads(Path(runs[0]).read_text()), ["nDCG@10"]
    )["nDCG@10"]
    for view in ("expected", "worst", "best", "range", "oblivious"):
        assert f"{getattr(result, view):.4f}" in own
    for text in ("tie_break", "qrels.json", "tied.json", "numpy", dh.__version__):
        assert text in own
    data = data_of(page)["collections"][0]
    assert [system["name"] for system in data["systems"]] == ["tied", "sharp"]
    assert [member["k"] for member in data["families"]["nDCG"]] == [1, 2, 3, 5, 10, 20, 50, 100]
    assert data["shown"] == ["nDCG@10"]


def test_values_of_queries_are_those_of_the_result():
    qrels = {"a": {"x": 1}, "b": {"y": 1}}
    run = {"a": {"x": 0.5, "y": 0.5}, "b": {"x": 0.5, "y": 0.25}}
    result = evaluated(qrels, run, ["MRR"])
    data = data_of(render_page([Collection("c", [System(result, {"system": "s"})])]))
    kind, packed = data["collections"][0]["systems"][0]["values"]["MRR"]
    values = np.frombuffer(base64.b64decode(packed), "<f4").reshape(4, 2)
    assert kind == "f4"
    assert values.tolist() == [[0.75, 0.5], [0.5, 0.5], [1, 0.5], [1, 0.5]]


def test_hostile_names_are_text_wherever_they_stand(tmp_path):
    qrels, *runs = write_inputs(tmp_path, names=HOSTILE)
    result = evaluated(dh.read_qrels(qrels), dh.read_run(runs[0]), ["nDCG@10"])
    origin = Provenance(HOSTILE[0], HOSTILE[1], versions={name: name for name in HOSTILE})
    result = replace(result, provenance=origin, remarks=tuple(map(warning, HOSTILE)))
    system = System(result, {"system": HOSTILE[0]}, dh.read_run(runs[0]), HOSTILE[1])
    page = render_page([Collection(HOSTILE[1], [system], dh.read_qrels(qrels))], title=HOSTILE[2])
    own = without_plotly(page)
    assert own.count("<script") == own.count("</script") == 2
    assert not re.search(r"<img|<a href='|<!--", own)
    data = data_of(page)["collections"][0]
    assert set(HOSTILE) <= set(data["queries"]) and set(HOSTILE) & set(data["documents"])


def test_half_a_character_does_not_stop_the_page():
    result = evaluated({"q": {"x": 1}}, {"q": {"x": 1.0}}, ["MRR"])
    result = replace(result, query_ids=["\ud800"])  # as JSON can hold it
    render_page([Collection("c", [System(result, {"system": "s"})])]).encode()


def test_of_many_cutoffs_one_is_shown_query_by_query():
    names = [f"{name}@{k}" for name in ("nDCG", "MRR") for k in (1, 5, 10, 20, 50)]
    result = evaluated({"q": {"x": 1}}, {"q": {"x": 1.0}}, [*names, "Recall@5", "Recall@7", "MAP"])
    data = data_of(render_page([Collection("c", [System(result, {"system": "s"})])]))
    collection = data["collections"][0]
    assert collection["shown"] == ["nDCG@10", "MRR@10", "Recall@7", "MAP"]
    assert len(collection["families"]["nDCG"]) == 5
    assert collection["families"]["MAP"] == [{"name": "MAP", "k": None}]


def test_systems_are_named_by_what_tells_them_apart():
    result = evaluated({"q": {"x": 1}}, {"q": {"x": 1.0}}, ["MRR"])
    labels = [{"model": "m", "regime": regime} for regime in ("native", "hps", "hps")]
    collection = Collection("c", [System(result, each) for each in labels])
    assert collection.names == ["native", "hps", "hps (2)"]
    assert Collection("c", [System(result, labels[0])]).names == ["m · native"]


# Where results come from.


def stored(tmp_path: Path, *options: str) -> tuple[Path, list[str]]:
    qrels, *runs = write_inputs(tmp_path)
    out = tmp_path / "results.json"
    words = ("eval", qrels, *runs, "-m", "nDCG@10", *options, "--format", "json", "-o", out)
    deadheat(*words)
    return out, runs


def test_lists_are_shown_from_the_runs_that_are_given(tmp_path):
    out, runs = stored(tmp_path, "--per-query")
    qrels, page = str(tmp_path / "qrels.json"), tmp_path / "page.html"
    (collection,) = result_collections(read_results(out), GivenRuns(qrels, runs[::-1]))
    assert [system.labels["system"] for system in collection.systems] == ["tied", "sharp"]
    assert [len(set(system.run.scores.tolist())) < 100 for system in collection.systems] == [
        True,
        False,
    ], "each has its own"
    renamed = Path(runs[0]).rename(tmp_path / "renamed")
    deadheat("report", out, "--qrels", qrels, "--runs", renamed, "--runs", runs[1], "-o", page)
    systems = data_of(page.read_text())["collections"][0]["systems"]
    assert all(system["lists"] for system in systems)
    run = json.loads(renamed.read_text())
    renamed.write_text(json.dumps({q: dict.fromkeys(docs, 1.0) for q, docs in run.items()}))
    tied, sharp = result_collections(read_results(out), GivenRuns(qrels, [str(renamed)]))[0].systems
    assert tied.run is None and "none of the runs given gives the values" in tied.no_run
    assert sharp.run is None
    deadheat("report", out, "-o", page, "--force")
    assert "--runs and --qrels" in without_plotly(page.read_text())
    for words, reason in (
        (("--runs", runs[1]), "give --qrels"),
        (("--runs", runs[0], "--qrels", qrels), "no such file"),
        (("--runs", runs[1], "--qrels", runs[0]), "no such file"),
        (("--runs", "-", "--qrels", "-"), "only once"),
    ):
        assert reason in deadheat("report", out, *words, "-o", tmp_path / "no.html", status=2)
    assert not (tmp_path / "no.html").exists()


def test_a_strangers_result_makes_no_file_be_read(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("root:x:0:0\n")
    out, _ = stored(tmp_path, "--per-query")
    results = json.loads(out.read_text())
    for result in results:
        result["provenance"].update(run=str(secret), qrels=str(secret))
    out.write_text(json.dumps(results))
    opened: list[str] = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    page = tmp_path / "page.html"
    deadheat("report", out, "-o", page)
    assert str(out) in opened and str(secret) not in opened
    assert "root:x" not in page.read_text()


def test_results_of_other_judgements_are_other_collections(tmp_path):
    one = evaluated({"a": {"x": 1}}, {"a": {"x": 1.0}}, ["MRR"])
    two = evaluated({"b": {"x": 1}}, {"b": {"x": 1.0}}, ["MRR"])
    one, two = (
        replace(result, provenance=Provenance("run", qrels))
        for result, qrels in ((one, "one.txt"), (two, "two.txt"))
    )
    path = tmp_path / "both.json"
    path.write_text(json.dumps([one.to_dict(), two.to_dict()]))
    page = tmp_path / "page.html"
    deadheat("report", path, "-o", page)
    assert "Systems are compared inside a collection only" in page.read_text()


def test_other_queries_and_measures_are_said(tmp_path):
    qrels = {"a": {"x": 1}, "b": {"x": 1}}
    run = {q: {"x": 1.0, "y": 0.5} for q in qrels}
    both = evaluated(qrels, run, ["MRR", "MAP"])
    half = evaluated({"a": {"x": 1}}, {"a": run["a"]}, ["MRR"])
    other = evaluated(qrels, run, ["Recall@5"])
    pages = [data_of(compared_page(*results)) for results in ((both, half), (both, other), (both,))]
    first, second, alone = (page["collections"][0]["comparison"] for page in pages)
    assert any("on the 1 of 2 queries" in text for text in first["warnings"])
    assert {pair[2] for pair in first["pairs"]} == {"MRR"}
    assert second["pairs"] == [] and "no measure in common" in second["warnings"][0]
    assert "one system" in alone["warnings"][0]
    shown = pages[0]["collections"][0]["systems"][1]["values"]["MRR"][1]
    assert np.isnan(np.frombuffer(base64.b64decode(shown), "<f4")).sum() == 4


def test_a_pair_is_told_from_both_sides(tmp_path):
    qrels, *runs = write_inputs(tmp_path)
    results = [evaluated(dh.read_qrels(qrels), dh.read_run(run), ["MRR"]) for run in runs]
    found = data_of(compared_page(*results))["collections"][0]["comparison"]
    one, two = (dict(zip(found["columns"], pair, strict=True)) for pair in found["pairs"])
    assert (one["a"], one["b"]) == (two["b"], two["a"]) == (0, 1)
    assert one["difference"] == -two["difference"]
    assert (one["lowest"], one["a_wins"]) == (-two["highest"], two["b_wins"])
    assert one["interval_low"] == -two["interval_high"]


def test_the_folder_of_an_experiment(tmp_path):
    pytest.importorskip("sentence_transformers")
    tiny = pytest.importorskip("tiny_models")
    from dataset_folders import write_flat

    from deadheat.experiment import Study, run_study

    queries = [{"_id": f"q{i}", "text": text} for i, text in enumerate(tiny.QUERIES)]
    corpus = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(tiny.DOCUMENTS)]
    lists = [{"query-id": q["_id"], "corpus-ids": [d["_id"] for d in corpus]} for q in queries]
    judged = [{"query-id": q["_id"], "corpus-id": "d1", "score": 1} for q in queries]
    data = write_flat(
        tmp_path / "data", corpus=corpus, queries=queries, qrels=judged, top_ranked=lists
    )
    model = tiny.xlm_roberta(tmp_path / "model")
    study = Study.of(models=[str(model)], datasets=[str(data)], measures=["nDCG@3", "MRR"])
    assert not run_study(study, tmp_path / "dir")
    out = tmp_path / "page.html"
    deadheat("report", tmp_path / "dir", "-o", out)
    page = without_plotly(out.read_text())
    for text in ("model dtype", "regime", "content_hash", "bf16", "hps", "native"):
        assert text in page
    collection = data_of(page)["collections"][0]
    assert all(system["lists"] for system in collection["systems"])
    assert collection["queryTexts"] == list(tiny.QUERIES)
    assert set(collection["documentTexts"]) == set(tiny.DOCUMENTS)


def test_texts_of_a_dataset_are_shown_and_cut(tmp_path):
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
    words = ("--qrels", tmp_path / "qrels.txt", tmp_path / "a.run", "--dataset", data, "-o", out)
    deadheat("report", *words)
    collection = data_of(out.read_text())["collections"][0]
    assert collection["queryTexts"] == ["what?"]
    first, second = collection["documentTexts"]
    assert len(first) < 250 and first.endswith(" …") and second == "T x"


# What is refused.


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no experiment.json"),
        ("[]", "there is no result"),
        ("{}", "not a stored deadheat result"),
        ("[1]", "not a stored deadheat result"),
        ("q Q0 d 1 0.5 t", "give the judgements with --qrels"),
        ('{"a": {"b": 1}}', "not a stored deadheat result"),
        ("[" * 100_000, "not a stored result"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path, content, reason):
    source = tmp_path / "source"
    source.mkdir() if content is None else source.write_text(content)
    out = tmp_path / "page.html"
    said = deadheat("report", source, "-o", out, status=2)
    assert said.startswith("error: ") and said.count("\n") == 1
    assert reason in said and str(source) in said
    assert not out.exists()


def test_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    said = deadheat("report", tmp_path, "-o", tmp_path / "page.html", status=2)
    assert "not the folder of an experiment" in said
    said = deadheat("report", tmp_path / "nothing", "-o", tmp_path / "page.html", status=2)
    assert "No such file" in said


def test_a_result_without_its_queries_names_the_way_out(tmp_path):
    out, _ = stored(tmp_path)
    assert "--per-query" in deadheat("report", out, "-o", tmp_path / "p.html", status=2)


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
def test_a_damaged_result_is_refused(tmp_path, damage):
    qrels = {"a": {"x": 1}, "b": {"x": 1}}
    data = evaluated(qrels, {q: {"x": 1.0} for q in qrels}, ["MRR"]).to_dict()
    damage(data)
    path = tmp_path / "r.json"
    path.write_text(json.dumps(data))
    said = deadheat("report", path, "-o", tmp_path / "p.html", status=2)
    assert said.startswith(f"error: {path}: ")


def test_options_that_evaluate_need_runs(tmp_path):
    out, _ = stored(tmp_path, "--per-query")
    page = tmp_path / "p.html"
    assert "--qrels" in deadheat("report", out, "--tie-break", "id_asc", "-o", page, status=2)
    assert "was not evaluated" in deadheat("report", out, "-m", "MAP", "-o", page, status=2)


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    out, _ = stored(tmp_path, "--per-query")
    page = tmp_path / "page.html"
    page.write_text("mine")
    assert "--force" in deadheat("report", out, "-o", page, status=2)
    assert page.read_text() == "mine"
    deadheat("report", out, "-o", page, "--force")
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_a_page_is_whole_or_not_there(tmp_path, monkeypatch):
    out, _ = stored(tmp_path, "--per-query")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli_common.os, "fsync", full)
    said = deadheat("report", out, "-o", tmp_path / "new-page.html", status=2)
    assert "No space left" in said
    assert not list(tmp_path.glob("*page*"))


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_a_missing_package_names_the_extra(monkeypatch, package):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    result = evaluated({"q": {"x": 1}}, {"q": {"x": 1.0}}, ["MRR"])
    with pytest.raises(MissingPackageError, match=rf"'{package}': .*pip install .*\[report\]'"):
        render_page([Collection("c", [System(result, {"system": "s"})])])


def test_nothing_to_report_is_refused():
    with pytest.raises(InputError, match="no result"):
        render_page([])


def test_the_demo_ends_with_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert deadheat("demo").splitlines()[-1].endswith(" deadheat-demo.html")
    assert deadheat("demo", "--report", "deadheat-demo.html")  # its own page is replaced
    Path("mine.html").write_text("mine")
    assert "exists already" in deadheat("demo", "--report", "mine.html", status=2)
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert "[report]'" in deadheat("demo").splitlines()[-1]


# In a browser.


FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --window-size=1280,900"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield found
    found.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    qrels, *runs = write_inputs(folder, names=HOSTILE)
    evil = folder / "<img src=x onerror=alert(5)>.json"
    evil.write_text(Path(runs[0]).read_text())
    out = folder / "report.html"
    words = ("-m", "nDCG@10", "-m", "MRR@10", "--top", "12", "-o", out)
    deadheat("report", "--qrels", qrels, *runs, evil, *words)
    return out


@pytest.fixture
def opened(browser, page):
    """The page, freshly loaded; nothing may have gone wrong when the test is over."""
    browser.get_log("browser")
    browser.get(page.as_uri())
    yield browser
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0


def all_of(browser, selector: str) -> list:
    return browser.find_elements("css selector", selector)


def text_of(browser, selector: str) -> str:
    return browser.find_element("css selector", selector).text


def column(browser, number: int) -> list[float]:
    cells = all_of(browser, f"#query-table tbody tr > :nth-child({number})")
    return [float(cell.text.replace("−", "-")) for cell in cells]


def button(browser, within: str, text: str):
    return next(each for each in all_of(browser, f"{within} button") if each.text == text)


def wait(browser, condition: str) -> None:
    for _ in range(50):
        if browser.execute_script(f"return {condition}"):
            return
        time.sleep(0.1)
    pytest.fail(f"still not: {condition}")


def focused(browser) -> str:
    return browser.execute_script("return document.activeElement.textContent")


def test_curves_switch_measures_and_systems(opened):
    def traces() -> int:
        return opened.execute_script("return document.getElementById('chart').data.length")

    def axis() -> str:
        return opened.execute_script(
            "return document.getElementById('chart').layout.yaxis.title.text"
        )

    assert (traces(), axis()) == (12, "nDCG@k")
    button(opened, "#curve-controls", "MRR").click()
    assert axis() == "MRR@k"
    assert button(opened, "#curve-controls", "MRR").get_attribute("aria-pressed") == "true"
    all_of(opened, "#legend input")[0].click()
    assert traces() == 8
    names = [label.text for label in all_of(opened, "#legend label")]
    assert names == ["tied", "sharp", "<img src=x onerror=alert(5)>"]
    opened.execute_script("Plotly.Fx.hover('chart', [{curveNumber: 6, pointNumber: 4}])")
    assert "<img src=x onerror=alert(5)>" in text_of(opened, ".hoverlayer")


def test_queries_are_sorted_and_filtered(opened):
    assert "60 of 60 queries, page 1 of 3" in text_of(opened, "#count")
    ranges = column(opened, 3)
    assert ranges == sorted(ranges, reverse=True) and ranges[0] > 0
    for name, place in (("expected", 2), ("range", 3), ("bias", 4)):
        header = opened.find_element("css selector", f"button[data-column={name}]")
        header.click()
        down = header.find_element("xpath", "..").get_attribute("aria-sort") == "descending"
        assert column(opened, place) == sorted(column(opened, place), reverse=down)
    least = all_of(opened, "#query-controls input[type=number]")[0]
    least.send_keys("0.3")
    assert min(column(opened, 3)) >= 0.3
    assert " of 60 queries" in text_of(opened, "#count")
    opened.find_element("css selector", "input[type=search]").send_keys("no such query")
    assert text_of(opened, "#count").startswith("0 of 60")
    assert all_of(opened, "#query-table tbody tr") == []


def test_a_query_shows_its_ties(opened):
    all_of(opened, "#query-table tbody tr")[0].click()
    row = all_of(opened, "#query-table tbody tr[aria-selected=true]")
    assert len(row) == 1
    assert text_of(opened, "#query h3") == row[0].find_element("css selector", "th").text
    assert len(all_of(opened, "#query .document")) == 12
    assert all_of(opened, "#query .tie") and all_of(opened, "#query .relevant")
    assert "in any order" in text_of(opened, "#query .tie .label")
    assert len(all_of(opened, "#query .cutoff")) == 1
    assert re.search(r"more (documents follow|with this score)", text_of(opened, "#query"))
    tied = all_of(opened, "#query .tie")
    scores = {each.text for each in tied[0].find_elements("css selector", ".score")}
    assert len(scores) == 1
    chosen = all_of(opened, "#query-controls select")[0]
    opened.execute_script("arguments[0].value = 1; arguments[0].onchange()", chosen)
    assert text_of(opened, "#query h4") == "Ranked list of sharp"
    assert all_of(opened, "#query .tie") == []


def test_the_keyboard_is_enough(opened):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    body = opened.find_element("css selector", "body")
    body.send_keys(keys.TAB)
    assert focused(opened) == "Skip to the content"
    row = opened.find_element("css selector", "#query-table tbody tr[tabindex='0']")
    row.send_keys(keys.ARROW_DOWN)
    second = opened.switch_to.active_element
    assert second == all_of(opened, "#query-table tbody tr")[1]
    second.send_keys(keys.ENTER)
    assert text_of(opened, "#query h3") == second.find_element("css selector", "th").text
    assert opened.switch_to.active_element == second  # the arrows go on from here
    outline = opened.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    second.send_keys(keys.END)
    assert "page 3 of 3" in text_of(opened, "#count")
    opened.switch_to.active_element.send_keys(keys.HOME)
    opened.switch_to.active_element.send_keys(keys.PAGE_DOWN)
    assert "page 2 of 3" in text_of(opened, "#count")
    opened.switch_to.active_element.send_keys(keys.ARROW_UP)
    assert "page 1 of 3" in text_of(opened, "#count")
    opened.switch_to.active_element.send_keys(keys.TAB)
    assert focused(opened) == "Next"


def test_verdicts_open(opened):
    cells = all_of(opened, "#matrix button")
    assert len(cells) == 6
    cells[1].click()
    said = text_of(opened, "#verdict")
    assert said.startswith("tied against <img src=x onerror=alert(5)>, nDCG@10")
    assert "Expected difference 0.0000" in said and "corrected p = 1.0000" in said


def test_hostile_ids_are_text(opened):
    search = opened.find_element("css selector", "input[type=search]")
    for name in HOSTILE[:4]:
        search.clear()
        search.send_keys(name)
        rows = all_of(opened, "#query-table tbody tr")
        assert len(rows) == 1 and rows[0].find_element("css selector", "th").text == name
        rows[0].click()
        assert text_of(opened, "#query h3") == name
    assert (
        opened.execute_script("return document.querySelectorAll('main script, #query b').length")
        == 0
    )


def test_light_dark_narrow_and_printed(opened, tmp_path):
    folder = Path(os.environ.get("DEADHEAT_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)

    def background() -> str:
        return opened.execute_script("return getComputedStyle(document.body).backgroundColor")

    all_of(opened, "#query-table tbody tr")[0].click()
    seen = []
    for _ in range(2):
        seen.append(background())
        for width in (1280, 400):
            size = {"width": width, "height": 5000, "deviceScaleFactor": 1, "mobile": False}
            opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            assert not opened.execute_script(
                "return document.documentElement.scrollWidth > innerWidth"
            )
            wait(opened, "document.querySelector('#chart svg').clientWidth < innerWidth")
            picture = opened.execute_cdp_cmd("Page.captureScreenshot", {})["data"]
            (folder / f"report-{len(seen)}-{width}.png").write_bytes(base64.b64decode(picture))
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        opened.find_element("id", "theme").click()
    assert seen == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]
    opened.find_element("id", "theme").click()
    pdf = opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    (folder / "report.pdf").write_bytes(base64.b64decode(pdf))
    assert base64.b64decode(pdf).startswith(b"%PDF")
    assert background() == "rgb(20, 23, 27)"  # as it was


def test_systems_may_differ_in_queries_and_measures(browser, tmp_path):
    qrels = {"a": {"x": 1}, "b": {"x": 1}}
    run = {q: {"x": 1.0, "y": 1.0} for q in qrels}
    both = evaluated(qrels, run, ["MRR", "MAP"])
    half = evaluated({"a": {"x": 1}}, {"a": run["a"]}, ["Recall@5"])
    systems = [System(both, {"system": "both"}), System(half, {"system": "half"})]
    path = tmp_path / "page.html"
    other = Collection("other", [System(half, {"system": "alone"})])
    one = with_comparison(Collection("one", systems), [*both.views, *half.views])
    path.write_text(render_page([one, other]))
    browser.get_log("browser")
    browser.get(path.as_uri())
    assert text_of(browser, "#count").startswith("2 of 2")
    assert "Not compared: the systems have no measure" in text_of(browser, "#comparison")
    change = "arguments[0].value = arguments[1]; arguments[0].onchange()"
    system, measure = all_of(browser, "#query-controls select")[:2]
    browser.execute_script(change, system, 1)
    assert text_of(browser, "#count") == "half was not evaluated in MRR"
    browser.execute_script(change, measure, "Recall@5")
    assert text_of(browser, "#count").startswith("1 of 2")
    for family in ("MAP", "Recall"):
        button(browser, "#curve-controls", family).click()
    assert browser.execute_script("return document.getElementById('chart').data.length") == 2
    browser.execute_script(change, browser.find_element("id", "collection"), 1)
    assert text_of(browser, "#count").startswith("1 of 1")
    assert text_of(browser, "#legend label") == "alone"
    all_of(browser, "#query-table tbody tr")[0].click()
    assert "not part of this page" in text_of(browser, "#query")
    assert browser.get_log("browser") == []


def test_thousands_of_queries_stay_fluid(browser, tmp_path):
    random = np.random.default_rng(1)
    relevance = random.random((7000, 20)) < 0.2
    relevance[:, 0] = True
    scores = np.round(random.normal(size=relevance.shape), 1)
    measures = ["nDCG@10", "MRR@10", "MAP", "Recall@5"]
    result = dh.evaluate_arrays(scores, relevance, measures)
    path = tmp_path / "large.html"
    path.write_text(render_page([Collection("large", [System(result, {"system": "s"})])]))
    assert path.stat().st_size < 8e6
    browser.get_log("browser")
    browser.get(path.as_uri())
    timing = "return performance.getEntriesByType('navigation')[0].loadEventEnd"
    assert browser.execute_script(timing) < 20_000
    sort = """
        const begin = performance.now();
        for (const button of document.querySelectorAll('#query-table thead button')) button.click();
        document.body.offsetHeight;
        return performance.now() - begin;
    """
    assert browser.execute_script(sort) < 4_000
    assert len(all_of(browser, "#query-table tbody tr")) == 20
    assert browser.get_log("browser") == []
