//! Calls and their bodies, as a host makes them.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::join;
use onlyonce::engine::Lease;
use onlyonce::store::Store;
use onlyonce::time::Clock;
use onlyonce::{
    Claimed, Engine, Error, Forget, OnCrash, OnFailure, Probe, RunError, Suspect, Sweep, Verdict,
};
use serde::{Deserialize, Serialize};

use super::clock::Sleep;
use super::link::Link;
use super::oracle::{Answer, Begins, CrashPlan, Found, Refused, Rule, Running};
use super::scenario::{Admin, CallPlan, EFFECTS, EffectPlan, Script, Step, Style, key_index, keys};
use super::sometimes::Sometimes;
use super::world::{Next, World, lock};

/// How a body of ours fails.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Failed {
    run: u64,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {} failed", self.run)
    }
}

/// Who calls, and what for.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) world: Arc<World>,
    pub(super) host: usize,
    pub(super) number: u32,
    pub(super) script: Arc<Script>,
}

/// Makes one call, and tells the judge what became of it.
pub(super) async fn call(caller: Caller, engine: Engine, plan: CallPlan) {
    let world = caller.world.clone();
    let number = caller.number;
    let answer = match AssertUnwindSafe(answer(caller, engine, plan)).catch_unwind().await {
        Ok(answer) => answer,
        Err(panic) => match text_of(&*panic) {
            Some(text) if text.starts_with("run ") => Answer::Panicked,
            text => {
                world.broken(Rule::NoPanic, || format!("the engine panicked: {text:?}"));
                Answer::Panicked
            }
        },
    };
    world.say(|| format!("call {number} is told {answer:?}"));
    lock(&world.oracle).call_ends(number, world.now_us(), world.server_clock.now(), answer);
}

pub(super) fn text_of(panic: &(dyn Any + Send)) -> Option<&str> {
    panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}

async fn answer(caller: Caller, engine: Engine, plan: CallPlan) -> Answer {
    let Some(key) = keys().get(plan.key).cloned() else { return Answer::Other("no key".to_owned()) };
    let on_crash = match plan.crash {
        CrashPlan::Retry => OnCrash::Retry,
        CrashPlan::Park => OnCrash::Park,
        CrashPlan::Probe => OnCrash::probe(Asking(caller.clone())),
    };
    let mut once = engine.once::<Failed>(key).policy(plan.policy.on_crash(on_crash));
    if let Some(fingerprint) = plan.fingerprint {
        once = once.fingerprint(fingerprint);
    }
    let ran = match plan.style {
        Style::Run => Box::pin(once.run(async |lease| body(&caller, lease).await)).await,
        Style::OwnTransaction => {
            let link = Link { world: caller.world.clone(), host: caller.host };
            Box::pin(once.run(async |lease| own_transaction(&caller, &link, lease).await)).await
        }
        Style::KeepingErrors => {
            Box::pin(once.run_keeping_errors(async |lease| body(&caller, lease).await)).await
        }
        Style::DecidingErrors => {
            let keep = std::time::Duration::from_secs(1);
            let decide = move |failed: &Failed| {
                if failed.run.is_multiple_of(2) {
                    OnFailure::Lock.keep(keep)
                } else {
                    OnFailure::Unlock.keep(keep)
                }
            };
            Box::pin(once.on_error(decide).run(async |lease| body(&caller, lease).await)).await
        }
        Style::ByHand => return Box::pin(by_hand(&caller, once.claim::<u64>(), plan.failure)).await,
    };
    match ran {
        Ok(ran) => Answer::Value { run: ran.value, replayed: ran.replayed, waited: ran.waited },
        Err(RunError::Body(failed)) => Answer::Failed(Some(failed.run)),
        Err(RunError::Guard(error)) => refusal(error),
    }
}

/// A body that writes its own completion.
async fn own_transaction(caller: &Caller, link: &Link, lease: Lease) -> Result<u64, Failed> {
    let run = body(caller, lease.clone()).await?;
    let _running = Running { world: caller.world.clone(), number: run };
    let completion = lease.completion(&run).await.map_err(|_| Failed { run })?;
    let answer = link.commit(completion.writes()).await;
    completion.check(answer).map_err(|_| Failed { run })?;
    caller.world.sometimes(Sometimes::OwnTransaction);
    Ok(run)
}

/// A call whose work does not fit into one future.
async fn by_hand(
    caller: &Caller,
    claim: impl Future<Output = Result<Claimed<u64>, Error>>,
    failure: OnFailure,
) -> Answer {
    let guard = match claim.await {
        Ok(Claimed::Run(guard)) => guard,
        Ok(Claimed::Replay(ran)) => {
            return Answer::Value { run: ran.value, replayed: true, waited: ran.waited };
        }
        Err(error) => return refusal(error),
    };
    match body(caller, guard.lease()).await {
        Ok(run) => match guard.complete(&run).await {
            Ok(()) => Answer::Value { run, replayed: false, waited: false },
            Err(error) => refusal(error),
        },
        Err(failed) => match guard.fail(failed.to_string(), failure).await {
            Ok(()) => Answer::Failed(Some(failed.run)),
            Err(error) => refusal(error),
        },
    }
}

