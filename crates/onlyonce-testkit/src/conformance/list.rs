//! The list: every sentence of the contract, and the cases that prove it.

use super::*;

/// Hands the list of cases to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! each_case {
    ([$($then:tt)+] $($with:tt)*) => {
        $($then)+! { $($with)*
            "Versions are given by the store, rise per key, and never repeat: not after a delete, not after an expiry." =>
            always versions: [
                versions_are_never_zero,
                versions_are_those_the_store_answered,
                versions_rise_with_every_put,
                versions_rise_with_every_touch,
                versions_rise_with_every_take,
                versions_never_repeat_after_delete,
                versions_never_repeat_after_expiry,
                versions_never_repeat_after_a_sweep,
                versions_never_repeat_across_keys,
                versions_stay_when_a_commit_conflicts,
            ];
            "Every write names what it expects; when that fails, the answer is a conflict with what is there." =>
            always expectations: [
                a_put_over_nothing_holds_only_where_nothing_is_live,
                a_put_over_a_version_holds_only_over_that_version,
                a_touch_holds_only_over_its_version,
                a_check_for_nothing_holds_only_where_nothing_is_live,
                a_check_for_a_version_holds_only_for_that_version,
                a_delete_holds_only_over_its_version_expired_or_not,
                a_conflict_carries_what_is_there,
            ];
            "A commit is all or nothing; a conflict carries one item per write, in order." =>
            always atomic: [
                a_commit_of_many_writes_stores_them_all,
                one_failed_expectation_anywhere_writes_nothing,
                a_conflict_carries_one_item_per_write_in_order,
                a_check_writes_nothing,
                a_failed_check_stops_the_other_writes,
                one_commit_may_span_namespaces,
                one_body_too_large_stores_none_of_the_writes,
            ];
            "One key at most once per commit, at most `writes_per_commit` writes; a commit of no writes stores nothing." =>
            always atomic: [
                one_key_twice_in_a_commit_is_refused,
                as_many_writes_as_the_store_says_are_taken,
                more_writes_than_the_store_says_are_refused,
                a_commit_of_no_writes_stores_nothing,
            ];
        }
    };
}

macro_rules! list {
    ($($promise:literal => $kind:ident $module:ident: [$($name:ident),+ $(,)?];)+) => {
        &[$($(Case {
            name: stringify!($name),
            promise: $promise,
            durable: is_durable!($kind),
            run: |room| Box::pin($module::$name(room)),
        }),+),+]
    };
}

macro_rules! is_durable {
    (always) => {
        false
    };
    (durable) => {
        true
    };
}

static CASES: &[Case] = each_case!([list]);

/// Every case there is.
pub fn cases() -> &'static [Case] {
    CASES
}
