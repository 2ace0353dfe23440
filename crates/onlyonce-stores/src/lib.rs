//! Stores for onlyonce.
