#include "intercept/exec_target.hpp"

#include <elf.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/lock.hpp"
#include "base/signals.hpp"
#include "intercept/intercept.hpp"
#include "session/session.hpp"

namespace dft::intercept {
namespace {

using session::Untraced;

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
constexpr int kMachine = EM_NONE;
#endif

constexpr int kMostInterpreters = 4;

// Of a script: the program after "#!".
bool read_interpreter(char* text, std::size_t n, char (&to)[256]) {
  text[n] = '\0';
  char* p = text + 2;
  while (*p == ' ' || *p == '\t') ++p;
  const std::size_t length = std::strcspn(p, " \t\n");
  if (length == 0 || length >= sizeof to) return false;
  std::memcpy(to, p, length);
  to[length] = '\0';
  return true;
}

// Whether a PT_NOTE segment holds the build id that Go's linker writes.
bool holds_go_note(int fd, const Elf64_Phdr& part) {
  constexpr std::uint32_t kGoBuildId = 4;
  constexpr std::uint64_t kMostNotes = 4096;
  const std::uint64_t end = part.p_offset + std::min<std::uint64_t>(part.p_filesz, kMostNotes);
  for (std::uint64_t at = part.p_offset; at + sizeof(Elf64_Nhdr) + 4 <= end;) {
    struct {
      Elf64_Nhdr head;
      char name[4];
    } note{};
    if (sys::pread(fd, &note, sizeof note, at) != sizeof note) return false;
    if (note.head.n_type == kGoBuildId && note.head.n_namesz == 4 &&
        std::memcmp(note.name, "Go\0", 4) == 0) {
      return true;
    }
    const auto padded = [](std::uint64_t n) { return (n + 3) & ~std::uint64_t{3}; };
    at += sizeof(Elf64_Nhdr) + padded(note.head.n_namesz) + padded(note.head.n_descsz);
  }
  return false;
}

struct Loading {
  char loader[256] = {};  // that the program names
  bool is_go = false;
};

// False for a program that names no loader.
bool read_segments(int fd, const Elf64_Ehdr& header, Loading& out) {
  for (int i = 0; i < header.e_phnum && i < 64; ++i) {
    Elf64_Phdr part;
    const std::uint64_t at = header.e_phoff + static_cast<std::uint64_t>(i) * sizeof part;
    if (sys::pread(fd, &part, sizeof part, at) != sizeof part) break;
    if (part.p_type == PT_NOTE) out.is_go |= holds_go_note(fd, part);
    if (part.p_type == PT_INTERP) sys::pread(fd, out.loader, sizeof out.loader - 1, part.p_offset);
  }
  return out.loader[0] != '\0';
}

// The pointer may be bad: the kernel copies from it, or fails with EFAULT.
bool copy_from(const void* from, void* to, std::size_t n) {
  const iovec there{const_cast<void*>(from), n};
  const iovec here{to, n};
  return sys::call(SYS_process_vm_readv, sys::process_id(), &here, 1, &there, 1, 0) ==
         static_cast<long>(n);
}

// The first program of that name in PATH; false when there is none.
bool search_path(const char* name, char (&to)[4096]) {
  const char* path = ::getenv("PATH");
  std::string_view rest(path != nullptr ? path : "/bin:/usr/bin");
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string_view directory = rest.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    const int n = std::snprintf(to, sizeof to, "%.*s/%s", static_cast<int>(directory.size()),
                                directory.data(), name);
    if (n < 0 || static_cast<std::size_t>(n) >= sizeof to) continue;
    if (sys::call(SYS_faccessat, AT_FDCWD, to, X_OK) == 0) return true;
  }
  return false;
}

Untraced look_at(const char* path, int depth) {
  const int fd = sys::open(path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return Untraced::kNo;  // the exec will fail by itself
  struct stat info{};
  alignas(Elf64_Ehdr) char head[256];
  const bool regular = sys::status(fd, &info) == 0 && S_ISREG(info.st_mode);
  const long n = regular ? sys::pread(fd, head, sizeof head - 1, 0) : 0;
  Untraced why = Untraced::kNo;
  char interpreter[256];
  bool script = false;
  Loading loading;
  if (n > 2 && head[0] == '#' && head[1] == '!') {
    script = read_interpreter(head, static_cast<std::size_t>(n), interpreter);
  } else if (n >= static_cast<long>(sizeof(Elf64_Ehdr)) &&
             std::memcmp(head, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr header;
    std::memcpy(&header, head, sizeof header);
    const bool gains =
        ((info.st_mode & S_ISUID) != 0 &&
         info.st_uid != static_cast<uid_t>(sys::call(SYS_getuid))) ||
        ((info.st_mode & S_ISGID) != 0 && info.st_gid != static_cast<gid_t>(sys::call(SYS_getgid)));
    if (head[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
      why = Untraced::kOtherArchitecture;
    } else if (!read_segments(fd, header, loading)) {
      why = Untraced::kStatic;
    } else if (std::strstr(loading.loader, "ld-musl") != nullptr) {
      why = Untraced::kOtherLibc;
    } else if (gains) {
      why = Untraced::kSetUser;
    } else if (loading.is_go) {
      why = Untraced::kGo;
    }
  }
  sys::close(fd);
  return script && depth < kMostInterpreters ? look_at(interpreter, depth + 1) : why;
}

}  // namespace

bool is_preloaded(char* const* environment) noexcept {
  constexpr std::string_view kName = "LD_PRELOAD=";
  if (environment == nullptr) return false;
  for (int i = 0; i < 65536; ++i) {
    const char* entry = nullptr;
    char start[kName.size()];
    if (!copy_from(environment + i, &entry, sizeof entry)) return true;
    if (entry == nullptr) return false;
    if (!copy_from(entry, start, sizeof start)) continue;
    // A copy of ours: the whole of it can be read.
    if (std::string_view(start, sizeof start) == kName)
      return std::strstr(entry, "libdftracer_preload") != nullptr;
  }
  return false;
}

Untraced why_untraced(const char* path, bool search, char* const* environment,
                      char (&name)[56]) noexcept {
  static Lock lock;
  static char found[4096];
  Locked locked(lock);
  const bool by_name = search && std::strchr(path, '/') == nullptr;
  if (by_name && !search_path(path, found)) return Untraced::kNo;
  const char* program = by_name ? found : path;
  const char* slash = std::strrchr(program, '/');
  std::snprintf(name, sizeof name, "%.55s", slash != nullptr ? slash + 1 : program);
  const Untraced why = look_at(program, 0);
  if (why != Untraced::kNo && !session::is_partly_traced(why)) return why;
  return is_preloaded(environment) ? why : Untraced::kNotPreloaded;
}

Program look_at_program(const char* path, bool search, char* const* environment) noexcept {
  Program program;
  if (!is_preload()) return program;
  SlowPath slow;
  program.why = why_untraced(path, search, environment, program.name);
  program.must_not_preload = program.why == Untraced::kOtherLibc && is_preloaded(environment);
  return program;
}

void note_program(const Program& program) noexcept {
  if (program.why != Untraced::kNo) session::note_untraced(program.name, program.why);
}

}  // namespace dft::intercept
