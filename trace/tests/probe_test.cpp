#include "kvwitness/trace/probe.hpp"

#include "probe_canary.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kvwitness::trace {
namespace {

void escape(void*& pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
}

/// What the probe counts while `call` runs; asserts nothing itself, for Boost.Test allocates.
template <class Call>
ProbeReading count(Call call) {
  const ProbeRegion region;
  call();
  return region.seen();
}

void take_and_give(void* pointer) {
  escape(pointer);
  std::free(pointer);
}

boost::test_tools::assertion_result if_linked(boost::unit_test::test_unit_id) {
  return probe_state() != ProbeState::not_linked;
}

void check_reading(const ProbeReading& seen, const ProbeReading& expected) {
  BOOST_TEST(seen.allocations == expected.allocations);
  BOOST_TEST(seen.frees == expected.frees);
  BOOST_TEST(seen.bytes == expected.bytes);
}

std::array<CanaryCall, 3> healthy_calls() {
  return {{{"malloc", {1, 1, 192}, {1, 1, 192}},
           {"mmap", {1, 1, 4096}, {1, 1, 4096}},
           {"realloc", {2, 2, 576}, {2, 2, 576}}}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(probe, *boost::unit_test::precondition(if_linked))

BOOST_AUTO_TEST_CASE(quiet_code_counts_nothing) {
  std::array<std::uint64_t, 64> numbers{};
  std::uint64_t sum = 0;
  check_reading(count([&] {
                  for (std::uint64_t round = 0; round < 1000; ++round)
                    for (std::uint64_t& number : numbers) sum += (number += round);
                }),
                {0, 0, 0});
  BOOST_TEST(sum != 0U);
}

BOOST_AUTO_TEST_CASE(each_function_of_the_malloc_family_counts_once_with_its_bytes) {
  check_reading(count([] { take_and_give(std::malloc(100)); }), {1, 1, 100});
  check_reading(count([] { take_and_give(std::calloc(7, 30)); }), {1, 1, 210});
  check_reading(count([] { take_and_give(std::realloc(nullptr, 55)); }), {1, 1, 55});
  check_reading(count([] { take_and_give(reallocarray(nullptr, 5, 11)); }), {1, 1, 55});
  check_reading(count([] { take_and_give(std::aligned_alloc(64, 128)); }), {1, 1, 128});
  check_reading(count([] { take_and_give(memalign(64, 100)); }), {1, 1, 100});
  check_reading(count([] { take_and_give(valloc(100)); }), {1, 1, 100});
  check_reading(count([] { take_and_give(pvalloc(100)); }), {1, 1, 100});
  check_reading(count([] { std::free(nullptr); }), {0, 0, 0});
}

BOOST_AUTO_TEST_CASE(posix_memalign_serves_and_refuses_as_posix_says) {
  void* pointer = nullptr;
  int result = -1;
  check_reading(count([&] {
                  result = posix_memalign(&pointer, 256, 100);
                  std::free(pointer);
                }),
                {1, 1, 100});
  BOOST_TEST(result == 0);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(pointer) % 256 == 0U);
  BOOST_TEST(posix_memalign(&pointer, 4, 100) == EINVAL);
  BOOST_TEST(posix_memalign(&pointer, 24, 100) == EINVAL);
}

BOOST_AUTO_TEST_CASE(realloc_is_an_allocation_and_a_free) {
  check_reading(count([] {
                  void* pointer = std::malloc(10);
                  escape(pointer);
                  take_and_give(std::realloc(pointer, 1000));
                }),
                {2, 2, 1010});
  check_reading(count([] {
                  void* pointer = std::malloc(10);
                  escape(pointer);
                  void* none = std::realloc(pointer, 0);
                  escape(none);
                }),
                {1, 1, 10});
}

BOOST_AUTO_TEST_CASE(products_that_overflow_are_refused_and_do_not_spoil_the_sum) {
  volatile std::size_t huge = SIZE_MAX / 2;
  void* pointer = const_cast<std::size_t*>(&huge);
  check_reading(count([&] { pointer = std::calloc(huge, 3); }), {1, 0, 0});
  BOOST_TEST(pointer == nullptr);
  errno = 0;
  check_reading(count([&] { pointer = reallocarray(nullptr, huge, 3); }), {0, 0, 0});
  BOOST_TEST(pointer == nullptr);
  BOOST_TEST(errno == ENOMEM);
}

BOOST_AUTO_TEST_CASE(every_operator_new_counts) {
  constexpr std::align_val_t kAligned{128};
  check_reading(count([] {
                  void* pointer = ::operator new(40);
                  escape(pointer);
                  ::operator delete(pointer);
                }),
                {1, 1, 40});
  check_reading(count([] {
                  void* pointer = ::operator new[](40, std::nothrow);
                  escape(pointer);
                  ::operator delete[](pointer);
                }),
                {1, 1, 40});
  check_reading(count([=] {
                  void* pointer = ::operator new(256, kAligned);
                  escape(pointer);
                  ::operator delete(pointer, kAligned);
                }),
                {1, 1, 256});
}

BOOST_AUTO_TEST_CASE(library_code_counts_too) {
  std::vector<int> numbers;
  check_reading(count([&] { numbers.reserve(1000); }), {1, 0, 4000});
  BOOST_TEST(count([] {
               try {
                 throw std::runtime_error("a text that is too long to be kept inside of the string object itself");
               } catch (const std::exception&) {
               }
             }).allocations >= 2U);
}

BOOST_AUTO_TEST_CASE(mappings_count_and_work) {
  void* page = nullptr;
  void* moved = nullptr;
  const ProbeReading seen = count([&] {
    page = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static_cast<char*>(page)[8191] = 7;
    moved = mremap(page, 8192, 65536, MREMAP_MAYMOVE);
    static_cast<char*>(moved)[65535] = static_cast<char*>(moved)[8191];
    munmap(moved, 65536);
  });
  BOOST_TEST(page != MAP_FAILED);
  BOOST_TEST(moved != MAP_FAILED);
  check_reading(seen, {2, 2, 8192 + 65536});
}

BOOST_AUTO_TEST_CASE(a_failed_mapping_sets_errno) {
  errno = 0;
  void* none = mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  BOOST_TEST(none == MAP_FAILED);
  BOOST_TEST(errno == EINVAL);
}

BOOST_AUTO_TEST_CASE(totals_are_exact_over_many_calls) {
  // An average rounds 99 allocations in 100 steps down to none; a total does not.
  std::uint64_t allocations = 0;
  for (int step = 0; step < 100; ++step)
    allocations += count([&] {
                     if (step != 50) take_and_give(std::malloc(16));
                   }).allocations;
  BOOST_TEST(allocations == 99U);
}

BOOST_AUTO_TEST_CASE(threads_are_counted_apart) {
  ProbeReading worker_seen;
  ProbeReading main_seen;
  std::thread worker([&] {
    worker_seen = count([] {
      for (int i = 0; i < 1000; ++i) take_and_give(std::malloc(8));
    });
  });
  {
    const ProbeRegion region;
    worker.join();
    main_seen = region.seen();
  }
  check_reading(worker_seen, {1000, 1000, 8000});
  BOOST_TEST(main_seen.allocations == 0U);
  BOOST_TEST(main_seen.bytes == 0U);
}

BOOST_AUTO_TEST_CASE(what_other_threads_allocate_is_foreign) {
  std::atomic<bool> go{false};
  std::atomic<bool> done{false};
  std::thread worker([&] {
    while (!go) std::this_thread::yield();
    for (int i = 0; i < 50; ++i) take_and_give(std::malloc(8));
    done = true;
  });
  std::uint64_t quiet = 1;
  std::uint64_t foreign = 0;
  {
    const ProbeRegion region;
    take_and_give(std::malloc(8));
    quiet = region.foreign_allocations();
    go = true;
    while (!done) std::this_thread::yield();
    foreign = region.foreign_allocations();
  }
  worker.join();
  BOOST_TEST(quiet == 0U);
  BOOST_TEST(foreign == 50U);
}

BOOST_AUTO_TEST_CASE(a_touched_page_is_a_fault_of_its_thread) {
  constexpr std::size_t kPages = 64;
  void* pages = mmap(nullptr, kPages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  BOOST_REQUIRE(pages != MAP_FAILED);
  madvise(pages, kPages * 4096, MADV_NOHUGEPAGE);
  const std::uint64_t before = thread_minor_faults();
  for (std::size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(pages)[i * 4096] = 1;
  BOOST_TEST(thread_minor_faults() - before >= kPages);
  munmap(pages, kPages * 4096);
}

BOOST_AUTO_TEST_CASE(the_canary_sees_every_call_exactly) {
  for (const CanaryCall& call : release_canary()) {
    BOOST_TEST_CONTEXT(call.name) {
      BOOST_TEST(call.expected.allocations >= 1U);
      check_reading(call.seen, call.expected);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(probe_canary)

BOOST_AUTO_TEST_CASE(a_full_count_passes) {
  BOOST_TEST(first_miscounted(healthy_calls()).empty());
}

BOOST_AUTO_TEST_CASE(a_call_that_goes_unseen_is_named) {
  auto calls = healthy_calls();
  calls[1].seen = {};
  BOOST_TEST(first_miscounted(calls) == "mmap");
}

BOOST_AUTO_TEST_CASE(a_free_that_goes_unseen_is_named) {
  auto calls = healthy_calls();
  calls[0].seen.frees = 0;
  BOOST_TEST(first_miscounted(calls) == "malloc");
}

BOOST_AUTO_TEST_CASE(a_call_counted_twice_or_with_other_bytes_is_named) {
  auto twice = healthy_calls();
  twice[2].seen.allocations = 3;
  BOOST_TEST(first_miscounted(twice) == "realloc");
  auto bytes = healthy_calls();
  bytes[2].seen.bytes = 575;
  BOOST_TEST(first_miscounted(bytes) == "realloc");
}

#ifdef KVWITNESS_PROBE_LINKED
BOOST_AUTO_TEST_CASE(with_the_probe_linked_it_measures) {
  BOOST_TEST((probe_state() == ProbeState::measuring));
  BOOST_TEST(probe_state_text() == "measuring");
}
#else
BOOST_AUTO_TEST_CASE(without_a_probe_nothing_is_measured) {
  BOOST_TEST((probe_state() == ProbeState::not_linked));
  void* pointer = nullptr;
  const ProbeReading seen = count([&] { pointer = std::malloc(100); });
  take_and_give(pointer);
  check_reading(seen, {0, 0, 0});
  BOOST_TEST(probe_state_text().starts_with("unmeasured: "));
}
#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kvwitness::trace
