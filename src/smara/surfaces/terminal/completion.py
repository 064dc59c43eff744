"""Define `smara completion`: complete commands, ids and names in shells.

Click has scripts for bash, zsh and fish. PowerShell asks a script block for the words; this one
calls `smara` in the same way as the others do, with the words so far in the environment.
"""

from __future__ import annotations

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from smara.environment import variable
from smara.surfaces.cli.app import COMPLETION, cli
from smara.surfaces.cli.options import Invocation, Reply, common

SHELLS = ("bash", "zsh", "fish", "powershell")
_HOW = {
    "bash": "echo 'eval \"$(smara completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(smara completion zsh)\"' >> ~/.zshrc",
    "fish": "smara completion fish > ~/.config/fish/completions/smara.fish",
    "powershell": "smara completion powershell | Out-String | Invoke-Expression  (in $PROFILE)",
}


class PowerShellComplete(ShellComplete):
    """Completion in PowerShell 5.1 and later, on every platform."""

    name = "powershell"
    source_template = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = $commandAst.ToString()
    if ($words.Length -lt $cursorPosition) { $words = $words.PadRight($cursorPosition) }
    $env:COMP_LINE = $words.Substring(0, $cursorPosition)
    $env:COMP_WORD = $wordToComplete
    $env:%(complete_var)s = "powershell_complete"
    try {
        %(prog_name)s | ForEach-Object {
            $kind, $value, $about = $_ -split "`t", 3
            if (-not $about) { $about = $value }
            if ($kind -eq "plain") {
                [System.Management.Automation.CompletionResult]::new(
                    $value, $value, "ParameterValue", $about)
            }
        }
    } finally {
        Remove-Item Env:COMP_LINE, Env:COMP_WORD, Env:%(complete_var)s
    }
}
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one at hand, and its beginning."""
        words, last = split_arg_string(variable("COMP_LINE")), variable("COMP_WORD")
        return words[1 : -1 if last and words[-1:] == [last] else None], last

    def format_completion(self, item: CompletionItem) -> str:
        """Return a word with its kind and a few words about it."""
        about = " ".join((item.help or "").split())
        return f"{item.type}\t{item.value}\t{about}"


add_completion_class(PowerShellComplete)


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@common
def completion_command(call: Invocation, shell: str) -> Reply:
    """Print a shell completion script: eval "$(smara completion bash)".

    Commands, options, ids of tasks, memories, threads, decisions and receipts,
    and names of projects are completed. In fish, write it to
    ~/.config/fish/completions/smara.fish; in PowerShell, add
    `smara completion powershell | Out-String | Invoke-Expression` to $PROFILE.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise AssertionError(f"click does not support the shell {shell}")
    script = kind(cli, {}, "smara", COMPLETION).source()
    yield {"shell": shell, "script": script, "how": _HOW[shell]}
    click.echo(script)
