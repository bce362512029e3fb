// Wrappers written by hand: calls that begin, replace or end a process, or change what it may do.
#include <spawn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "hooks/hooks.hpp"
#include "intercept/exec_target.hpp"
#include "intercept/intercept.hpp"
#include "intercept/processes.hpp"
#include "intercept/vfork.hpp"
#include "intercept/wrap_macros.hpp"
#include "session/secrets.hpp"
#include "session/session.hpp"

using namespace dft::intercept;  // NOLINT: as in wrap_table.cpp
namespace record = dft::record;
namespace session = dft::session;
namespace sys = dft::sys;

#pragma GCC diagnostic ignored "-Wvla"

namespace {

// A new process, as its parent sees it; the child records its own calls.
template <Row row, class Call>
pid_t fork_call(Call call) {
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  if (t == nullptr) return call();
  session::will_fork();
  const std::uint64_t start = record::ticks();
  const pid_t ret = call();
  if (ret == 0) return ret;
  record_call<row>(*t, nullptr, -1, start, record::ticks(), ret);
  return ret;
}

// A program that cannot be traced does not continue the trace, so it ends here.
void before_exec(bool ends_here) {
  if (ends_here) {
    session::will_exec_untraced();
  } else {
    session::will_exec();
  }
}

template <class Call>
int call_without_preload(char* const* environment, Call call) {
  std::size_t count = 0;
  while (environment[count] != nullptr) ++count;
  char* kept[count + 1];
  std::size_t n = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::strncmp(environment[i], "LD_PRELOAD=", 11) != 0) kept[n++] = environment[i];
  }
  kept[n] = nullptr;
  return call(kept);
}

// An exec: recorded before the call, which does not return, and once more if it fails.
template <Row row, class Call>
int exec_call(const char* path, bool search, char* const* environment, Call call) {
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  if (t == nullptr) return call(nullptr);
  const bool readable = kernel_reads(path);
  const bool exists = readable && (search || sys::call(SYS_faccessat, AT_FDCWD, path, X_OK) == 0);
  const bool plain_name = search && readable && std::strchr(path, '/') == nullptr;
  File* file = readable && !plain_name ? file_at(path) : nullptr;
  const std::uint64_t start = record::ticks();
  Program program;
  if (exists) {
    program = look_at_program(path, search, environment);
    note_program(program);
    const OptionalArg untraced{Key::untraced, program.why != session::Untraced::kNo,
                               static_cast<std::int64_t>(program.why)};
    record_call<row>(*t, file, -1, start, start, Void{},
                     TextArg{Key::file, plain_name ? path : nullptr}, untraced);
    if (!in_vfork_child()) {
      const bool goes_on = !untraced.given || session::is_partly_traced(program.why);
      before_exec(!goes_on || !is_preload());
    }
  }
  const int ret =
      program.must_not_preload ? call_without_preload(environment, call) : call(nullptr);
  const sys::KeepErrno keep;
  if (exists && !in_vfork_child()) session::exec_failed();
  t = watch(Category::POSIX);
  if (t != nullptr) {
    record_call<row>(*t, file, -1, start, record::ticks(), ret,
                     TextArg{Key::file, plain_name ? path : nullptr});
  }
  return ret;
}

// Returns only if the exec failed.
template <class Call>
int try_exec(char* const* environment, Call call) {
  if (in_vfork_child()) return call();
  before_exec(!is_preload() || !is_preloaded(environment));
  const int ret = call();
  const sys::KeepErrno keep;
  session::exec_failed();
  return ret;
}

