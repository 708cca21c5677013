//! The messages of TensorBoard's page HPARAMS: `tensorboard/plugins/hparams/plugin_data.proto`.

use std::time::Duration;

use calmix_io::protobuf::Message;

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
pub(super) fn session_start(settings: &[(String, Hyperparameter)], started: Duration) -> Message {
    let mut info = Message::default();
    for (name, setting) in settings {
        // An entry of a map; its value is a `google.protobuf.Value`.
        let mut value = Message::default();
        match setting {
            Hyperparameter::Number(number) => value.double(2, *number),
            Hyperparameter::Text(text) => value.text(3, text),
            Hyperparameter::Flag(flag) => value.integer(4, i64::from(*flag)),
        }
        let mut entry = Message::default();
        entry.text(1, name);
        entry.message(2, &value);
        info.message(1, &entry);
    }
    info.double(5, started.as_secs_f64());
    let mut data = Message::default();
    data.message(3, &info);
    data
}

/// `HParamsPluginData` with a `session_end_info`: success, and when.
pub(super) fn session_end(ended: Duration) -> Message {
    let mut info = Message::default();
    info.integer(1, 1);
    info.double(2, ended.as_secs_f64());
    let mut data = Message::default();
    data.message(4, &info);
    data
}
