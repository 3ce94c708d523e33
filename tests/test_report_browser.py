"""The pages in a real browser.

Screenshots are written to build/screenshots, or to the folder in DEADHEAT_SCREENSHOTS.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from quiet import quiet
from report_pages import HOSTILE, evaluate_quietly, run_deadheat, write_inputs

import deadheat as dh
from deadheat.report.page import Collection, System, render_page
from deadheat.report.page.leaderboard import render_leaderboards

pytest.importorskip("jinja2", reason="the page needs jinja2: pip install '.[report]'")

ROOT = Path(__file__).resolve().parents[1]
SCREENSHOTS = Path(os.environ.get("DEADHEAT_SCREENSHOTS", ROOT / "build" / "screenshots"))
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --window-size=1400,900"
)
HOSTILE_NAME = "<img src=x onerror=alert(5)>"


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


@pytest.fixture
def open_page(browser, tmp_path):
    """Return a function that opens a page; the teardown checks for errors and external requests."""

    def open_url(page: str | Path, link: str = "", width: int = 1400, height: int = 900):
        path = page
        if isinstance(page, str):
            path = tmp_path / "page.html"
            path.write_text(page, encoding="utf-8")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get(path.as_uri() + link)
        return browser

    yield open_url
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """Write a report of three runs with hostile ids; one is a copy with a hostile name."""
    folder = tmp_path_factory.mktemp("page")
    qrels, *runs = write_inputs(folder, names=HOSTILE)
    hostile_run = folder / f"{HOSTILE_NAME}.json"
    hostile_run.write_text(Path(runs[0]).read_text())
    out = folder / "report.html"
    args = ("-m", "nDCG@10", "-m", "MRR@10", "--top", "12", "-o", out)
    run_deadheat("report", "--qrels", qrels, *runs, hostile_run, *args)
    return out


@pytest.fixture
def report(open_page, page):
    return open_page(page)


def find_all(browser, selector: str) -> list:
    return browser.find_elements("css selector", selector)


def find(browser, selector: str):
    return browser.find_element("css selector", selector)


def get_text(browser, selector: str) -> str:
    return find(browser, selector).text


def get_texts(browser, selector: str) -> list[str]:
    return [each.text for each in find_all(browser, selector)]


def get_column(browser, number: int) -> list[float]:
    cells = get_texts(browser, f"#query-table tbody tr > :nth-child({number})")
    return [float(text.replace("−", "-")) for text in cells]


def find_button(browser, within: str, text: str):
    return next(each for each in find_all(browser, f"{within} button") if each.text == text)


def choose(browser, selector: str, value: object) -> None:
    change = "arguments[0].value = arguments[1]; arguments[0].onchange()"
    browser.execute_script(change, find(browser, selector), value)


def get_focused_text(browser) -> str:
    return browser.execute_script("return document.activeElement.textContent")


def set_theme(browser, theme: str) -> None:
    """Set the preferred color scheme of the browser to light or dark."""
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def save_screenshot(browser, name: str) -> None:
    """Write a screenshot to the folder of screenshots."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    data = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(data["data"]))


def build_collection(
    *runs: dict, measures: tuple[str, ...] = ("MRR",), name: str = "c"
) -> Collection:
    """Compare runs named a, b, c … with one relevant document x per query."""
    qrels = {query: {"x": 1} for query in runs[0]}
    results = [evaluate_quietly(qrels, run, list(measures)) for run in runs]
    systems = [
        System(result, "abcdefgh"[i], dh.read_run(run))
        for i, (result, run) in enumerate(zip(results, runs, strict=True))
    ]
    return Collection(name, systems, dh.read_qrels(qrels)).compare(list(results[0].views))


TIED, SHARP, WRONG = {"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 0.5}, {"x": 0.5, "y": 1.0}


def repeat_run(run: dict) -> dict:
    return {f"q{i}": run for i in range(8)}


# The first screen.


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (400, 800)])
def test_first_screen_shows_finding_intervals_and_leaderboard(open_page, page, width, height):
    browser = open_page(page, width=width, height=height)
    assert re.match(r"(Ties|As reported)", get_text(browser, ".finding"))
    for selector in (".finding", ".intervals tbody tr:last-child", ".leading tbody tr"):
        bottom = "return arguments[0].getBoundingClientRect().bottom"
        assert browser.execute_script(bottom, find(browser, selector)) < height, selector
    save_screenshot(browser, f"report-first-{width}")


