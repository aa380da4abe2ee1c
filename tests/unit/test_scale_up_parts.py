"""Scale-up domains as parts: what a plan that names one is, costs and refuses (C13, C14, C22)."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import pytest

import libra_planner as lp
from libra_planner.fabric.realization import realize
from libra_planner.fabric.scale_up import MESH, SWITCHED, TORUS, ScaleUpDomain
from libra_planner.fabric.topology import parse_topology
from libra_planner.plan.npus import catalogue, catalogue_npu, name_notes, npu_named, scale_up_domain
from libra_planner.reading.bundled import folder
from libra_planner.step.collectives.measured import SCALE_UPS
from tests.comparisons import compared_by

H100 = """\
workload: gpt3
fabric:
  topology: SW(8)_SW(256)
  tiers: [node, pod]
  scale_up: nvlink4-8
  realization: {preset: rail-8x400G, oversubscription: 2}
parallelism: {tp: 8, dp: 256}
global_batch: 2048
npu: {name: h100-sxm, efficiency_fraction: 0.5}
cost_model: libra-ispass24
constraints: [pod == 50 GB/s]
"""
VECTOR = np.array([450e9, 50e9])
RACKS = """\
workload: gpt3
fabric:
  topology: SW(64)_SW(16)
  tiers: [node, pod]
  scale_up: nvl72
  realization: {port_speed: 400 Gbps}
parallelism: {tp: 8, dp: 128}
global_batch: 1024
npu: {name: gb200, efficiency_fraction: 0.4}
cost_model: libra-ispass24
constraints: [pod == 50 GB/s]
"""
TPUS = """\
workload: gpt3
fabric:
  topology: RI(4)_RI(8)_RI(8)_SW(4)
  tiers: [x, y, z, pod]
  scale_up: ici-torus
