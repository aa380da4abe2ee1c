"""Files of plans: typed paths, recent ones, text that keeps its comments; saving and opening."""

from __future__ import annotations

import difflib
import io
import json
import os
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from libra_planner.errors import PlannerError, SpecError
from libra_planner.files import output_file, read_json, read_text, write_files
from libra_planner.reading import bundled, document
from libra_planner.tui.dialogs import OpenDialog, Prompt, Question
from libra_planner.tui.disk.readings import changed_keys, plan_values
from libra_planner.tui.disk.watch import changed_words
from libra_planner.tui.screens.pane import Host
from libra_planner.tui.session import Bandwidth
from libra_planner.views.links import counted

_MOST_SHOWN = 60
"""Letters of a path in a message about it: the system refuses those of thousands."""


def typed_path(text: str) -> Path:
    """The path that was typed, which need not be there; ``~`` is the home of a person.

    Raises
    ------
    SpecError
        For what no file can be called, or what the system does not let look for.
    """
    try:
        path = Path(os.path.expanduser(text.strip()))  # A home that nobody has stays as it is.
        path.lstat()
    except FileNotFoundError:
        return path
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
        fix, shown = "give another path", shown.replace("\0", "?")
        raise SpecError.at(shown, f"got {reason!r}", "", fix) from None
    return path


def real_path(path: Path) -> Path:
    """The absolute path behind links; the path as it is where the system does not tell."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):  # A working directory that is gone.
        return path


def working_directory() -> Path:
    """Where relative paths begin."""
    try:
        return Path.cwd()
    except OSError:  # It is gone.
        return Path()


MOST_RECENT = 20


def state_folder() -> Path:
    """Where the cockpit keeps what it remembers."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "libra-planner"


class Left(NamedTuple):
    """What a plan was left with.

    Parameters
    ----------
    bandwidth_GBps : the design that was on screen, if any.
    fingerprint : of the plan that it was a design of, in hexadecimal digits; empty if unknown.
    """

    bandwidth_GBps: Bandwidth | None = None
    fingerprint: str = ""


_NOTHING = Left()


def recent_plans() -> dict[str, Left]:
    """By their absolute paths, latest first, what plans were left with.

    Nothing where there is no list that can be read.
    """
    try:
        entries = read_json(state_folder() / "recent.json")
        return {str(entry["path"]): _left(entry) for entry in entries}
    except (SpecError, ValueError, TypeError, KeyError):
        return {}


def _left(entry: dict[str, Any]) -> Left:
    found = entry.get("bandwidth_GBps")
    design = tuple(map(float, found)) if isinstance(found, list) and found else None
    return Left(design, str(entry.get("fingerprint", "")))


def remember(path: str, left: Left = _NOTHING) -> None:
    """Put a plan first; a folder that cannot be written to only costs the memory."""
    others = ((name, one) for name, one in recent_plans().items() if name != path)
    listed = islice(((path, left), *others), MOST_RECENT)
    entries = [{"path": name, **one._asdict()} for name, one in listed]
    folder = state_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with output_file(folder / "recent.json") as file:
            file.write(json.dumps(entries, indent=1).encode())
    except OSError:
        return


def left_with(path: Path, fingerprint: bytes) -> Bandwidth | None:
    """The design that a plan was left with, where it says what it said then."""
    left = recent_plans().get(str(real_path(path)), _NOTHING)
    return left.bandwidth_GBps if fingerprint and left.fingerprint == fingerprint.hex() else None


_ITEM = re.compile(r"^( *)- ", re.MULTILINE)


def save_plan(
    source: Path, settings: tuple[str, ...], target: Path, text: str | None = None
) -> list[Path]:
    """Write a plan with its edits; the file that was there is kept with ``.bak`` at its end.

    ``text`` is what the edits are put into, in place of what the source says now.

    Returns
    -------
    Paths of the copies that were kept.

    Raises
    ------
    SpecError
        For an edit that has no place in the file, or a path that cannot be written.
    """
    if text is None:
        if not settings and os.path.realpath(source) == os.path.realpath(target):
            return []
        text = read_text(source)
    return write_files({target: edited_text(text, settings, str(source))})


