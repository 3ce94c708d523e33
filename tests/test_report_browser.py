"""The pages in a real browser: every part is clicked and read.

Screenshots are kept in build/screenshots, or in the folder that DEADHEAT_SCREENSHOTS names.
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
from report_pages import HOSTILE, deadheat, evaluated, write_inputs

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
EVIL = "<img src=x onerror=alert(5)>"


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
def show(browser, tmp_path):
    """Open a page at a width; nothing may have gone wrong when the test is over."""

    def opened(page: str | Path, link: str = "", width: int = 1400, height: int = 900):
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

    yield opened
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """Three runs, one under a hostile name and the same as the first; ids are hostile, too."""
    folder = tmp_path_factory.mktemp("page")
    qrels, *runs = write_inputs(folder, names=HOSTILE)
    evil = folder / f"{EVIL}.json"
    evil.write_text(Path(runs[0]).read_text())
    out = folder / "report.html"
    words = ("-m", "nDCG@10", "-m", "MRR@10", "--top", "12", "-o", out)
    deadheat("report", "--qrels", qrels, *runs, evil, *words)
    return out


@pytest.fixture
def opened(show, page):
    return show(page)


def all_of(browser, selector: str) -> list:
    return browser.find_elements("css selector", selector)


def one(browser, selector: str):
    return browser.find_element("css selector", selector)


def text_of(browser, selector: str) -> str:
    return one(browser, selector).text


def texts_of(browser, selector: str) -> list[str]:
    return [each.text for each in all_of(browser, selector)]


def column(browser, number: int) -> list[float]:
    cells = texts_of(browser, f"#query-table tbody tr > :nth-child({number})")
    return [float(text.replace("−", "-")) for text in cells]


def button(browser, within: str, text: str):
    return next(each for each in all_of(browser, f"{within} button") if each.text == text)


def choose(browser, selector: str, value: object) -> None:
    change = "arguments[0].value = arguments[1]; arguments[0].onchange()"
    browser.execute_script(change, one(browser, selector), value)


def focused(browser) -> str:
    return browser.execute_script("return document.activeElement.textContent")


def prefer(browser, theme: str) -> None:
    """Let the browser ask for light or dark pages."""
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def picture(browser, name: str) -> None:
    """Keep what the browser shows."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    data = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(data["data"]))


def collection(*runs: dict, measures: tuple[str, ...] = ("MRR",), name: str = "c") -> Collection:
    """Runs called a, b, c … with one relevant document x per query."""
    qrels = {query: {"x": 1} for query in runs[0]}
    results = [evaluated(qrels, run, list(measures)) for run in runs]
    systems = [
        System(result, "abcdefgh"[i], dh.read_run(run))
        for i, (result, run) in enumerate(zip(results, runs, strict=True))
    ]
    shown = Collection(name, systems, dh.read_qrels(qrels))
    return shown.compare(list(results[0].views))


TIED, SHARP, WRONG = {"x": 1.0, "y": 1.0}, {"x": 1.0, "y": 0.5}, {"x": 0.5, "y": 1.0}


def eight(run: dict) -> dict:
    return {f"q{i}": run for i in range(8)}


# The first screen.


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (400, 800)])
def test_the_first_screen_holds_finding_intervals_and_leaderboard(show, page, width, height):
    browser = show(page, width=width, height=height)
    assert re.match(r"(Ties|As reported)", text_of(browser, ".finding"))
    for selector in (".finding", ".intervals tbody tr:last-child", ".leading tbody tr"):
        bottom = "return arguments[0].getBoundingClientRect().bottom"
        assert browser.execute_script(bottom, one(browser, selector)) < height, selector
    picture(browser, f"report-first-{width}")


