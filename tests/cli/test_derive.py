"""Options come from constructors: names, values, defaults and help, without importing them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import mercer
from mercer import KernelKMeans, KernelSpectralClustering, SpectralClustering, StreamingKernelKMeans
from mercer.cli.app import app
from mercer.cli.derive import LEFT_OUT, TABLES, domain_of
from mercer.cli.domains import Domain, Numbers
from mercer.cli.help_text import summarize
from mercer.cli.methods import METHODS
from mercer.cli.signatures import describe_parameters, names_in, parameters_of
from mercer.cli.vocabulary import option_of
from mercer.datasets import rings
from mercer.image import Segmenter

PLACES: dict[str, Any] = {
    METHODS["spectral"]: SpectralClustering,
    METHODS["kernel-kmeans"]: KernelKMeans,
    METHODS["ksc"]: KernelSpectralClustering,
    "mercer.stream:StreamingKernelKMeans": StreamingKernelKMeans,
    "mercer.image:Segmenter": Segmenter,
}
VERBS: dict[str, list[Any]] = {
    "cluster": [SpectralClustering, KernelKMeans, KernelSpectralClustering],
    "plan": [SpectralClustering, KernelKMeans, KernelSpectralClustering],
    "stream": [StreamingKernelKMeans],
    "segment": [Segmenter],
}
BESIDE = """Something.

    Parameters
    ----------
    n_clusters : number of clusters; "auto" takes the largest
        relative gap.
    n_init, tol : of k-means.

    Attributes
    ----------
    labels_ : labels.
    """
NUMPYDOC = """Something.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; "auto" takes the largest
        relative gap.
    assign_labels : {"kmeans", "cluster_qr"}, default="kmeans"
        How eigenvectors become clusters.

        It matters little.
    ensemble : int, optional
        Partitions to join.
    n_init, tol : float
        of k-means.

    Examples
    --------
    >>> 1
    1
    """


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def options(verb: str) -> dict[str, Any]:
    commands: Any = get_command(app)
    return {parameter.name: parameter for parameter in commands.commands[verb].params}


# Reading of the source ---------------------------------------------------------------------------


def test_descriptions_beside_the_name() -> None:
    assert describe_parameters(BESIDE) == {
        "n_clusters": 'number of clusters; "auto" takes the largest relative gap.',
        "n_init": "of k-means.",
        "tol": "of k-means.",
    }


def test_descriptions_below_a_type() -> None:
    described = describe_parameters(NUMPYDOC)
    assert described["n_clusters"] == 'Number of clusters; "auto" takes the largest relative gap.'
    assert described["assign_labels"] == "How eigenvectors become clusters. It matters little."
    assert described["ensemble"] == "Partitions to join."
    assert list(described) == ["n_clusters", "assign_labels", "ensemble", "n_init", "tol"]
    assert describe_parameters("No section.") == {}


@pytest.mark.parametrize("place", PLACES)
def test_the_source_tells_what_the_signature_does(place: str) -> None:
    signature = inspect.signature(PLACES[place]).parameters
    read = parameters_of(place)
    assert list(read) == list(signature)
    for name, parameter in signature.items():
        assert read[name].default == parameter.default
        assert read[name].description, name


@pytest.mark.parametrize("place", PLACES)
def test_values_are_those_that_the_estimator_takes(place: str) -> None:
    """The domains, read from the source, agree with scikit-learn's check of the constraints."""
    from sklearn.utils._param_validation import InvalidParameterError

    values = [-1, 0, 0.5, 1, 1.5, 2, 300, "auto", "kmeans", "bas", "ridge", "mean", "magic"]
    for name, parameter in parameters_of(place).items():
        if not parameter.domain or parameter.domain.is_flag or name == "verbose":
            continue
        for value in values:
            try:
                PLACES[place](**{name: value})._validate_params()
            except InvalidParameterError:
                assert value not in parameter.domain, (name, value)
            else:
                assert value in parameter.domain, (name, value)


@pytest.mark.parametrize("place", TABLES.values())
def test_names_are_those_of_the_tables(place: str) -> None:
    from importlib import import_module
    from typing import get_args

    module, _, name = place.partition(":")
    table = getattr(import_module(module), name)
    assert names_in(place) == tuple(get_args(table) or table)


