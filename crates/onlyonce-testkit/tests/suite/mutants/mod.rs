//! The cases are tested too: for each mistake a store can make, the cases named beside it must fail.

mod bug;
mod looking;
mod slot;
mod store;

use std::collections::BTreeSet;
use std::sync::Arc;

use onlyonce::store::{Store, StoreError};
use onlyonce::time::BoxFuture;
use onlyonce_testkit::clock::ManualClock;
use onlyonce_testkit::conformance::{Subject, cases};

pub(crate) use bug::Bug;
pub(crate) use store::BuggyStore;

fn with(bug: Bug) -> Subject {
    let clock = ManualClock::new();
    let store = Arc::new(BuggyStore::new(bug, clock.clone()));
    // What is opened again is what the first one left; nothing here is on a disk.
    let disk = store.clone();
    let open = move || -> BoxFuture<'static, Result<Arc<dyn Store>, StoreError>> {
        let again = disk.open_again();
        Box::pin(async { Ok(Arc::new(again) as _) })
    };
    Subject::new(store, clock, "t").reopened_by(Arc::new(open)).alone()
}

// Without a mistake, the store the mistakes are made in keeps every promise.
onlyonce_testkit::conformance!(durable without_a_bug, with(Bug::None));

/// Fails when one of these cases does not notice the mistake.
fn must_fail(bug: Bug, names: &[&str]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().expect("a runtime");
    for name in names {
        let case = cases().iter().find(|case| case.name == *name);
        let case = case.unwrap_or_else(|| panic!("there is no case named {name}"));
        match runtime.block_on(case.check(&with(bug))) {
            Ok(()) => panic!("{name} does not notice {bug:?}"),
            Err(failure) => println!("{bug:?} is caught by {name}: {failure}"),
        }
    }
}

macro_rules! mutants {
    ($($bug:ident => [$($case:ident),+ $(,)?];)+) => {
        const CAUGHT_BY: &[&[&str]] = &[$(&[$(stringify!($case)),+]),+];

        #[expect(non_snake_case, reason = "each test is named as its bug")]
        mod caught {
            use super::*;
            $(#[test]
            fn $bug() {
                must_fail(Bug::$bug, &[$(stringify!($case)),+]);
            })+
        }
    };
}

