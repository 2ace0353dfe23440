//! Every state meets every question; the tables are the specification.

use super::*;
use Arrival as A;
use Crash::{Park, Probe, Retry};
use OnDuplicate::{Raise, Return, Wait};

const LEFT: Duration = Duration::from_secs(7);

fn sight(state: State, lease_left: Duration) -> Sight {
    Sight { state, lease_left, fingerprint: None, attempts: 1, has_effects: false }
}

fn ask(on_duplicate: OnDuplicate, on_crash: Crash) -> Ask {
    Ask { fingerprint: None, on_duplicate, on_crash, max_attempts: None }
}

fn print(number: u8) -> Option<Fingerprint> {
    Some(Fingerprint::of_bytes(&[number]))
}

/// Rows: what is seen. Columns: on_duplicate × on_crash.
#[test]
fn every_arrival() {
    #[rustfmt::skip]
    let table: [(Option<Sight>, Row); 8] = [
        (None, rows([A::Claim; 9])),
        (Some(sight(State::Running, LEFT)), rows([
            A::InProgress(LEFT), A::InProgress(LEFT), A::InProgress(LEFT),
            A::Wait(LEFT), A::Wait(LEFT), A::Wait(LEFT),
            A::Duplicate, A::Duplicate, A::Duplicate,
        ])),
        (Some(sight(State::Running, Duration::ZERO)), rows([
            A::TakeOver, A::Park, A::TakeOverAndProbe,
            A::TakeOver, A::Park, A::TakeOverAndProbe,
            A::TakeOver, A::Park, A::TakeOverAndProbe,
        ])),
        (Some(sight(State::Completed, Duration::ZERO)), rows([
            A::Replay, A::Replay, A::Replay,
            A::Replay, A::Replay, A::Replay,
            A::Duplicate, A::Duplicate, A::Duplicate,
        ])),
        (Some(sight(State::Failed, Duration::ZERO)), rows([
            A::Replay, A::Replay, A::Replay,
            A::Replay, A::Replay, A::Replay,
            A::Duplicate, A::Duplicate, A::Duplicate,
        ])),
        (Some(sight(State::Released, Duration::ZERO)), rows([A::Claim; 9])),
        (Some(sight(State::Parked, Duration::ZERO)), rows([
            A::Parked, A::Parked, A::TakeOverAndProbe,
            A::Parked, A::Parked, A::TakeOverAndProbe,
            A::Parked, A::Parked, A::TakeOverAndProbe,
        ])),
        (Some(sight(State::Forgotten, Duration::ZERO)), rows([A::Claim; 9])),
    ];
    for (seen, answers) in table {
        for (on_duplicate, on_crash, expected) in answers {
            let asked = ask(on_duplicate, on_crash);
            assert_eq!(arrive(seen.as_ref(), &asked), expected, "{seen:?} {asked:?}");
        }
    }
}

type Row = [(OnDuplicate, Crash, Arrival); 9];

fn rows(answers: [Arrival; 9]) -> Row {
    let asks = [Return, Wait, Raise].into_iter().flat_map(|d| [Retry, Park, Probe].map(|c| (d, c)));
    let all: Vec<_> = asks.zip(answers).map(|((d, c), answer)| (d, c, answer)).collect();
    all.try_into().unwrap()
}

/// Another input is a mistake in every state but those that are free and left no trace.
#[test]
fn every_state_meets_another_input() {
    for state in State::ALL {
        for has_effects in [false, true] {
            let seen = Sight { fingerprint: print(1), has_effects, ..sight(state, LEFT) };
            let other = arrive(Some(&seen), &Ask { fingerprint: print(2), ..ask(Return, Retry) });
            let free = state == State::Forgotten || (state == State::Released && !has_effects);
            assert_eq!(other == Arrival::InputChanged, !free, "{state:?} {has_effects}");
            for same in [print(1), None] {
                let answer = arrive(Some(&seen), &Ask { fingerprint: same, ..ask(Return, Retry) });
                assert_ne!(answer, Arrival::InputChanged, "{state:?} {same:?}");
            }
            let untold = Sight { fingerprint: None, ..seen };
            let answer = arrive(Some(&untold), &Ask { fingerprint: print(2), ..ask(Return, Retry) });
            assert_ne!(answer, Arrival::InputChanged, "a record that was told no input contradicts none");
        }
    }
}

#[test]
fn a_key_that_kills_its_workers_is_parked_at_the_limit_and_not_before() {
    let crashed = |attempts| Sight { attempts, ..sight(State::Running, Duration::ZERO) };
    let limited = Ask { max_attempts: Some(3), ..ask(Return, Retry) };
    assert_eq!(arrive(Some(&crashed(2)), &limited), Arrival::TakeOver);
    assert_eq!(arrive(Some(&crashed(3)), &limited), Arrival::Park);
    assert_eq!(arrive(Some(&crashed(u32::MAX)), &ask(Return, Retry)), Arrival::TakeOver);
    let asks = Ask { max_attempts: Some(3), ..ask(Return, Probe) };
    assert_eq!(arrive(Some(&crashed(9)), &asks), Arrival::TakeOverAndProbe, "a probe runs nothing twice");
}