def test_the_intervals_are_ranked_and_follow_the_data(opened):
    names = texts_of(opened, ".intervals:not([hidden]) tbody th")
    values = [
        float(text) for text in texts_of(opened, ".intervals:not([hidden]) tbody td:nth-child(3)")
    ]
    assert values == sorted(values, reverse=True)
    assert dict(zip(names, values, strict=True))["tied"] == pytest.approx(
        float(text_of(opened, '.leading tr:has([title="tied"]) td').split()[0])
    )
    assert texts_of(opened, ".intervals:not([hidden]) tbody td:nth-child(4)") == [
        "1–3",
        "1–3",
        "1–3",
    ]
    ticks = [float(text) for text in texts_of(opened, ".intervals:not([hidden]) .axis text")]
    assert len(ticks) > 2 and ticks[0] > 0 and ticks[-1] < 1


def test_a_flat_line_at_one_ends_at_one(show):
    measures = ("MRR@1", "MRR@10")
    browser = show(render_page([collection(eight(SHARP), eight(SHARP), measures=measures)]))
    shown = ".intervals:not([hidden]) tbody td:nth-child(3)"
    assert texts_of(browser, shown) == ["1.0000", "1.0000"]
    for axis in (".intervals:not([hidden]) .axis text", ".chart:not([hidden]) [text-anchor=end]"):
        ticks = [float(text) for text in texts_of(browser, axis)]
        assert min(ticks) >= 0.98 and max(ticks) == 1


def test_a_cross_stands_only_where_the_reported_value_is_another(show):
    runs = (eight(TIED), eight(SHARP))
    browser = show(render_page([collection(*runs, measures=("MRR@2", "MRR@10"))]))
    crosses = {
        row.find_element("css selector", "th").text: len(
            row.find_elements("css selector", ".cross")
        )
        for row in all_of(browser, ".intervals:not([hidden]) tbody tr")
    }
    assert crosses == {"a": 1, "b": 0}
    assert len(all_of(browser, ".chart:not([hidden]) .cross")) == 2  # of a, at two cutoffs


def test_of_many_systems_open_pairs_are_left_out(show):
    random = np.random.default_rng(3)
    relevance = random.random((20, 8)) < 0.4
    relevance[:, 0] = True
    scores = [random.normal(size=relevance.shape) for _ in range(48)]
    scores += [relevance + 0.0, 1.0 - relevance]  # the best and the worst
    systems = [
        System(dh.evaluate_arrays(relevance, own, ["MAP"]), f"system {i}")
        for i, own in enumerate(scores)
    ]
    whole = Collection("fifty", systems).compare(list(systems[0].result.views))
    browser = show(render_page([whole]))
    first = texts_of(browser, ".leading tbody th")
    assert len(first) == 50 and texts_of(browser, ".intervals tbody th") == first
    height = "return document.querySelector('.intervals').clientHeight"
    assert browser.execute_script(height) < 500, "the plot scrolls"
    # Of the pairs, only those that are decided or contested by ties.
    contested = ("A is better", "B is better", "undecided: ties", "decision error")
    shown = whole.comparison.pairs.filter(pl.col("verdict").is_in(contested))
    assert 48 <= len(shown) < 50 * 49 // 2
    assert len(all_of(browser, "#comparison tbody tr")) == len(shown)
    left_out = f"Left out: {50 * 49 // 2 - len(shown)} pairs"
    assert left_out in text_of(browser, "#comparison")
    assert "curves" not in texts_of(browser, "nav a")
    picture(browser, "report-fifty")


# The leaderboard.


def test_the_leaderboard_sorts_by_every_column(opened):
    def names() -> list[str]:
        return texts_of(opened, ".leading tbody th")

    def values(place: int) -> list[float]:
        return [float(t) for t in texts_of(opened, f".leading tbody td:nth-child({place + 1})")]

    assert values(1) == sorted(values(1), reverse=True)
    for place, heading in ((1, "nDCG@10"), (2, "MRR@10")):
        for _ in range(2):
            button(opened, ".leading", heading).click()
            head = one(opened, f".leading thead th:nth-child({place + 1})")
            down = head.get_attribute("aria-sort") == "descending"
            assert values(place) == sorted(values(place), reverse=down)
    button(opened, ".leading", "system").click()
    assert names() == sorted(names())
    one(opened, ".every summary").click()
    button(opened, ".every", "range").click()
    ranges = [float(text) for text in texts_of(opened, ".every tbody td:nth-child(7)")]
    assert ranges == sorted(ranges, reverse=True) and ranges[0] > 0


