"""A fitted model as one value: rows, members, held-out outputs, and the rule of its decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from looms._scores import ValuesAndErrors
from looms._threads import blas_threads, openmp_threads
from looms._typing import AnyArray, Array, Matrix
from looms._words import listed
from looms.blocks import RowBlocks, blocks_of
from looms.fitted._outcome import Outcome
from looms.fitted._rows import Rows
from looms.held_out import HeldOut
from looms.kernels._names import is_estimator
from looms.kernels._samples import as_matrix, training_rows
from looms.lssvm.fit import Fit, KernelMember, Member
from looms.lssvm.left_out import LeftOut, Sum
from looms.selection._candidates import Candidate, Candidates
from looms.selection._decisions import Rule
from looms.selection._nested import Nested
from looms.selection._support_vectors import DEVIANCE
from looms.selection._tuning import Tuning
from looms.tables import TablePreprocessor
from looms.tables._preprocessor import matrix_of
from looms.units import Units


@dataclass(frozen=True, eq=False, repr=False)
class Selected:
    """Record of a selection.

    Attributes
    ----------
    candidates : in the order in which they were tried.
    index : of the candidate with the smallest loss, or the largest weight in a stack.
    tuning : of the candidate at ``index``; None if it is not on record.
    closed : the best candidate in closed form, if no member of the model is.
    """

    candidates: Candidates
    index: int
    tuning: Tuning | None
    closed: Member | None = None

    @property
    def best(self) -> Candidate:
        """The selected candidate."""
        return self.candidates[self.index]

    @property
    def n_iter(self) -> int:
        """Iterations of the last search, at least 1."""
        return 1 if self.tuning is None else max(1, self.tuning.n_iterations)

    @property
    def cv_results(self) -> dict[str, Any]:
        """A row for each candidate, a column for each hyper-parameter."""
        losses = np.array([candidate.loss for candidate in self.candidates])
        params = [candidate.params for candidate in self.candidates]
        kernels = [one.kernel for one in self.candidates if not is_estimator(one.kernel)]
        hyperparameters = [h for kernel in kernels for h in kernel.hyperparameters]
        of_features = {h.name for h in hyperparameters if h.feature is not None}
        names = dict.fromkeys(name for row in params for name in row if name not in of_features)
        columns = {
            f"param_{name}": np.array([row.get(name, np.nan) for row in params]) for name in names
        }
        return {
            "kernel": [candidate.kernel_name for candidate in self.candidates],
            "criterion": [str(candidate.criterion) for candidate in self.candidates],
            **columns,
            "params": params,
            "held_out_loss": losses,
            "rank_held_out_loss": rankdata(losses, method="min").astype(int),
            "seconds": np.array([candidate.seconds for candidate in self.candidates]),
        }


#: Samples as `sklearn.utils.check_array` is to take them.
SAMPLES: dict[str, Any] = {
    "accept_sparse": "csr",
    "accept_large_sparse": False,
    "dtype": np.float64,
}


def sum_of(weights: Sequence[float], members: Sequence[LeftOut]) -> LeftOut:
    """The only member, or the weighted sum of several."""
    return members[0] if len(weights) == 1 else Sum(weights, members)


def output_of(members: Sequence[Member], X: Matrix | RowBlocks, X_fit: Any) -> Array:
    """Output of a model, the sum of its members, for validated samples."""
    return reduce(np.add, (member.outputs(X, X_fit) for member in members))


def are_summed(members: Sequence[Member]) -> bool:
    """True for members of samples of one kind, whose weights sum to one."""
    alike = len({member.pairwise for member in members}) == 1
    return alike and abs(sum(member.weight for member in members) - 1) <= 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """A fitted model.

    Attributes
    ----------
    rows : of the fit, with their outcome. Weights in the fit have mean one.
    members : models whose weighted outputs are summed, or the only one.
    units : rows that the criterion held out together; those of weight zero stay.
    loo_outputs : leave-one-out outputs. A row of weight zero has its ordinary output.
    held_out_outputs : those without each unit, or without the folds that compared the candidates.
    rule : threshold, calibrator and tie: the difference up to which outputs are equal up to
        rounding, relative to the largest target.
    fit_intercept : whether the members have an intercept.
    selection : None if all values were given, or rows have left or joined since.
    candidate_weights : (n_candidates,) weights of their outputs; None if they were not stacked.
    in_folds : predictions of candidates that were tuned without each fold, to compare them.
    blocks_scored_in : units, and outputs without them, that decisions on rows in blocks are scored
        by, if not by ``units``.
    columns : transformer of the columns of a table; None if they are taken as they are.
    table : the rows as they were passed; neither pickled nor saved.
    recipe : unfitted model that repeats the fit without a fold; None after rows left or joined.
    seconds : wall time of the fit.
    tuned_before : true if values were chosen for other rows, so that this cannot be repeated.
    keeps_rule : true if threshold and calibrator are those of before rows left or joined.
    loss : of held-out outputs, by the rule; NaN if the rule was kept.
    """

    rows: Rows
    members: tuple[Member, ...]
    units: Units
    loo_outputs: Array
    held_out_outputs: Array
    rule: Rule
    fit_intercept: bool
    selection: Selected | None = None
    candidate_weights: Array | None = None
    in_folds: Nested | None = None
    blocks_scored_in: tuple[Units, Array] | None = None
    columns: Any = None
    table: Any = None
    recipe: Any = None
    seconds: float = 0.0
    tuned_before: bool = False
    keeps_rule: bool = False
    loss: float = np.nan

    def __post_init__(self) -> None:
        """ValueError if lengths and shapes of the parts do not agree."""
        rows, shape = self.rows, self.rows.targets.shape
        n, m, of_row = len(rows.weight), len(rows.train), shape[1:]
        agree = {
            "samples": rows.X is None or rows.X.shape[0] == n,
            "weights": len(rows.fit_weight) == len(rows.selection_weight) == n,
            "groups": rows.groups is None or len(rows.groups) == n,
            "numbers": rows.numbers is None or rows.numbers.shape == shape,
            "targets": shape[0] == n and self.outcome.codes_targets(rows.targets),
            "rule": self.outcome.makes_rule(self.rule),
            "members": are_summed(self.members),
            "units": len(self.units.clusters) == n,
            "outputs": self.loo_outputs.shape == self.held_out_outputs.shape == shape,
        }
        if self.selection is not None and self.candidate_weights is not None:
            agree["candidates"] = len(self.candidate_weights) == len(self.candidates)
        if self.in_folds is not None:
            agree["folds"] = self.in_folds.held_out.n_samples == m
        if self.blocks_scored_in is not None:
            units, outputs = self.blocks_scored_in
            agree["blocks"] = (len(units.clusters), *outputs.shape) == (m, m, *of_row)
        wrong = [name for name, agrees in agree.items() if not agrees]
        if wrong:
            raise ValueError(f"Parts of a fitted model do not agree: {listed(wrong, quoted=str)}.")

    @classmethod
    def of(
        cls,
        rows: Rows,
        units: Units,
        summed: Sequence[tuple[float, Fit]],
        fit_intercept: bool,
        rule: Rule | None = None,
        **others: Any,
    ) -> Self:
        """The weighted sum of fits to the rows of positive weight.

        The other rows get coefficient zero and, as leave-one-out output, the output of the model,
        which never saw them. Without a ``rule`` it is set by the held-out outputs.
        """
        train, rest, n = rows.train, np.flatnonzero(rows.weight == 0), len(rows.weight)
        members = tuple(fit.member.among(train, n).weighing(w) for w, fit in summed)
        fit_weight = np.zeros(n)
        fit_weight[train] = summed[0][1].loo.sample_weight
        rows = replace(rows, fit_weight=fit_weight)
        loo = np.empty(rows.targets.shape)
        if len(rest):
            some = blocks_of(rows.X).rows(rest)
            loo[rest] = np.sum([member.outputs(some, rows.X) for member in members], axis=0)
        held_out = loo.copy()
        loo[train] = sum(w * fit.loo.outputs for w, fit in summed)
        held_out[train] = sum(w * fit.mean_held_out.outputs for w, fit in summed)
        nested: Nested | None = others.get("in_folds")
        if nested is not None:
            held_out[train] = nested.held_out.outputs
        tie = max(fit.tie for _, fit in summed)
        if rule is None:
            tied = rows.outcome.tied(held_out, tie)
            weight, counting = rows.score_weight, rows.counting(np.arange(n))
            loss = rows.outcome.loss(HeldOut(rows.targets, tied, weight), fit_weight * counting)
            rule, others["loss"] = loss.rule(tie), loss.value
        return cls(
            rows,
            members,
            units.spread(train, rows.groups),
            loo,
            held_out,
            replace(rule, tie=tie),
            fit_intercept,
            **others,
        )

    def __repr__(self) -> str:
        held_out = f"{self.units.n_units} units held out"
        return f"Fitted({len(self.rows.weight)} rows, {len(self.members)} members, {held_out})"

    def __getstate__(self) -> dict[str, Any]:
        """State without what can be made again from it, and without the table of the fit."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return state | {"table": None}

    # What it is ---------------------------------------------------------------------

    @property
    def outcome(self) -> Outcome:
        """What the target is."""
        return self.rows.outcome

    @property
    def tie(self) -> float:
        """Difference up to which outputs are equal up to rounding, relative to the largest."""
        return self.rule.tie

    @property
    def tuned(self) -> bool:
        """True if hyper-parameters, or a transform, were chosen by held-out outputs."""
        return self.selection is not None or self.tuned_before or bool(self.transforms)

    @property
    def transforms(self) -> Mapping[str, float]:
        """Errors by transforms of the target that were compared; none for classes."""
        return self.outcome.errors

    @property
    def candidates(self) -> Candidates:
        """Candidates of the selection; none if all values were given."""
        return Candidates() if self.selection is None else self.selection.candidates

    @property
    def criterion(self) -> Any:
        """Criterion of the selected candidate; of given values "press"."""
        return "press" if self.selection is None else self.selection.best.criterion

    @property
    def criterion_of_outputs(self) -> Any:
        """The same, of outputs: a support vector model is selected by one of probabilities."""
        return "hinge" if self.criterion == DEVIANCE else self.criterion

    @property
    def pairwise(self) -> bool:
        """True if it takes kernel values instead of features."""
        return self.members[0].pairwise

    @property
    def kernel_members(self) -> list[KernelMember]:
        """The members that have a kernel."""
        return [member for member in self.members if isinstance(member, KernelMember)]

    @property
    def leading(self) -> KernelMember | None:
        """The kernel model with the largest weight, if there is one."""
        return max(self.kernel_members, key=lambda member: member.weight, default=None)

    @property
    def choice_units(self) -> Units | None:
        """Folds without which candidates were tuned anew, to be compared; None if by ``units``."""
        if self.in_folds is None:
            return None
        return self.in_folds.units.spread(self.rows.train, self.rows.groups)

    @property
    def cost_of_refit(self) -> int:
        """n q² for the largest order q of a system that refits of n rows solve; n³ without one."""
        shape = n, _ = len(self.rows.train), self.n_features
        orders = [member.order_of_refits(shape) for member in self.members if member.closed]
        return int(n * max(orders, default=n) ** 2)

    # Rows -----------------------------------------------------------------------------

    @property
    def has_rows(self) -> bool:
        """True if the rows are at hand; a saved model of rows in blocks does not hold them."""
        return self.rows.X is not None

    @property
    def X(self) -> Matrix | RowBlocks:
        """Rows of the fit; ValueError if they are not at hand."""
        if self.rows.X is None:
            raise ValueError(
                "This needs the training rows, but a saved model does not hold those that were "
                "in blocks: use the model before it is saved, or fit it to rows in memory; to "
                "certify it, pass them as X."
            )
        return self.rows.X

    @property
    def n_features(self) -> int:
        """Number of features of the kernels."""
        leading: Any = self.leading  # on landmarks, if the rows are not at hand
        return int((self.rows.X if self.has_rows else leading.landmarks).shape[1])

    @cached_property
    def units_of_fit(self) -> Units:
        """Rows of positive weight that are held out together."""
        return self.units.among(self.rows.train)

    @property
    def folds_of_members(self) -> Units | None:
        """The folds of members that have models without these only; None if there are none."""
        of_members = (member.units for member in self.members)
        return next((units for units in of_members if units is not None), None)

    @property
    def units_at_hand(self) -> Units:
        """Units without which all members have models: those of the criterion, unless some member
        has models without folds only; in the place of windows that earlier rows test single rows
        or groups."""
        own = self.units_of_fit
        return self.folds_of_members or (own.draws if own.forward else own)

    @property
    def units_of_intervals(self) -> Units:
        """Single rows or groups; the folds of members that have models without these only."""
        folds = self.folds_of_members
        return self.units_of_fit.draws if folds is None else folds.only(np.unique(folds.own))

    @property
    def scored_in(self) -> tuple[Units, Array] | None:
        """Units, and outputs without them, that decisions are scored by; None if by pairs."""
        if self.in_folds is not None:
            return self.in_folds.units, self.in_folds.held_out.outputs
        if self.folds_of_members is not None:
            return self.folds_of_members, self.rows.own(self.held_out.outputs)
        return self.blocks_scored_in

    @cached_property
    def loo(self) -> HeldOut:
        """Coded targets, leave-one-out outputs, and weights as given."""
        return HeldOut(self.rows.targets, self.loo_outputs, self.rows.weight)

    @cached_property
    def held_out(self) -> HeldOut:
        """Coded targets, held-out outputs, and weights in scores."""
        return HeldOut(self.rows.targets, self.held_out_outputs, self.rows.score_weight)

    # Outputs --------------------------------------------------------------------------

    def outputs(self, X: Matrix | RowBlocks) -> Array:
        """f(x) = Σ_j α_j k(x_j, x) + b for validated samples, or the weighted sum of a stack."""
        return output_of(self.members, X, self.rows.X)

    def outputs_of_table(self, table: Any) -> Array:
        """Outputs of rows as they were passed, whose columns are prepared as those of the fit."""
        return self.outputs(prepared(self.columns, table))

    def predicted(self, outputs: Array) -> Array:
        """Predictions in units of the target, of outputs."""
        return self.outcome.predicted(self.held_out, outputs)

    def prediction_columns(self, outputs: Array) -> dict[str, AnyArray]:
        """Predictions, and the decision values and probabilities of classes, by names of columns,
        of outputs."""
        return self.outcome.prediction_columns(self.predicted(outputs), self.rule)

    def scores_of_new(
        self, values: AnyArray, outputs: Array, weight: Array, groups: AnyArray | None
    ) -> tuple[ValuesAndErrors, dict[str, float]]:
        """Scores of outputs for new rows with these values of the target, and baselines."""
        predicted = self.predicted(outputs)
        return self.outcome.scores_of_new(values, predicted, self.rule, weight, groups)

    @cached_property
    def loo_predicted(self) -> HeldOut:
        """``loo`` in units of the target."""
        return self._rescaled(self.loo)

    @cached_property
    def held_out_predicted(self) -> HeldOut:
        """``held_out`` in units of the target."""
        return self._rescaled(self.held_out)

    def _rescaled(self, held_out: HeldOut) -> HeldOut:
        if self.outcome.plain and self.rows.numbers is None:
            return held_out
        predicted = self.outcome.predicted_of_fit(self.held_out, held_out.outputs)
        return HeldOut(self.rows.y, predicted, held_out.sample_weight)

    def repetitions(self) -> Array:
        """Held-out predictions in each repetition of the units, (n_repetitions, n) or (..., n, t);
        of one if each row is tested once.

        In units of the target, of the rows of positive weight; NaN where a row is not tested.
        """
        train, units = self.rows.train, self.units_of_fit
        of_fit = HeldOut(*(values[train] for values in self.held_out))
        if len(units.passes) == 1:
            outputs = of_fit.outputs[None]
        else:
            with blas_threads(len(train)):
                outputs = self.left_out.outputs(units)
            outputs = outputs.reshape(len(outputs), *of_fit.y.shape)
        return np.array([self.outcome.predicted_of_fit(of_fit, values) for values in outputs])

    @property
    def on_scale(self) -> Fitted:
        """The model of the targets as they were fitted, if a transform of them was."""
        return self if self.outcome.plain and self.rows.numbers is None else self._on_scale

    @cached_property
    def _on_scale(self) -> Fitted:
        rows = replace(self.rows, outcome=self.outcome.on_scale, numbers=None)
        return self.replace_parts(rows=rows)

    def replace_parts(self, **parts: Any) -> Fitted:
        """The model with other parts, of which its systems do not depend."""
        model = replace(self, **parts)
        vars(model)["solved"] = self.solved  # one dict, for what either of them will solve
        if self.has_left_out:
            vars(model)["left_out"] = self.left_out
        return model

    @property
    def has_left_out(self) -> bool:
        """True if the models without any rows were solved."""
        return "left_out" in vars(self)

    @cached_property
    def computed(self) -> dict[str, Any]:
        """What functions of this value have computed of it, and keep, by name."""
        return {}

    # Models without some rows ---------------------------------------------------------

    @cached_property
    def solved(self) -> dict[int, LeftOut]:
        """Models of members without any of the rows, by place, once they are solved."""
        return {}

    def solve(self, k: int) -> LeftOut:
        """Models of one member without any of the rows, solved once."""
        if k not in self.solved:
            self.solved[k] = self.system_of(self.members[k])
        return self.solved[k]

    def system_of(self, member: Member) -> LeftOut:
        """Models of a member without any of the rows of the fit."""
        rows = self.rows
        X = training_rows(self.X, rows.train, member.pairwise)
        data = X, rows.own(rows.targets), rows.own(rows.fit_weight)
        return member.left_out_of_fit(*data, self.fit_intercept)

    @cached_property
    def left_out(self) -> LeftOut:
        """The model, or stack, without any of the rows of positive weight; n³ flops, once."""
        each = [self.solve(k) for k in range(len(self.members))]
        return sum_of([member.weight for member in self.members], each)

    @property
    def closed(self) -> Fitted | None:
        """The members in closed form by themselves, as a model of the same rows; None without any,
        or without the rows.

        It is this model if all are, and of the best candidate in closed form if none has weight.
        Its threshold and calibration are those of its own held-out outputs.
        """
        return self if all(member.closed for member in self.members) else self._closed

    @cached_property
    def _closed(self) -> Fitted | None:
        if not self.has_rows:
            return None
        places = [k for k, member in enumerate(self.members) if member.closed]
        members, solved = [self.members[k] for k in places], [self.solve(k) for k in places]
        if not members and self.selection is not None and self.selection.closed is not None:
            members = [self.selection.closed]
            solved = [self.system_of(members[0])]
        if not members:
            return None
        selection = self.selection
        if selection is not None:
            kernels = [one for one in selection.candidates if not is_estimator(one.kernel)]
            best = int(np.argmin([candidate.loss for candidate in kernels]))
            kept = Candidates(kernels)
            selection = replace(selection, candidates=kept, index=best, tuning=None)
        total = sum(member.weight for member in members)
        weights = [member.weight / total for member in members]
        units, y = self.units_of_fit, self.rows.own(self.rows.targets)
        with blas_threads(len(y)):
            pairs = zip(members, solved, strict=True)
            fits = [member.fit(system, units, y, self.tie) for member, system in pairs]
        model = Fitted.of(
            self.rows,
            units,
            list(zip(weights, fits, strict=True)),
            self.fit_intercept,
            selection=selection,
            recipe=self.recipe,
            tuned_before=self.tuned_before,
        )
        vars(model)["left_out"] = sum_of(weights, solved)
        return model


def prepared(columns: Any, table: Any) -> Any:
    """Rows as they were passed, as the members take them; ``columns`` is None for numbers.

    Rows in blocks stay as they are.
    """
    if isinstance(columns, TablePreprocessor):
        return matrix_of(columns, table)
    if columns is not None:
        with openmp_threads(_num_samples(table)):
            table = columns.transform(table)
    if isinstance(table, RowBlocks):
        return table
    return as_matrix(check_array(table, input_name="X", **SAMPLES))
