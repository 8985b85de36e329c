"""``steelyard completion``: what makes a shell complete commands, options and files."""

from __future__ import annotations

import argparse
from typing import Any

_BASH = """# steelyard: completion for bash{zsh}
_steelyard() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    case "${{COMP_WORDS[1]}} $before" in
{choices}
        *)
            case "${{COMP_WORDS[1]}}" in
{options}
            esac ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then words="{commands}"; fi
    COMPREPLY=( $(compgen -W "$words" -- "$current") )
    if [ "$COMP_CWORD" -gt 1 ] && [ "${{current:0:1}}" != "-" ]; then COMPREPLY+=( $(compgen -f -- "$current") ); fi
}}
complete -o filenames -F _steelyard steelyard
"""
_EXAMPLES = """examples:
  steelyard completion bash >> ~/.bashrc
  steelyard completion zsh >> ~/.zshrc
  steelyard completion fish > ~/.config/fish/completions/steelyard.fish
"""


def add_parser(commands: Any) -> None:
    """The options of the command."""
    parser = commands.add_parser(
        "completion",
        help="print what makes your shell complete commands and options",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script for a shell."""
    from steelyard.cli.commands import make_parser

    commands = _commands(make_parser())
    print(_fish(commands) if options.shell == "fish" else _bash(commands, options.shell), end="")
    return 0


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _bash(commands: dict[str, argparse.ArgumentParser], shell: str) -> str:
    choices, options = [], []
    for command, parser in commands.items():
        words = " ".join(word for action in _options(parser) for word in action.option_strings)
        inner = " ".join(_commands(parser))
        options.append(f'                {command}) words="{" ".join(filter(None, [inner, words]))}" ;;')
        for action in _options(parser):
            if action.choices:
                names = "|".join(f'"{command} {word}"' for word in action.option_strings)
                choices.append(f'        {names}) words="{" ".join(map(str, action.choices))}" ;;')
    zsh = "autoload -Uz bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    script = _BASH.format(
        zsh=" and zsh", choices="\n".join(choices), options="\n".join(options), commands=" ".join(commands)
    )
    return zsh + script


def _fish(commands: dict[str, argparse.ArgumentParser]) -> str:
    lines = [f"complete -c steelyard -f -n __fish_use_subcommand -a '{' '.join(commands)}'"]
    for command, parser in commands.items():
        seen = f"-n '__fish_seen_subcommand_from {command}'"
        if _commands(parser):
            lines.append(f"complete -c steelyard {seen} -f -a '{' '.join(_commands(parser))}'")
        for action in _options(parser):
            words = " ".join(
                f"-{'l' if word.startswith('--') else 's'} {word.lstrip('-')}" for word in action.option_strings
            )
            values = f" -x -a '{' '.join(map(str, action.choices))}'" if action.choices else ""
            lines.append(f"complete -c steelyard {seen} {words}{values}")
    return "\n".join(lines) + "\n"
