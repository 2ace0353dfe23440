//! No pointers and no document panic; what is left has a canonical form that pointers leave as it is.
//!
//! The first line of the input is the pointers to exclude, the second those to select, each divided by spaces;
//! the rest is the document.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onlyonce::key::JsonKey;

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(3, |byte| *byte == b'\n');
    let mut pointers = || Some(std::str::from_utf8(parts.next()?).ok()?.split_ascii_whitespace());
    let (Some(exclude), Some(select)) = (pointers(), pointers()) else { return };
    let Ok(key) = JsonKey::new().exclude(exclude).and_then(|key| key.select(select)) else { return };
    let document = parts.next().unwrap_or_default();
    if let Ok(canonical) = key.canonical(document) {
        let whole = JsonKey::new();
        assert_eq!(whole.canonical(&canonical).as_ref().ok(), Some(&canonical));
        assert!(whole.canonical(document).is_ok());
    }
});