def test_one_switch_turns_every_number_into_percent(opened):
    one(opened, "#query-table tbody tr").click()
    places = (
        ".finding",
        ".leading td",
        ".intervals td:nth-child(3)",
        "#query-table td",
        "#query td",
    )
    before = [text_of(opened, place) for place in places]
    one(opened, "#percent").click()
    assert one(opened, "#percent").get_attribute("aria-pressed") == "true"
    after = [text_of(opened, place) for place in places]
    for fraction, percent in zip(before[1:], after[1:], strict=True):
        assert float(percent) == pytest.approx(100 * float(fraction), abs=0.006)
    assert re.search(r"\d\d\.\d\d|\d%", after[0])
    ticks = [float(text) for text in texts_of(opened, ".intervals:not([hidden]) .axis text")]
    assert min(ticks) > 1
    one(opened, "#percent").click()
    assert [text_of(opened, place) for place in places] == before


@pytest.mark.parametrize("allowed", [True, False])
def test_the_table_is_copied_as_it_stands(show, page, allowed):
    browser = show(page)
    # Headless browsers have no clipboard of their own; one that refuses is the other case.
    browser.execute_script(
        """
        const written = arguments[0]
          ? (text) => { window.copied = text; return Promise.resolve(); }
          : () => Promise.reject(new Error("no"));
        Object.defineProperty(navigator, "clipboard", { value: { writeText: written } });
        """,
        allowed,
    )
    button(browser, ".leading", "system").click()  # by name: the copy follows
    names = texts_of(browser, ".leading tbody th")
    one(browser, "#percent").click()
    for style, first in (
        ("Markdown", "| system | nDCG@10 expected | nDCG@10 worst–best |"),
        ("LaTeX", r"% \usepackage{booktabs}"),
        ("CSV", "system,nDCG@10 expected,nDCG@10 worst,nDCG@10 best"),
    ):
        button(browser, ".copies", style).click()
        if allowed:
            text = browser.execute_script("return window.copied")
            assert text_of(browser, ".copied") == f"Copied {style}."
        else:
            text = one(browser, ".copied textarea").get_property("value")
        assert text.startswith(first)
        shown = {"Markdown": r"\<img", "LaTeX": "$<$img", "CSV": "<img"}[style]
        order = [text.index(shown if name == EVIL else f"{name} ".strip()) for name in names]
        assert order == sorted(order)
        value = text_of(browser, f".leading tbody tr:nth-child({names.index('tied') + 1}) td")
        assert (value in text) == (style != "CSV")


# Curves.


def test_curves_follow_measure_and_systems(opened):
    def shown() -> str:
        return ".chart:not([hidden])"

    def lines() -> int:
        return len([line for line in all_of(opened, f"{shown()} .band") if line.is_displayed()])

    assert lines() == 3
    assert "nDCG at cutoff k" in texts_of(opened, f"{shown()} text")
    assert re.search(r"tied and .* coincide", text_of(opened, f"{shown()} .hint"))
    choose(opened, "#measure", "MRR@10")
    assert "MRR at cutoff k" in texts_of(opened, f"{shown()} text")
    names = texts_of(opened, f"{shown()} .legend label")
    assert sorted(names) == sorted(["tied", "sharp", EVIL])
    all_of(opened, f"{shown()} .legend input")[names.index("sharp")].click()
    assert lines() == 2
    one(opened, f"{shown()} summary").click()
    assert texts_of(opened, f"{shown()} thead th")[1:4] == ["MRR@1", "MRR@2", "MRR@3"]
    assert len(all_of(opened, f"{shown()} tbody tr")) == 3


