#pragma once
// The C side of `src/binding.rs`: stores and process groups of libtorch's c10d.
//
// Every function catches what C++ throws and returns a code; the reason is written into `said`, a buffer of the
// caller's. Nothing allocated here is freed by Rust and the other way round. Tensors are `at::Tensor*`.

#include <cstddef>
#include <cstdint>

extern "C" {

enum CalmixCode : int { CALMIX_DONE = 0, CALMIX_FAILED = 1, CALMIX_TIMED_OUT = 2 };

// Where the reason of a failure goes: at most `room` bytes with the final zero.
struct CalmixSaid {
  char* text;
  size_t room;
};

struct CalmixStore;
struct CalmixGroup;

int calmix_store_tcp(
    const char* host, uint16_t port, bool serves, int64_t timeout_ms, CalmixStore** store, CalmixSaid said);
int calmix_store_file(const char* path, int size, int64_t timeout_ms, CalmixStore** store, CalmixSaid said);
int calmix_store_prefix(const CalmixStore* inner, const char* prefix, CalmixStore** store, CalmixSaid said);
// A second connection to the same store, for another thread.
int calmix_store_clone(const CalmixStore* original, CalmixStore** store, CalmixSaid said);
void calmix_store_free(CalmixStore* store);

int calmix_store_set(const CalmixStore* store, const char* key, const char* value, CalmixSaid said);
int calmix_store_add(const CalmixStore* store, const char* key, int64_t amount, int64_t* sum, CalmixSaid said);
// Writes a value of at most `room` bytes with the final zero; waits for the key as long as the store's timeout.
int calmix_store_get(const CalmixStore* store, const char* key, char* value, size_t room, CalmixSaid said);
int calmix_store_wait(const CalmixStore* store, const char* key, int64_t timeout_ms, CalmixSaid said);
// Whether all keys are there.
int calmix_store_has(
    const CalmixStore* store, const char* const* keys, size_t count, bool* all, CalmixSaid said);

// `interface` wins over `host` unless it is empty.
int calmix_group_gloo(
    const CalmixStore* store, int rank, int size, const char* host, const char* interface, int64_t timeout_ms,
    CalmixGroup** group, CalmixSaid said);
// Fails where the shim was compiled without NCCL.
int calmix_group_nccl(
    const CalmixStore* store, int rank, int size, int64_t timeout_ms, CalmixGroup** group, CalmixSaid said);
// Closes the connections, which makes the peers' operations fail.
void calmix_group_free(CalmixGroup* group);

// Operations return when they are finished. One that polls (NCCL) also ends when `stop` is not zero.
int calmix_all_reduce(const CalmixGroup* group, void* tensor, const bool* stop, CalmixSaid said);
int calmix_broadcast(const CalmixGroup* group, void* tensor, int root, const bool* stop, CalmixSaid said);
int calmix_all_gather(
    const CalmixGroup* group, void* output, const void* input, const bool* stop, CalmixSaid said);
int calmix_all_to_all(
    const CalmixGroup* group, void* output, const void* input, const int64_t* receive, const int64_t* send,
    size_t size, const bool* stop, CalmixSaid said);
int calmix_barrier(const CalmixGroup* group, const bool* stop, CalmixSaid said);

}
