// Cuts the files of a trace into work items: groups of gzip members, ranges of plain text, or text
// that had to be inflated sequentially. Called by all workers; each file has a lock of its own.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reader/input/damage.hpp"
#include "reader/input/document.hpp"
#include "reader/input/file.hpp"
#include "reader/input/inflate.hpp"

namespace dft::reader {

inline constexpr std::size_t kItemText = std::size_t{1} << 20;     // of text, about
inline constexpr std::size_t kItemBytes = std::size_t{256} << 10;  // of members, about
inline constexpr std::size_t kMaxLine = std::size_t{64} << 20;     // longer lines are stepped over
inline constexpr std::size_t kMaxMember = std::size_t{64}
                                          << 20;  // of text; longer ones are streamed

struct WorkItem {
  enum class Content : std::uint8_t {
    kMembers,  // [offset, offset + size) holds members of ours, nothing else
    kSuspect,  // likewise one, which may be damaged or cut
    kRange,    // the lines that begin in [offset, offset + size)
    kText,     // the text is here already
  };
  std::shared_ptr<const InFile> file;
  std::shared_ptr<const FileHandle> handle;  // outlives the queue's own
  std::uint64_t ordinal = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  Content content = Content::kText;
  Buffer text;
  Damage damage;  // what the queue itself found
};

// The pieces of one file, in its order. Not for two threads at once.
class FileQueue {
 public:
  FileQueue(std::string path, std::uint32_t index, std::uint64_t most);
  // False at the end of the file.
  bool next(WorkItem& item);
  [[nodiscard]] const std::shared_ptr<InFile>& file() const { return file_; }

  std::mutex mutex;
  bool done = false;  // under the mutex

 private:
  enum class Fill { kMore, kEnd };
  bool open(WorkItem& item);
  bool range(WorkItem& item);
  bool compressed(WorkItem& item);
  bool group(WorkItem& item);
  bool stream(WorkItem& item);
  Fill fill(Buffer& text, WorkItem& item);
  Fill fill_plain(Buffer& text, WorkItem& item);
  Fill after_member(WorkItem& item);
  bool raw_ready(std::size_t wanted);
  void go_to(std::uint64_t offset);
  std::uint64_t find_header(std::uint64_t from, bool any);
  void note(WorkItem& item, Trouble kind, std::uint64_t offset, std::uint64_t size,
            std::string detail = {});
  [[nodiscard]] std::uint64_t position() const { return raw_offset_ + raw_at_; }

  std::shared_ptr<InFile> file_;
  bool opened_ = false;
  std::uint64_t ordinal_ = 0;
  std::uint64_t next_offset_ = 0;  // of the next piece

  // While a stream is followed.
  bool streaming_ = false;
  bool in_member_ = false;
  bool member_text_ = false;  // some of it has come out
  bool skipping_ = false;     // inside a line that is too long
  std::uint64_t member_start_ = 0;
  std::uint64_t raw_offset_ = 0;
  std::size_t raw_at_ = 0;
  Buffer raw_;
  Buffer carry_;
  std::uint64_t carry_offset_ = 0;
  std::unique_ptr<Inflater> inflater_;
  DocumentCutter cutter_;
};

// The pieces of all files. In order: one file after the other. Otherwise, while one worker inflates
// a file that cannot be split, the others go on with the next.
class WorkQueue {
 public:
  // most: how much of each file is read, for a second reading of files that grow.
  WorkQueue(const std::vector<std::string>& paths, bool ordered,
            const std::vector<std::uint64_t>& most = {});
  bool next(WorkItem& item);
  // Of every file, opened or not; complete once next() has returned false.
  [[nodiscard]] std::vector<std::shared_ptr<InFile>> files() const;

 private:
  std::vector<std::unique_ptr<FileQueue>> queues_;
  bool ordered_;
  std::mutex mutex_;
  std::size_t first_ = 0;  // files before it are done
};

}  // namespace dft::reader
