//! Many calls at once, on one thread or on all cores.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::Failed;
use crate::rounds::time;

/// How many threads this machine runs at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A runtime of so many threads.
pub(crate) fn runtime(threads: usize) -> Result<Runtime, Failed> {
    let mut builder = if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    Ok(builder.worker_threads(threads).enable_all().build()?)
}

/// Runs `work(task)` in so many tasks, and says how long it took until all had ended.
pub(crate) fn spread<W>(runtime: &Runtime, tasks: usize, work: W) -> Result<Duration, Failed>
where
    W: AsyncTask,
{
    let work = Arc::new(work);
    let all = async {
        let tasks: Vec<_> = (0..tasks).map(|task| tokio::spawn(work.clone().run(task))).collect();
        for task in tasks {
            task.await??;
        }
        Ok(())
    };
    let (done, took) = time(|| runtime.block_on(all));
    done.map(|()| took)
}

/// What one task of many does.
pub(crate) trait AsyncTask: Send + Sync + 'static {
    /// Does the part of this task.
    fn run(self: Arc<Self>, task: usize) -> impl Future<Output = Result<(), Failed>> + Send;
}
