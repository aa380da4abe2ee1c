"""Which part is bought where several fit, parts that a plan names, and catalogues with a base."""

from __future__ import annotations

from pathlib import Path

import pytest

import libra_planner as lp
from libra_planner.inputs.parts import load_parts
from libra_planner.views.bought.whole_ports import PARTS_KEY, port_notes

PLAN = """workload: gpt3
global_batch: 2048
parallelism: {tp: 8, dp: 64}
npu: {name: h100-sxm, efficiency_fraction: 0.4}
fabric:
  topology: SW(8)_[SW(32)_SW(2)]
  tiers: [node, leaf, spine]
  scale_up: nvlink4-8
  realization:
    port_speed: 400 Gbps
    parts: {PARTS}
cost_model: clos-2026
constraints: [leaf == 50 GB/s, taper(spine) == 1]
"""

CATALOGUE = """kind: parts
base: parts
source: offers
as_of: "2026-11"
parts:
  NAME:
    kind: switch
    description: a switch of 64 ports of 400 Gbit/s
    port_speed: 400 Gbps
    n_ports: 64
    power_W: 747
    rack_units: 1
    spare_fraction: 0.02
    price: {amount: USD, confidence: quoted, as_of: "2026-11", source: offer 1}
"""
LISTED_USD = 69760.0


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, parts in (("p", "{}"), ("acme", "{switch: acme}"), ("ours", "{switch: S}")):
        text = PLAN.replace("{PARTS}", parts.replace("S}", "switch-64x400g}"))
        Path(f"{name}.yaml").write_text(text)
    return tmp_path


def _catalogue(name: str, usd: float) -> str:
    Path("parts.yaml").write_text(CATALOGUE.replace("NAME", name).replace("USD", f"{usd}"))
    return "parts.yaml"


def _switches(run, *words: str) -> list[dict]:
    found = run("report", *words, "-o", "r", "--formats", "md", "--json")
    assert found.code == 0, found.err
    return [
        next(x for x in design["parts_that_fit"] if x["place"] == "dim2 leaf, leaf")
        for design in found.payload["designs"]
    ]


@pytest.mark.parametrize("name", ["acme", "zeta"])
@pytest.mark.parametrize("usd", [40_000.0, 99_000.0])
def test_of_parts_that_fit_the_cheapest_is_taken_whatever_its_name(name, usd, folder, run) -> None:
    """C22: never by alphabet; the sentence names the other one with its price."""
    [found] = _switches(run, "p.yaml", "--parts", _catalogue(name, usd))
    offers = sorted([(usd, name), (LISTED_USD, "switch-64x400g")])
    assert (found["usd"], found["part"]) == offers[0]
    assert (found["others"][0]["usd"], found["others"][0]["part"]) == min(
        offers[1], (89_600.0, "switch-128x400g")
    )
    text = Path("r/report.md").read_text().replace("\\", "")
    (least, first), (_, second) = offers
    assert f"{first} is taken at ${least:,.2f}, the cheapest that fits; " in text
    assert f"{second} at $" in text


def test_of_equally_cheap_parts_the_first_by_name_is_taken(folder, run) -> None:
    for name in ("acme", "zeta"):
        [found] = _switches(run, "p.yaml", "--parts", _catalogue(name, LISTED_USD))
        assert found["part"] == min(name, "switch-64x400g")


def test_a_quote_decides_between_parts_and_support_counts(folder, run) -> None:
    _catalogue("acme", 68_000.0)
    head = "item,price,seller,date,support\n"
    for support, taken in (("", "acme"), ("2000", "switch-64x400g")):
        Path("q.csv").write_text(f"{head}acme,68000,Acme,2026-11-02,{support}\n")
        [found] = _switches(run, "p.yaml", "--parts", "parts.yaml", "--prices", "q.csv")
        assert found["part"] == taken


def test_the_bundled_catalogue_says_nothing_of_other_parts(folder, run) -> None:
    _switches(run, "p.yaml")
    assert "is taken at" not in Path("r/report.md").read_text()


def test_two_plans_name_two_vendors_of_one_report(folder, run) -> None:
    """A dearer part is bought where the plan names it; prices of both stand in the report."""
    words = ("acme.yaml", "ours.yaml", "--parts", _catalogue("acme", 99_000.0))
    found = _switches(run, *words)
    assert [one["part"] for one in found] == ["acme", "switch-64x400g"]
    assert all(one["is_named"] and not one["others"] for one in found)
    payload = run("report", *words, "-o", "r", "--json").payload
    bought = [
        {line["item"]: line["n_bought"] for order in one["orders"] for line in order["parts"]}
        for one in payload["designs"]
    ]
    n = bought[0]["acme"]
    assert bought[1]["switch-64x400g"] == n
    first, second = (one["total_usd"] for one in payload["designs"])
    assert first - second == pytest.approx(n * (99_000 - LISTED_USD))
    prices = Path("r/report-prices.csv").read_text()
    assert "\nacme,switch" in prices
    assert "\nswitch-64x400g,switch" in prices


