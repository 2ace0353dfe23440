//! Keys of planned jobs and of the effects within them.

use serde::Serialize;

use super::Key;
use super::fingerprint::fingerprint_of;
use crate::error::Error;

#[derive(Serialize)]
struct Job<'a> {
    work_id: &'a str,
    artifact_id: &'a str,
    canonical_url: &'a str,
}

#[derive(Serialize)]
struct Op<'a, C: Serialize + ?Sized> {
    kind: &'a str,
    job: &'a str,
    context: &'a C,
}

/// The key of a job: one per artifact of a work at a URL.
///
/// Its id is `job:<64 hex>`, the hash of the three as canonical JSON, so no choice of ids can make two jobs one.
/// The URL counts as it is given.
///
/// # Errors
/// `bad_key`: the namespace cannot be one.
///
/// # Example
/// ```
/// use onlyonce::key::{job_key, op_key};
///
/// let job = job_key("downloads", "w-123", "a-456", "https://example.org/a.pdf")?;
/// let head = op_key("HEAD", &job, &[("url", "https://example.org/a.pdf")])?;
/// let stream = op_key("STREAM", &job, &serde_json::json!({"url": "https://example.org/a.pdf", "range_start": 0}))?;
/// assert_ne!(head, stream);
/// assert_eq!(job, job_key("downloads", "w-123", "a-456", "https://example.org/a.pdf")?);
/// # Ok::<(), onlyonce::Error>(())
/// ```
pub fn job_key(namespace: &str, work_id: &str, artifact_id: &str, canonical_url: &str) -> Result<Key, Error> {
    fingerprint_of(&Job { work_id, artifact_id, canonical_url })?.key(namespace, "job:")
}

/// The key of one effect of a job: its kind, and what else makes it this one (a URL, a range, a hash).
///
/// Its id is `op:<64 hex>`, the hash of the kind, the job's key and the context as canonical JSON, and its
/// namespace is the job's. It stays the same over retries and takeovers: hand it to the outside system as its
/// idempotency key.
///
/// # Errors
/// `bad_input`: the context has no JSON form.
pub fn op_key<C: Serialize + ?Sized>(kind: &str, job: &Key, context: &C) -> Result<Key, Error> {
    fingerprint_of(&Op { kind, job: job.as_str(), context })?.key(job.namespace(), "op:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_choice_of_ids_makes_two_jobs_one() {
        let job = |a, b, c| job_key("n", a, b, c).unwrap();
        let all = [
            job("a", "b", "c"),
            job("ab", "", "c"),
            job("a", "bc", ""),
            job("a\",\"b", "", "c"),
            job("", "", ""),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn a_job_has_the_same_key_on_every_machine_and_in_every_version() {
        // sha256 of {"artifact_id":"a-456","canonical_url":"https://e.org/","work_id":"w-123"}
        let key = job_key("n", "w-123", "a-456", "https://e.org/").unwrap();
        assert_eq!(key.id(), "job:2095f45cc822cd882476fa4d8b67a39933575aff47913d24f34fb34e786e8946");
        // sha256 of {"context":{"range_start":0,"url":"u"},"job":"n/job:…","kind":"STREAM"}
        let op = op_key("STREAM", &key, &serde_json::json!({"url": "u", "range_start": 0})).unwrap();
        assert_eq!(op.to_string(), "n/op:90061626ca5b06a8691d1788bad15d634553695b63acba8d46b6892d902778df");
    }

    #[test]
    fn kind_job_and_context_all_count() {
        let job = job_key("n", "w", "a", "u").unwrap();
        let elsewhere = job_key("m", "w", "a", "u").unwrap();
        let base = op_key("HEAD", &job, &[1]).unwrap();
        assert_ne!(base, op_key("GET", &job, &[1]).unwrap());
        assert_ne!(base, op_key("HEAD", &job, &[2]).unwrap());
        assert_ne!(base.id(), op_key("HEAD", &elsewhere, &[1]).unwrap().id());
        assert_eq!(op_key("HEAD", &job, &f64::NAN).unwrap_err().code(), "bad_input");
    }
}
