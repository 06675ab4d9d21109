"""Sets from folders and from a patched OpenML; files of two and of more classes."""

from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils import Bunch

from looms.datasets import TableError
from papers.challenge import _data, fetch, load_file
from papers.challenge._data import ChallengeData, ChallengeDataError
from papers.challenge._plans import PaperExperiment
from papers.challenge._run import estimator_of


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """What is asked of OpenML; it answers like a machine without a network."""
    asked = []

    def refuse(**options):
        asked.append(options)
        raise URLError("no route")

    monkeypatch.setattr(_data, "fetch_openml", refuse)
    monkeypatch.delenv("LOOMS_DATA", raising=False)
    return asked


def test_challenge_files(folder, draw, no_network):
    data = fetch("hiva", folder)
    X, y = draw(60)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert (data.name, data.preparation, data.paper_name) == ("hiva", "hiva", "hiva")
    assert no_network == []


def test_a_part_in_the_folder_of_the_environment_in_any_case(folder, monkeypatch):
    monkeypatch.setenv("LOOMS_DATA", str(folder))
    part = fetch("Hiva_VALID")
    assert (part.name, part.preparation, part.paper_name) == ("hiva_valid", "hiva", "hiva")
    assert len(part.y) == 20


def test_table_with_target(tmp_path, draw):
    X, y = draw(30)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(target=y)
    frame.to_csv(tmp_path / "ada.csv.gz", index=False)
    frame.to_csv(tmp_path / "Mine.csv", index=False)
    assert fetch("Mine", tmp_path).name == "Mine"
    data = fetch("ada", tmp_path, preparation="standardize")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.preparation == "standardize"


@pytest.mark.parametrize("name", ["hiva", "hiva_valid"])
def test_a_part_of_the_files(folder, name, no_network):
    (folder / "hiva_train.labels").unlink()
    (folder / "hiva_valid.data").unlink()
    missing = {"hiva": r"not hiva_train\.labels", "hiva_valid": r"not hiva_valid\.data"}
    with pytest.raises(ChallengeDataError, match=missing[name]):
        fetch(name, folder)
    with pytest.raises(ChallengeDataError, match="none"):
        fetch("ada", folder / "none")
    assert no_network == []


@pytest.mark.parametrize(("name", "number"), [("ada", 1043), ("sylva", 1040)])
def test_openml(monkeypatch, draw, name, number):
    X, y = draw(20)

    def answer(data_id, as_frame):
        assert (data_id, as_frame) == (number, False)
        text = y.astype(str).astype(object)
        return Bunch(data=X, target=text, details={"name": f"{name}_agnostic"})

    monkeypatch.setattr(_data, "fetch_openml", answer)
    data = fetch(name)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.preparation == name


def test_no_network(tmp_path, no_network):
    with pytest.raises(ChallengeDataError, match=r"1043: .*no route.*ada_train"):
        fetch("ada", tmp_path)
    assert len(no_network) == 1
    with pytest.raises(ChallengeDataError, match="'nova'"):
        fetch("nova")  # which OpenML does not have
    assert len(no_network) == 1


@pytest.fixture
def digits(tmp_path):
    path = tmp_path / "digits.csv"
    frame = pd.DataFrame({"a": np.arange(12.0), "b": 1.0, "digit": np.arange(12) % 4})
    frame.to_csv(path, index=False)
    return path


def test_chosen_classes_are_positive(digits):
    data = load_file(digits, "digit", positive=["1", "3"])
    np.testing.assert_array_equal(data.y, np.where(np.arange(12) % 2, 1, -1))
    assert (data.name, data.preparation, data.paper_name) == ("digits", "table", None)
    assert list(data.X.columns) == ["a", "b"]
    assert isinstance(load_file(digits, "digit", positive=["1"], preparation="gina").X, np.ndarray)


def test_class_refusals(digits):
    for positive in ([], ["7"], ["0", "1", "2", "3"]):
        with pytest.raises(ChallengeDataError, match=r"4 classes|'7'|all classes"):
            load_file(digits, "digit", positive=positive)


def test_types_are_those_of_the_whole_table(tmp_path):
    """Not of the rows of a split, in which the last cell might be missing."""
    path = tmp_path / "made.csv"
    path.write_text("room;dose;y\n1;0,5;a\n2;NA;b\n1;2,5;a\nx;1;b\n")
    assert load_file(path, "y").of_rows([0, 2]).X.to_dict("list") == {
        "room": ["1", "1"],
        "dose": [0.5, 2.5],
    }
    path.write_text("dose;y\n0,5;a\nNA;b\n2,5;a\n")
    np.testing.assert_array_equal(
        load_file(path, "y", preparation="gina").X.T, [[0.5, np.nan, 2.5]]
    )


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words_X.npz"
    sparse.save_npz(path, sparse.csr_matrix(np.eye(4)))
    (tmp_path / "words_y.csv").write_text("topic\nfar\nnear\nfar\nnear\n")
    return path


def test_sparse_matrix_with_labels_beside(words):
    data = load_file(words, positive=["far"])
    np.testing.assert_array_equal(data.X.toarray(), np.eye(4))
    np.testing.assert_array_equal(data.y, [1, -1, 1, -1])
    assert data.name == "words"
    np.testing.assert_array_equal(load_file(words, "topic").y, [-1, 1, -1, 1])


def test_labels_beside_that_are_missing_or_too_few(words):
    beside = words.with_name("words_y.csv")
    beside.write_text("topic\nfar\n")
    with pytest.raises(TableError, match="1 labels for 4 rows"):
        load_file(words)
    beside.unlink()
    with pytest.raises(ChallengeDataError, match=r"words_y\.csv"):
        load_file(words)


@pytest.mark.slow
def test_real_sets(data_folder):
    ada = fetch("ada", data_folder)
    assert (ada.X.shape, int((ada.y > 0).sum())) == ((4147, 48), 1029)
    part = fetch("sylva_valid", data_folder)
    assert (part.X.shape, part.preparation, part.paper_name) == ((1308, 216), "sylva", "sylva")
    odd = load_file(data_folder / "usps_test.csv.gz", "target", positive=list("13579"))
    assert int((odd.y > 0).sum()) == 914
    assert load_file(data_folder / "oh0_X.npz", positive=["England"]).X.shape == (1003, 3182)


@pytest.mark.parametrize("y", [[0, 1, 1], [-1, 1], [-1, 1, np.nan], ["no", "yes", "no"]], ids=str)
def test_labels_must_be_signs(y):
    with pytest.raises(ChallengeDataError, match="made: y"):
        ChallengeData("made", np.ones((3, 2)), np.array(y), "table")


@pytest.mark.parametrize("kind", ["ada", "sylva"])
def test_sparse_samples_are_not_for_every_preparation(tmp_path, kind):
    X = sparse.csr_array(np.eye(20, 4))
    sparse.save_npz(tmp_path / "s_X.npz", X)
    pd.DataFrame({"label": [0, 1] * 10}).to_csv(tmp_path / "s_y.csv", index=False)
    with pytest.raises(ChallengeDataError, match=f"{kind!r}"):
        load_file(tmp_path / "s_X.npz", preparation=kind)
    for other in ("table", "gina", "hiva", "nova"):
        data = load_file(tmp_path / "s_X.npz", preparation=other)
        prepared = estimator_of(data, PaperExperiment("press", "none", "linear"))[0]
        changed = X if prepared == "passthrough" else prepared.fit_transform(data.X)
        assert sparse.issparse(changed)
