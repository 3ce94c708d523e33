"""Experiments with models: datasets, models, and studies that run models on datasets."""