def test_a_point_tells_its_values(opened):
    titles = [each.get_attribute("textContent") for each in all_of(opened, ".chart title")]
    assert any(re.fullmatch(r"tied, nDCG@10: 0\.\d{4} \(0\.\d{4}–0\.\d{4}\)", t) for t in titles)


def test_a_single_cutoff_has_no_curve(show):
    runs = (eight(TIED), eight(SHARP))
    browser = show(render_page([collection(*runs, measures=("MRR@1", "MRR@2", "MAP"))]))
    assert one(browser, "#curves").is_displayed()
    choose(browser, "#measure", "MAP")
    assert not one(browser, "#curves").is_displayed()
    browser = show(render_page([collection(*runs, measures=("MRR@1", "MAP"))]))
    assert all_of(browser, "#curves") == [] and "Curves" not in texts_of(browser, "nav a")


# Verdicts.


def test_verdicts_follow_the_measure(opened):
    def rows() -> list[str]:
        return [each.text for each in all_of(opened, "#comparison tbody tr") if each.is_displayed()]

    assert len(rows()) == 3
    assert any("identical" in row and "tied" in row and EVIL in row for row in rows())
    before = rows()
    choose(opened, "#measure", "MRR@10")
    assert len(rows()) == 3 and rows() != before
    assert "identical" in text_of(opened, "#comparison > div > div:not([hidden]) dl")


def test_a_wrong_order_is_said_to_flip(show):
    # As reported, a has 1; random tie-breaking gives it 0.75, and b has more than that.
    nearly = {f"q{i}": WRONG if i == 0 else SHARP for i in range(40)}
    tied = {f"q{i}": TIED for i in range(40)}
    browser = show(render_page([collection(tied, nearly)]))
    assert texts_of(browser, "#comparison tbody th") == ["a", "b", "decision error"]
    assert "With ties in input order, a beats b in MRR" in text_of(browser, ".finding")


# Queries, and links to them.


def test_queries_are_sorted_and_searched(opened):
    assert text_of(opened, "#count") == "60 of 60 queries"
    ranges = column(opened, 3)
    assert len(ranges) == 50 and ranges == sorted(ranges, reverse=True) and ranges[0] > 0
    one(opened, "#more").click()
    assert len(column(opened, 3)) == 60 and not one(opened, "#more").is_displayed()
    for name, place in (("expected", 2), ("range", 3), ("bias", 4)):
        one(opened, f"button[data-column={name}]").click()
        header = one(opened, f"th:has(button[data-column={name}])")
        down = header.get_attribute("aria-sort") == "descending"
        assert column(opened, place) == sorted(column(opened, place), reverse=down)
    one(opened, "input[type=search]").send_keys("no such query")
    assert text_of(opened, "#count").startswith("0 of 60")
    assert all_of(opened, "#query-table tbody tr") == []


def test_a_query_shows_its_ties(opened):
    choose(opened, "#system", "tied")
    all_of(opened, "#query-table tbody tr")[0].click()
    row = all_of(opened, "#query-table tbody tr.chosen")
    assert len(row) == 1
    assert text_of(opened, "#query h3") == row[0].find_element("css selector", "th").text
    assert len(all_of(opened, "#query .line")) == 12
    assert all_of(opened, "#query .tie") and all_of(opened, "#query .relevant")
    assert "in any order" in text_of(opened, "#query .tie .label")
    assert len(all_of(opened, "#query .cutoff")) == 1
    assert re.search(r"more (documents follow|with the last score)", text_of(opened, "#query"))
    tied = all_of(opened, "#query .tie")
    scores = {each.text for each in tied[0].find_elements("css selector", ".score")}
    assert len(scores) == 1
    choose(opened, "#system", "sharp")
    assert text_of(opened, "#query h4") == "Ranked list of sharp"
    assert all_of(opened, "#query .tie") == []


