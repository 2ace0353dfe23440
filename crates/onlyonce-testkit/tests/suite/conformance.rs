//! Every case on every store, and on every store around a store.

use std::collections::BTreeSet;

use onlyonce::Key;
use onlyonce::store::{Draft, Expect, HeaderDraft, Scan, Status, Write};
use onlyonce_testkit::conformance;
use onlyonce_testkit::conformance::{Case, Failure, cases};

use crate::subjects;

conformance!(memory, subjects::memory());
conformance!(memory_in_real_time, subjects::memory_in_real_time());
conformance!(shared, subjects::shared());
conformance!(prefixed, subjects::prefixed());
conformance!(observed, subjects::observed());
conformance!(faultless, subjects::faultless());

#[test]
fn every_case_has_a_name_of_its_own_and_a_promise() {
    let names: BTreeSet<_> = cases().iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases().len());
    assert!(cases().iter().all(|case| case.promise.ends_with('.')));
}

/// As `store check` runs it: one store, the whole list, and nothing of it left in the store.
#[test]
fn the_whole_list_leaves_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("a runtime");
    let subject = subjects::memory();
    runtime.block_on(async {
        let own = Key::new("somebody", "else").expect("a key");
        let draft = Draft { header: HeaderDraft::new(Status::new("s")), body: "1".into() };
        let write = Write::Put { key: own.clone(), expect: Expect::Absent, draft };
        subject.store().commit(vec![write]).await.expect("stored");
        for case in cases().iter().filter(|case| case.runs_on(&subject) && case.name != ALONE) {
            case.check(&subject).await.unwrap_or_else(|failure| panic!("{}: {failure}", case.name));
        }
        for expired in [false, true] {
            let scan = Scan { expired, limit: 100, ..Scan::default() };
            let left = subject.store().scan(scan).await.expect("a page").entries;
            let keys: Vec<_> = left.into_iter().map(|e| e.key).collect();
            assert_eq!(keys, if expired { vec![] } else { vec![own.clone()] });
        }
    });
}

/// It looks at everything in the store, and here somebody else has an entry in it.
const ALONE: &str = "a_scan_without_a_namespace_looks_at_all";

#[test]
fn a_case_that_fails_is_a_value_and_tidies_up_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("a runtime");
    let case = Case {
        name: "a_case_that_fails",
        promise: "None.",
        durable: false,
        run: |room| {
            Box::pin(async {
                let key = room.key("left behind")?;
                let draft = Draft { header: HeaderDraft::new(Status::new("s")), body: "1".into() };
                room.store().commit(vec![Write::Put { key, expect: Expect::Absent, draft }]).await?;
                Err(Failure::new("on purpose"))
            })
        },
    };
    let subject = subjects::memory();
    let verdict = runtime.block_on(case.check(&subject));
    assert_eq!(verdict, Err(Failure::new("on purpose")));
    let left = runtime.block_on(subject.store().scan(Scan { limit: 10, ..Scan::default() })).expect("a page");
    assert_eq!(left.entries, []);
}
