#pragma once
// The C side of `src/gpu.rs`: properties of a GPU that libtorch knows and its Rust binding does not expose.

#include <cstdint>

extern "C" {

// Writes the compute capability of a GPU; false if CUDA's runtime is not loaded or does not know.
bool calmix_gpu_capability(int device, int* major, int* minor);

struct CalmixGpuFlags {
  bool benchmark;
  bool deterministic;
  bool tf32;
};

void calmix_gpu_set_flags(CalmixGpuFlags flags);
CalmixGpuFlags calmix_gpu_flags();

}
