"""The script as a process: what it imports, how it ends."""

import os
import re
import shlex
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import looms as package
from looms.cli import main
from looms.cli._app import _MODULES, COMMANDS

pytestmark = pytest.mark.slow

# A relative PYTHONPATH would not be found from another folder.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])}
ENVIRONMENT.pop("PYTHONUNBUFFERED", None)  # a long write to a closed pipe then seems to succeed
RUN = "from looms.cli import main; main()"


def command(*arguments, code=RUN):
    return [sys.executable, "-c", code, *map(str, arguments)]


def started(*arguments, folder, **options):
    """The script in a process, whose streams are pipes."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    options |= {"text": True, "cwd": folder, "env": ENVIRONMENT}
    return subprocess.Popen(command(*arguments), **options)


def run(*arguments, code=RUN, **options):
    return subprocess.run(
        command(*arguments, code=code),
        capture_output=True,
        text=True,
        timeout=600,
        env=ENVIRONMENT,
        **options,
    )


def test_the_package_runs_as_a_module():
    arguments = [sys.executable, "-m", "looms", "--version"]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert result.stdout == f"looms {package.__version__}\n"


def test_help_imports_nothing_heavy():
    at_exit = "import atexit, sys; atexit.register(lambda: print(*sys.modules))"
    *shown, imported = run("--help", code=f"{at_exit}; {RUN}").stdout.splitlines()
    assert "Usage: looms" in "\n".join(shown)
    assert all(f" {name} " in "\n".join(shown) for name in COMMANDS)
    imported = imported.split()
    assert "typer" in imported
    heavy = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "skops", "rich.progress"}
    assert not heavy & set(imported)


def test_the_list_of_commands_has_the_first_line_of_the_help_of_each():
    for name, summary in COMMANDS.items():
        module = _MODULES.get(name, name)
        command = getattr(import_module(f"looms.cli.{module}"), name)
        assert command.__doc__.splitlines()[0] == summary, name


def test_without_a_package_the_message_names_the_extra(looms, one_line, monkeypatch):
    for name in ("looms.cli.predict", "looms.cli._output"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "rich.box", None)
    result = looms("show", "m.skops")
    one_line(result, 1, "rich.box is not installed")
    assert 'pip install ".[cli]"' in result.stderr


@pytest.mark.parametrize("module", ["typer", "typer.core"])
def test_without_typer_the_message_names_the_extra(module):
    result = run("--help", code=f"import sys; sys.modules[{module!r}] = None; {RUN}")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert 'not installed: pip install ".[cli]"' in result.stderr


#: The module whose import is interrupted, as an import hook sees it.
IMPORTING = """
import sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from looms.cli import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "looms.cli._errors", "sklearn"])
def test_interrupts_of_imports(module):
    result = run("fit", "t.csv", "-t", "y", code=IMPORTING.format(module=module))
    assert result.returncode == 130
    assert result.stderr == "Interrupted.\n"


def test_little_is_imported_before_interrupts_are_caught():
    code = "import sys; before = {*sys.modules}; import looms.cli; print(*{*sys.modules} - before)"
    imported = {name.partition(".")[0] for name in run(code=code).stdout.split()}
    assert imported <= {"looms", "importlib", "warnings", "_weakrefset", "weakref", "__future__"}


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupt(tmp_path):
    """Ctrl-C while the optimizer runs: code 130, one line, nothing written."""
    pytest.importorskip("sklearn.callback")
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(size=(1000, 20)), rng.integers(2, size=1000)])
    header = ",".join([*(f"x{j}" for j in range(20)), "y"])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header=header, comments="")
    given = ("fit", "t.csv", "-t", "y", "-c", "ard,ranked_ard,rbf")
    with started(*given, folder=tmp_path) as process:
        for line in process.stderr:
            if line.startswith("Candidate 1"):
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait(timeout=600) == 130
        assert process.stdout.read() == ""
    assert rest == "Interrupted.\n"
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_interrupt_of_an_assessment(tmp_path):
    """Ctrl-C after a few splits, which reaches the workers too: what is done is kept and shown."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.normal(size=(60, 3)), rng.integers(2, size=60)])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,y", comments="")
    given = ("assess", "t.csv", "-t", "y", "-c", "linear", "-n", 2000, "--jobs", 2)
    own_group = {"start_new_session": True}
    with started(*given, "--store", "kept", folder=tmp_path, **own_group) as process:
        for line in process.stderr:
            if "(5 of 2000" in line:
                os.killpg(process.pid, signal.SIGINT)
                break
        rest = process.stderr.read()  # a worker that dies late may have the last word
        assert process.wait(timeout=600) == 130
        shown = process.stdout.read()
    (done,) = map(int, re.findall(r"^Interrupted\. (\d+) of 2000 .* stored in kept: ", rest, re.M))
    assert done >= 5
    n_files = len(list((tmp_path / "kept").glob("*/seed*.json")))
    assert n_files - done in (0, 1)  # the signal may come between a file and its count
    assert f"{done} random splits, seed 0" in shown


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_reader_that_had_enough(pets, pets_model, tmp_path):
    header, *rows = pets.read_text().splitlines()
    (tmp_path / "long.csv").write_text("\n".join([header, *rows * 500]) + "\n")
    with started("predict", pets_model, "long.csv", folder=tmp_path) as process:
        assert process.stdout.readline().startswith("row,prediction,decision_dog,")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=600) == 1


def code_here(monkeypatch, output, *arguments):
    """Exit code of the script in this process, if it writes to this file."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["looms", *map(str, arguments)])
        patch.setattr(sys, "stdout", output)
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("command_of_files", ["fit", "assess"])
def test_files_are_written_though_the_reader_had_enough(tmp_path, monkeypatch, command_of_files):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i / 7},{i % 2}\n" for i in range(60)))
    arguments = ["t.csv", "-t", "y", "-c", "linear", "--report", "page.html", "--json"]
    arguments += {"fit": ["--no-evaluate"], "assess": ["--splits", "2", "-o", "splits.csv"]}[
        command_of_files
    ]
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as output:
        assert code_here(monkeypatch, output, command_of_files, *arguments) == 1
    assert (tmp_path / "page.html").is_file()
    if command_of_files == "assess":
        assert (tmp_path / "splits.csv").is_file()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("arguments", [("predict", "pets.csv"), ("show",)])
def test_output_that_cannot_be_written(pets, pets_model, monkeypatch, capsys, arguments):
    monkeypatch.chdir(pets.parent)
    command_name, *rest = arguments
    with open("/dev/full", "w") as full:
        assert code_here(monkeypatch, full, command_name, pets_model, *rest) == 1
    said = "Error: the output cannot be written: No space left on device"
    assert capsys.readouterr().err.splitlines()[-1] == said


@pytest.mark.skipif(os.name != "posix", reason="file descriptors of POSIX")
def test_closed_output(tmp_path):
    words = shlex.join(command("show", "m.skops"))
    done = subprocess.run(
        f"{words} >&-", shell=True, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: standard output is closed; ")
    assert done.stderr.count("\n") == 1