def test_intervals_are_sorted_and_match_the_leaderboard(report):
    names = get_texts(report, ".intervals:not([hidden]) tbody th")
    values = [
        float(text) for text in get_texts(report, ".intervals:not([hidden]) tbody td:nth-child(3)")
    ]
    assert values == sorted(values, reverse=True)
    assert dict(zip(names, values, strict=True))["tied"] == pytest.approx(
        float(get_text(report, '.leading tr:has([title="tied"]) td').split()[0])
    )
    assert get_texts(report, ".intervals:not([hidden]) tbody td:nth-child(4)") == [
        "1–3",
        "1–3",
        "1–3",
    ]
    ticks = [float(text) for text in get_texts(report, ".intervals:not([hidden]) .axis text")]
    assert len(ticks) > 2 and ticks[0] > 0 and ticks[-1] < 1


def test_axis_of_constant_values_ends_at_one(open_page):
    measures = ("MRR@1", "MRR@10")
    browser = open_page(
        render_page([build_collection(repeat_run(SHARP), repeat_run(SHARP), measures=measures)])
    )
    shown = ".intervals:not([hidden]) tbody td:nth-child(3)"
    assert get_texts(browser, shown) == ["1.0000", "1.0000"]
    for axis in (".intervals:not([hidden]) .axis text", ".chart:not([hidden]) [text-anchor=end]"):
        ticks = [float(text) for text in get_texts(browser, axis)]
        assert min(ticks) >= 0.98 and max(ticks) == 1


def test_cross_marks_only_oblivious_values_that_differ(open_page):
    runs = (repeat_run(TIED), repeat_run(SHARP))
    browser = open_page(render_page([build_collection(*runs, measures=("MRR@2", "MRR@10"))]))
    crosses = {
        row.find_element("css selector", "th").text: len(
            row.find_elements("css selector", ".cross")
        )
        for row in find_all(browser, ".intervals:not([hidden]) tbody tr")
    }
    assert crosses == {"a": 1, "b": 0}
    assert len(find_all(browser, ".chart:not([hidden]) .cross")) == 2  # of a, at two cutoffs


def test_undecided_pairs_of_many_systems_are_omitted(open_page):
    random = np.random.default_rng(3)
    relevance = random.random((20, 8)) < 0.4
    relevance[:, 0] = True
    scores = [random.normal(size=relevance.shape) for _ in range(48)]
    scores += [relevance + 0.0, 1.0 - relevance]  # the best and the worst
    systems = [
        System(dh.evaluate_arrays(relevance, own, ["MAP"]), f"system {i}")
        for i, own in enumerate(scores)
    ]
    collection = Collection("fifty", systems).compare(list(systems[0].result.views))
    browser = open_page(render_page([collection]))
    first = get_texts(browser, ".leading tbody th")
    assert len(first) == 50 and get_texts(browser, ".intervals tbody th") == first
    height = "return document.querySelector('.intervals').clientHeight"
    assert browser.execute_script(height) < 500, "the plot scrolls"
    # Only pairs that are significant or depend on ties are listed.
    contested = ("A is better", "B is better", "undecided: ties", "decision error")
    shown = collection.comparison.pairs.filter(pl.col("verdict").is_in(contested))
    assert 48 <= len(shown) < 50 * 49 // 2
    assert len(find_all(browser, "#comparison tbody tr")) == len(shown)
    left_out = f"Left out: {50 * 49 // 2 - len(shown)} pairs"
    assert left_out in get_text(browser, "#comparison")
    assert "curves" not in get_texts(browser, "nav a")
    save_screenshot(browser, "report-fifty")


# The leaderboard.


