"""Bills in place of linear prices: what can be bought as whole parts, and what each costs (C22)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from libra_planner.costs.prices import SAME_SPEED
from libra_planner.fabric.topology import Realization
from libra_planner.frozen import Frozen
from libra_planner.units import gigabytes_per_s

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BillChoice:
    """What a plan with ``prices: bill`` lets the optimizer choose from; empty: nothing is said.

    Parameters
    ----------
    nics : NICs per NPU and the speed of each, byte/s.
    tapers : by dimension (from 0), a further tier of a stack (C13).
    radices : ports of a switch.
    """

    nics: tuple[tuple[int, float], ...] = ()
    tapers: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    radices: tuple[int, ...] = ()


@dataclass(frozen=True)
class FabricOption:
    """One way to buy the network of a fabric.

    Parameters
    ----------
    n_nics, nic_Bps : NICs per NPU, and the speed of each.
    tapers : asked for, by dimension; whole links have at most such a taper.
    switch_radix : ports of a switch.
    bandwidth_Bps : of the whole links, per NPU and dimension.
    realization : how the dimensions are built.

    Examples
    --------
    >>> links = Realization((None, None))
    >>> str(FabricOption(2, 50e9, {2: 4.0}, 64, (450e9, 100e9, 25e9), links))
    '2 x 400 Gbit/s per NPU, dim3 4:1, switches of 64 ports'
    """

    n_nics: int
    nic_Bps: float
    tapers: Mapping[int, float]
    switch_radix: int
    bandwidth_Bps: tuple[float, ...]
    realization: Realization = field(repr=False)

    def text(self, tiers: Sequence[str] = ()) -> str:
        """The option in words, with the names of the dimensions' tiers."""
        tapers = (f"{tiers[i] if tiers else f'dim{i + 1}'} {t:g}:1" for i, t in self.tapers.items())
        nics = f"{self.n_nics} x {8 * gigabytes_per_s(self.nic_Bps):g} Gbit/s per NPU"
        return ", ".join([nics, *tapers, f"switches of {self.switch_radix} ports"])

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class BillTable(Frozen):
    """The exact bill of every option, in the order of their bandwidths; n of them.

    Parameters
    ----------
    options : sorted by bandwidth (dim1 counts first, slower before faster), then by money, then as
        the plan lists them.
    usd, low_usd, high_usd : whole bill of each, at the prices and at the ends of their ranges,
        shape (n,).
    usd_by_dim : lines of the training network by dimension, shape (n, n_dims).
    left_out : options that cannot be built or priced, as asked for, and why.
    """

    options: tuple[FabricOption, ...]
    usd: Array = field(repr=False, compare=False)
    low_usd: Array = field(repr=False, compare=False)
    high_usd: Array = field(repr=False, compare=False)
    usd_by_dim: Array = field(repr=False, compare=False)
    left_out: tuple[tuple[FabricOption, str], ...] = ()

    @cached_property
    def bandwidth_Bps(self) -> Array:
        """Bandwidth of each option, shape (n, n_dims)."""
        return np.array([option.bandwidth_Bps for option in self.options])

    def rows(self, bandwidth_Bps: Array) -> NDArray[np.int64]:
        """The cheapest option of each bandwidth, -1 where none has it; input (..., n_dims)."""
        asked = np.asarray(bandwidth_Bps, dtype=np.float64)
        vectors = asked.reshape(-1, asked.shape[-1])
        found = np.array([self._row(vector) for vector in vectors], dtype=np.int64)
        return found.reshape(asked.shape[:-1])

    def _row(self, vector: Array) -> int:
        own = self.bandwidth_Bps
        off = np.abs(own - vector) > SAME_SPEED * np.maximum(own, vector)
        same = np.flatnonzero(~off.any(axis=1))
        return int(same[np.argmin(self.usd[same])]) if len(same) else -1

    def of(self, values: Array, bandwidth_Bps: Array) -> Array:
        """What the table has at some bandwidths, NaN where no option has one.

        Parameters
        ----------
        values : of all options, shape (n, ...).
        bandwidth_Bps : shape (..., n_dims).
        """
        rows = self.rows(bandwidth_Bps)
        found: Array = np.array(values[rows], dtype=np.float64)
        found[rows < 0] = np.nan
        return found

    def nearest(self, bandwidth_Bps: Array) -> FabricOption:
        """The option whose bandwidth differs least, relative to its own."""
        off = np.abs(np.asarray(bandwidth_Bps) / self.bandwidth_Bps - 1).sum(axis=1)
        return self.options[int(np.argmin(off))]
