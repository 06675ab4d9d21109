"""The papers' experiments, run again with looms; no part of the package that is installed.

From a clone of the repository ``python -m papers`` runs the experiments of [C06] and [G06], and
``python -m papers.NAME`` makes the tables of the others: ``gauss_jordan``, ``pima`` [S04],
``nonconformity``, ``nonconformity_rules``, ``nonconformity_coverage`` [H10], ``mackerel``,
``tsujitani_tables``, ``svm_search`` and ``coupling`` [T11]. They go to ``benchmarks/results/``, as
all tables do.
"""
