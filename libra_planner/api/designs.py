"""Designs in Python: what they have in common, and those whose bandwidth is given."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from libra_planner import evaluation as evaluating
from libra_planner.api.given import (
    overrides_of,
    plan_given,
    pythonic,
    searched_of,
    source_of,
    vector_Bps,
)
from libra_planner.api.shown import Shown, new_axes
from libra_planner.errors import Fault, SpecError
from libra_planner.evaluation import Evaluation
from libra_planner.problem import Problem, fastest_alternative
from libra_planner.studies.designs import ChosenDesign
from libra_planner.units import format_time, format_usd, gigabytes_per_s
from libra_planner.views import design as view
from libra_planner.views.bought.whole_ports import network_bill_usd, whole_ports
from libra_planner.views.cells import Block
from libra_planner.views.training.found import found_blocks, found_payload

if TYPE_CHECKING:
    import pandas as pd

    from libra_planner.api.checks import Check
    from libra_planner.routing.policy import Policy


class Worked(Shown):
    """What knows how much its step does in a second."""

    @property
    @abstractmethod
    def _step(self) -> tuple[Problem, float | None]:
        """The plan that was solved, and its step time; ``None`` without an optimum."""

    @cached_property
    def _work(self) -> dict[str, float]:
        from libra_planner.views.training.step import work_payload

        plan, step_time_s = self._step
        return {} if step_time_s is None else work_payload(plan, step_time_s)

    @property
    def tokens_per_s(self) -> float | None:
        """Of the whole cluster; ``None`` for the part of a step (C21) or without an optimum."""
        return self._work.get("tokens_per_s")

    @property
    def mfu(self) -> float | None:
        """FLOP/s of the model over the dense peak of the NPUs (C18); ``None`` if not known."""
        return self._work.get("mfu")


class OneDesign(Worked):
    """What an optimum and a given vector have in common."""

    table = "dimensions"
    is_optimum: ClassVar[bool] = False
    plan: Problem

    @property
    @abstractmethod
    def figures(self) -> Evaluation:
        """Every figure of the vector."""

    @property
    @abstractmethod
    def solved_plan(self) -> Problem:
        """The plan with its chunks chosen."""

    def headline(self) -> str:
        """It in one line."""
        found = self.figures
        speeds = ", ".join(f"{gigabytes_per_s(b):.2f}" for b in found.bandwidth_bytes_per_s)
        return (
            f"step time {format_time(found.step_time_s)}, cost {format_usd(found.cost_usd)}; "
            f"{speeds} GB/s; {self._verdict}{self._cannot}"
        )

    @property
    def _cannot(self) -> str:
        whole = whole_ports(self.solved_plan, self.figures.bandwidth_bytes_per_s)
        return "; it cannot be built" if whole is not None and whole.fault else ""

    @property
    @abstractmethod
    def _verdict(self) -> str:
        """What there is to say of it beside its figures."""

    @property
    def _step(self) -> tuple[Problem, float | None]:
        return self.solved_plan, self.figures.step_time_s

    @property
    def memory_GB(self) -> float | None:
        """What an NPU holds (C19), 1e9 bytes; ``None`` where it is not known."""
        from libra_planner.views.training.memory import memory_figures

        return memory_figures(self.solved_plan).get("memory_GB")

    @property
    def bill_fabric_usd(self) -> float | None:
        """The network from whole parts (C22), as JSON has it; ``None`` where that is not known."""
        return network_bill_usd(self.solved_plan, self.figures)

    @property
    def step_time_band_s(self) -> tuple[float, float] | None:
        """The step time at the ends of its error band (C23); ``None`` without a class."""
        return self.figures.band_s

    def to_frame(self, key: str | None = None) -> pd.DataFrame:
        """A row for every dimension; with ``key`` another table of :meth:`to_dict`.

        Examples
        --------
        >>> import libra_planner as lp
        >>> found = lp.load_plan("01_gpt3_4d").evaluate(bandwidth_GBps=[300, 100, 75, 25])
        >>> found.to_frame()[["dimension", "tier", "bandwidth_GBps"]]
          dimension     tier  bandwidth_GBps
        0      dim1  chiplet           300.0
        1      dim2  package           100.0
        2      dim3     node            75.0
        3      dim4      pod            25.0
        """
        if key not in (None, self.table):
            return super().to_frame(key)
        import pandas as pd

        found, topology = self.to_dict(), self.plan.topology
        columns = {
            "dimension": list(topology.labels),
            "block": [str(one) for one in topology.dimensions],
            "tier": list(topology.tiers),
            "bandwidth_GBps": found["bandwidth_GBps"],
            "taper": found.get("taper"),
            "cost_usd": found["cost_usd_by_dimension"],
            "equal_GBps": found["equal_bandwidth"]["bandwidth_GBps"],
        }
        return pd.DataFrame({name: x for name, x in columns.items() if x is not None})

    def plot(self, axes: Any = None) -> Any:
        """Bandwidth of every dimension, beside equal bandwidth; the matplotlib axes."""
        frame, axes = self.to_frame(), new_axes(axes, figsize=(6, 3.2))
        names = [f"{a}\n{b}" for a, b in zip(frame["dimension"], frame["tier"], strict=True)]
        places = range(len(names))
        left = 0.2 if self.figures.equal.possible else 0.0
        own = frame["bandwidth_GBps"]
        bars = axes.bar([x - left for x in places], own, 0.4, label="this design")
        axes.bar_label(bars, [f"{value:.4g}" for value in own])
        if self.figures.equal.possible:
            equal = frame["equal_GBps"]
            axes.bar([x + left for x in places], equal, 0.4, label="equal", color="0.8")
            axes.legend()
        axes.set_xticks(list(places), names)
        axes.margins(y=0.12)
        axes.set(ylabel="GB/s per NPU", title=f"Step time {format_time(self.figures.step_time_s)}")
        return axes

    @pythonic
    def save(self, path: str | Path) -> Path:
        """Write the design as JSON, for ``lp.report`` and for ``PLAN@RESULT.json`` of commands.

        Parameters
        ----------
        path : ending in .json; what is there is replaced.

        Raises
        ------
        SpecError
            For a plan that is no file, or another ending.
        """
        source, to = source_of(self.plan), Path(path)
        if not isinstance(source, str | Path):
            got, expected = "got a plan from a dict", "expected one from a file"
            fix = "write plan.save('plan.yaml') and load that"
            raise SpecError(Fault(got, expected, fix, "save"))
        if to.suffix != ".json":
            raise SpecError(Fault(f"got {str(path)!r}", "expected a name ending in .json"))
        origin = {"plan": str(Path(source).resolve()), "set": list(overrides_of(self.plan))}
        to.write_text(json.dumps(origin | self.to_dict(), indent=2), encoding="utf-8")
        return to

    @pythonic
    def check(self, policy: str | Policy = "ecmp", **asked: Any) -> Check:
        """This design on whole links; parameters as :meth:`libra_planner.api.plans.Plan.check`."""
        from libra_planner.api.checks import check_design

        vector_Bps = self.figures.bandwidth_bytes_per_s
        chosen = ChosenDesign(searched_of(self.plan), self.solved_plan, vector_Bps)
        return check_design(chosen, policy, asked, optimized=self.is_optimum)


@dataclass(frozen=True, repr=False)
class Evaluated(OneDesign, Evaluation):
    """Every figure of a vector: an :class:`~libra_planner.evaluation.Evaluation` that shows itself.

    Parameters
    ----------
    plan : whose vector it is.
    """

    plan: Problem = field(kw_only=True)

    @property
    def figures(self) -> Evaluation:
        """Itself."""
        return self

    @cached_property
    def solved_plan(self) -> Problem:
        """The plan with the chunks that are the fastest here."""
        return fastest_alternative(self.plan, self.bandwidth_bytes_per_s)

    @property
    def _verdict(self) -> str:
        n = len({one.rule for one in self.violated})
        return f"breaks {n} rule{'s' * (n > 1)}" if n else "meets all rules"

    def blocks(self) -> Iterator[Block]:
        """What ``evaluate`` prints."""
        yield from view.design_blocks(self.solved_plan, self)
        yield from found_blocks(searched_of(self.plan).found)

    def to_dict(self) -> dict[str, Any]:
        """What ``evaluate --json`` prints."""
        found = found_payload(searched_of(self.plan).found)
        return view.evaluate_payload(self.solved_plan, self) | found


@pythonic
def evaluate(
    plan: Problem, bandwidth_bytes_per_s: Any = None, *, bandwidth_GBps: Any = None
) -> Evaluated:
    """Every figure of one vector; :meth:`libra_planner.api.plans.Plan.evaluate`.

    Parameters
    ----------
    plan : as :func:`libra_planner.load_plan` gives it.
    bandwidth_bytes_per_s, bandwidth_GBps : one of both, per NPU, shape (n_dims,).

    Raises
    ------
    SpecError
        For a wrong number of dimensions, or what is no bandwidth; vectors below 1 kB/s are
        refused, as they will have been meant in GB/s.
    TypeError
        For a path in place of a plan.

    Examples
    --------
    >>> import libra_planner as lp
    >>> found = evaluate(lp.load_plan("01_gpt3_4d"), [300e9, 100e9, 75e9, 25e9])
    >>> round(found.step_time_s, 6), found.feasible
    (0.725217, True)
    """
    plan_given(plan, "evaluate")
    vector = vector_Bps(plan, bandwidth_bytes_per_s, bandwidth_GBps, "evaluate")
    return Evaluated.of(evaluating.evaluate(plan, vector), plan=plan)
