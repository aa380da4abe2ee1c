"""What the price of a server holds is in a bill once (C22)."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import openpyxl
import pytest

from libra_planner.errors import SpecError
from libra_planner.inputs.parts import load_parts
from libra_planner.procurement.candidate import Candidate
from libra_planner.procurement.ranking import Comparison
from libra_planner.reading.bundled import folder
from tests.comparisons import compared_by

PARTS = (folder("parts") / "parts.yaml").read_text()
SCALE_UP = (
    "      scale_up: 450 GB/s             # NVLink between its own NPUs: per NPU, one direction\n"
)
PLAN = """\
workload: gpt3
fabric:
  topology: SW(8)_SW(2048)
  tiers: [node, pod]
  realization: {preset: rail-8x400G}
parallelism: {tp: 8, dp: 2048}
global_batch: 2048
npu: {name: h100-sxm, efficiency_fraction: 0.5}
cost_model: libra-ispass24
constraints: [node == 450 GB/s, pod == 50 GB/s]
"""
SMALL = PLAN.replace("SW(2048)", "SW(16)").replace("dp: 2048", "dp: 16")


def _compared(path: Path, *options: str) -> Comparison:
    return compared_by(str(path), *options)


def _one(path: Path, *options: str) -> Candidate:
    return _compared(path, *options).candidates[0]


def _amounts(one: Candidate, label: str) -> dict[str, tuple[int, Decimal | None]]:
    lines = [line for line in one.bill.of("network").lines if line.tier.startswith(label)]
    return {line.part.name: (line.n_units, line.extended_usd) for line in lines}


def _catalogue(tmp_path: Path, includes: str) -> str:
    """The bundled parts with another list of what the server includes."""
    assert SCALE_UP in PARTS
    (tmp_path / "p.yaml").write_text(PARTS.replace(SCALE_UP, includes))
    return str(tmp_path / "p.yaml")


def test_scale_up_links_of_16384_npus_are_not_paid_twice(plan) -> None:
    """16,384 x 900 x (4 + 13) is $250,675,200: 26 % of what the bill was."""
    one = _one(plan(("450", "900"), text=PLAN))
    assert _amounts(one, "dim1") == {
        "node link 900 GB/s, included in server-8npu": (16384, Decimal(0)),
        "node switch port 900 GB/s, included in server-8npu": (16384, Decimal(0)),
    }
    [node, pod] = one.bridges
    assert (node.linear_usd, node.included_usd) == (Decimal(250_675_200), -Decimal(250_675_200))
    assert (node.parts_usd, node.bill_usd, pod.included_usd) == (0, 0, 0)
    assert one.linear_in_servers_usd == node.linear_usd
    assert one.bill.total_usd == sum((line.extended_usd for line in one.bill.lines), Decimal(0))
    # NVLink's 900 GB/s are those of both directions: no such server is in the catalogue.
    [fault] = one.included_faults
    assert fault.startswith(
        "links between the NPUs of a server (dim1) carry 900.00 GB/s per NPU, one direction, and "
        "server-8npu includes 450.00 GB/s"
    )


def test_fabric_price_per_bandwidth_counts_what_the_bill_pays_for(plan, tmp_path) -> None:
    """450 GB/s of NVLink are in the price of the servers: 50 GB/s of 128 NPUs are bought."""
    path = plan(text=SMALL)
    assert _one(path).injected_Bps == 128 * 50e9
    assert _one(path, "--parts", _catalogue(tmp_path, "")).injected_Bps == 128 * 500e9


def test_a_server_that_says_nothing_includes_nothing(plan, tmp_path) -> None:
    path, bare = plan(text=SMALL), _catalogue(tmp_path, "      nics: {}\n")
    paid, free = _one(path, "--parts", bare), _one(path)
    links = Decimal(128 * 450 * (4 + 13))
    assert paid.bill.total_usd - free.bill.total_usd == links
    assert [bridge.included_usd for bridge in paid.bridges] == [0, 0]
    assert paid.bridges[0].bill_usd == links
    assert paid.included_faults == free.included_faults == ()


@pytest.mark.parametrize(
    ("topology", "tiers", "is_free"),
    [
        ("SW(8)_SW(16)", "[node, pod]", [True, False]),
        ("SW(4)_SW(2)_SW(16)", "[package, node, pod]", [True, True, False]),
        ("SW(4)_RI(2)_SW(16)", "[package, node, pod]", [True, True, False]),
        # Groups of 16 and of 6 are spread over several servers.
        ("SW(16)_SW(8)", "[node, pod]", [False, False]),
        ("FC(6)_SW(8)", "[node, pod]", [False, False]),
        ("RI(2)_FC(8)_SW(8)", "[package, node, pod]", [True, False, False]),
    ],
)
def test_links_inside_a_server_are_those_of_groups_that_fill_it(
    topology, tiers, is_free, plan
) -> None:
    sizes = [int(part[3:-1]) for part in topology.split("_")]
    dp = 1
    for size in sizes:
        dp *= size
    rules = [f"dim{i + 1} == 50 GB/s" for i in range(len(sizes))]
    path = plan(
        ("SW(8)_SW(16)", topology),
        ("[node, pod]", tiers),
        ("tp: 8, dp: 16", f"tp: 1, dp: {dp}"),
        ("global_batch: 2048", f"global_batch: {dp}"),
        ("[node == 450 GB/s, pod == 50 GB/s]", json.dumps(rules)),
        text=SMALL,
    )
    one = _one(path)
    assert [bridge.bill_usd == 0 for bridge in one.bridges] == is_free
    assert [bridge.included_usd != 0 for bridge in one.bridges] == is_free


def test_nics_of_a_server_are_counted_as_far_as_they_go(plan, tmp_path) -> None:
    """16 servers with 8 NICs each, where every NPU has two: 128 are there, 128 are bought."""
    path = plan(("pod == 50", "pod == 100"), text=SMALL)
    nics = _catalogue(tmp_path, f"{SCALE_UP}      nics: {{nic-400g: 8}}\n")
    amounts = _amounts(_one(path, "--parts", nics), "dim2 pod, host")
    # Spares of what servers hold are the servers'; 2 % of the others is rounded up to 3.
    assert amounts["nic-400g, included in server-8npu"] == (128, Decimal(0))
    assert amounts["nic-400g"] == (128, Decimal(131 * 1499))


def test_a_faster_nic_of_a_server_serves_a_slower_port(plan, tmp_path) -> None:
    path = plan(("{preset: rail-8x400G}", "{port_speed: 200 Gbps}"), ("50 GB", "25 GB"), text=SMALL)
    nics = _catalogue(tmp_path, "      nics: {nic-400g: 8}\n")
    amounts = _amounts(_one(path, "--parts", nics), "dim2 pod, host")
    assert amounts["nic-400g, included in server-8npu"] == (128, Decimal(0))
    assert "nic-200g" not in amounts


def test_nics_that_are_too_slow_are_warned_of(plan, tmp_path) -> None:
    path = plan(("{preset: rail-8x400G}", "{port_speed: 800 Gbps}"), text=SMALL)
    nics = _catalogue(tmp_path, "      nics: {nic-400g: 8}\n")
    one = _one(path, "--parts", nics)
    assert _amounts(one, "dim2 pod, host")["nic-800g"][0] == 128
    [fault] = one.included_faults
    assert fault.startswith("the price of server-8npu holds 8 nic-400g, which are too slow")


def test_every_format_shows_what_is_included(plan, run, tmp_path) -> None:
    path = plan(("450", "900"), text=SMALL)
    done = run("report", path, "-o", tmp_path / "out", "--json")
    found = json.loads(done.out)
    [design] = found["designs"]
    links = 128 * 900 * (4 + 13)
    assert design["linear_cost_in_servers_usd"] == links
    assert any("server-8npu includes 450.00 GB/s" in text for text in found["decision"]["warnings"])
    out = tmp_path / "out"
    rows = list(csv.DictReader(io.StringIO((out / "report-bill-a.csv").read_text())))
    free = [row for row in rows if "included in server-8npu" in row["Part"]]
    assert [(row["Quantity"], row["Extended"]) for row in free] == [("128", "0.00")] * 2
    total = rows[-1]["Extended"]
    assert total == f"{sum(Decimal(row['Extended']) for row in rows[:-1])}"
    assert Decimal(str(design["total_usd"])) == Decimal(total)
    [linear] = csv.DictReader(
        io.StringIO((out / "report-linear-a.csv").read_text().split("dim2")[0])
    )
    assert (linear["Linear model"], linear["In the servers"]) == (f"{links}.00", f"-{links}.00")
    for name in ("report.html", "report.md"):
        text = (out / name).read_text().replace("\\", "").replace("\u2212", "-")
        assert "node link 900 GB/s, included in server-8npu" in text
        assert "-$1,958,400.00" in text
    book = openpyxl.load_workbook(out / "report.xlsx", data_only=True)
    cells = [cell.value for row in book["Design A"] for cell in row]
    assert "node link 900 GB/s, included in server-8npu" in cells
    assert -links in cells


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (SCALE_UP, "      nics: {nic-500g: 8}\n", r"nic-500g.*did you mean"),
        (SCALE_UP, "      nics: {nic-400g: 0}\n", "nic-400g: got 0"),
        (SCALE_UP, "      scale_up: 450\n", "includes.scale_up: got 450"),
        (
            "    port_speed: 100 Gbps\n    power_W: 16\n",
            "    port_speed: 100 Gbps\n    includes: {nics: {nic-400g: 8}}\n",
            "got includes of a nic",
        ),
    ],
)
def test_faults_of_what_is_included_have_their_place(old, new, text, tmp_path) -> None:
    assert old in PARTS
    (tmp_path / "p.yaml").write_text(PARTS.replace(old, new))
    with pytest.raises(SpecError, match=text) as caught:
        load_parts(str(tmp_path / "p.yaml"))
    assert all(fault.place and fault.place.line for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("shape", "words"),
    [("RI(8)_SW(16)", "included in server-8npu"), ("RI(16)_SW(8)", "direct links are not priced")],
)
def test_direct_links_that_cost_nothing_are_said(shape: str, words: str, plan) -> None:
    """A ring of 8 NPUs is in their server, one of 16 leaves it: no price holds its links."""
    text = SMALL.replace("SW(8)_SW(16)", shape).replace("libra-ispass24", "clos-2026")
    text = text.replace("[node, pod]", "[node, leaf]").replace("pod ==", "leaf ==")
    path = plan()
    path.write_text(text)
    one = _one(path)
    [line] = [x for x in one.bill.of("network").lines if x.tier.startswith("dim1")]
    assert (line.note, line.extended_usd) == (words, 0)
    ring, _ = shape.split("_")
    notes = one.proposal.problem.text.notes
    said = f"direct links of dim1 {ring} cost $0 in clos-2026 at tier node: they are not priced"
    assert any(note.startswith(said) for note in notes)
    assert not any(note.startswith("tier node costs nothing") for note in notes)
