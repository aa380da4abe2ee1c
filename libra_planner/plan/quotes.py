"""A user's quotes: a CSV or YAML file, merged over price books and catalogues (C22)."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from libra_planner.costs.currencies import currency_code
from libra_planner.costs.prices import PriceBook
from libra_planner.costs.quotes import (
    FARTHEST_OF_LARGEST,
    TAX,
    TIER_PARTS,
    Listed,
    Quote,
    cheapest,
    listed_part,
    missing_part_fix,
    quote_warnings,
    unpriced_note,
    unused_items,
    unused_note,
)
from libra_planner.errors import (
    Fault,
    Place,
    SpecError,
    closest,
    located,
    merged_faults,
    refuse,
    shown,
)
from libra_planner.files import near_path
from libra_planner.plan import npus
from libra_planner.reading import bundled
from libra_planner.reading.document import Document, Key, read_document, scalar
from libra_planner.reading.meant_numbers import number_fix
from libra_planner.reading.models import FileModel, Model, PositivePrice, Text, validated
from libra_planner.reading.overlays import read_catalogue
from libra_planner.reading.tables import is_csv, read_table

REQUIRED = ("item", "price", "seller", "date")
OPTIONAL = ("unit", "currency", "rate", "valid_until", "note")
OFFERED = (
    "part_number",
    "lead_time_days",
    "support",
    "discount",
    "moq",
    "payment_terms",
    "incoterm",
)
CHOSEN = "chosen"
EACH, PER_GBPS, PERCENT, LUMP = "each", "per GB/s", "percent", "lump"
_NUMBERS = ("price", "rate", "lead_time_days", "support", "discount", "moq")
_DAYS = "lead_time_days"
_FIXES = {"discount": "write percent off the price, such as 8", "moq": "write whole units"}
_ROW = re.compile(r"quotes\.(\d+)\.?")


def day(value: Any) -> str:
    """A day, YYYY-MM-DD; a ``ValueError`` says what is wrong with it."""
    try:
        return datetime.date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise ValueError(f"got {shown(value)}, expected a date; write e.g. 2026-11-30") from None


Date: TypeAlias = Annotated[
    str, BeforeValidator(day), WithJsonSchema({"type": "string", "format": "date"})
]
"""A day, YYYY-MM-DD."""


Currency: TypeAlias = Annotated[Text, AfterValidator(currency_code)]
"""A currency by its code."""


class QuoteSpec(Model):
    """What a seller asks for one item; the columns of a CSV file have the same names.

    Parameters
    ----------
    item : A part of the parts catalogue, an NPU, a part of a tier, such as pod.nic, or tax; with
        the unit lump any other name, such as freight.
    price : Price of one unit; of a tier's part per GB/s; of tax in percent of everything; of a lump
        sum all of it.
    seller : Who asks the price.
    date : Day of the quote, such as 2026-11-02.
    unit : each (default), per GB/s for a part of a tier, percent for tax, or lump for money that a
        bill counts once, such as freight.
    currency : USD (default); another one needs a rate.
    rate : What one unit of the currency is worth in USD.
    valid_until : Last day on which the offer holds, such as 2026-12-31; without it the offer does
        not end.
    note : What else results print beside it, such as offer 4711.
    part_number : Number of the part at the seller.
    n_lead_days : Days from order to delivery.
    support : Price of support of one unit for all years of use, in the currency; a line of its own
        in bills.
    discount : Percent off the price, which the order gets; none off support.
    moq : Fewest units that the seller sells at this price; where fewer are bought, the next offer
        counts.
    payment_terms : When the seller is paid, such as 30 days net; printed as it stands.
    incoterm : Where delivery ends, such as DAP Austin; printed as it stands.
    chosen : yes for the quote that counts of several for one item, whatever the others ask.
    """

    item: Text
    price: PositivePrice
    seller: Text
    date: Date
    unit: Literal["each", "per GB/s", "percent", "lump"] = "each"
    currency: Currency = "USD"
    rate: Annotated[float, Field(gt=0, le=1e6)] | None = None
    valid_until: Date | None = None
    note: Text | None = None
    part_number: Text | None = None
    n_lead_days: Annotated[int, Field(ge=0, le=10_000)] | None = Field(None, alias="lead_time_days")
    support: PositivePrice | None = None
    discount: Annotated[float, Field(gt=0, lt=100)] | None = None
    moq: Annotated[int, Field(ge=1, le=10**9)] | None = None
    payment_terms: Text | None = None
    incoterm: Text | None = None
    chosen: Literal["yes", "no"] = "no"

    @model_validator(mode="after")
    def _can_be_counted(self) -> QuoteSpec:
        if self.currency != "USD" and self.rate is None:
            fix = f"say in the column rate what one {self.currency} is worth in USD"
            raise ValueError(f"got {self.currency} without a rate; {fix}")
        if self.currency == "USD" and self.rate not in (None, 1):
            raise ValueError(f"got the rate {self.rate:g} of USD, expected none")
        if self.valid_until is not None and self.valid_until < self.date:
            expected = f"expected a day from the quote's own on, {self.date}"
            raise ValueError(f"got valid_until {self.valid_until}, {expected}")
        return self


class QuotesSpec(FileModel):
    """A file of quotes.

    Parameters
    ----------
    quotes : What sellers ask; of several for one item the cheapest that holds counts, unless one is
        chosen.
    """

    kind: Literal["quotes"]
    quotes: Annotated[list[QuoteSpec], Field(min_length=1, max_length=10_000)]


Known: TypeAlias = Mapping[str, Listed | None]
"""What can be quoted, with its listed price where it has one."""


def today() -> str:
    """The day of a run; ``SOURCE_DATE_EPOCH`` sets it, so that a report can be made again."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    if seconds.isdecimal():
        return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).date().isoformat()
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def load_quotes(
    name: str, known: Known, beside: Path | None = None, as_of: str | None = None
) -> tuple[Quote, ...]:
    """Read quotes; of several sellers' for one item the cheapest that holds, with the others.

    Parameters
    ----------
    name : path of a CSV or YAML file.
    known : what can be quoted, as :func:`known_items` has it.
    beside : folder that the path is relative to.
    as_of : the day on which they must hold, YYYY-MM-DD, or are refused; ``None`` for
        :func:`today`, on which they are used with a warning.

    Raises
    ------
    SpecError
        With every fault found, each with its line.
    """
    path, unpriced = Path(near_path(str(Path(beside or "", name)))), list[str]()
    is_table = is_csv(path, REQUIRED[:2])
    document = _table(path, unpriced) if is_table else read_document(path)
    _refuse_plan(document, path)
    faults, specs = [*_item_faults(document, known), *_repeated(document, known)], []
    try:
        specs = validated(QuotesSpec, document).quotes
    except SpecError as error:
        rows = _rows(document)
        faults += (_of_a_row(one, rows) for one in error.faults) if is_table else error.faults
    on, offers = as_of or today(), dict[str, dict[str, Quote]]()
    for i, spec in enumerate(specs):
        place, item = document.place(("quotes", i)), _named(spec.item, known)
        faults += (fault.located(place) for fault in _faults(spec, is_known=item in known))
        found, seller = offers.setdefault(item, {}), "" if item == TAX else spec.seller.casefold()
        one = _quote(spec, item, place)
        found[seller] = replace(one, day=on, listed=known.get(item), unpriced=tuple(unpriced))
    faults += _between_rows(specs, document, known)
    chosen = tuple(cheapest([*found.values()]) for found in offers.values())
    faults += (_expired(one) for one in chosen if as_of is not None and one.is_over)
    refuse(merged_faults(sorted(faults, key=lambda fault: (fault.place and fault.place.line) or 0)))
    return chosen


