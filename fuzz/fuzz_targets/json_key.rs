//! No bytes panic; what is taken is JSON, and its canonical form is its own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onlyonce::Error;
use onlyonce::key::{Form, JsonKey};

fuzz_target!(|document: &[u8]| {
    for form in [Form::Exact, Form::Jcs, Form::Python] {
        let key = JsonKey::new().form(form);
        match key.canonical(document) {
            Ok(canonical) => {
                assert_eq!(key.canonical(&canonical).as_ref().ok(), Some(&canonical));
                assert!(serde_json::from_slice::<serde::de::IgnoredAny>(document).is_ok());
            }
            Err(Error::BadJson { offset, .. }) => assert!(offset <= document.len()),
            Err(other) => panic!("{other}"),
        }
    }
});