// posix_spawn: fork and exec in one call.
template <Row row, class Call>
int spawn_call(pid_t* child, const char* path, bool search, char* const* environment, Call call) {
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  if (t == nullptr) return call(child, environment);
  session::will_fork();
  const Program program =
      kernel_reads(path) ? look_at_program(path, search, environment) : Program{};
  pid_t pid = 0;
  const auto start_it = [&](char* const* with) { return call(&pid, with); };
  const std::uint64_t start = record::ticks();
  const int ret = program.must_not_preload ? call_without_preload(environment, start_it)
                                           : start_it(environment);
  const std::uint64_t end = record::ticks();
  if (ret == 0 && child != nullptr) *child = pid;
  const bool plain_name = search && ret != EFAULT && std::strchr(path, '/') == nullptr;
  if (ret == 0) note_program(program);
  File* file = ret != EFAULT && !plain_name ? file_at(path) : nullptr;
  record_call<row>(*t, file, -1, start, end, ret, TextArg{Key::file, plain_name ? path : nullptr},
                   OptionalArg{Key::pid, ret == 0, pid});
  return ret;
}

// Only where there is a trace already: a forked child that did nothing else gets none for this.
template <Row row>
void record_leaving(int status) {
  if (!dft::buffer::generation_is_live()) return;
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  const std::uint64_t now = record::ticks();
  if (t != nullptr) record_call<row>(*t, nullptr, -1, now, now, Void{}, field(Key::status, status));
}

// A command for a shell as it is recorded: without what looks like a secret.
class ShownCommand {
 public:
  explicit ShownCommand(const char* command) : text_(kernel_reads(command) ? command : nullptr) {
    if (text_ == nullptr || !session::config().mask_secrets) return;
    dft::SlowPath slow;
    const bool fine =
        session::mask_secrets(text_, masked_) && masked_.append(std::string_view("\0", 1));
    text_ = fine ? masked_.view().data() : nullptr;
  }
  [[nodiscard]] const char* text() const { return text_; }

 private:
  const char* text_;
  dft::sink::MmapBuffer masked_;
};

// The arguments of execl and its like, as the list that the kernel wants.
#define DFT_COLLECT(first, vector)                                            \
  va_list list;                                                               \
  std::size_t count = 1;                                                      \
  va_start(list, first);                                                      \
  for (const char* a = first; a != nullptr; a = va_arg(list, char*)) ++count; \
  va_end(list);                                                               \
  char* vector[count];                                                        \
  vector[0] = const_cast<char*>(first);                                       \
  va_start(list, first);                                                      \
  for (std::size_t i = 1; first != nullptr && i < count; ++i) vector[i] = va_arg(list, char*)

}  // namespace

extern "C" pid_t DFT_WRAPPER(fork)() {
  return fork_call<Row::fork>([] { return real<pid_t()>(Row::fork)(); });
}
extern "C" pid_t DFT_WRAPPER(__fork)() {
  return fork_call<Row::__fork>([] { return real<pid_t()>(Row::__fork)(); });
}
extern "C" pid_t DFT_WRAPPER(_Fork)() {
  return fork_call<Row::_Fork>([] { return real<pid_t()>(Row::_Fork)(); });
}
// The caller exits without an end record; its child completes the trace.
extern "C" int DFT_WRAPPER(daemon)(int nochdir, int noclose) {
  if (watch(Category::POSIX) != nullptr) session::will_fork();
  const int result =
      DFT_PROBE(POSIX, daemon, int, (int, int), (nochdir, noclose), on_process(), moves_nothing());
  if (result == 0) {
    dft::buffer::g_forked.store(true);
    forget_cwd();
    if (noclose == 0) forget_descriptors(0, 2);
  }
  return result;
}

