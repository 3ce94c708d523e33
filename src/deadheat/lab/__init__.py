"""Experiments with models: datasets, models, and the studies that run models on datasets."""
