"""Collectives as they run: published measurements of NCCL, 2 to 1,440 GPUs, V100 to GB200."""

from __future__ import annotations

import csv
import io
import itertools
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from libra_planner.cli.main import main
from libra_planner.errors import SpecError
from libra_planner.fits import mean_absolute
from libra_planner.inputs.runs import read_run_file
from libra_planner.step.collectives.fitting import MeasuredRun, fitted, halves_errors
from libra_planner.step.collectives.measured import (
    LARGE_BYTES,
    RANGES,
    SCALE_UPS,
    Constants,
    Ranks,
    measured_time_s,
)

FILE = Path(__file__).with_name("measured_collectives.csv")


def measured_runs() -> list[MeasuredRun]:
    """Rows whose NPUs have scale-up links, and whose NICs are known where they matter."""
    file = read_run_file(FILE)
    found = []
    for row, run in zip(file.rows, file.runs, strict=True):
        cells = dict(zip(file.columns, row, strict=True))
        if not isinstance(run, SpecError):
            publisher = cells["source"].split("/")[0]
            time_s = float(cells["time_s"])
            found.append(
                MeasuredRun(
                    run.kind, run.size_bytes, run.ranks, time_s, cells["curve_id"], publisher
                )
            )
    return found


RUNS = measured_runs()


def mean_error(errors: list[tuple[MeasuredRun, float]], *, across: bool, large: bool) -> float:
    return mean_absolute(
        [
            error
            for run, error in errors
            if (run.ranks.n_domains > 1) == across and (run.size_bytes >= LARGE_BYTES or not large)
        ]
    )


def test_nearly_all_rows_are_answered() -> None:
    """What is left out: cards joined in pairs, and nodes whose NICs nobody says."""
    assert len(RUNS) == 248


@pytest.mark.parametrize(
    ("across", "large", "most"),
    [(False, True, 0.072), (False, False, 0.147), (True, True, 0.126), (True, False, 0.162)],
)
def test_errors_of_the_bundled_constants(across: bool, large: bool, most: float) -> None:
    errors = [(run, run.error(Constants())) for run in RUNS]
    assert mean_error(errors, across=across, large=large) <= most


def test_constants_are_the_fit_of_all_rows_and_physical() -> None:
    found, used = fitted(RUNS), Constants()
    for field in fields(Constants):
        low, high = RANGES[field.name]
        assert low <= getattr(used, field.name) <= high
        assert getattr(used, field.name) == pytest.approx(getattr(found, field.name), rel=0.01)


def test_curves_that_were_left_out_are_met() -> None:
    """Either half of the curves under constants of the other; rows of one curve stay together."""
    errors = [pair for seed in range(2) for pair in halves_errors(RUNS, lambda x: x.curve, seed)]
    assert mean_error(errors, across=False, large=True) <= 0.11
    assert mean_error(errors, across=True, large=True) <= 0.18


def test_the_law_by_hand() -> None:
    """An all-gather of 8 MiB among 8 A100: 3 steps, 7/8 sent and 1/8 copied at the link's share."""
    found = Constants()
    a_s = 3 * found.step_s
    z_s = 2**23 * (7 + found.own_fraction) / 8 / (found.link_fraction * 300e9)
    by_hand = found.start_s + (np.sqrt(a_s) + np.sqrt(z_s)) ** 2
    ranks = Ranks(SCALE_UPS["A100"])
    assert measured_time_s("all-gather", 2**23, ranks) == pytest.approx(by_hand, rel=1e-12)


def test_two_nodes_send_each_byte_once_and_four_as_a_ring() -> None:
    size = 2.0**34
    slow = {n: Ranks(SCALE_UPS["H100"], n, 8, 25e9) for n in (2, 4)}
    times = {n: measured_time_s("all-reduce", size, ranks) for n, ranks in slow.items()}
    nic_Bps = Constants().nic_fraction * 25e9
    assert times[2] == pytest.approx(size / nic_Bps, rel=0.05)
    assert times[4] == pytest.approx(2 * 31 / 32 * size / nic_Bps, rel=0.05)


def test_a_rack_of_72_is_one_domain() -> None:
    assert Ranks(SCALE_UPS["GB200"], 18, 4).n_domains == 1
    assert Ranks(SCALE_UPS["GB200"], 32, 4, 200e9).n_domains == 2
    assert Ranks(SCALE_UPS["H100"], 4, 8, 400e9).n_domains == 4


def test_time_grows_with_size_and_shrinks_with_links() -> None:
    ranks = Ranks(SCALE_UPS["H100"], 4, 8, 400e9)
    faster = Ranks(SCALE_UPS["H100"], 4, 8, 800e9)
    for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send_recv"):
        times = [measured_time_s(kind, 2.0**i, ranks) for i in range(10, 34)]
        assert all(a < b for a, b in itertools.pairwise(times))
        assert measured_time_s(kind, 2.0**33, faster) <= times[-1]


