//! What an inspection found.

use serde_json::Value;

/// The output of an inspection, as text and as JSON.
pub(super) struct InspectOutput {
    pub(super) text: String,
    pub(super) json: Value,
}
