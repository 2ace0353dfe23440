//! What was typed.

use clap::{Parser, Subcommand};

/// Make things happen once in a world that delivers them at least once.
#[derive(Debug, Parser)]
#[command(name = "onlyonce", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the key of a file, a JSON payload, an event or a job
    #[command(subcommand)]
    Key(KeyOf),
    /// Say what an error code means, whether a retry is safe, and what to do
    Explain {
        /// The code, as an error prints it: in_progress, lease_lost, …
        code: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyOf {
    /// The SHA-256 of a file's content; survives renames
    File {
        /// The file; `-` is standard input
        path: String,
        /// Whose key it is
        #[arg(long, default_value = "file")]
        namespace: String,
    },
    /// The hash of a JSON payload in canonical form
    Json {
        /// The file; `-` is standard input
        path: String,
        /// Whose key it is
        #[arg(long, default_value = "json")]
        namespace: String,
        /// exact, jcs or python
        #[arg(long, default_value = "exact")]
        form: String,
        /// Leave this out: a JSON pointer, `*` for every element
        #[arg(long, value_name = "POINTER")]
        exclude: Vec<String>,
        /// Only this: a JSON pointer, `*` for every element
        #[arg(long, value_name = "POINTER")]
        select: Vec<String>,
    },
    /// The logical key of an event: its eventId, or the hash of what identifies it
    Event {
        /// The payload; `-` is standard input
        path: String,
        /// Whose key it is
        #[arg(long, default_value = "event")]
        namespace: String,
        /// The environment it belongs to
        #[arg(long)]
        env: String,
    },
    /// The key of a planned job
    Job {
        /// The work it belongs to
        work_id: String,
        /// The artifact it makes
        artifact_id: String,
        /// Where it comes from
        canonical_url: String,
        /// Whose key it is
        #[arg(long, default_value = "job")]
        namespace: String,
    },
}