def test_leaderboard_sorts_by_every_column(report):
    def names() -> list[str]:
        return get_texts(report, ".leading tbody th")

    def values(place: int) -> list[float]:
        return [float(t) for t in get_texts(report, f".leading tbody td:nth-child({place + 1})")]

    assert values(1) == sorted(values(1), reverse=True)
    for place, heading in ((1, "nDCG@10"), (2, "MRR@10")):
        for _ in range(2):
            find_button(report, ".leading", heading).click()
            head = find(report, f".leading thead th:nth-child({place + 1})")
            down = head.get_attribute("aria-sort") == "descending"
            assert values(place) == sorted(values(place), reverse=down)
    find_button(report, ".leading", "system").click()
    assert names() == sorted(names())
    find(report, ".every summary").click()
    find_button(report, ".every", "range").click()
    ranges = [float(text) for text in get_texts(report, ".every tbody td:nth-child(7)")]
    assert ranges == sorted(ranges, reverse=True) and ranges[0] > 0


def test_percent_switch_changes_every_number(report):
    find(report, "#query-table tbody tr").click()
    places = (
        ".finding",
        ".leading td",
        ".intervals td:nth-child(3)",
        "#query-table td",
        "#query td",
    )
    before = [get_text(report, place) for place in places]
    find(report, "#percent").click()
    assert find(report, "#percent").get_attribute("aria-pressed") == "true"
    after = [get_text(report, place) for place in places]
    for fraction, percent in zip(before[1:], after[1:], strict=True):
        assert float(percent) == pytest.approx(100 * float(fraction), abs=0.006)
    assert re.search(r"\d\d\.\d\d|\d%", after[0])
    ticks = [float(text) for text in get_texts(report, ".intervals:not([hidden]) .axis text")]
    assert min(ticks) > 1
    find(report, "#percent").click()
    assert [get_text(report, place) for place in places] == before


@pytest.mark.parametrize("allowed", [True, False])
def test_copy_keeps_order_and_unit_of_the_table(open_page, page, allowed):
    browser = open_page(page)
    # Headless browsers have no clipboard, so replace it: once with access and once without.
    browser.execute_script(
        """
        const written = arguments[0]
          ? (text) => { window.copied = text; return Promise.resolve(); }
          : () => Promise.reject(new Error("no"));
        Object.defineProperty(navigator, "clipboard", { value: { writeText: written } });
        """,
        allowed,
    )
    find_button(browser, ".leading", "system").click()  # the copy has the same order
    names = get_texts(browser, ".leading tbody th")
    find(browser, "#percent").click()
    for style, first in (
        ("Markdown", "| system | nDCG@10 expected | nDCG@10 worst–best |"),
        ("LaTeX", r"% \usepackage{booktabs}"),
        ("CSV", "system,nDCG@10 expected,nDCG@10 worst,nDCG@10 best"),
    ):
        find_button(browser, ".copies", style).click()
        if allowed:
            text = browser.execute_script("return window.copied")
            assert get_text(browser, ".copied") == f"Copied {style}."
        else:
            text = find(browser, ".copied textarea").get_property("value")
        assert text.startswith(first)
        shown = {"Markdown": r"\<img", "LaTeX": "$<$img", "CSV": "<img"}[style]
        order = [
            text.index(shown if name == HOSTILE_NAME else f"{name} ".strip()) for name in names
        ]
        assert order == sorted(order)
        value = get_text(browser, f".leading tbody tr:nth-child({names.index('tied') + 1}) td")
        assert (value in text) == (style != "CSV")


# Curves.


def test_curves_follow_measure_and_systems(report):
    def shown() -> str:
        return ".chart:not([hidden])"

    def lines() -> int:
        return len([line for line in find_all(report, f"{shown()} .band") if line.is_displayed()])

    assert lines() == 3
    assert "nDCG at cutoff k" in get_texts(report, f"{shown()} text")
    assert re.search(r"tied and .* coincide", get_text(report, f"{shown()} .hint"))
    choose(report, "#measure", "MRR@10")
    assert "MRR at cutoff k" in get_texts(report, f"{shown()} text")
    names = get_texts(report, f"{shown()} .legend label")
    assert sorted(names) == sorted(["tied", "sharp", HOSTILE_NAME])
    find_all(report, f"{shown()} .legend input")[names.index("sharp")].click()
    assert lines() == 2
    find(report, f"{shown()} summary").click()
    assert get_texts(report, f"{shown()} thead th")[1:4] == ["MRR@1", "MRR@2", "MRR@3"]
    assert len(find_all(report, f"{shown()} tbody tr")) == 3


