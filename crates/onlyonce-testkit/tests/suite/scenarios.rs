//! Every scenario on every store.

use onlyonce_testkit::scenarios;

use crate::stages;

scenarios!(memory, stages::memory());
scenarios!(prefixed, stages::prefixed());
scenarios!(file, stages::file());
scenarios!(sqlite, stages::sqlite());
