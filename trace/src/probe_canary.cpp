#include "probe_canary.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <thread>

namespace kvwitness::trace {
namespace {

constexpr std::size_t kBytes = 192;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kAlignment = 64;

/// The compiler may leave out a pair of malloc and free whose pointer it can follow; past this it cannot.
void escape(void*& pointer) noexcept {
  asm volatile("" : "+r"(pointer) : : "memory");
}

template <class Call>
CanaryCall watch(std::string_view name, ProbeReading expected, Call call) {
  const ProbeRegion region;
  call();
  return {name, expected, region.seen()};
}

template <class Take, class Give>
CanaryCall watch_pair(std::string_view name, std::uint64_t bytes, Take take, Give give) {
  return watch(name, {1, 1, bytes}, [&] {
    void* pointer = take();
    escape(pointer);
    give(pointer);
  });
}

void call_realloc() {
  void* pointer = std::malloc(kBytes);
  escape(pointer);
  void* grown = std::realloc(pointer, 2 * kBytes);
  escape(grown);
  std::free(grown);
}

CanaryCall watch_worker() {
  CanaryCall call;
  std::thread worker([&call] {
    call = watch_pair(
        "malloc on another thread", kBytes, [] { return std::malloc(kBytes); }, [](void* p) { std::free(p); });
  });
  worker.join();
  return call;
}

void* map_page() {
  return mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

std::array<CanaryCall, kCanaryCalls> release_canary() {
  const auto give = [](void* pointer) { std::free(pointer); };
  constexpr std::align_val_t kAligned{kAlignment};
  return {
      watch_pair(
          "malloc", kBytes, [] { return std::malloc(kBytes); }, give),
      watch_pair(
          "calloc", kBytes, [] { return std::calloc(kBytes / 8, 8); }, give),
      watch("realloc", {2, 2, 3 * kBytes}, call_realloc),
      watch_pair(
          "operator new", kBytes, [] { return ::operator new(kBytes); }, [](void* p) { ::operator delete(p); }),
      watch_pair(
          "aligned operator new", kBytes, [=] { return ::operator new(kBytes, kAligned); },
          [=](void* p) { ::operator delete(p, kAligned); }),
      watch_pair(
          "memalign", kBytes, [] { return memalign(kAlignment, kBytes); }, give),
      watch_pair(
          "posix_memalign", kBytes,
          [] {
            void* pointer = nullptr;
            return posix_memalign(&pointer, kAlignment, kBytes) == 0 ? pointer : nullptr;
          },
          give),
      watch_pair("mmap", kPageBytes, map_page, [](void* p) { munmap(p, kPageBytes); }),
      watch_worker(),
  };
}

std::string_view first_miscounted(std::span<const CanaryCall> calls) noexcept {
  const auto miscounted =
      std::ranges::find_if(calls, [](const CanaryCall& call) { return call.seen != call.expected; });
  return miscounted != calls.end() ? miscounted->name : std::string_view();
}

}  // namespace kvwitness::trace