def test_nothing_is_imported_to_show_help() -> None:
    code = f"""
import sys, types
package = sys.modules["mercer"] = types.ModuleType("mercer")
package.__path__ = {list(mercer.__path__)!r}
from mercer.cli import main
try:
    main()
finally:
    assert not {{"numpy", "scipy", "sklearn", "numba"}} & set(sys.modules)
"""
    words = [sys.executable, "-c", code, "cluster", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "laplacian" in done.stdout


# Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_parameters_are_options(verb: str) -> None:
    """All that can be typed; those of the segmenter that files decide are left out."""
    offered = options(verb)
    left_out = {*LEFT_OUT, "kernel_cholesky", "channel_axis", "alpha", "start_label"}
    for estimator in VERBS[verb]:
        for name, parameter in inspect.signature(estimator).parameters.items():
            assert (name in offered) == (name not in left_out), name
            if name in offered and parameter.default is not True:
                assert option_of(name) in offered[name].opts


@pytest.mark.parametrize("verb", [*VERBS, "tune"])
def test_help_is_a_sentence(verb: str) -> None:
    for name, parameter in options(verb).items():
        help = getattr(parameter, "help", None)
        assert help is None or help.endswith("."), name
        assert '"' not in (help or ""), name


def test_a_name_that_joins_the_table_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mercer.factors import Nystrom
    from mercer.factors import names as approximations

    np.save(tmp_path / "rows.npy", rings(300, random_state=0)[0])
    words = ("cluster", tmp_path / "rows.npy", "-k", 2, "--seed", 0, "--rank", 50)
    assert run(*words, "--approximation", "stranger").exit_code == 2
    monkeypatch.setitem(approximations.NAMES, "stranger", Nystrom)
    result = run(*words, "--approximation", "stranger", "--method", "kernel-kmeans")
    assert result.exit_code == 0, result.output


def test_a_method_that_joins_the_table_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "rows.npy", rings(300, random_state=0)[0])
    words = ("cluster", tmp_path / "rows.npy", "--method", "twin", "-k", 2, "--seed", 0)
    assert run(*words).exit_code == 2
    monkeypatch.setitem(METHODS, "twin", METHODS["kernel-kmeans"])
    result = run(*words, "--out", tmp_path / "labels.npy")
    assert result.exit_code == 0, result.output
    wanted = KernelKMeans(2, random_state=0).fit(np.load(tmp_path / "rows.npy")).labels_
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), wanted)


def test_options_of_a_stream_reach_the_estimator(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", rings(600, random_state=0)[0])
    words = "-k 3 --initial-size 200 --no-normalize --forgetting 0.1 --n-init 2 --seed 0"
    model = tmp_path / "m.mercer"
    result = run("stream", tmp_path / "rows.npy", *words.split(), "--model", model, "--quiet")
    assert result.exit_code == 0, result.output
    parameters = mercer.load(model).get_params()
    wanted = {"initial_size": 200, "normalize": False, "forgetting": 0.1, "n_init": 2}
    assert {name: parameters[name] for name in wanted} == wanted


def test_a_method_refuses_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "rows.npy").touch()
    for words, told in (
        ("--method ksc --ensemble 3", "--method ksc has no --ensemble"),
        ("--train-size 0.5", "--method spectral has no --train-size"),
        ("--method ksc --rank auto", "--rank auto needs --method spectral, not ksc"),
        ("--method kernel-kmeans -k auto", "needs --method spectral or ksc, not kernel-kmeans"),
    ):
        done = CliRunner().invoke(
            app, ["cluster", str(tmp_path / "rows.npy"), *words.split()], terminal_width=200
        )
        assert done.exit_code == 2
        assert told in " ".join(done.output.replace("│", " ").split())


# Values and words --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400, "-" + "9" * 400, "nan"])
@pytest.mark.parametrize("option", ["--train-size", "--rank", "--n-init"])
def test_numbers_beyond_all_bounds_are_refused(option: str, number: str, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((5, 2)))
    result = run("cluster", str(tmp_path / "rows.npy"), "--method", "ksc", option, number)
    assert result.exit_code == 2
    assert "Invalid value for" in result.stderr


def test_domains_read_what_is_typed() -> None:
    domain = Domain((Numbers(True, 1), Numbers(False, 0, 1, "right")), ("auto",))
    assert domain.metavar == "N|NUMBER|auto"
    assert (domain.read("3"), domain.read("1.0"), domain.read("auto")) == (3, 1.0, "auto")
    assert isinstance(domain.read("1.0"), float)
    assert isinstance(domain.read("1"), int)
    for text in ("0", "1.5", "nan", "inf", "", "many"):
        with pytest.raises(ValueError, match="a whole number of at least 1 or a number above 0"):
            domain.read(text)
    assert "auto" in domain
    assert "magic" not in domain
    assert True not in domain
    assert True in Domain(is_flag=True)


@pytest.mark.parametrize(
    ("description", "default", "sentence", "told"),
    [
        ("number of rows.", 8, "number of rows", "8"),
        ("Rows to begin with; None is `max_size` (at most; or so).", None,
         "Rows to begin with", "--max-size (at most; or so)"),
        ("Rows (a; b. C) to keep. More text.", 0.5, "Rows (a; b. C) to keep", "0.5"),
        ('Rank. If "auto", the approximation decides.', "auto", "Rank",
         "auto: the approximation decides"),
        ('"a" [smith2001] or ``b``.', "a", "a or b", "a"),
        ("Share, e.g. 20 %, of all rows. Or none.", None, "Share, e.g. 20 %, of all rows", ""),
        ("Whether to do so.", True, "Whether to do so", ""),
        ("", 3, "", "3"),
    ],
)  # fmt: skip
def test_the_first_sentence_and_what_the_default_means(
    description: str, default: Any, sentence: str, told: str
) -> None:
    assert summarize(description, default) == (sentence, told)


def test_objects_are_offered_by_their_names() -> None:
    kernel = parameters_of(METHODS["kernel-kmeans"])["kernel"]
    assert not kernel.domain
    assert "laplacian" in domain_of(kernel)
