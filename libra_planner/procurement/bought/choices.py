"""Which part is bought for a need where several of a catalogue fit, and that it is said (C22)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from libra_planner.costs.quotes import Quote
from libra_planner.errors import Fault, Place, SpecError, closest
from libra_planner.fabric.topology import SwitchSettings
from libra_planner.procurement.bill import (
    FIBRE,
    MEDIA,
    NIC,
    OPTIC,
    SWITCH,
    Bill,
    Choice,
    Fit,
    Need,
    Part,
    Parts,
    gigabits_text,
    missing,
)
from libra_planner.procurement.quotes import quoted_part

NAMED = "parts"
KEY = f"fabric.realization.{NAMED}"
"""The key of a plan that names parts."""


def choice(
    need: Need,
    parts: Parts,
    quotes: Mapping[str, Quote],
    named: Mapping[str, Sequence[str]],
    beside: Need | None = None,
    fibre: str = "",
) -> Choice:
    """The part that is bought for a need: the cheapest as quoted of those that fit.

    Those are of the slowest speed that suffices. Of parts that are equally cheap that of fewest
    ports, or of least reach, is taken, then the first by name. A price decides only where the
    first of them has one, or one that is alike: no design changes because a price is missing.

    Parameters
    ----------
    need : what the part is for.
    parts : of a catalogue.
    quotes : of parts, by their names.
    named : the names by kind that a plan gives, which stand in for all others of their kind.
    beside : what the other end of a fibre is for, where it is another need: both ends and their
        fibre together are cheapest then. By default it is the same.
    fibre : that an optic is for, where it is known.

    Examples
    --------
    >>> from libra_planner.procurement.bill import SWITCH, Price
    >>> made = {x: Part(x, SWITCH, "", Price(Decimal(n)), n_ports=64) for x, n in ALIKE.items()}
    >>> found = choice(Need((SWITCH,), 0.0, n_ports=64), Parts(made), {}, {})
    >>> found.taken.part.name, [one.part.name for one in found.others]
    ('zeta', ['acme'])
    """
    far = _halves(beside, parts, quotes, named) if beside else None
    found = [one for one in _allowed(need, parts, named) if not fibre or one.cable == fibre]
    if not found:
        on = f" on {fibre}" if fibre else ""
        return Choice(Fit(missing(need.kinds[-1], f"{need.text}{on}"), None))
    joined = [one for one in found if far is None or one.kind != OPTIC or one.cable in far]
    sold = [quoted_part(one, quotes.get(one.name)) for one in joined or found]
    fits = [Fit(one, _usd(one, need.n_links, far, parts, quotes)) for one in sold]
    ranked = sorted(_deciding(fits), key=_worth)
    taken = ranked[0]
    others = tuple(sorted((one for one in fits if one is not taken), key=_worth))
    is_open = taken is not fits[0] or any(_alike(taken.part, one.part) for one in others)
    return Choice(taken, others, taken.part.name in _names(named, taken.part.kind), is_open)


ALIKE = {"acme": "99000.00", "zeta": "40000.00"}
"""Two switches of the same ports, for the example."""


def _names(named: Mapping[str, Sequence[str]], kind: str) -> Sequence[str]:
    return named.get(kind, ())


def _allowed(need: Need, parts: Parts, named: Mapping[str, Sequence[str]]) -> list[Part]:
    """Parts that fit: those that the plan names, and of kinds of which it names none all others."""
    own = [
        part
        for name in (name for kind in need.kinds for name in _names(named, kind))
        for part in [parts.by_name[name]]
        if need.is_met_by(part)
    ]
    rest = [part for part in parts.fitting(need) if not _names(named, part.kind)]
    return [*own, *rest]


def _deciding(fits: Sequence[Fit]) -> list[Fit]:
    """Parts between which prices decide."""
    first = fits[0]
    found = fits if first.usd is not None else [x for x in fits if _alike(first.part, x.part)]
    return [one for one in found if one.usd is not None] or [first]


def _worth(one: Fit) -> tuple[bool, Decimal]:
    return one.usd is None, one.usd or Decimal(0)


def _alike(one: Part, other: Part) -> bool:
    """Whether two parts do the same, whoever makes them."""
    return all(getattr(one, name) == getattr(other, name) for name in _SAME)


_SAME = ("kind", "port_speed_Bps", "n_ports", "cable")


def _own_usd(part: Part) -> Decimal | None:
    """One part with its support, as quoted where it is."""
    return None if part.price is None else part.price.usd + (part.price.support_usd or 0)


def _usd(
    part: Part,
    n_links: int,
    far: Mapping[str, Decimal | None] | None,
    parts: Parts,
    quotes: Mapping[str, Quote],
) -> Decimal | None:
    """What a link costs with a part that is at its quote.

    ``far`` is what the other end costs by its fibre; ``None`` where both are alike.
    """
    own = _own_usd(part)
    if own is None or part.kind != OPTIC:
        return own
    fibre = _own_usd(quoted_part(parts.named(part.cable, FIBRE), quotes.get(part.cable)))
    other = own / n_links if far is None else far.get(part.cable)
    return None if fibre is None or other is None else own / n_links + other + fibre


def _halves(
    need: Need, parts: Parts, quotes: Mapping[str, Quote], named: Mapping[str, Sequence[str]]
) -> dict[str, Decimal | None]:
    """The least that one end of a link costs with an optic, by its fibre."""
    found: dict[str, Decimal | None] = {}
    for part in _allowed(replace(need, kinds=(OPTIC,)), parts, named):
        usd, known = _own_usd(quoted_part(part, quotes.get(part.name))), found.get(part.cable)
        own = None if usd is None else usd / need.n_links
        found[part.cable] = own if known is None else known if own is None else min(known, own)
    return found


def named_parts(settings: SwitchSettings | None) -> dict[str, tuple[str, ...]]:
    """The parts that a plan names for a dimension, by kind."""
    return dict(settings.parts) if settings is not None else {}


def with_modules(
    needs: Iterable[Need], named: Mapping[str, Sequence[str]], parts: Parts
) -> Iterator[Need]:
    """The needs, and for every named module of several links those of links that it serves."""
    optics = (parts.by_name.get(name) for name in _names(named, OPTIC))
    counts = {part.links_per_module for part in optics if part is not None} - {1}
    for need in needs:
        yield need
        if OPTIC in need.kinds and need.n_links == 1:
            yield from (replace(need, kinds=(OPTIC,), n_links=n) for n in sorted(counts))


@dataclass(frozen=True)
class Naming:
    """What a plan names for a dimension, and what its links need.

    Parameters
    ----------
    dim : the dimension.
    named : names by kind.
    needs : of its NIC, its switches and each of its links.
    flag : of a command that names them; empty where a plan does.
    """

    dim: int
    named: Mapping[str, Sequence[str]]
    needs: Sequence[Need]
    flag: str = ""

    def error(self, fault: Fault) -> SpecError:
        """A fault of what is named, at its place."""
        if self.flag:
            return SpecError(replace(fault, place=Place(self.flag)))
        return SpecError(replace(fault, path=KEY, subject=(self.dim, NAMED)))


def refuse_unfit(namings: Sequence[Naming], parts: Parts) -> None:
    """Refuse names of no part, and parts that do not do what they are named for.

    A cable or optic need not fit every link, but one of them; and every link needs one.

    Raises
    ------
    SpecError
        With what a name may have meant, or what fits.
    """
    for one in namings:
        for kind, name in ((kind, name) for kind, names in one.named.items() for name in names):
            part = parts.by_name.get(name)
            if part is None or part.kind != kind:
                raise one.error(_unknown(name, kind, parts))
            same = [x for x in namings if name in _names(x.named, kind)]
            needs = [need for x in same for need in x.needs if kind in need.kinds]
            if not any(need.is_met_by(part) for need in needs):
                raise one.error(_unfit(part, needs, parts))
        for need in one.needs:
            if parts.fitting(need) and not _allowed(need, parts, one.named):
                raise one.error(_uncovered(need, parts, one))


def _unknown(name: str, kind: str, parts: Parts) -> Fault:
    other = parts.by_name.get(name)
    known = [part.name for part in parts.of_kind(kind)]
    fix = f"{closest(name, known)} (--parts gives a catalogue of your own)"
    if other is not None:
        fix = f"name it as {other.kind}" if other.kind in (*MEDIA, NIC, SWITCH) else "remove it"
    what = f", a part of kind {other.kind}" if other is not None else ""
    expected = f"expected a part of kind {kind} of the catalogue"
    return Fault(f"got {name!r}{what}", expected, fix, is_misspelt=True)


def _unfit(part: Part, needs: Sequence[Need], parts: Parts) -> Fault:
    """A part that fits nothing, and what does."""
    wanted = " or ".join(dict.fromkeys(map(_wanted, needs)))
    fits = dict.fromkeys(one.name for need in needs for one in parts.fitting(need))
    same = [name for name in fits if parts.by_name[name].kind == part.kind]
    fix = f"what fits: {', '.join(same)}" if same else f"no {part.kind} fits: remove it"
    return Fault(f"got {part.name} ({_does(part)})", f"expected {wanted}", fix)


def _uncovered(need: Need, parts: Parts, one: Naming) -> Fault:
    """A need that no named part fits."""
    names = ", ".join(name for kind in need.kinds for name in _names(one.named, kind))
    fits = parts.fitting(need)
    fix = f"name one more in a list, such as {fits[0].kind}: [{names}, {fits[0].name}]"
    if one.flag:
        fix = f"name one more, such as {one.flag} {fits[0].kind}={fits[0].name}"
    return Fault(f"got {names} and nothing for {_wanted(need)}", "expected a part for it", fix)


def _wanted(need: Need) -> str:
    return f"a {'cable or ' if OPTIC in need.kinds else ''}{need.text}"


def _does(part: Part) -> str:
    ports = f"{part.n_ports} ports of " if part.n_ports else ""
    reach = f" over at most {part.reach_m:g} m" if part.reach_m else ""
    return f"{ports}{gigabits_text(part.port_speed_Bps)}{reach}"


def open_choices(bill: Bill) -> Iterator[Choice]:
    """The choices of a bill that its design leaves open, each once."""
    found: dict[tuple[str, ...], Choice] = {}
    for line in bill.lines:
        if line.choice is not None and line.choice.is_open:
            names = (one.part.name for one in (line.choice.taken, *line.choice.others))
            found.setdefault((*names,), line.choice)
    yield from found.values()


def choice_text(found: Choice) -> str:
    """Which part was taken, at what price, and which others fit.

    >>> zeta, acme = (Fit(Part(x, "switch", ""), Decimal(ALIKE[x])) for x in ("zeta", "acme"))
    >>> choice_text(Choice(zeta, (acme,)))
    'zeta is taken at $40,000.00, the cheapest that fits; acme at $99,000.00 fits, too.'
    """
    why = "as the plan names it" if found.is_named else "the cheapest that fits"
    others = [_priced(one) for one in found.others]
    told = " and ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
    fit = "fit" if len(others) > 1 else "fits"
    rest = f"; {told} {fit}, too" if others else ""
    return f"{found.taken.part.name} is taken {_at(found.taken)}, {why}{rest}."


def _priced(one: Fit) -> str:
    return f"{one.part.name} {_at(one)}"


def _at(one: Fit) -> str:
    each = " a link with its fibre" if one.part.kind == OPTIC else ""
    return "without a price" if one.usd is None else f"at ${one.usd:,.2f}{each}"
