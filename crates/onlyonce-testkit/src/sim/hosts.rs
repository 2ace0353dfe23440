//! The hosts of a schedule: processes that run the engine, and are crashed, paused and cut off.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onlyonce::background::Tasks;
use onlyonce::time::BoxFuture;

use super::clock::Wall;
use super::world::{World, lock};

/// One process, from its start to its crash; a restarted one is another host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) alive: bool,
    pub(super) paused_us: Option<u64>,
    /// When it was last started or woken from a pause.
    pub(super) awake_since_us: u64,
    /// Until when it does not reach the server.
    pub(super) cut_until_us: u64,
    /// Until when its heartbeats, and nothing else, do not get through.
    pub(super) deaf_until_us: u64,
    pub(super) wall: Arc<Wall>,
    pub(super) behind_us: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
pub(super) struct Hosts {
    list: Vec<Host>,
}

impl Hosts {
    pub(super) fn start(&mut self, now_us: u64, wall: Wall) -> usize {
        self.list.push(Host {
            alive: true,
            paused_us: None,
            awake_since_us: now_us,
            cut_until_us: 0,
            deaf_until_us: 0,
            wall: Arc::new(wall),
            behind_us: Arc::default(),
        });
        self.list.len() - 1
    }

    pub(super) fn get(&self, host: usize) -> Option<&Host> {
        self.list.get(host)
    }

    pub(super) fn get_mut(&mut self, host: usize) -> Option<&mut Host> {
        self.list.get_mut(host)
    }

    pub(super) fn reconnect(&mut self) {
        for host in &mut self.list {
            (host.cut_until_us, host.deaf_until_us) = (0, 0);
        }
    }

    pub(super) fn is_alive(&self, host: usize) -> bool {
        self.get(host).is_some_and(|host| host.alive)
    }

    pub(super) fn is_paused(&self, host: usize) -> bool {
        self.get(host).is_some_and(|host| host.paused_us.is_some())
    }

    /// Whether it has been able to follow what happens for so long.
    pub(super) fn awake_for(&self, host: usize, now_us: u64, us: u64) -> bool {
        self.get(host).is_some_and(|host| {
            host.alive && host.paused_us.is_none() && now_us.saturating_sub(host.awake_since_us) >= us
        })
    }
}

impl Host {
    pub(super) fn resume(&mut self, now_us: u64, clock_stood_still: bool) {
        if let Some(since) = self.paused_us.take() {
            self.awake_since_us = now_us;
            if clock_stood_still {
                self.behind_us.fetch_add(now_us - since, Ordering::Relaxed);
            }
        }
    }
}

/// Background work of one host: it dies with it.
pub(super) struct HostTasks {
    pub(super) world: Arc<World>,
    pub(super) host: usize,
}

impl fmt::Debug for HostTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTasks").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Tasks for HostTasks {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        // `kill -9` runs no destructors: what they want to start is not started.
        if lock(&self.world.hosts).is_alive(self.host) {
            self.world.spawn(self.host, task);
        }
    }
}
