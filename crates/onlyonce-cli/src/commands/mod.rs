//! One file per command.

pub(crate) mod explain;
pub(crate) mod key;
