"""Numbers that people write in their own way, as the number to write."""

from __future__ import annotations

import math
import re
from decimal import Decimal

_AROUND = r"[^\d.,'\-]{0,5}"
"""What may stand around a number: a sign or a code of a currency, a unit."""
_GROUPS = r"\d{1,3}(?:[ ,'\u00a0\u2019]\d{3})+|\d+"
_POINTED = r"\d{1,3}(?:[ .'\u00a0\u2019]\d{3})+|\d+"
_POINT = re.compile(rf"{_AROUND}({_GROUPS})(\.\d+)?{_AROUND}", re.ASCII)
_COMMA = re.compile(rf"{_AROUND}({_POINTED}),(\d+){_AROUND}", re.ASCII)
_TIME = re.compile(
    r"(?:\d+(?:\.\d+)? *(?:-|to|\u2013) *)?(\d+(?:\.\d+)?) *(days?|d|weeks?|wks?|w)", re.IGNORECASE
)
_DAYS = {"d": 1, "w": 7}
_SCALED = re.compile(
    r"(.*\d)\s*(M|m|(?i:k|thousand|mn|mio|million|bn|billion))(?![A-Za-z\u00b2\u00b3])\.?(.*)",
    re.ASCII,
)
_STEPS = {"k": 3, "t": 3, "m": 6, "b": 9}
"""Powers of ten, by the first letter; a small m alone may be a thousand or a million."""


def number_fix(text: str, is_days: bool) -> str:
    """What to write for a number, or for whole days, in its own way; empty where nobody can tell.

    >>> number_fix("520,00", False), number_fix("16 weeks", True), number_fix("soon", True)
    ('write 520.00', 'write 112: it is in whole days', 'write whole days, such as 84')
    >>> number_fix("130", False)  # Well written, whatever else is wrong with it.
    ''
    """
    meant = meant_days(text) if is_days else meant_number(text)
    meant = "" if meant == text.strip() else meant
    if not is_days:
        return f"write {meant}" if meant else ""
    return f"write {meant}: it is in whole days" if meant else "write whole days, such as 84"


def meant_number(text: str) -> str:
    """The number to write for one with a sign, with groups of digits or with a decimal comma.

    Of both readings of a comma before three digits the one of a thousand is taken. Empty for what
    is none.

    >>> meant_number("520,00"), meant_number("1.520,50"), meant_number("$1,520.50")
    ('520.00', '1520.50', '1520.5')
    >>> meant_number("1,520"), meant_number("1 520"), meant_number("EUR 0,52"), meant_number("few")
    ('1520', '1520', '0.52', '')
    >>> meant_number("9k"), meant_number("$36.5K"), meant_number("1,5 Mio EUR"), meant_number("2m")
    ('9000', '36500', '1500000', '')
    """
    if scaled := _SCALED.fullmatch(text.strip()):
        own = "" if scaled[2] == "m" else meant_number(f"{scaled[1]}{scaled[3]}")
        step = _STEPS[scaled[2][0].lower()]
        return f"{(Decimal(own) * 10**step).normalize():f}" if own else ""
    found = _POINT.fullmatch(text.strip())
    if found:
        return _digits(found[1]) + (found[2] or "").rstrip("0").rstrip(".")
    found = _COMMA.fullmatch(text.strip())
    return f"{_digits(found[1])}.{found[2]}" if found else ""


_TWO_READINGS = re.compile(r"([1-9]\d{0,2})[.,](\d{3})", re.ASCII)
_DECIMAL_COMMA = re.compile(r"(\d{1,3}(?:\.\d{3})+|\d+),(\d+)|(\d{1,3}(?:\.\d{3}){2,})", re.ASCII)


def with_point(text: str) -> str:
    """A number of a file with decimal commas as one with a point; other text as it is.

    A ``ValueError`` says what to write where three digits behind one mark may be thousands.

    >>> with_point("1190,50"), with_point("1.190,5"), with_point("0,125"), with_point("1190.5")
    ('1190.50', '1190.5', '0.125', '1190.5')
    >>> with_point("1.190")
    Traceback (most recent call last):
    ValueError: write 1190, or 1,19 for the smaller number
    """
    if two := _TWO_READINGS.fullmatch(text):
        small = f"{two[1]},{two[2]}".rstrip("0").rstrip(",")
        small = small if _TWO_READINGS.fullmatch(small) is None else f"{small}0"
        raise ValueError(f"write {two[1]}{two[2]}, or {small} for the smaller number")
    found = _DECIMAL_COMMA.fullmatch(text)
    if found is None:
        return text
    return f"{_digits(found[1])}.{found[2]}" if found[1] else _digits(found[3])


def _digits(text: str) -> str:
    """Digits without what groups them."""
    return re.sub(r"\D", "", text)


def meant_days(text: str) -> str:
    """Whole days for a time in days or weeks, of a range the longest; empty for what is none.

    >>> meant_days("16 weeks"), meant_days("12-16 weeks"), meant_days("90d"), meant_days("1.5 w")
    ('112', '112', '90', '11')
    >>> meant_days("4 months"), meant_days("16.5")
    ('', '17')
    """
    try:
        return str(math.ceil(float(text))) if float(text) >= 0 else ""
    except (ValueError, OverflowError):
        found = _TIME.fullmatch(text.strip())
    return str(math.ceil(float(found[1]) * _DAYS[found[2][0].lower()])) if found else ""
