//! The messages of TensorBoard's page HPARAMS: `tensorboard/plugins/hparams/plugin_data.proto`.

use std::time::Duration;

use super::record::{FIXED_64, VARINT, field, key};

/// The plugin, and the tags of its two messages.
pub(super) const START: (&str, &str) = ("hparams", "_hparams_/session_start_info");
pub(super) const END: (&str, &str) = ("hparams", "_hparams_/session_end_info");

/// The value of a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Hyperparameter {
    /// A number.
    Number(f64),
    /// A word or a list.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

/// `HParamsPluginData` with a `session_start_info`: the settings, and when it began.
pub(super) fn session_start(settings: &[(String, Hyperparameter)], started: Duration) -> Vec<u8> {
    let mut info = Vec::new();
    for (name, setting) in settings {
        // An entry of a map; its value is a `google.protobuf.Value`.
        let mut value = Vec::new();
        let mut entry = Vec::new();
        match setting {
            Hyperparameter::Number(number) => {
                value.push(key(2, FIXED_64));
                value.extend(number.to_le_bytes());
            }
            Hyperparameter::Text(text) => field(&mut value, 3, text.as_bytes()),
            Hyperparameter::Flag(flag) => value.extend([key(4, VARINT), u8::from(*flag)]),
        }
        field(&mut entry, 1, name.as_bytes());
        field(&mut entry, 2, &value);
        field(&mut info, 1, &entry);
    }
    info.push(key(5, FIXED_64));
    info.extend(started.as_secs_f64().to_le_bytes());
    let mut data = Vec::new();
    field(&mut data, 3, &info);
    data
}

/// `HParamsPluginData` with a `session_end_info`: success, and when.
pub(super) fn session_end(ended: Duration) -> Vec<u8> {
    let mut info = vec![key(1, VARINT), 1, key(2, FIXED_64)];
    info.extend(ended.as_secs_f64().to_le_bytes());
    let mut data = Vec::new();
    field(&mut data, 4, &info);
    data
}
