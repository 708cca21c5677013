//! Shared by the targets: a folder in memory for one hostile file, and checks of what was accepted.

pub mod tiny;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::manifest::Prepared;
use calmix_formats::decode::{DecodeLimits, decode, size};
use tempfile::TempDir;

/// One mebipixel: a larger claim is an error at once instead of a second of decoding.
pub const LIMITS: DecodeLimits = DecodeLimits { side: 4_096, pixels: 1 << 20, bytes: 1 << 20 };

/// A dataset folder, and a place beside it for what is prepared from it.
pub struct Scene {
    folder: TempDir,
}

impl Scene {
    /// A folder in memory, if the system has one.
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        let scene = Self { folder: folder.expect("a folder for temporary files") };
        fs::create_dir(scene.root()).expect("a folder");
        scene
    }

    /// The folder of the dataset.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// The folder of the prepared dataset.
    pub fn target(&self) -> PathBuf {
        self.folder.path().join("prepared")
    }

    /// Writes a file of the dataset.
    pub fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, bytes).expect("a file");
        path
    }

    /// An error must name a file of the dataset; what was accepted must read back whole.
    pub fn check(&self, prepared: Result<Prepared, DataError>) {
        match prepared {
            Err(error) => {
                self.check_error(&error);
                assert!(!self.target().exists(), "something was left behind");
            }
            Ok(prepared) => {
                prepared.unreadable.iter().for_each(|error| self.check_error(error));
                let dataset = Dataset::open(&self.target(), &self.root()).expect("what was prepared opens");
                dataset.verify().expect("what was prepared reads back");
                fs::remove_dir_all(self.target()).expect("what was prepared can be removed");
            }
        }
    }

    fn check_error(&self, error: &DataError) {
        let path = error.path().expect("the path of a file");
        assert!(path.starts_with(self.root()) && path.exists(), "{error} names no file");
        assert!(error.to_string().len() > path.as_os_str().len() + 2, "{error} says nothing");
    }
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

/// Keeps libFuzzer's hook from aborting at panics that a reader makes errors, such as those of the crate `parquet` on damaged
/// files. A panic that reaches the target still aborts.
pub fn allow_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
}

/// Decodes, and checks that the header and the pixels have the same size.
pub fn image(bytes: &[u8]) {
    let header = size(bytes, &LIMITS);
    match decode(bytes, &LIMITS) {
        Ok(image) => assert_eq!(header.ok(), Some((image.width(), image.height()))),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Runs `act` with a scene that is made once for each process.
#[macro_export]
macro_rules! with_scene {
    ($make:expr, $act:expr) => {{
        std::thread_local! {
            static SCENE: $crate::Scene = {
                let scene = $crate::Scene::new();
                let make: fn(&$crate::Scene) = $make;
                make(&scene);
                scene
            };
        }
        SCENE.with($act)
    }};
}
