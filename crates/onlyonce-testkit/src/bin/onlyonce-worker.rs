//! A real worker process, made to be killed.
//!
//! It is handed the same keys as its siblings, guards each with the engine, and makes its effect in a sink the
//! parent counts. What it did goes to its standard output, a line each.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use onlyonce::chance::Chance;
use onlyonce::{Engine, Error, Key, Lease, OnCrash, OnDuplicate, Policy, Probe, RunError, Suspect, Verdict};
use onlyonce_testkit::chance::SeededChance;
use onlyonce_testkit::worker::{Orders, Sink};

#[derive(Debug)]
struct AskSink(Arc<Sink>);

#[async_trait::async_trait]
impl Probe for AskSink {
    async fn ask(&self, suspect: &Suspect) -> Verdict {
        match self.0.find(suspect.key.id()) {
            Ok(Some(value)) => Verdict::happened_with(&value).unwrap_or(Verdict::CannotTell),
            Ok(None) => Verdict::DidNot,
            Err(_) => Verdict::CannotTell,
        }
    }
}

fn policy(orders: &Orders, sink: &Arc<Sink>) -> Policy {
    let on_crash = match orders.on_crash.as_str() {
        "park" => OnCrash::Park,
        "probe" => OnCrash::probe(AskSink(sink.clone())),
        _ => OnCrash::Retry,
    };
    Policy::default()
        .lease(orders.lease)
        .on_duplicate(OnDuplicate::Wait)
        .wait(Duration::from_secs(60))
        .on_crash(on_crash)
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone needs no report.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// As `eprintln!`, which would panic where a test lets every write fail.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
}

async fn work(orders: &Orders, sink: &Sink, lease: &Lease) -> Result<String, Error> {
    say(&format!("claimed {} {}", lease.key().id(), lease.fence()));
    if orders.gate {
        let mut line = String::new();
        let _ = std::io::stdin().lock().read_line(&mut line);
    }
    let value = format!("{}-{}", std::process::id(), lease.fence());
    let effect_key = lease.effect_key("effect");
    let failed = |e: std::io::Error| Error::BadInput { reason: e.to_string() };
    let value = sink.make(lease.key().id(), &effect_key, lease.fence(), &value).map_err(failed)?;
    say(&format!("effect {}", lease.key().id()));
    Ok(value)
}

/// Delivers one key, and again when it is safe to: a busy machine may take longer than a short lease.
async fn deliver(engine: &Engine, orders: &Orders, sink: &Sink, policy: &Arc<Policy>, id: &str) -> bool {
    for _ in 0..20 {
        let Ok(key) = Key::new("storm", id) else { return false };
        let call = engine.once(key).policy(policy.clone());
        match call.run(async |lease| work(orders, sink, &lease).await).await {
            Ok(ran) => {
                say(&format!("{} {id} {}", if ran.replayed { "replayed" } else { "ran" }, ran.value));
                return true;
            }
            Err(RunError::Guard(error)) => {
                say(&format!("{} {id}", error.code()));
                if orders.gate || !error.is_retryable() {
                    return true;
                }
            }
            Err(RunError::Body(error)) => say(&format!("failed {id} {error}")),
        }
    }
    false
}

fn main() -> ExitCode {
    let orders = match Orders::parse(std::env::args().skip(1)) {
        Ok(orders) => orders,
        Err(message) => {
            complain(&message);
            return ExitCode::from(64);
        }
    };
    let store = match onlyonce_stores::open(&orders.store) {
        Ok(store) => store,
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::from(error.exit_code());
        }
    };
    let sink = Arc::new(Sink::new(&orders.sink, orders.keyed));
    let policy = Arc::new(policy(&orders, &sink));
    let engine = Engine::new(store);
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let chance = SeededChance::new(orders.seed);
    let all_well = runtime.block_on(async {
        let mut all_well = true;
        for delivery in 0..orders.deliveries {
            let pick = if orders.in_order { delivery } else { chance.next() };
            let id = format!("k{}", pick % orders.keys);
            all_well &= deliver(&engine, &orders, &sink, &policy, &id).await;
        }
        all_well
    });
    say("end");
    if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
