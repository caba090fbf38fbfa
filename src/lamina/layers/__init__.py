"""The memory layers, cheapest first: each one runs so that the next, more expensive one is needed less often.

Layer packages never import each other; `lamina.turn` runs them in order. Each package's docstring is its summary card.
"""
