"""From judgements and a run, or a model and a dataset, to effect, cause and remedy of ties."""

from deadheat.lab.check.checking import SAMPLES as SAMPLES, check as check