def test_tooltip_of_a_point_has_its_values(report):
    titles = [each.get_attribute("textContent") for each in find_all(report, ".chart title")]
    assert any(re.fullmatch(r"tied, nDCG@10: 0\.\d{4} \(0\.\d{4}–0\.\d{4}\)", t) for t in titles)


def test_single_cutoff_has_no_curve(open_page):
    runs = (repeat_run(TIED), repeat_run(SHARP))
    browser = open_page(render_page([build_collection(*runs, measures=("MRR@1", "MRR@2", "MAP"))]))
    assert find(browser, "#curves").is_displayed()
    choose(browser, "#measure", "MAP")
    assert not find(browser, "#curves").is_displayed()
    browser = open_page(render_page([build_collection(*runs, measures=("MRR@1", "MAP"))]))
    assert find_all(browser, "#curves") == [] and "Curves" not in get_texts(browser, "nav a")


# Verdicts.


def test_verdicts_follow_the_measure(report):
    def rows() -> list[str]:
        return [
            each.text for each in find_all(report, "#comparison tbody tr") if each.is_displayed()
        ]

    assert len(rows()) == 3
    assert any("identical" in row and "tied" in row and HOSTILE_NAME in row for row in rows())
    before = rows()
    choose(report, "#measure", "MRR@10")
    assert len(rows()) == 3 and rows() != before
    assert "identical" in get_text(report, "#comparison > div > div:not([hidden]) dl")


def test_decision_error_is_reported(open_page):
    # In input order a has 1, in expectation 0.75; the value of b lies between.
    nearly = {f"q{i}": WRONG if i == 0 else SHARP for i in range(40)}
    tied = {f"q{i}": TIED for i in range(40)}
    browser = open_page(render_page([build_collection(tied, nearly)]))
    assert get_texts(browser, "#comparison tbody th") == ["a", "b", "decision error"]
    assert "ties in input order, a beats b in MRR" in get_text(browser, ".finding")


# Queries, and links to them.


def test_queries_are_sorted_and_searched(report):
    assert get_text(report, "#count") == "60 of 60 queries"
    ranges = get_column(report, 3)
    assert len(ranges) == 50 and ranges == sorted(ranges, reverse=True) and ranges[0] > 0
    find(report, "#more").click()
    assert len(get_column(report, 3)) == 60 and not find(report, "#more").is_displayed()
    for name, place in (("expected", 2), ("range", 3), ("bias", 4)):
        find(report, f"button[data-column={name}]").click()
        header = find(report, f"th:has(button[data-column={name}])")
        down = header.get_attribute("aria-sort") == "descending"
        assert get_column(report, place) == sorted(get_column(report, place), reverse=down)
    find(report, "input[type=search]").send_keys("no such query")
    assert get_text(report, "#count").startswith("0 of 60")
    assert find_all(report, "#query-table tbody tr") == []


def test_query_shows_its_tie_groups(report):
    choose(report, "#system", "tied")
    find_all(report, "#query-table tbody tr")[0].click()
    row = find_all(report, "#query-table tbody tr.chosen")
    assert len(row) == 1
    assert get_text(report, "#query h3") == row[0].find_element("css selector", "th").text
    assert len(find_all(report, "#query .line")) == 12
    assert find_all(report, "#query .tie") and find_all(report, "#query .relevant")
    assert "in any order" in get_text(report, "#query .tie .label")
    assert len(find_all(report, "#query .cutoff")) == 1
    assert re.search(r"more (documents follow|with the last score)", get_text(report, "#query"))
    tied = find_all(report, "#query .tie")
    scores = {each.text for each in tied[0].find_elements("css selector", ".score")}
    assert len(scores) == 1
    choose(report, "#system", "sharp")
    assert get_text(report, "#query h4") == "Ranked list of sharp"
    assert find_all(report, "#query .tie") == []


