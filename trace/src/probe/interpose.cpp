/// The interposer: stands in front of libc's allocation functions and counts the calls of each thread.
///
/// Everything that allocates in a process comes through here, operator new, libc's own buffers and exception objects
/// included: libc resolves these names to the executable's (glibc manual, "Replacing malloc"). The counters are
/// initial-exec thread-locals, so that reading them neither allocates nor locks, and libc's own entry points are
/// called directly, so that nothing recurses.
#include "../probe_hook.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

extern "C" {
// glibc's entry points beneath malloc and its kin, exported since 2.2.5.
void* __libc_malloc(std::size_t bytes) noexcept;
void* __libc_calloc(std::size_t count, std::size_t bytes) noexcept;
void* __libc_realloc(void* pointer, std::size_t bytes) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t bytes) noexcept;
void* __libc_valloc(std::size_t bytes) noexcept;
void* __libc_pvalloc(std::size_t bytes) noexcept;
void __libc_free(void* pointer) noexcept;
}

namespace {

[[gnu::tls_model("initial-exec")]] constinit thread_local kvwitness::trace::ProbeReading totals{};

constinit std::atomic<std::uint64_t> process_allocations{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

void count_allocation(std::size_t bytes) noexcept {
  process_allocations.fetch_add(1, std::memory_order_relaxed);
  ++totals.allocations;
  totals.bytes += bytes;
}

void count_free() noexcept {
  ++totals.frees;
}

void* counted_realloc(void* pointer, std::size_t bytes) noexcept {
  // As documented for glibc, a size of 0 frees the block and gives none.
  if (pointer == nullptr || bytes != 0) count_allocation(bytes);
  if (pointer != nullptr) count_free();
  return __libc_realloc(pointer, bytes);
}

void* counted_memalign(std::size_t alignment, std::size_t bytes) noexcept {
  count_allocation(bytes);
  return __libc_memalign(alignment, bytes);
}

void* counted_mmap(void* hint, std::size_t bytes, int protection, int flags, int file, std::int64_t offset) noexcept {
  count_allocation(bytes);
  const long address = syscall(SYS_mmap, hint, bytes, protection, flags, file, offset);
  return reinterpret_cast<void*>(address);
}

}  // namespace

extern "C" {

kvwitness::trace::ProbeReading kvwitness_probe_thread_totals() noexcept {
  return totals;
}

std::uint64_t kvwitness_probe_process_allocations() noexcept {
  return process_allocations.load(std::memory_order_relaxed);
}

void* malloc(std::size_t bytes) noexcept {
  count_allocation(bytes);
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  std::size_t asked = 0;
  // An impossible product is libc's to refuse; as a size it would only spoil the sum.
  count_allocation(__builtin_mul_overflow(count, bytes, &asked) ? 0 : asked);
  return __libc_calloc(count, bytes);
}

void* realloc(void* pointer, std::size_t bytes) noexcept {
  return counted_realloc(pointer, bytes);
}

void* reallocarray(void* pointer, std::size_t count, std::size_t bytes) noexcept {
  std::size_t asked = 0;
  if (__builtin_mul_overflow(count, bytes, &asked)) {
    errno = ENOMEM;
    return nullptr;
  }
  return counted_realloc(pointer, asked);
}

void free(void* pointer) noexcept {
  if (pointer != nullptr) count_free();
  __libc_free(pointer);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* pointer = counted_memalign(alignment, bytes);
  if (pointer == nullptr) return ENOMEM;
  *result = pointer;
  return 0;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return counted_memalign(alignment, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return counted_memalign(alignment, bytes);
}

void* valloc(std::size_t bytes) noexcept {
  count_allocation(bytes);
  return __libc_valloc(bytes);
}

void* pvalloc(std::size_t bytes) noexcept {
  count_allocation(bytes);
  return __libc_pvalloc(bytes);
}

void* mmap(void* hint, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  return counted_mmap(hint, bytes, protection, flags, file, offset);
}

void* mmap64(void* hint, std::size_t bytes, int protection, int flags, int file, off64_t offset) noexcept {
  return counted_mmap(hint, bytes, protection, flags, file, offset);
}

void* mremap(void* old_address, std::size_t old_bytes, std::size_t bytes, int flags, ...) noexcept {
  void* fixed = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list rest;
    va_start(rest, flags);
    fixed = va_arg(rest, void*);
    va_end(rest);
  }
  count_allocation(bytes);
  count_free();
  return reinterpret_cast<void*>(syscall(SYS_mremap, old_address, old_bytes, bytes, flags, fixed));
}

int munmap(void* address, std::size_t bytes) noexcept {
  count_free();
  return static_cast<int>(syscall(SYS_munmap, address, bytes));
}

}  // extern "C"
