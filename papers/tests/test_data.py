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


@pytest.mark.parametrize("name", ["HIVA", "Hiva"])
def test_names_in_any_case(folder, no_network, name):
    data = fetch(name, folder)
    assert (data.name, data.preparation, data.paper_name) == ("hiva", "hiva", "hiva")
    np.testing.assert_array_equal(data.X, fetch("hiva", folder).X)
    assert fetch(f"{name}_VALID", folder).name == "hiva_valid"
    assert no_network == []


def test_other_names_keep_their_case(tmp_path, draw):
    X, y = draw(30)
    pd.DataFrame(X).assign(target=y).to_csv(tmp_path / "Mine.csv", index=False)
    assert fetch("Mine", tmp_path).name == "Mine"


def test_folder_of_the_environment(folder, monkeypatch):
    monkeypatch.setenv("LOOMS_DATA", str(folder))
    assert len(fetch("hiva").y) == 60
    (folder / "hiva_valid.data").rename(folder / "hiva_late.data")
    (folder / "hiva_valid.labels").rename(folder / "hiva_late.labels")
    late = fetch("hiva_late")
    assert (len(late.y), late.preparation, late.paper_name) == (20, "hiva", "hiva")


def test_table_with_target(tmp_path, draw):
    X, y = draw(30)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(target=y)
    frame.to_csv(tmp_path / "ada.csv.gz", index=False)
    data = fetch("ada", tmp_path, preparation="standardize")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.preparation == "standardize"


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (["hiva_train.labels"], "hiva_valid.labels but not hiva_train.labels: put the missing"),
        (["hiva_train.data"], "but not hiva_train.data"),
        (["hiva_train.data", "hiva_train.labels"], "not hiva_train.data nor hiva_train.labels"),
    ],
)
def test_a_part_of_the_files(folder, gone, said, no_network):
    for name in gone:
        (folder / name).unlink()
    with pytest.raises(ChallengeDataError, match=said):
        fetch("hiva", folder)
    assert no_network == []


def test_labels_alone(folder):
    (folder / "hiva_valid.data").unlink()
    with pytest.raises(ChallengeDataError, match=r"but not hiva_valid\.data: put"):
        fetch("hiva_valid", folder)


def test_damaged_labels(folder):
    (folder / "hiva_train.labels").write_text("1\n-1\n")
    with pytest.raises(TableError, match="2 labels for 60 rows"):
        fetch("hiva", folder)


def test_no_such_folder(tmp_path):
    with pytest.raises(ChallengeDataError, match="there is no such folder"):
        fetch("ada", tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "number"), [("ada", 1043), ("gina", 1038), ("hiva", 1039), ("sylva", 1040)]
)
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


def test_another_set_of_openml(monkeypatch):
    answer = Bunch(data=None, target=None, details={"name": "iris"})
    monkeypatch.setattr(_data, "fetch_openml", lambda **options: answer)
    with pytest.raises(ChallengeDataError, match="OpenML's set 1043 is 'iris', not ada: put"):
        fetch("ada")


def test_no_network(tmp_path, no_network):
    with pytest.raises(ChallengeDataError, match=r"ada is not in .* 1043: .*no route.*or put ada_"):
        fetch("ada", tmp_path)
    assert len(no_network) == 1
    with pytest.raises(ChallengeDataError, match="network, or put gina_train"):
        fetch("gina")


def test_not_at_openml(no_network):
    with pytest.raises(ChallengeDataError, match="no set 'nova', and OpenML is known to have only"):
        fetch("nova")
    assert no_network == []


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


def test_of_two_classes_the_last_is_positive(tmp_path):
    path = tmp_path / "two.csv"
    pd.DataFrame({"a": range(4), "y": [9, 10, 9, 10]}).to_csv(path, index=False)
    np.testing.assert_array_equal(load_file(path, "y").y, [-1, 1, -1, 1])
    np.testing.assert_array_equal(load_file(path, "y", positive=["9"]).y, [1, -1, 1, -1])


