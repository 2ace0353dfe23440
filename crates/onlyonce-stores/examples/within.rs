//! An order and the record that it was placed, in one transaction: both happen, or neither does.
//!
//! The key is claimed first, so two deliveries never run at once. The body then opens a transaction on the same
//! database file, writes its rows, and puts its own completion beside them. There is no moment at which the
//! order is there and the record is not.

use std::sync::Arc;

use onlyonce::{Engine, Key, Lease};
use onlyonce_stores::SqliteStore;
use onlyonce_stores::sqlite::rusqlite::{Connection, TransactionBehavior};

type Failed = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("shop.db");
    let store = Arc::new(SqliteStore::open(&path)?);
    let engine = Engine::new(store.clone());
    let mut shop = Connection::open(&path)?;
    shop.execute_batch("CREATE TABLE orders (id TEXT NOT NULL, cents INTEGER NOT NULL CHECK (cents > 0))")?;

    for (order, cents) in [("4711", 1999), ("4711", 1999), ("4712", -5), ("4712", 500)] {
        let key = Key::new("orders.place", order)?;
        let placed = engine.once(key).run(async |lease| place(&store, &mut shop, &lease, order, cents).await);
        match placed.await {
            Ok(placed) if placed.replayed => println!("{order}: replayed: {}", placed.value),
            Ok(placed) => println!("{order}: placed: {}", placed.value),
            Err(error) => println!("{order}: not placed: {error}"),
        }
    }
    let orders: i64 = shop.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?;
    println!("{orders} orders");
    Ok(())
}

async fn place(
    store: &SqliteStore,
    shop: &mut Connection,
    lease: &Lease,
    order: &str,
    cents: i64,
) -> Result<String, Failed> {
    let receipt = format!("receipt for {order}");
    let completion = lease.completion(&receipt).await?;
    let tx = shop.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute("INSERT INTO orders VALUES (?1, ?2)", (order, cents))?;
    completion.check(store.within(&tx)?.commit(&completion.writes()))?; // else it is rolled back
    tx.commit()?;
    Ok(receipt)
}