fn refusal(error: Error) -> Answer {
    match error {
        Error::InProgress { .. } => Answer::InProgress,
        Error::DuplicateExecution { .. } => Answer::Duplicate,
        Error::InputChanged { .. } => Answer::InputChanged,
        Error::Parked { .. } => Answer::Parked,
        Error::LeaseLost { .. } => Answer::LeaseLost,
        Error::FailedBefore { message, .. } => Answer::FailedBefore(message),
        Error::ResultNotStored { .. } => Answer::NotStored,
        Error::NotRecorded { .. } => Answer::NotRecorded,
        Error::Store(error) => match error.kind() {
            onlyonce::store::StoreErrorKind::Unavailable | onlyonce::store::StoreErrorKind::Uncertain => {
                Answer::Store(error.to_string())
            }
            _ => Answer::Other(error.to_string()),
        },
        other => Answer::Other(other.to_string()),
    }
}

fn begins(caller: &Caller, lease: &Lease) -> Begins {
    Begins {
        actor: caller.number,
        host: caller.host,
        key: key_index(lease.key()),
        now_us: caller.world.now_us(),
        at: caller.world.server_clock.now(),
    }
}

/// The body of every call: what the key's script says.
async fn body(caller: &Caller, lease: Lease) -> Result<u64, Failed> {
    let world = &caller.world;
    let begins = begins(caller, &lease);
    let run = lock(&world.oracle).body_begins(&begins, &lease, &lock(&world.hosts));
    world.say(|| format!("w{}: run {run} begins for call {} under {lease:?}", caller.host, caller.number));
    let _running = Running { world: world.clone(), number: run };
    let script = &caller.script;
    let fails_at = if world.is_calm() || !world.dice.happens(script.fails) {
        None
    } else {
        Some(usize::try_from(world.dice.below(script.steps.len() as u64 + 1)).unwrap_or(0))
    };
    for (at, step) in script.steps.iter().enumerate() {
        if fails_at == Some(at) {
            return fail(caller, run);
        }
        take(caller, &lease, run, *step).await?;
    }
    if fails_at == Some(script.steps.len()) {
        return fail(caller, run);
    }
    Ok(run)
}

fn fail(caller: &Caller, run: u64) -> Result<u64, Failed> {
    if caller.world.dice.happens(caller.script.panics * 10) {
        caller.world.say(|| format!("w{}: run {run} panics", caller.host));
        // Not `panic!`: the hook would print, and a panic here is nothing to worry about.
        resume_unwind(Box::new(format!("run {run}")));
    }
    caller.world.say(|| format!("w{}: run {run} fails", caller.host));
    Err(Failed { run })
}

/// One step of a body.
async fn take(caller: &Caller, lease: &Lease, run: u64, step: Step) -> Result<(), Failed> {
    let world = &caller.world;
    match step {
        Step::Sleep { us } => {
            Sleep::for_us(world, us).await;
            if lease.is_lost() {
                world.sometimes(Sometimes::BodyTold);
            }
            Ok(())
        }
        Step::Mark => {
            world.say(|| format!("w{}: run {run} changes the world", caller.host));
            lock(&world.oracle).mark(run).map_err(|Refused| Failed { run })
        }
        Step::Check => lease.check().map_err(|_| Failed { run }),
        Step::Effect(plan) => effect(caller, lease, run, plan).await,
        Step::Both(one, other) => {
            let one = pin!(effect(caller, lease, run, one));
            let other = pin!(effect(caller, lease, run, other));
            let (one, other) = join(one, other).await;
            one.and(other)
        }
    }
}

async fn effect(caller: &Caller, lease: &Lease, run: u64, plan: EffectPlan) -> Result<(), Failed> {
    let world = &caller.world;
    let EffectPlan { name, undoable, .. } = plan;
    let mut effect = lease.effect(EFFECTS[usize::from(name)]);
    if undoable {
        effect = effect.undo(undo_of(caller.clone(), run));
    }
    let mut ran = false;
    let given = effect
        .run(async |effect_key| {
            ran = true;
            perform(caller, lease, run, plan, &effect_key).await
        })
        .await;
    match given {
        Ok(done) => {
            if !ran {
                world.sometimes(Sometimes::EffectReplayed);
                lock(&world.oracle).effect_gave(run, done, undoable);
            }
            Ok(())
        }
        Err(error) => {
            world.say(|| format!("w{}: effect e{name} of run {run} failed: {error:?}", caller.host));
            Err(Failed { run })
        }
    }
}