def test_ranked_list_shows_grades(open_page):
    qrels = {"q": {"x": 3, "y": 0, "z": -1}}
    run = {"q": {"x": 1.0, "y": 0.8, "z": 0.6, "w": 0.4}}
    system = System(evaluate_quietly(qrels, run, ["MRR"]), "s", dh.read_run(run))
    texts = dict.fromkeys(qrels, "what is tied")
    browser = open_page(render_page([Collection("c", [system], dh.read_qrels(qrels), texts)]))
    find(browser, "#query-table tbody tr").click()
    assert get_text(browser, "#query h3") == f"{next(iter(qrels))} · what is tied"
    assert get_text(browser, ".ranked-head").split() == ["rank", "grade", "document", "score"]
    lines = [each.text.split() for each in find_all(browser, "#query .line")]
    assert lines == [
        ["1", "3", "x", "1"],
        ["2", "0", "y", "0.8"],
        ["3", "−1", "z", "0.6"],
        ["4", "–", "w", "0.4"],
    ]
    labels = [each.get_attribute("aria-label") for each in find_all(browser, ".line .grade")]
    assert labels[0] == "relevant, grade 3" and labels[-1] == "not judged"


def test_link_opens_a_query_and_back_returns(open_page, page):
    browser = open_page(page, "#query=q28&system=sharp&measure=MRR%4010")
    assert get_text(browser, "#query h3") == "q28"
    assert get_text(browser, "#query h4") == "Ranked list of sharp"
    assert find(browser, "#measure").get_property("value") == "MRR@10"
    assert (
        get_text(browser, ".intervals:not([hidden]) thead th:nth-child(2)")
        == "MRR@10: worst to best"
    )
    assert len(find_all(browser, "#query-table tr.chosen")) == 1
    in_sight = "return arguments[0].getBoundingClientRect().top < innerHeight"
    assert browser.execute_script(in_sight, find(browser, "#query h3"))
    find(browser, "#query-table tbody tr:not(.chosen)").click()
    other = get_text(browser, "#query h3")
    assert other != "q28"
    link = browser.current_url
    choose(browser, "#measure", "nDCG@10")
    browser.back()
    browser.back()
    assert get_text(browser, "#query h3") == "q28"
    browser.forward()
    assert get_text(browser, "#query h3") == other
    open_page(page, link[link.index("#") :])
    assert get_text(browser, "#query h3") == other
    # A link to a section keeps the query.
    browser.execute_script("document.querySelector('nav a').click()")
    assert get_text(browser, "#query h3") == other


def test_link_with_unknown_query_and_measure_shows_a_message(open_page, page):
    browser = open_page(page, "#query=nobody&system=sharp&measure=MAP")
    message = get_text(browser, "#count")
    assert "query nobody" in message and "measure MAP" in message and "sharp" not in message
    assert get_text(browser, "#query") == ""
    assert find(browser, "#measure").get_property("value") == "nDCG@10"


def test_links_with_hostile_ids(open_page, page):
    browser = open_page(page)
    choose(browser, "#system", HOSTILE_NAME)
    search = find(browser, "input[type=search]")
    for name in HOSTILE[:4]:
        search.clear()
        search.send_keys(name)
        rows = find_all(browser, "#query-table tbody tr")
        assert len(rows) == 1 and rows[0].find_element("css selector", "th").text == name
        rows[0].click()
        link = browser.current_url
        open_page(page, link[link.index("#") :])
        assert get_text(browser, "#query h3") == name
        assert get_text(browser, "#query h4") == f"Ranked list of {HOSTILE_NAME}"
        search = find(browser, "input[type=search]")
    injected = "return document.querySelectorAll('main script, #query b').length"
    assert browser.execute_script(injected) == 0
    save_screenshot(browser, "report-hostile")


def test_collections_can_be_selected_and_linked(open_page):
    first = build_collection(repeat_run(TIED), repeat_run(SHARP), name="first")
    second = build_collection({"q9": WRONG}, measures=("Recall@5",), name="second")
    page = render_page([first, second])
    browser = open_page(page)
    assert get_text(browser, "#count").startswith("8 of 8")
    choose(browser, "#collection", "second")
    assert get_text(browser, "#count").startswith("1 of 1")
    assert get_texts(browser, ".leading:not([hidden]) tbody th") == ["", "", "a"]
    assert "needs two systems or more" in get_text(browser, "#comparison")
    find(browser, "#query-table tbody tr").click()
    link = browser.current_url
    assert link.endswith("#query=q9&system=a&measure=Recall%405&collection=second")
    browser.back()
    browser.back()
    assert get_text(browser, "#count").startswith("8 of 8")
    open_page(page, link[link.index("#") :])
    assert get_text(browser, "#query h3") == "q9"


