"""Unusual but valid plans: extreme ranges, slack, idle dimensions, ties, other fabrics."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

GROUPS = "parallelism={forward: [1,1,1,1], input_grad: [1,1,1,1], weight_grad: [1,2,4,32]}"
SILENT = "parallelism={forward: [1,1,1,1], input_grad: [1,1,1,1], weight_grad: [1,1,1,1]}"


def _optimize(run, path, rules: list[str], *settings: str) -> dict:
    chosen = ["--set", f"constraints={json.dumps(rules)}"]
    for setting in settings:
        chosen += ["--set", setting]
    result = run("optimize", path, "--json", *chosen)
    assert result.code == 0, result.err
    assert result.err == ""
    payload = result.payload
    assert payload["optimality_gap"] <= 1e-9
    assert payload["max_violation"] <= 1e-9
    return payload


@pytest.mark.parametrize(
    "rule", ["dim1 <= 1e9 GB/s", "cost <= 1e9 B$", "1e-9 * dim1 <= 1 GB/s", "total <= 1e9 GB/s"]
)
def test_rules_that_limit_nothing_change_nothing(rule: str, plan, run) -> None:
    plain = _optimize(run, plan(), ["total == 500 GB/s"])
    same = _optimize(run, plan(), ["total == 500 GB/s", rule])
    assert np.allclose(same["bandwidth_GBps"], plain["bandwidth_GBps"], rtol=1e-8)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        # dim2 limits both groups: nobody needs more of the others than keeps up with it.
        (["total <= 500 GB/s", "dim2 <= 1 kB/s"], [4e-6, 1e-6, 7.5e-7, 2.421875e-7]),
        (
            ["dim1 <= 1e9 GB/s", "dim2 + dim3 + dim4 <= 1e9 GB/s", "dim2 <= 1 GB/s"],
            [4, 1, 0.75, 0.2421875],
        ),
        (
            ["total <= 1e6 GB/s", "dim2 <= 1 GB/s", "dim3 <= 0.001 GB/s"],
            [4, 1, 0.001, 0.001 * 0.2421875 / 0.75],
        ),
    ],
)
def test_bandwidth_that_cannot_help_is_not_bought(rules, expected, plan, run) -> None:
    payload = _optimize(run, plan(), rules)
    assert np.allclose(payload["bandwidth_GBps"], expected, rtol=1e-9)
    assert payload["unique"] is True


def test_a_surplus_goes_where_it_is_cheapest(plan, run) -> None:
    """total == 500 with capped dimensions: the rest is bought on the cheapest tier, dim1."""
    rules = ["total == 500 GB/s", "dim2 <= 20 GB/s"]
    payload = _optimize(run, plan(), rules)
    needed = [80.0, 20.0, 15.0, 4.84375]
    assert payload["bandwidth_GBps"][1] == pytest.approx(20)
    assert payload["bandwidth_GBps"][2:] == pytest.approx(needed[2:], rel=1e-9)
    assert payload["bandwidth_GBps"][0] == pytest.approx(500 - 20 - 15 - 4.84375)
    assert payload["unique"] is True


def test_a_dimension_without_traffic_is_left_out(plan, run) -> None:
    payload = _optimize(
        run, plan(), ["dim2 <= 10 GB/s", "dim3 <= 10 GB/s", "dim4 <= 10 GB/s"], GROUPS
    )
    assert payload["bandwidth_GBps"] == pytest.approx([0, 10, 7.5, 2.421875], rel=1e-9)
    tied = _optimize(
        run,
        plan(),
        ["dim2 <= 10 GB/s", "dim3 <= 10 GB/s", "dim4 <= 10 GB/s", "dim1 >= 3 * dim2"],
        GROUPS,
    )
    assert tied["bandwidth_GBps"][0] == pytest.approx(30)


def test_a_step_without_communication(plan, run) -> None:
    payload = _optimize(run, plan(), ["total >= 500 GB/s"], SILENT)
    assert payload["bandwidth_GBps"] == pytest.approx([500, 0, 0, 0])
    assert payload["unique"] is True
    assert payload["communication_time_s"] == 0
    assert payload["bottlenecks"] == []


def test_ties_go_to_the_lexicographically_first(plan, run) -> None:
    """Two idle dimensions of one tier's price: dim2 stays at 0, dim3 takes the surplus."""
    path = plan(("[chiplet, package, node, pod]", "[pod, node, node, pod]"))
    only_dim1 = "parallelism={forward: [4,1,1,1], input_grad: [4,1,1,1], weight_grad: [1,1,1,1]}"
    payload = _optimize(run, path, ["total == 500 GB/s", "dim1 <= 100 GB/s"], only_dim1)
    assert payload["bandwidth_GBps"] == pytest.approx([100, 0, 400, 0], abs=1e-6)
    assert payload["unique"] is False


