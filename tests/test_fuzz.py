"""Fuzzing: mutated input is either read exactly or rejected with an error.

`make fuzz` runs the same targets for longer; inputs that failed once are in fuzz/corpus.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings, strategies as st

import deadheat as dh
from deadheat.cli import main

FUZZ = Path(__file__).resolve().parents[1] / "fuzz"
pytestmark = pytest.mark.skipif(not FUZZ.is_dir(), reason="needs the folder fuzz/")
sys.path.insert(0, str(FUZZ))

import targets  # noqa: E402

WORDS = [
    b"nan",
    b"inf",
    b"-",
    b"1e999",
    b"1_0",
    b"\\ud800",
    b"\x00",
    b"\xff",
    b"\xef\xbc\x91",
    b"#",
]
WORDS += [b"\t", b" ", b"\r", b"\n", b",", b'"', b"{", b"}", b"[", b"]", b":", b"null", b"9" * 30]


@st.composite
def mutate_seed(draw: st.DrawFn, name: str) -> bytes:
    """Draw a valid input of a target with a few random edits."""
    data = draw(st.sampled_from(targets.seeds(name)))
    for _ in range(draw(st.integers(0, 4))):
        i = draw(st.integers(0, len(data)))
        j = draw(st.integers(i, min(len(data), i + 20)))
        new = draw(st.one_of(st.sampled_from(WORDS), st.binary(max_size=4), st.just(data[i:j] * 2)))
        data = data[:i] + new + data[j:]
    return data


@pytest.mark.parametrize("name", targets.TARGETS)
def test_stored_failures_stay_fixed(name):
    stored = [path.read_bytes() for path in (FUZZ / "corpus" / name).glob("*")]
    for data in [*targets.seeds(name), *stored]:
        targets.check(name, data)


@pytest.mark.parametrize("name", targets.TARGETS)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_input_is_read_or_rejected(name, data):
    targets.check(name, data.draw(mutate_seed(name)))


ids = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=4)
NUMBERS = [
    "1",
    "-0.5",
    "+2",
    "1e-3",
    "2E5",
    ".5",
    "3.",
    "0",
    "-0",
    "1e-320",
    "1.7976931348623157e308",
]
GARBAGE = [
    "abc",
    "1_0",
    "0x10",
    "１",
    "1,5",
    "--1",
    "1e",
    "1e5.0",
    "1.2.3",
    "½",
    "1+1",
    "true",
    "None",
]


@given(
    rows=st.lists(st.tuples(ids, ids, st.sampled_from(NUMBERS)), min_size=1, max_size=6).filter(
        lambda rows: (
            len({row[:2] for row in rows}) == len(rows)
            and not any(part.startswith(("#", "{")) for row in rows for part in row[:1])
        )
    ),
    bad=st.one_of(st.none(), st.tuples(st.integers(0, 5), st.sampled_from(GARBAGE))),
    space=st.sampled_from([" ", "\t", "  ", " \t"]),
)
def test_trec_run_is_read_exactly_or_error_names_the_line(tmp_path_factory, rows, bad, space):
    """The reference reads six fields and converts the fifth by `float`."""
    path = tmp_path_factory.getbasetemp() / "fuzzed.run"
    lines = [[query, "Q0", doc, "1", score, "t"] for query, doc, score in rows]
    if bad is not None:
        number = bad[0] % len(lines)
        lines[number][4] = bad[1]
    path.write_text("".join(space.join(line) + "\n" for line in lines), encoding="utf-8")
    if bad is not None:
        with pytest.raises(dh.InputError) as caught:
            dh.read_run(path)
        assert f"fuzzed.run, line {number + 1}" in str(caught.value)
        assert repr(bad[1]) in str(caught.value)
        return
    run = dh.read_run(path)
    expected: dict[str, dict[str, float]] = {}
    for query, doc, score in rows:
        expected.setdefault(query, {})[doc] = float(score)
    actual: dict[str, dict[str, float]] = {}
    for i, query in enumerate(run.query_ids):
        own = range(run.offsets[i], run.offsets[i + 1])
        names = run.documents.ids(list(own))
        actual[query] = dict(zip(names, run.scores[own.start : own.stop].tolist(), strict=True))
    assert actual == expected


FILES = {"q": "trec", "r": "trec", "j": "json", "l": "jsonl", "c": "csv", "t": "tsv", "p": "result"}
FILES |= {"s": "study", "x": "compressed", "m": "manifest", "b": "published", "n.toml": "rounds"}
OPTIONS = [
    *(("-m", name) for name in ("nDCG@10", "MRR", "RBP(p=2)", "nope", "nDCG@0", "", "Recall@1,2")),
    *(("--format", name) for name in ("json", "csv", "markdown", "latex", "html", "pdf")),
    *(("--tie-break", name) for name in ("input", "id_asc", "id_desc", "pytrec_eval", "rank", "x")),
    *(("--tie-tolerance", number) for number in ("0.1", "-1", "nan", "inf", "x")),
    *(("--queries", name) for name in ("judged", "all", "intersection")),
    ("--nan", "last"),
    ("--per-query",),
    ("--percent",),
    ("--strict",),
    ("--force",),
    ("--top", "0"),
    ("-o", "out.json"),
    ("-o", "/nowhere/out"),
    ("--qrels", "q"),
    ("--runs", "r"),
    ("--published", "b"),
    ("--query", "q"),
    ("--study", "s"),
    ("--output", "q"),
    ("--\x1b[31m",),
]


@st.composite
def command_lines(draw: st.DrawFn) -> tuple[list[str], dict[str, bytes]]:
    """Draw a command line and the files that it names, some of them mutated."""
    command = draw(
        st.sampled_from(
            [
                *("eval", "eval", "compare", "diagnose", "table", "verify", "run", "report"),
                *("plot list", "leaderboard"),
            ]
        )
    )
    names = st.sampled_from([*FILES, "absent", "-", ".", "\x1b]0;x\x07"])
    words = [*command.split(), *draw(st.lists(names, max_size=3))]
    for option in draw(st.lists(st.sampled_from(OPTIONS), max_size=3)):
        words += option
    files = {}
    for word in {*words} & FILES.keys():
        files[word] = draw(
            st.one_of(st.just(targets.seeds(FILES[word])[0]), mutate_seed(FILES[word]))
        )
    return words, files


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(command_lines())
@example((["eval", "q", "r", "--format", "json"], {"q": b"q 0 d 1\n", "r": b"q Q0 d 1 0.5 t\n"}))
@example((["run", "--study", "s", "--output", "o"], {"s": b"models = [" * 4000}))
def test_command_line_with_random_files_and_options(tmp_path_factory, monkeypatch, case):
    """The exit status is valid, there is no traceback, and rejected input gives no output."""
    arguments, files = case
    folder = tmp_path_factory.mktemp("line")
    monkeypatch.chdir(folder)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    done = CliRunner().invoke(main, arguments, input="")
    assert done.exception is None or isinstance(done.exception, SystemExit), (
        arguments,
        done.exception,
    )
    assert done.exit_code in (0, 1, 2), arguments
    assert "Traceback" not in done.output and "\x1b" not in done.output
    if done.exit_code == 2:
        assert "rror: " in done.stderr and done.stdout == "", (arguments, done.output)
    if done.exit_code == 0 and arguments[0] == "eval" and "--format json" in " ".join(arguments):
        written = folder / "out.json"
        text = written.read_text() if written.exists() else done.stdout
        for result in json.loads(text):
            for values in result["measures"].values():
                assert -1e-12 <= values["worst"] <= values["best"] + 1e-12


@pytest.mark.parametrize("start", ["x\x01", "x^", "xڀ", "xڜ", "x"])
def test_ids_with_the_magic_bytes_of_compression_are_read(tmp_path, start):
    """Data in an unsupported compression format is rejected."""
    texts = {
        "run": f"{start}q Q0 d 1 0.5 t\n",
        "csv": f"{start},query_id,doc_id,score\n1,{start}q,d,0.5\n",
        "tsv": f"{start}\tquery_id\tdoc_id\tscore\n1\t{start}q\td\t0.5\n",
    }
    for ending, text in texts.items():
        path = tmp_path / f"input.{ending}"
        path.write_text(text, encoding="utf-8")
        assert dh.read_run(path).query_ids == [f"{start}q"]
    for level in range(10):
        path.write_bytes(zlib.compress(b"q Q0 d 1 0.5 t\n" * 1000, level))
        with pytest.raises(dh.InputError, match=r"input\.tsv"):
            dh.read_run(path)
