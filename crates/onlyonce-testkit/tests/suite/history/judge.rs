//! Small histories whose judgement can be seen by eye.

use onlyonce::Key;
use onlyonce::store::{Draft, Entry, Expect, HeaderDraft, Holder, Status, TakeDue, Version, Write};
use onlyonce::time::Timestamp;
use onlyonce_testkit::history::{Action, Answer, Event, Judgement, judge};

const STATUS: Status = Status::new("s");
const BEFORE: Timestamp = Timestamp::from_millis(0);

fn key(id: &str) -> Key {
    Key::new("n", id).expect("a key")
}

fn entry(id: &str, version: u64, body: &'static str) -> Entry {
    Entry {
        key: key(id),
        version: Version::new(version),
        header: HeaderDraft::new(STATUS).at(BEFORE, BEFORE),
        body: body.into(),
        read_at: BEFORE,
    }
}

fn draft(body: &'static str) -> Draft {
    Draft { header: HeaderDraft::new(STATUS), body: body.into() }
}

fn create(id: &str, body: &'static str) -> Write {
    Write::Put { key: key(id), expect: Expect::Absent, draft: draft(body) }
}

fn replace(id: &str, seen: u64, body: &'static str) -> Write {
    Write::Put { key: key(id), expect: Expect::Version(Version::new(seen)), draft: draft(body) }
}

fn delete(id: &str, seen: u64) -> Write {
    Write::Delete { key: key(id), expect: Version::new(seen) }
}

fn event(action: Action, answer: Answer, (called, answered): (u64, u64)) -> Event {
    Event { action, answer, called, answered }
}

fn stored<const N: usize>(writes: [Write; N], versions: [u64; N], times: (u64, u64)) -> Event {
    let answer = Answer::Stored(versions.map(Version::new).to_vec());
    event(Action::Commit(writes.into()), answer, times)
}

fn conflict(write: Write, there: Option<Entry>, times: (u64, u64)) -> Event {
    event(Action::Commit(vec![write]), Answer::Conflict(vec![there]), times)
}

fn lost(write: Write, called: u64) -> Event {
    event(Action::Commit(vec![write]), Answer::Unknown, (called, u64::MAX))
}

