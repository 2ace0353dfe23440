//! What a seed stands for: hosts, keys, calls, bodies, faults.

use std::sync::OnceLock;
use std::time::Duration;

use onlyonce::{Fingerprint, Key, OnDuplicate, OnFailure, OnLeaseLost, OnStoreDown, Policy};

use super::oracle::CrashPlan;
use crate::chance::SeededChance;

/// The keys of every schedule.
pub(super) fn keys() -> &'static [Key] {
    static KEYS: OnceLock<Vec<Key>> = OnceLock::new();
    KEYS.get_or_init(|| (0..3).filter_map(|id: u8| Key::new("sim", id.to_string()).ok()).collect())
}

pub(super) fn key_index(key: &Key) -> usize {
    usize::from(key.id().as_bytes().first().copied().unwrap_or(b'0') - b'0')
}

/// The effects of every body.
pub(super) const EFFECTS: [&str; 6] = ["e0", "e1", "e2", "e3", "e4", "e5"];

pub(super) fn effect_index(name: &str) -> u8 {
    name.as_bytes().last().copied().unwrap_or(b'0') - b'0'
}

fn fingerprints() -> &'static [Fingerprint; 2] {
    static BOTH: OnceLock<[Fingerprint; 2]> = OnceLock::new();
    BOTH.get_or_init(|| [Fingerprint::of_bytes(b"one"), Fingerprint::of_bytes(b"other")])
}

/// How the network behaves; shares are per mille.
#[derive(Clone, Debug)]
pub(super) struct NetPlan {
    pub(super) delay_us: u64,
    pub(super) slow: u32,
    pub(super) slow_us: u64,
    pub(super) timeout_us: u64,
    pub(super) late_us: u64,
    /// Refused, lost before, lost after, late, twice.
    pub(super) faults: [u32; 5],
    pub(super) notifies: bool,
}

/// One effect of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct EffectPlan {
    pub(super) name: u8,
    pub(super) undoable: bool,
    pub(super) before_us: u64,
    pub(super) after_us: u64,
}

/// One step of a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Sleep {
        us: u64,
    },
    /// An effect the record knows of.
    Effect(EffectPlan),
    /// Two effects at once.
    Both(EffectPlan, EffectPlan),
    /// A change outside that only a probe can find.
    Mark,
    /// The body asks whether it still has its lease.
    Check,
}

/// What a key's body does.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
    pub(super) fails: u32,
    pub(super) panics: u32,
    pub(super) effect_fails: u32,
    pub(super) undo_fails: u32,
    pub(super) probe_knows: u32,
    pub(super) probe_us: u64,
    /// How often the host is stopped or killed just when an effect has begun.
    pub(super) stumbles: u32,
}

/// How a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Run,
    KeepingErrors,
    DecidingErrors,
    ByHand,
    /// The body writes its own completion, as in a transaction of its own.
    OwnTransaction,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct CallPlan {
    pub(super) at_us: u64,
    pub(super) slot: usize,
    pub(super) key: usize,
    pub(super) crash: CrashPlan,
    pub(super) max_attempts: Option<u32>,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) duplicate: OnDuplicate,
    pub(super) failure: OnFailure,
    pub(super) total_us: u64,
    pub(super) wait_us: u64,
    pub(super) open: bool,
    pub(super) style: Style,
    /// When its future is dropped.
    pub(super) cancel_us: Option<u64>,
    pub(super) policy: Policy,
}

/// Something that goes wrong, or that somebody does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Crash { slot: usize, back_us: Option<u64> },
    Restart { slot: usize },
    Pause { slot: usize, us: u64 },
    Cut { slot: usize, us: u64 },
    Deaf { slot: usize, us: u64 },
    ServerPause { us: u64 },
    ServerDown { us: u64 },
    HostClock { slot: usize, ms: i64 },
    ServerClock { ms: i64 },
    Admin { slot: usize, what: Admin },
}

/// What somebody does by hand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Admin {
    Sweep,
    Forget { key: usize, even_running: bool },
    Resolve { key: usize, verdict: u8 },
    Look { key: usize },
}

