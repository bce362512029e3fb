// The trace file: made whole, extended by whole blocks, never replaced by accident.
// Called under the sink's lock by whoever drains, and by recoverers. Raw system calls, no kept
// descriptor.
#pragma once
#include <cstdint>
#include <string_view>

namespace dft::sink {

struct FileState {
  std::uint64_t inode;
  std::uint64_t size;  // whole and ours; 0: not made yet
};

// Puts `block` at state.size and moves the state on. The first block makes the file under a passing
// name and renames it, so nobody ever sees an empty one; whatever finished trace had the name is
// replaced. 0, or -errno: then the file is as before. -ESTALE: the file is gone, or is not the one
// we made.
int append(const char* directory, const char* name, std::string_view block, FileState& state,
           unsigned mode) noexcept;

// Cuts what a dead writer had begun. 0, or -errno.
int cut_back(const char* directory, const char* name, const FileState& state) noexcept;

// The file belongs to this user from now on. 0, or -errno.
int give(const char* directory, const char* name, const FileState& state, unsigned user) noexcept;

// directory + "/" + prefix + name + suffix; false when it does not fit.
bool join(char* to, std::size_t room, const char* directory, const char* prefix, const char* name,
          const char* suffix) noexcept;

}  // namespace dft::sink
