#include "sink/raw_thread.hpp"

#include <gnu/libc-version.h>
#include <link.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/signals.hpp"

extern "C" char __libc_single_threaded __attribute__((weak));  // glibc 2.32 and later

namespace dft::sink {

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(DFT_SANITIZED)

namespace {

constexpr std::size_t kGuard = 4096;
constexpr std::size_t kStack = std::size_t{256} << 10;
constexpr std::size_t kLocals = std::size_t{64} << 10;
constexpr std::size_t kHead = 4096;
constexpr std::size_t kWhole = kGuard + kStack + kLocals + kHead;

// Where the register fs points: thread-locals end there, and what libc keeps of a thread begins.
// Its head belongs to the ABI (compilers know of the canary); nothing that the writer calls looks
// further.
struct Head {
  void* self;
  void* modules;
  void* self_again;
  std::uint64_t threads;
  std::uint64_t entry;
  std::uint64_t canary;
  std::uint64_t pointer_guard;
};
static_assert(offsetof(Head, canary) == 0x28);

char* head_here() noexcept {
  char* head;
  asm("mov %%fs:0, %0" : "=r"(head));
  return head;
}

// The thread-locals of an object: how far below fs they begin, and what they are to begin with.
struct Locals {
  std::size_t below = 0;
  std::size_t size = 0;
  std::size_t image_size = 0;
  const void* image = nullptr;
};

struct Wanted {
  const char* variable;  // one of the object's, of this thread
  Locals locals;
};

int look_for_locals(dl_phdr_info* object, std::size_t, void* argument) noexcept {
  auto& wanted = *static_cast<Wanted*>(argument);
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = object->dlpi_phdr[i];
    const auto* first = static_cast<const char*>(object->dlpi_tls_data);
    if (part.p_type != PT_TLS || first == nullptr) continue;
    if (wanted.variable < first || wanted.variable >= first + part.p_memsz) continue;
    const char* head = head_here();
    if (first >= head || first < head - kLocals) continue;
    wanted.locals = {static_cast<std::size_t>(head - first), part.p_memsz, part.p_filesz,
                     reinterpret_cast<const void*>(object->dlpi_addr + part.p_vaddr)};
    return 1;
  }
  return 0;
}

bool find_locals(const void* variable, Locals& locals) noexcept {
  Wanted wanted{static_cast<const char*>(variable), {}};
  ::dl_iterate_phdr(look_for_locals, &wanted);
  locals = wanted.locals;
  return locals.below != 0;
}

// Where the object lies that has this address. Unlike dladdr, it looks at no symbols, of which libc
// has thousands.
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

// What the writer's code asks of libc is libc's own, not that of a sanitizer, of a profiler or of
// whoever fakes the time: those keep books about threads.
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

// The one thread. Kept when it ends, for the next.
struct {
  bool known = false;  // what follows has been found out
  bool possible = false;
  Locals locals[2];  // libc's and ours
  char* memory = nullptr;
  int process = 0;             // whose the thread is: a forked child has a copy of this
  std::atomic<int> number{0};  // the kernel sets it, and clears it when the thread has left
} g_bare;

bool prepare() noexcept {
  if (!g_bare.known) {
    g_bare.known = true;
    g_bare.possible = libc_is_itself() && find_locals(&errno, g_bare.locals[0]) &&
                      find_locals(&t_slow, g_bare.locals[1]);
  }
  if (!g_bare.possible) return false;
  if (g_bare.memory == nullptr) {
    g_bare.memory = static_cast<char*>(sys::map_private(kWhole));
    if (g_bare.memory == nullptr) return false;
    sys::call(SYS_mprotect, g_bare.memory, kGuard, PROT_NONE);
  }
  return true;
}

// The new thread begins with body and argument on its stack, and has nowhere to return to.
__attribute__((naked, noinline)) long clone_bare(unsigned long, void*, void*, void*,
                                                 void*) noexcept {
  asm("mov %rcx, %r10\n\t"
      "mov $56, %eax\n\t"
      "syscall\n\t"
      "test %rax, %rax\n\t"
      "jz 1f\n\t"
      "ret\n"
      "1:\n\t"
      ".cfi_undefined rip\n\t"
      "xor %ebp, %ebp\n\t"
      "pop %rax\n\t"
      "pop %rdi\n\t"
      "call *%rax\n\t"
      "mov $60, %eax\n\t"
      "xor %edi, %edi\n\t"
      "syscall\n\t"
      "ud2");
}
static_assert(SYS_clone == 56 && SYS_exit == 60);

}  // namespace

bool bare_thread_is_gone() noexcept {
  return g_bare.number.load(std::memory_order_acquire) == 0 || g_bare.process != sys::process_id();
}

BareStart start_bare_thread(void (*body)(void*), void* argument) noexcept {
  if (&__libc_single_threaded == nullptr || __libc_single_threaded == 0) return BareStart::kNo;
  if (!prepare()) return BareStart::kNo;
  constexpr long kLookNs = 20'000;
  for (int i = 0; i < 50 && !bare_thread_is_gone(); ++i) sys::sleep_ns(kLookNs);
  if (!bare_thread_is_gone()) return BareStart::kNotYet;

  char* head = g_bare.memory + kWhole - kHead;
  for (const Locals& locals : g_bare.locals) {
    std::memset(head - locals.below, 0, locals.size);
    std::memcpy(head - locals.below, locals.image, locals.image_size);
  }
  Head own;
  std::memcpy(&own, head_here(), sizeof own);
  own.self = own.self_again = head;
  own.modules = nullptr;
  std::memcpy(head, &own, sizeof own);

  char* stack = g_bare.memory + kGuard + kStack;
  stack -= sizeof body + sizeof argument;
  std::memcpy(stack, &body, sizeof body);
  std::memcpy(stack + sizeof body, &argument, sizeof argument);
  g_bare.process = sys::process_id();
  const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                              CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                              CLONE_CHILD_CLEARTID;
  const long made = clone_bare(flags, stack, &g_bare.number, &g_bare.number, head);
  return made > 0 ? BareStart::kYes : BareStart::kNo;
}

#else

BareStart start_bare_thread(void (*)(void*), void*) noexcept { return BareStart::kNo; }
bool bare_thread_is_gone() noexcept { return true; }

#endif

}  // namespace dft::sink
