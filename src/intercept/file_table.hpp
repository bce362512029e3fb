// The files that calls are about: each path interned once, and which descriptor is open on which.
// Used on the program's threads, also inside signal handlers: a lookup takes no lock and little
// stack; a new path takes the slow path.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "buffer/lane.hpp"
#include "intercept/socket_names.hpp"

namespace dft::intercept {

// Lives as long as the process.
struct File {
  std::atomic<std::uint64_t> announced;  // the generation whose trace has its FH record
  std::uint64_t hash;                    // 0: it has no name
  std::uint64_t key;                     // for looking up what lies below it
  std::uint32_t length;                  // 0: too many files, its path is not kept
  bool traced;
  Peers peers;  // of a socket that is not connected: how its calls name their peers
  char path[];
};

inline constexpr int kDescriptorBlock = 1024;
inline constexpr int kDescriptorBlocks = 1024;
using DescriptorBlock = std::atomic<File*>[kDescriptorBlock];
// Of the lowest descriptors, nearly all that programs use.
[[gnu::visibility("hidden")]] extern DescriptorBlock g_first_descriptors;

// Stands for a descriptor that has no name in /proc either.
extern File& g_nameless;
// Stands for a file opened outside the traced directories, whose path is not interned.
extern File& g_elsewhere;

// Looks the descriptor up in /proc.
File* discover(int fd) noexcept;
File* look_up(int fd) noexcept;

// The file that a descriptor is open on; never null. One whose open was not seen is looked
// up in /proc.
[[gnu::always_inline]] inline File* file_of(int fd) noexcept {
  if (static_cast<unsigned>(fd) < kDescriptorBlock) [[likely]] {
    File* file = g_first_descriptors[fd].load(std::memory_order_acquire);
    if (file != nullptr) [[likely]]
      return file;
  }
  return look_up(fd);
}
// Sets the file of a descriptor; null: look it up when it is used.
void set_file_of(int fd, File* file) noexcept;
// `to` is a copy of `from`.
void copy_file_of(int from, int to) noexcept;
// For a descriptor that is about to be closed: returns its file and forgets it.
File* take_file_of(int fd) noexcept;
void forget_descriptors(unsigned first, unsigned last) noexcept;

// A socket has got a peer: the descriptor is named after it from now on. Returns its file.
File* name_connection(int fd, const SocketFacts& facts) noexcept;
// The file of a peer that a call on a socket has named, or tried to; the descriptor keeps its own.
File* file_of_peer(int fd, const File& socket, const SocketAddress& peer) noexcept;

// Relative paths begin at `directory`: a descriptor, or AT_FDCWD. Reads `path`, so only after the
// kernel has accepted it. Never null.
File* file_at(int directory, const char* path) noexcept;
inline File* file_at(const char* path) noexcept { return file_at(-100, path); }
bool may_be_traced(const char* path) noexcept;

// The current directory is about to change, and has changed.
void know_cwd() noexcept;
void forget_cwd() noexcept;

// Puts the FH record into the thread's trace.
void announce(buffer::ThreadState& t, File& file, int fd) noexcept;

// New directories to trace, or the first ones: what is known about descriptors and paths is
// forgotten. False without memory.
bool set_filter(const class Filter* filter) noexcept;

}  // namespace dft::intercept