#[test]
fn every_standing() {
    let me = Holder::parse("w#2");
    let others = [Holder::parse("w#1"), Holder::parse("v#2"), Holder::parse("w#22")];
    let mine = [
        (State::Running, Standing::Mine),
        (State::Completed, Standing::Settled),
        (State::Failed, Standing::Settled),
        (State::Released, Standing::Settled),
        (State::Parked, Standing::Settled),
        (State::Forgotten, Standing::Lost),
    ];
    for (state, expected) in mine {
        assert_eq!(standing(&me, Some((state, Some(&me)))), expected, "{state:?}");
        assert_eq!(standing(&me, Some((state, None))), Standing::Lost, "{state:?} of nobody");
        for other in &others {
            assert_eq!(standing(&me, Some((state, Some(other)))), Standing::Lost, "{state:?} of {other}");
        }
    }
    assert_eq!(standing(&me, None), Standing::Lost);
}

#[test]
fn every_settlement() {
    let (keep, keep_failures, own) = (Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(3));
    let table = [
        (End::Value, State::Completed, Some(keep)),
        (End::Failure(OnFailure::Unlock.into()), State::Released, Some(keep_failures)),
        (End::Failure(OnFailure::Lock.into()), State::Failed, Some(keep_failures)),
        (End::Failure(OnFailure::Unlock.keep(own)), State::Released, Some(own)),
        (End::Failure(OnFailure::Lock.keep(own)), State::Failed, Some(own)),
        (End::Unsure, State::Parked, None),
    ];
    for (end, state, kept) in table {
        assert_eq!(settle(end, keep, keep_failures, false), (state, kept), "{end:?}");
        assert_eq!(
            settle(end, keep, keep_failures, true),
            (state, kept),
            "{end:?}, kept longer than a value"
        );
    }
    let short = End::Failure(OnFailure::Unlock.keep(Duration::from_millis(1)));
    assert_eq!(settle(short, keep, keep_failures, true), (State::Released, Some(keep)), "with its effects");
}

#[test]
fn every_verdict() {
    let verdicts = [
        (Found::Happened, State::Completed),
        (Found::DidNot, State::Released),
        (Found::CannotTell, State::Parked),
    ];
    for (found, becomes) in verdicts {
        for state in State::ALL {
            let waits = matches!(state, State::Parked | State::Running);
            assert_eq!(
                resolve(state, Duration::ZERO, found),
                waits.then_some(becomes),
                "{state:?} {found:?}"
            );
        }
        assert_eq!(resolve(State::Running, LEFT, found), None, "a live lease must end first");
    }
}

#[test]
fn every_forgetting() {
    for state in State::ALL {
        for left in [Duration::ZERO, LEFT] {
            let live = state == State::Running && left > Duration::ZERO;
            assert_eq!(may_forget(state, left, false), !live, "{state:?} {left:?}");
            assert!(may_forget(state, left, true), "{state:?} {left:?}");
        }
    }
}

#[test]
fn every_effect_step() {
    use EffectStep as S;
    let table = [
        (Trace::None, [S::Run, S::Run, S::Run]),
        (Trace::Begun, [S::Run, S::Park, S::Probe]),
        (Trace::Undoing, [S::Park, S::Park, S::Probe]),
        (Trace::Done, [S::Replay, S::Replay, S::Replay]),
    ];
    for (trace, steps) in table {
        for (on_crash, expected) in [Retry, Park, Probe].into_iter().zip(steps) {
            assert_eq!(effect_step(trace, on_crash), expected, "{trace:?} {on_crash:?}");
        }
    }
}

#[test]
fn effects_stay_with_unfinished_work() {
    let kept: Vec<_> = State::ALL.into_iter().filter(|state| keeps_effects(*state)).collect();
    assert_eq!(kept, [State::Running, State::Released, State::Parked]);
}

#[test]
fn the_holder_stops_before_the_store_gives_the_key_away() {
    let lease = Duration::from_secs(100);
    assert_eq!(own_deadline(Duration::from_secs(5), lease), Duration::from_secs(100));
    assert_eq!(own_deadline(Duration::MAX, lease), Duration::MAX);
}

#[test]
fn words_and_states_go_both_ways() {
    for state in State::ALL {
        assert_eq!(State::from_status(state.status()), Some(state));
    }
    assert_eq!(State::from_status(Status::new("planned")), None);
}