/// The effect itself.
async fn perform(
    caller: &Caller,
    lease: &Lease,
    run: u64,
    plan: EffectPlan,
    effect_key: &str,
) -> Result<u64, Refused> {
    let Caller { world, host, script, .. } = caller;
    let EffectPlan { name, undoable, before_us, after_us } = plan;
    let begins = begins(caller, lease);
    lock(&world.oracle).effect_begins(&begins, run, (name, effect_key), &lock(&world.hosts));
    world.say(|| format!("w{host}: run {run} begins effect e{name} as {effect_key}"));
    stumble(caller);
    Sleep::for_us(world, before_us).await;
    if !world.is_calm() && world.dice.happens(script.effect_fails) {
        return Err(Refused);
    }
    let done = lock(&world.oracle).perform(run, name, effect_key)?;
    world.say(|| format!("w{host}: effect e{name} of run {run} is done outside as {done}"));
    Sleep::for_us(world, after_us).await;
    lock(&world.oracle).effect_gave(run, done, undoable);
    Ok(done)
}

/// The worst moment to be stopped or killed is between the last look at the lease and the effect.
fn stumble(caller: &Caller) {
    let Caller { world, host, script, .. } = caller;
    if world.is_calm() || !world.dice.happens(script.stumbles) {
        return;
    }
    let host = u32::try_from(*host).unwrap_or(u32::MAX);
    let next = if world.dice.happens(300) {
        Next::Die(host)
    } else {
        Next::Pause(host, world.dice.below(world.net_plan.slow_us * 2))
    };
    world.after(0, next);
}

type Undoing = futures_util::future::BoxFuture<'static, Result<(), &'static str>>;

fn undo_of(caller: Caller, run: u64) -> impl FnOnce(u64) -> Undoing + Send + 'static {
    move |done| {
        Box::pin(async move {
            let world = &caller.world;
            world.say(|| format!("w{}: run {run} takes {done} back", caller.host));
            Sleep::for_us(world, world.dice.below(3_000)).await;
            if !world.is_calm() && world.dice.happens(caller.script.undo_fails) {
                lock(&world.oracle).undo_failed(run);
                return Err("it does not go back");
            }
            lock(&world.oracle).undo(run, done).map_err(|Refused| "the fence is too low")
        })
    }
}

/// Asks the outside, on behalf of one call.
pub(super) struct Asking(Caller);

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asking")
    }
}

#[async_trait]
impl Probe for Asking {
    async fn ask(&self, suspect: &Suspect) -> Verdict {
        let Caller { world, script, number, host } = &self.0;
        Sleep::for_us(world, script.probe_us).await;
        let knows = world.is_calm() || world.dice.happens(script.probe_knows);
        let (found, what) = match &suspect.effect_key {
            None => lock(&world.oracle).probe_call(*number, key_index(&suspect.key), knows),
            Some(effect_key) => lock(&world.oracle).probe_effect(effect_key, knows),
        };
        world.say(|| format!("w{host}: the probe of call {number} about {suspect:?} says {found:?}"));
        match found {
            Found::Happened => what
                .filter(|_| suspect.effect_key.is_some() || !world.dice.happens(200))
                .and_then(|run| Verdict::happened_with(&run).ok())
                .unwrap_or(Verdict::Happened(None)),
            Found::DidNot => Verdict::DidNot,
            Found::CannotTell => Verdict::CannotTell,
        }
    }
}

/// Somebody at the keyboard; refusals are answers like any other.
pub(super) async fn admin(world: Arc<World>, engine: Engine, what: Admin) {
    world.say(|| format!("somebody wants to {what:?}"));
    let key = |key: usize| keys().get(key).unwrap_or(&keys()[0]);
    let said = match what {
        Admin::Sweep => Box::pin(engine.sweep(Sweep::default())).await.map(|swept| format!("{swept:?}")),
        Admin::Forget { key: at, even_running } => {
            let forget = Forget::by("sim");
            let forget = if even_running { forget.even_running() } else { forget };
            Box::pin(engine.forget(key(at), forget)).await.map(|()| "forgotten".to_owned())
        }
        Admin::Resolve { key: at, verdict } => {
            let verdict = match verdict {
                0 => Verdict::Happened(None),
                1 => Verdict::DidNot,
                _ => Verdict::CannotTell,
            };
            Box::pin(engine.resolve(key(at), verdict, "sim")).await.map(|state| format!("{state:?}"))
        }
        Admin::Look { key: at } => engine.look(key(at)).await.map(|_| "looked".to_owned()),
    };
    world.say(|| format!("somebody is told {said:?}"));
}
