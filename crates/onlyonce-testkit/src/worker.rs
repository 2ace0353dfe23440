//! What the worker process is told, and where its effects land.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a worker is told on its command line.
#[derive(Debug)]
pub struct Orders {
    /// The store's URL.
    pub store: String,
    /// Where effects land.
    pub sink: PathBuf,
    /// How many keys there are.
    pub keys: u64,
    /// How many deliveries this worker gets.
    pub deliveries: u64,
    /// Deliveries come in key order, not at random.
    pub in_order: bool,
    /// Which deliveries, when at random.
    pub seed: u64,
    /// `retry`, `park` or `probe`.
    pub on_crash: String,
    /// The lease.
    pub lease: Duration,
    /// Whether the sink honours effect keys.
    pub keyed: bool,
    /// Whether the body waits for a line on standard input before its effect.
    pub gate: bool,
}

impl Orders {
    /// Reads `name=value` words.
    ///
    /// # Errors
    /// A word nobody knows, in a sentence.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut orders = Self {
            store: "memory:".to_owned(),
            sink: PathBuf::new(),
            keys: 1,
            deliveries: 1,
            in_order: false,
            seed: 1,
            on_crash: "retry".to_owned(),
            lease: Duration::from_millis(200),
            keyed: false,
            gate: false,
        };
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((&word, "true"));
            let number = || value.parse::<u64>().map_err(|_| format!("{name} is a number, not {value:?}"));
            match name {
                "store" => value.clone_into(&mut orders.store),
                "sink" => orders.sink = PathBuf::from(value),
                "keys" => orders.keys = number()?.max(1),
                "deliveries" => orders.deliveries = number()?,
                "in-order" => orders.in_order = value == "true",
                "seed" => orders.seed = number()?,
                "on-crash" => value.clone_into(&mut orders.on_crash),
                "lease-ms" => orders.lease = Duration::from_millis(number()?),
                "keyed" => orders.keyed = value == "true",
                "gate" => orders.gate = value == "true",
                _ => return Err(format!("a worker knows no {name:?}")),
            }
        }
        Ok(orders)
    }
}

/// The outside world: a directory with an append-only log of effects.
#[derive(Debug)]
pub struct Sink {
    dir: PathBuf,
    keyed: bool,
}

impl Sink {
    /// A sink in this directory; a keyed one makes each effect key's effect once, as a good payment API does.
    pub fn new(dir: &Path, keyed: bool) -> Self {
        Self { dir: dir.to_owned(), keyed }
    }

    /// Makes the effect; gives the value that is in the world now.
    ///
    /// # Errors
    /// The system's; then the effect did not happen.
    pub fn make(&self, id: &str, effect_key: &str, fence: u64, value: &str) -> io::Result<String> {
        if self.keyed {
            let place = self.dir.join(effect_key);
            let draft = self.dir.join(format!("{effect_key}.{}", std::process::id()));
            fs::write(&draft, value)?;
            // A hard link is made once, whole, or not at all.
            let made = fs::hard_link(&draft, &place);
            fs::remove_file(&draft)?;
            match made {
                Ok(()) => self.log(id, fence, value)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return fs::read_to_string(place);
                }
                Err(error) => return Err(error),
            }
        } else {
            self.log(id, fence, value)?;
        }
        Ok(value.to_owned())
    }

    fn log(&self, id: &str, fence: u64, value: &str) -> io::Result<()> {
        let mut log: File = OpenOptions::new().create(true).append(true).open(self.dir.join("log"))?;
        log.write_all(format!("{id} {fence} {value}\n").as_bytes())
    }

    /// The value of an effect that is in the world, by the key's id.
    ///
    /// # Errors
    /// The system's.
    pub fn find(&self, id: &str) -> io::Result<Option<String>> {
        let effects = self.effects()?;
        Ok(effects.into_iter().find(|(of, _)| of == id).map(|(_, value)| value))
    }

    /// Every effect there is, in order: id and value.
    ///
    /// # Errors
    /// The system's.
    pub fn effects(&self) -> io::Result<Vec<(String, String)>> {
        let text = match fs::read_to_string(self.dir.join("log")) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let parts = |line: &str| {
            let mut words = line.split(' ');
            Some((words.next()?.to_owned(), words.nth(1)?.to_owned()))
        };
        Ok(text.lines().filter_map(parts).collect())
    }
}
