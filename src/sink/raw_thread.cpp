#include "sink/raw_thread.hpp"

#include <gnu/libc-version.h>
#include <link.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/signals.hpp"

extern "C" char __libc_single_threaded __attribute__((weak));  // glibc 2.32 and later

#if defined(__GLIBC__) && !defined(DFT_SANITIZED)

// clone() with the parameters in libc's order on every machine. The new thread starts with body and
// argument on its stack, and has no return address.
extern "C" [[gnu::visibility("hidden")]] long dftracer_clone_raw(unsigned long flags, void* stack,
                                                                 void* parent_number,
                                                                 void* child_number,
                                                                 void* control_block) noexcept;
#if defined(__x86_64__)
asm(R"(
  .text
  .type dftracer_clone_raw, @function
dftracer_clone_raw:
  .cfi_startproc
  mov %rcx, %r10
  mov $56, %eax
  syscall
  test %rax, %rax
  jz 1f
  ret
1:
  .cfi_undefined rip
  xor %ebp, %ebp
  pop %rax
  pop %rdi
  call *%rax
  mov $60, %eax
  xor %edi, %edi
  syscall
  ud2
  .cfi_endproc
  .size dftracer_clone_raw, . - dftracer_clone_raw
)");
static_assert(SYS_clone == 56 && SYS_exit == 60);
#elif defined(__aarch64__)
asm(R"(
  .text
  .p2align 2
  .type dftracer_clone_raw, %function
dftracer_clone_raw:
  .cfi_startproc
  mov x5, x3
  mov x3, x4
  mov x4, x5
  mov x8, #220
  svc #0
  cbz x0, 1f
  ret
1:
  .cfi_undefined x30
  mov x29, #0
  mov x30, #0
  ldp x1, x0, [sp], #16
  blr x1
  mov x8, #93
  mov x0, #0
  svc #0
  brk #0
  .cfi_endproc
  .size dftracer_clone_raw, . - dftracer_clone_raw
)");
static_assert(SYS_clone == 220 && SYS_exit == 93);
#endif