def test_free_bandwidth_and_cost_rules(plan, run, tmp_path) -> None:
    (tmp_path / "free.yaml").write_text(
        "kind: price_book\nsource: test\nas_of: '2026'\nunit: USD per GB/s\n"
        "tiers: {t: {link: 0, switch: 0, nic: 0, nic_reason: test}}\n"
    )
    path = plan(
        ("libra-ispass24", "./free.yaml"), ("[chiplet, package, node, pod]", "[t, t, t, t]")
    )
    payload = _optimize(run, path, ["total == 500 GB/s", "cost <= 20 M$"])
    assert payload["cost_usd"] == 0
    assert payload["perf_per_cost_vs_equal"] is None
    result = run("optimize", path, "--set", 'constraints=["total == 500 GB/s", "cost >= 1 $"]')
    assert result.code == 3
    assert "'cost >= 1 $'" in result.err


def test_cost_rules_bind(plan, run) -> None:
    payload = _optimize(run, plan(), ["cost <= 2 M$"])
    assert payload["cost_usd"] == pytest.approx(2e6, rel=1e-12)
    assert payload["binding"] == [{"rule": "cost <= 2 M$", "line": None}]


@pytest.mark.parametrize("n_dims", [1, 2, 8])
def test_any_number_of_dimensions(n_dims: int, plan, run) -> None:
    path = plan(
        ("RI(4)_FC(8)_RI(4)_SW(32)", "_".join(["FC(2)"] * n_dims)),
        ("[chiplet, package, node, pod]", str(["node"] * n_dims)),
        ("{tp: 16, dp: 256}", f"{{tp: {2 ** (n_dims // 2)}, dp: {2 ** (n_dims - n_dims // 2)}}}"),
    )
    payload = _optimize(run, path, ["total == 64 GB/s"])
    assert len(payload["bandwidth_GBps"]) == n_dims
    assert sum(payload["bandwidth_GBps"]) == pytest.approx(64)


@pytest.mark.parametrize("tier", ["my tier", "日本", "a-b", "cost", "total", "dim4", "1e5"])
def test_any_tier_name(tier: str, plan, run, tmp_path) -> None:
    """Reserved words keep their meaning in rules; such a tier is called by its dimN."""
    quoted = json.dumps(tier, ensure_ascii=False)
    (tmp_path / "p.yaml").write_text(
        "kind: price_book\nsource: test\nas_of: '2026'\nunit: USD per GB/s\n"
        f"tiers: {{{quoted}: {{link: 1, switch: 2, nic: 3}}}}\n"
    )
    path = plan(
        ("libra-ispass24", "./p.yaml"),
        ("[chiplet, package, node, pod]", f"[{', '.join([quoted] * 4)}]"),
    )
    payload = _optimize(run, path, ["total == 500 GB/s", "cost <= 200 M$", "dim4 <= 10 GB/s"])
    assert payload["bandwidth_GBps"][3] == pytest.approx(10)


