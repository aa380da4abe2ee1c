"""A sweep from its file to its results."""

from __future__ import annotations

from pathlib import Path

from libra_planner.reading.bundled import SWEEPS, given_file
from libra_planner.sweeps.results import Results
from libra_planner.sweeps.runner import Watch, run_sweep
from libra_planner.sweeps.spec import load_sweep


def sweep(
    file: str | Path,
    directory: str | Path,
    *,
    n_workers: int = 0,
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> Results:
    """Solve all designs of a sweep, or what is missing of them.

    Parameters
    ----------
    file : the sweep (YAML), or the name of a bundled one.
    directory : run directory; one of the same sweep is finished.
    n_workers : processes on this machine; 0 works in this one.
    scheduler : address of a dask scheduler to use instead.
    watch : called with the progress.

    Raises
    ------
    PlannerError
        For a sweep that is not valid, or the directory of another one.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     results = sweep("10_budgets", f"{there}/run")
    ...     best = results.top(1).dicts()
    >>> [(row["objective"], row["budget"]) for row in best]
    [('performance', 1000), ('performance_per_cost', 100)]
    """
    planned = load_sweep(given_file(file, SWEEPS))
    run_sweep(planned, directory, n_workers=n_workers, scheduler=scheduler, watch=watch)
    return Results.at(directory)
