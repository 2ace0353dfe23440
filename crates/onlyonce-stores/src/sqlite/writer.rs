//! The one thread that writes: it commits whatever waits, together.
//!
//! ```text
//!   callers ──▶ queue ──▶ BEGIN IMMEDIATE · each job in turn · COMMIT (one fsync) ──▶ all answers
//!                 ▲                                                        │
//!                 └────────── what came in the meantime is the next group ─┘
//! ```
//!
//! A lone call is committed at once, and under load the groups grow by themselves. Each job is checked and
//! applied on its own, so one job's conflict is nobody else's; after a real error the group is rolled back and
//! each job tried alone, which costs nothing when there is none.
//!
//! The log is not synced behind SQLite's back while the next group is being written, although that would be
//! faster: other processes would see, and act on, an outcome that a power cut could still take away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onlyonce::store::{Commit, Entry, StoreError, TakeDue, Write};
use onlyonce::time::Clock;
use rusqlite::{Connection, Error};
use tokio::sync::oneshot;

use super::connect::{Database, Role};
use super::entries::{Entries, Lazy};
use super::log::Log;
use super::queue::Queue;
use super::trouble::{Trouble, commit_did_not_happen, is_busy, leaves_connection_sound};
use super::watch::Watch;

/// The most writes, and bytes, of one group: what bounds how long its first caller waits for its last.
const GROUP_WRITES: usize = 512;
const GROUP_BYTES: usize = 4 * 1024 * 1024;

pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What a caller waits for.
#[derive(Debug)]
pub(super) enum Job {
    Commit(Vec<Write>, Reply<Commit>),
    TakeDue(TakeDue, Reply<Vec<Entry>>),
}

/// What a job comes to, told only once the whole group is committed.
#[derive(Debug)]
enum Answer {
    Commit(Commit),
    Taken(Vec<Entry>),
}

impl Answer {
    fn wrote(&self) -> bool {
        match self {
            Self::Commit(commit) => matches!(commit, Commit::Stored(_)),
            Self::Taken(taken) => !taken.is_empty(),
        }
    }
}

impl Job {
    /// How many writes and bytes it adds to its group.
    fn weight(&self) -> (usize, usize) {
        match self {
            Self::Commit(writes, _) => (writes.len(), writes.iter().map(body_len).sum()),
            Self::TakeDue(take, _) => (take.limit.min(GROUP_WRITES), 0),
        }
    }

    /// Whether nobody waits for it any more; then it need not happen.
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Commit(_, reply) => reply.is_closed(),
            Self::TakeDue(_, reply) => reply.is_closed(),
        }
    }

    fn answer(self, answer: Answer) {
        match (self, answer) {
            (Self::Commit(_, reply), Answer::Commit(commit)) => drop(reply.send(Ok(commit))),
            (Self::TakeDue(_, reply), Answer::Taken(taken)) => drop(reply.send(Ok(taken))),
            (job, _) => job.fail(&Trouble::corrupt("a job was given another's answer")),
        }
    }

    fn fail(self, trouble: &Trouble) {
        match self {
            Self::Commit(_, reply) => drop(reply.send(Err(trouble.to_error()))),
            Self::TakeDue(_, reply) => drop(reply.send(Err(trouble.to_error()))),
        }
    }
}

fn body_len(write: &Write) -> usize {
    match write {
        Write::Put { draft, .. } => draft.body.len(),
        Write::Touch { .. } | Write::Check { .. } | Write::Delete { .. } => 0,
    }
}

/// What the writer thread and the store share.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) queue: Queue<Job>,
    pub(super) watch: Watch,
    /// Transactions that wrote something.
    pub(super) transactions: AtomicU64,
}

pub(super) struct Writer {
    pub(super) database: Arc<Database>,
    pub(super) desk: Arc<Desk>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) log: Log,
}

/// Why a group was not committed.
enum Failed {
    /// Before `COMMIT`: nothing happened.
    Before(Error),
    /// By `COMMIT` itself, with what the answers would have been.
    Committing(Error, Vec<Answer>),
}

