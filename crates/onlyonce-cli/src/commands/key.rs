//! `onlyonce key`: what makes two things the same.

use std::io::Read;

use onlyonce::key::{ContentId, EventIdentity, JsonKey, job_key};
use onlyonce::{Error, Key};

use crate::args::KeyOf;

pub(crate) fn run(of: KeyOf) -> Result<String, Error> {
    let key = match of {
        KeyOf::File { path, namespace } if path == "-" => ContentId::of_reader(std::io::stdin().lock())
            .map_err(|e| unreadable(&path, e))?
            .key(&namespace)?,
        KeyOf::File { path, namespace } => ContentId::of_file(&path)?.key(&namespace)?,
        KeyOf::Json { path, namespace, form, exclude, select } => {
            let keys = JsonKey::new().form(form.parse()?).exclude(exclude)?.select(select)?;
            keys.key(&namespace, &read(&path)?)?
        }
        KeyOf::Event { path, namespace, env } => event(&read(&path)?, &namespace, &env)?,
        KeyOf::Job { work_id, artifact_id, canonical_url, namespace } => {
            job_key(&namespace, &work_id, &artifact_id, &canonical_url)?
        }
    };
    Ok(key.to_string())
}

fn event(payload: &[u8], namespace: &str, env: &str) -> Result<Key, Error> {
    EventIdentity::from_json(payload)?.key(namespace, env)?.ok_or_else(|| Error::BadInput {
        reason: "the event has no eventId, and nothing that identifies it (service and time)".to_owned(),
    })
}

fn read(path: &str) -> Result<Vec<u8>, Error> {
    if path != "-" {
        return std::fs::read(path).map_err(|e| unreadable(path, e));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).map_err(|e| unreadable(path, e))?;
    Ok(bytes)
}

fn unreadable(path: &str, source: std::io::Error) -> Error {
    let path = if path == "-" { "standard input".to_owned() } else { path.to_owned() };
    Error::File { path, source }
}
