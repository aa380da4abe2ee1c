"""The open plan without a terminal: edits, undo, faults, saving with comments, pins."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libra_planner.errors import PlannerError, SpecError
from libra_planner.evaluation import evaluated
from libra_planner.inputs import plans
from libra_planner.plan.problem import load_plan
from libra_planner.reading import bundled
from libra_planner.reading.document import (
    apply_setting,
    apply_settings,
    parse_document,
    read_document,
)
from libra_planner.tui.disk.files import (
    Left,
    edited_text,
    left_with,
    recent_plans,
    remember,
    save_plan,
)
from libra_planner.tui.disk.readings import plan_values, read_plan
from libra_planner.tui.screens.links import check_links
from libra_planner.tui.screens.plan_fields import (
    BRANCH,
    FormField,
    candidates,
    faults_by_key,
    form_fields,
    words,
)
from libra_planner.tui.screens.search import Searched, found_strategies
from libra_planner.tui.session import Session, best_design
from libra_planner.tui.starts import equal_split_GBps
from tests.tui.conftest import PLAN, WHOLE


def opened(path: Path) -> Session:
    session = Session(path)
    session.accept(read_plan(path, ()))
    return session


def reread(session: Session) -> None:
    session.accept(read_plan(session.path, session.edits.settings, text=session.text))


def test_an_edit_is_what_set_takes(plan_file: Path) -> None:
    session = opened(plan_file)
    session.edit("constraints.0", "total == 300 GB/s")
    reread(session)
    assert session.edits.settings == ("constraints.0=total == 300 GB/s",)
    assert session.problem is not None
    assert session.problem.rules == load_plan(plan_file, session.edits.settings).rules
    assert session.dirty


def test_undo_and_redo_walk_over_settings_and_designs(plan_file: Path) -> None:
    session = opened(plan_file)
    first = session.edits
    session.set_bandwidth((200, 100, 100, 100), "dim0")
    session.set_bandwidth((210, 100, 100, 100), "dim0")  # One step with the one before.
    second = session.edits
    session.edit("objective", "cost")
    third = session.edits
    assert [session.undo(), session.edits] == [True, second]
    assert [session.undo(), session.edits] == [True, first]
    assert not session.undo()
    assert session.redo()
    assert session.redo()
    assert session.edits == third
    assert not session.redo()


def test_typing_in_one_field_is_one_step(plan_file: Path) -> None:
    session = opened(plan_file)
    for text in ("8", "81", "819", "8192"):
        session.edit("global_batch", text)
    assert session.edits.settings == ("global_batch=8192",)
    session.settle()
    session.edit("global_batch", "4096")
    assert session.undo()
    assert session.edits.settings == ("global_batch=8192",)


def test_figures_stay_those_of_the_last_valid_plan(plan_file: Path) -> None:
    session = opened(plan_file)
    before = session.problem
    session.edit("cost_model", "no-such-book")
    reread(session)
    assert session.problem is before
    assert not session.current
    assert "no-such-book" in str(session.faults[0])


def test_another_number_of_dimensions_gives_an_equal_split(plan_file: Path) -> None:
    session = opened(plan_file)
    session.edit("fabric.topology", "RI(16)_SW(256)")
    session.edit("fabric.tiers", "[node, pod]")
    session.edit("constraints", '["total == 100 GB/s"]')
    reread(session)
    assert session.faults == ()
    assert session.edits.bandwidth_GBps == (50.0, 50.0)


@pytest.mark.parametrize(
    ("rules", "start_GBps", "origin"),
    [
        (["dim1 == 450", "dim2 == 50", "dim3 == 25"], (450, 50, 25), "as the rules fix it"),
        # A taper of 2 below a fixed tier, then one between two that are free: 120 and 60 are
        # nearest to 100 and 100 on the line B2 = 2 B3.
        (["dim1 == 450", "dim2 == 50", "taper(spine) == 2"], (450, 50, 25), "as the rules fix it"),
        (["taper(spine) == 2"], (100, 120, 60), "unoptimised start"),
        (["total == 600", "dim1 == 400"], (400, 100, 100), "unoptimised start"),
        (["total == 600", "dim1 >= 400"], (400, 100, 100), "unoptimised start"),
        # The leaf at its limit, then B3 at a taper of at least 1.
        (
            ["dim1 == 450", "12.5 GB/s <= dim2 <= 50", "taper(spine) >= 1"],
            (450, 50, 50),
            "unoptimised start",
        ),
        (["dim1 <= 450", "dim2 <= 50"], (100, 50, 100), "unoptimised start"),
        (["dim1 == 450", "dim1 == 400"], (100, 100, 100), "equal bandwidth"),  # Cannot be met.
        (["dim1 == 450", "total <= 400"], (400 / 3,) * 3, "equal bandwidth"),  # Nor these.
    ],
)
def test_a_plan_opens_inside_its_rules(
    plan_file: Path, rules: list[str], start_GBps: tuple[float, ...], origin: str
) -> None:
    units = [rule if "taper" in rule else f"{rule} GB/s" for rule in rules]
    fabric = ("fabric.topology=RI(4)_[SW(32)_SW(32)]", "fabric.tiers=[node, leaf, spine]")
    session = Session(plan_file)
    settings = (*fabric, "cost_model=clos-2026", f"constraints={json.dumps(units)}")
    session.accept(read_plan(plan_file, settings))
    assert session.faults == ()
    assert session.edits.bandwidth_GBps == start_GBps
    assert session.origin == origin


@pytest.mark.parametrize(("rules", "each"), [([], 175), (["total <= 600 GB/s"], 200)])
def test_equal_is_what_the_figures_are_compared_to(
    plan_file: Path, rules: list[str], each: float
) -> None:
    """The plan's total, else that of the design on screen: 450 + 50 + 25 = 525."""
    fabric = ("fabric.topology=RI(4)_[SW(32)_SW(32)]", "fabric.tiers=[node, leaf, spine]")
    session = Session(plan_file)
    settings = (*fabric, "cost_model=clos-2026", f"constraints={json.dumps(rules)}")
    session.accept(read_plan(plan_file, settings))
    assert session.problem is not None
    session.set_bandwidth((450.0, 50.0, 25.0), "")
    compared = session.evaluation()
    assert compared is not None
    equal = equal_split_GBps(session.problem, (450.0, 50.0, 25.0))
    assert equal == (each,) * 3
    assert [value / 1e9 for value in compared.equal.bandwidth_bytes_per_s] == list(equal)
    session.set_bandwidth(equal, "")
    assert session.origin == "equal bandwidth"


