//! A claim whose answer is not known, and what becomes of it when nobody waits for the answer any more.
//!
//! A call may be dropped, or give up, while its claim is on the way. If the claim is stored all the same, the
//! key would be blocked for a whole lease, and then look like a crash, although nothing ever ran. So it is given
//! back in the background.

use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use super::claim::How;
use super::record::whose;
use super::rules::{self, Standing, State};
use crate::chance::jitter;
use crate::key::Key;
use crate::store::{HeaderDraft, Holder, StoreErrorKind, Write};

/// How often a claim is looked for before it is left to run out.
const TRIES: u32 = 5;

/// A claim on its way to the store.
pub(crate) struct Pending<'a> {
    engine: &'a Arc<Inner>,
    key: &'a Key,
    holder: Holder,
    header: &'a HeaderDraft,
    how: How,
    /// Asked, and not answered.
    open: bool,
    /// An earlier try may be stored.
    uncertain: bool,
}

impl<'a> Pending<'a> {
    pub(crate) fn new(
        engine: &'a Arc<Inner>,
        key: &'a Key,
        holder: &Holder,
        how: How,
        header: &'a HeaderDraft,
    ) -> Self {
        Self { engine, key, holder: holder.clone(), header, how, open: false, uncertain: false }
    }

    pub(crate) fn asked(&mut self) {
        self.open = true;
    }

    /// Says whether an earlier try may be stored.
    pub(crate) fn answered(&mut self) -> bool {
        self.open = false;
        std::mem::take(&mut self.uncertain)
    }

    pub(crate) fn failed(&mut self, kind: StoreErrorKind) {
        self.open = false;
        self.uncertain |= kind == StoreErrorKind::Uncertain;
    }

    /// The header of a claim that is given back: free again, or as unsure as it was found.
    fn given_back(&self) -> HeaderDraft {
        match self.how {
            How::Fresh => HeaderDraft {
                due_in: None,
                keep_for: Some(self.engine.policy.keep_unused()),
                status: State::Released.status(),
                ..self.header.clone()
            },
            How::TakeOver | How::Probe => HeaderDraft { due_in: Some(Duration::ZERO), ..self.header.clone() },
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.open || self.uncertain {
            let give_back =
                give_back(self.engine.clone(), self.key.clone(), self.holder.clone(), self.given_back());
            self.engine.tasks.spawn(Box::pin(give_back));
        }
    }
}

/// Looks for the claim, and gives it back when it is there.
async fn give_back(engine: Arc<Inner>, key: Key, holder: Holder, header: HeaderDraft) {
    for tries in 0..TRIES {
        let found = engine.store.read(std::slice::from_ref(&key)).await.ok();
        let entry = found.and_then(|found| found.into_iter().next().flatten());
        let standing = rules::standing(&holder, whose(entry.as_ref()));
        if let Some(entry) = entry.filter(|_| standing == Standing::Mine) {
            let write = Write::Touch { key: key.clone(), expect: entry.version, header: header.clone() };
            if engine.store.commit(vec![write]).await.is_ok() {
                return;
            }
        }
        // It may still be under way.
        let pause = jitter(&*engine.chance, Duration::from_millis(50) * 4_u32.pow(tries));
        engine.clock.sleep_until(engine.clock.monotonic() + pause).await;
    }
}
