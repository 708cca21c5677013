//! The arguments of `calmix demo`.

use std::path::PathBuf;

use clap::Args;

/// Train on images of shapes that it draws, some of them with a wrong label, and review them
///
/// Works offline in less than a minute: it draws 300 images, labels 60 of them, six wrongly on purpose, and then runs the commands
/// that you would run on images of your own: train, report and review. Each is shown before it runs. It needs a pretrained backbone,
/// as `pip install "calmix[images]"` brings it.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Folder for all files; it must not exist
    #[arg(value_name = "FOLDER", default_value = "calmix-demo")]
    pub folder: PathBuf,
}