@pytest.mark.parametrize(
    ("rule", "twin"),
    [
        ("500 GB/s >= total", "total <= 500 GB/s"),
        ("4000 Gbit/s == total", "total == 500 GB/s"),
        ("total <= 4 Tbps", "total <= 500 GB/s"),
        ("dim1 + dim2 + dim3 + dim4 - 100 GB/s <= 400 GB/s", "total <= 500 GB/s"),
        ("2 * total <= 1e3 GB/s + 0 GB/s", "total <= 500 GB/s"),
        ("-1 * total >= -500 GB/s", "total <= 500 GB/s"),
        ("0 GB/s <= total <= 0.5 TB/s", "total <= 500 GB/s"),
        ("chiplet + package + node + pod <= 500_000 MB/s", "total <= 500 GB/s"),
    ],
)
def test_rules_of_one_meaning(rule: str, twin: str, plan, run) -> None:
    first, second = _optimize(run, plan(), [rule]), _optimize(run, plan(), [twin])
    assert first["bandwidth_GBps"] == pytest.approx(second["bandwidth_GBps"], rel=1e-9)
    assert first["equal_bandwidth"] == second["equal_bandwidth"]


def test_an_equal_split_that_breaks_a_rule_is_still_compared(plan, run) -> None:
    payload = _optimize(run, plan(), ["total == 500 GB/s", "dim1 >= 200 GB/s"])
    assert payload["equal_bandwidth"]["feasible"] is False
    assert payload["equal_bandwidth"]["bandwidth_GBps"] == [125] * 4
    assert payload["speedup_vs_equal"] > 1


def test_equal_bandwidth_falls_back_to_the_optimums_own_total(plan, run) -> None:
    payload = _optimize(run, plan(), ["cost <= 2 M$"])
    total = sum(payload["bandwidth_GBps"])
    assert payload["equal_bandwidth"]["bandwidth_GBps"] == pytest.approx([total / 4] * 4)


def test_evaluate_names_the_broken_rules(plan, run) -> None:
    path = plan(
        ("total == 500 GB/s", "total == 500 GB/s\n  - step_time <= 700 ms\n  - cost <= 1 M$")
    )
    payload = run("evaluate", path, "--bandwidth", "300,100,75,24", "--json").payload
    assert payload["feasible"] is False
    broken = {(v["rule"], v["line"], v["unit"]): v["by"] for v in payload["violated"]}
    assert broken["total == 500 GB/s", 8, "GB/s"] == pytest.approx(1)
    assert broken["step_time <= 700 ms", 9, "s"] == pytest.approx(payload["step_time_s"] - 0.7)
    assert broken["cost <= 1 M$", 10, "$"] == pytest.approx(payload["cost_usd"] - 1e6)


def test_proportional_collectives_of_any_size_are_solved(plan, run, tmp_path) -> None:
    """Terms that differ only in size merge; sizes 18 orders apart once lost the certificate."""
    rows = [
        ("forward", "all-reduce", "full_bytes: 1150.16"),
        ("forward", "all-gather", "full_bytes: 2.53147e+06"),
        ("input_grad", "all-gather", "shard_bytes: 3.46049e+08"),
        ("weight_grad", "all-reduce", "size_bytes: 1e+12"),
        ("forward", "all-to-all", "size_bytes: 1"),
    ]
    (tmp_path / "w.yaml").write_text(
        "kind: table\nsource: test\noperations:\n"
        + "".join(
            f"  - {{layer: l{i}, phase: {phase}, compute_s: 0, collective: {{kind: {kind}, {size}}}}}\n"
            for i, (phase, kind, size) in enumerate(rows)
        )
    )
    path = plan(
        ("gpt3-libra", "./w.yaml"),
        ("RI(4)_FC(8)_RI(4)_SW(32)", "FC(4)_RI(4)_RI(8)_RI(2)"),
        ("[chiplet, package, node, pod]", "[chiplet, pod, pod, chiplet]"),
        ("{tp: 16, dp: 256}", "{tp: 64, dp: 4}"),
    )
    _optimize(run, path, ["total == 303.691 GB/s"])


