"""Find effect, cause and remedy of ties from judgements and a run, or a model and a dataset."""

from deadheat.lab.check.checking import SAMPLES as SAMPLES, check as check
