#pragma once
// The C side of `src/binding.rs`: stores and process groups of libtorch's c10d.
//
// Every function catches all exceptions, returns a code, and writes the message of an exception to `error`, a buffer of
// the caller. C++ frees what C++ allocates, and Rust what Rust allocates. Tensors are `at::Tensor*`.

#include <cstddef>
#include <cstdint>

extern "C" {

enum CalmixCode : int { CALMIX_DONE = 0, CALMIX_FAILED = 1, CALMIX_TIMED_OUT = 2 };

// The buffer for an error message: at most `capacity` bytes with the final zero.
struct CalmixErrorBuffer {
  char* text;
  size_t capacity;
};

struct CalmixStore;
struct CalmixGroup;
struct CalmixWatch;

// A `listener` of at least zero is the bound socket of a server, which the store takes over; otherwise a server listens on
// all addresses of this host.
int calmix_store_tcp(
    const char* host, uint16_t port, bool is_server, int listener, int64_t timeout_ms, CalmixStore** store,
    CalmixErrorBuffer error);
int calmix_store_prefix(
    const CalmixStore* inner, const char* prefix, CalmixStore** store, CalmixErrorBuffer error);
// A second connection to the same store, for another thread.
int calmix_store_clone(const CalmixStore* original, CalmixStore** store, CalmixErrorBuffer error);
void calmix_store_free(CalmixStore* store);

int calmix_store_set(const CalmixStore* store, const char* key, const char* value, CalmixErrorBuffer error);
int calmix_store_add(
    const CalmixStore* store, const char* key, int64_t amount, int64_t* sum, CalmixErrorBuffer error);
// Waits for the key up to the store's timeout, and writes its value: at most `capacity` bytes with the final zero.
int calmix_store_get(
    const CalmixStore* store, const char* key, char* value, size_t capacity, CalmixErrorBuffer error);
int calmix_store_wait(const CalmixStore* store, const char* key, int64_t timeout_ms, CalmixErrorBuffer error);
// Sets `all` to whether all keys are set.
int calmix_store_has(
    const CalmixStore* store, const char* const* keys, size_t count, bool* all, CalmixErrorBuffer error);

// Uses the network interface `interface`, or if that is empty, the one with the address `host`.
int calmix_group_gloo(
    const CalmixStore* store, int rank, int size, const char* host, const char* interface, int64_t timeout_ms,
    CalmixGroup** group, CalmixErrorBuffer error);
// Connects this GPU to those of the peers within `patience_ms`. Fails if the shim was compiled without NCCL.
int calmix_group_nccl(
    const CalmixStore* store, int rank, int size, int device, int64_t timeout_ms, int64_t patience_ms,
    CalmixGroup** group, CalmixErrorBuffer error);
// Ends what runs on a GPU. To be called after a failure and before `calmix_group_free`, which waits for it otherwise.
void calmix_group_abort(CalmixGroup* group);
// Closes the connections, which makes the peers' operations fail.
void calmix_group_free(CalmixGroup* group);

// Watches the connection of a Gloo group to a peer, by a receive to which no peer sends. To be freed before the group, whose
// connections it keeps open.
int calmix_watch(const CalmixGroup* group, int peer, CalmixWatch** watch, CalmixErrorBuffer error);
// Returns when `calmix_watch_stop` was called on another thread, or fails when the connection closes.
int calmix_watch_wait(const CalmixWatch* watch, CalmixErrorBuffer error);
void calmix_watch_stop(const CalmixWatch* watch);
void calmix_watch_free(CalmixWatch* watch);

// A collective returns when it has finished on this rank. NCCL's also return when `stop` becomes true.
int calmix_all_reduce(const CalmixGroup* group, void* tensor, const bool* stop, CalmixErrorBuffer error);
int calmix_broadcast(
    const CalmixGroup* group, void* tensor, int root, const bool* stop, CalmixErrorBuffer error);
int calmix_all_gather(
    const CalmixGroup* group, void* output, const void* input, const bool* stop, CalmixErrorBuffer error);
int calmix_all_to_all(
    const CalmixGroup* group, void* output, const void* input, const int64_t* receive, const int64_t* send,
    size_t size, const bool* stop, CalmixErrorBuffer error);
int calmix_barrier(const CalmixGroup* group, const bool* stop, CalmixErrorBuffer error);

}
