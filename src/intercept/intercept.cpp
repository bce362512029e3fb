#include "intercept/intercept.hpp"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <new>

#include "base/hot.hpp"
#include "intercept/aio_requests.hpp"
#include "intercept/call_site.hpp"
#include "intercept/filter.hpp"
#include "intercept/got_patch.hpp"
#include "intercept/library_layers.hpp"
#include "intercept/mpi_calls.hpp"
#include "intercept/page_faults.hpp"
#include "intercept/return_thunk.hpp"
#include "intercept/rings.hpp"
#include "intercept/vfork.hpp"
#include "intercept/wrapper_list.hpp"
#include "session/ring_gap.hpp"
#include "session/session.hpp"

extern "C" void dftracer_preload_begin();
extern char** environ;

namespace dft::intercept {

DFT_HOT constinit std::atomic<bool> g_watched[static_cast<std::size_t>(Category::kCount)] = {};

DFT_HOT constinit std::atomic<bool> g_decided{false};

namespace {

// Starting a session allocates, and another allocator may be making this call in the middle of
// its own initialization.
bool is_libcs_allocator() {
  Dl_info allocator;
  Dl_info libc;
  void* at = ::dlsym(RTLD_DEFAULT, "malloc");
  return at != nullptr && ::dladdr(at, &allocator) != 0 &&
         ::dladdr(reinterpret_cast<void*>(::gnu_get_libc_version), &libc) != 0 &&
         allocator.dli_fbase == libc.dli_fbase;
}

}  // namespace

// libc sets `environ` when it is initialized.
bool begin_early(Category category) noexcept {
  if (!is_preload() || environ == nullptr) return false;
  const sys::KeepErrno keep;
  const SlowPath slow;
  static std::atomic<int> can{0};
  if (can.load() == 0) can.store(is_libcs_allocator() ? 1 : -1);
  if (can.load() < 0) return false;
  dftracer_preload_begin();
  return g_watched[static_cast<std::size_t>(category)].load();
}

bool is_first_to_begin() noexcept { return !g_decided.exchange(true); }

namespace {

// Looked up in advance, because signal handlers call them, and the loader is not async-signal-safe.
constexpr Row kUsedByHandlers[] = {
    Row::read,   Row::write,  Row::open, Row::open64, Row::openat, Row::close,   Row::lseek,
    Row::fstat,  Row::stat,   Row::dup,  Row::dup2,   Row::fcntl,  Row::fcntl64, Row::pipe,
    Row::unlink, Row::fsync,  Row::fork, Row::execve, Row::_exit,  Row::_Exit,   Row::waitpid,
    Row::wait,   Row::pread,  Row::mmap, Row::munmap, Row::access, Row::writev,  Row::syscall,
    Row::send,   Row::sendto, Row::recv};

const Filter* make_filter(const session::Config& config) {
  char cwd[4096];
  const long n = sys::call(SYS_getcwd, cwd, sizeof cwd);
  const std::string_view here(cwd, n > 1 ? static_cast<std::size_t>(n) - 1 : 0);
  return new Filter(config.data_dirs,
                    here);  // never freed: threads may use it until the process ends
}

// Without arguments there are no short records.
void forget_shapes() {
  for (RowState& row : g_row_state) {
    row.shape[0].store(0);
    row.shape[1].store(0);
  }
}

void watch_categories(bool posix, bool stdio, bool net, bool io_uring) {
  g_watched[static_cast<std::size_t>(Category::POSIX)].store(posix);
  g_watched[static_cast<std::size_t>(Category::STDIO)].store(stdio);
  g_watched[static_cast<std::size_t>(Category::NET)].store(net);
  g_watched[static_cast<std::size_t>(Category::IO_URING)].store(io_uring);
  g_watched[static_cast<std::size_t>(Category::AIO)].store(posix);
}

// Requests that are in flight are recorded as unfinished.
void before_close(session::Closing why) noexcept {
  rings_before_close(why == session::Closing::kForGood);
  aio_before_close();
}

}  // namespace

void begin() noexcept try {
  const session::Config& config = session::config();
  g_decided.store(true);
  if (config.disable_io || !session::active()) return;
  SlowPath slow;
  if (!intern_ids() || !set_filter(make_filter(config))) return;
  if (is_preload()) {
    for (const Row row : kUsedByHandlers) find_real(row);
  } else {
    find_all_real();
  }
  if (!config.inc_metadata) forget_shapes();
  g_details.store(config.inc_metadata);
  use_sites(config.inc_metadata && config.call_sites);
  choose_way_back();
  if (!config.disable_io_uring) begin_rings();
  session::g_before_close.store(before_close);
  watch_categories(!config.disable_posix, !config.disable_stdio, !config.disable_net,
                   !config.disable_io_uring);
  begin_page_faults(config.page_faults && config.inc_metadata && !config.disable_posix);
  mpi::watch_mpi(!config.disable_mpi, !config.disable_mpiio);
  patch_objects(unpreloaded());
  patch_library_layers();
} catch (...) {
  end();
}

void end() noexcept {
  SlowPath slow;
  watch_categories(false, false, false, false);
  end_page_faults();
  mpi::watch_mpi(false, false);
  if (!is_preload()) restore_objects();
  restore_library_layers();
}

}  // namespace dft::intercept