def test_grades_are_in_the_ranked_list(show):
    qrels = {"q": {"x": 3, "y": 0, "z": -1}}
    run = {"q": {"x": 1.0, "y": 0.8, "z": 0.6, "w": 0.4}}
    system = System(evaluated(qrels, run, ["MRR"]), "s", dh.read_run(run))
    texts = dict.fromkeys(qrels, "what is tied")
    browser = show(render_page([Collection("c", [system], dh.read_qrels(qrels), texts)]))
    one(browser, "#query-table tbody tr").click()
    assert text_of(browser, "#query h3") == f"{next(iter(qrels))} · what is tied"
    assert text_of(browser, ".ranked-head").split() == ["rank", "grade", "document", "score"]
    lines = [each.text.split() for each in all_of(browser, "#query .line")]
    assert lines == [
        ["1", "3", "x", "1"],
        ["2", "0", "y", "0.8"],
        ["3", "−1", "z", "0.6"],
        ["4", "–", "w", "0.4"],
    ]
    said = [each.get_attribute("aria-label") for each in all_of(browser, ".line .grade")]
    assert said[0] == "relevant, grade 3" and said[-1] == "not judged"


def test_a_link_opens_a_query_and_back_leaves_it(show, page):
    browser = show(page, "#query=q28&system=sharp&measure=MRR%4010")
    assert text_of(browser, "#query h3") == "q28"
    assert text_of(browser, "#query h4") == "Ranked list of sharp"
    assert one(browser, "#measure").get_property("value") == "MRR@10"
    assert (
        text_of(browser, ".intervals:not([hidden]) thead th:nth-child(2)")
        == "MRR@10: worst to best"
    )
    assert len(all_of(browser, "#query-table tr.chosen")) == 1
    in_sight = "return arguments[0].getBoundingClientRect().top < innerHeight"
    assert browser.execute_script(in_sight, one(browser, "#query h3"))
    one(browser, "#query-table tbody tr:not(.chosen)").click()
    other = text_of(browser, "#query h3")
    assert other != "q28"
    link = browser.current_url
    choose(browser, "#measure", "nDCG@10")
    browser.back()
    browser.back()
    assert text_of(browser, "#query h3") == "q28"
    browser.forward()
    assert text_of(browser, "#query h3") == other
    show(page, link[link.index("#") :])
    assert text_of(browser, "#query h3") == other
    browser.execute_script("document.querySelector('nav a').click()")  # a section is no query
    assert text_of(browser, "#query h3") == other


def test_a_link_to_what_is_not_there_says_so(show, page):
    browser = show(page, "#query=nobody&system=sharp&measure=MAP")
    assert text_of(browser, "#count") == ("Not on this page: query nobody, measure MAP.")
    assert text_of(browser, "#query") == ""
    assert one(browser, "#measure").get_property("value") == "nDCG@10"


def test_links_name_hostile_ids(show, page):
    browser = show(page)
    choose(browser, "#system", EVIL)
    search = one(browser, "input[type=search]")
    for name in HOSTILE[:4]:
        search.clear()
        search.send_keys(name)
        rows = all_of(browser, "#query-table tbody tr")
        assert len(rows) == 1 and rows[0].find_element("css selector", "th").text == name
        rows[0].click()
        link = browser.current_url
        show(page, link[link.index("#") :])
        assert text_of(browser, "#query h3") == name
        assert text_of(browser, "#query h4") == f"Ranked list of {EVIL}"
        search = one(browser, "input[type=search]")
    strange = "return document.querySelectorAll('main script, #query b').length"
    assert browser.execute_script(strange) == 0
    picture(browser, "report-hostile")


