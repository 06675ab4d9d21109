"""The names of the package, which are imported when they are first used."""

import pytest

import looms


def test_all_names_are_there():
    for name in looms.__all__:
        assert getattr(looms, name) is not None
    assert set(looms.__all__) <= set(dir(looms))
    assert looms.LeaveOneOut.__module__ == "looms.leave_one_out"
    assert looms.LSSVMClassifierCV.__module__.startswith("looms.estimators")


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'looms' has no attribute 'nothing'"):
        looms.nothing  # noqa: B018
    with pytest.raises(ImportError):
        from looms import nothing  # noqa: F401
