"""An amount: what calls used, in tokens by price class and in dollars at list price.

This module decides how amounts of mixed prices become one number, so that all views compare the same thing: dollars under
`lamina.billing` list, units under subscription. A unit is one uncached input token; other tokens count by the usual ratio of their
price to it, whatever the model. Units of parts, days and models therefore add up, and none is ever unknown.
"""

from __future__ import annotations

import msgspec

from ..core.settings import Billing
from ..core.usage import Usage
from .models import CostParts, cost


class Amount(msgspec.Struct, frozen=True):
    usage: Usage = Usage()
    usd: float | None = 0.0  # None: a price is unknown

    def __add__(self, other: Amount) -> Amount:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Amount(self.usage + other.usage, usd)

    def number(self, billing: Billing) -> float | None:
        """Return the number that stands for the amount; None if the price is unknown."""
        return self.usd if billing == "list" else units_of(self.usage)


def units_of(usage: Usage) -> float:
    """Return tokens of mixed prices as one number: counted in uncached input tokens."""
    return cost("", usage).units


def unit_parts(usage: Usage) -> CostParts:
    """Return the units of cache reads, of everything else that was sent, and of output."""
    written = Usage(usage.input_tokens, 0, usage.cache_write, usage.cache_write_1h)
    cached, output = Usage(cache_read=usage.cache_read), Usage(output_tokens=usage.output_tokens)
    return CostParts(units_of(cached), units_of(written), units_of(output))