def _refuse_plan(document: Document, path: Path) -> None:
    """Refuse a plan in one line, which would have a fault for every key."""
    found = document.value
    if isinstance(found, dict) and "kind" not in found and {"workload", "fabric"} & {*found}:
        fix = "give a CSV file, or YAML with kind: quotes"
        raise SpecError.at(str(path), "got a plan", "expected quotes", fix)


def _of_a_row(fault: Fault, rows: list[Any]) -> Fault:
    """A fault of the document as one of a CSV file: its line, and the name of the column.

    Money with a sign or with commas, and weeks, are told as the number to write.
    """
    row = _ROW.match(fault.path)
    fault = replace(fault, path=_ROW.sub("", fault.path))
    cell = rows[int(row[1])].get(fault.path) if row else None
    if fault.path in _NUMBERS and cell is not None:
        text = f"{cell:.15g}" if isinstance(cell, float) else str(cell)
        whole = fault.fix if fault.path == "moq" else ""  # Such as 9000 for 9e3.
        fix = number_fix(text, fault.path == _DAYS) or whole or _FIXES.get(fault.path, fault.fix)
        return replace(fault, fix=fix)
    empty = replace(fault, expected="expected a value", fix="fill it in")
    return empty if fault.got == "got nothing" else fault


def _rows(document: Document) -> list[Any]:
    value = document.value.get("quotes") if isinstance(document.value, dict) else None
    return value if isinstance(value, list) else []


