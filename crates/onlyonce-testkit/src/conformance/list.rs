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
                versions_rise_though_the_clock_is_set_back,
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
            "Durations go in, moments come out: the store's own clock sets `due_at`, `expires_at` and `read_at`." =>
            always moments: [
                durations_become_moments_by_the_stores_clock,
                no_duration_gives_no_moment,
                moments_can_be_taken_away,
                writes_are_stamped_by_the_stores_clock,
                reads_are_stamped_by_the_stores_clock,
                what_is_due_in_no_time_is_due_at_once,
                very_long_durations_do_not_wrap,
                a_very_long_lease_does_not_wrap,
            ];
            "An entry past its `expires_at` is not there; a scan for expired entries lists it, a delete removes it." =>
            always expiry: [
                an_expired_entry_is_not_read,
                an_entry_is_gone_from_its_very_moment_on,
                what_is_kept_for_no_time_is_gone_at_once,
                an_entry_without_an_end_stays,
                no_write_finds_an_expired_entry,
                an_expired_entry_gives_way_to_a_put,
                an_expired_entry_is_not_taken,
                expired_entries_do_not_use_up_the_limit_of_a_take,
                a_taken_entry_still_expires,
                a_plain_scan_passes_over_expired_entries,
                a_scan_for_expired_entries_lists_nothing_live,
                a_scan_for_expired_entries_pages_and_filters,
                an_expired_entry_is_deleted_at_its_version,
                a_sweep_never_deletes_a_new_entry,
                an_end_moves_with_a_touch_or_a_put,
            ];
            "Headers come back as given; `created_at` is the put that found nothing, `updated_at` the last write." =>
            always headers: [
                a_header_comes_back_as_it_was_put,
                a_header_comes_back_as_it_was_touched,
                nothing_of_the_old_header_stays,
                created_at_stays_through_puts_touches_and_takes,
                created_at_starts_anew_where_nothing_was,
                updated_at_is_the_last_write_of_any_kind,
                updated_at_stays_when_nothing_is_written,
                attempts_do_not_wrap,
            ];
            "Bodies come back byte for byte; a touch leaves the body as it is." =>
            always bodies: [
                bodies_come_back_byte_for_byte,
                a_touch_leaves_the_body_as_it_is,
                a_put_replaces_the_whole_body,
                a_body_of_100_kib_comes_back,
                a_body_of_the_very_limit_comes_back,
                a_body_over_the_limit_is_refused_and_the_old_one_stays,
            ];
            "Keys are data: no key can escape its namespace, directory, table or script." =>
            always keys: [
                any_id_is_only_an_id,
                ids_that_look_alike_stay_apart,
                namespaces_that_begin_alike_stay_apart,
                no_separator_lets_an_id_leave_its_namespace,
                long_namespaces_work,
                a_take_in_one_namespace_leaves_the_others_alone,
            ];
            "`take_due` hands each due entry to one taker, earliest first, in one atomic step." =>
            always taking: [
                a_take_sets_holder_lease_and_attempts,
                a_take_gives_the_earliest_first,
                a_limited_take_gives_the_earliest_of_all,
                a_take_of_none_takes_none,
                a_take_looks_only_at_the_given_statuses,
                other_statuses_do_not_use_up_the_limit_of_a_take,
                what_is_not_due_is_not_taken,
                an_entry_is_due_from_its_very_moment_on,
                a_leased_entry_is_not_taken_again,
                an_abandoned_lease_is_due_again,
                a_take_follows_every_change_of_what_is_due,
                a_lease_of_no_time_is_due_again_at_once,
                two_takers_never_get_the_same_entry,
                a_taker_and_a_writer_never_both_win,
            ];
            "A walk sees every entry that is there during the whole walk exactly once." =>
            always scanning: [
                a_scan_gives_whole_entries,
                a_scan_of_nothing_ends,
                a_walk_sees_each_entry_exactly_once,
                a_scan_looks_only_at_its_namespace,
                a_scan_without_a_namespace_looks_at_all,
                a_scan_looks_only_at_the_given_statuses,
                a_walk_sees_what_stays_once_while_others_come_and_go,
                a_walk_sees_each_entry_once_while_it_is_written,
                a_cursor_outlives_the_entry_it_stands_on,
                a_cursor_is_text_that_can_be_kept,
            ];
            "Of many who expect the same, one wins; nothing is lost and nothing is torn." =>
            always contention: [
                one_of_many_creators_wins,
                one_of_many_writers_over_one_version_wins,
                concurrent_increments_lose_none,
                concurrent_transfers_keep_the_sum,
                a_reader_never_sees_half_a_write,
            ];
            "A read gives what is there now, one item per key, in order." =>
            always reading: [
                a_read_gives_one_item_per_key_in_order,
                a_read_of_no_keys_gives_nothing,
                a_read_of_many_keys_works,
                a_glance_shows_what_a_read_gives,
            ];
            "`changed` resolves when a key may have changed, at once if it already has." =>
            always waiting: [
                a_change_wakes_those_who_wait,
                what_has_changed_already_wakes_at_once,
                no_change_is_slept_through,
                a_dropped_wait_harms_nobody,
            ];
            "A dropped operation may or may not happen, as a whole; what was there is never torn." =>
            always dropping: [
                a_dropped_commit_happens_as_a_whole_or_not_at_all,
                a_dropped_take_leaves_entries_that_come_back,
            ];
            "The facts say what a store is, promises and allows." =>
            always facts: [
                the_facts_make_sense,
                the_facts_stay_the_same,
            ];
            "A stored commit survives what `durability` says; versions do not repeat after a restart." =>
            durable restarting: [
                stored_entries_survive_a_restart,
                versions_go_on_rising_after_a_restart,
                versions_rise_after_a_restart_at_an_earlier_time,
                what_was_deleted_stays_deleted_after_a_restart,
                what_is_due_is_taken_after_a_restart,
                what_is_expired_stays_expired_after_a_restart,
            ];
            "Whoever opens the same store sees the same entries, and is in the same race for them." =>
            durable sharing: [
                two_openings_see_one_another,
                one_wins_over_two_openings,
                increments_over_two_openings_lose_none,
                two_openings_never_take_the_same_entry,
                a_change_through_one_opening_wakes_the_other,
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