mutants! {
    VersionsStartAtZero => [versions_are_never_zero];
    VersionsRestartAfterDelete => [versions_never_repeat_after_delete, versions_never_repeat_after_a_sweep];
    VersionsRestartAfterExpiry => [versions_never_repeat_after_expiry];
    VersionsAreCountedPerKey => [versions_never_repeat_across_keys];
    VersionsAreTheTime => [
        versions_rise_though_the_clock_is_set_back,
        versions_rise_after_a_restart_at_an_earlier_time,
    ];
    PutKeepsVersion => [versions_rise_with_every_put];
    TouchKeepsVersion => [versions_rise_with_every_touch];
    TakeKeepsVersion => [versions_rise_with_every_take, a_taker_and_a_writer_never_both_win];
    ConflictGivesNewVersion => [versions_stay_when_a_commit_conflicts];
    AnswersOldVersion => [versions_are_those_the_store_answered];
    CreateOverwrites => [a_put_over_nothing_holds_only_where_nothing_is_live, one_of_many_creators_wins];
    PutIgnoresVersion => [a_put_over_a_version_holds_only_over_that_version, concurrent_increments_lose_none];
    TouchIgnoresVersion => [a_touch_holds_only_over_its_version, an_abandoned_lease_is_due_again];
    CheckIgnoresVersion => [a_check_for_a_version_holds_only_for_that_version, a_failed_check_stops_the_other_writes];
    CheckIgnoresAbsence => [a_check_for_nothing_holds_only_where_nothing_is_live];
    DeleteIgnoresVersion => [a_delete_holds_only_over_its_version_expired_or_not];
    OldVersionsAreTaken => [one_of_many_writers_over_one_version_wins];
    DeleteOfNothingIsStored => [a_delete_holds_only_over_its_version_expired_or_not];
    DeleteLeavesEntry => [a_delete_holds_only_over_its_version_expired_or_not];
    ConflictIsEmpty => [a_conflict_carries_what_is_there];
    ConflictIsReversed => [a_conflict_carries_one_item_per_write_in_order];
    ConflictIsCutShort => [a_conflict_carries_one_item_per_write_in_order];
    ConflictIsFirstOnly => [one_failed_expectation_anywhere_writes_nothing];
    ConflictShowsDraft => [a_conflict_carries_what_is_there];
    CommitIsPartial => [one_failed_expectation_anywhere_writes_nothing, concurrent_transfers_keep_the_sum];
    CommitSkipsFailedWrites => [one_failed_expectation_anywhere_writes_nothing];
    CommitForgetsLastWrite => [a_commit_of_many_writes_stores_them_all];
    CommitLooksAtFirstOnly => [one_failed_expectation_anywhere_writes_nothing];
    OneKeyTwiceIsTaken => [one_key_twice_in_a_commit_is_refused];
    EmptyCommitConflicts => [a_commit_of_no_writes_stores_nothing];
    CheckWrites => [a_check_writes_nothing];
    CheckAnswersNothing => [a_commit_of_many_writes_stores_them_all];
    ManyWritesAreRefused => [
        as_many_writes_as_the_store_says_are_taken,
        more_writes_than_the_store_says_are_refused,
    ];
    CommitStopsAtNamespace => [one_commit_may_span_namespaces];
    TooLargeStoresTheRest => [one_body_too_large_stores_none_of_the_writes];
    MomentsCountFromCreation => [durations_become_moments_by_the_stores_clock];
    MomentsOfTheCallersClock => [writes_are_stamped_by_the_stores_clock];
    MomentsWrap => [very_long_durations_do_not_wrap];
    NoDurationKeepsMoment => [moments_can_be_taken_away];
    EveryEntryExpires => [no_duration_gives_no_moment, an_entry_without_an_end_stays];
    UpdatedAtIsNotMoved => [updated_at_is_the_last_write_of_any_kind];
    ReadAtIsUpdatedAt => [reads_are_stamped_by_the_stores_clock];
    ReadAtIsFrozenInScans => [reads_are_stamped_by_the_stores_clock];
    DueNowIsNotDue => [what_is_due_in_no_time_is_due_at_once];
    LeaseWraps => [a_very_long_lease_does_not_wrap];
    ExpiryIsNotLookedAt => [
        an_expired_entry_is_not_read,
        what_is_kept_for_no_time_is_gone_at_once,
        no_write_finds_an_expired_entry,
        a_taken_entry_still_expires,
    ];
    ExpiryIsLateByOne => [an_entry_is_gone_from_its_very_moment_on];
    ExpiredIsSeenByWrites => [
        no_write_finds_an_expired_entry,
        a_put_over_a_version_holds_only_over_that_version,
        a_touch_holds_only_over_its_version,
        a_check_for_a_version_holds_only_for_that_version,
    ];
    ExpiredStaysUnderPut => [an_expired_entry_gives_way_to_a_put];
    OldDueStaysUnderPut => [an_expired_entry_gives_way_to_a_put];
    ExpiredIsTaken => [an_expired_entry_is_not_taken];
    ExpiredHidesDue => [expired_entries_do_not_use_up_the_limit_of_a_take];
    TakeExtendsExpiry => [a_taken_entry_still_expires];
    ExpiredIsScanned => [a_plain_scan_passes_over_expired_entries];
    ExpiredScanListsLive => [a_scan_for_expired_entries_lists_nothing_live];
    ExpiredScanListsNothing => [a_scan_for_expired_entries_lists_nothing_live];
    ExpiredScanIgnoresStatus => [a_scan_for_expired_entries_pages_and_filters];
    ExpiredCannotBeDeleted => [an_expired_entry_is_deleted_at_its_version];
    SweepDeletesAnything => [a_sweep_never_deletes_a_new_entry];
    TouchKeepsExpiry => [an_end_moves_with_a_touch_or_a_put];
    CreatedAtIsReset => [created_at_stays_through_puts_touches_and_takes];
    CreatedAtStaysAfterExpiry => [created_at_starts_anew_where_nothing_was];
    HolderIsCut => [a_header_comes_back_as_it_was_put];
    TouchMergesHeader => [nothing_of_the_old_header_stays];
    TouchDropsHolder => [a_header_comes_back_as_it_was_touched];
    StatusIsCut => [a_header_comes_back_as_it_was_put];
    AttemptsWrap => [attempts_do_not_wrap];
    LooksMoveUpdatedAt => [updated_at_stays_when_nothing_is_written];
    BodyIsReserialised => [bodies_come_back_byte_for_byte];
    FalsyBodyIsNull => [bodies_come_back_byte_for_byte];
    TouchReserialisesBody => [a_touch_leaves_the_body_as_it_is];
    TouchDropsBody => [a_touch_leaves_the_body_as_it_is];
    PutMergesBody => [a_put_replaces_the_whole_body];
    BodyIsCutAt64KiB => [a_body_of_100_kib_comes_back];
    LimitIsOffByOne => [a_body_of_the_very_limit_comes_back];
    LimitIsNotLookedAt => [a_body_over_the_limit_is_refused_and_the_old_one_stays];
    KeysFoldCase => [ids_that_look_alike_stay_apart];
    KeysAreTrimmed => [any_id_is_only_an_id, ids_that_look_alike_stay_apart];
    IdsAreCut => [any_id_is_only_an_id];
    PartsAreJoinedByColon => [no_separator_lets_an_id_leave_its_namespace];
    NamespacesFoldCase => [namespaces_that_begin_alike_stay_apart];
    NamespaceIsAPrefix => [namespaces_that_begin_alike_stay_apart, a_scan_looks_only_at_its_namespace];
    NamespacesAreCut => [long_namespaces_work];
    TakeLeavesDue => [a_leased_entry_is_not_taken_again, two_takers_never_get_the_same_entry];
    TakeKeepsAttempts => [a_take_sets_holder_lease_and_attempts];
    TakeKeepsHolder => [a_take_sets_holder_lease_and_attempts];
    TakeIsNotKept => [a_take_sets_holder_lease_and_attempts, two_takers_never_get_the_same_entry];
    TakeChangesStatus => [a_take_sets_holder_lease_and_attempts];
    TakeGivesLatestFirst => [a_take_gives_the_earliest_first];
    TakeLimitsBeforeOrder => [a_limited_take_gives_the_earliest_of_all];
    TakeLimitsBeforeStatus => [other_statuses_do_not_use_up_the_limit_of_a_take];
    TakeIgnoresLimitZero => [a_take_of_none_takes_none];
    TakeIgnoresStatus => [a_take_looks_only_at_the_given_statuses];
    TakeIgnoresNamespace => [a_take_in_one_namespace_leaves_the_others_alone];
    TakeIsLateByOne => [an_entry_is_due_from_its_very_moment_on];
    TakeIsEarly => [what_is_not_due_is_not_taken];
    TakeForgetsAbandoned => [an_abandoned_lease_is_due_again, a_lease_of_no_time_is_due_again_at_once];
    TakeRemembersOldDue => [a_take_follows_every_change_of_what_is_due];
    TakeInSteps => [two_takers_never_get_the_same_entry];
    ScanHasNoBodies => [a_scan_gives_whole_entries];
    ScanStartsAgain => [a_walk_sees_each_entry_exactly_once];
    ScanSkipsByCount => [a_walk_sees_what_stays_once_while_others_come_and_go];
    ScanOrdersByVersion => [a_walk_sees_each_entry_once_while_it_is_written];
    ScanRepeatsTheLast => [a_walk_sees_each_entry_exactly_once];
    ScanStopsEarly => [a_walk_sees_each_entry_exactly_once];
    ScanStopsAtEmptyPage => [a_scan_looks_only_at_the_given_statuses];
    ScanIgnoresNamespace => [a_scan_looks_only_at_its_namespace, a_scan_of_nothing_ends];
    ScanIgnoresStatus => [a_scan_looks_only_at_the_given_statuses];
    ScanOfAllIsEmpty => [a_scan_without_a_namespace_looks_at_all];
    ScanLosesItsPlace => [a_cursor_outlives_the_entry_it_stands_on];
    CursorWorksOnce => [a_cursor_is_text_that_can_be_kept];
    CommitInSteps => [
        one_of_many_creators_wins,
        one_of_many_writers_over_one_version_wins,
        concurrent_increments_lose_none,
        concurrent_transfers_keep_the_sum,
        one_wins_over_two_openings,
        increments_over_two_openings_lose_none,
    ];
    PutInHalves => [a_reader_never_sees_half_a_write];
    ReadSkipsAbsent => [a_read_gives_one_item_per_key_in_order];
    ReadSorts => [a_read_gives_one_item_per_key_in_order];
    ReadTakesAHundred => [a_read_of_many_keys_works];
    ReadOfNothingFails => [a_read_of_no_keys_gives_nothing];
    GlanceSeesExpired => [a_glance_shows_what_a_read_gives];
    GlanceSeesNoAttempts => [a_glance_shows_what_a_read_gives];
    NobodyIsWoken => [a_change_wakes_those_who_wait];
    OneIsWoken => [a_change_wakes_those_who_wait];
    WaitsForTheNextChange => [what_has_changed_already_wakes_at_once, no_change_is_slept_through];
    DroppedWaitsBlock => [a_dropped_wait_harms_nobody];
    CommitCanBeTorn => [a_dropped_commit_happens_as_a_whole_or_not_at_all];
    TakeCanBeTorn => [a_dropped_take_leaves_entries_that_come_back];
    EverythingIsForgotten => [stored_entries_survive_a_restart];
    HeadersAreForgotten => [stored_entries_survive_a_restart];
    VersionsStartAgain => [versions_go_on_rising_after_a_restart];
    DeletesAreForgotten => [what_was_deleted_stays_deleted_after_a_restart];
    DueIsForgotten => [what_is_due_is_taken_after_a_restart];
    TakesAreForgotten => [what_is_due_is_taken_after_a_restart];
    ExpiredIsForgotten => [what_is_expired_stays_expired_after_a_restart];
    SecondOpeningIsACopy => [
        two_openings_see_one_another,
        one_wins_over_two_openings,
        increments_over_two_openings_lose_none,
        two_openings_never_take_the_same_entry,
    ];
    OpeningsWakeTheirOwn => [a_change_through_one_opening_wakes_the_other];
    FactsAreWrong => [the_facts_make_sense];
    FactsChange => [the_facts_stay_the_same];
}

#[test]
fn every_case_catches_a_bug() {
    let caught: BTreeSet<_> = CAUGHT_BY.iter().flat_map(|names| names.iter().copied()).collect();
    let idle: Vec<_> = cases().iter().filter(|c| !caught.contains(c.name)).map(|c| c.name).collect();
    assert_eq!(idle, [""; 0], "cases that no mutant shows to be needed");
}