def _repeated(document: Document, known: Known) -> Iterator[Fault]:
    """Items that a seller quotes twice, whatever else is wrong with the file."""
    first: dict[tuple[str, str], Place] = {}
    for i, row in enumerate(_rows(document)):
        whole = row if isinstance(row, dict) else {}
        item, seller = whole.get("item"), whole.get("seller")
        if not isinstance(item, str) or not isinstance(seller, str):
            continue
        place, whom = document.place(("quotes", i)), "" if item == TAX else seller.casefold()
        before = first.setdefault((_named(item, known), whom), place)
        if before is not place:
            of = f" of {seller}" if whom else ""
            got = f"got {item}{of} twice (first on line {before.line})"
            expected = "expected one quote of each seller" if whom else "expected one of it"
            yield Fault(got, expected, "remove one", "item", place)


def _between_rows(specs: Sequence[QuoteSpec], document: Document, known: Known) -> Iterator[Fault]:
    """Currencies of two rates, and items of which two quotes are chosen."""
    rates: dict[str, tuple[float, Place]] = {}
    chosen: dict[str, Place] = {}
    for i, spec in enumerate(specs):
        place, item = document.place(("quotes", i)), _named(spec.item, known)
        if spec.rate is not None:
            rate, before = rates.setdefault(spec.currency, (spec.rate, place))
            if rate != spec.rate:
                got = f"got {spec.currency} at {spec.rate:g} USD, on line {before.line} at {rate:g}"
                yield Fault(got, "expected one rate of a currency", "use one", "rate", place)
        if spec.chosen == "yes" and (first := chosen.setdefault(item, place)) is not place:
            got = f"got two quotes of {item} that are chosen (first on line {first.line})"
            yield Fault(got, "expected at most one", "choose one", CHOSEN, place)


def _expired(one: Quote) -> Fault:
    """What is wrong with a quote that no longer holds, and that no other stands in for."""
    got = f"got a quote of {one.item} that was valid until {one.valid_until}"
    fix = "ask for a new one, or remove it"
    return Fault(got, f"expected one that holds on {one.day}", fix, "valid_until", one.place)


def _item_faults(document: Document, known: Known) -> list[Fault]:
    """Items that are not known, whatever else is wrong with the file."""
    faults = []
    tiers = [name for name in known if "." in name]
    for i, row in enumerate(_rows(document)):
        item = row.get("item") if isinstance(row, dict) and row.get("unit") != LUMP else None
        if isinstance(item, str) and _named(item, known) not in known:
            if not tiers and _tier_part(item):
                continue  # Nobody says which price book is meant.
            near = closest(item, tiers if "." in item else known)
            expected = "expected a part of the catalogue, an NPU, or a part of a tier of the book"
            usual = TAX if row.get("unit") == PERCENT else f"e.g. {[*tiers, 'pod.nic'][0]}"
            fix = near if near.startswith("did") else f"write {usual}, or a name of the catalogue"
            fix += "" if _tier_part(item) else missing_part_fix(fix, item)
            fix += f"; money that is counted once, such as freight, has the unit {LUMP}"
            place = document.place(("quotes", i, "item"))
            faults.append(Fault(f"got {item!r}", expected, fix, "item", place))
    return faults


def _named(item: str, known: Known) -> str:
    """An item by its own name: NPUs have several."""
    return item if item in known else npus.canonical_name(item, None, None)


