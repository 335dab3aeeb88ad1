"""Folds and scans of the rows of a key, in the order that is an argument."""

from __future__ import annotations

from hydro_core.plan.versions import group_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.lower.aggregates.scans import scanned
from hydro_core.spark.lower.by_key.group import changes_by_key, in_stretches
from hydro_core.spark.lower.by_key.places import in_own_order
from hydro_core.spark.lower.by_key.summaries import summary_of
from hydro_core.spark.lower.items.columns import key_of
from hydro_core.spark.lower.items.keyed import accumulator_type, keyed_value, keys_of
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.changes import rows_or_changes


@lowers("sorted_fold_keyed", "sorted_reduce_keyed")
def folded_in_order(step: Step) -> Relation:
    """The fold of each key, or its reduction."""
    return rows_or_changes(step, lambda: _folds(step), lambda: changes_by_key(step, _folds))


@lowers("sorted_scan_keyed")
def scanned_in_order(step: Step) -> Relation:
    """The accumulator of its key after each item."""
    return rows_or_changes(step, lambda: _scans(step), lambda: changes_by_key(step, _scans))


def _folds(step: Step) -> Relation:
    step, summary = _in_order(step), summary_of(step)
    rows = keys_of(step).grouped(step.input.frame, step.input.times, summary.of_group(step))
    made = rows.select(summary.item(step).alias(ITEM), *step.input.times)
    return step.relation(step.input.kind, made)


def _scans(step: Step) -> Relation:
    step = _in_order(step)
    keys = key_of(F.col(ITEM), step.input.item, step.arg("by"))
    named = [key.alias(f"k{i}") for i, key in enumerate(keys)]
    return scanned(step, named, keyed_value(step), accumulator_type(step)).unordered()


def _in_order(step: Step) -> Step:
    """The step with its rows cut wherever one of their key comes or goes, and in their order."""
    keys = key_of(F.col(ITEM), step.input.item, group_key(step.node))
    rows = in_stretches(step.with_(inputs=(step.input.unordered(),)), keys)
    return step.with_(inputs=(in_own_order(step, rows),))
