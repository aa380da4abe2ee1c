"""A plan as a tree of values: what each may be by the plan's schema, and what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from libra_planner.errors import Fault, PlannerError
from libra_planner.files import read_text
from libra_planner.reading import bundled
from libra_planner.reading.document import dotted_key, value_at

if TYPE_CHECKING:
    from libra_planner.reading.document import Document
    from libra_planner.workload.defaults import LibraryDefaults

_ORDER = (
    "workload", "workloads", "group_objective", "fabric", "parallelism", "global_batch", "npu",
    "fidelity", "cost_model", "prices", "fixed_cost", "training_loop", "contention", "objective",
)  # fmt: skip
"""Keys in the order of the form; other keys of a plan follow, and its rules last."""
_ALWAYS = (
    "fabric.topology", "fabric.tiers", "fabric.scale_up", "fidelity", "cost_model",
    "training_loop", "objective",
)  # fmt: skip
"""Shown even where the plan does not say them."""
_ALONE = ("workload", "global_batch", "npu")
_DEGREES = ("parallelism.tp", "parallelism.dp")
"""So are these of a plan of one workload, unless it spreads its model in another way."""

RULES = "constraints"
NEW_RULE, NEW_KEY = f"{RULES}.+", "+"
"""Fields that add something."""

BRANCH, CHOICE, TEXT = "branch", "choice", "text"
"""Kinds of fields: keys below it, one of known names, anything."""


@dataclass(frozen=True)
class FormField:
    """One line of the tree.

    Parameters
    ----------
    key : dotted path, as ``--set`` takes it.
    label : for people.
    kind : how it is edited.
    text : the value as one types it; empty where the plan says nothing.
    line : in the file; ``None`` for a value that was edited or is not there.
    choices : known names; empty for free text.
    edited : whether it differs from the file.
    is_list : whether it is names, typed with commas between them.
    default : what holds where the plan says nothing, for people.
    unsaid : what ``--set`` takes to have that.
    """

    key: str
    label: str
    kind: str
    text: str = ""
    line: int | None = None
    choices: tuple[str, ...] = ()
    edited: bool = False
    is_list: bool = False
    default: str = ""
    unsaid: str = ""

    @property
    def depth(self) -> int:
        """Keys above it."""
        return self.key.count(".")

    def setting(self, typed: str) -> str:
        """What ``--set`` takes of a text: of a list, names without brackets; of none, the default.

        >>> FormField("k", "k", TEXT, is_list=True).setting("node, pod")
        '["node", "pod"]'
        """
        if not typed.strip():
            return self.unsaid
        is_names = self.is_list and not typed.lstrip().startswith("[")
        return json.dumps([one.strip() for one in typed.split(",")]) if is_names else typed


def form_fields(
    document: Document, settings: tuple[str, ...], wanted: Sequence[str] = ()
) -> list[FormField]:
    """Lines of a plan's tree from top to bottom; its rules last, then what adds a key.

    Parameters
    ----------
    wanted : keys that are to be shown though the plan does not say them.
    """
    value = document.value if isinstance(document.value, dict) else {}
    edited = {setting.partition("=")[0].strip() for setting in settings}
    found = []
    for key, said in _lines(_with_unsaid(value, wanted)):
        place = document.places.get(dotted_key(key))
        touched = any(key == one or key.startswith(f"{one}.") for one in edited)
        line = place.line if place else None
        found.append(_field(key, said, line, edited=touched, plan=value))
    rules = value.get(RULES)
    if rules is None or isinstance(rules, list):
        if not rules:
            found.append(FormField(RULES, RULES, BRANCH))
        found.append(FormField(NEW_RULE, "+ rule", TEXT))
    return [*found, FormField(NEW_KEY, "+ key", TEXT)]


def _field(
    key: str, value: Any, line: int | None, *, edited: bool, plan: Mapping[str, Any]
) -> FormField:
    last = key.rpartition(".")[2]
    is_rule = key.startswith(f"{RULES}.")
    label = f"{'rule ' if is_rule else ''}{int(last) + 1}" if last.isdigit() else last
    if _is_branch(value):
        return FormField(key, label, BRANCH, "", line, edited=edited)
    text, is_list = value_text(value), key == "fabric.tiers" or _is_names(value)
    choices = () if is_rule else _choices(key, text)
    kind = CHOICE if choices else TEXT
    default = held(key, plan), unsaid(key, plan)
    return FormField(key, label, kind, text, line, choices, edited, is_list, *default)


def _with_unsaid(value: dict[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    """A plan with the keys that are shown anyway, in the order of the form."""
    degrees = value.get("parallelism")
    by_degree = degrees is None or (isinstance(degrees, dict) and "forward" not in degrees)
    keys = [*_ALWAYS, *wanted]
    if "workloads" not in value:
        keys += [*_ALONE, *(_DEGREES if by_degree else ())]
    whole = deepcopy(value)
    for key in keys:
        _add(whole, key.split("."))
    order = [*(key for key in _ORDER if key in whole), *(key for key in whole if key != RULES)]
    return {key: whole[key] for key in [*order, *([RULES] if RULES in whole else [])]}


def _add(value: Any, path: list[str]) -> None:
    """Put nothing at a path that a plan does not say, unless it says something on the way."""
    *parents, last = path
    for part in parents:
        if not isinstance(value, dict):
            return
        if value.get(part) is None:
            value[part] = {}
        value = value[part]
    if isinstance(value, dict):
        value.setdefault(last, None)


_PLAIN = re.compile(r"[A-Za-z_][\w-]*")
"""Keys that a dotted path can hold."""


def _is_branch(value: Any) -> bool:
    """Whether keys or maps are below it; what is empty, or no dotted path leads to, is typed."""
    if isinstance(value, dict):
        return bool(value) and all(_PLAIN.fullmatch(key) for key in value)
    return isinstance(value, list) and any(isinstance(one, dict | list) for one in value)


def _lines(value: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Keys and values of a tree from top to bottom."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in pairs:
        key = f"{above}{name}"
        if key == RULES and isinstance(inner, list) and inner:
            yield key, {"rules": None}  # Its rules are lines of their own.
            yield from ((f"{key}.{i}", rule) for i, rule in enumerate(inner))
        elif key != RULES or not isinstance(inner, list | None):
            yield key, inner
            if _is_branch(inner):
                yield from _lines(inner, f"{key}.")


def value_text(value: Any) -> str:
    """A value as one types it: names plain, with commas between them.

    >>> value_text("RI(4)"), value_text(8192), value_text(["node", "pod"]), value_text(None)
    ('RI(4)', '8192', 'node, pod', '')
    """
    if value is None:
        return ""
    if _is_names(value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_names(value: Any) -> bool:
    """Whether it is a list of names that commas can stand between.

    >>> _is_names(["node", "pod"]), _is_names(["a, b"]), _is_names([]), _is_names([1])
    (True, False, False, False)
    """
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(x, str) and x.strip() == x != "" and not set(x) & {",", "["} for x in value
    )


# What a key may be


@lru_cache(maxsize=1)
def _schema() -> Mapping[str, Any]:
    """What ``schema plan`` prints."""
    text = read_text(bundled.folder("examples") / "plan.schema.json")
    found: dict[str, Any] = json.loads(text)
    return found


def shapes(key: str) -> list[Mapping[str, Any]]:
    """What the format lets a key be, each alternative by itself; nothing for an unknown key.

    >>> [one["type"] for one in shapes("fabric.scale_up.name")], shapes("fabric.speed")
    (['string'], [])
    """
    found = list(_alternatives(_schema()))
    for part in dotted_key(key):
        inner = [one for shape in found for one in _inside(shape, part)]
        found = [one for shape in inner for one in _alternatives(shape)]
    return found


def _alternatives(shape: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A shape, and all that it refers to."""
    yield shape
    if "$ref" in shape:
        yield from _alternatives(_schema()["$defs"][shape["$ref"].rpartition("/")[2]])
    for kind in ("anyOf", "oneOf"):
        for one in shape.get(kind, ()):
            yield from _alternatives(one)


