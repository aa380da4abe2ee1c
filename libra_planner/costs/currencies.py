"""Codes of currencies (ISO 4217), as money is quoted in them."""

from __future__ import annotations

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

_NAMES = {"RMB": "CNY", "YUAN": "CNY", "YEN": "JPY", "POUND": "GBP", "STERLING": "GBP"}
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
