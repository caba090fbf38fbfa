RATES = {'de': 19, 'fr': 20}


def rate(country: str) -> int:
    return RATES[country]


def total(cents: int, country: str) -> int:
    return cents * (100 + rate(country)) // 100