def test_minus_zero_is_zero(plan, run) -> None:
    result = run("evaluate", plan(), "--bandwidth=1,1,1,-0", "--json")
    assert result.code == 2
    assert "got 0 GB/s for dim4" in result.err


def _table_plan(plan, folder, fabric: str, parallelism: str, operations: list[str]):
    """A plan of one tier's prices whose workload lists ``phase, kind, size`` rows."""
    rows = "".join(f"  - {{layer: a, compute_ns: 0, {row}}}\n" for row in operations)
    (folder / "w.yaml").write_text(f"kind: table\nsource: test\noperations:\n{rows}")
    n_dims = fabric.count("_") + 1
    return plan(
        ("gpt3-libra", "./w.yaml"),
        ("RI(4)_FC(8)_RI(4)_SW(32)", fabric),
        ("[chiplet, package, node, pod]", str(["pod"] * n_dims)),
        ("{tp: 16, dp: 256}", parallelism),
    )


ONE_GB = "phase: forward, collective: {kind: all-reduce, size_bytes: 1e9}"


@pytest.mark.parametrize("total", [16, 50, 100, 200, 400, 500, 800, 1000])
def test_idle_dimensions_get_exactly_nothing(total: int, plan, run, tmp_path) -> None:
    """One pattern on dims 2, 5, 6: bandwidth in proportion to traffic, none elsewhere."""
    idle = "[1,1,1,1,1,1]"
    path = _table_plan(
        plan,
        tmp_path,
        "RI(4)_SW(4)_FC(8)_SW(8)_RI(6)_SW(4)",
        f"{{forward: [1,4,1,1,6,2], input_grad: {idle}, weight_grad: {idle}}}",
        [ONE_GB],
    )
    payload = _optimize(run, path, [f"total == {total} GB/s"])
    traffic = np.array([0, 3 / 4, 0, 0, 5 / 24, 1 / 48])
    assert payload["bandwidth_GBps"] == pytest.approx(
        list(traffic / traffic.sum() * total), rel=1e-9
    )
    assert [b for b, t in zip(payload["bandwidth_GBps"], traffic, strict=True) if not t] == [
        0,
        0,
        0,
    ]
    assert payload["unique"] is True


def test_a_tiny_collective_is_refined_too(plan, run, tmp_path) -> None:
    """1 kB beside 430 MB: its dimension still gets the bandwidth that nobody else can use."""
    path = _table_plan(
        plan,
        tmp_path,
        "RI(8)_FC(4)_RI(3)_RI(2)_RI(2)_RI(4)_SW(4)",
        "{tp: 96, dp: 64}",
        [
            "phase: forward, collective: {kind: all-gather, full_bytes: 1000}",
            "phase: forward, collective: {kind: all-gather, group: dp, shard_bytes: 1707687}",
        ],
    )
    rules = ["dim3 <= 563 GB/s", "dim5 <= 317 GB/s", "dim2 >= dim6", "total <= 8347 GB/s"]
    payload = _optimize(run, path, [*rules, "dim1 <= 1335 GB/s", "dim2 <= 3982 GB/s"])
    assert payload["bandwidth_GBps"][0] == pytest.approx(1335, rel=1e-9)
    assert payload["step_time_s"] == pytest.approx(8.619305921620058e-05, rel=1e-10)


def test_nearly_parallel_rules(plan, run, tmp_path) -> None:
    path = _table_plan(plan, tmp_path, "RI(4)_FC(8)", "{tp: 32, dp: 1}", [ONE_GB])
    rules = ["total <= 1000 GB/s", "1.000000002 * dim1 + dim2 <= 1000.000001 GB/s"]
    assert _optimize(run, path, rules)["step_time_s"] == pytest.approx(1.9375e-3, rel=1e-8)


