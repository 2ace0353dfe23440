//! Guard a function, kill it, watch it replay.
//!
//! ```text
//! charge 4711          charges order 4711
//! charge 4711          gives back its receipt, without charging
//! charge 4712 --die    is killed between the charge and the receipt
//! charge 4712          takes over when the lease is over
//! ```

use std::time::Duration;

use onlyonce::{Engine, Key, OnDuplicate, Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let order = words.first().ok_or("say which order: charge 4711 [--die]")?;
    let dies = words.iter().any(|word| word == "--die");

    let engine = Engine::new(onlyonce_stores::open("sqlite:charge.db")?);
    let policy = Policy::default().lease(Duration::from_secs(3)).on_duplicate(OnDuplicate::Wait);
    let paid = engine
        .blocking()
        .once::<String>(Key::new("orders.charge", order)?)
        .policy(policy)
        .run(|lease| {
            let idempotency_key = lease.effect_key("card");
            println!("charging order {order}: attempt {}, {idempotency_key}", lease.attempt());
            if dies {
                std::process::abort();
            }
            Ok(format!("receipt for order {order}"))
        })
        .map_err(|error| error.to_string())?;
    println!("{}: {}", if paid.replayed { "replayed" } else { "ran" }, paid.value);
    Ok(())
}
