//! The examples on the pages of `docs/errors` compile; this module exists for the doc tests alone.

macro_rules! pages {
    ($($code:ident)+) => {$(
        #[doc = include_str!(concat!("../../../docs/errors/", stringify!($code), ".md"))]
        mod $code {}
    )+};
}

pages! {
    in_progress duplicate_execution input_changed parked lease_lost failed_before result_not_stored
    result_mismatch not_recorded not_found not_allowed bad_key bad_json bad_input bad_pointer bad_duration
    bad_policy bad_store_url file blocking_in_async store_unavailable store_uncertain store_too_large
    store_corrupt store_misconfigured
}
