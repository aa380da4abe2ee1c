"""``libra-planner flows``: flow lists over a fabric, or hops that a tracer measured."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from typing import Any

from libra_planner.api.flow_lists import ListRuns, RoutedFlows, Watchers
from libra_planner.check.measured import measured_report
from libra_planner.check.report import FlowList, RoutedList
from libra_planner.cli.arguments.making import first_given
from libra_planner.cli.policies import policy_of
from libra_planner.cli.streams import answer, progress_of, tell_kept
from libra_planner.errors import SpecError, located, unknown_name
from libra_planner.fabric.clos import Clos
from libra_planner.files import STDOUT, write_text
from libra_planner.inputs.fabrics import load_fabric
from libra_planner.inputs.flow_tables import read_flows, read_hops
from libra_planner.plain_text import visible
from libra_planner.routing.policy import OPTIONS, POLICIES, Policy
from libra_planner.views import flows as view

_USUAL = {"policy": "ecmp", "fail_links": 0, "fail_spines": 0}
"""What stands for options that are not given."""

_MANY_FLOWS = 20_000
"""Flows that take long enough to be followed to their ends for progress to be shown."""


def flows(options: argparse.Namespace) -> None:
    """``libra-planner flows``."""
    _refuse_misuse(options)
    wanted: dict[str, Any] = {"n_busiest": options.busiest, "groups": options.groups}
    if options.hops is not None:
        trace = read_hops(options.hops, options.interfaces)
        fabric = None if options.fabric is None else load_fabric(options.fabric)
        with located(options.hops):
            measured = measured_report(trace, fabric)
        payload = partial(view.measured_payload, measured, **wanted)
        answer(options, payload, view.measured_blocks(measured, **wanted))
        return
    if options.compare:
        compared = _compared(options)
        answer(options, partial(view.compared_payload, compared), view.compared_blocks(compared))
        return
    for name, value in _USUAL.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    routed = _routed(options, options.policy)
    if options.rates is not None:
        tell_kept(write_text(options.rates, view.rates_csv(routed)))
        if routed.seeds is not None:
            name = "stdout" if options.rates == STDOUT else options.rates
            note = f"{name} has the rates of seed {routed.report.seed}."
            print(visible(note), file=sys.stderr)
    if options.rates != STDOUT:
        wanted["traced"] = None if options.trace is None else routed.flows.ids.index(options.trace)
        found = RoutedFlows.of(routed, **wanted)
        answer(options, found.to_dict, found.blocks())


def _compared(options: argparse.Namespace) -> list[RoutedList]:
    """The list routed by every policy that finds paths."""
    names = [kind.name for kind in POLICIES.values() if kind.finds_paths]
    progress, found = progress_of("policies"), []
    fabric = load_fabric(options.fabric)
    listed = read_flows(options.flows, fabric, pinned=False)
    for i, name in enumerate(names, 1):
        found.append(_routed_by(options, _policy(options, name), fabric, listed))
        if progress:
            progress(i, len(names))
    return found


def _policy(options: argparse.Namespace, name: str) -> Policy:
    return policy_of(argparse.Namespace(**vars(options) | {"policy": name}))


def _routed(options: argparse.Namespace, name: str) -> RoutedList:
    """The list routed by a policy."""
    policy = _policy(options, name)
    fabric = load_fabric(options.fabric)
    listed = read_flows(options.flows, fabric, pinned=not policy.kind.finds_paths)
    if options.trace is not None and options.trace not in listed.ids:
        with located("--trace"):
            raise unknown_name("flow_id of the flow list", options.trace, listed.ids[:20])
    return _routed_by(options, policy, fabric, listed)


def _routed_by(
    options: argparse.Namespace, policy: Policy, fabric: Clos, listed: FlowList
) -> RoutedList:
    watchers = Watchers(
        seeds=progress_of(f"seeds of {policy.name}"),
        flows=progress_of(f"flows by {policy.name}", least=_MANY_FLOWS),
        cut_off=partial(print, file=sys.stderr),
    )
    failures = (options.fail_links or 0, options.fail_spines or 0)
    files = (options.fabric, options.flows)
    runs = ListRuns(fabric, listed, policy, failures, not options.fim_only, files, watchers)
    return runs.routed(options.seeds, options.seed)


def _refuse_misuse(options: argparse.Namespace) -> None:
    """Refuse what is missing or does not go together."""
    if options.hops is not None and options.flows is not None:
        raise SpecError.at("--hops", "got a flow list too", "expected one of them", "leave one out")
    if options.hops is None and options.flows is None:
        got = f"got no {'FABRIC and FLOWS' if options.fabric is None else 'FLOWS'}"
        fix = "give them, or measured hops with --hops"
        raise SpecError.at("libra-planner flows", got, "expected both files", fix)
    if options.hops is None and options.interfaces is not None:
        place, fix = "--interfaces", "add --hops TABLE"
        raise SpecError.at(place, "got no --hops", "expected a hop table", fix)
    if options.rates is not None:
        _refuse_rates(options)
    if options.compare:
        _refuse_alone(options)
    given = first_given(options, (*_USUAL, "seeds", "seed", *OPTIONS, "fim_only", "trace"))
    if options.hops is not None and given:
        got, expected = "got --hops too, whose flows have their paths", "expected flows to route"
        raise SpecError.at(given, got, expected, "leave one out")


def _refuse_alone(options: argparse.Namespace) -> None:
    """Refuse with several policies what is said of one."""
    alone = ("policy", *OPTIONS, "rates", "trace", "hops", "fim_only", "groups")
    if given := first_given(options, alone):
        fix = "leave one out"
        raise SpecError.at("--compare", f"got {given} too", "expected all policies", fix)


def _refuse_rates(options: argparse.Namespace) -> None:
    """Refuse rates that are not computed, or that would overwrite an input, or have company."""
    if options.hops is not None or options.fim_only:
        other = "--hops" if options.hops is not None else "--fim-only"
        raise SpecError.at("--rates", f"got {other} too, which has no rates", "", "leave one out")
    beside = [name for name in ("json", "groups", "trace") if getattr(options, name)]
    if options.rates == STDOUT and beside:
        got = f"got --{beside[0]} too, and stdout has the rates alone"
        fix = "write the rates to a file, or leave one out"
        raise SpecError.at("--rates -", got, "", fix)
    for name in (options.fabric, options.flows):
        if options.rates != STDOUT and os.path.realpath(options.rates) == os.path.realpath(name):
            got, expected = f"got {name}, which is read", "expected a file of its own"
            raise SpecError.at("--rates", got, expected, "write another one")