parallelism: {tp: 4, dp: 256}
global_batch: 1024
npu: {name: tpu-v5p, efficiency_fraction: 0.5}
cost_model: libra-ispass24
constraints: [pod == 6.25 GB/s]
"""


def test_the_bandwidth_is_the_parts_and_costs_nothing_more(plan) -> None:
    """By hand: 2,048 NPUs x 50 GB/s x (7.8 + 18 + 31.6) $ is all that the network costs."""
    problem = lp.load_plan(plan(text=H100))
    design = lp.optimize(problem)
    assert design.bandwidth_GBps == pytest.approx([450, 50])
    assert problem.cost_usd(VECTOR) == pytest.approx(2048 * 50 * 57.4)
    assert design.optimality_gap <= 1e-6
    [fixed] = [rule for rule in problem.rules if "nvlink4-8" in rule.text]
    assert (fixed.text, fixed.line) == ("dim1 == 450.00 GB/s of nvlink4-8", 5)


def test_a_plan_that_writes_it_out_has_the_same_time(plan) -> None:
    """The part changes who pays, not how long a step takes."""
    written = H100.replace("  scale_up: nvlink4-8\n", "").replace("[pod", "[node == 450 GB/s, pod")
    problems = [lp.load_plan(plan(text=text)) for text in (H100, written)]
    times = [problem.step_time.seconds(VECTOR) for problem in problems]
    assert times[0] == times[1]
    assert problems[0].links.switches[1] == problems[1].links.switches[1]
    assert problems[0].network_cost_usd(VECTOR) < problems[1].network_cost_usd(VECTOR)
    assert any(note.startswith("h100-sxm comes in nvlink4-8") for note in problems[1].text.notes)
    assert not any("comes in" in note for note in problems[0].text.notes)


def test_the_bill_pays_for_nvlink_once(plan) -> None:
    """2,048 H100: the line of the domain is $0 and says why; the bridge has nothing to take off."""
    one = compared_by(str(plan(text=H100))).candidates[0]
    [line] = [line for line in one.bill.lines if line.dimension == "dim1"]
    assert (line.part.name, line.n_units) == ("nvlink4-8, included in server-8npu", 256)
    assert (line.extended_usd, line.power_w) == (Decimal("0.00"), 0)
    assert line.part.price is not None
    assert line.part.price.source == "included in server-8npu: see there"
    first = one.bridges[0]
    assert (first.linear_usd, first.included_usd, first.bill_usd) == (0, 0, 0)
    assert one.bill.of("network").n_units("switch") == 56 + 19  # Of the rails alone.


def test_unused_npus_of_a_domain_are_paid_for_and_said(plan) -> None:
    """16 racks of 72 for 16 groups of 64: 128 GPUs idle, 1,152 bought."""
    path = plan(text=RACKS)
    problem = lp.load_plan(path)
    said = "16 x nvl72 hold 1,152 NPUs, and 1,024 are used: 128 are paid for and idle"
    assert said in problem.text.notes
    one = compared_by(str(path)).candidates[0]
    units = {line.part.name: line.n_units for line in one.bill.of("compute").lines}
    assert units == {"gb200": 1152, "server-nvl72": 16}
    [line] = [line for line in one.bill.lines if line.dimension == "dim1"]
    assert line.note.startswith("128 NPUs idle")
    assert line.power_w == 16 * 3600
    # 18 hosts of a rack have links to users and storage; the racks come with their servers.
    assert one.bill.of("frontend").n_units("nic") == 16 * 18
    assert one.facility.n_server_racks == one.facility.n_own_racks == 16
    assert one.bill.n_units("rack") == one.facility.n_switch_racks
    bought = lp.load_plan(path, "fixed_cost={npu: gb200}")
    assert bought.fixed_cost_usd == 1152 * 37500


def test_a_torus_is_rings_that_share_the_links(plan, run) -> None:
    """600 GB/s over three axes; the tiers of its rings need no prices."""
    path = plan(text=TPUS)
    design = lp.optimize(lp.load_plan(path))
    assert design.bandwidth_GBps == pytest.approx([200, 200, 200, 6.25])
    payload = json.loads(run("check", str(path), "--json").out)
    assert (
        "dim1, dim2, dim3: 256 x ici-torus at full bandwidth, without leaves, optics and ECMP"
        in (payload["notes"])
    )


@pytest.mark.parametrize(
    ("name", "topology", "bandwidth_Bps", "n_domains", "n_npus"),
    [
        ("nvlink3-8", "SW(8)_SW(4)", (300e9,), 4, 32),
        ("nvlink5-8", "SW(4)_SW(4)", (900e9,), 2, 16),  # Two groups of 4 fill a server.
        ("nvlink5-8", "SW(6)_SW(4)", (900e9,), 4, 32),
        ("nvl72", "SW(72)_SW(16)", (900e9,), 16, 1152),
        ("nvl72", "SW(32)_SW(3)", (900e9,), 2, 144),  # Two groups of 32 stand in a rack.
        ("xgmi-8", "FC(8)_SW(4)", (448e9,), 4, 32),
        ("xgmi-8", "FC(4)_SW(4)", (192e9,), 2, 16),  # 3 of the 7 links.
        ("ici-torus", "RI(4)_RI(4)_RI(4)_SW(2)", (200e9,) * 3, 32, 128),
        ("ici-torus", "RI(4)_RI(4)_SW(2)", (200e9,) * 2, 8, 32),
        ("ici-torus", "RI(4)_RI(4)_RI(4)_RI(4)", (200e9,) * 3, 64, 256),
    ],
)
def test_domains_by_hand(name, topology, bandwidth_Bps, n_domains, n_npus) -> None:
    domain, fabric = scale_up_domain(name), parse_topology(topology)
    assert domain.fault(fabric) is None
    assert domain.bandwidth_Bps(fabric) == pytest.approx(bandwidth_Bps)
    assert domain.n_domains(fabric) == n_domains
    assert domain.n_npus_bought(fabric) == n_npus


@pytest.mark.parametrize(
    ("name", "topology", "got", "fix"),
    [
        (
            "nvlink4-8",
            "SW(16)_SW(4)",
            "got 16 NPUs in nvlink4-8, a domain of 8",
            "or name nvl72 with NPUs",
        ),
        ("nvl72", "SW(144)_SW(4)", "got 144 NPUs in nvl72, a domain of 72", "write SW(72)_..."),
        ("nvlink4-8", "FC(8)_SW(4)", "got FC(8) innermost", "write SW(8)_..."),
        ("nvlink4-8", "[SW(8)_SW(4)]", "got SW(8) in brackets", "write SW(8)_[...]"),
        ("ici-torus", "RI(16)_RI(16)_RI(32)", "got 8,192 NPUs in ici-torus", "smaller rings"),
        ("ici-torus", "RI(4)_RI(2)", "got RI(2) of ici-torus, which is a line", "write RI(4)"),
    ],
)
def test_what_a_domain_cannot_hold(name, topology, got, fix) -> None:
    fault = scale_up_domain(name).fault(parse_topology(topology))
    assert fault is not None
    assert fault.got.startswith(got)
    assert fix in fault.fix


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("SW(8)_SW(256)", "SW(16)_SW(128)"), ":5:13: fabric.scale_up: got 16 NPUs in nvlink4-8"),
        (("nvlink4-8", "nvlink4"), "did you mean nvlink4-8?"),
        (("nvlink4-8", "nvl72"), "got nvl72 with the NPU h100-sxm, which does not come in it"),
        (
            ("[pod", "[dim1 <= 300 GB/s, pod"),
            "constraints: got 'dim1 <= 300 GB/s', which nvlink4-8",
        ),
        (("[pod == 50", "[total <= 400"), "'dim1 == 450.00 GB/s of nvlink4-8' (line 5)"),
        (("{preset", "{node: {nics: 2}, preset"), "got node, which is nvlink4-8"),
        (
            (
                "realization: {preset: rail-8x400G, oversubscription: 2}",
                "link_options: {node: [9 GB/s]}",
            ),
            "got speeds of dim1, which nvlink4-8 fixes",
        ),
        (("scale_up: nvlink4-8", "scale_up: {name: nvl72, catalog: x}"), "did you mean catalogue?"),
    ],
)
def test_what_a_plan_cannot_ask_for(changes, message, plan, run) -> None:
    path = plan(changes, text=H100)
    result = run("optimize", str(path))
    assert result.code in (2, 3)
    assert message in result.err
    assert str(path) in result.err


def test_the_law_of_measured_collectives_knows_the_part(plan) -> None:
    """The same time as a switch without NICs, as which a plan without the part has it."""
    text = H100.replace("workload: gpt3\n", "workload: gpt3\nfidelity: calibrated\n")
    written = text.replace("  scale_up: nvlink4-8\n", "").replace("[pod", "[node == 450 GB/s, pod")
    named, other = (lp.load_plan(plan(text=one)) for one in (text, written))
    assert named.step_time.seconds(VECTOR) == other.step_time.seconds(VECTOR)


def test_a_rule_that_says_the_same_is_kept_alone(plan) -> None:
    problem = lp.load_plan(plan(("[pod", "[node == 450 GB/s, node >= 100 GB/s, pod"), text=H100))
    assert [rule.text for rule in problem.rules] == [
        "node == 450 GB/s",
        "node >= 100 GB/s",
        "pod == 50 GB/s",
    ]
    assert lp.optimize(problem).bandwidth_GBps == pytest.approx([450, 50])


def test_a_sweep_keeps_what_the_part_fixes(plan, tmp_path: Path, run) -> None:
    sweep, folder_of_run = tmp_path / "sweep.yaml", str(tmp_path / "out")
    sweep.write_text(
        f"base: {plan(text=H100)}\naxes: {{pod: [25, 50]}}\n"
        'set: {constraints: ["pod == {pod} GB/s"]}\n'
    )
    done = run("sweep", "run", str(sweep), "-o", folder_of_run, "--workers", "1")
    assert "2 optimal" in done.err + done.out
    rows = run("sweep", "show", folder_of_run).out
    assert "dim1 450.00 GB/s" in rows
    assert " $5.88M " in rows


def test_a_domain_of_ones_own_may_be_larger_than_those_that_are_sold(plan, tmp_path: Path) -> None:
    """384 NPUs behind one part, where the tier has a NIC price, too."""
    (tmp_path / "own.yaml").write_text(
        "kind: npu_catalogue\nsource: s\nas_of: t\n"
        "npus: {a: {vendor_name: v, peak_TFLOPps: {bf16: 1}, memory_GB: 80, source: s}}\n"
        "scale_up: {big: {description: d, joined_by: switch, n_npus: 384, bandwidth: 392 GB/s, "
        "server: rack, source: s}}\n"
    )
    changes = [
        ("scale_up: nvlink4-8", "scale_up: {name: big, catalogue: ./own.yaml}"),
        ("SW(8)_SW(256)", "SW(384)_SW(16)"),
        ("{tp: 8, dp: 256}", "{tp: 8, dp: 768}"),
        ("global_batch: 2048", "global_batch: 768"),
        ("[node, pod]", "[pod, pod]"),
    ]
    problem = lp.load_plan(plan(*changes, ("[pod ==", "[dim2 =="), text=H100))
    first, second = problem.links.switches
    assert first is not None
    assert second is not None
    assert (first.one_switch, first.switch_radix, second.one_switch) == (True, 384, False)
    built = realize(problem.topology, [392e9, 50e9], problem.links).dimensions[0]
    assert built.clos.n_switches == {"leaf": 16}


def test_names_of_npus(plan) -> None:
    npus = catalogue().npus
    spellings = {
        "A100-80GB": "a100-sxm-80gb",
        "a100-sxm-80gb": "a100-sxm-80gb",
        "A100-SXM4-80GB": "a100-sxm-80gb",
        "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb",
        "A100-SXM4-80GB (4x100Gb RoCE per node)": "a100-sxm-80gb",
        "NVIDIA H100 80GB HBM3": "h100-sxm",
        "H200 (400 Gb/s CX-7 per GPU)": "h200-sxm",
        "B200": "b200-sxm",
        "GB200 NVL72": "gb200",
        "AMD Instinct MI300X": "mi300x",
        "TPU v5p": "tpu-v5p",
        "H100": "h100-sxm",
        "H100 PCIe": None,
        "()": None,
    }
    assert {name: npu_named(name, npus) for name in spellings} == spellings
    assert name_notes(["GB200", "GB200 (x)"]) == ("NPU 'GB200 (x)': (x) is a remark and not read",)
    short = lp.load_plan(plan(("h100-sxm", "h100"), text=H100)).text.notes
    assert "NPU h100 is read as h100-sxm, not as h100-96gb" in short
    with pytest.raises(lp.SpecError, match="got 'tpu', expected one of 3 NPUs; write tpu-v4, "):
        catalogue_npu("tpu", None, None, path="npu")
    with pytest.raises(lp.SpecError, match=r"got 'a100-sxm4', .* write a100-sxm-80gb or a100-40gb"):
        catalogue_npu("a100-sxm4", None, None, path="npu")
    path = plan(("h100-sxm", '"H100-80GB (DGX)"'), text=H100)
    assert any("(DGX) is a remark" in note for note in lp.load_plan(path).text.notes)


def test_names_that_two_npus_have_are_refused(plan, tmp_path: Path) -> None:
    text = (folder("npu-catalogues") / "npus.yaml").read_text()
    (tmp_path / "own.yaml").write_text(text.replace("aliases: [B200,", "aliases: [H200,"))
    with pytest.raises(lp.SpecError, match="got 'H200' for b200-sxm and for h200-sxm"):
        catalogue("./own.yaml", tmp_path)


def test_every_figure_of_the_catalogue_has_a_source_and_a_domain() -> None:
    """And peaks are ordered as data types are, which a slip of a digit would break."""
    found = catalogue()
    assert {"a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "b300-sxm"} <= set(found.npus)
    assert {"gb200", "gb300", "mi300x", "tpu-v5p"} <= set(found.npus)
    for name, npu in found.npus.items():
        assert npu.source, name
        assert npu.memory_source, name
        assert npu.as_of, name
        assert npu.memory_bandwidth_GBps, name
        assert npu.scale_up or "-pcie" in name, name
        assert set(npu.scale_up) <= set(found.scale_up), name
        assert set(npu.sources) <= set(type(npu).model_fields), name
        order = [
            npu.peak_TFLOPps[t] for t in ("tf32", "bf16", "fp8", "fp4") if t in npu.peak_TFLOPps
        ]
        assert order == sorted(order), name
    assert all(one.source and one.as_of for one in found.scale_up.values())


@pytest.mark.parametrize(
    ("npu", "name"),
    [
        ("a100-sxm-80gb", "A100"),
        ("h100-sxm", "H100"),
        ("h200-sxm", "H200"),
        ("b200-sxm", "B200"),
        ("gb200", "GB200"),
    ],
)
def test_the_law_of_collectives_and_the_catalogue_agree(npu, name) -> None:
    """The law's table is in the core, which reads no files: this holds the two together."""
    [domain] = catalogue_npu(npu, None, None, path="npu").scale_up
    part, law = scale_up_domain(domain), SCALE_UPS[name]
    assert part.npu_Bps == law.npu_Bps
    assert part.n_npus == (law.size or 8)


