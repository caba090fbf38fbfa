"""The golden set: what Lamina answers over a fixed home, recorded by something that knows nothing of its inside."""
