//! The one truth of a schedule: the real memory store, behind whatever is wrong with the server.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use onlyonce::store::{
    Commit, Entry, Expect, MemoryStore, Scan, Store, StoreError, StoreErrorKind, Version, Write,
};
use onlyonce::time::{Clock, Timestamp};

use super::clock::ServerClock;
use super::link::{Fate, Reply, Request};
use super::mutants::Mutant;
use super::oracle::Arrived;
use super::scenario::{key_index, keys};
use super::sometimes::Sometimes;
use super::world::{Next, World, lock};

/// The server.
pub(super) struct Server {
    store: MemoryStore,
    clock: ServerClock,
    /// Until when it does nothing; what arrives waits.
    pub(super) paused_until_us: u64,
    /// Until when it is not there; what arrives is refused or lost.
    pub(super) down_until_us: u64,
    /// What a broken store shows as versions: the real one, and the one shown.
    versions: [(u64, u64); 3],
}

impl Server {
    pub(super) fn new(clock: ServerClock) -> Self {
        Self {
            store: MemoryStore::with_clock(Arc::new(clock.clone())),
            clock,
            paused_until_us: 0,
            down_until_us: 0,
            versions: Default::default(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn jump(&self, ms: i64) {
        self.clock.jump(ms);
    }

    /// What is there, as it is.
    pub(super) fn truth(&self, key: usize) -> Option<Entry> {
        let found = self.store.read(std::slice::from_ref(keys().get(key)?)).now_or_never()?.ok()?;
        found.into_iter().next().flatten()
    }

    /// The same, with the version it shows.
    pub(super) fn shown(&self, mutant: Option<Mutant>, key: usize) -> Option<Entry> {
        let mut entry = self.truth(key)?;
        if self.shows_other_versions(mutant) {
            entry.version = self.outward(&entry.key, entry.version);
        }
        Some(entry)
    }

    /// A request reaches the server.
    pub(super) fn apply(&mut self, world: &World, id: u32) {
        let now = world.now_us();
        if self.paused_until_us > now {
            world.agenda().at(self.paused_until_us + world.dice.below(200), Next::Apply(id));
            return;
        }
        let Some((request, fate, host, actor)) =
            lock(&world.net).op(id).and_then(|op| Some((op.request.take()?, op.fate, op.host, op.actor)))
        else {
            return;
        };
        if self.down_until_us > now {
            world.say(|| format!("the server is down: request {id} of w{host} comes to nothing"));
            let gone = if world.dice.happens(500) {
                StoreError::unavailable("the server is down")
            } else {
                StoreError::uncertain("the server went away")
            };
            let fate = if fate == Fate::Twice { Fate::Answered } else { fate };
            return answer(world, id, fate, Err(gone));
        }
        let arrived = Arrived { now_us: now, at: self.clock.now(), host, actor, fate };
        if world.is(Mutant::CheckThenWrite)
            && let Some(request) = self.check_only(&request)
        {
            if let Some(op) = lock(&world.net).op(id) {
                op.request = Some(request);
                op.fate = if fate == Fate::Twice { Fate::Answered } else { fate };
            }
            return world.after(200 + world.dice.below(3000), Next::Finish(id));
        }
        let again = (fate == Fate::Twice).then(|| request.clone());
        self.carry_out(world, id, request, &arrived);
        if again.is_some() {
            self.come_again(world, id, again);
        }
    }

    /// The same request is on its way once more; what is answered then is the answer.
    fn come_again(&self, world: &World, id: u32, again: Option<Request>) {
        world.sometimes(Sometimes::AppliedTwice);
        if let Some(op) = lock(&world.net).op(id) {
            op.request = again;
            op.fate = Fate::Answered;
        }
        world.after(world.delay_us(), Next::Apply(id));
    }

    /// The second step of a store that does not write in the step in which it checks.
    pub(super) fn finish(&mut self, world: &World, id: u32) {
        let Some((mut request, fate, host, actor)) =
            lock(&world.net).op(id).and_then(|op| Some((op.request.take()?, op.fate, op.host, op.actor)))
        else {
            return;
        };
        if let Request::Commit(writes) = &mut request {
            writes.iter_mut().for_each(|write| self.expect_what_is_there(write));
        }
        let arrived = Arrived { now_us: world.now_us(), at: self.clock.now(), host, actor, fate };
        self.carry_out(world, id, request, &arrived);
    }

    fn carry_out(&mut self, world: &World, id: u32, request: Request, arrived: &Arrived) {
        lock(&world.oracle).seen(arrived.at);
        let reply = match request {
            Request::Commit(writes) => self.commit(world, writes, arrived),
            Request::Read(keys) => self.read(world, &keys),
            Request::Scan(scan) => self.scan(world, scan),
            Request::TakeDue(take) => {
                self.store.take_due(take).now_or_never().unwrap_or(Err(stuck())).map(Reply::TakeDue)
            }
        };
        world.say(|| format!("the store answers w{}: {}", arrived.host, describe(&reply, self.clock.now())));
        answer(world, id, arrived.fate, reply);
    }

    fn commit(
        &mut self,
        world: &World,
        mut writes: Vec<Write>,
        arrived: &Arrived,
    ) -> Result<Reply, StoreError> {
        let seen = writes.clone();
        if let Some(mutant) = world.mutant
            && let Some(forged) = self.bend_writes(world, mutant, &mut writes)
        {
            self.observe(world, &seen, &forged, arrived);
            return Ok(Reply::Commit(forged));
        }
        let commit = self.store.commit(writes).now_or_never().unwrap_or(Err(stuck()))?;
        let commit = match world.mutant {
            Some(mutant) => self.bend_commit(mutant, &seen, commit),
            None => commit,
        };
        self.observe(world, &seen, &commit, arrived);
        Ok(Reply::Commit(commit))
    }

    fn observe(&self, world: &World, writes: &[Write], commit: &Commit, arrived: &Arrived) {
        let mut oracle = lock(&world.oracle);
        match commit {
            Commit::Stored(versions) => {
                for (write, version) in writes.iter().zip(versions) {
                    oracle.stored(arrived, write, version.get(), &lock(&world.hosts));
                    world.trace.mark(version.get() << 8 | arrived.host as u64);
                    let now = if matches!(write, Write::Delete { .. }) { 0 } else { version.get() };
                    lock(&world.net).changed(key_index(write.key()), now);
                }
            }
            Commit::Conflict(there) => {
                for (write, there) in writes.iter().zip(there) {
                    oracle.refused(arrived, write, there.as_ref());
                }
            }
        }
    }

    fn read(&mut self, world: &World, keys: &[onlyonce::Key]) -> Result<Reply, StoreError> {
        let mut found = self.store.read(keys).now_or_never().unwrap_or(Err(stuck()))?;
        if let Some(mutant) = world.mutant {
            self.bend_entries(mutant, &mut found);
        }
        Ok(Reply::Read(found))
    }

    fn scan(&mut self, world: &World, scan: Scan) -> Result<Reply, StoreError> {
        let mut page = self.store.scan(scan).now_or_never().unwrap_or(Err(stuck()))?;
        if self.shows_other_versions(world.mutant) {
            page.entries.iter_mut().for_each(|entry| entry.version = self.outward(&entry.key, entry.version));
        }
        Ok(Reply::Scan(page))
    }
}

/// The bugs a store may have.
impl Server {
    /// Changes what is asked; `Some`: nothing is asked at all, and this is said instead.
    fn bend_writes(&mut self, world: &World, mutant: Mutant, writes: &mut [Write]) -> Option<Commit> {
        if self.shows_other_versions(Some(mutant)) {
            writes.iter_mut().for_each(|write| self.inward(write));
        }
        let write = writes.first_mut()?;
        match mutant {
            Mutant::BlindSettle if is_settlement(write) => self.expect_what_is_there(write),
            Mutant::SweepsBlindly if matches!(write, Write::Delete { .. }) => {
                self.expect_what_is_there(write);
            }
            Mutant::LosesWrites if self.would_hold(write) && world.dice.happens(60) => {
                return Some(self.pretend(write));
            }
            Mutant::LosesHeartbeats if matches!(write, Write::Touch { .. }) && self.would_hold(write) => {
                return Some(self.pretend(write));
            }
            Mutant::ExpiresEarly => {
                if let Write::Put { draft, .. } = write {
                    draft.header.keep_for = draft.header.keep_for.map(|keep| keep / 2);
                }
            }
            Mutant::ExpiresLate if matches!(write.expect(), Expect::Absent) => {
                let late = self.expired(write.key());
                let late = late.filter(|entry| entry.header.status.as_str() == "completed");
                return late.map(|entry| Commit::Conflict(vec![Some(entry)]));
            }
            _ => {}
        }
        None
    }

    /// The answer of a store that did nothing.
    fn pretend(&self, write: &Write) -> Commit {
        let there = self.truth(key_index(write.key()));
        Commit::Stored(vec![there.map_or(Version::new(1), |entry| entry.version)])
    }

    fn bend_commit(&mut self, mutant: Mutant, writes: &[Write], mut commit: Commit) -> Commit {
        match &mut commit {
            Commit::Stored(versions) if self.shows_other_versions(Some(mutant)) => {
                for (write, version) in writes.iter().zip(versions) {
                    *version = self.show(mutant, write, *version);
                }
            }
            Commit::Stored(_) => {}
            Commit::Conflict(there) => {
                self.bend_entries(mutant, there);
                if mutant == Mutant::HidesConflicts {
                    there.iter_mut().for_each(|entry| *entry = None);
                }
            }
        }
        commit
    }

    fn bend_entries(&self, mutant: Mutant, entries: &mut [Option<Entry>]) {
        for place in entries {
            let Some(entry) = place else { continue };
            match mutant {
                Mutant::DueEarly => {
                    entry.read_at = entry.read_at.plus(Duration::from_millis(20));
                }
                Mutant::VersionsRepeat | Mutant::ClockVersions => {
                    entry.version = self.outward(&entry.key, entry.version);
                }
                _ => {}
            }
        }
    }

    fn expired(&self, key: &onlyonce::Key) -> Option<Entry> {
        let scan = Scan { expired: true, limit: 10, ..Scan::default() };
        let page = self.store.scan(scan).now_or_never()?.ok()?;
        page.entries.into_iter().find(|entry| entry.key == *key)
    }

    /// `Some`: it holds now, and is to be written later.
    fn check_only(&self, request: &Request) -> Option<Request> {
        match request {
            Request::Commit(writes) if writes.iter().all(|write| self.would_hold(write)) => {
                Some(request.clone())
            }
            _ => None,
        }
    }

    fn would_hold(&self, write: &Write) -> bool {
        let there = self.truth(key_index(write.key()));
        write.holds(there.as_ref().map(|entry| (entry.version, &entry.header)), self.clock.now())
    }

    fn expect_what_is_there(&self, write: &mut Write) {
        let there = self.truth(key_index(write.key())).map(|entry| entry.version);
        match write {
            Write::Put { expect, .. } | Write::Check { expect, .. } => {
                *expect = there.map_or(Expect::Absent, Expect::Version);
            }
            Write::Touch { expect, .. } | Write::Delete { expect, .. } => {
                *expect = there.unwrap_or(*expect);
            }
        }
    }

    fn shows_other_versions(&self, mutant: Option<Mutant>) -> bool {
        matches!(mutant, Some(Mutant::VersionsRepeat | Mutant::ClockVersions))
    }

    fn show(&mut self, mutant: Mutant, write: &Write, real: Version) -> Version {
        let now_ms = self.clock.now().as_millis();
        let (last, shown) = &mut self.versions[key_index(write.key())];
        match (write, mutant) {
            (Write::Delete { .. }, Mutant::VersionsRepeat) => *shown = 0,
            (Write::Delete { .. } | Write::Check { .. }, _) => {}
            (_, Mutant::ClockVersions) => *shown = u64::try_from(now_ms).unwrap_or(1),
            _ => *shown += 1,
        }
        *last = real.get();
        Version::new(*shown)
    }

    fn outward(&self, key: &onlyonce::Key, real: Version) -> Version {
        let (last, shown) = self.versions[key_index(key)];
        if last == real.get() { Version::new(shown) } else { real }
    }

    fn inward(&self, write: &mut Write) {
        let (last, shown) = self.versions[key_index(write.key())];
        let real = |version: &mut Version| {
            *version = Version::new(if version.get() == shown { last } else { u64::MAX });
        };
        match write {
            Write::Put { expect: Expect::Version(version), .. }
            | Write::Check { expect: Expect::Version(version), .. } => real(version),
            Write::Touch { expect, .. } | Write::Delete { expect, .. } => real(expect),
            Write::Put { .. } | Write::Check { .. } => {}
        }
    }
}

/// Whether a write ends a lease.
pub(super) fn is_settlement(write: &Write) -> bool {
    matches!(write, Write::Put { draft, .. }
        if draft.header.holder.is_some() && draft.header.status.as_str() != "running")
}

fn stuck() -> StoreError {
    StoreError::new(StoreErrorKind::Misconfigured, "the memory store did not answer at once")
}

/// Sends an answer on its way back, unless it is one that gets lost.
fn answer(world: &World, id: u32, fate: Fate, reply: Result<Reply, StoreError>) {
    let now = world.now_us();
    let mut net = lock(&world.net);
    let Some(op) = net.op(id) else { return };
    if fate != Fate::Answered {
        return;
    }
    let cut = lock(&world.hosts).get(op.host).is_some_and(|host| host.cut_until_us > now);
    if cut && matches!(reply, Ok(Reply::Commit(_))) {
        op.fate = Fate::LostAfter;
        op.answer = Some(Err(StoreError::uncertain("no answer")));
        drop(net);
        return world.after(world.net_plan.timeout_us, Next::Reply(id));
    }
    op.answer = Some(reply);
    drop(net);
    world.after(world.delay_us(), Next::Reply(id));
}

fn describe(reply: &Result<Reply, StoreError>, now: Timestamp) -> String {
    let entry = |entry: &Option<Entry>| match entry {
        None => "nothing".to_owned(),
        Some(entry) => {
            let holder =
                entry.header.holder.as_ref().map_or_else(|| "nobody".to_owned(), ToString::to_string);
            let due = entry
                .header
                .due_at
                .map_or_else(String::new, |due| format!(", due in {} ms", due.as_millis() - now.as_millis()));
            let body = String::from_utf8_lossy(&entry.body);
            format!("v{} {} by {holder}{due} {body}", entry.version, entry.header.status)
        }
    };
    match reply {
        Ok(Reply::Commit(Commit::Stored(versions))) => format!("stored as {versions:?}"),
        Ok(Reply::Commit(Commit::Conflict(there))) => {
            format!("conflict, there is {}", there.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Ok(Reply::Read(found)) => {
            format!("there is {}", found.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Ok(Reply::Scan(page)) => format!("{} entries", page.entries.len()),
        Ok(Reply::TakeDue(taken)) => format!("{} taken", taken.len()),
        Err(error) => format!("error: {error}"),
    }
}