def test_domains_without_a_server_are_paid_for_by_the_price_book(plan, tmp_path: Path) -> None:
    """A part of one's own: at 4 + 13 $ per GB/s of its tier, like a switch without a name."""
    (tmp_path / "own.yaml").write_text(
        "kind: npu_catalogue\nsource: s\nas_of: t\n"
        "npus: {a: {vendor_name: v, peak_TFLOPps: {bf16: 1}, memory_GB: 80, source: s}}\n"
        "scale_up: {mine: {description: d, joined_by: switch, n_npus: 16, bandwidth: 450 GB/s, "
        "source: s}}\n"
    )
    own = "scale_up: {name: mine, catalogue: ./own.yaml}"
    problem = lp.load_plan(plan(("scale_up: nvlink4-8", own), text=H100))
    assert problem.network_cost_usd(VECTOR) == pytest.approx(2048 * (450 * 17 + 50 * 57.4))
    text = (tmp_path / "own.yaml").read_text().replace("n_npus: 16", "n_npus: 16, n_axes: 2")
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(lp.SpecError, match="expected it of a torus only"):
        catalogue("./own.yaml", tmp_path)


def test_a_part_of_a_domain_never_has_more_than_the_whole() -> None:
    """A slow twin: count the links of a mesh, and the groups that fit into a unit, one by one."""
    for n in range(2, 9):
        mesh = ScaleUpDomain("m", MESH, 8, 7e9)
        links = sum(1 for peer in range(8) if 0 < peer < n)
        assert mesh.bandwidth_Bps(parse_topology(f"FC({n})_SW(3)")) == (links * 1e9,)
    for n in range(2, 73):
        rack, n_groups = ScaleUpDomain("r", SWITCHED, 72, 1.0), 5
        room, units = 0, 0
        for _ in range(n_groups):
            if room < n:
                room, units = 72, units + 1
            room -= n
        assert rack.n_domains(parse_topology(f"SW({n})_SW({n_groups})")) == units
    torus = ScaleUpDomain("t", TORUS, 4096, 6e9, n_axes=3)
    assert torus.bandwidth_Bps(parse_topology("RI(4)_RI(4)_RI(4)_RI(4)")) == (2e9,) * 3


