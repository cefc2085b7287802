"""One framework per module, thin, and loaded only by whoever asks for it."""