extern "C" int DFT_WRAPPER(posix_spawn)(pid_t* child, const char* path, const void* actions,
                                        const void* attributes, char* const argv[],
                                        char* const envp[]) {
  using Function = int(pid_t*, const char*, const void*, const void*, char* const*, char* const*);
  return spawn_call<Row::posix_spawn>(child, path, false, envp, [&](pid_t* to, char* const* with) {
    return real<Function>(Row::posix_spawn)(to, path, actions, attributes, argv, with);
  });
}
extern "C" int DFT_WRAPPER(posix_spawnp)(pid_t* child, const char* path, const void* actions,
                                         const void* attributes, char* const argv[],
                                         char* const envp[]) {
  using Function = int(pid_t*, const char*, const void*, const void*, char* const*, char* const*);
  return spawn_call<Row::posix_spawnp>(child, path, true, envp, [&](pid_t* to, char* const* with) {
    return real<Function>(Row::posix_spawnp)(to, path, actions, attributes, argv, with);
  });
}
extern "C" int DFT_WRAPPER(system)(const char* command) {
  const bool watched = watch(Category::POSIX) != nullptr;
  if (watched) session::will_fork();
  const ShownCommand shown(watched ? command : nullptr);
  return DFT_PROBE(POSIX, system, int, (const char*), (command), on_process(), moves_nothing(),
                   DFT_STR(command, shown.text()));
}
#define DFT_POPEN(symbol)                                                                          \
  extern "C" FILE* DFT_WRAPPER(symbol)(const char* command, const char* mode) {                    \
    const bool watched = watch(Category::STDIO) != nullptr;                                        \
    if (watched) session::will_fork();                                                             \
    const ShownCommand shown(watched ? command : nullptr);                                         \
    FILE* result =                                                                                 \
        DFT_PROBE(STDIO, symbol, FILE*, (const char*, const char*), (command, mode), on_process(), \
                  moves_nothing(), DFT_STR(command, shown.text()), DFT_STR(mode, mode));           \
    if (result != nullptr) set_file_of(descriptor_of(result), nullptr);                            \
    return result;                                                                                 \
  }
DFT_POPEN(popen)
DFT_POPEN(_IO_popen)

namespace {

using ExecEnvironment = char* const*;

// The process's own environment, unless the call passes another.
int exec_path(const char* path, char* const* argv, ExecEnvironment instead) {
  if (instead == nullptr) return real<int(const char*, char* const*)>(Row::execv)(path, argv);
  return real<int(const char*, char* const*, ExecEnvironment)>(Row::execve)(path, argv, instead);
}
int exec_name(const char* name, char* const* argv, ExecEnvironment instead) {
  if (instead == nullptr) return real<int(const char*, char* const*)>(Row::execvp)(name, argv);
  return real<int(const char*, char* const*, ExecEnvironment)>(Row::execvpe)(name, argv, instead);
}

}  // namespace

extern "C" int DFT_WRAPPER(execve)(const char* path, char* const argv[], char* const envp[]) {
  return exec_call<Row::execve>(path, false, envp, [&](ExecEnvironment instead) {
    return real<int(const char*, char* const*, ExecEnvironment)>(Row::execve)(
        path, argv, instead != nullptr ? instead : envp);
  });
}
extern "C" int DFT_WRAPPER(execv)(const char* path, char* const argv[]) {
  return exec_call<Row::execv>(path, false, environ, [&](ExecEnvironment instead) {
    return exec_path(path, argv, instead);
  });
}
extern "C" int DFT_WRAPPER(execvp)(const char* path, char* const argv[]) {
  return exec_call<Row::execvp>(
      path, true, environ, [&](ExecEnvironment instead) { return exec_name(path, argv, instead); });
}
extern "C" int DFT_WRAPPER(execvpe)(const char* path, char* const argv[], char* const envp[]) {
  return exec_call<Row::execvpe>(path, true, envp, [&](ExecEnvironment instead) {
    return real<int(const char*, char* const*, ExecEnvironment)>(Row::execvpe)(
        path, argv, instead != nullptr ? instead : envp);
  });
}
extern "C" int DFT_WRAPPER(execl)(const char* path, const char* first, ...) {
  DFT_COLLECT(first, argv);
  va_end(list);
  return exec_call<Row::execl>(path, false, environ, [&](ExecEnvironment instead) {
    return exec_path(path, argv, instead);
  });
}
extern "C" int DFT_WRAPPER(execle)(const char* path, const char* first, ...) {
  DFT_COLLECT(first, argv);
  char** envp = va_arg(list, char**);
  va_end(list);
  return exec_call<Row::execle>(path, false, envp, [&](ExecEnvironment instead) {
    return real<int(const char*, char* const*, ExecEnvironment)>(Row::execve)(
        path, argv, instead != nullptr ? instead : envp);
  });
}
extern "C" int DFT_WRAPPER(execlp)(const char* path, const char* first, ...) {
  DFT_COLLECT(first, argv);
  va_end(list);
  return exec_call<Row::execlp>(
      path, true, environ, [&](ExecEnvironment instead) { return exec_name(path, argv, instead); });
}
extern "C" int DFT_WRAPPER(fexecve)(int fd, char* const argv[], char* const envp[]) {
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  const auto call = [&] {
    return real<int(int, char* const*, char* const*)>(Row::fexecve)(fd, argv, envp);
  };
  if (t == nullptr) return call();
  const std::uint64_t start = record::ticks();
  record_call<Row::fexecve>(*t, file_of(fd), fd, start, start, Void{});
  return try_exec(envp, call);
}
extern "C" int DFT_WRAPPER(execveat)(int dirfd, const char* path, char* const argv[],
                                     char* const envp[], int flags) {
  const auto call = [&] {
    return real<int(int, const char*, char* const*, char* const*, int)>(Row::execveat)(
        dirfd, path, argv, envp, flags);
  };
  dft::buffer::ThreadState* t = watch(Category::POSIX);
  if (t == nullptr || !kernel_reads(path)) return call();
  const std::uint64_t start = record::ticks();
  record_call<Row::execveat>(*t, file_at(dirfd, path), -1, start, start, Void{},
                             field(Key::dirfd, dirfd), field(Key::flags, flags));
  return try_exec(envp, call);
}

