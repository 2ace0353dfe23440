//! Our tables: what they are, whether a file has them, and how older ones become today's.

use rusqlite::{Connection, Result, TransactionBehavior};

use super::trouble::Trouble;

/// `once`: marks a database file as ours, for people and for `file(1)`.
pub(super) const APPLICATION_ID: i32 = i32::from_be_bytes(*b"once");

/// What brings a database from each schema to the next; the first makes it from nothing.
///
/// Only ever add to the end: what has been released has been run.
///
/// A table with rowids and an index on the key, not `WITHOUT ROWID`: new rows then lie together at the end, so
/// a group of claims and their completions dirties few pages besides one index leaf per claim. Measured with
/// random ids, 64 writes per commit: 20 µs per claim and completion against 37 µs.
pub(super) const MIGRATIONS: &[&str] = &["
    CREATE TABLE onlyonce_meta (
        name  TEXT PRIMARY KEY,
        value INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO onlyonce_meta (name, value) VALUES ('schema', 0), ('version', 0);

    CREATE TABLE onlyonce_entries (
        namespace     TEXT NOT NULL,
        id            TEXT NOT NULL,
        version       INTEGER NOT NULL,
        status        TEXT NOT NULL,
        holder        TEXT,
        attempts      INTEGER NOT NULL,
        due_at_ms     INTEGER,
        expires_at_ms INTEGER,
        created_at_ms INTEGER NOT NULL,
        updated_at_ms INTEGER NOT NULL,
        body          TEXT NOT NULL,
        UNIQUE (namespace, id)
    ) STRICT;
    CREATE INDEX onlyonce_due ON onlyonce_entries (namespace, status, due_at_ms)
        WHERE due_at_ms IS NOT NULL;
    CREATE INDEX onlyonce_expires ON onlyonce_entries (expires_at_ms)
        WHERE expires_at_ms IS NOT NULL;
"];

/// What a database file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing in it yet.
    Empty,
    /// Ours, at this schema.
    Ours(usize),
    /// Somebody else's.
    Foreign,
    /// Marked as ours, without what ours has.
    Damaged(&'static str),
}

/// Looks at a database without changing it.
pub(super) fn recognise(conn: &Connection) -> Result<Found> {
    let application_id: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let (objects, meta): (i64, i64) = conn.query_row(
        "SELECT count(*), count(*) FILTER (WHERE type = 'table' AND name = 'onlyonce_meta') FROM sqlite_schema",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if meta > 0 {
        return schema_of(conn);
    }
    Ok(match (application_id, objects) {
        (APPLICATION_ID, _) => Found::Damaged("it is marked as ours and has no table onlyonce_meta"),
        (0, 0) => Found::Empty,
        _ => Found::Foreign,
    })
}

fn schema_of(conn: &Connection) -> Result<Found> {
    let mut rows = conn.prepare("SELECT value FROM onlyonce_meta WHERE name = 'schema'")?;
    let schema: Option<i64> = rows.query_map([], |row| row.get(0))?.next().transpose()?;
    Ok(match schema.map(usize::try_from) {
        Some(Ok(schema)) if schema > 0 => Found::Ours(schema),
        _ => Found::Damaged("its table onlyonce_meta has no schema number"),
    })
}

/// Brings the database to the end of `migrations`, in one transaction.
///
/// Many processes may do this at once: all look again once they have the write lock, and the first does the work.
pub(super) fn migrate(
    conn: &mut Connection,
    migrations: &[&str],
    beside_others: bool,
) -> std::result::Result<(), Trouble> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = recognise(&tx)?;
    let from = check(&found, migrations.len(), beside_others)?;
    if from < migrations.len() {
        for migration in &migrations[from..] {
            tx.execute_batch(migration)?;
        }
        let schema = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
        tx.execute("UPDATE onlyonce_meta SET value = ?1 WHERE name = 'schema'", [schema])?;
    }
    if found == Found::Empty {
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    Ok(tx.commit()?)
}

/// The schema to start from, or why this database is not for us.
pub(super) fn check(found: &Found, known: usize, beside_others: bool) -> std::result::Result<usize, Trouble> {
    match found {
        Found::Empty => Ok(0),
        Found::Foreign if beside_others => Ok(0),
        Found::Ours(schema) if *schema <= known => Ok(*schema),
        Found::Ours(schema) => Err(Trouble::misconfigured(format!(
            "the database was written by a newer onlyonce (its schema is {schema}, this one knows {known}) and \
             was left as it is; use that onlyonce, or another file"
        ))),
        Found::Foreign => Err(Trouble::misconfigured(
            "the database has tables that are not onlyonce's and was left as it is; name another file, or \
             allow our tables beside others",
        )),
        Found::Damaged(how) => Err(Trouble::corrupt(format!(
            "the database is damaged ({how}) and was left as it is; restore it from a copy"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[&str] = &[MIGRATIONS[0], "ALTER TABLE onlyonce_entries ADD COLUMN colour TEXT"];

    #[test]
    fn an_older_schema_becomes_todays_and_keeps_its_rows() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, MIGRATIONS, false).unwrap();
        conn.execute("UPDATE onlyonce_meta SET value = 41 WHERE name = 'version'", []).unwrap();
        migrate(&mut conn, TWO, false).unwrap();
        migrate(&mut conn, TWO, false).unwrap();
        assert_eq!(recognise(&conn).unwrap(), Found::Ours(2));
        let version: i64 = conn
            .query_row("SELECT value FROM onlyonce_meta WHERE name = 'version'", [], |r| r.get(0))
            .unwrap();
        assert_eq!(version, 41);
        conn.execute("UPDATE onlyonce_entries SET colour = 'red'", []).unwrap();
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, TWO, false).unwrap();
        let refused = migrate(&mut conn, MIGRATIONS, false).unwrap_err();
        assert!(refused.to_error().to_string().contains("newer onlyonce"), "{refused:?}");
    }

    #[test]
    fn a_migration_that_fails_leaves_nothing() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, &[MIGRATIONS[0], "CREATE TABLE half (a); SELECT nonsense"], false).unwrap_err();
        assert_eq!(recognise(&conn).unwrap(), Found::Empty);
    }

    /// How SQLite says it will find the rows of `sql`.
    fn plan(conn: &Connection, sql: &str) -> String {
        let mut explain = conn.prepare(&["EXPLAIN QUERY PLAN ", sql].concat()).unwrap();
        let steps = explain.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<Result<Vec<_>>>();
        steps.unwrap().join("; ")
    }

    #[test]
    fn no_statement_looks_at_rows_it_does_not_want() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, MIGRATIONS, false).unwrap();
        let key = "sqlite_autoindex_onlyonce_entries_1";
        for (sql, index, columns) in [
            (super::super::due::DUE, "onlyonce_due", "(namespace=? AND status=? AND due_at_ms<?)"),
            (super::super::scan::EXPIRED, "onlyonce_expires", "(expires_at_ms>? AND expires_at_ms<?)"),
            (super::super::scan::ALL, key, "((namespace,id)>(?,?))"),
            (super::super::scan::ONE_NAMESPACE, key, "(namespace=? AND id>?)"),
            (super::super::entries::READ, key, "(namespace=? AND id=?)"),
            (super::super::entries::PUT_OVER, key, "(namespace=? AND id=?)"),
        ] {
            let plan = plan(&conn, sql);
            assert_eq!(plan, format!("SEARCH onlyonce_entries USING INDEX {index} {columns}"), "{sql}");
        }
    }
}