@pytest.mark.parametrize(
    ("positive", "said"),
    [
        ([], "there are 4 classes.*are `positive` among 0, 1, 2, 3"),
        (["7"], "there is no class '7'; the classes are 0, 1, 2, 3"),
        (["0", "1", "2", "3"], "all classes are positive"),
    ],
)
def test_class_refusals(digits, positive, said):
    with pytest.raises(ChallengeDataError, match=said):
        load_file(digits, "digit", positive=positive)


def test_no_target(digits):
    with pytest.raises(ChallengeDataError, match="it has no labels"):
        load_file(digits)


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


def test_text_and_a_preparation_of_numbers(tmp_path):
    path = tmp_path / "words.csv"
    pd.DataFrame({"a": ["x", "z"], "y": [0, 1]}).to_csv(path, index=False)
    with pytest.raises(ChallengeDataError, match="needs columns of numbers"):
        load_file(path, "y", preparation="gina")


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


@pytest.mark.parametrize(
    ("labels", "error", "said"),
    [
        (None, ChallengeDataError, "its labels are missing; put them next to it as words_y.csv"),
        ("topic\nfar\n", TableError, "1 labels for 4 rows"),
        ("a,b\nx,1\nx,2\ny,3\ny,4\n", TableError, "column of labels is not clear among a, b"),
    ],
)
def test_labels_beside_that_do_not_fit(words, labels, error, said):
    beside = words.with_name("words_y.csv")
    beside.unlink() if labels is None else beside.write_text(labels)
    with pytest.raises(error, match=said):
        load_file(words)


def test_another_npz(tmp_path):
    np.savez(tmp_path / "dense.npz", X=np.eye(2))
    with pytest.raises(TableError, match="not a sparse matrix of SciPy"):
        load_file(tmp_path / "dense.npz")


@pytest.mark.slow
def test_real_sets(data_folder):
    ada = fetch("ada", data_folder)
    assert (ada.X.shape, int((ada.y > 0).sum())) == ((4147, 48), 1029)
    part = fetch("sylva_valid", data_folder)
    assert (part.X.shape, part.preparation, part.paper_name) == ((1308, 216), "sylva", "sylva")
    odd = load_file(data_folder / "usps_test.csv.gz", "target", positive=list("13579"))
    assert int((odd.y > 0).sum()) == 914
    assert load_file(data_folder / "oh0_X.npz", positive=["England"]).X.shape == (1003, 3182)


@pytest.mark.parametrize("name", ["standardized", "none"])
def test_unknown_preparations_are_errors_before_any_work(tmp_path, name):
    expected = f"Unknown preparation '{name}'.*; known are"
    with pytest.raises(ValueError, match=expected):
        load_file(tmp_path / "absent.csv", preparation=name)
    with pytest.raises(ValueError, match=expected):
        fetch("ada", tmp_path / "absent", preparation=name)
    with pytest.raises(ValueError, match=expected):
        ChallengeData("made", np.ones((2, 1)), np.array([-1, 1]), name)


@pytest.mark.parametrize(
    "y", [[0, 1, 1], [-1, 1], [[-1], [1], [1]], [-1, 1, np.nan], ["no", "yes", "no"]], ids=str
)
def test_labels_must_be_signs(y):
    with pytest.raises(ChallengeDataError, match=r"made: y must hold one label, -1 or 1"):
        ChallengeData("made", np.ones((3, 2)), np.array(y), "table")


@pytest.mark.parametrize("kind", ["ada", "sylva", "standardize"])
def test_sparse_samples_are_not_for_every_preparation(tmp_path, kind):
    X = sparse.csr_array(np.eye(20, 4))
    sparse.save_npz(tmp_path / "s_X.npz", X)
    pd.DataFrame({"label": [0, 1] * 10}).to_csv(tmp_path / "s_y.csv", index=False)
    with pytest.raises(ChallengeDataError, match=f"{kind!r} is not for sparse .* use 'table'"):
        load_file(tmp_path / "s_X.npz", preparation=kind)
    for other in ("table", "gina", "hiva", "nova"):
        data = load_file(tmp_path / "s_X.npz", preparation=other)
        prepared = estimator_of(data, PaperExperiment("press", "none", "linear"))[0]
        changed = X if prepared == "passthrough" else prepared.fit_transform(data.X)
        assert sparse.issparse(changed)
