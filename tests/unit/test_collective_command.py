"""``libra-planner collective``: the contract, files of cases, and wrong input."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from libra_planner.errors import Place
from libra_planner.inputs.collectives import COLUMNS, Given, parse_case
from libra_planner.step.collectives.models import collective_times
from libra_planner.units import format_time
from libra_planner.views.renderers.terminal import show
from libra_planner.views.times.collective import collective_blocks
from tests.oracles.test_astra import ALGORITHMS, KINDS, ROWS

ONE = (
    "collective",
    "RI(4)_SW(8)",
    "--kind",
    "all-reduce",
    "--size",
    "64MiB",
    "--bandwidth",
    "100,50",
)
HEADER = "kind,size_bytes,topology,bandwidth_GBps,latency_ns,chunks,algorithms\n"
ROW = "all-reduce,67108864,RI(4)_SW(8),100 50,500,4,ring halving_doubling\n"


@pytest.fixture
def cases(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "cases.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_every_astra_row_through_a_file(cases, run) -> None:
    lines = [
        f"{KINDS[row['collective']]},{row['full_vector_bytes']},{row['topology']},"
        f"{row['bandwidth_GBps_per_npu']},{row['latency_ns']},{row['chunks']},"
        f"{' '.join(ALGORITHMS.get(name, name) for name in row['impl'].split())}\n"
        for row in ROWS
    ]
    result = run("collective", "--csv", cases(HEADER + "".join(lines)))
    assert result.code == 0, result.err
    answers = list(csv.DictReader(io.StringIO(result.out)))
    assert list(answers[0]) == [*HEADER.strip().split(","), "time_s", "ideal_time_s"]
    assert [float(row["time_s"]) * 1e9 for row in answers] == pytest.approx(
        [float(row["astra_sim_ns"]) for row in ROWS], abs=1e-5
    )
    again = [line.rsplit(",", 2)[0] + "\n" for line in result.out.splitlines()[1:]]
    assert again == lines


def test_flags_and_file_agree(cases, run) -> None:
    flags = (*ONE, "--latency-ns", "500", "--chunks", "4", "--algorithms", "ring,halving_doubling")
    payload = run(*flags, "--json").payload
    (row,) = csv.DictReader(io.StringIO(run("collective", "--csv", cases(HEADER + ROW)).out))
    assert float(row["time_s"]) == payload["time_s"]
    assert float(row["ideal_time_s"]) == payload["ideal_time_s"] == 1.5 * 2**26 / 100e9
    reference = next(
        row for row in ROWS
        if (row["topology"], row["chunks"], row["latency_ns"]) == ("RI(4)_SW(8)", "4", "500")
    )  # fmt: skip
    assert reference["bandwidth_GBps_per_npu"] == "100 100"
    assert {
        "time_s", "ideal_time_s", "model_time_s", "model_gap", "aggregate_bound_s", "bottleneck",
        "chunks", "dimensions",
    } <= payload.keys()  # fmt: skip
    assert payload["model_gap"] == payload["time_s"] / payload["model_time_s"]
    assert payload["bottleneck"] == "dim1"
    assert [row["steps"] for row in payload["dimensions"]] == [6, 6]


@pytest.mark.parametrize("kind", ["all-reduce", "AllReduce", "all_reduce", "ALLREDUCE", "ar", "AR"])
def test_spellings_of_a_kind(kind: str, run) -> None:
    arguments = [kind if value == "all-reduce" else value for value in ONE]
    assert run(*arguments, "--json").payload["kind"] == "all-reduce"


def test_an_all_gather_is_sized_by_its_result(run) -> None:
    """All-gather and reduce-scatter of the same full vector take the same time."""
    gather = [value.replace("all-reduce", "all-gather") for value in ONE]
    scatter = [value.replace("all-reduce", "reduce-scatter") for value in ONE]
    first, second = (run(*arguments, "--json").payload for arguments in (gather, scatter))
    assert first["time_s"] == second["time_s"]
    assert first["ideal_time_s"] == 0.75 * 2**26 / 100e9


def test_auto_chunks(run) -> None:
    flags = (*ONE, "--latency-ns", "500", "--json", "--chunks")
    best = run(*flags, "auto").payload
    times = {n: run(*flags, str(n)).payload["time_s"] for n in (1, 2, 4, 8, 16, 1024)}
    assert best["time_s"] == min(times.values()) == times[best["chunks"]]


def test_balanced_scheduler(run) -> None:
    """67,108,864 B over 4 x 8 at (100, 50) GB/s: 2 * 31/32 of it over 150 GB/s."""
    payload = run(*ONE, "--scheduler", "balanced", "--json").payload
    bound = 2 * 31 / 32 * 2**26 / 150e9
    assert payload["balanced_time_s"] == pytest.approx(bound, rel=1e-9)
    assert payload["aggregate_bound_s"] == pytest.approx(bound, rel=1e-12)
    assert payload["balanced_gain"] == pytest.approx(payload["ideal_time_s"] / bound, rel=1e-9)
    assert [share["dimensions"] for share in payload["orders"]] == [
        ["dim1", "dim2"],
        ["dim2", "dim1"],
    ]
    text = run(*ONE, "--scheduler", "balanced").out
    assert "1.161x as fast as the fixed order: 84.1% dim1 > dim2, 15.9% dim2 > dim1" in text


def test_in_network_reduction(run) -> None:
    plain, reduced = run(*ONE, "--json").payload, run(*ONE, "--in-network", "--json").payload
    assert reduced["algorithms"] == ["ring", "in_network"]
    assert reduced["dimensions"][1]["traffic_bytes"] == 2**26 / 4
    assert reduced["time_s"] < plain["time_s"]


def test_text_is_for_people(run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = run(*ONE, "--chunks", "4")
    assert result.err == ""
    first, second, third, blank, *table = result.out.splitlines()
    assert first == "all-reduce of 67.109 MB on RI(4)_SW(8), 32 NPUs, 4 chunks"
    assert second.startswith("Time 1.007 ms (exact flow shop); convex model ")
    assert third.startswith("All dimensions together could send the bytes in 866.823 us")
    assert not blank
    assert "dim2       SW(8)  halving_doubling   50.00 GB/s     0 ns   29.360 MB" in "\n".join(
        table
    )


@pytest.mark.parametrize("width", [60, 72, 80, 100, 140])
def test_the_table_keeps_names_and_numbers_on_narrow_terminals(width: int) -> None:
    texts = dict(zip(COLUMNS[:4], ("ar", "67108864", "RI(4)_SW(8)", "100 50"), strict=True))
    case = parse_case({name: Given(text, Place("")) for name, text in texts.items()})
    times = collective_times(
        case.collective, case.group, case.network, case.bandwidth_bytes_per_s, n_chunks=4
    )
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    show(console, collective_blocks(case, times))
    text = console.file.getvalue()
    (row,) = [line for line in text.splitlines() if line.startswith(" dim2 ")]
    for cell in ("SW(8)", "50.00 GB/s", "29.360 MB", "587.203 us"):
        assert cell in row
    assert "…" not in text


def test_rounding_that_matters_is_noted_and_can_be_turned_off(run) -> None:
    """Messages of 1.25 ns are rounded to 1."""
    flags = ("collective", "RI(8)", "--kind", "ar", "--size", "1kB", "--bandwidth", "100")
    assert "takes 20.0% off the time. --clock-ns 0 turns it off" in run(*flags).out
    whole, exact = (run(*flags, "--clock-ns", ns, "--json").payload for ns in ("1", "0"))
    assert whole["time_s"] == pytest.approx(14e-9)
    assert exact["time_s"] == whole["continuous_time_s"] == pytest.approx(14 * 1.25e-9)
    assert "Note" not in run(*flags, "--clock-ns", "0").out


def test_flags_fill_what_a_file_leaves_out(cases, run) -> None:
    path = cases("name,size_bytes,chunks\na,67108864,\nb,67108864,4\n")
    result = run("collective", "RI(4)_SW(8)", "--kind", "ar", "--bandwidth", "100,50",
                 "--chunks", "2", "--csv", path)  # fmt: skip
    header, first, second = result.out.splitlines()
    assert header == "name,size_bytes,chunks,time_s,ideal_time_s"
    expected = [run(*ONE, "--chunks", n, "--json").payload["time_s"] for n in ("2", "4")]
    assert [float(line.split(",")[3]) for line in (first, second)] == expected
    assert first.startswith("a,67108864,,")


def test_json_and_balance_of_a_file(cases, run) -> None:
    path = cases(HEADER + ROW)
    (case,) = run("collective", "--csv", path, "--json").payload["cases"]
    assert case["chunks"] == 4
    balanced = run("collective", "--csv", path, "--scheduler", "balanced").out.splitlines()
    assert balanced[0].endswith(
        "algorithms,time_s,ideal_time_s,balanced_time_s,balanced_gain,aggregate_bound_s"
    )
    assert len(balanced[1].split(",")) == len(balanced[0].split(","))


FLAG_FAULTS = [
    (("--kind", "allreduc"), "--kind: got 'allreduc', expected a known collective; did you mean"),
    (("--size", "64"), "--size: got '64', expected a size with its unit; write e.g. 64B or 64MiB"),
    (("--size", "64MB/s"), "--size: got '64MB/s', expected a size with its unit"),
    (("--size=-1MiB",), "--size: got '-1MiB'"),
    (("--size", "0MiB"), "--size: got '0MiB', expected 0.001 to 1e+18 bytes"),
    (("--size", "1e999MB"), "--size: got '1e999MB', expected 0.001 to 1e+18 bytes"),
    (("--size", "nan"), "--size: got 'nan', expected a size with its unit"),
    (("--bandwidth", "100"), "--bandwidth: got 1 value ('100'), expected 2, one for each"),
    (("--bandwidth", "100,0"), "--bandwidth: got '0', expected a number of GB/s per NPU from 1e-12"),
    (("--bandwidth", "100,nan"), "--bandwidth: got 'nan'"),
    (("--bandwidth", "100,50GB/s"), "--bandwidth: got '50GB/s'"),
    (("--bandwidth", "100,,50"), "--bandwidth: got 3 values"),
    (("--latency-ns", "-5"), "--latency-ns: got '-5', expected a number of ns from 0 to 1e+12"),
    (("--latency-ns", "1,2,3"), "--latency-ns: got 3 values"),
    (("--chunks", "0"), "--chunks: got '0', expected a whole number from 1 to 65,536, or auto"),
    (("--chunks", "2.5"), "--chunks: got '2.5'"),
    (("--chunks", "99999999999"), "--chunks: got '99999999999'"),
    (("--algorithms", "ring"), "--algorithms: got 1 value"),
    (("--algorithms", "rign,ring"), "--algorithms: got 'rign', expected a known algorithm; did you"),
    (("--algorithms", "direct,ring"), "--algorithms: got direct on RI(4), expected ring; other"),
    (("--clock-ns", "-1"), "--clock-ns: got '-1', expected a number from 0 to 1e+06"),
    (("--in-network", "--kind", "all-gather"), "--kind: got all-gather, expected all-reduce with in"),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "message"), FLAG_FAULTS)
def test_wrong_flags(flags: tuple[str, ...], message: str, run) -> None:
    result = run(*ONE, *flags)
    assert (result.code, result.out) == (2, "")
    assert any(line.startswith(message) for line in result.err.splitlines()), result.err
    assert "Traceback" not in result.err


def test_all_wrong_flags_at_once(run) -> None:
    result = run(*ONE, "--size", "1", "--chunks", "x", "--latency-ns", "y")
    assert [line.split(":")[0] for line in result.err.splitlines()] == [
        "--size",
        "--chunks",
        "--latency-ns",
    ]


@pytest.mark.parametrize(
    ("topology", "message"),
    [
        ("RO(4)", "TOPOLOGY: got 'RO'"),
        ("RI(1)", "TOPOLOGY: got 'RI(1)'"),
        ("RI(4)_", "TOPOLOGY: got ''"),
    ],
)
def test_wrong_topologies(topology: str, message: str, run) -> None:
    arguments = [topology if value.startswith("RI") else value for value in ONE]
    result = run(*arguments)
    assert result.code == 2
    assert result.err.startswith(message)


def test_no_switch_to_reduce_in(run) -> None:
    result = run(
        "collective", "RI(4)", "--kind", "ar", "--size", "1MB", "--bandwidth", "1", "--in-network"
    )
    assert (
        result.err
        == "--kind: got RI(4), expected a switch for in-network reduction; leave it out\n"
    )


def test_missing_flags_are_named(run) -> None:
    result = run("collective", "--kind", "all-reduce")
    assert result.code == 2
    assert "got no --size, TOPOLOGY, --bandwidth; give them, or a file" in result.err


FILE_FAULTS = {
    "empty": ("", "cases.csv: got an empty file, expected column names"),
    "no size": (HEADER.replace("size_bytes,", ""), "cases.csv:1: got no column size_bytes; add it"),
    "typo": (HEADER.replace("latency_ns", "latency_us") + ROW, "cases.csv:1: got the column 'latency_us', expected kind"),
    "twice": (HEADER.strip() + ",kind\n", "cases.csv:1: got the column 'kind' twice"),
    "ours": (HEADER.strip() + ",time_s\n", "cases.csv:1: got the column 'time_s', which this command adds"),
    "cells": (HEADER + "all-reduce,1\n", "cases.csv:2: got 2 cells, expected 7, as the first line has"),
    "blank": (HEADER + ROW.replace("67108864", " "), "cases.csv:2: got no size_bytes; fill it"),
    "kind": (HEADER + ROW.replace("all-reduce", "reduce"), "cases.csv:2: kind: got 'reduce', expected a known collective"),
    "unit": (HEADER + ROW.replace("67108864", "64MiB"), "cases.csv:2: size_bytes: got '64MiB', expected a number of bytes"),
    "commas": (HEADER + ROW.replace("100 50", '"100,50"'), "cases.csv:2: bandwidth_GBps: got 1 value ('100,50'), expected 2"),
    "chunks": (HEADER + ROW.replace(",4,", ",four,"), "cases.csv:2: chunks: got 'four'"),
    "algorithm": (HEADER + ROW.replace("ring h", "direct h"), "cases.csv:2: algorithms: got direct on RI(4), expected ring"),
    "quote": (HEADER + 'all-reduce,"67108864\n', "cases.csv:2: got malformed CSV (unexpected end of data)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILE_FAULTS)
def test_wrong_files(name: str, cases, run) -> None:
    text, message = FILE_FAULTS[name]
    path = cases(text)
    result = run("collective", "--csv", path)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(str(path))
    assert message in result.err


def test_all_faults_of_all_rows(cases, run) -> None:
    rows = ROW + ROW.replace("ring", "rign") + ROW.replace("500", "-1").replace("100 50", "100")
    path = cases(HEADER + rows)
    result = run("collective", "--csv", path)
    places = [line.removeprefix(f"{path}:").split(": got")[0] for line in result.err.splitlines()]
    assert places == ["3: algorithms", "4: bandwidth_GBps", "4: latency_ns"]
    many = run("collective", "--csv", cases(HEADER + ROW.replace("ring", "rign") * 60))
    assert len(many.err.splitlines()) == 21
    assert "got 40 more faults like these" in many.err


def test_a_missing_file(tmp_path: Path, run) -> None:
    result = run("collective", "--csv", tmp_path / "none.csv")
    assert result.err.startswith(f"{tmp_path / 'none.csv'}: got no such file")
    assert result.code == 2


def test_windows_text_and_other_columns(cases, run) -> None:
    text = "\ufeff" + HEADER.strip() + ",note\r\n" + ROW.strip() + ',"a, b"\r\n\r\n'
    result = run("collective", "--csv", cases(text))
    assert result.out.splitlines()[1].split('"')[1] == "a, b"


def test_floats_are_printed_in_full(cases, run) -> None:
    out = run("collective", "--csv", cases(HEADER + ROW)).out
    (row,) = csv.DictReader(io.StringIO(out))
    payload = run(*ONE, "--latency-ns", "500", "--chunks", "4", "--json").out
    assert row["time_s"] == repr(json.loads(payload)["time_s"])


def test_a_line_break_in_a_cell_is_part_of_the_cell(tmp_path, run) -> None:
    header = "kind,size_bytes,topology,bandwidth_GBps,note\n"
    path = tmp_path / "cases.csv"
    path.write_text(header + 'all-reduce,1000000,RI(4),"1\n0","x"\n')
    result = run("collective", "--csv", path)
    assert result.code == 2
    assert "bandwidth_GBps" in result.err
    path.write_text(header + 'all-reduce,1000000,RI(4),10,"x\ny\u2028z"\n   \n')
    result = run("collective", "--csv", path)
    assert result.code == 0, result.err
    (row,) = csv.DictReader(io.StringIO(result.out, newline=""))
    assert row["note"] == "x\ny\u2028z"


def test_orders_of_dimensions_that_differ_by_eighteen_orders_of_magnitude(run) -> None:
    result = run(
        *("collective", "RI(4)_FC(8)_SW(4)", "--kind", "all-reduce", "--size", "1MB"),
        *("--bandwidth", "1e-9,1e9,1e-9", "--scheduler", "balanced", "--json"),
    )
    assert result.code == 0, result.err
    assert result.payload["balanced_gain"] >= 1


def test_a_network_between_nodes_is_said_to_have_no_taper(run) -> None:
    """Where nodes take part; inside one there is none to have it."""
    asked = ("collective", "--system", "h100-sxm", "--kind", "all-reduce", "--size", "1GB")
    assert "no taper" in run(*asked, "--nodes", "4").out
    assert "taper" not in run(*asked).out


def test_a_range_of_a_measured_time_is_said_to_be_a_mean_error(run) -> None:
    """No bound: a single measured time may be farther off."""
    asked = ("collective", "--system", "b200", "--kind", "all-reduce", "--size", "16GiB")
    found = run(*asked, "--json").payload
    error = found["time_s_high"] / found["time_s"] - 1
    ends = " to ".join(format_time(found[key]) for key in ("time_s_low", "time_s_high"))
    shown = " ".join(run(*asked).out.split())
    assert f"measured times of its kind are {error:.0%} off on average: {ends}. Single" in shown


@pytest.mark.parametrize(("size", "told_Bps"), [("512MiB", 704e9), ("16GiB", 830e9)])
def test_what_is_told_of_a_node_of_b200_stands_beside_the_law(size, told_Bps, run) -> None:
    """Bus bandwidth of 2 m 7/8 over the time, beyond the range of the law."""
    asked = ("collective", "--system", "b200-sxm", "--kind", "all-reduce", "--size", size)
    found = run(*asked, "--json").payload
    told_s = 2 * found["size_bytes"] * 7 / 8 / told_Bps
    assert told_s < found["time_s_low"]
    [note] = found["notes"]
    assert f": {format_time(told_s)} here, below the range (docs/accuracy.md)" in note
    assert f"up to {found['time_s'] / told_s - 1:.0%} more bandwidth" in note


@pytest.mark.parametrize(
    "other",
    [("--system", "h100-sxm"), ("--size", "64MiB"), ("--kind", "all-gather"), ("--nodes", "2")],
)
def test_it_is_told_of_no_other_collective(other, run) -> None:
    given = {"--system": "b200-sxm", "--kind": "all-reduce", "--size": "1GiB", "--nodes": "1"}
    flags = [text for pair in (given | dict([other])).items() for text in pair]
    assert "more bandwidth than this law" not in str(
        run("collective", *flags, "--json").payload["notes"]
    )
