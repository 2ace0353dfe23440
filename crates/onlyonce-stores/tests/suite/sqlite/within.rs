//! An effect and its record in one transaction.

use onlyonce::store::{Commit, Expect, Store, StoreErrorKind};
use onlyonce_stores::SqliteStore;
use onlyonce_stores::sqlite::rusqlite::{Connection, TransactionBehavior};
use tempfile::TempDir;

use super::{claim, key, open, place, put, read, store_one, stored};

/// A shop's database, with our tables beside its own.
fn shop() -> (TempDir, SqliteStore, Connection) {
    let (dir, path) = place();
    let store = open(&path);
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("CREATE TABLE orders (id TEXT NOT NULL)").unwrap();
    (dir, store, conn)
}

fn orders(conn: &Connection) -> i64 {
    conn.query_row("SELECT count(*) FROM orders", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn effect_and_record_commit_together() {
    let (_dir, store, mut shop) = shop();
    let fence = store_one(&store, claim("4711")).await;
    let tx = shop.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    tx.execute("INSERT INTO orders VALUES ('4711')", []).unwrap();
    let done = put("4711", Expect::Version(fence), r#"{"done":true}"#);
    let versions = stored(store.within(&tx).unwrap().commit(&[done]).unwrap());
    assert!(versions[0] > fence);
    assert_eq!(read(&store, "4711").await.unwrap().version, fence, "not visible before the commit");
    tx.commit().unwrap();
    let entry = read(&store, "4711").await.unwrap();
    assert_eq!((entry.version, &entry.body[..]), (versions[0], &br#"{"done":true}"#[..]));
    assert_eq!(orders(&shop), 1);
    assert!(store_one(&store, claim("next")).await > versions[0], "one counter for both");
}

#[tokio::test]
async fn effect_and_record_roll_back_together() {
    let (_dir, store, mut shop) = shop();
    let fence = store_one(&store, claim("4711")).await;
    let tx = shop.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    tx.execute("INSERT INTO orders VALUES ('4711')", []).unwrap();
    stored(store.within(&tx).unwrap().commit(&[put("4711", Expect::Version(fence), "1")]).unwrap());
    tx.rollback().unwrap();
    assert_eq!(read(&store, "4711").await.unwrap().version, fence);
    assert_eq!(orders(&shop), 0);
    assert!(store_one(&store, put("4711", Expect::Version(fence), "2")).await > fence);
}

#[tokio::test]
async fn a_late_worker_is_told_and_takes_its_effect_back() {
    let (_dir, store, mut shop) = shop();
    let late = store_one(&store, claim("4711")).await;
    let newer = store_one(&store, put("4711", Expect::Version(late), "2")).await;
    let tx = shop.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    tx.execute("INSERT INTO orders VALUES ('4711')", []).unwrap();
    let mut within = store.within(&tx).unwrap();
    let answer = within.commit(&[put("4711", Expect::Version(late), "1"), claim("b")]).unwrap();
    let Commit::Conflict(there) = answer else { panic!("{answer:?}") };
    assert_eq!(there[0].as_ref().unwrap().version, newer);
    assert_eq!(within.read(&[key("4711"), key("b")]).unwrap()[1], None, "nothing of it was written");
    drop(within);
    tx.rollback().unwrap();
    assert_eq!(orders(&shop), 0);
    assert_eq!(read(&store, "4711").await.unwrap().version, newer);
}

#[tokio::test]
async fn after_a_conflict_the_caller_may_go_on() {
    let (_dir, store, mut shop) = shop();
    store_one(&store, claim("4711")).await;
    let tx = shop.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let mut within = store.within(&tx).unwrap();
    assert!(matches!(within.commit(&[claim("4711")]).unwrap(), Commit::Conflict(_)));
    stored(within.commit(&[claim("4712")]).unwrap());
    assert!(within.read(&[key("4712")]).unwrap()[0].is_some(), "the transaction sees its own writes");
    drop(within);
    tx.commit().unwrap();
    assert!(read(&store, "4712").await.is_some());
}

#[tokio::test]
async fn a_deferred_transaction_gives_no_version_twice() {
    let (_dir, store, mut shop) = shop();
    let tx = shop.transaction().unwrap();
    let mine = stored(store.within(&tx).unwrap().commit(&[claim("a")]).unwrap())[0];
    tx.commit().unwrap();
    assert!(store_one(&store, claim("b")).await > mine);
    // One that read before somebody else wrote cannot write any more, and says so.
    let tx = shop.transaction().unwrap();
    let mut within = store.within(&tx).unwrap();
    within.read(&[key("a")]).unwrap();
    store_one(&store, claim("c")).await;
    let error = within.commit(&[claim("d")]).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn a_transaction_elsewhere_is_refused() {
    let (_dir, store, _shop) = shop();
    let (_other_dir, other) = place();
    for mut elsewhere in [Connection::open(other).unwrap(), Connection::open_in_memory().unwrap()] {
        let tx = elsewhere.transaction().unwrap();
        let error = store.within(&tx).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    }
}

#[tokio::test]
async fn what_the_store_refuses_is_refused_within() {
    let (_dir, store, mut shop) = shop();
    let tx = shop.transaction().unwrap();
    let mut within = store.within(&tx).unwrap();
    let twice = within.commit(&[claim("a"), claim("a")]).unwrap_err();
    assert_eq!(twice.kind(), StoreErrorKind::Misconfigured);
    let large = format!("\"{}\"", "x".repeat(store.facts().max_body));
    let large = within.commit(&[put("a", Expect::Absent, &large)]).unwrap_err();
    assert_eq!(large.kind(), StoreErrorKind::TooLarge);
    assert_eq!(within.commit(&[]).unwrap(), Commit::Stored(Vec::new()));
}
