"""Scripts that let a shell complete the command: commands, options, codes, formats, files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from ddp_lint.registry import all_rules
from ddp_lint.report import formats
from ddp_lint.settings import FAIL_ON


def script(shell: str, parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """What to ``source`` in ``shell`` (bash, zsh or fish); ``parsers`` are by command."""
    if shell == "fish":
        return _fish(parsers)
    text = _bash(parsers)
    return f"autoload -U +X bashcompinit && bashcompinit\n{text}" if shell == "zsh" else text


def _codes() -> list[str]:
    return [name for rule in all_rules().values() for name in (rule.code, rule.name)]


def _values() -> dict[str, Sequence[str]]:
    """What may follow an option."""
    codes = _codes()
    return {
        "--select": codes,
        "--extend-select": codes,
        "--ignore": codes,
        "--format": formats(),
        "--fail-on": FAIL_ON,
    }


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [option for action in parser._actions for option in action.option_strings]


def _bash(parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    after = "\n".join(
        f'        {option}) words="{" ".join(values)}" ;;' for option, values in _values().items()
    )
    options = "\n".join(
        f'            {name}) words="{" ".join(_options(parser))}" ;;'
        for name, parser in parsers.items()
    )
    return f"""\
_ddp_lint() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=""
    case $before in
{after}
        explain) words="{" ".join(_codes())}" ;;
    esac
    if [[ -z $words && $COMP_CWORD -eq 1 ]]; then
        words="{" ".join(parsers)} --help --version"
    elif [[ -z $words && $word == -* ]]; then
        case ${{COMP_WORDS[1]}} in
{options}
        esac
    fi
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _ddp_lint ddp-lint
"""


def _fish(parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    known = " ".join(parsers)
    lines = [f"complete -c ddp-lint -n 'not __fish_seen_subcommand_from {known}' -f -a '{known}'"]
    explain = "complete -c ddp-lint -n '__fish_seen_subcommand_from explain'"
    lines.append(f"{explain} -f -a '{' '.join(_codes())}'")
    for name, parser in parsers.items():
        for option in _options(parser):
            start = f"complete -c ddp-lint -n '__fish_seen_subcommand_from {name}'"
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            values = _values().get(option)
            lines.append(f"{start} {flag}" + (f" -x -a '{' '.join(values)}'" if values else ""))
    return "\n".join(lines) + "\n"