def test_rules_come_before_advice_about_switches(plan_file: Path) -> None:
    """A design that a rule forbids needs other bandwidths, not other switches."""
    fabric = ("fabric.topology=RI(4)_[SW(64)_SW(16)]", "fabric.tiers=[node, leaf, spine]")
    rules = 'constraints=["taper(spine) == 2"]'
    problem = read_plan(plan_file, (*fabric, "cost_model=clos-2026", rules)).problem
    assert problem is not None
    with pytest.raises(PlannerError, match=r"press o to optimise first[^$]*switch_radix"):
        check_links(problem, np.array([100e9, 100e9, 100e9]), "ecmp", 0, lambda *_: None)


def test_a_plan_without_an_optimum_says_the_whole_reason() -> None:
    """What to do about it stands at the end, and in the middle."""
    plan = bundled.example("0e_rails_2to1")
    rules = "constraints=['leaf == 50 GB/s', 'taper(spine) <= 4']"
    settings = (rules, "parallelism={tp: 8, rest: auto}")
    with pytest.raises(PlannerError) as whole:
        plans.load_plan(plan, settings)
    [fault] = read_plan(plan, settings).faults
    assert str(fault) == str(whole.value)
    assert len(str(fault)) > 300
    assert "'taper(spine) >= 1'" in str(fault)


def test_what_is_missing_is_being_read_or_has_faults(plan_file: Path) -> None:
    session = Session(plan_file)
    assert session.without("links") == "loading the plan ..."
    session.read_so_far = "3 of 9 strategies have a bound"
    assert session.without("links") == "searching the best strategy: 3 of 9 strategies have a bound"
    session.edit("cost_model", "no-such-book")
    reread(session)
    assert session.without("links") == "no links: the plan has faults"
    session.edit("cost_model", "libra-ispass24")
    assert session.without("links") == "loading the plan ..."


def test_rules_that_are_added_in_a_burst_are_all_there(plan_file: Path) -> None:
    """The second comes before the first was read."""
    session = opened(plan_file)
    session.edit("constraints.1", "")
    session.add_rule("cost <= 20 M$")
    session.add_rule("dim2 >= dim3")
    assert session.remove_empty_rule(1)
    reread(session)
    assert session.reading is not None
    assert session.reading.document is not None
    rules = session.reading.document.value["constraints"]
    assert rules == ["total == 500 GB/s", "cost <= 20 M$", "dim2 >= dim3"]


