#include "intercept/import_slots.hpp"

#include <sys/mman.h>

#include <atomic>

#include "base/syscalls.hpp"

namespace dft::intercept {
namespace {

// RAII: makes the page of a GOT slot that RELRO has protected writable.
class Writable {
 public:
  Writable(const Object& object, ElfW(Addr) slot) {
    if (slot < object.relro_begin || slot >= object.relro_end) return;
    page_ = slot / sys::page_size() * sys::page_size();
    open_ = sys::call(SYS_mprotect, page_, sys::page_size(), PROT_READ | PROT_WRITE) == 0;
    failed_ = !open_;
  }
  ~Writable() {
    if (open_) sys::call(SYS_mprotect, page_, sys::page_size(), PROT_READ);
  }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  ElfW(Addr) page_ = 0;
  bool open_ = false;
  bool failed_ = false;
};

}  // namespace

void exchange(const Object& object, ElfW(Addr) slot, const Exchange& ways,
              Direction direction) noexcept {
  const bool patching = direction == Direction::kPatch;
  auto* place = reinterpret_cast<std::atomic<ElfW(Addr)>*>(slot);
  const ElfW(Addr) now = place->load(std::memory_order_relaxed);
  if (patching) {
    // Only a slot bound to the real function, or not yet bound. One bound to anything else belongs
    // to another interposer.
    const bool unbound = now >= object.begin && now < object.end;
    if (now != ways.real && !unbound) return;
  } else if (now != ways.wrapper) {
    return;
  }
  const Writable open(object, slot);
  if (!open.failed()) place->store(patching ? ways.wrapper : ways.real, std::memory_order_release);
}

}  // namespace dft::intercept