/// What a connection is worth after a group.
enum After {
    Sound,
    /// Not to be used again.
    Broken,
    /// Not to be used again, and what it last committed must be settled first.
    Unsettled(Vec<(Job, bool)>, Trouble),
}

impl Writer {
    /// Runs until the queue is closed and empty.
    pub(super) fn run(mut self, conn: Connection) {
        let desk = Arc::clone(&self.desk);
        let _closes = ClosesQueue(&desk);
        let mut conn = Some(conn);
        let mut group = Vec::new();
        while self.next_group(&mut group, 0, Duration::ZERO) {
            let open = match conn.take() {
                Some(conn) => Ok(conn),
                None => self.database.connect(Role::Writer),
            };
            match open.and_then(|mut conn| Ok((self.log.watch(&mut conn)?, conn).1)) {
                Ok(conn) => self.serve(conn, &mut group),
                Err(trouble) => group.drain(..).for_each(|job| job.fail(&trouble)),
            }
        }
    }

    /// Commits group after group on one connection, until it breaks or the queue is closed.
    fn serve(&mut self, conn: Connection, group: &mut Vec<Job>) {
        let mut session = Session::new(&conn);
        loop {
            let (size, start) = (group.len(), self.clock.monotonic());
            match self.commit_group(&mut session, std::mem::take(group)) {
                After::Sound => {}
                After::Broken => return,
                After::Unsettled(jobs, trouble) => {
                    drop(session);
                    drop(conn);
                    return self.settle(jobs, &trouble);
                }
            }
            self.log.after_commit(&conn);
            let took = self.clock.monotonic().saturating_sub(start);
            if !self.next_group(group, size, took) {
                return;
            }
        }
    }

    /// Waits for jobs.
    ///
    /// Those who were just answered are often about to ask again, and a group that leaves without them costs a
    /// whole fsync. So after a group of several, as many are waited for, but for no longer than half of what
    /// the commit took. A lone caller is never made to wait.
    fn next_group(&self, group: &mut Vec<Job>, last: usize, took: Duration) -> bool {
        if last > 1 {
            self.desk.queue.gather(last, took / 2);
        }
        let (mut writes, mut bytes) = (0, 0);
        self.desk.queue.take(group, |job| {
            let fits = writes == 0 || (writes < GROUP_WRITES && bytes < GROUP_BYTES);
            let (more_writes, more_bytes) = job.weight();
            writes += more_writes.max(1);
            bytes += more_bytes;
            fits
        })
    }

    fn commit_group(&mut self, session: &mut Session<'_>, mut jobs: Vec<Job>) -> After {
        jobs.retain(|job| !job.is_abandoned());
        match self.try_group(session, jobs) {
            After::Sound if session.conn.is_autocommit() => After::Sound,
            // A transaction that would not end: only closing the connection ends it.
            After::Sound => After::Broken,
            broken => broken,
        }
    }

    fn try_group(&mut self, session: &mut Session<'_>, jobs: Vec<Job>) -> After {
        match session.attempt(&jobs, &*self.clock) {
            Ok(answers) => {
                self.tell(jobs, answers);
                After::Sound
            }
            Err(Failed::Before(error)) => self.retry_alone(session, jobs, error),
            Err(Failed::Committing(error, _)) if commit_did_not_happen(&error) => {
                let trouble = Trouble::from(error);
                jobs.into_iter().for_each(|job| job.fail(&trouble));
                After::Sound
            }
            Err(Failed::Committing(error, answers)) => {
                let wrote = answers.iter().map(Answer::wrote);
                After::Unsettled(jobs.into_iter().zip(wrote).collect(), Trouble::from(error))
            }
        }
    }

    fn tell(&self, jobs: Vec<Job>, answers: Vec<Answer>) {
        if answers.iter().any(Answer::wrote) {
            self.desk.transactions.fetch_add(1, Ordering::Relaxed);
        }
        if self.desk.watch.is_watched() {
            for (job, answer) in jobs.iter().zip(&answers) {
                match (job, answer) {
                    (Job::Commit(writes, _), Answer::Commit(Commit::Stored(_))) => {
                        writes.iter().for_each(|write| self.desk.watch.changed(write.key()));
                    }
                    (_, Answer::Taken(taken)) => {
                        taken.iter().for_each(|entry| self.desk.watch.changed(&entry.key));
                    }
                    (_, Answer::Commit(_)) => {}
                }
            }
        }
        jobs.into_iter().zip(answers).for_each(|(job, answer)| job.answer(answer));
    }