def test_a_setting_names_a_part_and_a_list_leaves_the_price_to_decide(folder, run) -> None:
    key = "fabric.realization.parts.switch"
    for value, taken in (
        ("switch-128x400g", "switch-128x400g"),
        ("[switch-128x400g, switch-64x400g]", "switch-64x400g"),
    ):
        [found] = _switches(run, "p.yaml", "--set", f"{key}={value}")
        assert found["part"] == taken


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("{switch: switch-64x40g}", "did you mean switch-64x400g?"),
        ("{switch: nic-400g}", "got 'nic-400g', a part of kind nic"),
        ("{switch: switch-32x400g}", "what fits: switch-64x400g, switch-128x400g"),
        ("{nic: nic-200g}", "got nic-200g (200 Gbit/s), expected a nic at 400 Gbit/s"),
        ("{copper: dac-400g}", "no copper fits: remove it"),
        ("{optic: optic-200g-sr4}", "what fits: optic-400g-sr4, optic-400g-dr4, optic-400g-fr4"),
        ("{swich: x}", "did you mean switch?"),
    ],
)
def test_parts_that_are_none_or_do_not_fit_are_refused(parts, said, folder, run) -> None:
    Path("p.yaml").write_text(PLAN.replace("{PARTS}", parts))
    found = run("report", "p.yaml", "-o", "r")
    assert found.code == 2
    assert found.err.startswith("p.yaml:11:")
    assert said in found.err


def test_one_optic_of_a_list_need_not_reach_every_link(run, tmp_path) -> None:
    words = ("report", "09_pod_16384", "-o", str(tmp_path / "r"), "--formats", "md")
    key = "fabric.realization.parts.optic"
    found = run(*words, "--set", f"{key}=optic-400g-sr4")
    assert found.code == 2
    assert "nothing for a cable or optic at 400 Gbit/s over 300 m" in found.err
    assert run(*words, "--set", f"{key}=[optic-400g-sr4, optic-400g-dr4]").code == 0


def test_the_bill_of_an_optimizer_has_the_part_that_a_plan_names(run) -> None:
    key = "fabric.realization.parts.switch"
    command = ("optimize", "0b_bill", "--json")
    found = run(*command, "--set", f"{key}=switch-128x400g").payload["bill"]
    names = {line["part"] for line in found["lines"]}
    assert "switch-128x400g" in names
    assert "switch-64x400g" not in names
    wrong = run(*command, "--set", f"{key}=switch-64x40g")
    assert wrong.code == 2
    assert "did you mean switch-64x400g?" in wrong.err


def test_a_catalogue_with_a_base_has_all_that_it_does_not_change(folder) -> None:
    Path("parts.yaml").write_text(
        "kind: parts\nbase: parts\nsource: s\nas_of: '2026-11'\nparts:\n  nic-400g:\n"
        "    price: {amount: 1000, confidence: quoted, as_of: '2026-11', source: o}\n"
        "assumptions:\n  cable_lengths_m: {host-leaf: 20}\n"
    )
    own, base = load_parts("parts.yaml", Path()), load_parts()
    nic, old = own.parts.by_name["nic-400g"], base.parts.by_name["nic-400g"]
    assert nic.price is not None
    assert nic.price.ends_usd == (1000, 1000)
    assert (nic.power_w, nic.spare_fraction) == (old.power_w, old.spare_fraction)
    assert {**own.parts.by_name, "nic-400g": old} == dict(base.parts.by_name)
    assert own.assumptions.cable_lengths_m == base.assumptions.cable_lengths_m | {"host-leaf": 20}
    assert [path.stem for path in own.bases] == ["parts"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("base: parts\n", ""), "write base: parts, and only what you add"),
        (("base: parts", "base: partz"), "parts.yaml:2:7: base: got 'partz'"),
        (("base: parts", "base: ./parts.yaml"), "which is based on this file"),
        (("n_ports: 64\n    ", ""), "parts.yaml:7:5: parts.acme: got a switch without n_ports"),
    ],
)
def test_faults_of_a_catalogue_with_a_base_have_its_lines(change, said, folder, run) -> None:
    _catalogue("acme", 1.0)
    text = Path("parts.yaml").read_text()
    Path("parts.yaml").write_text(text.replace(*change))
    found = run("report", "p.yaml", "--parts", "parts.yaml", "-o", "r")
    assert found.code == 2
    assert said in found.err


def test_fabric_buys_the_part_that_is_named(folder, run) -> None:
    """32 hosts of 8 NICs: 8 leaves, 4 spines and a spare are 13 switches."""
    asked = ("fabric", "--hosts", "32", "--nic", "400Gbps", "--parts", _catalogue("acme", 50000))
    listed = ("--part", "switch=switch-64x400g")
    found = [run(*asked, *more, "--json").payload for more in ((), listed)]
    n = found[0]["switches"] + 1
    assert [n, found[1]["switches"] + 1] == [13, 13]
    assert found[1]["cost_usd"] - found[0]["cost_usd"] == pytest.approx(n * (LISTED_USD - 50000))
    unfit = run(*asked, "--part", "switch=switch-64x200g")
    assert unfit.code == 2
    assert unfit.err.startswith("--part: got switch-64x200g (64 ports of 200 Gbit/s)")
    assert "did you mean switch?" in run(*asked, "--part", "swich=acme").err


def test_the_command_of_a_note_names_the_parts_of_its_plan() -> None:
    from libra_planner.views.cluster import part_words

    parts = [("switch", ("acme",)), ("optic", ("a", "b"))]
    assert part_words(parts) == [
        *("--part", "switch=acme", "--part", "optic=a", "--part", "optic=b")
    ]


def test_linear_prices_tell_a_part_that_nobody_sells() -> None:
    """They buy no part, so that nothing refuses the name; a note does."""
    names = "switch-64x400", "switch-64x400g"
    unknown, known = (
        list(port_notes(lp.load_plan("0e_rails_2to1", [f"{PARTS_KEY}.switch={name}"]), BUILT_Bps))
        for name in names
    )
    [note] = unknown
    assert note.startswith(f"Whole parts have no price here: {PARTS_KEY}: got 'switch-64x400',")
    assert "did you mean switch-64x400g?" in note
    assert known == []


BUILT_Bps = (450e9, 50e9, 25e9)
