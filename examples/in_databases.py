"""Databases and text indexes: nDCG@10 of lists of ten, and of lists with a whole last tie group.

Needs `pip install '.[databases]'`; engines that are not installed are skipped. Chroma is not part
of that extra: `pip install chromadb`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import deadheat as dh
from deadheat.integrations import vector_search

Hits = dict[int, list[tuple[int, float]]]
"""For each query, the documents found, best first, with their distances or scores."""

rng = np.random.default_rng(0)
ids = rng.permutation(1_000)  # the order of insertion is not the order of ids
relevant = rng.permutation(1_000)[:50]
qrels = {query: {int(ids[place])} for query, place in enumerate(relevant)}

# For databases: vectors of 32 bits, and queries that differ from a relevant vector in some bits.
vectors = rng.integers(0, 2, (1_000, 32)).astype(np.float32)
queries = np.abs(vectors[relevant] - (rng.random((50, 32)) < 0.25)).astype(np.float32)

# For text indexes: titles of four out of 26 words, and queries of two words of a relevant title.
WORDS = [f"word{i}" for i in range(26)]
titles = [" ".join(rng.choice(WORDS, 4, replace=False)) for _ in range(1_000)]
questions = [" ".join(titles[place].split()[:2]) for place in relevant]


SELECT = "SELECT id, embedding <-> %s::vector AS distance FROM documents ORDER BY distance "


def fill_postgresql(uri: str) -> None:
    """Store the vectors in a new table."""
    import psycopg

    with psycopg.connect(uri) as database:
        database.execute("CREATE EXTENSION vector")
        database.execute("CREATE TABLE documents (id integer, embedding vector(32))")
        with database.cursor().copy("COPY documents FROM STDIN") as copy:
            for name, vector in zip(ids.tolist(), vectors.tolist(), strict=True):
                copy.write_row((name, str(vector)))


def search_postgresql() -> tuple[Hits, Hits]:
    """Return lists of ten by LIMIT, and lists by WITH TIES."""
    import pgserver
    import psycopg

    server = pgserver.get_server(tempfile.mkdtemp(), cleanup_mode="delete")
    fill_postgresql(server.get_uri())
    with psycopg.connect(server.get_uri()) as database:
        cut, whole = (
            {
                query: database.execute(SELECT + end, [str(vector.tolist())]).fetchall()
                for query, vector in enumerate(queries)
            }
            for end in ("LIMIT 10", "FETCH FIRST 10 ROWS WITH TIES")
        )
    server.cleanup()
    return cut, whole


def search_duckdb() -> tuple[Hits, Hits]:
    """Return lists of ten by LIMIT, and lists of documents of rank 10 or better."""
    import duckdb

    database = duckdb.connect()
    database.execute("CREATE TABLE documents (id INTEGER, embedding FLOAT[32])")
    rows = list(zip(ids.tolist(), vectors.tolist(), strict=True))
    database.executemany("INSERT INTO documents VALUES (?, ?)", rows)
    select = "SELECT id, array_distance(embedding, ?::FLOAT[32]) AS distance FROM documents "
    rank = "QUALIFY rank() OVER (ORDER BY distance) <= 10 ORDER BY distance"
    cut, whole = (
        {
            query: database.execute(select + end, [vector.tolist()]).fetchall()
            for query, vector in enumerate(queries)
        }
        for end in ("ORDER BY distance LIMIT 10", rank)
    )
    return cut, whole


def search_chroma() -> tuple[Hits, Hits]:
    """Return lists of ten, and lists of searches with increasing k."""
    import chromadb

    class Chroma(vector_search.Index):
        """A collection of Chroma whose distances are L2."""

        larger_is_better = False

        def nearest(self, queries, k):
            k = min(k, len(ids))
            found = collection.query(query_embeddings=queries, n_results=k, include=["distances"])
            pairs = zip(found["ids"], found["distances"], strict=True)
            return [(np.array(ids, int), np.array(distances)) for ids, distances in pairs]

    collection = chromadb.EphemeralClient().create_collection(
        "codes", configuration={"hnsw": {"space": "l2", "ef_search": 200}}, embedding_function=None
    )
    collection.add(ids=[str(name) for name in ids], embeddings=vectors)
    ten = Chroma().nearest(queries, 10)
    whole = vector_search.complete_groups(Chroma(), queries, *zip(*ten, strict=True))
    return as_hits(ten), as_hits(zip(whole.ids, whole.scores, strict=True))


def search_bm25s() -> tuple[Hits, Hits]:
    """Return lists of ten, and lists of all documents that score at least as high as the tenth."""
    import bm25s

    index = bm25s.BM25()
    index.index(bm25s.tokenize(titles, show_progress=False), show_progress=False)
    words = bm25s.tokenize(questions, return_ids=False, show_progress=False)
    places, scores = index.retrieve(words, k=10, show_progress=False)
    whole = []
    for question, tenth in zip(words, scores[:, -1], strict=True):
        of_all = index.get_scores(question)
        kept = np.flatnonzero(of_all >= tenth)
        kept = kept[np.argsort(-of_all[kept], kind="stable")]
        whole.append((ids[kept], of_all[kept]))
    return as_hits(zip(ids[places], scores, strict=True)), as_hits(whole)


def search_tantivy() -> tuple[Hits, Hits]:
    """Return lists of ten, and lists of searches with an increasing limit."""
    import tantivy

    fields = tantivy.SchemaBuilder()
    fields.add_integer_field("id", stored=True)
    fields.add_text_field("text")
    index = tantivy.Index(fields.build())
    writer = index.writer(num_threads=1)
    for name, title in zip(ids.tolist(), titles, strict=True):
        writer.add_document(tantivy.Document(id=name, text=title))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(question: str, k: int, *, complete: bool) -> list[tuple[int, float]]:
        query, limit = index.parse_query(question, ["text"]), k
        hits = searcher.search(query, limit).hits
        last = hits[-1][0] if hits else 0
        while complete and len(hits) == limit and hits[-1][0] == last:
            limit *= 2
            hits = searcher.search(query, limit).hits
        return [(searcher.doc(at)["id"][0], score) for score, at in hits if score >= last]

    cut, whole = (
        {query: search(text, 10, complete=complete) for query, text in enumerate(questions)}
        for complete in (False, True)
    )
    return cut, whole


def as_hits(found) -> Hits:
    """Convert arrays of ids and scores per query to pairs."""
    lists = (zip(ids.tolist(), scores.tolist(), strict=True) for ids, scores in found)
    return {query: list(pairs) for query, pairs in enumerate(lists)}


def evaluate_hits(hits: Hits, *, is_whole: bool, larger_is_better: bool) -> dh.evaluation.Summary:
    """Return the nDCG@10 of hits; `is_whole` if no document of a last tie group is missing."""
    sizes = [sum(score == found[-1][1] for _, score in found) for found in hits.values()]
    run = dh.search_results(
        hits, larger_is_better=larger_is_better, last_group_size=sizes if is_whole else None
    )
    return dh.evaluate(qrels, run, "nDCG@10")["nDCG@10"]


ENGINES: dict[str, tuple[str, Callable[[], tuple[Hits, Hits]], bool]] = {
    "PostgreSQL": ("pgserver", search_postgresql, False),
    "DuckDB": ("duckdb", search_duckdb, False),
    "Chroma": ("chromadb", search_chroma, False),
    "bm25s": ("bm25s", search_bm25s, True),
    "tantivy": ("tantivy", search_tantivy, True),
}
"""For each engine: its module, its search function, and whether larger scores are better."""


def main() -> None:
    """Print a table of the installed engines."""
    print(f"{'nDCG@10':24} expected   worst    best")
    for name, (module, search, larger_is_better) in ENGINES.items():
        if find_spec(module) is None:
            print(f"{name}: {module} is not installed")
            continue
        for kind, hits in zip(("ten", "whole group"), search(), strict=True):
            summary = evaluate_hits(hits, is_whole=kind != "ten", larger_is_better=larger_is_better)
            values = f"{summary.expected:8.4f} {summary.worst:8.4f} {summary.best:8.4f}"
            print(f"{name:11} {kind:12} {values}")


if __name__ == "__main__":
    main()