def replacement_warning(source: Path, target: Path) -> str:
    """What saving does to a file that is not the plan's own, in words; empty for none."""
    if not target.is_file() or os.path.realpath(target) == os.path.realpath(source):
        return ""
    copy = target.with_name(f"{target.name}.bak")
    lost = f", in the place of the {copy.name} that is there" if copy.exists() else ""
    return f"{target} is another file. Its text would be kept as {copy.name}{lost}."


def disk_words(opened: dict[str, Any], found: dict[str, Any], saved: dict[str, Any]) -> str:
    """What became of keys that others changed in the file while it was open; empty for none.

    Parameters
    ----------
    opened, found, saved : what the file said at first, then just before it was saved, and now.

    Examples
    --------
    >>> disk_words({"npu": 1, "batch": 2}, {"npu": 3, "batch": 4}, {"npu": 3, "batch": 5})
    '; changed on disk meanwhile: batch (written over), npu (kept)'
    """
    changed = changed_keys(opened, found)
    kept = [key for key in changed if saved.get(key) == found.get(key)]
    ways = [f"{key} (written over)" for key in changed if key not in kept]
    listed = ", ".join([*ways, *(f"{key} (kept)" for key in kept)])
    return f"; changed on disk meanwhile: {listed}" if listed else ""


def edited_text(text: str, settings: tuple[str, ...], file: str) -> str:
    """A plan's text with edits applied; everything else stays as it was written.

    Examples
    --------
    >>> print(edited_text("a: 1   # one\\nb: [x]\\n", ("a=2", "b.1=y"), "p.yaml"), end="")
    a: 2   # one
    b: [x, y]
    """
    wanted = document.parse_document(text, file)
    document.apply_settings(wanted, settings)
    if not settings:
        return text
    yaml = _round_trip(text)
    tree = yaml.load(text)
    for setting in settings:
        dotted, _, value = setting.partition("=")
        _put(tree, document.dotted_key(dotted.strip()), document.parse_value(value, file))
    stream = io.StringIO()
    yaml.dump(tree, stream)
    written = stream.getvalue()
    if document.parse_document(written, file).value != wanted.value:
        got, expected = "got a file that cannot keep its comments", "expected plainer YAML"
        fix = "make this edit in an editor"
        raise SpecError.at(file, got, expected, fix)
    return written


