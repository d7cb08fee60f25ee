"""What all verbs share: help with examples that fits the terminal, completion, exit codes."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from mercer._run.paths import demand_path
from mercer.cli.derive import with_signature
from mercer.cli.errors import readable_errors
from mercer.cli.examples import EXAMPLES
from mercer.cli.options import option
from mercer.cli.vocabulary import speaking_of

EXIT_CODES = {
    0: "success",
    1: "an error in the input or during the work",
    2: "a wrong command line",
    130: "interrupted (Ctrl-C)",
}
DEBUG = inspect.Parameter(
    "debug",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, option("--debug", help="Show the traceback of an error.")],
)
ROOM = 72  # columns below which boxes and tables leave no room for text


class Verbs(typer.Typer):
    """The app: each verb gets the examples of its name, and a shell can complete it."""

    def __init__(self) -> None:
        super().__init__(
            name="mercer",
            cls=Group,
            no_args_is_help=True,
            pretty_exceptions_enable=False,
            rich_markup_mode="rich" if shutil.get_terminal_size().columns >= ROOM else None,
        )

    def command(self, name: str | None = None, **options: Any) -> Callable[[Any], Any]:
        """Register a verb, with the option --debug."""
        register = super().command(name, **{"cls": Verb, **options})

        def decorate(verb: Callable[..., None]) -> Any:
            @wraps(verb)
            def run(*, debug: bool, **values: Any) -> None:
                verb(**values)

            parameters = inspect.signature(verb, eval_str=True).parameters.values()
            return register(with_signature(run, [*parameters, DEBUG]))

        return decorate


class PlainFlags:
    """Flags whose help does not show <bool> as their value."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Verb(PlainFlags, TyperCommand):
    """A verb: its files exist before it starts, its errors are a line, its help has examples."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with speaking_of(self.params, ()):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        debug = ctx.params["debug"]
        with speaking_of(self.params, ctx.params.values()), readable_errors(debug=debug):
            for parameter in self.params:
                path = ctx.params.get(parameter.name)
                if parameter.param_type_name == "argument" and isinstance(path, Path):
                    demand_path(path)  # before modules are imported that take seconds
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        examples = EXAMPLES.get(self.name or "", {}).items()
        lines = [f"\n  {what}:\n    {command}\n" for what, command in examples]
        formatter.write("".join(["\n Examples\n", *lines] if lines else []))


class Group(PlainFlags, TyperGroup):
    """The list of verbs, where to start and what exit codes mean."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        codes = "\n".join(f"   {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
        formatter.write(
            "\n Start with `mercer demo`; `mercer VERB --help` shows two examples of each verb.\n"
            f"\n Exit codes\n{codes}\n"
        )