namespace dft::sink {

namespace {

constexpr std::size_t kGuard = std::size_t{64} << 10;  // the largest page that a machine has
constexpr std::size_t kStack = std::size_t{256} << 10;
constexpr std::size_t kLocals = std::size_t{64} << 10;
constexpr std::size_t kControlBlock = 4096;
constexpr std::size_t kWhole = kGuard + kStack + kLocals + kControlBlock;

#if defined(__x86_64__)

// Where the register fs points: thread-locals end there, and libc's data about the thread starts.
// The first members belong to the ABI (compilers know the canary's offset); nothing that the
// writer calls reads further.
struct ThreadControlBlock {
  void* self;
  void* modules;
  void* self_again;
  std::uint64_t threads;
  std::uint64_t entry;
  std::uint64_t canary;
  std::uint64_t pointer_guard;
};
static_assert(offsetof(ThreadControlBlock, canary) == 0x28);

char* this_control_block() noexcept {
  char* block;
  asm("mov %%fs:0, %0" : "=r"(block));
  return block;
}

// In the thread's own memory.
constexpr std::size_t kBlockAt = kGuard + kStack + kLocals;
bool holds_locals(std::ptrdiff_t at, std::size_t size) noexcept {
  return at < 0 && at >= -static_cast<std::ptrdiff_t>(kLocals) &&
         size <= static_cast<std::size_t>(-at);
}

#elif defined(__aarch64__)

// Where the register tpidr_el0 points: thread-locals begin behind these two words, and libc's data
// about the thread ends before them. Nothing that the writer calls reads that; the canary is a
// global variable.
struct ThreadControlBlock {
  void* modules;
  void* of_libc;
};

char* this_control_block() noexcept {
  char* block;
  asm("mrs %0, tpidr_el0" : "=r"(block));
  return block;
}

constexpr std::size_t kBlockAt = kGuard + kStack + kControlBlock;
bool holds_locals(std::ptrdiff_t at, std::size_t size) noexcept {
  return at >= static_cast<std::ptrdiff_t>(sizeof(ThreadControlBlock)) &&
         at <= static_cast<std::ptrdiff_t>(kLocals) &&
         size <= kLocals - static_cast<std::size_t>(at);
}

#endif

// An object's thread-locals: where they start, counted from the control block, and their initial
// image.
struct TlsBlock {
  std::ptrdiff_t at = 0;
  std::size_t size = 0;
  std::size_t image_size = 0;
  const void* image = nullptr;
};

struct TlsSearch {
  const char* variable;  // one of the object's, on this thread
  TlsBlock tls;
};

int look_for_tls(dl_phdr_info* object, std::size_t, void* argument) noexcept {
  auto& search = *static_cast<TlsSearch*>(argument);
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = object->dlpi_phdr[i];
    const auto* first = static_cast<const char*>(object->dlpi_tls_data);
    if (part.p_type != PT_TLS || first == nullptr) continue;
    if (search.variable < first || search.variable >= first + part.p_memsz) continue;
    const std::ptrdiff_t at = first - this_control_block();
    if (!holds_locals(at, part.p_memsz)) continue;
    search.tls = {at, part.p_memsz, part.p_filesz,
                  reinterpret_cast<const void*>(object->dlpi_addr + part.p_vaddr)};
    return 1;
  }
  return 0;
}

bool find_tls(const void* variable, TlsBlock& tls) noexcept {
  TlsSearch search{static_cast<const char*>(variable), {}};
  ::dl_iterate_phdr(look_for_tls, &search);
  tls = search.tls;
  return tls.at != 0;
}

// The address range of the object that contains an address. Unlike dladdr(), does not search
// symbols, of which libc has thousands.
struct Extent {
  std::uintptr_t inside;
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  [[nodiscard]] bool has(std::uintptr_t address) const { return address >= begin && address < end; }
};

int look_for_extent(dl_phdr_info* object, std::size_t, void* argument) noexcept {
  auto& extent = *static_cast<Extent*>(argument);
  std::uintptr_t begin = ~std::uintptr_t{0};
  std::uintptr_t end = 0;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    begin = std::min(begin, object->dlpi_addr + part.p_vaddr);
    end = std::max(end, object->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  if (extent.inside < begin || extent.inside >= end) return 0;
  extent.begin = begin;
  extent.end = end;
  return 1;
}

template <class Function>
std::uintptr_t address_of(Function* function) noexcept {
  return reinterpret_cast<std::uintptr_t>(function);
}

// True if the libc functions that the writer calls are libc's own, not replacements by a
// sanitizer, a profiler or a time faker: those keep state per thread.
bool libc_is_itself() noexcept {
  Extent libc{address_of(::gnu_get_libc_version)};
  ::dl_iterate_phdr(look_for_extent, &libc);
  return libc.has(address_of<void*(void*, const void*, std::size_t)>(std::memcpy)) &&
         libc.has(address_of<void*(void*, const void*, std::size_t)>(std::memmove)) &&
         libc.has(address_of<void*(void*, int, std::size_t)>(std::memset)) &&
         libc.has(address_of<int(const void*, const void*, std::size_t)>(std::memcmp)) &&
         libc.has(address_of<const void*(const void*, int, std::size_t)>(std::memchr)) &&
         libc.has(address_of<std::size_t(const char*)>(std::strlen)) &&
         libc.has(address_of<int(clockid_t, timespec*)>(::clock_gettime));
}

// The one raw thread. Its memory is kept for the next one.
struct {
  bool known = false;  // `possible` and `tls` are determined
  bool possible = false;
  TlsBlock tls[2];  // libc's and ours
  char* memory = nullptr;
  int process = 0;             // owner of the thread: a forked child has a copy of this
  std::atomic<int> number{0};  // set by the kernel, and cleared when the thread is gone
} g_raw;

bool prepare() noexcept {
  if (!g_raw.known) {
    g_raw.known = true;
    g_raw.possible =
        libc_is_itself() && find_tls(&errno, g_raw.tls[0]) && find_tls(&t_slow, g_raw.tls[1]);
  }
  if (!g_raw.possible) return false;
  if (g_raw.memory == nullptr) {
    g_raw.memory = static_cast<char*>(sys::map_private(kWhole));
    if (g_raw.memory == nullptr) return false;
    sys::call(SYS_mprotect, g_raw.memory, kGuard, PROT_NONE);
  }
  return true;
}

}  // namespace

bool raw_thread_is_gone() noexcept {
  return g_raw.number.load(std::memory_order_acquire) == 0 || g_raw.process != sys::process_id();
}

RawStart start_raw_thread(void (*body)(void*), void* argument) noexcept {
  if (&__libc_single_threaded == nullptr || __libc_single_threaded == 0) return RawStart::kNo;
  if (!prepare()) return RawStart::kNo;
  constexpr long kLookNs = 20'000;
  for (int i = 0; i < 50 && !raw_thread_is_gone(); ++i) sys::sleep_ns(kLookNs);
  if (!raw_thread_is_gone()) return RawStart::kNotYet;

  char* block = g_raw.memory + kBlockAt;
  for (const TlsBlock& tls : g_raw.tls) {
    std::memset(block + tls.at, 0, tls.size);
    std::memcpy(block + tls.at, tls.image, tls.image_size);
  }
  ThreadControlBlock own;
  std::memcpy(&own, this_control_block(), sizeof own);
  own.modules = nullptr;
#if defined(__x86_64__)
  own.self = own.self_again = block;
#endif
  std::memcpy(block, &own, sizeof own);

  char* stack = g_raw.memory + kGuard + kStack;
  stack -= sizeof body + sizeof argument;
  std::memcpy(stack, &body, sizeof body);
  std::memcpy(stack + sizeof body, &argument, sizeof argument);
  g_raw.process = sys::process_id();
  const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                              CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                              CLONE_CHILD_CLEARTID;
  const long made = dftracer_clone_raw(flags, stack, &g_raw.number, &g_raw.number, block);
  return made > 0 ? RawStart::kYes : RawStart::kNo;
}

}  // namespace dft::sink

#else

namespace dft::sink {

RawStart start_raw_thread(void (*)(void*), void*) noexcept { return RawStart::kNo; }
bool raw_thread_is_gone() noexcept { return true; }

}  // namespace dft::sink

#endif