def _inside(shape: Mapping[str, Any], part: str | int) -> Iterator[Mapping[str, Any]]:
    """What a shape lets a key below it be."""
    known = shape.get("properties", {}).get(part) or shape.get("additionalProperties")
    found = shape.get("items") if isinstance(part, int) else known
    if isinstance(found, Mapping):
        yield found


_SEARCHED = re.compile(r"parallelism\.(?!rest)\w+")
"""Keys that a search chooses where ``parallelism`` says ``rest: auto``."""


def unsaid(key: str, plan: Mapping[str, Any]) -> str:
    """What takes a value away: its default; nothing where the plan needs it.

    >>> unsaid("objective", {}), unsaid("npu", {}), unsaid("workload", {})
    ('performance', 'null', '')
    >>> unsaid("parallelism.tp", {}), unsaid("parallelism.tp", {"parallelism": {"rest": "auto"}})
    ('1', 'null')
    """
    if _SEARCHED.fullmatch(key) and _at(plan, "parallelism.rest") is not None:
        return "null"
    found = [one["default"] for one in shapes(key) if "default" in one]
    return "" if not found else "null" if found[0] is None else value_text(found[0])


def held(key: str, plan: Mapping[str, Any]) -> str:
    """What holds where a plan says nothing, for people; nothing where that is not known here.

    >>> held("fidelity", {}), held("parallelism.tp", {"parallelism": {"rest": "auto"}})
    ('default ideal', 'searched')
    >>> held("training_loop", {}), held("training_loop", {"npu": "h100-sxm", "library": "fsdp"})
    ('default no_overlap', 'fsdp overlap')
    """
    if _SEARCHED.fullmatch(key) and _at(plan, "parallelism.rest") is not None:
        return "searched"
    if key == "training_loop":
        return _overlap(plan) or "default no_overlap"
    usual = _library_says(key, plan) or unsaid(key, plan)
    return "" if usual in ("", "null") else f"default {usual}"