def test_the_example_of_racks(run) -> None:
    """72 switches of 32 ports, one for each rail; 16 racks at $0 for their NVLink."""
    example = str(folder("examples") / "0a_nvl72.yaml")
    payload = json.loads(run("check", example, "--json").out)
    node, pod = payload["dimensions"]
    assert node["realized_GBps"] == 900
    assert [(one["tier"], one["n_switches"]) for one in pod["switches"]] == [("leaf", 72)]
    one = compared_by(example).candidates[0]
    units = {line.part.name: line.n_units for line in one.bill.of("network").lines}
    assert units["nvl72, included in server-nvl72"] == 16
    assert units["switch-32x400g"] == 72
    assert units["nic-400g"] == 1152


def test_lists_of_npus_and_domains(run) -> None:
    """Each figure with its source; tables fit 100 columns."""
    npus = run("list", "npus", "--json").payload["npus"]
    assert npus["h200-sxm"]["scale_up_GBps"] == [450]
    assert npus["h200-sxm"]["sources"].keys() == {"tdp_W"}
    domains = run("list", "scale-ups", "--json").payload["scale-ups"]
    assert domains["nvl72"]["bandwidth_GBps"] == 900
    assert domains["nvl72"]["power_W"] == 3600
    for kind, row in (("npus", "gb200"), ("scale-ups", "xgmi-8")):
        text = run("list", kind).out
        assert row in text
        assert max(map(len, text.splitlines())) <= 100


