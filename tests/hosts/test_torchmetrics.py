"""torchmetrics and Lightning: a metric with additive states, in every precision and process."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from needed import import_host
from quiet import quiet

import deadheat as dh

host = import_host("torchmetrics")

import torch  # noqa: E402
from torchmetrics import MetricCollection, retrieval  # noqa: E402

from deadheat.integrations.torchmetrics import TieAwareRetrieval  # noqa: E402

# Warnings of the host libraries are not under test.
pytestmark = pytest.mark.filterwarnings("default")

VERSION = tuple(map(int, host.__version__.split(".")[:2]))
MEASURES = ["nDCG@3", "MRR", "MAP", "Recall@2", "Hits@5", "DCG@4", "ERR(max_grade=2)@3"]


def make_data(queries=24, documents=9, *, tied=True, seed=0, dtype=torch.bfloat16):
    """Return scores, grades and query indexes; all grades of the first two queries are 0."""
    rng = np.random.default_rng(seed)
    scores = torch.tensor(rng.permutation(queries * documents) / (queries * documents) + 0.125)
    if tied:
        scores = (torch.tensor(rng.normal(size=queries * documents)).round() / 2).to(dtype)
    target = torch.tensor(rng.integers(0, 3, queries * documents))
    target[: 2 * documents] = 0
    indexes = torch.arange(queries).repeat_interleave(documents)
    return scores, target, indexes


def reference(preds, target, indexes, measures=MEASURES, **options):
    rows = [indexes == i for i in indexes.unique()]
    scores = [preds[row].float().numpy() for row in rows]
    grades = [target[row].numpy() for row in rows]
    return quiet(dh.evaluate_arrays)(grades, scores, measures, **{"queries": "all", **options})


def make_batches(preds, target, indexes, size=50):
    """Yield batches of complete queries, of different sizes."""
    ends = [i for i in range(1, len(indexes)) if indexes[i] != indexes[i - 1]]
    starts = [0]
    for end in ends:
        if end - starts[-1] >= size:
            starts.append(end)
    for a, b in zip(starts, [*starts[1:], len(indexes)], strict=True):
        yield preds[a:b], target[a:b], indexes[a:b]


def update_in_batches(metric, data):
    for preds, target, indexes in make_batches(*data):
        metric.update(preds, target, indexes=indexes)
    return metric


def assert_values(values, flat, tolerance=1e-14):
    assert {name: value.item() for name, value in values.items()} == pytest.approx(
        flat, abs=tolerance
    )


def test_every_view_of_every_measure_matches_evaluate():
    data = make_data()
    metric = update_in_batches(TieAwareRetrieval(MEASURES), data)
    values = metric.compute()
    assert list(values) == list(reference(*data).flat())
    assert_values(values, reference(*data).flat())
    assert "ERR(max_grade=2)@3_std" not in values
    assert values["MRR_range"] > 0.1


def test_batch_order_does_not_change_values():
    data = make_data()
    one = TieAwareRetrieval(MEASURES)
    one.update(*data)
    shuffled = torch.randperm(len(data[0]), generator=torch.Generator().manual_seed(3))
    other = TieAwareRetrieval(MEASURES)
    # Keep the order inside each query, on which the oblivious value depends.
    order = shuffled[(data[2][shuffled] * 1000 + shuffled).argsort(stable=True)]
    for query in data[2].unique().flip(0):
        row = order[data[2][order] == query]
        other.update(*(part[row].reshape(3, 3) for part in data))
    assert {k: v.item() for k, v in other.compute().items()} == {
        k: v.item() for k, v in one.compute().items()
    }


def test_documents_of_queries_may_be_interleaved():
    preds, target, indexes = make_data()
    order = torch.randperm(len(preds), generator=torch.Generator().manual_seed(1))
    mixed = TieAwareRetrieval(["MRR", "nDCG@3"], views=["expected", "best", "std"])
    whole = mixed.clone()
    mixed.update(preds[order], target[order], indexes[order])
    whole.update(preds, target, indexes)
    assert mixed.compute() == whole.compute()


@pytest.mark.parametrize("action", ["neg", "pos", "skip"])
def test_queries_without_a_relevant_document(action):
    data = make_data()
    value = update_in_batches(
        TieAwareRetrieval("MRR", "expected", empty_target_action=action), data
    ).compute()
    theirs = retrieval.RetrievalMRR(empty_target_action=action)
    untied = make_data(tied=False)
    theirs.update(untied[0], (untied[1] > 0).long(), untied[2])
    ours = update_in_batches(
        TieAwareRetrieval("MRR", "expected", empty_target_action=action), untied
    )
    assert ours.compute().item() == pytest.approx(theirs.compute().item(), abs=1e-6)
    judged = reference(*data, ["MRR"], queries="judged").views[dh.MRR].expected
    constant = {"neg": [0.0] * 2, "pos": [1.0] * 2, "skip": []}[action]
    assert value.item() == pytest.approx(np.mean([*judged, *constant]), abs=1e-14)


def test_query_with_a_constant_value_has_no_range():
    metric = TieAwareRetrieval("MRR", empty_target_action="pos")
    metric.update(torch.zeros(3), torch.zeros(3), torch.zeros(3, dtype=torch.long))
    values = metric.compute()
    assert values["MRR"] == values["MRR_best"] == values["MRR_worst"] == 1
    assert values["MRR_std"] == values["MRR_range"] == values["MRR_bias"] == 0


def test_value_is_0_if_all_queries_are_skipped():
    metric = TieAwareRetrieval("MRR", empty_target_action="skip")
    metric.update(torch.zeros(3), torch.zeros(3), torch.zeros(3, dtype=torch.long))
    assert {value.item() for value in metric.compute().values()} == {0.0}


def test_ignore_index():
    preds, target, indexes = make_data()
    metric = TieAwareRetrieval("MRR", "expected", ignore_index=2)
    metric.update(preds, target, indexes)
    kept = target != 2
    expected = reference(preds[kept], target[kept], indexes[kept], ["MRR"])
    assert metric.compute().item() == pytest.approx(expected["MRR"].expected, abs=1e-14)


SHARED = [
    ("nDCG@3", retrieval.RetrievalNormalizedDCG(top_k=3), False),
    ("nDCG", retrieval.RetrievalNormalizedDCG(), False),
    ("MRR", retrieval.RetrievalMRR(), True),
    ("MRR@2", retrieval.RetrievalMRR(top_k=2), True),
    ("MAP", retrieval.RetrievalMAP(), True),
    ("Precision@4", retrieval.RetrievalPrecision(top_k=4), True),
    ("Precision@20", retrieval.RetrievalPrecision(top_k=20), True),
    ("Recall@4", retrieval.RetrievalRecall(top_k=4), True),
    ("Success@2", retrieval.RetrievalHitRate(top_k=2), True),
    ("R-Precision", retrieval.RetrievalRPrecision(), True),
]


@pytest.mark.parametrize(("name", "theirs", "binary"), SHARED, ids=lambda value: str(value))
def test_measures_match_torchmetrics_without_ties(name, theirs, binary):
    preds, target, indexes = make_data(tied=False)
    target = (target > 0).long() if binary else target
    theirs.update(preds, target, indexes)
    ours = TieAwareRetrieval(name, ["expected", "worst", "best"])
    ours.update(preds, target, indexes)
    value = theirs.compute().item()
    assert 0.1 < value < 1
    assert [v.item() for v in ours.compute().values()] == pytest.approx([value] * 3, abs=1e-6)


def test_differences_from_torchmetrics():
    """Its MAP@k divides by documents found; 1.8 ignores relevant documents scored 0 or less."""
    indexes, target = torch.zeros(4, dtype=torch.long), torch.tensor([1, 0, 1, 1])
    preds = torch.tensor([0.4, 0.3, 0.2, 0.1])
    assert retrieval.RetrievalMAP(top_k=2)(preds, target, indexes) == 1
    assert TieAwareRetrieval("MAP@2", "expected")(preds, target, indexes).item() == (
        pytest.approx(1 / 3)
    )
    below = preds - 1
    assert retrieval.RetrievalMRR()(below, target, indexes) == (0 if VERSION >= (1, 8) else 1)
    assert TieAwareRetrieval("MRR", "expected")(below, target, indexes) == 1
    assert retrieval.RetrievalNormalizedDCG()(below, target, indexes) == (
        retrieval.RetrievalNormalizedDCG()(preds, target, indexes)
    )


def test_float64_scores_are_not_cast():
    """torchmetrics casts to float32, in which these scores tie."""
    preds = torch.tensor([1.0, 1.0 + 1e-12], dtype=torch.float64)
    target, indexes = torch.tensor([0, 1]), torch.zeros(2, dtype=torch.long)
    assert TieAwareRetrieval("MRR", "expected")(preds, target, indexes) == 1
    assert TieAwareRetrieval("MRR", "expected")(preds.float(), target, indexes) == 0.75


class TestMetricInterface:
    def test_forward_returns_batch_values_and_accumulates(self):
        data = make_data()
        metric = TieAwareRetrieval(MEASURES)
        for batch in make_batches(*data):
            assert_values(metric(*batch), reference(*batch).flat())
        assert_values(metric.compute(), reference(*data).flat())

    def test_reset(self):
        data = make_data()
        metric = update_in_batches(TieAwareRetrieval(MEASURES), make_data(seed=5))
        metric.reset()
        assert_values(update_in_batches(metric, data).compute(), reference(*data).flat())

    @pytest.mark.skipif(VERSION < (1, 6), reason="torchmetrics merges states from 1.6 on")
    def test_merge_state(self):
        data = make_data()
        parts = [TieAwareRetrieval(MEASURES) for _ in range(2)]
        for i, batch in enumerate(make_batches(*data)):
            parts[i % 2].update(*batch)
        parts[0].merge_state(parts[1])
        assert_values(parts[0].compute(), reference(*data).flat())

    def test_copy_through_pickle_and_state_dict(self):
        import pickle

        data = make_data()
        metric = update_in_batches(TieAwareRetrieval(MEASURES), data)
        assert_values(pickle.loads(pickle.dumps(metric)).compute(), reference(*data).flat())
        metric.persistent(True)
        loaded = TieAwareRetrieval(MEASURES)
        loaded.load_state_dict(metric.state_dict())
        loaded._update_count = 1
        assert_values(loaded.compute(), reference(*data).flat())

    def test_metric_collection(self):
        data = make_data()
        metrics = MetricCollection(
            {
                "tied": TieAwareRetrieval(["MRR", "nDCG@3"], ["expected", "range"]),
                "theirs": retrieval.RetrievalMRR(),
            },
            prefix="val_",
        )
        for preds, target, indexes in make_batches(*data):
            metrics.update(preds, (target > 0).long(), indexes=indexes)
        values = metrics.compute()
        expected = reference(data[0], data[1] > 0, data[2], ["MRR", "nDCG@3"])
        assert values["val_nDCG@3_range"].item() == pytest.approx(expected["nDCG@3"].range)
        assert values["val_theirs"] != values["val_MRR"]

    @pytest.mark.parametrize("other", [{"empty_target_action": "skip"}, {"ignore_index": 7}])
    def test_metrics_with_other_options_are_not_merged_in_a_collection(self, other):
        """A collection updates only one of the metrics with equal states after the first batch."""
        metrics = MetricCollection(
            {
                "one": TieAwareRetrieval("MRR", "expected"),
                "other": TieAwareRetrieval("MRR", "expected", **other),
            }
        )
        zeros = torch.zeros(2, dtype=torch.long)
        metrics.update(torch.tensor([0.5, 0.25]), torch.tensor([1, 0]), indexes=zeros)
        metrics.update(torch.tensor([0.5, 0.25]), torch.tensor([7, 0]), indexes=zeros + 1)
        metrics.update(torch.tensor([0.5, 0.25]), torch.tensor([0, 0]), indexes=zeros + 2)
        values = {name: value.item() for name, value in metrics.compute().items()}
        expected = {"one": 2 / 3, "other": 1.0 if "empty_target_action" in other else 1 / 3}
        assert values == pytest.approx(expected)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
    def test_casts_of_the_model_do_not_change_values(self, dtype):
        data = make_data()
        module = torch.nn.Module()
        module.metric = TieAwareRetrieval(MEASURES)
        module.add_module("layer", torch.nn.Linear(2, 2))
        parts = list(make_batches(*data))
        for i, batch in enumerate(parts):
            if i == 2:
                before = module.metric.compute()
                module.to(dtype)
                assert module.metric.compute() == before
                module.bfloat16()
                module.metric.set_dtype(dtype)
                assert module.metric.compute() == before
            module.metric.update(*batch)
        assert module.layer.weight.dtype == torch.bfloat16
        assert_values(module.metric.compute(), reference(*data).flat())

    def test_metric_moves_to_a_device(self):
        metric = TieAwareRetrieval("MRR").to("meta")
        assert metric.device.type == "meta"
        metric = TieAwareRetrieval("MRR", "expected")
        value = metric(torch.ones(2), torch.ones(2), torch.zeros(2, dtype=torch.long))
        assert value.device == metric.device

    def test_repr_names_the_measures(self):
        assert repr(TieAwareRetrieval(["ndcg_cut_10", "MRR"])) == "TieAwareRetrieval(nDCG@10, MRR)"


def run_process(rank, folder, data):
    """Evaluate the queries of one of two processes; the second has none at first."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
    )
    metric = TieAwareRetrieval(MEASURES)
    single = TieAwareRetrieval("MRR", "expected", numbering="batch")
    results = {}
    parts = list(make_batches(*data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compute before update
        if rank == 0:
            metric.update(*parts[0])
        results["first"] = metric.compute()
        for part in parts[1:][rank::2]:
            metric.update(*part)
        results["all"] = metric.compute()
        results["again"] = metric.compute()
        single.update(torch.ones(2), torch.tensor([1, 0]), torch.zeros(2, dtype=torch.long))
        results["single"] = single.compute()
        metric.reset()
        metric.update(*parts[0])
        try:
            metric.compute()
        except dh.InputError as error:
            results["twice"] = str(error)
    torch.save(results, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_match_one(tmp_path):
    data = make_data()
    torch.multiprocessing.spawn(run_process, (str(tmp_path), data), nprocs=2)
    alone = update_in_batches(TieAwareRetrieval(MEASURES), data).compute()
    first = next(iter(make_batches(*data)))
    for rank in range(2):
        results = torch.load(tmp_path / f"{rank}.pt")
        assert results["all"] == results["again"] == alone
        assert_values(results["first"], reference(*first).flat())
        assert results["single"] == 0.75
        assert "more than one call" in results["twice"]


@pytest.mark.parametrize("precision", ["bf16-true", "32-true"])
def test_lightning_training(precision, tmp_path):
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.callbacks import EarlyStopping

    torch.manual_seed(0)
    features = torch.randn(12, 8, 4)
    grades = (features.sum(-1) + torch.randn(12, 8) > 1).long()
    indexes = torch.arange(12)[:, None].expand(-1, 8)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(features, grades, indexes), batch_size=5
    )

    class Ranker(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
            self.metric = TieAwareRetrieval(["nDCG@3", "MRR"])
            self.loss_metric = TieAwareRetrieval("nDCG@3", "expected")
            self.batches = []

        def scores(self, batch):
            return self.layer(batch[0].to(self.layer.weight.dtype)).squeeze(-1)

        def training_step(self, batch, _):
            labels = batch[1].to(self.layer.weight.dtype)
            return torch.nn.functional.binary_cross_entropy_with_logits(self.scores(batch), labels)

        def validation_step(self, batch, _):
            scores = self.scores(batch)
            self.batches.append((scores.clone(), batch[1], batch[2]))
            self.metric.update(scores, batch[1], indexes=batch[2])
            self.loss_metric.update(scores, batch[1], indexes=batch[2])
            self.log("ndcg", self.loss_metric)

        def on_validation_epoch_end(self):
            self.log_dict(self.metric.compute())
            self.metric.reset()

        def on_validation_epoch_start(self):
            self.batches = []

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.5)

    model = Ranker()
    trainer = Trainer(
        max_epochs=3,
        accelerator="cpu",
        precision=precision,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
        callbacks=[EarlyStopping("ndcg", mode="max", patience=3)],
    )
    trainer.fit(model, loader, loader)
    assert trainer.current_epoch == 3
    scores, target, _ = (torch.cat(parts) for parts in zip(*model.batches, strict=True))
    assert (scores.dtype == torch.bfloat16) == (precision == "bf16-true")
    expected = quiet(dh.evaluate_arrays)(
        target, scores.float(), ["nDCG@3", "MRR"], queries="all"
    ).flat()
    logged = {name: value.item() for name, value in trainer.callback_metrics.items()}
    assert logged.pop("ndcg") == pytest.approx(expected["nDCG@3"], abs=1e-14)
    assert logged == pytest.approx(expected, abs=1e-14)


ZEROS = torch.zeros(2, dtype=torch.long)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TieAwareRetrieval("ndgc@10"), "did you mean nDCG"),
        (lambda: TieAwareRetrieval("MRR", "mean"), "views must be some of expected"),
        (lambda: TieAwareRetrieval("MRR", numbering="mine"), "numbering run or batch, not .*mine"),
        (
            lambda: TieAwareRetrieval("MRR", empty_target_action="zero"),
            "empty_target_action must be neg, pos, skip or error.*zero",
        ),
        (lambda: TieAwareRetrieval("MRR", ignore_index="x"), "ignore_index a whole number"),
        (lambda: TieAwareRetrieval("ERR@10"), "ERR.*highest grade of all queries"),
        (lambda: TieAwareRetrieval("RBP(gain='scaled')"), "RBP.*highest grade of all queries"),
        (
            lambda: TieAwareRetrieval("MRR").update(torch.ones(2), ZEROS, ZEROS[:1]),
            r"of one shape.* of .*2.*2.*1",
        ),
        (
            lambda: TieAwareRetrieval("MRR").update(torch.ones(2), ZEROS, torch.zeros(2)),
            "indexes of type torch.long, not .*torch.float32 of",
        ),
        (lambda: TieAwareRetrieval("MRR").update([1.0], [1], [0]), "must be tensors"),
        (
            lambda: TieAwareRetrieval("MRR").update(ZEROS[:0], ZEROS[:0], ZEROS[:0]),
            "empty",
        ),
        (
            lambda: TieAwareRetrieval("MRR").update(torch.tensor([1, math.nan]), ZEROS, ZEROS + 7),
            "query '7', candidate 1: the score is NaN",
        ),
        (
            lambda: TieAwareRetrieval("MRR", empty_target_action="error").update(
                torch.ones(2), ZEROS, ZEROS + 7
            ),
            "query 7 has no relevant document",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(dh.InputError, match=message):
        call()


def test_a_query_in_two_calls_is_refused():
    metric = TieAwareRetrieval("MRR", "expected")
    for _ in range(2):
        metric.update(torch.ones(2), torch.tensor([1, 0]), ZEROS + 4)
    with pytest.raises(dh.InputError, match=r"1 query .* query 4.*numbering='batch'"):
        metric.compute()
    metric = TieAwareRetrieval("MRR", "expected", numbering="batch")
    for _ in range(2):
        metric.update(torch.ones(2), torch.tensor([1, 0]), ZEROS + 4)
    assert metric.compute() == 0.75


def test_refused_batch_does_not_change_states():
    metric = TieAwareRetrieval("MRR")
    before = {name: str(value) for name, value in metric.metric_state.items()}
    with pytest.raises(dh.InputError):
        metric.update(torch.tensor([1, math.nan]), ZEROS, ZEROS)
    assert {name: str(value) for name, value in metric.metric_state.items()} == before


def test_missing_or_unsupported_torchmetrics_is_reported(monkeypatch):
    import importlib

    from deadheat._internal import packages
    from deadheat.integrations import torchmetrics as ours

    def raise_not_found(package):
        raise packages.PackageNotFoundError(package)

    needed = ['torchmetrics<2,>=1.4; extra == "torchmetrics"']
    monkeypatch.setattr(packages, "requires", lambda _: needed)
    monkeypatch.setattr(packages, "version", raise_not_found)
    with pytest.raises(dh.MissingPackageError, match=r"'torchmetrics': .*\[torchmetrics\]"):
        importlib.reload(ours)
    monkeypatch.setattr(packages, "version", lambda _: "0.11.4")
    with pytest.raises(dh.InputError, match=r"supports torchmetrics .*, but 0.11.4 is installed"):
        importlib.reload(ours)