def test_collections_are_chosen_and_linked(show):
    first = collection(eight(TIED), eight(SHARP), name="first")
    second = collection({"q9": WRONG}, measures=("Recall@5",), name="second")
    page = render_page([first, second])
    browser = show(page)
    assert text_of(browser, "#count").startswith("8 of 8")
    choose(browser, "#collection", "second")
    assert text_of(browser, "#count").startswith("1 of 1")
    assert texts_of(browser, ".leading:not([hidden]) tbody th") == ["", "", "a"]
    assert "Not compared: a comparison needs two systems or more" in text_of(browser, "#comparison")
    one(browser, "#query-table tbody tr").click()
    link = browser.current_url
    assert link.endswith("#query=q9&system=a&measure=Recall%405&collection=second")
    browser.back()
    browser.back()
    assert text_of(browser, "#count").startswith("8 of 8")
    show(page, link[link.index("#") :])
    assert text_of(browser, "#query h3") == "q9"


def test_systems_may_differ_in_queries_and_measures(show):
    qrels = {"a": {"x": 1}, "b": {"x": 1}}
    run = dict.fromkeys(qrels, TIED)
    both = evaluated(qrels, run, ["MRR", "MAP"])
    half = evaluated({"a": {"x": 1}}, {"a": run["a"]}, ["Recall@5"])
    systems = [System(both, "both"), System(half, "half")]
    one_ = Collection("one", systems).compare([*both.views, *half.views])
    browser = show(render_page([one_]))
    assert text_of(browser, "#count").startswith("2 of 2")
    assert "Not compared: the systems have no measure" in text_of(browser, "#comparison")
    choose(browser, "#system", "half")
    assert text_of(browser, "#count") == "half was not evaluated in MRR"
    choose(browser, "#measure", "Recall@5")
    assert text_of(browser, "#count").startswith("1 of 2")
    assert texts_of(browser, ".intervals:not([hidden]) tbody th") == ["half"]
    all_of(browser, "#query-table tbody tr")[0].click()
    assert "not part of this page" in text_of(browser, "#query")


# For everybody.


def test_the_keyboard_is_enough(opened):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    body = one(opened, "body")
    body.send_keys(keys.TAB)
    assert focused(opened) == "Skip to the content"
    second = all_of(opened, "#query-table tbody button")[1]
    second.send_keys(keys.ENTER)
    assert text_of(opened, "#query h3") == second.text
    assert opened.switch_to.active_element == second  # the next one is a press of tab away
    outline = opened.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    heading = one(opened, ".leading thead th:nth-child(3) button")
    heading.send_keys(keys.ENTER)
    assert heading.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_on_a_phone_names_stay_and_numbers_scroll(show, page):
    browser = show(page, width=400, height=800)
    assert not browser.execute_script("return document.documentElement.scrollWidth > innerWidth")
    one(browser, ".every summary").click()
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


def leaderboard_page() -> str:
    random = np.random.default_rng(4)
    qrels = {f"q{i}": {f"d{j}": int(random.integers(0, 3)) for j in range(8)} for i in range(6)}
    runs = {
        name: {q: {d: float(random.integers(0, 4)) for d in docs} for q, docs in qrels.items()}
        for name in ("alpha", "beta", "gamma", EVIL)
    }
    return render_leaderboards(
        [quiet(dh.leaderboard)(qrels, runs, ["nDCG@5", "MAP"], name="board")]
    )


def faults(browser) -> list[str]:
    """What axe-core finds, by rule."""
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
def test_axe_finds_nothing_to_object_to(show, page, kind, width, theme):
    browser = show(page if kind == "report" else leaderboard_page(), width=width)
    prefer(browser, theme)
    browser.execute_script(
        "for (const details of document.querySelectorAll('details')) details.open = true;"
        "document.querySelector('#query-table tbody tr')?.click();"
    )
    assert faults(browser) == []
    browser.execute_script("document.querySelector('.finding').style.color = '#777'")
    assert [fault.split(":")[0] for fault in faults(browser)] == ["color-contrast"]


