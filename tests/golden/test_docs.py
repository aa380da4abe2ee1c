"""The examples of docs/files.md are files that work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import libra_planner as lp
from libra_planner.inputs.schema import FORMATS, json_schema
from libra_planner.optimizer.catalogue import optimize_catalogue
from libra_planner.sweeps.axes import sweep_schema

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "files.md").read_text(), re.DOTALL)
KINDS = {re.search(r"kind: (\w+)", block).group(1): block for block in BLOCKS}


def test_keys_of_json_are_explained() -> None:
    """What the page shows that is quick to run; a build of the site stops at all others."""
    from docs.reference import filled

    page = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    marks = re.findall(r"<!-- code: json .*-->", page)
    quick = [one for one in marks if re.search("json (collective|kernels|fabric|flows|train)", one)]
    assert len(quick) >= 7
    for mark in quick:
        rows = [line.split(" | ") for line in filled(mark).splitlines() if line.startswith("| `")]
        assert rows
        assert [key for key, _, meaning, *_ in rows if not meaning.strip()] == []


def _keys(schema: object, place: str = "") -> Iterator[tuple[str, dict]]:
    """Every key of a schema, with its place there."""
    if isinstance(schema, list):
        schema = dict(enumerate(schema))
    for name, part in schema.items() if isinstance(schema, dict) else ():
        if name == "properties":
            for key, one in part.items():
                if one is not False:
                    yield f"{place}.{key}", one
        yield from _keys(part, place if name == "properties" else f"{place}.{name}")


@pytest.mark.parametrize("name", [*FORMATS, "sweep"])
def test_every_key_of_a_file_is_described(name: str) -> None:
    keys = dict(_keys(sweep_schema() if name == "sweep" else json_schema(name)))
    assert keys
    assert [key for key, one in keys.items() if not one.get("description", "").strip()] == []


def test_keys_that_share_a_line_of_a_docstring_share_its_words() -> None:
    keys = json_schema("workload")["$defs"]["OperationSpec"]["properties"]
    words = {keys[f"compute_{unit}"]["description"] for unit in ("ns", "us", "ms", "s")}
    assert len(words) == 1


def test_every_kind_of_file_is_shown() -> None:
    assert KINDS.keys() == {
        "plan", "parallelism", "table", "transformer", "price_book", "npu_catalogue",
        "workloads", "link_options",
    }  # fmt: skip


def test_the_link_options_of_the_documentation_are_bought(tmp_path: Path) -> None:
    options = "".join(f"    {line}\n" for line in KINDS["link_options"].splitlines()[1:])
    plan = re.sub(r"(\n  tiers: .*\n)", rf"\1  link_options:\n{options}", KINDS["plan"])
    (tmp_path / "plan.yaml").write_text(plan)
    design = optimize_catalogue(lp.load_plan(tmp_path / "plan.yaml"), lp.optimize)
    assert design.n_combinations == 3 * 5
    assert [str(option) for option in design.options] == ["1 x 450 GB/s", "1 x 50 GB/s"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_of_the_documentation_run(kind: str, tmp_path: Path, run) -> None:
    plan = KINDS["plan"]
    if kind in ("table", "transformer"):
        (tmp_path / "w.yaml").write_text(KINDS[kind])
        plan = plan.replace("gpt3 ", "./w.yaml ")
    if kind == "table":
        plan = re.sub(r"(global_batch|npu):.*\n", "", plan)
    if kind == "price_book":
        (tmp_path / "p.yaml").write_text(KINDS[kind])
        plan = plan.replace("libra-ispass24", "./p.yaml")
    if kind == "npu_catalogue":
        (tmp_path / "n.yaml").write_text(KINDS[kind])
        plan = plan.replace("40 M$ ", "{npu: h100-sxm, catalogue: ./n.yaml} ")
    if kind == "workloads":
        plan = KINDS[kind] + re.sub(r"(workload|parallelism|global_batch|npu):.*\n", "", plan)
    if kind == "parallelism":
        groups = "".join(f"  {line}\n" for line in KINDS[kind].splitlines()[1:])
        plan = re.sub(r"parallelism: .*\n", f"parallelism:\n{groups}", plan)
    (tmp_path / "plan.yaml").write_text(plan)
    result = run("optimize", tmp_path / "plan.yaml", "--json")
    assert result.code == 0, result.err
    assert 400 <= result.payload["bandwidth_GBps"][0] <= 450 + 1e-6
    fixed = 1024 * 26000 if kind == "npu_catalogue" else 40e6
    assert result.payload["fixed_cost_usd"] == fixed
