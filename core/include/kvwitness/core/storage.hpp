/// Owned memory of a store.
#pragma once

#include "kvwitness/core/lifetime.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvwitness::core {

/// One block of memory, cleared, aligned to 64 bytes; from 2 MiB on to 2 MiB, of huge pages where there are. Owns it;
/// views into it only look. Movable: the block stays where it is, and views into it stay good.
class Storage {
 public:
  /// Closed from the start.
  Storage() = default;
  /// `count` items of `bytes_each`. Throws trace::Error where the product does not fit into 63 bits or the memory
  /// cannot be had. 0 bytes are a storage without memory.
  Storage(std::uint64_t count, std::uint64_t bytes_each);
  ~Storage() { close(); }
  Storage(Storage&& other) noexcept;
  Storage& operator=(Storage&& other) noexcept;

  /// Gives the memory back. Views into it are refused from now on. A second close does nothing.
  void close() noexcept;
  [[nodiscard]] bool closed() const noexcept { return id_ == 0; }

  /// Id of the block, unique in the run; 0 where closed.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {block_, size_bytes_}; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {block_, size_bytes_}; }
  /// Dies with `close`; dead where closed.
  [[nodiscard]] LifeToken life() const noexcept { return closed() ? LifeToken::dead() : lifetime_.token(); }

 private:
  std::byte* block_ = nullptr;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t id_ = 0;
  Lifetime lifetime_;
};

}  // namespace kvwitness::core