def test_systems_may_differ_in_queries_and_measures(open_page):
    qrels = {"a": {"x": 1}, "b": {"x": 1}}
    run = dict.fromkeys(qrels, TIED)
    both = evaluate_quietly(qrels, run, ["MRR", "MAP"])
    half = evaluate_quietly({"a": {"x": 1}}, {"a": run["a"]}, ["Recall@5"])
    systems = [System(both, "both"), System(half, "half")]
    collection = Collection("one", systems).compare([*both.views, *half.views])
    browser = open_page(render_page([collection]))
    assert get_text(browser, "#count").startswith("2 of 2")
    assert "the systems have no measure" in get_text(browser, "#comparison")
    choose(browser, "#system", "half")
    assert get_text(browser, "#count") == "half was not evaluated in MRR"
    choose(browser, "#measure", "Recall@5")
    assert get_text(browser, "#count").startswith("1 of 2")
    assert get_texts(browser, ".intervals:not([hidden]) tbody th") == ["half"]
    find_all(browser, "#query-table tbody tr")[0].click()
    assert "not part of this page" in get_text(browser, "#query")


# Accessibility and layout.


def test_keyboard_navigation(report):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    body = find(report, "body")
    body.send_keys(keys.TAB)
    assert get_focused_text(report) == "Skip to the content"
    second = find_all(report, "#query-table tbody button")[1]
    second.send_keys(keys.ENTER)
    assert get_text(report, "#query h3") == second.text
    assert report.switch_to.active_element == second  # the focus stays on the button
    outline = report.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    heading = find(report, ".leading thead th:nth-child(3) button")
    heading.send_keys(keys.ENTER)
    assert heading.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_names_stay_fixed_while_numbers_scroll_on_a_phone(open_page, page):
    browser = open_page(page, width=400, height=800)
    assert not browser.execute_script("return document.documentElement.scrollWidth > innerWidth")
    find(browser, ".every summary").click()
    for selector in (".leading", ".every table"):
        moved = browser.execute_script(
            """
            const table = document.querySelector(arguments[0]), scroll = table.parentElement;
            const left = (cell) => Math.round(cell.getBoundingClientRect().left);
            const cells = ["tbody th", "tbody td"].map((kind) => table.querySelector(kind));
            const before = cells.map(left);
            scroll.scrollLeft = 30;
            return cells.map((cell, i) => left(cell) - before[i]);
            """,
            selector,
        )
        assert moved == [0, -30], selector


def render_leaderboard_page() -> str:
    random = np.random.default_rng(4)
    qrels = {f"q{i}": {f"d{j}": int(random.integers(0, 3)) for j in range(8)} for i in range(6)}
    runs = {
        name: {q: {d: float(random.integers(0, 4)) for d in docs} for q, docs in qrels.items()}
        for name in ("alpha", "beta", "gamma", HOSTILE_NAME)
    }
    return render_leaderboards(
        [quiet(dh.leaderboard)(qrels, runs, ["nDCG@5", "MAP"], name="board")]
    )


def run_axe(browser) -> list[str]:
    """Return the violations that axe-core reports, each with its rule and examples."""
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    browser.execute_script((files(axe) / "axe.min.js").read_text(encoding="utf-8"))
    return browser.execute_async_script(
        """
        const done = arguments[0];
        const some = (nodes) => nodes.slice(0, 3).map(({ html }) => html.slice(0, 150)).join(" ");
        axe.run(document).then(({ violations }) => done(
          violations.map(({ id, nodes }) => `${id}: ${some(nodes)}`)));
        """
    )


@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (400, "dark")])
@pytest.mark.parametrize("kind", ["report", "leaderboard"])
def test_axe_reports_no_violations(open_page, page, kind, width, theme):
    browser = open_page(page if kind == "report" else render_leaderboard_page(), width=width)
    set_theme(browser, theme)
    browser.execute_script(
        "for (const details of document.querySelectorAll('details')) details.open = true;"
        "document.querySelector('#query-table tbody tr')?.click();"
    )
    assert run_axe(browser) == []
    browser.execute_script("document.querySelector('.finding').style.color = '#777'")
    assert [violation.split(":")[0] for violation in run_axe(browser)] == ["color-contrast"]


