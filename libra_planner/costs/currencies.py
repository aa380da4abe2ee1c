"""Currencies that money is quoted in: their codes (ISO 4217), and rates that are plausible."""

from __future__ import annotations

import math
from collections.abc import Mapping

from libra_planner.errors import closest, shown

_CODES = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN
BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL
GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF
KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN
MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH
UGX USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
"""
CODES = frozenset(_CODES.split())
"""Currencies in use by their codes of three letters (ISO 4217, list one, without funds, metals
and codes for tests)."""

_NAMES = {
    "RMB": "CNY",
    "YUAN": "CNY",
    "YEN": "JPY",
    "POUND": "GBP",
    "STERLING": "GBP",
    "UKP": "GBP",
}
"""What people write for a code that looks like none of its letters."""
_SIGNS = {"$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₩": "KRW", "₹": "INR"}


def currency_code(value: str) -> str:
    """A code that a currency has; a ``ValueError`` names what may have been meant.

    Examples
    --------
    >>> currency_code("EUR")
    'EUR'
    >>> currency_code("EURO")
    Traceback (most recent call last):
    ValueError: got 'EURO', expected a currency by its three letters (ISO 4217); did you mean EUR?
    >>> currency_code("UKP")
    Traceback (most recent call last):
    ValueError: got 'UKP', expected a currency by its three letters (ISO 4217); did you mean GBP?
    >>> currency_code("GPB")
    Traceback (most recent call last):
    ValueError: got 'GPB', expected a currency by its three letters (ISO 4217); did you mean GBP?
    """
    if value in CODES:
        return value
    named = (_SIGNS | _NAMES).get(value.upper(), value.upper())
    swapped = (code for code in sorted(CODES) if sorted(code) == sorted(named))
    named = next(swapped, named)  # Letters that changed places: GPB is GBP.
    near = f"did you mean {named}?" if named in CODES else closest(named, sorted(CODES))
    fix = near if near.startswith("did") else "write e.g. EUR"
    raise ValueError(
        f"got {shown(value)}, expected a currency by its three letters (ISO 4217); {fix}"
    )


RATES: Mapping[str, tuple[float, float]] = {
    "AUD": (0.55, 1.15),
    "CAD": (0.65, 1.12),
    "CHF": (0.90, 1.40),
    "CNY": (0.11, 0.19),
    "DKK": (0.12, 0.20),
    "EUR": (0.94, 1.60),
    "GBP": (1.05, 1.85),
    "HKD": (0.11, 0.15),
    "INR": (0.008, 0.022),
    "JPY": (0.005, 0.015),
    "KRW": (0.0005, 0.0013),
    "NOK": (0.07, 0.20),
    "SEK": (0.07, 0.18),
    "SGD": (0.62, 0.92),
    "TWD": (0.024, 0.042),
}
"""USD for one unit of a currency, beyond which a rate is doubted. The annual averages of 2012 to
2023 but 2016 (Federal Reserve, release G.5A) lie inside by a tenth or more; inverses lie outside,
but for rates near a dollar. Rates of other years may lie beyond: that these do not is assumed."""


def rate_doubt(currency: str, rate: float) -> str:
    """Why a rate of exchange may be a slip; empty for one that is plausible, or not known here.

    Parameters
    ----------
    currency : its code.
    rate : what one unit of it is said to be worth in USD.

    Examples
    --------
    >>> rate_doubt("EUR", 1.08), rate_doubt("BRL", 7.0)
    ('', '')
    >>> rate_doubt("EUR", 11.0)
    'EUR is at 11 USD, outside 0.94 to 1.6 (assumed: a tenth around the yearly averages since 2012)'
    """
    low, high = RATES.get(currency.upper(), (0.0, math.inf))
    if low <= rate <= high:
        return ""
    why = "(assumed: a tenth around the yearly averages since 2012)"
    text = f"{currency} is at {rate:g} USD, outside {low:g} to {high:g} {why}"
    inverse = 1 / rate
    return (
        f"{text}; 1 / {rate:g} is {inverse:.4g}: it may be upside down"
        if low <= inverse <= high
        else text
    )