def test_a_conflict_of_a_chain_with_itself_names_the_chain_alone(plan, run) -> None:
    rules = ["200 GB/s <= dim1 <= 100 GB/s", "total <= 150 GB/s"]
    result = run("optimize", plan(), "--set", f"constraints={json.dumps(rules)}")
    assert result.code == 3
    assert "'200 GB/s <= dim1 <= 100 GB/s'" in result.err
    assert "total" not in result.err


@pytest.mark.parametrize("scale", [1, 1000])
def test_a_missed_step_time_is_infeasible_at_any_scale(scale: int, plan, run, tmp_path) -> None:
    idle = "[1,1,1,1,1,1]"
    path = _table_plan(
        plan,
        tmp_path,
        "RI(6)_RI(2)_RI(32)_RI(2)_SW(16)_RI(4)",
        f"{{forward: {idle}, input_grad: {idle}, weight_grad: [3,1,4,1,4,4]}}",
        ["phase: weight_grad, count: 96, collective: {kind: all-reduce, size_bytes: 103717297387}"],
    )
    rules = [f"dim3 <= {0.07 * scale} GB/s", f"total == {2.2 * scale} GB/s"]
    limit = [f"step_time <= {64008 / scale} s"]
    result = run("optimize", path, "--set", f"constraints={json.dumps(rules + limit)}")
    assert result.code == 3, result.err
    assert f"'{rules[0]}' alone allows no less than" in result.err
    assert "total" not in result.err


def _file(folder, text: str):
    path = folder / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    return path


COMPUTE_ONLY = """\
workload: resnet50-libra
fabric: {topology: FC(32), tiers: [node]}
parallelism: {tp: 32, dp: 1}
cost_model: libra-ispass24
objective: performance_per_cost
fixed_cost: 1 M$
"""

IDLE = """\
workload: resnet50-libra
fabric: {topology: SW(32)_FC(16)_RI(4), tiers: [pod, node, node]}
parallelism: {tp: 512, dp: 4}
cost_model: libra-ispass24
objective: performance_per_cost
fixed_cost: 1 M$
"""


@pytest.mark.parametrize(
    "rules",
    [
        [],
        ["total <= 278 GB/s"],
        ["total <= 278 GB/s", "total <= 300 GB/s"],
        ["total <= 278 GB/s", "step_time <= 1 s"],
        ["dim1 == 0 GB/s"],
    ],
)
def test_where_no_bandwidth_is_best_there_are_prices_too(rules: list[str], run, tmp_path) -> None:
    """A step without traffic beside a fixed cost; the unit of the neighbors was 0 GB/s."""
    payload = _optimize(run, _file(tmp_path, COMPUTE_ONLY), rules)
    assert payload["bandwidth_GBps"] == [0]
    assert payload["cost_usd"] == 1e6
    prices = payload["shadow_prices"]
    assert all(price["d_step_time_s"] == price["d_cost_usd"] == 0 for price in prices)
    # Nothing is given to, or spent on, a network of nothing.
    assert {next(iter(price)) for price in prices} <= {"rule"}


def test_nothing_is_taken_from_an_idle_dimension(run, tmp_path) -> None:
    """Their prices came from the rounding of bandwidths of 1e-44 byte/s."""
    payload = _optimize(run, _file(tmp_path, IDLE), ["total <= 278 GB/s"])
    assert payload["bandwidth_GBps"][:2] == [0, 0]
    sides = [(x["dimension"], x["side"]) for x in payload["shadow_prices"] if "dimension" in x]
    assert sides == [("dim1", "right"), ("dim2", "right"), ("dim3", "both")]


HIDDEN = """\
workload: gpt3-libra
fabric: {topology: RI(2)_SW(2), tiers: [package, pod]}
parallelism: {tp: 2, dp: 2}
npu: {peak_TFLOPps: 1e-6, efficiency_fraction: 1e-6}
training_loop: async_dp
cost_model: libra-ispass24
"""


