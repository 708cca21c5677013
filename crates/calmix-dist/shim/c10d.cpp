#include "c10d.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef USE_C10D_NCCL
#include <ATen/ops/zeros.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct CalmixStore {
  c10::intrusive_ptr<c10d::Store> store;
};

struct CalmixGroup {
  c10::intrusive_ptr<c10d::Backend> backend;
  Milliseconds timeout;
  // Gloo ends an operation at its timeout; NCCL's operations are asynchronous, so `finish` polls them.
  bool polls;
  bool aborted = false;
};

struct CalmixWatch {
  c10::intrusive_ptr<c10d::Work> receive;
};

namespace {

void write_error(CalmixErrorBuffer error, const char* message) {
  if (error.text == nullptr || error.capacity == 0) {
    return;
  }
  size_t length = std::min(std::strlen(message), error.capacity - 1);
  std::memcpy(error.text, message, length);
  error.text[length] = '\0';
}

template <typename Action>
int guarded(CalmixErrorBuffer error, Action&& action) {
  try {
    action();
    return CALMIX_DONE;
  } catch (const c10::DistStoreError& exception) {
    write_error(error, exception.what_without_backtrace());
    return CALMIX_TIMED_OUT;
  } catch (const c10::Error& exception) {
    write_error(error, exception.what_without_backtrace());
  } catch (const std::exception& exception) {
    write_error(error, exception.what());
  } catch (...) {
    write_error(error, "an unknown exception");
  }
  return CALMIX_FAILED;
}

// c10d logs to standard error whenever a connection ends. Callers receive failures as errors, so the log is off unless
// the user sets TORCH_CPP_LOG_LEVEL, which otherwise only Python's `import torch` reads. The level is a plain number, so
// only one thread may set it.
void set_log_level() {
  static std::once_flag is_set;
  std::call_once(is_set, [] {
    if (std::getenv("TORCH_CPP_LOG_LEVEL") != nullptr) {
      c10::initLogging();
    } else {
      FLAGS_caffe2_log_level = c10::GLOG_FATAL;
    }
  });
}

at::Tensor& tensor_at(void* tensor) {
  return *static_cast<at::Tensor*>(tensor);
}

at::Tensor tensor_at(const void* tensor) {
  return *static_cast<const at::Tensor*>(tensor);
}

#ifdef USE_C10D_NCCL
// NCCL connects at the first operation, inside a call without a time limit. So the first one runs here, on a thread that
// is left behind if it does not end in time.
void connect_gpu(const c10::intrusive_ptr<c10d::Backend>& backend, int device, Milliseconds timeout) {
  auto done = std::make_shared<std::promise<void>>();
  auto outcome = done->get_future();
  std::thread([backend, device, done] {
    try {
      std::vector<at::Tensor> tensors{at::zeros({1}, at::Device(at::kCUDA, device))};
      auto work = backend->allreduce(tensors);
      while (!work->isCompleted()) {
        std::this_thread::sleep_for(Milliseconds(1));
      }
      work->wait();
      done->set_value();
    } catch (...) {
      done->set_exception(std::current_exception());
    }
  }).detach();
  if (outcome.wait_for(timeout) != std::future_status::ready) {
    throw std::runtime_error("NCCL did not connect the GPUs in time");
  }
  try {
    outcome.get();
  } catch (...) {
    backend->abort();
    throw;
  }
}
#endif

void finish(const CalmixGroup* group, const c10::intrusive_ptr<c10d::Work>& work, const bool* stop) {
  if (!group->polls) {
    work->wait();
    return;
  }
  auto deadline = Clock::now() + group->timeout;
  while (!work->isCompleted()) {
    bool stopped = __atomic_load_n(stop, __ATOMIC_ACQUIRE);
    if (stopped || Clock::now() > deadline) {
      group->backend->abort();
      throw std::runtime_error(stopped ? "another process noticed a failure" : "timed out");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  work->wait();
}

}  // namespace

extern "C" {

int calmix_store_tcp(
    const char* host, uint16_t port, bool is_server, int listener, int64_t timeout_ms, CalmixStore** store,
    CalmixErrorBuffer error) {
  return guarded(error, [&] {
    set_log_level();
    c10d::TCPStoreOptions options;
    options.port = port;
    options.isServer = is_server;
    if (listener >= 0) {
      options.masterListenFd = listener;
    }
    options.waitWorkers = false;
    options.timeout = Milliseconds(timeout_ms);
    *store = new CalmixStore{c10::make_intrusive<c10d::TCPStore>(host, options)};
  });
}

int calmix_store_prefix(
    const CalmixStore* inner, const char* prefix, CalmixStore** store, CalmixErrorBuffer error) {
  return guarded(error, [&] {
    *store = new CalmixStore{c10::make_intrusive<c10d::PrefixStore>(prefix, inner->store)};
  });
}

int calmix_store_clone(const CalmixStore* original, CalmixStore** store, CalmixErrorBuffer error) {
  return guarded(error, [&] { *store = new CalmixStore{original->store->clone()}; });
}

void calmix_store_free(CalmixStore* store) {
  guarded({nullptr, 0}, [&] { delete store; });
}

int calmix_store_set(const CalmixStore* store, const char* key, const char* value, CalmixErrorBuffer error) {
  return guarded(error, [&] {
    store->store->set(key, std::vector<uint8_t>(value, value + std::strlen(value)));
  });
}

int calmix_store_add(
    const CalmixStore* store, const char* key, int64_t amount, int64_t* sum, CalmixErrorBuffer error) {
  return guarded(error, [&] { *sum = store->store->add(key, amount); });
}

int calmix_store_get(
    const CalmixStore* store, const char* key, char* value, size_t capacity, CalmixErrorBuffer error) {
  return guarded(error, [&] {
    std::vector<uint8_t> found = store->store->get(key);
    if (found.size() >= capacity) {
      throw std::length_error("the value of this key is longer than any that calmix writes");
    }
    std::copy(found.begin(), found.end(), value);
    value[found.size()] = '\0';
  });
}

int calmix_store_wait(const CalmixStore* store, const char* key, int64_t timeout_ms, CalmixErrorBuffer error) {
  return guarded(error, [&] { store->store->wait({key}, Milliseconds(timeout_ms)); });
}

int calmix_store_has(
    const CalmixStore* store, const char* const* keys, size_t count, bool* all, CalmixErrorBuffer error) {
  return guarded(error, [&] { *all = store->store->check(std::vector<std::string>(keys, keys + count)); });
}

int calmix_group_gloo(
    const CalmixStore* store, int rank, int size, const char* host, const char* interface, int64_t timeout_ms,
    CalmixGroup** group, CalmixErrorBuffer error) {
  return guarded(error, [&] {
    using Gloo = c10d::ProcessGroupGloo;
    auto timeout = Milliseconds(timeout_ms);
    auto options = Gloo::Options::create(timeout);
    options->devices.push_back(
        *interface == '\0' ? Gloo::createDeviceForHostname(host) : Gloo::createDeviceForInterface(interface));
    auto made = c10::make_intrusive<Gloo>(store->store, rank, size, options);
    *group = new CalmixGroup{made, timeout, false};
  });
}

int calmix_group_nccl(
    const CalmixStore* store, int rank, int size, int device, int64_t timeout_ms, int64_t patience_ms,
    CalmixGroup** group, CalmixErrorBuffer error) {
  return guarded(error, [&] {
#ifdef USE_C10D_NCCL
    using Nccl = c10d::ProcessGroupNCCL;
    auto options = Nccl::Options::create();
    // NCCL's watchdog ends the process, so its timeout is the longer one.
    options->timeout = Milliseconds(2 * timeout_ms);
    auto made = c10::make_intrusive<Nccl>(store->store, rank, size, options);
    connect_gpu(made, device, Milliseconds(patience_ms));
    *group = new CalmixGroup{made, Milliseconds(timeout_ms), true};
#else
    throw std::runtime_error("compiled without NCCL");
#endif
  });
}

void calmix_group_abort(CalmixGroup* group) {
  guarded({nullptr, 0}, [&] {
    if (group->polls) {
      group->aborted = true;
      group->backend->abort();
    }
  });
}

void calmix_group_free(CalmixGroup* group) {
  guarded({nullptr, 0}, [&] {
    if (group->polls && !group->aborted) {
      group->backend->shutdown();
    }
  });
  guarded({nullptr, 0}, [&] { delete group; });
}

int calmix_watch(const CalmixGroup* group, int peer, CalmixWatch** watch, CalmixErrorBuffer error) {
  return guarded(error, [&] {
    std::vector<at::Tensor> tensors{at::empty({1}, at::kByte)};
    *watch = new CalmixWatch{group->backend->recv(tensors, peer, 0)};
  });
}

int calmix_watch_wait(const CalmixWatch* watch, CalmixErrorBuffer error) {
  // Gloo closes all connections when a receive times out, so this one has to outlast every run.
  return guarded(error, [&] { watch->receive->wait(std::chrono::hours(24 * 3650)); });
}

void calmix_watch_stop(const CalmixWatch* watch) {
  guarded({nullptr, 0}, [&] { watch->receive->abort(); });
}

void calmix_watch_free(CalmixWatch* watch) {
  guarded({nullptr, 0}, [&] { delete watch; });
}

int calmix_all_reduce(const CalmixGroup* group, void* tensor, const bool* stop, CalmixErrorBuffer error) {
  return guarded(error, [&] {
    std::vector<at::Tensor> tensors{tensor_at(tensor)};
    finish(group, group->backend->allreduce(tensors), stop);
  });
}

int calmix_broadcast(
    const CalmixGroup* group, void* tensor, int root, const bool* stop, CalmixErrorBuffer error) {
  return guarded(error, [&] {
    std::vector<at::Tensor> tensors{tensor_at(tensor)};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    finish(group, group->backend->broadcast(tensors, options), stop);
  });
}

int calmix_all_gather(
    const CalmixGroup* group, void* output, const void* input, const bool* stop, CalmixErrorBuffer error) {
  return guarded(error, [&] {
    at::Tensor sent = tensor_at(input);
    finish(group, group->backend->_allgather_base(tensor_at(output), sent), stop);
  });
}

int calmix_all_to_all(
    const CalmixGroup* group, void* output, const void* input, const int64_t* receive, const int64_t* send,
    size_t size, const bool* stop, CalmixErrorBuffer error) {
  return guarded(error, [&] {
    at::Tensor sent = tensor_at(input);
    std::vector<int64_t> received(receive, receive + size), given(send, send + size);
    finish(group, group->backend->alltoall_base(tensor_at(output), sent, received, given), stop);
  });
}

int calmix_barrier(const CalmixGroup* group, const bool* stop, CalmixErrorBuffer error) {
  return guarded(error, [&] { finish(group, group->backend->barrier(), stop); });
}

}