/// One schedule, before chance has had its say in the rest.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) slots: usize,
    pub(super) scripts: Vec<Script>,
    pub(super) calls: Vec<CallPlan>,
    pub(super) faults: Vec<(u64, Fault)>,
    pub(super) net: NetPlan,
    pub(super) sink_takes_keys: bool,
    pub(super) sink_takes_fences: bool,
    pub(super) server_fast_ppm: i64,
    /// The lease most things are measured by.
    pub(super) lease_us: u64,
}

/// Draws from a range of chances; short names, because there are many draws.
struct Draw<'a>(&'a SeededChance);

impl Draw<'_> {
    fn below(&self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn index(&self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap_or(0)
    }

    fn happens(&self, per_mille: u32) -> bool {
        self.0.happens(per_mille)
    }

    fn one<T: Copy>(&self, of: &[T]) -> T {
        of[self.index(of.len())]
    }
}

impl Scenario {
    pub(super) fn draw(dice: &SeededChance) -> Self {
        let d = Draw(dice);
        let lease_us = d.one(&[10_000, 20_000, 50_000, 100_000, 100_000, 200_000, 1_000_000]);
        let slots = 1 + d.index(4);
        let keys = d.one(&[1, 1, 1, 2, 2, 3]);
        let crashes: Vec<CrashPlan> =
            (0..keys).map(|_| d.one(&[CrashPlan::Retry, CrashPlan::Park, CrashPlan::Probe])).collect();
        let horizon_us = lease_us * (2 + d.below(6));
        let calls = (0..2 + d.index(7)).map(|_| call(&d, lease_us, slots, &crashes, horizon_us)).collect();
        let rough = d.one(&[0, 1, 1, 2]);
        Self {
            slots,
            scripts: (0..keys).map(|_| script(&d, lease_us)).collect(),
            calls,
            faults: faults(&d, lease_us, slots, keys, horizon_us),
            net: net(&d, lease_us, rough),
            sink_takes_keys: d.happens(600),
            sink_takes_fences: d.happens(500),
            server_fast_ppm: d.one(&[0, 0, 200, -200]),
            lease_us,
        }
    }
}

fn net(d: &Draw<'_>, lease_us: u64, rough: u32) -> NetPlan {
    let share =
        |most: u32| if rough == 0 { 0 } else { u32::try_from(d.below(u64::from(most * rough))).unwrap_or(0) };
    NetPlan {
        delay_us: lease_us / d.one(&[400, 100, 30]),
        slow: share(15),
        slow_us: lease_us * 3 / 2,
        timeout_us: lease_us / d.one(&[10, 5, 2, 1]),
        late_us: lease_us * d.one(&[1, 3]),
        faults: [share(40), share(40), share(50), share(50), share(40)],
        notifies: d.happens(400),
    }
}

fn effect(d: &Draw<'_>, lease_us: u64, names: &mut u8) -> EffectPlan {
    let name = *names;
    *names += 1;
    let (before_us, after_us) = (d.below(lease_us / 4), d.below(lease_us / 4));
    EffectPlan { name, undoable: d.happens(600), before_us, after_us }
}

fn script(d: &Draw<'_>, lease_us: u64) -> Script {
    let mut steps = Vec::new();
    let mut names = 0_u8;
    for _ in 0..d.index(4) {
        steps.push(match d.below(10) {
            0..4 => Step::Sleep { us: d.below(lease_us / d.one(&[20, 4, 1])) + d.one(&[0, 0, 0, lease_us]) },
            4..6 => Step::Effect(effect(d, lease_us, &mut names)),
            6 => Step::Both(effect(d, lease_us, &mut names), effect(d, lease_us, &mut names)),
            7..9 => Step::Mark,
            _ => Step::Check,
        });
    }
    Script {
        steps,
        fails: d.one(&[0, 100, 400]),
        panics: d.one(&[0, 0, 50]),
        effect_fails: d.one(&[0, 0, 150]),
        undo_fails: d.one(&[0, 0, 200]),
        probe_knows: d.one(&[1000, 1000, 600]),
        probe_us: d.below(lease_us / d.one(&[50, 5, 1])),
        stumbles: d.one(&[0, 0, 0, 100, 300]),
    }
}

