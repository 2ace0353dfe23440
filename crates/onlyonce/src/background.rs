//! One thread of our own, for heartbeats and timers.
//!
//! A body that blocks its runtime must not stop its own heartbeat, and the blocking door must work with no
//! runtime around. So timers and heartbeats live on a small single-threaded runtime on a thread of ours,
//! started when the first one is needed and shared by all engines of the process.

use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

use tokio::runtime::{Builder, Handle};

use crate::time::BoxFuture;

/// Where the engine's background work runs.
///
/// The simulator brings its own; everything else uses [`Background`].
pub trait Tasks: fmt::Debug + Send + Sync + 'static {
    /// Starts `task` and lets it run to its end.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// The process-wide background thread.
#[derive(Clone, Debug)]
pub struct Background {
    handle: Handle,
}

impl Background {
    /// The background thread, started on first use.
    ///
    /// # Panics
    /// When the operating system refuses a thread or a timer: nothing can be guarded then.
    pub fn get() -> &'static Self {
        static BACKGROUND: OnceLock<Background> = OnceLock::new();
        BACKGROUND.get_or_init(Self::start)
    }

    #[expect(clippy::expect_used, reason = "without a thread and a timer there is nothing to fall back to")]
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a timer from the system");
        let handle = runtime.handle().clone();
        std::thread::Builder::new()
            .name("onlyonce".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))
            .expect("a thread from the system");
        Self { handle }
    }

    pub(crate) fn sleep_until(&self, until: Instant) -> BoxFuture<'static, ()> {
        let _guard = self.handle.enter();
        Box::pin(tokio::time::sleep_until(until.into()))
    }
}

impl Tasks for Background {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.handle.spawn(task);
    }
}