def test_an_optimum_is_that_of_the_plan_with_the_files_it_names(tmp_path: Path) -> None:
    book = tmp_path / "prices.yaml"
    book.write_text((bundled.folder("cost-models") / "libra-ispass24.yaml").read_text())
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.replace("libra-ispass24", "prices.yaml"))
    session = opened(plan)
    assert session.problem is not None
    optimum = best_design(session.problem, lambda *_: None)
    session.keep_optimum(session.fingerprint, optimum)
    session.set_bandwidth(optimum.bandwidth_GBps)
    assert session.is_proven(session.evaluation())
    reread(session)
    assert session.is_proven(session.evaluation())
    book.write_text(book.read_text().replace("link: 2", "link: 3"))
    reread(session)
    assert not session.is_proven(session.evaluation())
    assert session.optimum is None


def test_rules_are_added_and_removed(plan_file: Path) -> None:
    session = opened(plan_file)
    session.add_rule("cost <= 20 M$")
    reread(session)
    session.edit("constraints.0", "")
    assert session.remove_empty_rule(0)
    assert not session.remove_empty_rule(0)  # Another one has its place.
    reread(session)
    assert session.reading is not None
    assert session.reading.document is not None
    assert session.reading.document.value["constraints"] == ["dim1 >= dim2", "cost <= 20 M$"]


def test_saving_keeps_comments_order_and_spacing(plan_file: Path) -> None:
    settings = ("constraints.0=total == 300 GB/s", "global_batch=8192")
    kept = save_plan(plan_file, settings, plan_file)
    text = plan_file.read_text()
    assert text == PLAN.replace("500", "300") + "global_batch: 8192\n"
    assert [path.read_text() for path in kept] == [PLAN]


def test_a_remark_on_where_a_value_comes_from_goes_with_the_value() -> None:
    text = "parallelism: auto   # the best is searched, or given\n"
    text += "global_batch: 8   # sequences; assumed near 9\nnpu: x   # kept; assumed\n"
    edits = "parallelism={tp: 2}", "global_batch=4"
    assert edited_text(text, edits, "p") == (
        "parallelism:\n  tp: 2\nglobal_batch: 4   # sequences\nnpu: x   # kept; assumed\n"
    )


def test_dropping_a_rule_keeps_the_comments_of_the_others() -> None:
    text = edited_text(PLAN, ('constraints=["total == 500 GB/s"]',), "plan.yaml")
    assert "- total == 500 GB/s    # the budget\n" in text
    assert "dim1 >= dim2" not in text
    assert "# LIBRA's table" in text


def test_saving_without_edits_elsewhere_copies_the_text(plan_file: Path, tmp_path: Path) -> None:
    save_plan(plan_file, (), tmp_path / "copy.yaml")
    assert (tmp_path / "copy.yaml").read_text() == PLAN


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["global_batch", "objective", "constraints.0", "fabric.latency_ns", "npu.x"]
            ),
            st.sampled_from(["1", "a b", "[1, 2]", "{a: 1}", "null", "'7'", "no", "1e6", "x: y"]),
        ),
        max_size=6,
    )
)
def test_a_saved_file_says_what_the_settings_say(edits: list[tuple[str, str]]) -> None:
    settings = tuple(f"{key}={text}" for key, text in edits)
    wanted = parse_document(PLAN, "p")
    try:
        apply_settings(wanted, settings)
    except SpecError:
        with pytest.raises(SpecError):
            edited_text(PLAN, settings, "p")
        return
    assert parse_document(edited_text(PLAN, settings, "p"), "p").value == wanted.value


def test_a_pin_comes_back_after_the_file_was_saved_otherwise(plan_file: Path) -> None:
    session = opened(plan_file)
    session.edit("constraints.0", "total == 300 GB/s")
    reread(session)
    evaluation = session.evaluation()
    assert evaluation is not None
    pin = session.pin(evaluation)
    save_plan(plan_file, ("objective=cost", "constraints.0=total == 400 GB/s"), plan_file)
    again = load_plan(plan_file, pin.settings_over(plan_values(plan_file)))
    assert again.objective == "performance"
    assert again.rules[0].text == "total == 300 GB/s"


def test_unpinning_keeps_the_baseline_on_its_design(plan_file: Path) -> None:
    session = opened(plan_file)
    evaluation = session.evaluation()
    assert evaluation is not None
    for _ in range(3):
        session.pin(evaluation)
    session.baseline = 2
    session.unpin(0)
    assert session.baseline == 1
    session.unpin(1)
    assert session.baseline == 0