    /// One job's error must not fail its neighbours: each gets a transaction of its own.
    fn retry_alone(&mut self, session: &mut Session<'_>, jobs: Vec<Job>, error: Error) -> After {
        let sound = leaves_connection_sound(&error);
        if jobs.len() < 2 || is_busy(&error) || !sound {
            let trouble = Trouble::from(error);
            jobs.into_iter().for_each(|job| job.fail(&trouble));
            return if sound { After::Sound } else { After::Broken };
        }
        let mut jobs = jobs.into_iter();
        while let Some(job) = jobs.next() {
            match self.commit_group(session, vec![job]) {
                After::Sound => {}
                broken => {
                    let trouble =
                        Trouble::unavailable("the database failed before it came to this; try again");
                    jobs.for_each(|job| job.fail(&trouble));
                    return broken;
                }
            }
        }
        After::Sound
    }

    /// Finds out what a failed `COMMIT` came to.
    ///
    /// SQLite takes it back, but its pages may lie in the log, complete, and a crash would bring them to life. A
    /// transaction written over them ends that: after it, the failed one certainly did not happen. If that fails
    /// too, nobody knows.
    fn settle(&self, jobs: Vec<(Job, bool)>, trouble: &Trouble) {
        let settled = self.database.connect(Role::Writer).and_then(|conn| {
            Ok(conn.execute_batch(
                "BEGIN IMMEDIATE; UPDATE onlyonce_meta SET value = value + 1 WHERE name = 'version'; COMMIT",
            )?)
        });
        let uncertain = trouble.uncertain();
        for (job, wrote) in jobs {
            job.fail(if wrote && settled.is_err() { &uncertain } else { trouble });
        }
    }
}

/// One connection's statements for as long as it lives.
struct Session<'c> {
    conn: &'c Connection,
    entries: Entries<'c>,
    begin: Lazy<'c>,
    commit: Lazy<'c>,
}

impl<'c> Session<'c> {
    fn new(conn: &'c Connection) -> Self {
        Self {
            conn,
            entries: Entries::new(conn),
            begin: Lazy::new(conn, "BEGIN IMMEDIATE"),
            commit: Lazy::new(conn, "COMMIT"),
        }
    }

    /// All jobs in one transaction, or nothing.
    fn attempt(&mut self, jobs: &[Job], clock: &dyn Clock) -> Result<Vec<Answer>, Failed> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let answers =
            self.apply(jobs, clock).map_err(|error| self.roll_back(error)).map_err(Failed::Before)?;
        match self.commit.get().and_then(|commit| commit.execute([])) {
            Ok(_) => Ok(answers),
            Err(error) => Err(Failed::Committing(self.roll_back(error), answers)),
        }
    }

    fn apply(&mut self, jobs: &[Job], clock: &dyn Clock) -> Result<Vec<Answer>, Error> {
        self.begin.get()?.execute([])?;
        // Under the lock: no commit before this one can have a later moment, unless the clock itself was set back.
        let mut unit = self.entries.begin(clock.now())?;
        let mut answers = Vec::with_capacity(jobs.len());
        for job in jobs {
            answers.push(match job {
                Job::Commit(writes, _) => Answer::Commit(self.entries.commit(writes, &mut unit)?),
                Job::TakeDue(take, _) => Answer::Taken(self.entries.take_due(take, &mut unit)?),
            });
        }
        self.entries.end(&unit)?;
        Ok(answers)
    }

    fn roll_back(&self, error: Error) -> Error {
        // Some errors have already rolled back; a rollback that fails shows when the connection is next used.
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "SQLite did not roll back");
        }
        error
    }
}

/// Whatever ends the writer, nobody is left waiting for it.
struct ClosesQueue<'a>(&'a Desk);

impl Drop for ClosesQueue<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}