def _overlap(plan: Mapping[str, Any]) -> str:
    """Whose overlap holds without a training loop; nothing in plans without a whole model."""
    members = plan.get("workloads")
    entries = members if isinstance(members, list) else [plan]
    found = dict.fromkeys(one.name for one in map(_library, entries) if one)
    return f"{' and '.join(found)} overlap" if found else ""


def _library(entry: Any) -> LibraryDefaults | None:
    """Whose defaults hold in the step of a whole model; ``None`` elsewhere."""
    from libra_planner.workload.defaults import LIBRARIES, MEGATRON_CORE

    if not isinstance(entry, dict):
        return None
    npu = entry.get("npu")
    named = {"name": npu} if isinstance(npu, str) else npu
    if not isinstance(named, dict) or named.get("efficiency_fraction") is not None:
        return None
    if "name" not in named:
        return None
    return LIBRARIES.get(str(entry.get("library") or MEGATRON_CORE))


def _library_says(key: str, plan: Mapping[str, Any]) -> str:
    """What a key has of the library in the step of a whole model; nothing where it has none."""
    member = re.match(r"workloads\.\d+\.", key)
    above = member.group() if member else ""
    library = _library(_at(plan, above.removesuffix(".")) if above else plan)
    if library is None:
        return ""
    said = {
        "library": library.name,
        "parallelism.zero": str(library.zero),
        "parallelism.recompute": library.recompute.name.lower(),
        "parallelism.sequence_parallel": str(library.sequence_parallel).lower(),
        **{f"overlap.{x}": f"{getattr(library.overlap, x):g}" for x in ("tp", "cp", "ep", "dp")},
    }
    return said.get(key.removeprefix(above), "")


def about(key: str) -> str:
    """What a key means, in the words of the schema."""
    own = {
        NEW_RULE: "A new design rule, such as total == 500 GB/s, dim1 >= dim2 or cost <= 20 M$. "
        "Enter adds it.",
        NEW_KEY: "Any other key of a plan, such as library; library: fsdp gives it a value too. "
        "Enter adds it.",
    }
    said = [one["description"] for one in shapes(key) if "description" in one]
    is_rule = key.startswith(f"{RULES}.")
    return own.get(key) or (shapes(RULES)[0]["description"] if is_rule else "".join(said[:1]))


