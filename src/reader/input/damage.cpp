// The names and texts of all kinds of trouble, and the adding up of damage.
#include "reader/input/damage.hpp"

#include <algorithm>
#include <tuple>

namespace dft::reader {

const TroubleInfo& info_of(Trouble kind) {
  static const std::array<TroubleInfo, kTroubles> kTable{{
      {"empty_file", "the file is empty", true},
      {"no_records", "no trace record in it", true},
      {"cut_member", "the file ends inside a compressed block", true},
      {"bad_member", "a compressed block is damaged", true},
      {"rubbish", "bytes that belong to no compressed block", true},
      {"wrong_count", "a compressed block does not hold the lines that it says", true},
      {"bad_line", "not a JSON object", true},
      {"cut_line", "the text ends inside a line", true},
      {"long_line", "a line is too long", true},
      {"not_a_record", "a JSON object that is no trace record", true},
      {"bad_text", "bytes that are not UTF-8", true},
      {"no_bracket", "the first line is not [", true},
      {"wrong_total", "the end record counts other records than there are", true},
      {"cannot_read", "cannot be read", true},
      {"unpaired", "a B without its E, or an E without its B: no duration", false},
  }};
  return kTable[static_cast<std::size_t>(kind)];
}

void Damage::note(Problem problem) {
  ++counts[static_cast<std::size_t>(problem.kind)];
  if (problems.size() < kProblemsKept) problems.push_back(std::move(problem));
}

void Damage::add(const Damage& other) {
  bytes_read += other.bytes_read;
  text_bytes += other.text_bytes;
  members += other.members;
  lines += other.lines;
  records += other.records;
  metadata += other.metadata;
  own += other.own;
  ends += other.ends;
  events += other.events;
  for (std::size_t i = 0; i < kTroubles; ++i) counts[i] += other.counts[i];
  if (other.problems.empty()) return;
  problems.insert(problems.end(), other.problems.begin(), other.problems.end());
  std::sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.file, a.block, a.line, a.offset, a.kind) <
           std::tie(b.file, b.block, b.line, b.offset, b.kind);
  });
  if (problems.size() > kProblemsKept) problems.resize(kProblemsKept);
}

bool Damage::is_damaged() const {
  for (std::size_t i = 0; i < kTroubles; ++i) {
    if (counts[i] != 0 && info_of(static_cast<Trouble>(i)).damage) return true;
  }
  return false;
}

}  // namespace dft::reader
