"""`deadheat eval --cite`: text for a paper with the values of the result."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from deadheat._internal.packages import own_version
from deadheat.cli import main
from deadheat.report.citation import PAPER

ROOT = Path(__file__).resolve().parents[1]
QRELS = "q1 0 d1 1\nq1 0 d3 1\nq2 0 d2 2\n"
TIED = "q1 Q0 d1 1 0.9 t\nq1 Q0 d2 2 0.5 t\nq1 Q0 d3 3 0.5 t\nq2 Q0 d1 1 1 t\nq2 Q0 d2 2 0 t\n"
CITED = f"(deadheat {own_version()}; Yang et al., 2026)"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = {"tied_50%": TIED, "sharp": TIED.replace("d3 3 0.5", "d3 3 0.7")}
    for name, text in {"qrels": QRELS, **runs, "short": TIED.partition("q2")[0]}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def cite(*args: str, status: int = 0):
    result = CliRunner().invoke(main, ["eval", "qrels", *args, "--cite"])
    assert result.exit_code == status, result.output
    return result


def test_sentences_have_values_and_worst_and_best(folder):
    # Recall@2 of q1 is 1/2 or 1; MRR of q2 is 1/2 in every order.
    text = cite("tied_50%", "sharp", "-m", "Recall@2,MRR").stdout
    values = "Recall@2 0.8750 [0.7500, 1.0000] and MRR 0.7500 on 2 queries"
    (sentence,) = (line for line in text.splitlines() if line.startswith("tied_50% reaches"))
    assert values in sentence and "[worst, best]" in sentence and CITED in sentence
    assert "sharp reaches Recall@2 1.0000 and MRR 0.7500 on 2 queries; ties move no value" in text
    text = cite("tied_50%", "-m", "Recall@2", "--percent").stdout
    assert "tied_50% reaches Recall@2 87.50 [75.00, 100.00] on 2 queries" in text


def test_appendix_names_every_option(folder):
    plain = cite("tied_50%", "-m", "MRR").stdout
    assert "breaks ties in input order" in plain and "Scores are taken as they are." in plain
    assert re.search("over 2 queries: .*judged query.* relevant document", plain)
    options = ("--tie-break", "id_desc", "--score-precision", "bf16", "--tie-tolerance", "0.01")
    text = cite("tied_50%", "-m", "MRR", *options, "--queries", "intersection").stdout
    assert "breaks ties by descending document ids" in text
    assert re.search(r"rounded to bf16, .* 0\.01 apart", text)
    assert "both judged and in the run" in text


def test_warnings_are_part_of_the_text(folder):
    text = " ".join(cite("short", "-m", "MRR").stdout.split())
    assert re.search(r"\[Also state: .*1 .*quer.*\]", text)
    assert "[Also state: " not in cite("sharp", "-m", "MRR").stdout


def test_markdown_and_html_are_supported_and_csv_and_json_rejected(folder):
    markdown = cite("tied_50%", "-m", "MRR", "--format", "markdown").stdout
    assert markdown.startswith("# In the text\n\n") and "\n    @misc{deadheat,\n" in markdown
    html = cite("tied_50%", "-m", "MRR", "--format", "html").stdout
    assert "<h1>BibTeX</h1>" in html and "<pre>@misc{deadheat," in html
    for style in ("csv", "json"):
        assert "sentences" in cite("tied_50%", "--format", style, status=2).stderr
    assert "leave out --per-query" in cite("tied_50%", "--per-query", status=2).stderr


def test_latex_writes_the_bibtex_entries_to_a_file(folder):
    text = cite("tied_50%", "-m", "MRR", "--format", "latex").stdout
    bib = text.partition("\\begin{filecontents}[overwrite]{deadheat.bib}\n")[2]
    bib = bib.partition("\n\\end{filecontents}")[0]
    assert bib.count("@misc{") == 2 and PAPER in bib and "%" not in bib
    assert "url    = {https://arxiv.org/abs/2508.03306}" in bib


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_output_compiles(folder):
    cite("tied_50%", "sharp", "-m", "Recall@2,MRR", "-o", "cite.tex")
    text = Path("cite.tex").read_text(encoding="utf-8")
    assert CITED not in text and text.count(r"\cite{deadheat,yang2026reliable}") == 2
    assert r"tied\_50\% reaches Recall@2 0.8750" in text
    document = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{text}"
    Path("t.tex").write_text(document + "\n\\end{document}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    process = subprocess.run(command, capture_output=True, check=False)
    assert process.returncode == 0, process.stdout[-2000:]


def test_bibtex_matches_the_citation_file():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    names = re.findall(r"family-names: (\w+), given-names: (\w+)", citation)
    assert re.sub(r"\s+", " ", PAPER).count(" and ") == len(names) - 1 == 5
    for family, given in names:
        assert f"{family}, {given}" in PAPER
    title, year = re.findall(r"^  (?:title|year): (.+)$", citation, flags=re.MULTILINE)
    assert f"{{{title}}}" in PAPER and f"{{{year}}}" in PAPER


def test_documentation_page_matches_the_output(folder):
    from deadheat.demo import recordings, write_files

    write_files(recordings()["softmax"], folder)
    args = ("BF16=softmax-native.run", "FP32-head=softmax-head.run", "-m", "nDCG@10,MRR@10")
    result = CliRunner().invoke(main, ["eval", "softmax-qrels.txt", *args, "--percent", "--cite"])
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    quoted = " ".join(re.sub("^>", "", page, flags=re.MULTILINE).split())
    parts = re.split(r"\n\n(?:In the text|Table|Appendix|BibTeX)?\n*", f"\n\n{result.stdout}")
    written = [part for part in parts if re.match(r"BF16|FP32-head|All values|@misc", part)]
    assert len(written) == 5
    for part in written:  # the page names no version, so that it stays valid
        versionless = part.replace(f"deadheat {own_version()}", "deadheat")
        versionless = versionless.replace(f"Version {own_version()}", "Version …")
        assert " ".join(versionless.split()) in quoted
