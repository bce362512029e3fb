#include "session/claim.hpp"

#include <cstring>

#include "base/message.hpp"
#include "base/syscalls.hpp"
#include "recovery/owner.hpp"
#include "sink/trace_file.hpp"

namespace dft::session {

bool claim(const Place& place, buffer::SpoolHead& head, const char* chosen, const char* passing,
           bool may_be_exact, char (&path)[kClaimPath], Existing& existing,
           recovery::Found& finished) noexcept {
  const std::uint64_t key = recovery::process_key(head.owner);
  char base[256];
  existing = {Existing::What::kNothing, 0, 0, 0};
  int waited = 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const bool exact = may_be_exact && attempt < 3;
    if (exact && chosen[0] != '\0') {
      std::memcpy(head.trace_name, chosen, sizeof head.trace_name);
    } else if (exact) {
      exact_name(place, head.trace_name);
    } else {
      keyed_name(place, head.run, head.owner.pid, head.trace_name);
    }
    spool_name(head.trace_name, base);
    if (!sink::join(path, sizeof path, place.directory, "", base, "")) return false;
    const int taken = take_name(passing, path);
    if (taken == 0) {
      // Holding the name, see what is there: it cannot change any more.
      if (exact) existing = inspect(place, head.trace_name, head.run, key);
      const bool foreign = existing.what == Existing::What::kForeign;
      if (foreign) {
        say("%s/%s is not a trace: left alone, this trace gets a name of its own", place.directory,
            head.trace_name);
      }
      if (foreign || existing.what == Existing::What::kSameRun) {
        if (take_name(path, passing) != 0) return false;
        may_be_exact = false;
        existing.what = Existing::What::kNothing;
        continue;
      }
      return true;
    }
    if (taken != -EEXIST) return false;
    // A dead predecessor's: finish it, and the name is free. A living one keeps it.
    recovery::Wanted wanted;
    wanted.run = head.run;
    const auto outcome = recovery::recover_spool(place.directory, base, wanted, finished);
    if (outcome == recovery::Outcome::kRecovered || outcome == recovery::Outcome::kNothing)
      continue;
    // The name that this process had before an exec is nobody else's: somebody is just finishing
    // it.
    if (chosen[0] != '\0' && waited++ < 500) {
      sys::sleep_ns(2'000'000);
      --attempt;
      continue;
    }
    may_be_exact = false;
  }
  return false;
}

}  // namespace dft::session
