"""``libra-planner flows``: flow lists over a fabric, or hops that a tracer measured."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from libra_planner.cli.arguments import (
    SEED,
    SEEDS,
    Commands,
    add_json,
    add_policy,
    command,
    flag_of,
    policy_of,
    whole,
)
from libra_planner.cli.streams import print_json, progress_of, show, tell_kept
from libra_planner.errors import Fault, Place, SpecError, unknown_name
from libra_planner.files import STDOUT
from libra_planner.plain_text import visible
from libra_planner.processes import uncollected
from libra_planner.routing.policy import OPTIONS, Policy

if TYPE_CHECKING:
    from libra_planner.check.report import FlowList, RoutedList
    from libra_planner.fabric.clos import Clos

_USUAL = {"policy": "ecmp", "fail_links": 0, "fail_spines": 0}
"""What stands for options that are not given."""

_MANY_FLOWS = 20_000
"""Flows that take long enough to be followed to their ends for progress to be shown."""


def add_flows(commands: Commands) -> None:
    """Add ``flows``."""
    text = "Imbalance, rates and completion times of a list of flows over a fabric."
    parser = command(commands, "flows", flows, text)
    parser.add_argument("fabric", metavar="FABRIC", nargs="?", help="fabric file (YAML) or preset")
    what = "CSV file flow_id,src,dst,bytes[,via][,src_port][,collective]"
    parser.add_argument("flows", metavar="FLOWS", nargs="?", help=what)
    for flag, default, numbers, what in (
        ("--seeds", None, whole(1, 1_000_000), SEEDS),
        ("--seed", None, whole(0, 2**32 - 1), SEED),
        ("--fail-links", 0, whole(0, 10**6), "cables between switches that fail, drawn per seed"),
        ("--fail-spines", 0, whole(0, 10**6), "spines that fail, drawn per seed"),
        ("--busiest", 5, whole(0, 1000), "busiest links to show; default 5"),
    ):
        parser.add_argument(flag, type=numbers, default=default, metavar="N", help=what)
    for flag, metavar, what in (
        (
            "--rates",
            "OUT.csv",
            "write flow_id,rate_GBps,finish_s of every flow (- for stdout)",
        ),
        ("--trace", "FLOW_ID", "show one flow hop by hop"),
        ("--hops", "TABLE.csv", "measured hops flow,switch,egress[,layer] instead of FLOWS"),
        ("--interfaces", "TABLE.csv", "with --hops: all interfaces switch,egress[,layer]"),
    ):
        parser.add_argument(flag, metavar=metavar, help=what)
    add_policy(parser)
    # None, so that what is given can be told from what is not: _USUAL has the defaults.
    parser.set_defaults(policy=None, seeds=None, seed=None, fail_links=None, fail_spines=None)
    parser.add_argument("--fim-only", action="store_true", help="no rates and completion times")
    parser.add_argument("--groups", action="store_true", help="FIM of every ECMP group too")
    add_json(parser)


def flows(options: argparse.Namespace) -> None:
    """``libra-planner flows``."""
    with uncollected():
        from libra_planner.inputs.fabrics import load_fabric
        from libra_planner.inputs.flow_tables import read_flows
        from libra_planner.views.flows import flows_blocks, flows_payload

    _check_options(options)
    if options.hops is not None:
        _refuse_routing(options)
        _print_measured(options)
        return
    for name, value in _USUAL.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    policy = policy_of(options)
    fabric = load_fabric(options.fabric)
    listed = read_flows(options.flows, fabric, pinned=not policy.kind.finds_paths)
    traced = None if options.trace is None else _flow_number(listed.ids, options)
    routed = _routed(options, fabric, listed, policy)
    if options.rates is not None:
        _write_rates(options, routed)
    if options.rates == STDOUT:
        return
    wanted = {"n_busiest": options.busiest, "groups": options.groups, "traced": traced}
    if options.json:
        print_json(flows_payload(routed, **wanted))
    else:
        show(flows_blocks(routed, **wanted))


def _check_options(options: argparse.Namespace) -> None:
    """Refuse what is missing or does not go together."""
    if options.hops is not None and options.flows is not None:
        raise _misuse("--hops", "got a flow list too", "expected one of them", "leave one out")
    if options.hops is None and options.flows is None:
        missing = "FABRIC and FLOWS" if options.fabric is None else "FLOWS"
        fix = "give them, or measured hops with --hops"
        raise _misuse("libra-planner flows", f"got no {missing}", "expected both files", fix)
    if options.hops is None and options.interfaces is not None:
        raise _misuse("--interfaces", "got no --hops", "expected a hop table", "add --hops TABLE")
    if options.rates is not None:
        _check_rates(options)


def _check_rates(options: argparse.Namespace) -> None:
    """Refuse rates that are not computed, or that would overwrite an input."""
    if options.hops is not None or options.fim_only:
        other = "--hops" if options.hops is not None else "--fim-only"
        raise _misuse("--rates", f"got {other} too, which has no rates", "", "leave one out")
    if options.rates == STDOUT:
        _refuse_beside_rates(options)
        return
    for name in (options.fabric, options.flows):
        if os.path.realpath(options.rates) == os.path.realpath(name):
            expected = "expected a file of its own"
            raise _misuse("--rates", f"got {name}, which is read", expected, "write another one")


def _refuse_beside_rates(options: argparse.Namespace) -> None:
    """Refuse what would stand on stdout beside the rates."""
    given = {"--json": options.json, "--groups": options.groups, "--trace": options.trace}
    for flag, value in given.items():
        if value:
            got = f"got {flag} too, and stdout has the rates alone"
            raise _misuse("--rates -", got, "", "write the rates to a file, or leave one out")


def _refuse_routing(options: argparse.Namespace) -> None:
    """Refuse what is about routing: measured hops are routed already."""
    of_routing = (*_USUAL, "seeds", "seed", *OPTIONS, "fim_only", "trace")
    values = {name: getattr(options, name) for name in of_routing}
    given = [name for name, value in values.items() if not (value is None or value is False)]
    if given:
        got, expected = "got --hops too, whose flows have their paths", "expected flows to route"
        raise _misuse(flag_of(given[0]), got, expected, "leave one out")


def _misuse(option: str, got: str, expected: str, fix: str) -> SpecError:
    return SpecError(Fault(got, expected, fix, "", Place(option)))


def _flow_number(ids: Any, options: argparse.Namespace) -> int:
    found = [i for i, name in enumerate(ids) if name == options.trace]
    if not found:
        error = unknown_name("flow_id of the flow list", options.trace, ids[:20])
        raise error.located(Place("--trace"))
    return found[0]


def _routed(
    options: argparse.Namespace, fabric: Clos, listed: FlowList, policy: Policy
) -> RoutedList:
    from libra_planner.studies.flow_lists import ListRuns, Watchers

    watchers = Watchers(
        seeds=progress_of("seeds"),
        flows=progress_of("flows", least=_MANY_FLOWS),
        cut_off=lambda error: print(error, file=sys.stderr),
    )
    failures = (options.fail_links, options.fail_spines)
    files = (options.fabric, options.flows)
    runs = ListRuns(fabric, listed, policy, failures, not options.fim_only, files, watchers)
    return runs.routed(options.seeds, options.seed)


def _write_rates(options: argparse.Namespace, routed: RoutedList) -> None:
    from libra_planner.files import write_text
    from libra_planner.views.flows import rates_csv

    tell_kept(write_text(options.rates, rates_csv(routed.flows.ids, routed.report)))
    if routed.seeds is not None:
        name = "stdout" if options.rates == STDOUT else options.rates
        note = f"{name} has the rates of seed {routed.report.seed}."
        print(visible(note), file=sys.stderr)


def _print_measured(options: argparse.Namespace) -> None:
    from libra_planner.check.measured import measured_report
    from libra_planner.inputs.fabrics import load_fabric
    from libra_planner.inputs.flow_tables import read_hops
    from libra_planner.views.flows import measured_blocks, measured_payload

    trace = read_hops(options.hops, options.interfaces)
    fabric = None if options.fabric is None else load_fabric(options.fabric)
    try:
        measured = measured_report(trace, fabric)
    except SpecError as error:
        raise error.located(Place(options.hops)) from None
    wanted = {"n_busiest": options.busiest, "groups": options.groups}
    if options.json:
        print_json(measured_payload(measured, **wanted))
    else:
        show(measured_blocks(measured, **wanted))
