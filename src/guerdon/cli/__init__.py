"""The ``guerdon`` command line: score, explain, report, compare, and what a spec can say.

Exit codes: 0 all well; 1 findings or disagreement; 2 wrong usage or bad input; 3 a fault in Guerdon; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

FINDINGS, USAGE, FAULT, INTERRUPTED = 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit. Errors are one line on stderr; ``--debug`` anywhere shows the traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments or bool(os.environ.get("GUERDON_DEBUG"))
    sys.exit(_exit_code([a for a in arguments if a != "--debug"], debug))


def _exit_code(arguments: list[str], debug: bool) -> int:
    import typer

    from guerdon.cli._app import app
    from guerdon.core.errors import GuerdonError

    command = typer.main.get_command(app)
    try:
        result = command.main(args=arguments, prog_name="guerdon", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except typer.Exit as stop:
        return int(stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _say(
            "interrupted; run the same command again to continue where a scored file was being written", INTERRUPTED
        )
    except BrokenPipeError:  # the reader of our output went away, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except GuerdonError as error:
        if debug:
            raise
        return _say(str(error), USAGE)
    except OSError as error:
        if debug:
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}", USAGE)
    except Exception as error:  # the outermost boundary: a bug is reported in one line
        if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help
            sys.stderr.write(f"{error.format_message()}\n")  # type: ignore[attr-defined]
            return USAGE
        if hasattr(error, "format_message"):  # wrong usage, as the parser reports it
            context = getattr(error, "ctx", None)
            hint = f" (see: {context.command_path} --help)" if context is not None else ""
            return _say(f"{error.format_message()}{hint}", USAGE)
        if debug:
            raise
        return _say(f"a fault in Guerdon: {type(error).__name__}: {error} (--debug shows where)", FAULT)


def _say(message: str, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"guerdon: {' '.join(message.split())}\n")
    return code