fn read(id: &str, found: Option<(u64, &'static str)>, times: (u64, u64)) -> Event {
    event(Action::Read(key(id)), Answer::Read(found.map(|(v, body)| entry(id, v, body))), times)
}

fn good(events: &[Event]) {
    let judgement = judge(events);
    assert!(matches!(judgement, Judgement::Linearizable(_)), "{judgement:?}");
}

fn bad(events: &[Event]) {
    let judgement = judge(events);
    assert!(matches!(judgement, Judgement::Impossible(_)), "{judgement:?}");
}

#[test]
fn one_after_the_other() {
    good(&[]);
    good(&[
        read("a", None, (1, 2)),
        stored([create("a", "1")], [1], (3, 4)),
        read("a", Some((1, "1")), (5, 6)),
        stored([replace("a", 1, "2")], [2], (7, 8)),
        conflict(replace("a", 1, "3"), Some(entry("a", 2, "2")), (9, 10)),
        stored([delete("a", 2)], [2], (11, 12)),
        read("a", None, (13, 14)),
    ]);
}

#[test]
fn a_stale_read_is_refused() {
    let put = stored([create("a", "1")], [1], (1, 2));
    bad(&[put.clone(), read("a", None, (3, 4))]);
    good(&[put.clone(), read("a", None, (1, 4))]);
    // Seen by one reader, and then not by another.
    let put = stored([create("a", "1")], [1], (1, 20));
    bad(&[put.clone(), read("a", Some((1, "1")), (2, 3)), read("a", None, (4, 5))]);
    good(&[put, read("a", None, (2, 3)), read("a", Some((1, "1")), (4, 5))]);
}

#[test]
fn a_lost_update_is_refused() {
    let first = stored([create("a", "0")], [1], (1, 2));
    let (one, two) =
        (stored([replace("a", 1, "1")], [2], (3, 6)), stored([replace("a", 1, "2")], [3], (4, 7)));
    bad(&[first.clone(), one.clone(), two]);
    good(&[first, one, stored([replace("a", 2, "2")], [3], (4, 7))]);
}

#[test]
fn two_creators_who_both_win_are_refused() {
    bad(&[stored([create("a", "1")], [1], (1, 4)), stored([create("a", "2")], [2], (2, 3))]);
}

#[test]
fn a_version_given_twice_is_refused() {
    bad(&[
        stored([create("a", "1")], [1], (1, 2)),
        stored([delete("a", 1)], [1], (3, 4)),
        stored([create("a", "2")], [1], (5, 6)),
    ]);
}

#[test]
fn a_conflict_with_something_that_was_never_there_is_refused() {
    let put = stored([create("a", "1")], [1], (1, 2));
    bad(&[put.clone(), conflict(create("a", "2"), Some(entry("a", 1, "other")), (3, 4))]);
    bad(&[put.clone(), conflict(create("a", "2"), None, (3, 4))]);
    bad(&[put, conflict(replace("a", 1, "2"), Some(entry("a", 1, "1")), (3, 4))]);
}

#[test]
fn half_a_commit_is_refused() {
    let both = stored([create("a", "1"), create("b", "1")], [1, 2], (1, 10));
    bad(&[both.clone(), read("a", Some((1, "1")), (2, 3)), read("b", None, (4, 5))]);
    good(&[both.clone(), read("a", None, (2, 3)), read("b", None, (4, 5))]);
    good(&[both, read("a", None, (2, 3)), read("b", Some((2, "1")), (4, 5))]);
}

#[test]
fn what_is_uncertain_may_have_happened_or_not_or_later() {
    let maybe = lost(create("a", "1"), 1);
    good(&[maybe.clone(), read("a", None, (2, 3))]);
    good(&[maybe.clone(), read("a", Some((7, "1")), (2, 3))]);
    good(&[maybe.clone(), read("a", None, (2, 3)), read("a", Some((7, "1")), (4, 5))]);
    bad(&[maybe.clone(), read("a", Some((7, "1")), (2, 3)), read("a", None, (4, 5))]);
    bad(&[maybe.clone(), read("a", Some((7, "1")), (2, 3)), read("a", Some((8, "1")), (4, 5))]);
    bad(&[maybe.clone(), read("a", Some((7, "another")), (2, 3))]);
    bad(&[read("a", Some((7, "1")), (2, 3)), lost(create("a", "1"), 4)]);
    // Its version is settled by the first who swaps it.
    good(&[maybe.clone(), stored([replace("a", 7, "2")], [8], (2, 3))]);
    bad(&[maybe, stored([replace("a", 7, "2")], [6], (2, 3))]);
}

#[test]
fn an_uncertain_write_cannot_break_what_it_expected() {
    let first = stored([create("a", "1")], [1], (1, 2));
    let maybe = lost(replace("a", 1, "2"), 3);
    let other = stored([replace("a", 1, "3")], [2], (4, 5));
    good(&[first.clone(), maybe.clone(), other.clone(), read("a", Some((2, "3")), (6, 7))]);
    bad(&[first, maybe, other, read("a", Some((3, "2")), (6, 7))]);
}

fn take(holder: &str, taken: Answer, times: (u64, u64)) -> Event {
    let take = TakeDue {
        namespace: "n".to_owned(),
        statuses: vec![STATUS],
        holder: Holder::parse(holder),
        lease: std::time::Duration::ZERO,
        limit: 1,
    };
    event(Action::Take(take), taken, times)
}

fn taken_by(holder: &str, version: u64, attempts: u32) -> Entry {
    let header = HeaderDraft { holder: Some(Holder::parse(holder)), attempts, ..HeaderDraft::new(STATUS) };
    Entry { header: header.at(BEFORE, BEFORE), ..entry("a", version, "1") }
}

#[test]
fn two_takers_of_one_version_are_refused() {
    let put = stored([create("a", "1")], [1], (1, 2));
    let first = take("x#1", Answer::Taken(vec![taken_by("x#1", 2, 1)]), (3, 6));
    let again = |attempts| take("y#1", Answer::Taken(vec![taken_by("y#1", 3, attempts)]), (4, 5));
    bad(&[put.clone(), first.clone(), again(1)]);
    good(&[put, first, again(2)]);
}

#[test]
fn a_take_nobody_heard_of_may_have_taken() {
    let put = stored([create("a", "1")], [1], (1, 2));
    let lost_take = take("x#1", Answer::Unknown, (3, u64::MAX));
    let seen = |entry| event(Action::Read(key("a")), Answer::Read(Some(entry)), (4, 5));
    good(&[put.clone(), lost_take.clone(), seen(entry("a", 1, "1"))]);
    good(&[put.clone(), lost_take.clone(), seen(taken_by("x#1", 2, 1))]);
    bad(&[put, lost_take, seen(taken_by("y#1", 2, 1))]);
}

#[test]
fn a_report_says_where_the_explanation_ends() {
    let events = [stored([create("a", "1")], [1], (1, 2)), read("a", None, (3, 4))];
    let Judgement::Impossible(report) = judge(&events) else { panic!("it is impossible") };
    assert_eq!(report.explained, events[..1]);
    assert_eq!(report.stuck, events[1..]);
    assert!(report.to_string().contains("none of these can be next"), "{report}");
}
