//! Every case on every store, and on every store around a store.

use onlyonce_testkit::conformance;

use crate::subjects;

conformance!(memory, subjects::memory());
conformance!(memory_in_real_time, subjects::memory_in_real_time());
conformance!(shared, subjects::shared());
conformance!(prefixed, subjects::prefixed());
conformance!(observed, subjects::observed());
conformance!(faultless, subjects::faultless());