def test_light_dark_narrow_and_printed(show, page):
    def background() -> str:
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    for width in (1400, 400):
        browser = show(page, width=width, height=5000)
        all_of(browser, "#query-table tbody tr")[0].click()
        seen = []
        for theme in ("light", "dark"):
            prefer(browser, theme)
            seen.append(background())
            assert not browser.execute_script(
                "return document.documentElement.scrollWidth > innerWidth"
            )
            picture(browser, f"report-{theme}-{width}")
        assert seen == ["rgb(255, 255, 255)", "rgb(20, 23, 27)"]
    pdf = base64.b64decode(
        browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    )
    (SCREENSHOTS / "report.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF")


def test_thousands_of_queries_stay_fluid(show):
    random = np.random.default_rng(1)
    relevance = random.random((7000, 20)) < 0.2
    relevance[:, 0] = True
    scores = np.round(random.normal(size=relevance.shape), 1)
    measures = ["nDCG@10", "MRR@10", "MAP", "Recall@5"]
    result = dh.evaluate_arrays(relevance, scores, measures)
    content = render_page([Collection("large", [System(result, "s")])])
    assert len(content) < 1.5e6
    browser = show(content)
    timing = "return performance.getEntriesByType('navigation')[0].loadEventEnd"
    assert browser.execute_script(timing) < 20_000
    sort = """
        const begin = performance.now();
        for (const button of document.querySelectorAll('#query-table thead button')) button.click();
        document.body.offsetHeight;
        return performance.now() - begin;
    """
    assert browser.execute_script(sort) < 4_000
    assert len(all_of(browser, "#query-table tbody tr")) == 50


# The page of a leaderboard.


def test_a_leaderboard_sorts_and_searches(show, tmp_path):
    random = np.random.default_rng(5)
    qrels = {f"q{i}": {f"d{j}": int(random.integers(0, 3)) for j in range(8)} for i in range(6)}
    names, teams = ["alpha", "beta", "gamma", "delta"], ["red", "red", "blue", "blue"]
    runs = {
        name: {q: {d: float(random.integers(0, 4)) for d in docs} for q, docs in qrels.items()}
        for name in names
    }
    lines = ["tag,team,ndcg@5,map"]
    for name, team in zip(names, teams, strict=True):
        result = evaluated(qrels, runs[name], ["nDCG@5", "MAP"])
        lines.append(f"{name},{team}," + ",".join(f"{s.oblivious:.4f}" for s in result.values()))
    (tmp_path / "board.csv").write_text("\n".join(lines))
    published = str(tmp_path / "board.csv")
    board = quiet(dh.leaderboard)(qrels, runs, published=published, group="team")
    browser = show(render_leaderboards([board]))

    def shown() -> list[str]:
        found = all_of(browser, ".ranking:not([hidden]) tbody tr:not([hidden]) th:first-child")
        return [each.text for each in found]

    rows = board.ranking()
    assert shown() == rows["run"].to_list()
    by_worst = rows.sort("worst", descending=True, maintain_order=True)["run"].to_list()
    heading = ".ranking:not([hidden])"
    button(browser, heading, "worst").click()
    assert shown() == by_worst
    button(browser, heading, "worst").click()
    assert shown() == by_worst[::-1]
    button(browser, heading, "run").click()
    assert shown() == sorted(names)
    one(browser, ".search").send_keys("ET")
    assert shown() == ["beta"]
    one(browser, ".search").clear()
    browser.execute_script("document.querySelector('.search').oninput()")
    one(browser, ".search").send_keys("red")
    assert shown() == ["alpha", "beta"] and text_of(browser, ".count") == "2 of 4 runs"
    choose(browser, ".measure", 1)
    assert text_of(browser, ".ranking:not([hidden]) h4") == "MAP"
    assert texts_of(browser, ".leading thead th") == ["run", "nDCG@5 ↓", "MAP"] or texts_of(
        browser, ".leading thead th"
    ) == ["run", "nDCG@5", "MAP"]
    before = text_of(browser, ".leading td")
    one(browser, "#percent").click()
    assert float(text_of(browser, ".leading td")) == pytest.approx(100 * float(before), abs=0.006)
    picture(browser, "leaderboard")
