"""From results to what people read: figures, pages, sentences."""