def is_open(key: str) -> bool:
    """Whether a key takes other texts than its known names."""
    kinds = [one.get("type") for one in shapes(key) if "enum" not in one]
    return "string" in kinds or "object" in kinds


_NAMED = {"workload": "workloads", "cost_model": "cost-models"}


def _choices(key: str, text: str) -> tuple[str, ...]:
    """Known names of a key, and what the plan says if it is another one."""
    last, found = key.rpartition(".")[2], shapes(key)
    names = [str(name) for one in found for name in one.get("enum", ())]
    if any(one.get("type") == "boolean" for one in found):
        names = ["true", "false"]
    known = tuple(bundled.names(_NAMED[last])) if found and last in _NAMED else tuple(names)
    return known if not known or text in known or not text else (*known, text)


# What may be meant by what is typed

_RULE_FORMS = (
    "total == 500 GB/s", "dim1 >= dim2", "cost <= 20 M$", "step_time <= 900 ms", "memory <= 76 GB",
)  # fmt: skip
_TOPOLOGIES = ("RI(4)_FC(8)_RI(4)_SW(32)", "SW(8)_[SW(32)_SW(8)]", "SW(72)_SW(16)", "FC(8)_SW(32)")
_TIERS = ("chiplet, package, node, pod", "node, leaf, spine", "node, leaf")


@dataclass(frozen=True)
class Words:
    """What may be meant in a field.

    Parameters
    ----------
    whole : texts of the whole field.
    parts : that may come next.
    ends : letters that a part cannot hold.
    after : letters that a part follows, where it does not begin the text; none for any.
    """

    whole: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    ends: str = ""
    after: str = ""

    def may_follow(self, text: str) -> bool:
        """Whether a part may come after a text: a name of a rule not behind a number or its unit.

        >>> rule = Words(after="+-*/(<>=")
        >>> [rule.may_follow(text) for text in ("", "dim1 >= ", "leaf <= 40 GB/", "leaf <= 40 ")]
        [True, True, False, False]
        """
        before = text.rstrip()
        if not self.after or not before:
            return True
        return before[-1] in self.after and not _UNIT.search(before)


_UNIT = re.compile(r"[0-9]\s*[A-Za-z$]+/$")
"""A number whose unit goes on, such as ``40 GB/``."""


def words(key: str, document: Document) -> Words:
    """What may be meant in a field of a plan: of rules its own tiers and dimensions too."""
    from libra_planner.workload.defaults import LIBRARIES

    plan = document.value if isinstance(document.value, dict) else {}
    last = key.rpartition(".")[2]
    if key == "fabric.topology":
        from libra_planner.fabric.blocks import BLOCKS

        blocks = (f"{one.notation}({n})" for n in (4, 8, 16, 32) for one in BLOCKS.values())
        return Words(_TOPOLOGIES, tuple(blocks), "_[")
    if key == "fabric.tiers":
        return Words(_TIERS, _book_tiers(plan.get("cost_model"), document), ", ")
    if key.startswith(f"{RULES}."):
        return _rule_words(plan)
    if last == "library":
        return Words(tuple(LIBRARIES))
    if key == NEW_KEY:
        return Words(tuple(_keys(plan)))
    return Words(_catalogue_names(key) if shapes(key) else ())


def _catalogue_names(key: str) -> tuple[str, ...]:
    """Names of NPUs and of scale-up domains, for keys that are one."""
    from libra_planner.plan.npus import catalogue

    if key.removesuffix(".name") == "fabric.scale_up":
        return tuple(catalogue().scale_up)
    is_npu = key.removesuffix(".name").rpartition(".")[2] == "npu"
    return tuple(catalogue().npus) if is_npu else ()


def _rule_words(plan: Mapping[str, Any]) -> Words:
    tiers, topology = _at(plan, "fabric.tiers"), str(_at(plan, "fabric.topology"))
    names = tiers if _is_names(tiers) else []
    once = [one for one in names if names.count(one) == 1]
    tapers = [f"taper({one}) == 2" for one in names[2:]] if "[" in topology else []
    dims = [f"dim{i + 1}" for i in range(topology.count("("))]
    parts = (*once, *dims, "total", "cost", "step_time", "memory")
    rules = (*_RULE_FORMS, *tapers, *(f"{one} <= 100 GB/s" for one in once))
    return Words(rules, parts, " +-*/()<>=", "+-*/(<>=")


