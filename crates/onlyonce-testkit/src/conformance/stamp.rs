//! How the list becomes tests.

use onlyonce::time::BoxFuture;
use tokio::runtime::Builder;

use super::{Subject, cases};

/// Makes a module with one `#[test]` per case for a store.
///
/// The expression gives a fresh [`Subject`]; it is evaluated for every test, on a Tokio runtime, and may
/// `.await`. With `durable` before the name, the cases that open the store again are there too.
///
/// # Example
/// ```
/// use onlyonce::store::MemoryStore;
/// use onlyonce_testkit::conformance::{RealTime, Subject};
///
/// onlyonce_testkit::conformance!(memory, Subject::new(MemoryStore::new(), RealTime::default(), "t"));
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance {
    (durable $name:ident, $factory:expr) => {
        $crate::__stamp_module!([durable] $name, $factory);
    };
    ($name:ident, $factory:expr) => {
        $crate::__stamp_module!([plain] $name, $factory);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __stamp_module {
    ($how:tt $name:ident, $factory:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "the factory may need nothing from outside")]
            use super::*;

            fn __fresh_subject() -> ::onlyonce::time::BoxFuture<'static, $crate::conformance::Subject> {
                Box::pin(async { $factory })
            }

            $crate::each_case!([$crate::__stamp] $how);
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __stamp {
    ($how:tt $($promise:literal => $kind:ident $module:ident: [$($case:ident),+ $(,)?];)+) => {
        $($($crate::__stamp_one!($how $kind $case);)+)+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __stamp_one {
    ([plain] durable $case:ident) => {};
    ($how:tt $kind:ident $case:ident) => {
        #[test]
        fn $case() {
            $crate::conformance::run_test(stringify!($case), __fresh_subject());
        }
    };
}

/// Runs one case as a test.
///
/// # Panics
/// When the case fails.
#[doc(hidden)]
#[expect(clippy::panic, reason = "a test fails by panicking")]
pub fn run_test(name: &str, subject: BoxFuture<'static, Subject>) {
    let runtime = match Builder::new_multi_thread().worker_threads(4).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime for {name}: {error}"),
    };
    runtime.block_on(async {
        let subject = subject.await;
        let Some(case) = cases().iter().find(|case| case.name == name) else {
            panic!("there is no case named {name}")
        };
        if let Err(failure) = case.check(&subject).await {
            panic!("{name}\n  promise: {}\n  broken:  {failure}", case.promise);
        }
    });
}