def test_light_dark_narrow_and_print_layout(open_page, page):
    def get_background() -> str:
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    for width in (1400, 400):
        browser = open_page(page, width=width, height=5000)
        find_all(browser, "#query-table tbody tr")[0].click()
        backgrounds = []
        for theme in ("light", "dark"):
            set_theme(browser, theme)
            backgrounds.append(get_background())
            assert not browser.execute_script(
                "return document.documentElement.scrollWidth > innerWidth"
            )
            save_screenshot(browser, f"report-{theme}-{width}")
        assert backgrounds == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]
    pdf = base64.b64decode(
        browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    )
    (SCREENSHOTS / "report.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF")


def test_page_with_thousands_of_queries_is_fast(open_page):
    random = np.random.default_rng(1)
    relevance = random.random((7000, 20)) < 0.2
    relevance[:, 0] = True
    scores = np.round(random.normal(size=relevance.shape), 1)
    measures = ["nDCG@10", "MRR@10", "MAP", "Recall@5"]
    result = dh.evaluate_arrays(relevance, scores, measures)
    content = render_page([Collection("large", [System(result, "s")])])
    assert len(content) < 1.5e6
    browser = open_page(content)
    timing = "return performance.getEntriesByType('navigation')[0].loadEventEnd"
    assert browser.execute_script(timing) < 20_000
    sort = """
        const begin = performance.now();
        for (const button of document.querySelectorAll('#query-table thead button')) button.click();
        document.body.offsetHeight;
        return performance.now() - begin;
    """
    assert browser.execute_script(sort) < 4_000
    assert len(find_all(browser, "#query-table tbody tr")) == 50


# The page of a leaderboard.


def test_leaderboard_page_sorts_and_searches(open_page, tmp_path):
    random = np.random.default_rng(5)
    qrels = {f"q{i}": {f"d{j}": int(random.integers(0, 3)) for j in range(8)} for i in range(6)}
    names, teams = ["alpha", "beta", "gamma", "delta"], ["red", "red", "blue", "blue"]
    runs = {
        name: {q: {d: float(random.integers(0, 4)) for d in docs} for q, docs in qrels.items()}
        for name in names
    }
    lines = ["tag,team,ndcg@5,map"]
    for name, team in zip(names, teams, strict=True):
        result = evaluate_quietly(qrels, runs[name], ["nDCG@5", "MAP"])
        lines.append(f"{name},{team}," + ",".join(f"{s.oblivious:.4f}" for s in result.values()))
    (tmp_path / "board.csv").write_text("\n".join(lines))
    published = str(tmp_path / "board.csv")
    board = quiet(dh.leaderboard)(qrels, runs, published=published, group="team")
    browser = open_page(render_leaderboards([board]))

    def shown() -> list[str]:
        found = find_all(browser, ".ranking:not([hidden]) tbody tr:not([hidden]) th:first-child")
        return [each.text for each in found]

    rows = board.ranking()
    assert shown() == rows["run"].to_list()
    by_worst = rows.sort("worst", descending=True, maintain_order=True)["run"].to_list()
    heading = ".ranking:not([hidden])"
    find_button(browser, heading, "worst").click()
    assert shown() == by_worst
    find_button(browser, heading, "worst").click()
    assert shown() == by_worst[::-1]
    find_button(browser, heading, "run").click()
    assert shown() == sorted(names)
    find(browser, ".search").send_keys("ET")
    assert shown() == ["beta"]
    find(browser, ".search").clear()
    browser.execute_script("document.querySelector('.search').oninput()")
    find(browser, ".search").send_keys("red")
    assert shown() == ["alpha", "beta"] and get_text(browser, ".count") == "2 of 4 runs"
    choose(browser, ".measure", 1)
    assert get_text(browser, ".ranking:not([hidden]) h4") == "MAP"
    assert get_texts(browser, ".leading thead th") == ["run", "nDCG@5 ↓", "MAP"] or get_texts(
        browser, ".leading thead th"
    ) == ["run", "nDCG@5", "MAP"]
    before = get_text(browser, ".leading td")
    find(browser, "#percent").click()
    assert float(get_text(browser, ".leading td")) == pytest.approx(100 * float(before), abs=0.006)
    save_screenshot(browser, "leaderboard")
