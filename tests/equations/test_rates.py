"""Max-min rates and the fluid model worked by hand (C11)."""

from __future__ import annotations

import numpy as np
import pytest

from libra_planner.routing.rates import finish_times_s, max_min_rates
from libra_planner.routing.routes import Routes, single_paths

GBITPS = 1e9 / 8
N_LEAVES, N_SPINES, N_HOSTS = 3, 2, 4  # 12 hosts, all links 100 Gbit/s

FLOWS = [  # src, dst, bytes, spine
    (0, 4, 1e9, 0),
    (1, 5, 1e9, 0),
    (2, 6, 1e9, 0),
    (3, 7, 1e9, 0),
    (8, 7, 1e9, 1),
    (9, 7, 1e9, 1),
    (8, 10, 2e9, None),
    (4, 0, 1e9, 1),
]


def _path(src: int, dst: int, spine: int | None) -> list[int]:
    """Links in the order host up 0..11, leaf up 12..17, spine down 18..23, host down 24..35."""
    if spine is None:
        return [src, 24 + dst, -1, -1]
    up = 12 + src // N_HOSTS * N_SPINES + spine
    return [src, up, 18 + spine * N_LEAVES + dst // N_HOSTS, 24 + dst]


ROUTES = single_paths([_path(src, dst, spine) for src, dst, _, spine in FLOWS])
CAPACITY_BPS = np.full(36, 100 * GBITPS)


def test_rates_of_a_chain_of_bottlenecks() -> None:
    """Four flows share leaf 0's uplink to spine 0: 25 each. One of them and two from leaf 2 go to
    host 7: (100 - 25) / 2 = 37.5. Host 8 has 100 - 37.5 left for host 10. Nobody meets the last.
    """
    expected = [25, 25, 25, 25, 37.5, 37.5, 62.5, 100]
    assert max_min_rates(ROUTES, CAPACITY_BPS) / GBITPS == pytest.approx(expected, rel=1e-12)


def test_ends_of_a_chain_of_bottlenecks() -> None:
    """8 Gbit at 100: .08 s, alone. 8 Gbit at 37.5: 16/75 s; then host 8 sends the 16 - 62.5 * 16/75
    = 8/3 Gbit that are left at 100: .24 s. The uplink is shared by four to the end: .32 s.
    """
    sizes = [size for _, _, size, _ in FLOWS]
    expected = [0.32, 0.32, 0.32, 0.32, 16 / 75, 16 / 75, 0.24, 0.08]
    assert finish_times_s(ROUTES, CAPACITY_BPS, sizes) == pytest.approx(expected, rel=1e-12)


def test_a_flow_that_ends_can_slow_another_down() -> None:
    """A on link 0, B on links 0 and 1, C on link 1, capacities 10 and 12: B 5, A 5, C 7.

    When A ends after 1 s (5 bytes), B is held by link 1 only: B 6, C 6; C is slower than before.
    C has 10 - 7 = 3 bytes left: 0.5 s. B has sent 5 + 3 of 20: 12 bytes at 10, 1.2 s.
    """
    routes = single_paths([[0, -1], [0, 1], [1, -1]])
    assert max_min_rates(routes, [10, 12]).tolist() == [5, 5, 7]
    assert finish_times_s(routes, [10, 12], [5, 20, 10]) == pytest.approx([1, 2.7, 1.5], rel=1e-12)


def test_a_sprayed_flow_takes_its_share_of_every_link() -> None:
    """Half of flow 0 on links of 6 and 4; flow 1 on the first. Level x: 1.5 x = 6 gives 4, and then
    link 1 carries 2 of 4.
    """
    routes = Routes(np.array([0, 2, 3]), np.array([0, 1, 0]), np.array([0.5, 0.5, 1.0]))
    assert max_min_rates(routes, [6, 4]).tolist() == [4, 4]
    assert max_min_rates(routes, [6, 1]).tolist() == [2, 5]
    assert finish_times_s(routes, [6, 1], [2, 10]).tolist() == [1, 1 + 5 / 6]


def test_flows_that_never_end_and_flows_that_need_no_time() -> None:
    """A dead link, a flow of no bytes, a flow that stays on its node; link 1 is all for flow 1."""
    routes = single_paths([[0, 1], [1, -1], [-1, -1], [0, -1]])
    assert max_min_rates(routes, [0, 2]).tolist() == [0, 2, np.inf, 0]
    assert finish_times_s(routes, [0, 2], [1, 1, 1, 0]).tolist() == [np.inf, 0.5, 0, 0]


def test_no_flows_and_no_links() -> None:
    none = single_paths(np.zeros((0, 4), dtype=np.int64))
    assert max_min_rates(none, []).tolist() == []
    assert finish_times_s(none, [1.0], []).tolist() == []
    assert max_min_rates(single_paths([[-1]]), []).tolist() == [np.inf]