def _table(path: Path, unpriced: list[str]) -> Document:
    """A CSV file as the document that a YAML file of the same quotes is.

    Rows that nobody has filled in yet are left out; their items go to ``unpriced``.
    """
    known = (*OPTIONAL, *OFFERED, CHOSEN)
    table = read_table(path, required=REQUIRED, optional=known, semicolons=True)
    table.check("quotes")
    table = table.with_points(_NUMBERS, plain=("rate",))
    document = Document(str(path), None)
    rows: list[dict[str, Any]] = []
    for row in range(table.n_rows):
        cells = {name: cells[row].strip() for name, cells in table.cells.items()}
        if table.n_rows > 1 and cells["item"] and not any(map(cells.get, REQUIRED[1:])):
            unpriced.append(cells["item"])
            continue
        place = Place(str(path), int(table.lines[row]))
        keys: list[Key] = [(), *((name,) for name in cells)]
        document.places |= {("quotes", len(rows), *key): place for key in keys}
        rows.append({k: scalar(x) if k in _NUMBERS else x for k, x in cells.items() if x})
    if unpriced and not rows:
        got = f"got {len(unpriced)} rows without a price, such as {unpriced[0]}"
        fix = "fill in price, seller and date of one"
        raise SpecError.at(str(path), got, "expected a price in one row or more", fix)
    document.value = {"kind": "quotes", "quotes": rows}
    return document


def _quote(spec: QuoteSpec, item: str, place: Place) -> Quote:
    file, off = os.path.basename(place.file), Decimal(repr(spec.discount or 0)) / 100
    price = float(_to_cents(Decimal(repr(spec.price)) * (1 - off), item))
    support = float(_to_cents(Decimal(repr(spec.support or 0.0)), item))
    if item == TAX:
        share = float(Decimal(repr(spec.price)) / 100)
        who = (spec.seller, spec.date, spec.valid_until, spec.note)
        return Quote(item, 0.0, *who, tax_fraction=share, file=file, place=place)
    usd, support_usd = (
        float(Decimal(repr(amount or 0)) * Decimal(repr(spec.rate or 1.0)))
        for amount in (price, support)
    )
    return Quote(
        item,
        usd,
        spec.seller,
        spec.date,
        spec.valid_until,
        spec.note,
        part_number=spec.part_number or "",
        n_lead_days=spec.n_lead_days,
        support_usd=support_usd,
        support=support,
        currency=spec.currency,
        amount=price,
        list_amount=spec.price if spec.discount else 0.0,
        discount_fraction=float(off),
        rate=spec.rate or 1.0,
        moq=spec.moq,
        payment_terms=spec.payment_terms or "",
        incoterm=spec.incoterm or "",
        is_chosen=spec.chosen == "yes",
        is_lump=spec.unit == LUMP,
        file=file,
        place=place,
    )


def _to_cents(price: Decimal, item: str) -> Decimal:
    """What an order can have as a price of one, in whole cents; what is below half a one stays."""
    if _tier_part(item):
        return price
    return price.quantize(Decimal("0.01"), ROUND_HALF_UP) or price


def _tier_part(item: str) -> tuple[str, str] | None:
    return Quote(item, 0.0, "", "").tier_part


def _faults(spec: QuoteSpec, *, is_known: bool) -> Iterator[Fault]:
    """What is wrong with a quote by itself."""
    is_tier, is_tax = _tier_part(spec.item) is not None, spec.item == TAX
    offered = spec.support or spec.part_number or spec.n_lead_days or spec.discount
    bought = spec.moq or spec.payment_terms or spec.incoterm
    if (is_tier or is_tax) and (offered or bought):
        got = f"got {', '.join(OFFERED[:-1])} or {OFFERED[-1]} of {spec.item}"
        yield Fault(got, "expected them of parts and NPUs", "remove them", "item")
    if spec.unit == LUMP and (spec.moq or 1) > 1:
        got = f"got moq of {spec.item}, a lump sum"
        yield Fault(got, "expected none, as one is counted", "remove it", "moq")
    if spec.unit == LUMP and spec.support:
        got, fix = f"got support of {spec.item}, a lump sum", "write it as a lump sum of its own"
        yield Fault(got, "expected none", fix, "support")
    if spec.unit == LUMP and spec.n_lead_days is not None:
        got = f"got lead_time_days of {spec.item}, a lump sum"
        yield Fault(got, "expected none", "remove it, or write it as note", "lead_time_days")
    if is_tax and not (spec.price <= 100 and spec.currency == "USD"):
        got = f"got tax of {spec.price:g} {spec.currency}"
        yield Fault(got, "expected at most 100 percent", "write e.g. 8.25", "price")
    yield from _unit_faults(spec, is_known=is_known)


