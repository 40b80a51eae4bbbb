"""``[tool.ddp-lint]`` of pyproject.toml, and what it says about a file.

Every mistake in it is an error that names the file and the line: a setting that is silently
not applied is worse than none.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from ddp_lint.finding import LEVELS, Level
from ddp_lint.ignores import Patterns
from ddp_lint.rule import Rule

FailOn = Literal["note", "warning", "error", "never"]
FAIL_ON: tuple[FailOn, ...] = ("note", "warning", "error", "never")
Names = tuple[str, ...]


class SettingsError(Exception):
    """What is wrong with a configuration, for a person: file, line, and what was meant."""


@dataclass(frozen=True)
class Settings:
    """What one configuration says.  Codes may be prefixes (``DDP1``) or names of rules.

    ``folder`` is what the patterns are relative to.  ``guards``, ``samplers``, ``loggers`` and
    ``scaler_wrappers`` are names of the project's own helpers, as they are called in it.
    """

    select: Names | None = None
    ignore: Names = ()
    extend_select: Names = ()
    per_file_ignores: tuple[tuple[str, Names], ...] = ()
    exclude: Names = ()
    fail_on: FailOn = "warning"
    levels: tuple[tuple[str, Level], ...] = ()
    guards: Names = ()
    samplers: Names = ()
    loggers: Names = ()
    scaler_wrappers: Names = ()
    folder: str = field(default="", compare=False)
    file: str | None = field(default=None, compare=False)

    def excludes(self, path: str) -> bool:
        """Whether the file at ``path`` (absolute) is not to be linted."""
        return self._covers(self._excluded, path)

    def ignored_in(self, path: str) -> Names:
        """The codes that ``per-file-ignores`` takes out of the file at ``path`` (absolute)."""
        return tuple(
            code
            for patterns, codes in self._per_file
            if self._covers(patterns, path)
            for code in codes
        )

    def wants(self, rule: Rule, path: str | None = None) -> bool:
        """Whether findings of ``rule`` (in the file at ``path``) are to be shown."""
        selected = _specificity(rule, self.select, rule.on)
        selected = max(selected, _specificity(rule, self.extend_select, rule.on))
        if self.select is None and rule.on:
            selected = max(selected, 0)
        ignored = _specificity(rule, self.ignore)
        in_file = self.ignored_in(path) if path is not None else ()
        return selected >= 0 and selected > ignored and _specificity(rule, in_file) < 0

    def level_of(self, rule: Rule, level: Level) -> Level:
        """The level of a finding that the rule itself gave ``level``."""
        chosen, best = level, -1
        for code, wanted in self.levels:
            specificity = _specificity(rule, (code,))
            if specificity > best:
                chosen, best = wanted, specificity
        return chosen

    @cached_property
    def _excluded(self) -> Patterns:
        return Patterns(self.exclude)

    @cached_property
    def _per_file(self) -> tuple[tuple[Patterns, Names], ...]:
        return tuple((Patterns([glob]), codes) for glob, codes in self.per_file_ignores)

    def _covers(self, patterns: Patterns, path: str) -> bool:
        if not patterns:
            return False
        relative = os.path.relpath(path, self.folder or os.curdir).replace(os.sep, "/")
        return not relative.startswith("../") and patterns.covers(relative)


def _specificity(rule: Rule, selectors: Names | None, on: bool = True) -> int:
    """How exactly one of ``selectors`` names ``rule``: -1 for not at all.

    A rule that is off by default answers only to its full code or its name.
    """
    best = -1
    for selector in selectors or ():
        if selector in (rule.code, rule.name):
            return len(rule.code)
        if on and rule.code.startswith(selector):
            best = max(best, len(selector))
    return best


def check_codes(codes: Iterable[str], rules: Collection[Rule]) -> None:
    """Raises ``SettingsError`` for the first of ``codes`` that names no rule of ``rules``."""
    for code in codes:
        if not any(code == rule.name or (code and rule.code.startswith(code)) for rule in rules):
            known = [name for rule in rules for name in (rule.code, rule.name)]
            raise SettingsError(f"no rule is called {code!r}{suggest(code, known)}")


def suggest(word: str, known: Iterable[str]) -> str:
    """``; did you mean ...?`` where one of ``known`` is close to ``word``, else nothing."""
    import difflib  # only where something is wrong

    names = list(known)
    near = difflib.get_close_matches(word.lower(), [name.lower() for name in names], 1, 0.6)
    if not near:
        return ""
    return f"; did you mean {next(name for name in names if name.lower() == near[0])!r}?"


class Configurations:
    """The settings of every file: those of the nearest pyproject.toml that has some.

    ``only`` is a file that holds for all of them, ``isolated`` reads none.
    """

    def __init__(
        self, rules: Collection[Rule], *, only: Path | None = None, isolated: bool = False
    ) -> None:
        self._rules = rules
        self._fixed: Settings | None = None
        self._by_folder: dict[str, Settings] = {}
        if isolated:
            self._fixed = Settings()
        elif only is not None:
            text = _read(only)
            found = read_settings(text, only, rules)
            if found is None:
                raise SettingsError(f"{only}: has no [tool.ddp-lint] table")
            self._fixed = found

    def of_folder(self, folder: str, root: str) -> Settings:
        """The settings for files in ``folder``; nothing above ``root`` is looked at."""
        if self._fixed is not None:
            return self._fixed
        known = self._by_folder.get(folder)
        if known is None:
            known = self._by_folder[folder] = self._look(folder, root)
        return known

    def _look(self, folder: str, root: str) -> Settings:
        path = os.path.join(folder, "pyproject.toml")
        if os.path.isfile(path):
            text = _read(Path(path))
            if "ddp-lint" in text:
                found = read_settings(text, Path(path), self._rules)
                if found is not None:
                    return found
        above = os.path.dirname(folder)
        if folder == root or above == folder:
            return Settings()
        return self.of_folder(above, root)


def read_settings(text: str, path: Path, rules: Collection[Rule]) -> Settings | None:
    """The settings in the TOML ``text`` of ``path``; None where it has no table of ours.

    Raises ``SettingsError`` for anything that is not understood.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    shown = _relative(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        at = line[1] if line else len(text.splitlines())
        raise SettingsError(f"{shown}:{at}: is not TOML: {error}") from None
    tool = document.get("tool")
    if not isinstance(tool, dict) or "ddp-lint" not in tool:
        return None
    reader = _Reader(text, shown, rules)
    values = reader.read(tool["ddp-lint"])
    return replace(Settings(**values), folder=str(path.absolute().parent), file=shown)


KEYS = tuple(
    entry.name.replace("_", "-")
    for entry in fields(Settings)
    if entry.name not in ("folder", "file")
)
_CODE_LISTS = ("select", "ignore", "extend-select")


class _Reader:
    def __init__(self, text: str, shown: str, rules: Collection[Rule]) -> None:
        self._text = text
        self._shown = shown
        self._rules = rules

    def read(self, table: object) -> dict[str, Any]:
        if not isinstance(table, dict):
            raise self._error("tool.ddp-lint must be a table", "ddp-lint")
        values: dict[str, Any] = {}
        for key, value in table.items():
            if key not in KEYS:
                raise self._error(f"there is no setting {key!r}{suggest(key, KEYS)}", key)
            values[key.replace("-", "_")] = self._value(key, value)
        return values

    def _value(self, key: str, value: object) -> object:
        if key == "fail-on":
            return self._one_of(FAIL_ON, value, key)
        if key == "levels":
            table = self._table(value, key, "codes and levels")
            self._codes(list(table), key)
            return tuple(
                (code, self._one_of(LEVELS, level, key, code)) for code, level in table.items()
            )
        if key == "per-file-ignores":
            table = self._table(value, key, "patterns and lists of codes")
            return tuple(
                (glob, self._codes(self._strings(codes, key, glob), key, glob))
                for glob, codes in table.items()
            )
        words = self._strings(value, key)
        return self._codes(words, key) if key in _CODE_LISTS else tuple(words)

    def _codes(self, codes: list[str], *keys: str) -> Names:
        for code in codes:
            try:
                check_codes([code], self._rules)
            except SettingsError as error:
                raise self._error(f"{keys[0]}: {error}", *keys, code) from None
        return tuple(codes)

    def _strings(self, value: object, *keys: str) -> list[str]:
        if isinstance(value, list) and all(isinstance(word, str) and word for word in value):
            return cast("list[str]", value)
        raise self._error(f"{keys[-1]} must be a list of strings, not {_kind(value)}", *keys)

    def _table(self, value: object, key: str, of: str) -> dict[str, object]:
        if isinstance(value, dict):
            return value
        raise self._error(f"{key} must be a table of {of}, not {_kind(value)}", key)

    def _one_of(self, choices: tuple[str, ...], value: object, *keys: str) -> str:
        if isinstance(value, str) and value in choices:
            return value
        hint = suggest(value, choices) if isinstance(value, str) else ""
        message = f"{keys[-1]} must be one of {', '.join(choices)}, not {value!r}{hint}"
        raise self._error(message, *keys)

    def _error(self, message: str, *keys: str) -> SettingsError:
        """The error at the line where the last of ``keys``, each inside the one before, stands."""
        lines = self._text.splitlines()
        at = _find(
            lines, 0, r"^\s*\[\s*tool\s*\.\s*[\"']?ddp-lint\b|^\s*tool\s*\.\s*[\"']?ddp-lint\b"
        )
        for key in keys:
            at = _find(lines, at, rf"(?<![\w-])[\"']?{re.escape(key)}[\"']?(?![\w-])")
        return SettingsError(f"{self._shown}:{at + 1}: {message}")


def _find(lines: list[str], start: int, pattern: str) -> int:
    regex = re.compile(pattern)
    found = (at for at in range(start, len(lines)) if regex.search(lines[at].partition(" #")[0]))
    return next(found, start)


def _kind(value: object) -> str:
    names = {str: "a string", bool: "true or false", int: "a number", float: "a number"}
    if isinstance(value, list):
        return "a list with something else in it"
    return names.get(type(value), "a table" if isinstance(value, dict) else type(value).__name__)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise SettingsError(f"{_relative(path)}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{_relative(path)}: is not UTF-8, as TOML must be") from None


def _relative(path: Path) -> str:
    relative = os.path.relpath(path)
    return (str(path) if relative.startswith("..") else relative).replace(os.sep, "/")


def shown(settings: Settings) -> str:
    """The settings as a table of pyproject.toml, with a word on where they come from."""
    import json  # its strings and lists are TOML too

    lines = [f"# from {settings.file}" if settings.file else "# defaults", "[tool.ddp-lint]"]
    for key in KEYS:
        value = getattr(settings, key.replace("-", "_"))
        if key in ("levels", "per-file-ignores"):
            entries = (f"{json.dumps(name)} = {json.dumps(said)}" for name, said in value)
            lines.append(f"{key} = {{ {', '.join(entries)} }}" if value else f"{key} = {{}}")
        elif value is None:
            lines.append(f"# {key}: all rules that are on by default")
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"