def test_a_file_gets_its_times(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        "gpu_type,nodes,gpus_per_node,nics_per_node,nic_gbps,collective,message_bytes\n"
        "H100,4,8,8,400,all_reduce,1073741824\nH100,4,8,,,all_reduce,1073741824\n"
    )
    assert main(["collective", "--csv", str(path)]) == 0
    answered, unknown = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert main(
        ["collective", "--system", "h100-sxm", "--nodes", "4", "--nics", "8x400Gbps", "--kind",
         "all-reduce", "--size", "1GiB", "--json"]
    ) == 0  # fmt: skip
    one = json.loads(capsys.readouterr().out)
    assert float(answered["time_s"]) == one["time_s"]
    assert one["time_s_low"] < one["time_s"] < one["time_s_high"]
    assert not answered["message"]
    assert not unknown["time_s"]
    assert "NICs" in unknown["message"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--system", "h100-pcie", "--kind", "ar", "--size", "1GiB"], "scale-up links"),
        (["--system", "x100", "--kind", "ar", "--size", "1GiB"], "H100"),
        (["--system", "h100", "--kind", "ar"], "--size"),
        (["--system", "h100", "--nics", "400", "--kind", "ar", "--size", "1GiB"], "8x400Gbps"),
        (["RI(4)", "--system", "h100", "--kind", "ar", "--size", "1GiB"], "leave one"),
        (["--system", "h100", "--kind", "ar", "--size", "1GiB", "--chunks", "4"], "--chunks"),
        (["--system", "h100", "--kind", "ar", "--size", "1GiB", "--csv", "x.csv"], "--csv"),
        (["RI(4)", "--kind=ar", "--size=1MB", "--bandwidth=1", "--nodes", "4"], "--nodes"),
        (["--system", "H100 NVL", "--kind", "ar", "--size", "1GiB"], "scale-up links"),
        (
            ["--system", "gb200", "--npus-per-node", "100", "--kind", "ar", "--size", "1GiB"],
            "at most 72",
        ),
    ],
)
def test_wrong_input_is_one_message(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collective", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_collective_says_what_is_assumed_and_what_nobody_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As plans say it of the same NPUs; NICs are those that ``train`` assumes."""
    asked = ["collective", "--system", "h200-sxm", "--kind", "ar", "--size", "1GiB"]
    told = {}
    for nics in ([], ["--nics", "8x400Gbps"]):
        assert main([*asked, "--nodes", "512", *nics, "--json"]) == 0
        told[len(nics)] = json.loads(capsys.readouterr().out)
    beyond = [
        "calibrated extrapolates: 4,096 ranks (measured up to 1,440); "
        "H200 across domains (measured A100, H100, GB200)",
    ]
    assumed = "assumed NICs of a node: 8x400Gbps; --nics says others"
    full = told[2]["notes"][0]
    assert full.startswith("every NIC has its full speed between nodes, no taper")
    assert told[0]["notes"] == [full, assumed, *beyond]
    assert told[2]["notes"] == [full, *beyond]
    assert told[0]["time_s"] == told[2]["time_s"]
    assert main([*asked, "--nodes", "512"]) == 0
    assert all(f"Note: {one}" in capsys.readouterr().out for one in [assumed])
    assert main(["collective", "--system", "h100", "--kind", "ar", "--size", "1GiB", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []


def test_files_of_systems_and_topologies_are_not_mixed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("gpu_type,topology,message_bytes\nH100,RI(4),1\n")
    assert main(["collective", "--csv", str(path)]) == 2
    assert "a file of each kind" in capsys.readouterr().err


def test_one_npu_of_a_node_has_its_own_nic_only() -> None:
    """One of 8 NPUs on 8 NICs of 400 Gbit/s: 50 GB/s."""
    alone = Ranks(SCALE_UPS["H100"], 2, 1, 400e9)
    assert alone.domain_nic_Bps == pytest.approx(50e9)
    assert Ranks(SCALE_UPS["H100"], 2, 8, 400e9).domain_nic_Bps == pytest.approx(400e9)
    assert Ranks(SCALE_UPS["GB200"], 36, 4, 200e9).domain_nic_Bps == pytest.approx(18 * 200e9)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ("H100,2.5,8,8,400,all_reduce,100", "a whole number"),
        ("H100,1_0,8,8,400,all_reduce,100", "a whole number"),
        ("H100,2,8,8,400,all_reduce,0", "above 0"),
        ("H100,2,8,8,nan,all_reduce,100", "above 0"),
        ("H100,1,1000,8,400,all_reduce,100", "at most 8"),
        ("TPU,2,8,8,400,all_reduce,100", "H100"),
    ],
)
def test_rows_without_a_time_say_why(
    cells: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "runs.csv"
    names = "gpu_type,nodes,gpus_per_node,nics_per_node,nic_gbps,collective,message_bytes"
    path.write_text(f"{names}\n{cells}\n")
    assert main(["collective", "--csv", str(path)]) == 0
    out = capsys.readouterr()
    [row] = csv.DictReader(io.StringIO(out.out))
    assert not row["time_s"]
    assert words in row["message"]
    assert "1 of 1 rows have no time" in out.err
