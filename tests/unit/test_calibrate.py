"""calibrate: the law of measured collectives, fitted to a cluster's own logs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from libra_planner.errors import SpecError
from libra_planner.inputs.kernel_rows import read_kernel_file
from libra_planner.inputs.measured_runs import Cluster, read_measured_runs
from libra_planner.inputs.nccl_tests import read_nccl_log
from libra_planner.plan.npus import catalogue
from libra_planner.plan.systems import load_system
from libra_planner.step.collectives.fitting import CONSTANTS, calibration, refit
from libra_planner.step.collectives.measured import (
    PUBLISHED,
    PUBLISHED_BANDS,
    RANGES,
    SCALE_UPS,
    Constants,
    Ranks,
    measured_time_s,
)
from libra_planner.studies.kernel_calibration import kernel_refit
from libra_planner.studies.kernel_fits import KernelLaw, measured_kernels
from tests import nccl_logs
from tests.nccl_logs import HERE, noisy_log

OURS = Constants(
    start_s=9e-6,
    step_s=3.4e-6,
    infiniband_step_s=7.5e-6,
    link_fraction=0.79,
    nic_fraction=0.81,
    hopper_reduction_fraction=0.55,
)
NICS = ("--nics", "8x400Gbps")
PUBLISHED_RUNS = Path(__file__).parents[1] / "oracles" / "measured_collectives.csv"
A3 = str(HERE / "a3mega_h100.log")


def ranks(n_nodes: int) -> Ranks:
    return Ranks(SCALE_UPS["H100"], n_nodes, 8, 4e11)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """All-reduces, all-gathers and all-to-alls of 1, 2 and 4 nodes of a cluster with OURS."""
    folder, paths = tmp_path_factory.mktemp("logs"), []
    for n in (1, 2, 4):
        for kind in ("all-reduce", "all-gather", "all-to-all"):
            path = folder / f"{nccl_logs.PROGRAMS[kind]}_n{n}.log"
            path.write_text(noisy_log(kind, ranks(n), OURS, seed=10 * n + len(kind)))
            paths.append(str(path))
    return paths


def test_constants_of_made_logs_are_found(logs: list[str]) -> None:
    found = calibration(read_measured_runs(logs, Cluster(node_nic_Bps=4e11)).runs)
    told = found.fit.unsure
    assert {"start_s", "step_s", "infiniband_step_s", "link_fraction"} <= told.keys()
    assert {"nic_fraction", "hopper_reduction_fraction"} <= told.keys()
    for name in told:
        true, value = getattr(OURS, name), getattr(found.constants, name)
        assert value == pytest.approx(true, rel=0.05), name
        assert abs(value / true - 1) <= 4 * told[name], name
    assert set(found.fit.silent) == {"ethernet_step_s", "blackwell_reduction_fraction"}
    assert all(getattr(found.constants, name) == getattr(PUBLISHED, name)
               for name in CONSTANTS if name not in told)  # fmt: skip
    total = found.total
    assert total.before > 0.2
    assert total.after < total.held_out < 0.04
    assert found.by_curve


def test_a_plan_runs_on_the_system_that_was_fitted(logs: list[str], tmp_path: Path, run) -> None:
    path = tmp_path / "ours.yaml"
    result = run("calibrate", "--nccl", *logs, *NICS, "--as-of", "2026-11-23", "-o", path, "--json")
    assert result.code == 0, result.err
    system = load_system(str(path))
    assert (system.name, system.npu, system.as_of) == ("ours", "h100-sxm", "2026-11-23")
    for name, one in result.payload["constants"].items():
        assert getattr(system.constants, name) == one["value"]
        assert one["fitted"] or one["value"] == one["published"]
    one = run("collective", "--system", path, "--nodes", "4", *NICS, "--kind", "all-reduce",
              "--size", "1GiB", "--json").payload  # fmt: skip
    law_s = measured_time_s("all-reduce", 2**30, ranks(4), system.constants)
    assert one["time_s"] == law_s
    assert law_s == pytest.approx(measured_time_s("all-reduce", 2**30, ranks(4), OURS), rel=0.02)
    [large] = [row for row in result.payload["errors"] if row["runs"] == "64 MiB and more"]
    assert one["time_s_high"] / one["time_s"] - 1 == pytest.approx(large["held_out"], abs=0.01)
    (tmp_path / "plan.yaml").write_text(PLAN)
    arguments = ("evaluate", tmp_path / "plan.yaml", "--bandwidth", "450,50")
    ours, published = (
        run(*arguments, "--json", "--set", f"system={name}").payload
        for name in ("./ours.yaml", "h100-sxm")
    )
    assert ours["step_time_s"] > published["step_time_s"]
    bands = [one["step_time_high_s"] / one["step_time_s"] for one in (ours, published)]
    assert 1 < bands[0] < bands[1]
    text = run(*arguments, "--set", "system=./ours.yaml").out
    assert "with the constants of ours (2026-11-23)" in text
    assert "by the mean error of measured collectives (ours, 2026-11-23)" in text


PLAN = """\
workload: gpt3-libra
fabric: {topology: "SW(8)_SW(4)", tiers: [node, leaf]}
parallelism: {tp: 8, dp: 4}
cost_model: clos-2026
fidelity: calibrated
constraints: ["total == 500 GB/s"]
"""


def test_a_public_log_of_two_nodes_is_read() -> None:
    [test] = read_nccl_log(A3)
    assert (test.kind, test.nodes, set(test.npus)) == (
        "all-reduce", (2, 8), {"NVIDIA H100 80GB HBM3"},
    )  # fmt: skip
    assert len(test.rows) == 31
    last = test.rows[-1]
    assert (last.size_bytes, last.time_s) == (2**33, pytest.approx(47535e-6))
    found = read_measured_runs([A3], Cluster(node_nic_Bps=2e11, network="ethernet"))
    assert found.npu == "NVIDIA H100 80GB HBM3"
    assert found.notes == ("left out (below 1 KiB or over 16 GiB): 7 of the runs",)
    fit = refit(found.runs)
    assert set(fit.unsure) == {"ethernet_step_s", "nic_fraction"}


def test_a_public_log_can_hold_several_tests() -> None:
    one, two = read_nccl_log(HERE / "oci_a100.log")
    assert (one.nodes, two.nodes) == ((1, 8), (2, 8))
    assert [test.rows[0].time_s for test in (one, two)] == pytest.approx([80922e-6, 104989e-6])
    found = read_measured_runs([str(HERE / "oci_a100.log")], Cluster(node_nic_Bps=2e11))
    assert [run.ranks.n_domains for run in found.runs] == [1, 2]


def test_a_log_of_2021_is_read() -> None:
    """No root column, no groups, errors in place of wrong results."""
    [test] = read_nccl_log(HERE / "a100_2021.log")
    assert (test.kind, test.nodes) == ("", (1, 2))
    assert [(row.size_bytes, row.time_s) for row in test.rows] == [
        (32, pytest.approx(10.14e-6)), (64, pytest.approx(10.14e-6)),
    ]  # fmt: skip


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "[0] ", "0: ", "    "])
def test_what_launchers_put_before_lines_is_no_part_of_them(prefix: str, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("".join(f"{prefix}{line}\n" for line in Path(A3).read_text().splitlines()))
    [found], [expected] = read_nccl_log(path), read_nccl_log(A3)
    assert (found.rows, found.hosts, found.kind) == (expected.rows, expected.hosts, expected.kind)


def test_nccl_says_which_network_it_uses(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    info = "h1:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]\n"
    path.write_text(info + Path(A3).read_text())
    found = read_measured_runs([str(path)], Cluster(node_nic_Bps=2e11))
    assert {run.ranks.network for run in found.runs} == {"ethernet"}


def wrong(old: str, new: str) -> str:
    text = Path(A3).read_text()
    assert old in text
    return text.replace(old, new, 1)


ROW = "    65536         16384     float     sum      -1    159.4    0.41    0.77      0"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (re.sub("159.4.*", "159.4", Path(A3).read_text()), NICS, ":46: got 6 cells"),
        (re.sub("16384     float .*", "", Path(A3).read_text()), NICS, ":46: got 1 cell,"),
        (Path(A3).read_text().replace("#       size", "# bytes"), NICS, ":33: got a row"),
        (wrong(ROW, f"{ROW[:-1]}3"), NICS, ":46: got 3 wrong results"),
        (wrong("159.4", "  0.0"), NICS, ":46: got a time of 0"),
        (wrong("159.4", "1x9.4"), NICS, ":46: got '1x9.4', expected a number"),
        (wrong("12646", "19646"), NICS, "expected 109.31: size over time"),
        (wrong("values : 0 OK", "values : 2 FAILED"), NICS, ":64: got wrong results"),
        (wrong("Rank  8", "Rank  0"), NICS, ":21: got rank 0, expected rank 8; build"),
        (wrong("Rank  8 Group  0", "Rank  8 Group  1"), NICS, ":21: got several groups"),
        (wrong("on ztan-mig-gq73", "on ztan-mig-235z"), NICS, "9 NPUs on ztan-mig-235z and 7"),
        (
            wrong("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"),
            NICS,
            ":10: got NVIDIA H100 80GB HBM3",
        ),
        (Path(A3).read_text().replace("80GB HBM3", "PCIe"), NICS, "scale-up links"),
        (Path(A3).read_text().replace("all_reduce", "broadcast"), NICS, ":10: got broadcast_perf"),
        (
            Path(A3).read_text().replace("all_reduce", "all_gather"),
            NICS,
            "expected 0.938 of all-ga",
        ),
        (Path(A3).read_text().replace("all_reduce_perf", "x"), NICS, "write --kind all-reduce"),
        (Path(A3).read_text(), (*NICS, "--kind", "all-gather"), "got a log of all-reduce"),
        (Path(A3).read_text(), (), ":10: got 2 domains without NICs"),
        (Path(A3).read_text(), (*NICS, "--npu", "a100-sxm-80gb"), "as --npu says"),
        (Path(A3).read_text(), ("--nics", "8x50Gbps"), "faster than their line rates"),
        (Path(A3).read_text()[:4400], NICS, "expected"),
        ("hello\n", NICS, "got no test"),
        ("", NICS, "got no test"),
        (Path(A3).read_text(), (*NICS, "--as-of", "today"), "--as-of: got 'today'"),
        (Path(A3).read_text(), ("--nics", "8"), "8x400Gbps"),
        (Path(A3).read_text(), (*NICS, "--npu", "x100"), "--npu: got 'x100'"),
        (Path(A3).read_text(), (*NICS, "--kind", "x"), "--kind: got 'x'"),
    ],
)
def test_what_is_no_measurement_is_refused_and_nothing_is_written(
    text: str, options: tuple[str, ...], words: str, tmp_path: Path, run
) -> None:
    path = tmp_path / "a.log"
    path.write_text(text)
    result = run("calibrate", "--nccl", path, *options, "-o", tmp_path / "s.yaml")
    assert result.code == 2
    assert words in result.err
    assert not (tmp_path / "s.yaml").exists()


def test_faults_of_all_logs_are_told_at_once(tmp_path: Path, run) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.log").write_text(wrong("159.4", "  0.0"))
    paths = (tmp_path / "a.log", tmp_path / "b.log", tmp_path / "none.log")
    result = run("calibrate", "--nccl", *paths, *NICS, "-o", tmp_path / "s.yaml")
    assert [name in result.err for name in ("a.log:", "b.log:", "none.log:")] == [True] * 3


def test_sends_between_servers_are_those_of_one_rank_each(tmp_path: Path, run) -> None:
    path = tmp_path / "sendrecv.log"
    path.write_text(noisy_log("send_recv", ranks(2), OURS, seed=1))
    result = run("calibrate", "--nccl", path, *NICS, "-o", tmp_path / "s.yaml")
    assert result.code == 2
    assert "sendrecv_perf on several domains" in result.err


def test_a_constant_that_ends_at_its_limit_is_named(tmp_path: Path, run) -> None:
    paths = []
    for n in (2, 4):
        slow = replace(OURS, nic_fraction=0.4)
        (tmp_path / f"{n}.log").write_text(noisy_log("all-reduce", ranks(n), slow, seed=n))
        paths.append(tmp_path / f"{n}.log")
    result = run("calibrate", "--nccl", *paths, *NICS, "-o", tmp_path / "s.yaml")
    assert "nic_fraction ended at a limit of its range, 0.5 to 1" in result.out
    assert load_system(str(tmp_path / "s.yaml")).constants.nic_fraction == RANGES["nic_fraction"][0]


def test_one_curve_of_large_sizes_tells_its_bandwidth_alone(tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    sizes = [2**i for i in range(27, 34)]
    law = replace(OURS, hopper_reduction_fraction=0.55)
    path.write_text(
        nccl_logs.log(
            "all-reduce", ranks(1), lambda x: measured_time_s("all-reduce", x, ranks(1), law),
            sizes=sizes,
        )
    )  # fmt: skip
    fit = refit(read_measured_runs([str(path)], Cluster()).runs)
    assert "hopper_reduction_fraction" in fit.unsure
    assert not {"start_s", "link_fraction", "own_fraction", "nic_fraction"} & fit.unsure.keys()


def test_a_file_that_was_there_is_kept(tmp_path: Path, run) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("mine\n")
    result = run("calibrate", "--nccl", A3, *NICS, "-o", path)
    assert result.code == 0
    assert (tmp_path / "s.yaml.bak").read_text() == "mine\n"
    assert "s.yaml.bak" in result.err


def test_published_rows_of_one_npu_can_be_fitted(tmp_path: Path, run) -> None:
    path = tmp_path / "s.yaml"
    result = run("calibrate", "--nccl", PUBLISHED_RUNS, "--npu", "h100-sxm", "-o", path, "--json")
    assert result.payload["n_runs"] == 89
    assert any("rows of other NPUs" in note for note in result.payload["notes"])
    assert any("without NICs" in note for note in result.payload["notes"])
    total = result.payload["errors"][0]
    assert total["after"] < total["before"]


def test_several_npus_need_a_choice(tmp_path: Path, run) -> None:
    table = tmp_path / "a.csv"
    table.write_text(HEADER + "H100,1,8,,,ar,1048576,1e-4\nA100,1,8,,,ar,1048576,1e-4\n")
    for paths in ((table,), (A3, str(HERE / "oci_a100.log"))):
        result = run("calibrate", "--nccl", *paths, *NICS, "-o", tmp_path / "s.yaml")
        assert result.code == 2
        assert "expected runs of one NPU" in result.err
        assert "--npu" in result.err


HEADER = "gpu_type,nodes,gpus_per_node,nics_per_node,nic_gbps,collective,message_bytes,time_s\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER + "H100,1,8,,,all_reduce,1048576,0\n", "a.csv:2: time_s: got '0'"),
        (HEADER + "H100,1,8,,,all_reduce,1048576,fast\n", "a.csv:2: time_s: got 'fast'"),
        (HEADER + "H100,1,8,,,all_reduce,1048576,\n", "a.csv:2: time_s: got ''"),
        (HEADER + "H100,2.5,8,,,all_reduce,1048576,1\n", "a.csv:2: nodes: got '2.5'"),
        (HEADER + "H100,1,8,,,all_reduce,1048576\n", "a.csv:2: got 7 cells"),
        (HEADER + "H100,4,8,,,all_reduce,1048576,1\n", "got no run"),
        (
            HEADER + "H100,1,8,,,all_reduce,1048576,1e-4\n" * 3,
            "got 3 measurements, expected 6 or more",
        ),
        (HEADER.replace(",time_s", "") + "H100,1,8,,,all_reduce,1048576\n", "no column time_s"),
        ("a,b\n1,2\n", "got no column gpu_type"),
    ],
)
def test_wrong_tables_are_refused(text: str, words: str, tmp_path: Path, run) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    result = run("calibrate", "--nccl", path, "-o", tmp_path / "s.yaml")
    assert result.code == 2
    assert words in result.err


def test_nics_can_be_said_for_a_table_that_lacks_them(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEADER + "H100,4,8,,,all_reduce,1048576,1e-3\nH100,4,8,8,200,ar,1048576,1e-3\n")
    found = read_measured_runs([str(path)], Cluster(node_nic_Bps=4e11))
    assert [run.ranks.node_nic_Bps for run in found.runs] == [4e11, 2e11]


SYSTEM = """\
kind: system
name: ours
npu: h100-sxm
source: our logs
as_of: 2026-11-23
collectives: {nic_fraction: 0.7, start_s: 9.0e-6}
error: {collectives: {before: 0.2, after: 0.05, n: 100}}
"""


def test_a_short_system_file_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SYSTEM)
    found = load_system("s.yaml", tmp_path)
    assert found.constants == replace(PUBLISHED, nic_fraction=0.7, start_s=9e-6)
    assert found.bands.error_fraction("all-reduce", 2**30, ranks(4)) == 0.05


def test_bands_are_the_own_ones_as_far_as_was_measured(tmp_path: Path) -> None:
    """Beyond it, and for classes without an error, the published ones hold where they are wider."""
    path = tmp_path / "s.yaml"
    errors = "error: {collectives: {before: 0.2, after: 0.05, n: 100}, classes: {across_large: "
    errors += "{before: 0.2, after: 0.05, held_out: 0.06, n: 50}}}\n"
    errors += "measured: {kinds: [all-reduce], most_ranks: 64}\n"
    path.write_text(SYSTEM.replace(SYSTEM.splitlines()[-1] + "\n", errors))
    bands, usual = load_system(str(path)).bands, PUBLISHED_BANDS
    assert bands.error_fraction("all-reduce", 2**30, ranks(8)) == 0.06
    assert bands.error_fraction("all-reduce", 2**30, ranks(16)) == usual.across_large_fraction
    assert bands.error_fraction("all-gather", 2**30, ranks(8)) == usual.across_large_fraction
    assert bands.error_fraction("all-reduce", 2**30, ranks(1)) == usual.inside_large_fraction


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("nic_fraction: 0.7", "nic_share: 0.7", "s.yaml:6:15: collectives.nic_share: got 'nic_sh"),
        ("nic_fraction: 0.7", "nic_fraction: 1.2", "got 1.2, expected 0.5 to 1, which is physical"),
        ("nic_fraction: 0.7", "nic_fraction: fast", "s.yaml:6:29: collectives.nic_fraction"),
        ("kind: system", "kind: plan", "s.yaml:1:7: kind"),
        ("npu: h100-sxm", "npu: x100", "s.yaml:3:6: npu: got 'x100'"),
        ("2026-11-23", "yesterday", "s.yaml:5:8: as_of"),
        ("after: 0.05", "after: -1", "s.yaml:7"),
        ("error:", "published: {start_s: 5.0e-6}\nerror:", "got start_s twice"),
        ("error:", "kernels: {gemm_share: 0.5}\nerror:", "s.yaml:7:11: kernels.gemm_share: got"),
        ("error:", "kernels: {gemm_fraction: 2}\nerror:", "got 2, expected 0.2 to 1"),
        ("error:", "kernel: {}\nerror:", "got the unknown key 'kernel'"),
    ],
)
def test_wrong_system_files_are_refused(
    old: str, new: str, words: str, tmp_path: Path, run
) -> None:
    (tmp_path / "s.yaml").write_text(SYSTEM.replace(old, new))
    (tmp_path / "plan.yaml").write_text(f"{PLAN}system: s.yaml\n")
    result = run("evaluate", tmp_path / "plan.yaml", "--bandwidth", "450,50")
    assert result.code == 2
    assert words in result.err
    with pytest.raises(SpecError):
        load_system(str(tmp_path / "s.yaml"))


def test_a_system_file_that_is_not_there_is_named(tmp_path: Path, run) -> None:
    (tmp_path / "plan.yaml").write_text(f"{PLAN}system: none.yaml\n")
    result = run("evaluate", tmp_path / "plan.yaml", "--bandwidth", "450,50")
    assert result.code == 2
    assert "none.yaml" in result.err
    assert "plan.yaml:7:9: system" in result.err


def test_the_example_of_the_documentation(tmp_path: Path, run, monkeypatch) -> None:
    text = (Path(__file__).parents[2] / "docs" / "calibrate.md").read_text()
    command, shown = text.split("```console\n$ libra-planner ")[1].split("\n", 1)
    (tmp_path / "a3mega_h100.log").write_text(Path(A3).read_text())
    monkeypatch.chdir(tmp_path)
    result = run(*command.split())
    printed = [line.rstrip() for line in result.out.splitlines()]
    assert printed == shown.split("```")[0].splitlines()
    assert (tmp_path / "a3.yaml").read_text() == text.split("```yaml\n")[1].split("```")[0]


def test_a_sweep_names_the_system_file_from_wherever_its_rows_go(tmp_path: Path, run) -> None:
    (tmp_path / "s.yaml").write_text(SYSTEM)
    (tmp_path / "plan.yaml").write_text(f"{PLAN}system: ./s.yaml\n")
    axes = 'axes: {total: [400, 500]}\nset: {constraints: ["total == {total} GB/s"]}\n'
    (tmp_path / "sweep.yaml").write_text(f"base: ./plan.yaml\n{axes}")
    assert run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run").code == 0
    (tmp_path / "far").mkdir()
    row = tmp_path / "far" / "row.yaml"
    assert run("sweep", "design", tmp_path / "run", "0", "-o", row).code == 0
    assert f"system: {tmp_path / 's.yaml'}" in row.read_text()
    (tmp_path / "s.yaml").write_text(SYSTEM.replace("0.7", "0.8"))
    changed = run("sweep", "run", tmp_path / "sweep.yaml", "-o", tmp_path / "run")
    assert changed.code == 2


def test_the_schema_knows_every_key(run) -> None:
    schema = run("schema", "system").payload
    keys = {"collectives", "published", "kernels", "steps", "steps_published", "error", "measured"}
    assert keys <= schema["properties"].keys()
    assert "the runs tell" in schema["properties"]["collectives"]["description"]


PUBLISHED_KERNELS = PUBLISHED_RUNS.with_name("measured_kernels.csv")


def test_kernels_are_fitted_too(tmp_path: Path, run) -> None:
    path = tmp_path / "s.yaml"
    arguments = ("calibrate", "--kernels", PUBLISHED_KERNELS, "--npu", "h100-sxm", "-o", path)
    result = run(*arguments, "--json")
    assert result.code == 0, result.err
    found = result.payload["kernels"]
    total = found["errors"][0]
    assert total["after"] < total["held_out"] < total["before"] < 0.1
    assert not found["constants"]["attention_backward_fraction"]["fitted"]
    assert result.payload["constants"] is None
    system = load_system(str(path))
    for name, one in found["constants"].items():
        assert getattr(system.kernels, name) == one["value"]
    assert system.constants == PUBLISHED
    both = run(*arguments, "--nccl", PUBLISHED_RUNS).out
    assert "Collectives: 89 runs" in both
    assert "Kernels: 145" in both
    system = load_system(str(path))
    assert system.constants != PUBLISHED
    assert system.kernels is not None


def test_kernels_of_other_constants_are_found() -> None:
    """Times of the law with another share of the peak and another launch, and noise of 3 %."""
    rows = [
        row
        for row in measured_kernels(read_kernel_file(PUBLISHED_KERNELS))
        if row.is_fitted and row.npu == "h100-sxm"
    ]
    law = KernelLaw.of(catalogue())
    ours = replace(law.families["hopper"], gemm_fraction=0.61, launch_s=4e-6)
    true = KernelLaw({"hopper": ours}, law.benchmarks)
    noise = np.random.default_rng(1).normal(0, 0.03, len(rows))
    times_s = [row.time_s for row in rows] * (1 + true.errors(rows)) * np.exp(noise)
    made = [replace(row, time_s=time_s) for row, time_s in zip(rows, times_s, strict=True)]
    found = kernel_refit(made)
    assert found.told.values["gemm_fraction"] == pytest.approx(0.61, rel=0.03)
    assert found.told.values["launch_s"] == pytest.approx(4e-6, rel=0.1)
    assert found.rows[0].after < found.rows[0].held_out < 0.04


def test_times_of_kernels_that_are_none_are_refused(tmp_path: Path, run) -> None:
    path = tmp_path / "k.csv"
    path.write_text("gpu_type,op,dtype,m,n,k,time_s\nH100,gemm,bf16,64,64,64,0\n")
    result = run("calibrate", "--kernels", path, "-o", tmp_path / "s.yaml")
    assert result.code == 2
    assert "k.csv:2: time_s: got '0'" in result.err
    path.write_text("gpu_type,op,dtype,m,n,k\nH100,gemm,bf16,64,64,64\n")
    assert "no column time_s" in run("calibrate", "--kernels", path, "-o", tmp_path / "s").err


def test_nothing_to_fit_is_refused(tmp_path: Path, run) -> None:
    result = run("calibrate", "-o", tmp_path / "s.yaml")
    assert result.code == 2
    assert "give --nccl LOG, --kernels CSV or --runs CSV" in result.err


def test_json_is_one_object_of_plain_numbers(tmp_path: Path, run) -> None:
    result = run("calibrate", "--nccl", A3, *NICS, "-o", tmp_path / "s.yaml", "--json")
    assert json.loads(result.out)["system"] == str(tmp_path / "s.yaml")