def test_a_rack_of_its_own_is_no_fault(plan) -> None:
    one = compared_by(str(plan(text=RACKS)))
    assert one.candidates[0].facility.n_servers_per_rack == 1
    # Host and NPUs of a rack; NICs of 64 GPUs, and two of each of 18 hosts.
    watts = 28200 + 72 * 1200 + 64 * 25 + 18 * 2 * 20
    assert one.candidates[0].facility.server_w == pytest.approx(watts)


BOOK = """\
kind: price_book
source: s
as_of: t
unit: USD per GB/s
tiers:
  node: {node}
  pod: {{link: {link}, switch: {switch}, nic: {nic}}}
"""
FREE = "{link: 0, switch: 0, nic: 0, nic_reason: in the server}"
DEAR = "{link: 9, switch: 9, nic: 0, nic_reason: none}"


@pytest.mark.parametrize("seed", range(6))
def test_a_named_part_is_a_free_link_of_a_fixed_bandwidth(seed, plan, tmp_path: Path) -> None:
    """The slow twin: an equality in the rules, and a price book in which the tier is free."""
    random = Random(seed)
    total, objective = (
        random.randint(600, 1200),
        random.choice(("performance", "performance_per_cost")),
    )
    pod = {name: random.randint(1, 40) for name in ("link", "switch", "nic")}
    (tmp_path / "dear.yaml").write_text(BOOK.format(node=DEAR, **pod))
    (tmp_path / "free.yaml").write_text(BOOK.format(node=FREE, **pod))
    sizes = random.choice(((8, 16), (4, 32), (2, 8)))
    degrees = f"{{tp: {random.choice((1, 2))}, dp: {{}}}}"
    tp = int(degrees[5])
    text = H100.replace("SW(8)_SW(256)", f"SW({sizes[0]})_SW({sizes[1]})")
    text = text.replace("{tp: 8, dp: 256}", degrees.replace("{}", str(sizes[0] * sizes[1] // tp)))
    text = text.replace("  realization: {preset: rail-8x400G, oversubscription: 2}\n", "")
    text = text.replace("[pod == 50 GB/s]", f"[total == {total} GB/s]\nobjective: {objective}")
    named = text.replace("libra-ispass24", "./dear.yaml")
    written = text.replace("libra-ispass24", "./free.yaml").replace("  scale_up: nvlink4-8\n", "")
    written = written.replace("[total", "[node == 450 GB/s, total")
    problems = [lp.load_plan(plan(text=one)) for one in (named, written)]
    found = [lp.optimize(problem) for problem in problems]
    usd = [
        problem.cost_usd(one.bandwidth_bytes_per_s)
        for problem, one in zip(problems, found, strict=True)
    ]
    assert found[0].bandwidth_GBps == pytest.approx(found[1].bandwidth_GBps, rel=1e-9)
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-12)
    assert usd[0] == pytest.approx(usd[1], rel=1e-9)


def test_nothing_is_compared_with_equal_bandwidth_that_a_part_rules_out(run, tmp_path) -> None:
    """NVLink has 450 GB/s: 175 GB/s in every dimension is no design, by whatever total."""
    found = run("optimize", "0e_rails_2to1", "--json").payload
    assert found["equal_bandwidth"]["feasible"] is False
    assert found["speedup_vs_equal"] is None
    assert found["perf_per_cost_vs_equal"] is None
    assert "equal bandwidth" not in run("optimize", "0e_rails_2to1").out
    run("report", "0e_rails_2to1", "-o", tmp_path)
    assert "qual bandwidth" not in (tmp_path / "report.md").read_text()
    # Without a part any split is a design.
    freed = run("optimize", "01_gpt3_4d", "--json").payload
    assert freed["speedup_vs_equal"] > 1
