//! The trainers that a program has.

use calmix_recipe::Recipe;
use calmix_recipe::device::Device;

use super::Trainer;
use super::heads::Heads;
use crate::error::CliError;

/// Finds the fastest device for a network; asked only if a folder of images is given and neither a recipe nor a device.
pub type FastestDevice = fn() -> Device;

/// The trainers of a program.
#[derive(Clone, Copy)]
pub struct Trainers<'a> {
    networks: Option<&'a dyn Trainer>,
    /// Finds the fastest device; asked if a folder of images is given without a recipe.
    pub fastest: FastestDevice,
}

impl<'a> Trainers<'a> {
    /// The trainer of heads alone.
    pub fn of_heads(fastest: FastestDevice) -> Self {
        Self { networks: None, fastest }
    }

    /// The trainers of heads and of whole networks.
    pub fn of_both(networks: &'a dyn Trainer, fastest: FastestDevice) -> Self {
        Self { networks: Some(networks), fastest }
    }

    /// The trainer of a recipe.
    ///
    /// # Errors
    /// If the recipe trains a whole network, and this program does not.
    pub fn of(&self, recipe: &Recipe) -> Result<&'a dyn Trainer, CliError> {
        if recipe.has_head() || recipe.has_vectors() {
            return Ok(&Heads);
        }
        self.networks.ok_or_else(|| CliError::failed("whole networks are trained by calmix-torch"))
    }
}
