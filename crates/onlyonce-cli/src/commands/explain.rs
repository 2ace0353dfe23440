//! `onlyonce explain`: the page of an error code.

use onlyonce::Error;

macro_rules! pages {
    ($($code:literal)*) => {
        &[$(($code, include_str!(concat!("../../../../docs/errors/", $code, ".md")))),*]
    };
}

const PAGES: &[(&str, &str)] = pages! {
    "in_progress" "duplicate_execution" "input_changed" "parked" "lease_lost" "failed_before"
    "result_not_stored" "result_mismatch" "not_recorded" "not_found" "not_allowed" "bad_key"
    "bad_json" "bad_input" "bad_pointer" "bad_duration" "bad_policy" "bad_store_url" "file"
    "blocking_in_async" "store_unavailable" "store_uncertain" "store_too_large" "store_corrupt"
    "store_misconfigured"
};

pub(crate) fn run(code: &str) -> Result<String, Error> {
    match PAGES.iter().find(|(known, _)| *known == code) {
        Some((_, page)) => Ok(page.trim_end().to_owned()),
        None => {
            let codes: Vec<&str> = PAGES.iter().map(|(code, _)| *code).collect();
            Err(Error::BadInput {
                reason: format!("there is no error code {code:?}; the codes are {}", codes.join(", ")),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_page() {
        let known: Vec<&str> = PAGES.iter().map(|(code, _)| *code).collect();
        assert_eq!(known, Error::CODES);
        assert!(run("in_progress").unwrap().starts_with("# in_progress"));
        assert!(run("nonsense").unwrap_err().to_string().contains("lease_lost"));
    }
}