def _unit_faults(spec: QuoteSpec, *, is_known: bool) -> Iterator[Fault]:
    """What is wrong with the unit of an item; what is no item is said elsewhere."""
    is_tier, is_tax = _tier_part(spec.item) is not None, spec.item == TAX
    unit = PER_GBPS if is_tier else PERCENT if is_tax else EACH
    if spec.unit == unit or not (is_tier or is_tax or is_known):
        return
    what = "a part of a tier" if is_tier else "a part of a catalogue"
    what = "a share of everything" if is_tax else what
    got = f"got {spec.item}, {what}, {spec.unit}"
    yield Fault(got, f"expected its price {unit}", f"write {unit} as its unit", "unit")


def known_items(book: PriceBook | None, parts: str) -> Known:
    """What can be quoted: parts of the book's tiers, NPUs, parts of a catalogue."""
    found: dict[str, Listed | None] = {
        f"{tier}.{part}": Listed(usd, usd)
        for tier, prices in (book.tiers if book else {}).items()
        for part in TIER_PARTS
        if (usd := getattr(prices, f"{part}_usd_per_GBps"))
    }
    for name, npu in npus.catalogue().npus.items():
        found[name] = None
        if (price := npu.price) and price.usd:
            low, high = price.low_usd or price.usd, price.high_usd or price.usd
            found[name] = Listed(low, high, FARTHEST_OF_LARGEST)
    return found | _listed(parts) | {TAX: None}


def _listed(parts: str) -> dict[str, Listed | None]:
    """The parts of a catalogue with the ends of their prices; none where the file is not one."""
    found = read_catalogue("parts", bundled.resolve("parts", parts, None)).value
    whole = found if isinstance(found, dict) else {}
    listed, rates = whole.get("parts"), whole.get("exchange_rates")
    return {
        name: _ends(part, rates)
        for name, part in (listed.items() if isinstance(listed, dict) else ())
    }


def _ends(part: Any, rates: Any) -> Listed | None:
    """Ends of a price as a catalogue has it; what is wrong with it is said where it is read."""
    try:
        price = part["price"]
        currency = price.get("currency", "USD")
        rate = 1.0 if currency == "USD" else float(rates[currency]["usd"])
        amount = price["amount"]
        low, high = price.get("low") or amount, price.get("high") or amount
        return listed_part(part, float(low) * rate, float(high) * rate)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def quote_notes(
    quotes: Sequence[Quote], used: Sequence[str], *, is_billed: bool = False
) -> list[str]:
    """Which quotes a plan's figures rest on, and which they do not.

    ``is_billed`` says that bills of parts price the plan: any quote may count then.
    """
    used = [quote.item for quote in quotes if quote.item != TAX] if is_billed else used
    lines = [
        f"{quote.item} at {quote.usd:g} USD {PER_GBPS if quote.tier_part else EACH}: {quote.source}"
        for quote in quotes
        if quote.item in used
    ]
    if rest := () if is_billed else unused_items(quotes, used):
        lines.append(unused_note(rest))
    lines += quote_warnings(x for x in quotes if x.item in used)
    return [*lines, *filter(None, [unpriced_note(quotes)])]


class QuoteKeys(Model):
    """What a plan says of quotes.

    Parameters
    ----------
    quotes : CSV or YAML file of a user's quotes, merged over the price book and the catalogues.
    as_of : The day on which the quotes must hold, such as 2026-11-30.
    """

    quotes: Text | None = None
    as_of: Date | None = None


def plan_quotes(
    spec: QuoteKeys, beside: Path, book: PriceBook | None, parts: str
) -> tuple[Quote, ...]:
    """The quotes of a plan; none where it names no file.

    Raises
    ------
    SpecError
        With every fault of the file, each with its line.
    """
    if spec.quotes is None:
        if spec.as_of is not None:
            fix = "add quotes: (--prices), or remove as_of"
            got = f"got {spec.as_of} without quotes"
            raise SpecError(Fault(got, "expected a file of quotes", fix, "as_of"))
        return ()
    return load_quotes(spec.quotes, known_items(book, parts), beside, spec.as_of)


def cluster_quotes(name: str | None, as_of: str | None, parts: str) -> tuple[Quote, ...]:
    """Quotes of a command without a plan; none where it names no file.

    Parameters
    ----------
    name : of the file.
    as_of : the day on which they must hold.
    parts : parts catalogue whose parts they may name.

    Raises
    ------
    SpecError
        With every fault of the file, each with its line.
    """
    document = Document("--prices", {"quotes": name, "as_of": as_of}, {})
    document.places |= {("as_of",): Place("--as-of"), ("quotes",): Place("--prices")}
    with located("--as-of"):
        return plan_quotes(validated(QuoteKeys, document), Path(), None, parts)
