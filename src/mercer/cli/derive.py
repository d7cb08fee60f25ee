"""Options that are parameters: their names, values, defaults and help come from the constructor.

None means "as the estimator has it", so defaults live in one place, the API.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import reduce, wraps
from importlib import import_module
from operator import or_
from typing import Annotated, Any, get_args

import typer

from mercer.cli.domains import Domain, MemoryAmounts, Numbers
from mercer.cli.help_text import help_of
from mercer.cli.signatures import Parameter, names_in, parameters_of
from mercer.cli.vocabulary import SPELLINGS, in_options, option_of

MODEL, RESOURCES = "Model", "Resources"
SHARED = "mercer.estimators.kernel_kmeans:KernelKMeans"  # has what all estimators share
LEFT_OUT = ("verbose",)  # the command line has --quiet

PANELS = {"max_memory": RESOURCES, "n_jobs": RESOURCES}
METAVARS = {"gamma": "GAMMA", "train_size": "N|SHARE"}
TABLES = {  # names of objects that a parameter takes: a new name is a new line there
    "kernel": "mercer.kernels.registry:NAMES",
    "approximation": "mercer.factors.names:NAMES",
    "gamma": "mercer.kernels.bandwidth:Rule",
    "criterion": "mercer.partitions.codebooks:ENCODINGS",
    "features": "mercer.image.features:FeatureName",
}
NUMBERS = {  # that stand for objects
    "gamma": Numbers(is_whole=False, low=0, closed="neither"),
    "random_state": Numbers(is_whole=True, low=0),
}


def domain_of(parameter: Parameter) -> Domain:
    """The values that can be typed for a parameter; for Python objects their names."""
    name = parameter.name
    if name == "max_memory":
        return MemoryAmounts()
    if parameter.domain:
        return parameter.domain
    words = _names(TABLES[name]) if name in TABLES else ()
    if words and isinstance(parameter.default, str):
        words = tuple(dict.fromkeys((parameter.default, *words)))
    return Domain((NUMBERS[name],) if name in NUMBERS else (), words)


def with_parameters(
    places: Mapping[str, str], *, leave_out: Iterable[str] = (), into: str = "parameters"
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The argument `into` of a verb becomes the options of these estimators, given ones in a dict.

    places : ``"module:Class"`` (or a function) by the name of the method.
    """
    options = _derive(places, {*leave_out, *LEFT_OUT})

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def run(**values: Any) -> None:
            given = {name: values.pop(name) for name in options}
            verb(**values, **{into: {n: v for n, v in given.items() if v is not None}})

        parameters = inspect.signature(verb, eval_str=True).parameters.values()
        return with_signature(
            run, [o for p in parameters for o in (options.values() if p.name == into else (p,))]
        )

    return decorate


def with_signature(
    function: Callable[..., None], parameters: Iterable[inspect.Parameter]
) -> Callable[..., None]:
    """A function whose options, for typer, are these."""
    named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    function.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
    return function


def shared_option(name: str) -> Any:
    """The option of a verb that has no constructor of its own."""
    return _option({"": parameters_of(SHARED)[name]}, 1)


def parser(read: Callable[[str], Any]) -> Callable[[Any], Any]:
    """What reads the value of an option; a text that cannot be read is an error of usage."""

    def parse(text: Any) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise typer.BadParameter(in_options(str(error))) from None

    return parse


def _derive(places: Mapping[str, str], left_out: set[str]) -> dict[str, inspect.Parameter]:
    """The options of all methods, those of the model first."""
    owners: dict[str, dict[str, Parameter]] = {}
    for method, place in places.items():
        for name, parameter in parameters_of(place).items():
            if name not in left_out and domain_of(parameter):
                owners.setdefault(name, {})[method] = parameter
    return {
        name: inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[_kind(owners[name]), _option(owners[name], len(places))],
        )
        for name in sorted(owners, key=lambda name: PANELS.get(name, "") == RESOURCES)
    }


def _kind(owners: Mapping[str, Parameter]) -> Any:
    """What typer takes an option for; values that are not flags have a parser."""
    return bool | None if any(owner.domain.is_flag for owner in owners.values()) else Any


def _option(owners: Mapping[str, Parameter], n_methods: int) -> Any:
    """The option that sets a parameter of these methods."""
    first, *others = owners.values()
    name = first.name

    def domain() -> Domain:  # when it is asked for: names may have joined the tables
        return reduce(or_, map(domain_of, others), domain_of(first))

    names = SPELLINGS.get(name, (option_of(name),))
    help = help_of(owners, domain(), n_methods)
    more: dict[str, Any] = {}
    if not first.domain.is_flag:
        more = {"parser": parser(lambda text: domain().read(text))}
        more["metavar"] = METAVARS.get(name) or domain().metavar
        more["autocompletion"] = lambda: list(domain().words)
    elif first.default:
        names, help = (f"--no-{names[0][2:]}",), f"Turn this off: {help[:1].lower()}{help[1:]}"
        more["callback"] = lambda given: None if given is None else not given
    panel = PANELS.get(name, MODEL)
    return typer.Option(*names, rich_help_panel=panel, help=help, show_default=False, **more)


def _names(place: str) -> tuple[str, ...]:
    """The names in a table: of its source, or of the module if that is loaded."""
    module, table = place.split(":")
    if module not in sys.modules and (names := names_in(place)):
        return names
    loaded = getattr(import_module(module), table)
    return tuple(get_args(loaded) or loaded)
