#include "gpu.h"

#include <ATen/Context.h>

#ifndef _WIN32
#include <dlfcn.h>
#endif

extern "C" {

bool calmix_gpu_capability(int device, int* major, int* minor) {
#ifdef _WIN32
  return false;
#else
  // libtorch for CUDA has loaded the runtime; asking it this way needs no headers of CUDA.
  using GetAttribute = int (*)(int* value, int attribute, int device);
  auto get = reinterpret_cast<GetAttribute>(dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute"));
  // cudaDevAttrComputeCapabilityMajor and cudaDevAttrComputeCapabilityMinor.
  return get != nullptr && get(major, 75, device) == 0 && get(minor, 76, device) == 0;
#endif
}

void calmix_gpu_set_flags(CalmixGpuFlags flags) {
  at::Context& context = at::globalContext();
  context.setBenchmarkCuDNN(flags.benchmark);
  context.setDeterministicCuDNN(flags.deterministic);
  context.setAllowTF32CuDNN(flags.tf32);
  context.setAllowTF32CuBLAS(flags.tf32);
}

CalmixGpuFlags calmix_gpu_flags() {
  const at::Context& context = at::globalContext();
  bool tf32 = context.allowTF32CuDNN() || context.allowTF32CuBLAS();
  return {context.benchmarkCuDNN(), context.deterministicCuDNN(), tf32};
}

}
