#include "intercept/syscall_filter.hpp"

#include <sys/syscall.h>

#include <initializer_list>

namespace dft::intercept {
namespace {

constexpr long kWanted[] = {
    SYS_read,          SYS_write,      SYS_pread64,     SYS_pwrite64,   SYS_readv,     SYS_writev,
    SYS_openat,        SYS_openat2,    SYS_close,       SYS_dup,        SYS_dup3,      SYS_fsync,
    SYS_lseek,         SYS_getdents64, SYS_close_range, SYS_exit_group, SYS_seccomp,   SYS_chdir,
    SYS_fchdir,        SYS_fcntl,      SYS_setuid,      SYS_setreuid,   SYS_setresuid, SYS_setgid,
    SYS_setregid,      SYS_setresgid,  SYS_setgroups,   SYS_capset,     SYS_unshare,   SYS_setns,
    SYS_io_uring_setup};

constexpr auto make_wanted() {
  struct {
    unsigned char flag[kCallNumbers];
  } wanted{};
  for (const long number : kWanted) wanted.flag[number] = 1;
#ifdef SYS_open
  for (const long number : {SYS_open, SYS_creat, SYS_dup2}) wanted.flag[number] = 1;
#endif
  return wanted;
}

}  // namespace
}  // namespace dft::intercept

extern "C" [[gnu::visibility("hidden")]] constinit const auto dftracer_wanted_calls =
    dft::intercept::make_wanted();