// Another library may take the addresses of this one.
extern "C" int DFT_WRAPPER(dlclose)(void* library) {
  const int result = real<int(void*)>(Row::dlclose)(library);
  forget_native_sites();
  dft::hooks::forget_functions();
  return result;
}

extern "C" int DFT_WRAPPER(prctl)(int option, long a, long b, long c, long d) {
  if (option == PR_SET_SECCOMP || (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)) enters_sandbox();
  return real<int(int, long, long, long, long)>(Row::prctl)(option, a, b, c, d);
}

#define DFT_ALONE(symbol, parameters, forwarded)                                    \
  extern "C" int DFT_WRAPPER(symbol) parameters {                                   \
    return call_alone([&] { return real<int parameters>(Row::symbol) forwarded; }); \
  }
#define DFT_BECOME(symbol, parameters, forwarded)                                      \
  extern "C" int DFT_WRAPPER(symbol) parameters {                                      \
    return call_as(user, [&] { return real<int parameters>(Row::symbol) forwarded; }); \
  }
DFT_BECOME(setuid, (uid_t user), (user))
DFT_BECOME(seteuid, (uid_t user), (user))
DFT_BECOME(setreuid, (uid_t real_user, uid_t user), (real_user, user))
DFT_BECOME(setresuid, (uid_t real_user, uid_t user, uid_t saved), (real_user, user, saved))
DFT_ALONE(setgid, (gid_t group), (group))
DFT_ALONE(setegid, (gid_t group), (group))
DFT_ALONE(setregid, (gid_t real_group, gid_t group), (real_group, group))
DFT_ALONE(setresgid, (gid_t real_group, gid_t group, gid_t saved), (real_group, group, saved))
DFT_ALONE(setgroups, (std::size_t count, const gid_t* groups), (count, groups))
DFT_ALONE(initgroups, (const char* user, gid_t group), (user, group))
DFT_ALONE(capset, (void* header, const void* data), (header, data))
DFT_ALONE(unshare, (int flags), (flags))
DFT_ALONE(setns, (int fd, int type), (fd, type))

extern "C" [[noreturn]] void DFT_WRAPPER(_exit)(int status) {
  record_leaving<Row::_exit>(status);
  process_leaves();
  for (;;) real<void(int)>(Row::_exit)(status);
}
extern "C" [[noreturn]] void DFT_WRAPPER(_Exit)(int status) {
  record_leaving<Row::_Exit>(status);
  process_leaves();
  for (;;) real<void(int)>(Row::_Exit)(status);
}
