"""From results to what people read."""
