"""The parameters of estimators and functions, read from their source without importing it.

Importing an estimator takes a second or more; help and errors of usage must not wait for it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.machinery import PathFinder, SourceFileLoader
from itertools import accumulate
from typing import Any

from mercer._run.frozen import frozen
from mercer.cli.domains import Domain, Numbers

SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", re.DOTALL | re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) ?: ?(.*)$")
TYPE = re.compile(r"^$|^\{|(^|, )(default\b|optional$)")  # what tells a type from a description
NUMBERS = {"int": Numbers(is_whole=True), "float": Numbers(is_whole=False)}


@frozen
class Parameter:
    """One parameter of a constructor or a function."""

    name: str
    default: Any
    domain: Domain  # the values that it takes; empty for Python objects
    description: str  # from the docstring, in one line


@cache
def parameters_of(place: str) -> dict[str, Parameter]:
    """The parameters of ``"module:Class"`` or ``"module:function"`` that have defaults, by name."""
    module, node = _definition(*place.split(":"))
    described = describe_parameters(ast.get_docstring(node) or "")
    constraints: dict[str, ast.expr] = {}
    if isinstance(node, ast.ClassDef):
        written = _find(node.body, "_parameter_constraints")
        if not isinstance(written, ast.Dict):
            raise TypeError(f"_parameter_constraints of {place} must be written out as one dict")
        constraints = _items(written)
        node = _find(node.body, "__init__")
    return {
        argument.arg: Parameter(
            argument.arg,
            _value(module, default),
            _domain(constraints.get(argument.arg), argument.annotation),
            described.get(argument.arg, ""),
        )
        for argument, default in _arguments(node.args)
    }


@cache
def names_in(place: str) -> tuple[str, ...]:
    """The words of ``"module:TABLE"``: the keys of a dict, the items of a Literal or a tuple.

    None of them if the source does not spell them out.
    """
    _, node = _definition(*place.split(":"))
    node = getattr(node, "slice", node)
    return tuple(_items(node) or map(ast.literal_eval, getattr(node, "elts", ())))


def describe_parameters(docstring: str) -> dict[str, str]:
    """The description of each parameter in a numpydoc docstring, in one line, without its type.

    The description may begin beside the name, where numpydoc has the type, and names may share one.
    """
    section = SECTION.search(inspect.cleandoc(docstring) + "\n")
    described: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section[1]) if section else ():
        head, *lines = entry.split("\n")
        if match := ENTRY.match(head):
            names, beside = match.groups()
            text = " ".join(lines if TYPE.search(beside) else [beside, *lines])
            described |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return described


def _definition(module: str, name: str) -> tuple[str, Any]:
    """Where a name is defined, if need be by following imports, and as what."""
    body = _source(module).body
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return _definition(node.module, alias.name)
    return module, _find(body, name)


@cache
def _source(module: str) -> ast.Module:
    """The syntax tree of a module; neither it nor its packages are imported."""
    root, *_ = module.split(".")
    path: Sequence[str] | None = None
    for name in accumulate(module.split("."), "{}.{}".format):
        spec = PathFinder.find_spec(name, path)
        if name == root and root in sys.modules:
            path = getattr(sys.modules[root], "__path__", None)
        elif spec is not None:
            path = spec.submodule_search_locations
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise ImportError(f"the source of {module} was not found")
    return ast.parse(spec.loader.get_source(module) or "")


def _find(body: Sequence[ast.stmt], name: str) -> Any:
    """The class, the function or the value that is called so."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return getattr(node, "value", None)
    return None


def _items(node: Any) -> dict[str, ast.expr]:
    """The entries of a dict whose keys are words."""
    if not isinstance(node, ast.Dict):
        return {}
    pairs = zip(node.keys, node.values, strict=True)
    return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}


def _arguments(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """Arguments that have a default, and it."""
    n_defaults = len(arguments.defaults)
    if n_defaults:
        yield from zip(arguments.args[-n_defaults:], arguments.defaults, strict=True)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument, default


def _value(module: str, node: ast.expr) -> Any:
    """A default: a literal, or the name of a constant."""
    if isinstance(node, ast.Name):
        return _value(*_definition(module, node.id))
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _domain(constraints: ast.expr | None, annotation: ast.expr | None) -> Domain:
    """What scikit-learn's constraints on a parameter allow; without them what its type allows."""
    domain = Domain()
    for item in constraints.elts if isinstance(constraints, ast.List) else ():
        domain |= _allowed(item)
    if domain or isinstance(constraints, ast.Constant):  # the word "no_validation"
        return domain
    nodes = ast.walk(annotation) if annotation is not None else ()
    types = {node.id for node in nodes if isinstance(node, ast.Name)}
    return Domain(tuple(NUMBERS[name] for name in NUMBERS if name in types), (), "bool" in types)


def _allowed(constraint: ast.expr) -> Domain:
    match constraint:
        case ast.Call(ast.Name("StrOptions"), [ast.Set(words)]):
            return Domain(words=tuple(map(ast.literal_eval, words)))
        case ast.Call(ast.Name("Interval"), [ast.Name(kind), low, high], [ast.keyword(_, closed)]):
            bounds = (ast.literal_eval(bound) for bound in (low, high, closed))
            return Domain((Numbers(kind == "Integral", *bounds),))
        case ast.Name("Integral" | "Real" as kind):
            return Domain((Numbers(kind == "Integral"),))
        case ast.Name("tuple"):
            return Domain(has_ranges=True)
        case ast.Constant("boolean"):
            return Domain(is_flag=True)
    return Domain()
