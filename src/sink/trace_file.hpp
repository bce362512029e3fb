// The trace file: created whole, extended by whole blocks, never replaced by accident.
// Called under the sink's lock by the draining thread, and by recoverers. Raw system calls; keeps
// no descriptor open.
#pragma once
#include <cstdint>
#include <string_view>

namespace dft::sink {

struct FileState {
  std::uint64_t inode;
  std::uint64_t size;  // whole and ours; 0: does not exist yet
};

// Writes `block` at state.size and advances the state. The first block creates the file under a
// temporary name and renames it, so that an empty trace is never visible; a finished trace of the
// same name is replaced. Returns 0, or -errno: then the file is unchanged. -ESTALE: the file is
// gone, or is not the one we created.
int append(const char* directory, const char* name, std::string_view block, FileState& state,
           unsigned mode) noexcept;

// Removes what a dead writer had started to append. Returns 0, or -errno.
int cut_back(const char* directory, const char* name, const FileState& state) noexcept;

// Changes the owner of the file to this user. Returns 0, or -errno.
int give(const char* directory, const char* name, const FileState& state, unsigned user) noexcept;

// Writes directory + "/" + prefix + name + suffix; false if it does not fit.
bool join(char* to, std::size_t room, const char* directory, const char* prefix, const char* name,
          const char* suffix) noexcept;

}  // namespace dft::sink