def _round_trip(text: str) -> Any:
    """ruamel's reader and writer, indenting lists as the text does."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 4096
    found = _ITEM.search(text)
    offset = len(found[1]) if found else 2
    yaml.indent(mapping=2, sequence=2 + offset, offset=offset)
    return yaml


def _put(tree: Any, key: document.Key, new: Any) -> None:
    last: Any
    part: Any
    *parents, last = key
    for part in parents:
        if isinstance(tree, dict):
            _drop_remark(tree, str(part))
            if tree.get(str(part)) is None:
                tree[str(part)] = {}
            tree = tree[str(part)]
        else:
            tree = tree[part]
    if isinstance(tree, list):
        if last == len(tree):
            tree.append(new)
        else:
            tree[last] = new
    elif isinstance(new, list) and isinstance(tree.get(str(last)), list):
        _replace_items(tree[str(last)], new)
    else:
        _drop_remark(tree, str(last))
        tree[str(last)] = new


_OF_THE_VALUE = re.compile(r"(?:; *|# *)(?:assumed\b|the best is searched\b)[^\n]*")
"""What ``init`` remarks on where a value comes from; another value comes from elsewhere."""


def _drop_remark(tree: Any, key: str) -> None:
    """Take from the comment beside a key what is said of the value that it had."""
    comments = getattr(tree, "ca", None)  # A map of an earlier edit has none.
    said = (comments.items.get(key) if comments else None) or []
    token = said[2] if len(said) > 2 else None
    if token is not None and (found := _OF_THE_VALUE.search(token.value)):
        token.value = token.value[: found.start()].rstrip() + token.value[found.end() :]
        if not token.value.strip():
            del tree.ca.items[key]


def _replace_items(items: list[Any], new: list[Any]) -> None:
    """Turn one list into another in place: entries that stay keep their comments."""
    old = [str(item) for item in items]
    matcher = difflib.SequenceMatcher(None, old, [str(item) for item in new], autojunk=False)
    for tag, low, high, new_low, new_high in reversed(matcher.get_opcodes()):
        if tag == "equal":
            continue
        for i in reversed(range(low, high)):
            del items[i]
        for n, item in enumerate(new[new_low:new_high]):
            items.insert(low + n, item)


class PlanFiles:
    """What is done with files of plans.

    Parameters
    ----------
    cockpit : whose plan it is.
    """

    def __init__(self, cockpit: Host) -> None:
        self._cockpit = cockpit

    def is_bundled(self) -> bool:
        """Whether the plan is one of the examples, which are not to be changed."""
        path = self._cockpit.session.path
        return real_path(path).parent == real_path(bundled.folder("examples"))

    @property
    def folder(self) -> Path:
        """Where what belongs to the plan is written: beside it, but not among the examples."""
        return working_directory() if self.is_bundled() else self._cockpit.session.path.parent

    def save(self, then: Callable[[], None] = lambda: None) -> None:
        """Save where the plan is, or ask where if it is one of the bundled examples."""
        if self.is_bundled():
            self.save_as(then)
        else:
            self._save_own(then)

    def _save_own(self, then: Callable[[], None]) -> None:
        """Save where the plan is; ask, where others changed the file since it was read."""
        session = self._cockpit.session
        session.disk.look()
        if session.path not in session.disk.changed or not session.path.exists():
            self._write(session.path, then)
            return
        keys = changed_words(session.path, session.text)
        text = f"{session.path.name} changed on disk since it was read{keys}."
        n = len(session.edits.settings)
        mine = f"put your {counted(n, 'edit')} into it" if n else "take it as it is"
        self._cockpit.ask(
            Question(
                "The file changed on disk",
                f"{text} Either way the file that is there is kept as .bak.",
                {"m": mine, "w": "write what is on screen"},
            ),
            lambda answer: self._write(session.path, then, onto_disk=answer == "m"),
            lambda: self._cockpit.say(f"nothing saved: {session.path.name} is as it was on disk"),
        )

    def reload(self) -> None:
        """Read the plan's files again; edits stay, on what they say now."""
        cockpit, session = self._cockpit, self._cockpit.session
        session.disk.look()
        changed, before = session.disk.changed, session.text
        if not changed:
            cockpit.say(f"{session.path.name} says what is on screen: there is nothing to read")
            return
        if not session.path.exists():
            cockpit.say(session.disk_words)
            return
        names = ", ".join(path.name for path in changed)
        keys = changed_words(session.path, before) if session.path in changed else ""
        n = len(session.edits.settings)
        stay = f"; your {counted(n, 'edit')} stand{'s' * (n == 1)} on it" if n else ""
        session.text = None
        cockpit.reread()
        cockpit.when_read(lambda: cockpit.say(f"read {names} again{keys}{stay}"))

    def save_as(self, then: Callable[[], None] = lambda: None) -> None:
        """Ask for another file, and write the plan there."""

        def done(answer: str) -> None:
            self._try("saving", lambda: self._ask_replace(typed_path(answer), then))

        why = "a bundled example is not changed: give the copy a place"
        hint = why if self.is_bundled() else ""
        name = self._cockpit.session.path.name
        self._cockpit.ask(Prompt("Save as", name, hint=hint, needed=True), done)

    def _try(self, title: str, call: Callable[[], None]) -> None:
        """Do something with a path that was typed; a panel says what is wrong with it."""
        try:
            call()
        except (PlannerError, OSError) as error:
            self._cockpit.show_error(title, error)

    def _ask_replace(self, target: Path, then: Callable[[], None]) -> None:
        """Write the plan there; ask before a file that is not the open plan's is replaced."""

        text = replacement_warning(self._cockpit.session.path, target)
        if not text:
            self._write(target, then)
            return
        self._cockpit.ask(
            Question("Replace a file", text, {"r": "replace it"}),
            lambda _: self._write(target, then),
            lambda: self._cockpit.say(f"nothing saved: {target} is as it was"),
        )

    def _write(self, target: Path, then: Callable[[], None], *, onto_disk: bool = False) -> None:
        """Write the plan on screen, or its edits alone onto what the file says now."""
        cockpit, session = self._cockpit, self._cockpit.session

        def call(_ticket: Any) -> tuple[list[Path], str]:
            source, settings = session.path, session.edits.settings
            is_own = real_path(source) == real_path(target)
            same = is_own and not settings and source not in session.disk.changed
            text = None if onto_disk or same else session.text
            opened, found = plan_values(source, (), session.text), plan_values(source)
            kept = save_plan(source, settings, target, text)
            others = disk_words(opened, found, plan_values(target)) if is_own and found else ""
            return kept, others

        def done(saved: tuple[list[Path], str]) -> None:
            kept, changes = saved
            copies = f"{changes}; the file before is {kept[0].name}" if kept else changes
            session.file_written(target)
            cockpit.say(f"saved {target}{copies}")
            self.remember()
            cockpit.read()
            cockpit.when_read(lambda: self._warn_saved(target, copies))
            then()

        cockpit.workshop.start("save", "saving", call=call, done=done)

    def _warn_saved(self, target: Path, copies: str) -> None:
        """Say that the plan that was saved has faults, as long as it has: no command takes it."""
        cockpit = self._cockpit
        if n := len(cockpit.session.faults):
            text = f"saved {target}, with {counted(n, 'fault')} (f){copies}"
            cockpit.say(text, lambda: bool(cockpit.session.faults))

    def ask_open(self) -> None:
        """Ask for another plan, and open it."""
        plans = [(path, path) for path in recent_plans()]
        examples = [(name, str(bundled.example(name))) for name in bundled.names("examples")]
        listed = plans + [(f"example {name}", path) for name, path in examples]

        def done(answer: str) -> None:
            self._try("opening a plan", lambda: self.open(typed_path(answer)))

        self._cockpit.ask(OpenDialog(listed), done)

    def open(self, path: Path, *design: Any, said: str = "") -> None:
        """Open a plan if its file can be read; else say why not, and the one that is open stays."""
        try:
            read_text(path)
        except PlannerError as error:
            self._cockpit.show_error("opening a plan", error)
        else:
            self.remember()
            self._cockpit.open_plan(path, *design)
            self._cockpit.say(said)

    def guard(self, then: Callable[[], None]) -> None:
        """Ask what to do with unsaved edits first."""
        session = self._cockpit.session
        if not session.dirty:
            then()
            return
        n = len(session.edits.settings)
        text = f"{session.path.name} has {n} unsaved edit{'s' if n > 1 else ''}."
        self._cockpit.ask(
            Question("Unsaved edits", text, {"s": "save", "d": "drop them"}),
            lambda answer: self.save(then) if answer == "s" else then(),
        )

    def remember(self) -> None:
        """Put the plan and its design on the list of recent ones."""
        session = self._cockpit.session
        if session.reading is not None and session.reading.document is not None:
            left = Left(session.edits.bandwidth_GBps, (session.fingerprint or b"").hex())
            remember(str(real_path(session.path)), left)
