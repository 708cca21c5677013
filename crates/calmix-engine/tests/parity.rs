//! The engine against the PyTorch whose libtorch it runs on: networks, optimiser and whole steps.
//!
//! The engine runs a case and writes down weights, images and plans; `replay.py` repeats it with modules, losses and
//! an optimiser of PyTorch's own, and both are compared. It has the libtorch, the memory layout and the number of threads
//! of the engine, so that most of what is compared here is equal to the last bit; the tolerances leave room for sums in
//! another order.

mod case;
mod networks;
mod peer;
mod steps;
mod tensors;
mod timm;