def test_faults_stand_under_their_fields(plan_file: Path) -> None:
    settings = ("cost_model=nobody", "constraints.1=dim1 >= dim9", "objective=fast")
    reading = read_plan(plan_file, settings)
    assert reading.document is not None
    fields = form_fields(reading.document, settings)
    found = faults_by_key(reading.faults, [field.key for field in fields])
    assert {"constraints.1", "objective"} <= set(found)
    assert "" not in found


def test_the_form_shows_values_as_typed_with_their_lines(plan_file: Path) -> None:
    reading = read_plan(plan_file, ("parallelism.tp=8",))
    assert reading.document is not None
    fields = {field.key: field for field in form_fields(reading.document, reading.settings)}
    assert fields["fabric.topology"].text == "RI(4)_FC(8)_RI(4)_SW(32)"
    assert fields["fabric.topology"].line == 4
    assert (fields["parallelism.tp"].text, fields["parallelism.tp"].edited) == ("8", True)
    assert fields["global_batch"].text == ""
    assert "gpt3" in fields["workload"].choices


def test_deep_nesting_is_a_fault_of_the_plan(plan_file: Path) -> None:
    session = opened(plan_file)
    session.edit("objective", "[" * 30_000)
    reread(session)
    assert [fault.got for fault in session.faults] == ["got values nested deeper than 32"]
    plan_file.write_text("[" * 30_000)
    assert str(opened(plan_file).faults[0].place) == f"{plan_file}:1:33"


def test_recent_plans_are_remembered_latest_first(tmp_path: Path) -> None:
    assert recent_plans() == {}
    remember(str(tmp_path / "a.yaml"), Left((1.0, 2.0), "aa"))
    remember(str(tmp_path / "b.yaml"))
    remember(str(tmp_path / "a.yaml"), Left((3.0, 4.0), "ab"))
    assert [Path(path).name for path in recent_plans()] == ["a.yaml", "b.yaml"]
    assert left_with(tmp_path / "a.yaml", b"\xab") == (3.0, 4.0)
    for other in (b"\xaa", b""):  # Another plan by that name, or one with faults.
        assert left_with(tmp_path / "a.yaml", other) is None
    assert left_with(tmp_path / "b.yaml", b"") is None


def test_a_broken_list_of_recent_plans_is_no_list(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "libra-planner"
    folder.mkdir(parents=True)
    for text in ('{"path": 3', "[" * 30_000):
        (folder / "recent.json").write_text(text)
        assert recent_plans() == {}


def test_lists_are_typed_with_commas_and_rules_complete_with_the_plans_tiers(
    plan_file: Path,
) -> None:
    reading = read_plan(plan_file, ())
    assert reading.document is not None
    fields = {field.key: field for field in form_fields(reading.document, ())}
    tiers = fields["fabric.tiers"]
    assert tiers.text == "chiplet, package, node, pod"
    assert tiers.setting(tiers.text) == '["chiplet", "package", "node", "pod"]'
    assert tiers.setting('["node"]') == '["node"]'
    assert read_plan(plan_file, (f"fabric.tiers={tiers.setting(tiers.text)}",)).faults == ()
    meant = words("constraints.0", reading.document)
    assert candidates("pod <", meant) == ["pod <= 100 GB/s"]
    assert "dim1 >= dim4" in candidates("dim1 >= d", meant)
    for typed in ("leef <= 40 GB/s", "leef <= 40 G", "cost <= 900 m", "pod <= 40 s"):
        assert candidates(typed, meant) == [], typed  # No name stands behind a number.
    assert "dim2 <= 2 * dim1" in candidates("dim2 <= 2 * d", meant)
    assert candidates("taper(", meant) == []  # Only tiers of a stack have one.
    blocks = words("fabric.topology", reading.document)
    assert "RI(4)_FC(8)" in candidates("RI(4)_f", blocks)
    tiers = words("fabric.tiers", reading.document)  # Those of the plan's price book.
    assert candidates("node, po", tiers)[0] == "node, pod"


@pytest.mark.parametrize("name", bundled.names("examples"))
def test_the_tree_says_all_that_a_plan_says(name: str) -> None:
    """Every value is a line of its own, and typing what is there changes nothing."""
    document = read_document(bundled.example(name))
    said = deepcopy(document.value)
    fields = form_fields(document, ())
    assert document.value == said
    for field in fields:
        if field.kind != BRANCH and field.text:
            apply_setting(document, f"{field.key}={field.setting(field.text)}")
            assert not field.text.startswith("{"), "JSON in a line"
    assert document.value == said


def test_the_tree_knows_what_the_schema_lets_a_key_be(plan_file: Path) -> None:
    document = read_document(plan_file)
    fields = {
        field.key: field for field in form_fields(document, (), ["fabric.realization.wiring"])
    }
    assert "rail_optimized" in fields["fabric.realization.wiring"].choices
    assert fields["fidelity"].choices == ("ideal", "pipelined", "calibrated")
    assert fields["fidelity"].default == "default ideal"
    assert fields["global_batch"].setting("") == "null"
    assert candidates("h1", words("npu", document))[0] == "h100-sxm"
    assert candidates("nvlink4", words("fabric.scale_up", document)) == ["nvlink4-8"]
    assert "fabric.latency_ns" in candidates("latency", words("+", document))


def test_the_tree_says_what_a_whole_model_has_by_default(tmp_path: Path) -> None:
    """The words of the result, and no default of a plan of tp and dp alone."""
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE)
    wanted = ["library", "overlap.tp", "parallelism.zero", "parallelism.recompute"]

    def fields(*settings: str) -> dict[str, FormField]:
        document = read_document(path)
        apply_settings(document, settings)
        return {one.key: one for one in form_fields(document, settings, wanted)}

    for name in ("megatron-core", "fsdp", "megascale"):
        found = fields(f"library={name}")
        said = load_plan(path, f"library={name}").text.settings
        (words,) = (one for one in said if one.startswith("overlap as"))
        assert words.startswith(f"overlap as {name}: ")
        assert found["training_loop"].default == f"{name} overlap"
        assert f"tp {float(found['overlap.tp'].default.split()[-1]):.0%}" in words
        zero, recompute = (found[f"parallelism.{x}"].default[8:] for x in ("zero", "recompute"))
        assert f"ZeRO {zero}, recomputation {recompute}" in said
    assert fields()["library"].default == "default megatron-core"
    assert fields("npu=null")["training_loop"].default == "default no_overlap"
    searched = fields("parallelism={rest: auto}")["parallelism.tp"]
    assert (searched.default, searched.setting("")) == ("searched", "null")