def _book_tiers(book: Any, document: Document) -> tuple[str, ...]:
    """Tiers that a plan's price book has; nothing where it cannot be read."""
    from libra_planner.reading.document import folder_of, parse_document

    try:
        file = bundled.resolve("cost-models", str(book), folder_of(document.file))
        return tuple(map(str, parse_document(read_text(file), str(file)).value["tiers"]))
    except (PlannerError, OSError, LookupError, TypeError):
        return ()


_DEEPEST = 3
"""Keys in a dotted path that is offered."""


def _keys(plan: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Keys that a plan may have and does not say, those of maps below them."""
    inner = shapes(above.removesuffix(".")) if above else list(_alternatives(_schema()))
    names = dict.fromkeys(name for one in inner for name in one.get("properties", ()))
    for name in names:
        key = f"{above}{name}"
        kinds = [one for one in shapes(key) if "properties" in one]
        if not kinds and _at(plan, key) is None:
            yield key
        elif key.count(".") + 1 < _DEEPEST:
            yield from _keys(plan, f"{key}.")


def _at(value: Any, key: str) -> Any:
    """The value of a key; nothing where there is none."""
    try:
        return value_at(value, dotted_key(key))
    except (LookupError, TypeError):
        return None


def candidates(text: str, words: Words) -> list[str]:
    """What may be meant by a text: words that begin so, its end made whole, words that have it.

    >>> candidates("SW(8)_[s", Words(parts=("RI(4)", "SW(8)"), ends="_["))
    ['SW(8)_[SW(8)']
    >>> candidates("leaf", Words(("taper(leaf) == 2", "leaf <= 50 GB/s")))
    ['leaf <= 50 GB/s', 'taper(leaf) == 2']
    """
    typed = text.casefold()
    begin = [one for one in words.whole if one.casefold().startswith(typed)]
    end = text[max((text.rfind(letter) for letter in words.ends), default=-1) + 1 :]
    start = text.removesuffix(end) if end else text
    meant = words.parts if end or text[-1:] not in ("", *"<>=(") else ()
    meant = meant if words.may_follow(start) else ()
    parts = [one for one in meant if one.casefold().startswith(end.casefold())]
    have = [one for one in words.whole if text and typed in one.casefold()]
    found = dict.fromkeys([*begin, *(f"{start}{one}" for one in parts), *have])
    return [one for one in found if one != text]


def completion(text: str, words: Words) -> str | None:
    """The first candidate that begins as the text does, once something is typed.

    >>> completion("taper(l", Words(("taper(leaf) <= 4",))), completion("", Words(("a",)))
    ('taper(leaf) <= 4', None)
    """
    folded = text.casefold()
    found = [one for one in candidates(text, words) if one.casefold().startswith(folded)]
    return found[0] if text and found else None


# What is wrong


def faults_by_key(faults: tuple[Fault, ...], keys: list[str]) -> dict[str, list[Fault]]:
    """Faults under the field they are about; those of no field under the empty key."""
    found: dict[str, list[Fault]] = {}
    for fault in faults:
        # Its own path in the plan, or that of the edit it comes from.
        path = fault.path or (fault.place.file if fault.place else "").partition(": --set ")[2]
        owners = [k for k in keys if path == k or path.startswith((f"{k}.", f"{k} "))]
        inside = [k for k in keys if path and k.startswith(f"{path}.")]
        key = max(owners, key=len, default=(*inside, "")[0])
        found.setdefault(key, []).append(fault)
    return found


def fault_text(fault: Fault) -> str:
    """A fault under its field: without the path that the field already says."""
    text = ", ".join(part for part in (fault.got, fault.expected) if part)
    text = f"{text}; {fault.fix}" if fault.fix else text
    line = fault.place.line if fault.place else None
    return f"line {line}: {text}" if line else text
