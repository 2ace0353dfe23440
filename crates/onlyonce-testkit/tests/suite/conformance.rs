//! Every case on every store.

use onlyonce_testkit::conformance;

use crate::subjects;

conformance!(memory, subjects::memory());