def test_an_emptied_training_loop_is_none(tmp_path: Path) -> None:
    """A whole model goes back to what its library overlaps; ``no_overlap`` is another plan."""
    path = tmp_path / "plan.yaml"
    path.write_text(f"{WHOLE}training_loop: no_overlap\n")
    fields = {one.key: one for one in form_fields(read_document(path), ())}
    emptied = f"training_loop={fields['training_loop'].setting('')}"
    without = tmp_path / "without.yaml"
    without.write_text(WHOLE)
    times = [
        evaluated(load_plan(file, settings), np.array([450e9, 50e9])).step_time_s
        for file, settings in ((path, ()), (path, emptied), (without, ()))
    ]
    assert times[1] == times[2] < times[0]


def test_a_file_that_changes_while_it_is_open_leaves_the_screen_as_it_is(plan_file: Path) -> None:
    session = opened(plan_file)
    text = plan_file.read_text()
    assert not session.disk.look()
    assert session.disk_words == ""
    plan_file.write_text(f"{text}library: nemo\n")
    assert session.disk.look()
    assert session.disk_words == (
        f"{plan_file.name} changed on disk: R reads it, else the screens keep theirs (library)"
    )
    session.edit("objective", "cost")
    reread(session)
    assert session.reading is not None
    assert session.reading.document is not None
    assert "library" not in session.reading.document.value
    assert session.called == (
        f"{plan_file.name} as on screen with your edits (objective), not as it is on disk now"
    )
    plan_file.unlink()
    session.disk.look()
    assert "is gone from disk" in session.disk_words
    plan_file.write_text(text)
    assert session.disk.look()
    assert session.disk_words == ""


def test_a_named_file_that_changes_is_told_and_not_searched(tmp_path: Path) -> None:
    book = tmp_path / "own.yaml"
    text = bundled.resolve("cost-models", "clos-2026", None).read_text()
    book.write_text(text)
    path = tmp_path / "plan.yaml"
    path.write_text(WHOLE.replace("clos-2026", "./own.yaml"))
    session = opened(path)
    assert session.faults == ()
    assert list(session.named_files) == [book]
    searched = Searched(path, session.text, (), session.named_files)
    book.write_text(f"{text}\n# as of today\n")
    session.disk.look()
    assert session.disk_words.startswith("own.yaml changed on disk: R reads it")
    with pytest.raises(PlannerError, match=r"own\.yaml is not what .* R reads the files again"):
        found_strategies(searched, lambda *_: None)
    reread(session)
    assert session.others_read == ("own.yaml",)
    assert session.disk_words == ""