fn call(d: &Draw<'_>, unit_us: u64, slots: usize, crashes: &[CrashPlan], horizon_us: u64) -> CallPlan {
    let key = d.index(crashes.len());
    let crash = if d.happens(850) {
        crashes[key]
    } else {
        d.one(&[CrashPlan::Retry, CrashPlan::Park, CrashPlan::Probe])
    };
    let lease_us = unit_us * d.one(&[1, 1, 1, 2]);
    let max_attempts = d.happens(150).then_some(2);
    let duplicate = d.one(&[OnDuplicate::Return, OnDuplicate::Wait, OnDuplicate::Wait, OnDuplicate::Raise]);
    let failure = d.one(&[OnFailure::Unlock, OnFailure::Lock]);
    let open = d.happens(30);
    let keep_us = unit_us * d.one(&[1, 4, 1000, 1000]);
    let total_us = lease_us * d.one(&[1, 2, 1000, 1000, 1000, 1000]);
    let wait_us = unit_us * d.one(&[1, 4, 20]);
    let us = Duration::from_micros;
    let mut policy = Policy::default()
        .lease(us(lease_us))
        .keep(us(keep_us))
        .keep_failures(us(unit_us * d.one(&[1, 4, 1000])))
        .wait(us(wait_us))
        .max_lease_total(us(total_us))
        .on_duplicate(duplicate)
        .on_failure(failure)
        .on_lease_lost(d.one(&[OnLeaseLost::Cancel, OnLeaseLost::Cancel, OnLeaseLost::Tell]));
    if d.happens(300) {
        policy = policy.heartbeat(us(lease_us / 2));
    }
    if let Some(most) = max_attempts {
        policy = policy.max_attempts(most);
    }
    if open {
        policy = policy.on_store_down(OnStoreDown::Open);
    }
    let [one, other] = *fingerprints();
    let at_us = d.below(horizon_us);
    CallPlan {
        at_us,
        slot: d.index(slots),
        key,
        crash,
        max_attempts,
        fingerprint: d.one(&[None, None, Some(one), Some(one), Some(one), Some(other)]),
        duplicate,
        failure,
        total_us,
        wait_us,
        open,
        style: d.one(&[
            Style::Run,
            Style::Run,
            Style::KeepingErrors,
            Style::DecidingErrors,
            Style::ByHand,
            Style::OwnTransaction,
        ]),
        cancel_us: d.happens(120).then(|| at_us + d.below(unit_us * 2)),
        policy,
    }
}

fn faults(d: &Draw<'_>, lease_us: u64, slots: usize, keys: usize, horizon_us: u64) -> Vec<(u64, Fault)> {
    let many = d.one(&[0, 1, 2, 4, 8]);
    (0..many).map(|_| (d.below(horizon_us), fault(d, lease_us, slots, keys))).collect()
}

fn fault(d: &Draw<'_>, lease_us: u64, slots: usize, keys: usize) -> Fault {
    let slot = d.index(slots);
    let us = d.below(lease_us * d.one(&[1, 3]));
    match d.below(100) {
        0..25 => Fault::Crash { slot, back_us: d.happens(700).then(|| d.below(lease_us)) },
        25..45 => Fault::Pause { slot, us },
        45..52 => Fault::Cut { slot, us },
        52..60 => Fault::Deaf { slot, us },
        60..64 => Fault::ServerPause { us: us / 2 },
        64..68 => Fault::ServerDown { us: us / 2 },
        68..72 => Fault::HostClock { slot, ms: jump_ms(d, lease_us) },
        72..75 => Fault::ServerClock { ms: jump_ms(d, lease_us) },
        _ => Fault::Admin { slot, what: admin(d, keys) },
    }
}

fn jump_ms(d: &Draw<'_>, lease_us: u64) -> i64 {
    let ms = i64::try_from(d.below(lease_us / 500)).unwrap_or(0);
    if d.happens(500) { ms } else { -ms }
}

fn admin(d: &Draw<'_>, keys: usize) -> Admin {
    let key = d.index(keys);
    match d.below(10) {
        0..4 => Admin::Sweep,
        4..6 => Admin::Forget { key, even_running: d.happens(500) },
        6..9 => Admin::Resolve { key, verdict: d.one(&[0, 1, 1, 2]) },
        _ => Admin::Look { key },
    }
}
