//! The keys of a recipe, section by section, and what is written about all of them.

pub(crate) mod augment;
pub(crate) mod data;
pub(crate) mod loader;
pub(crate) mod observe;
pub(crate) mod or_auto;
pub(crate) mod reference;
pub(crate) mod schema;
pub(crate) mod train;
