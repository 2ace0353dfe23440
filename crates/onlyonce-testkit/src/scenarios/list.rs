//! The list: every scenario, by what it is about.

use super::*;

/// Hands the list of scenarios to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! each_scenario {
    ([$($then:tt)+]) => {
        $($then)+! {
            calls: [
                a_first_call_runs_and_says_so,
                every_worker_replays_what_one_recorded,
                a_first_call_takes_two_trips_and_a_replay_at_most_one,
                one_id_in_two_namespaces_is_two_keys,
                a_body_that_calls_its_own_key_is_told_that_it_runs,
                every_empty_value_replays_as_itself,
                enums_and_options_replay_as_themselves,
                numbers_replay_to_the_last_digit,
                texts_of_every_plane_replay_as_themselves,
                keys_with_any_text_replay_their_own_outcome,
            ];
            duplicates: [
                a_completed_key_is_returned_or_raised,
                a_kept_failure_is_returned_or_raised,
                a_released_key_runs_again_for_everybody,
                a_forgotten_key_runs_again_for_everybody,
                a_parked_key_is_parked_for_everybody,
                an_overdue_key_is_taken_over_by_everybody,
                a_running_key_is_in_progress_or_raised,
                in_progress_says_who_runs_it_and_for_how_long,
                a_wait_ends_at_once_when_the_first_completes,
                a_wait_takes_over_when_the_lease_runs_out,
                a_wait_parks_when_the_lease_runs_out_and_the_policy_says_so,
                a_wait_runs_itself_when_the_first_failed,
                a_wait_is_given_a_failure_that_is_the_outcome,
                a_wait_gives_up_after_its_time_and_not_before,
                a_wait_runs_when_the_key_is_forgotten,
                a_wait_looks_again_when_the_outcome_has_expired_meanwhile,
                a_wait_outlasts_a_store_that_is_down_for_a_while,
                each_caller_of_one_flight_is_answered_by_its_own_policy,
            ];
            flights: [
                many_calls_at_once_run_one_body_in_two_trips,
                many_calls_at_once_replay_in_one_trip,
                many_workers_at_once_run_one_body,
                calls_for_other_keys_never_wait,
                a_call_joins_while_the_first_is_still_asking,
                a_call_that_joined_while_asking_is_told_when_the_body_runs,
                when_the_first_is_dropped_while_asking_the_next_asks,
                when_the_first_is_dropped_in_its_body_the_next_runs,
                a_claim_whose_call_was_dropped_before_the_answer_is_freed,
                after_a_failure_the_others_run_one_by_one,
                a_kept_failure_reaches_all_that_wait_without_a_trip,
                a_call_of_another_input_in_one_flight_is_refused,
                a_lost_lease_no_longer_speaks_for_the_key,
                a_late_body_leaves_a_new_flight_of_its_key_alone,
            ];
            inputs: [
                another_input_is_refused_and_the_same_replays,
                another_input_is_refused_while_it_runs,
                another_input_is_refused_in_every_state_that_means_something,
                a_freed_key_takes_a_corrected_input,
                a_freed_key_with_effects_takes_no_other_input,
                a_takeover_that_tells_no_input_keeps_the_one_that_was_told,
                an_input_without_a_fingerprint_runs_nothing,
                equal_inputs_are_equal_however_they_are_written,
            ];
            results: [
                a_result_over_the_limit_runs_and_is_not_stored,
                a_result_over_the_stores_limit_runs_and_is_not_stored,
                those_who_wait_hear_that_the_result_was_not_stored,
                a_result_without_a_json_form_runs_and_is_not_stored,
                a_result_of_another_type_is_refused_and_stays,
                a_number_that_is_none_is_not_stored_as_something_else,
            ];
            failures: [
                a_failure_is_given_back_and_the_next_call_runs,
                a_kept_failure_is_the_outcome_everywhere,
                a_kept_error_comes_back_as_it_was,
                each_error_decides_for_itself_and_for_how_long,
                failures_are_kept_for_a_time_of_their_own,
                a_panic_is_recorded_and_goes_on,
                a_panic_can_be_the_outcome,
                a_failure_too_large_to_store_frees_the_key_all_the_same,
                a_failure_that_cannot_be_recorded_is_still_given_back,
            ];
            crashes: [
                the_next_call_takes_over_when_the_lease_ran_out,
                a_crash_is_parked_when_the_policy_says_so,
                a_probe_that_knows_the_value_completes_the_key,
                a_probe_that_knows_no_value_completes_the_key_without,
                a_probe_that_says_no_lets_the_body_run,
                a_probe_that_cannot_tell_parks_the_key,
                a_probe_is_not_asked_when_nobody_died,
                one_caller_of_many_asks_the_probe,
                a_slow_probe_keeps_its_lease,
                a_key_that_kills_its_workers_is_parked_in_the_end,
                a_dropped_call_frees_its_lease_at_once,
                a_dropped_call_is_a_crash_to_the_next,
                a_dropped_guard_is_a_crash_to_the_next,
                a_dropped_call_whose_store_is_down_ends_with_its_lease,
                a_worker_that_starts_again_is_not_its_predecessor,
                a_claim_by_hand_is_settled_by_hand,
            ];
            fencing: [
                a_late_completion_is_refused,
                a_late_failure_is_refused,
                a_late_heartbeat_is_refused_and_tells_the_body,
                a_late_effect_does_not_run,
                an_effect_that_ended_too_late_is_not_recorded,
                a_late_completion_in_a_transaction_is_refused,
                a_late_body_is_told_that_its_lease_is_lost,
                a_late_drop_leaves_the_new_lease_alone,
                a_late_worker_whose_key_nobody_took_may_finish,
                fences_rise_whatever_becomes_of_the_key,
                a_store_clock_that_jumps_ahead_gives_the_key_to_one_other,
                a_wall_clock_that_jumps_back_frees_nothing_early,
            ];
            heartbeats: [
                a_body_may_run_far_longer_than_its_lease,
                heartbeats_come_as_often_as_the_policy_says,
                a_heartbeat_changes_the_lease_and_not_the_record,
                a_settled_or_dropped_lease_has_no_heartbeat,
                a_heartbeat_that_fails_is_tried_again,
                a_lost_lease_stops_its_body_before_another_can_run,
                a_body_that_is_told_goes_on_and_is_refused_in_the_end,
                a_lease_lives_no_longer_than_its_ceiling,
                a_heartbeat_that_hangs_does_not_stop_the_others,
                many_leases_are_extended_together,
                a_body_whose_key_was_forgotten_is_stopped_at_the_next_beat,
                an_answer_slower_than_the_lease_is_no_lease,
            ];
            effects: [
                an_effect_is_recorded_before_and_after,
                a_done_effect_is_not_run_again,
                one_effect_named_twice_in_a_body_runs_once,
                a_begun_effect_is_run_again_under_retry,
                a_begun_effect_parks_its_key_under_park,
                a_begun_effect_is_asked_about_under_probe,
                a_slow_probe_of_an_effect_keeps_its_lease,
                a_failed_effect_did_not_happen_and_runs_again,
                effect_keys_are_stable_and_belong_to_key_and_name,
                effects_may_run_side_by_side,
                an_effect_extends_its_lease,
                an_effect_of_another_type_is_refused_and_stays,
                an_effect_whose_value_cannot_be_kept_is_done_all_the_same,
                a_forgotten_or_expired_key_has_no_effects,
            ];
            undoing: [
                a_failed_body_takes_its_effects_back_last_first,
                a_body_that_succeeds_takes_nothing_back,
                an_effect_taken_back_is_done_anew_under_a_new_key,
                each_undo_is_recorded_when_it_begins_and_when_it_ends,
                an_undo_that_fails_parks_the_key,
                a_replayed_effect_can_still_be_taken_back,
                a_panic_takes_the_effects_back_too,
                a_crash_between_undos_is_known_to_the_next,
                an_effect_whose_undo_was_begun_parks_under_park,
                a_late_worker_takes_nothing_back,
            ];
            transactions: [
                a_completion_can_be_part_of_the_callers_commit,
                what_was_committed_is_the_outcome_whatever_the_body_ends_with,
                those_who_wait_are_given_what_was_committed,
                a_body_may_work_on_after_its_commit,
                heartbeats_pause_while_a_completion_is_open,
                a_completion_that_was_not_committed_changes_nothing,
                a_completion_that_cannot_be_stored_says_so_before_the_commit,
                a_completion_of_a_lost_lease_is_not_begun,
            ];
            unsure: [
                a_claim_finds_itself_after_a_lost_reply,
                a_claim_finds_itself_when_reading_back_fails_too,
                a_claim_whose_reply_was_lost_is_not_mistaken_for_anothers,
                a_takeover_finds_itself_after_a_lost_reply,
                a_claim_that_stays_unanswered_runs_nothing,
                a_completion_is_tried_until_it_is_recorded,
                those_who_wait_hear_of_a_completion_whose_reply_was_lost,
                a_failure_is_tried_until_it_is_recorded,
                a_completion_that_stays_unanswered_says_so_when_the_lease_ends,
                a_completion_recorded_in_silence_is_the_outcome,
                an_effect_runs_once_through_lost_replies,
                an_effect_that_cannot_be_announced_does_not_run,
                an_effect_that_cannot_be_recorded_stays_begun,
                a_heartbeat_that_arrived_in_silence_does_not_confuse_the_rest,
            ];
            open_closed: [
                a_call_without_a_store_fails_closed,
                a_call_without_a_store_runs_unguarded_when_told_to,
                an_unguarded_failure_is_given_back,
                a_completion_without_a_store_succeeds_when_told_to,
                a_store_that_answers_is_never_gone_round,
            ];
            verdicts: [
                a_verdict_is_taken_only_where_one_is_awaited,
                a_resolved_value_is_the_outcome_everywhere,
                a_resolved_key_is_not_the_late_workers_any_more,
                any_key_but_a_running_one_can_be_forgotten,
                a_forgotten_key_begins_anew,
                a_key_forgotten_while_it_runs_is_lost_to_its_worker,
                every_decision_leaves_a_line_that_outlives_the_next_run,
                the_audit_trail_keeps_the_latest_lines,
                a_key_that_is_not_there_cannot_be_decided_about,
                two_decisions_at_once_are_made_one_after_the_other,
                records_can_be_listed_page_by_page,
            ];
            keeping: [
                an_outcome_is_there_for_its_time_and_no_longer,
                a_replay_does_not_lengthen_an_outcomes_time,
                a_sweep_forgets_what_is_past_its_time_and_nothing_else,
                a_sweep_forgets_at_most_as_many_as_asked,
                a_sweep_stays_in_its_namespace,
                a_key_that_is_used_again_is_not_swept,
                two_sweeps_at_once_forget_each_key_once,
                a_sweep_that_breaks_off_can_be_done_again,
            ];
            batches: [
                a_batch_is_answered_as_its_calls_one_by_one,
                a_key_that_comes_twice_in_a_batch_runs_once,
                one_call_that_fails_does_not_fail_its_neighbours,
                an_empty_batch_asks_nothing,
                a_batch_goes_out_together,
            ];
            processing: [
                a_payload_that_comes_again_is_given_back_its_result,
                delivery_metadata_is_left_out_of_the_key,
                ten_concurrent_deliveries_run_once,
                a_failure_is_not_kept_and_the_next_delivery_runs,
                a_delivery_waits_for_one_elsewhere,
                keys_can_be_those_of_a_python_predecessor,
                a_payload_no_key_can_be_made_of_runs_nothing,
            ];
            foreign: [
                a_body_that_is_no_record_is_refused_and_stays,
                a_record_that_cannot_be_read_can_be_forgotten,
                an_entry_of_another_door_is_refused_and_stays,
                what_cannot_be_read_does_not_hide_the_rest,
                a_record_of_a_newer_format_is_refused_and_stays,
                records_of_format_1_are_read,
                a_lease_of_format_1_is_honoured_and_taken_over,
                effects_and_lines_of_format_1_go_on,
                records_are_written_as_format_1_writes_them,
            ];
            counting: [
                every_answer_has_its_counter,
                crashes_are_counted_once_and_beside_them_the_takeover,
                lost_leases_are_counted_once,
                panics_and_claims_by_hand_are_counted_too,
            ];
        }
    };
}

macro_rules! list {
    ($($module:ident: [$($name:ident),+ $(,)?];)+) => {
        &[$($(Scenario {
            name: stringify!($name),
            run: |stage| Box::pin($module::$name(stage)),
        }),+),+]
    };
}

static SCENARIOS: &[Scenario] = each_scenario!([list]);

/// Every scenario there is.
pub fn scenarios() -> &'static [Scenario] {
    SCENARIOS
}
