"""Trustworthy evaluation of retrieval systems whose scores tie."""