def test_communication_behind_ages_of_compute(run, tmp_path) -> None:
    """What data parallelism sends hides behind compute: it needs a trickle, not a share."""
    payload = _optimize(run, _file(tmp_path, HIDDEN), ["total <= 1784 GB/s"])
    first, second = payload["bandwidth_GBps"]
    assert first == pytest.approx(1784, rel=1e-12)
    hidden_s = 9.895604649984e12  # Backward compute; 3.62 GB of gradients pass in it.
    assert second == pytest.approx(3.62387866e9 / hidden_s * 1e-9, rel=1e-6)


def test_a_frontier_with_idle_dimensions(run, tmp_path) -> None:
    path = _file(tmp_path, IDLE + 'constraints: ["dim3 >= 20 GB/s"]\n')
    result = run("pareto", path, "--points", "4", "--json")
    assert (result.code, result.err) == (0, "")
    points = result.payload["points"]
    assert all(point["bandwidth_GBps"][:2] == [0, 0] for point in points)


@pytest.mark.parametrize(
    ("command", "text"),
    [("optimize", COMPUTE_ONLY), ("optimize", HIDDEN), ("pareto", COMPUTE_ONLY)],
)
def test_a_process_prints_no_warning(command: str, text: str, tmp_path) -> None:
    path = _file(tmp_path, text + 'constraints: ["total <= 1784 GB/s"]\n')
    ran = [sys.executable, "-W", "error", "-m", "libra_planner", command, str(path), "--json"]
    result = subprocess.run(ran, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_bytes_that_are_written_as_bits_are_asked_about(run) -> None:
    """50 Gbit/s are 6.25 GB/s, which no NIC has; 100 Gbit/s are sold."""
    said = "dim2: 6.25 GB/s are 50 Gbit/s per NPU, and no NIC of the parts catalogue has that"
    port = "--set", "fabric.realization.port_speed=400 Gbps"
    for rule, is_said in (("50 Gbps", True), ("50 GB/s", False), ("100 Gbps", False)):
        rules = "--set", f'constraints=["leaf == {rule}", "taper(spine) >= 2"]'
        notes = run("optimize", "0e_rails_2to1", *rules, *port, "--json").payload["notes"]
        asked = [one for one in notes if said in one]
        assert [one.endswith("for NICs of 400 Gbit/s write 50 GB/s") for one in asked] == [
            True
        ] * is_said


def test_bits_that_are_written_as_bytes_are_asked_about(run) -> None:
    """400 GB/s are 3,200 Gbit/s, which no NIC has; 100 GB/s are 800, which are sold."""
    said = "dim2: 400.00 GB/s are 3200 Gbit/s per NPU, and the fastest NIC of the parts catalogue"
    fix = "for NICs of 400 Gbit/s write 50 GB/s"
    for command, vector, is_said in (
        ("evaluate", "450,400,200", True),
        ("check", "450,400,200", True),
        ("evaluate", "450,100,50", False),
        ("evaluate", "450,300,150", False),
    ):
        port = f"fabric.realization.port_speed={8 * int(vector.split(',')[1])} Gbps"
        settings = "--set", port, "--set", "fabric.realization.wiring=rail_only"
        out = run(command, f"0e_rails_2to1@{vector}", *settings, "--json").payload
        notes = " ".join(out["notes"])
        assert (said in notes, fix in notes) == (is_said, is_said)


def test_a_wrong_wiring_is_told_all_that_are_taken(run) -> None:
    result = run("optimize", "0e_rails_2to1", "--set", "fabric.realization.wiring=rail_optimised")
    known = "'rail', 'rail_only', 'rail_optimized' or 'top_of_rack'; did you mean rail_optimized?"
    assert f"got 'rail_optimised', expected {known}" in result.err


def test_rails_may_mean_either_wiring_of_rails(run) -> None:
    """The nearest name is rail, an old one of rail_only; most people mean rail_optimized."""
    told = run("optimize", "0e_rails_2to1", "--set", "fabric.realization.wiring=rails").err
    assert "rail_optimized (NPU i of every node on leaves of rail i, spines join" in told
    assert "rail_only, also called rail (every rail is a network of its own)" in told
    assert "did you mean" not in told
