#include "hooks/texts.hpp"

#include <cstring>

#include "base/lock.hpp"
#include "base/signals.hpp"

namespace dft::hooks {

namespace {

constexpr std::size_t kArena = std::size_t{64} << 10;
constexpr std::size_t kMostKept = std::size_t{1} << 20;
Lock g_lock;  // of all below, and of every NamedList
char* g_arena = nullptr;
std::size_t g_left = 0;
std::size_t g_kept = 0;

std::string_view keep_locked(std::string_view text) {
  if (text.empty() || text.size() > kLongestText || g_kept + text.size() > kMostKept) return {};
  if (g_left < text.size()) {
    auto* memory = static_cast<char*>(sys::map_private(kArena));
    if (memory == nullptr) return {};
    g_arena = memory;
    g_left = kArena;
  }
  char* at = g_arena;
  std::memcpy(at, text.data(), text.size());
  g_arena += text.size();
  g_left -= text.size();
  g_kept += text.size();
  return {at, text.size()};
}

std::size_t put_utf8(char* to, std::uint32_t c) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
  if (c < 0x80) {
    to[0] = static_cast<char>(c);
    return 1;
  }
  const std::size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr std::uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  to[0] = static_cast<char>(kLead[more] | c >> (6 * more));
  for (std::size_t i = 1; i <= more; ++i)
    to[i] = static_cast<char>(0x80 | (c >> (6 * (more - i)) & 0x3f));
  return more + 1;
}

}  // namespace

std::string_view text_of(const char* text) noexcept {
  if (text == nullptr) return {};
  return {text, ::strnlen(text, kLongestText)};
}

WideText::WideText(const wchar_t* text) noexcept {
  constexpr std::size_t kLongestCharacter = 4;
  for (; text != nullptr && *text != 0 && size_ + kLongestCharacter <= sizeof bytes_; ++text)
    size_ += put_utf8(bytes_ + size_, static_cast<std::uint32_t>(*text));
}

Label label_of(std::string_view text) noexcept {
  if (text.empty()) text = "unnamed";
  return {buffer::g_names.id(text), text};
}

std::string_view keep(std::string_view text) noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  return keep_locked(text);
}

std::uint32_t NamedList::number_of(std::string_view text) noexcept {
  SlowPath slow;
  Locked locked(g_lock);
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (list_[i].text == text) return i + 1;
  }
  if (count == kMost) return 0;
  const std::string_view kept = keep_locked(text);
  if (kept.empty()) return 0;
  list_[count] = {count + 1, kept};
  count_.store(count + 1, std::memory_order_release);
  return count + 1;
}

void NamedList::set(std::uint64_t number, std::string_view text) noexcept {
  if (find(number) == text) return;
  SlowPath slow;
  Locked locked(g_lock);
  const std::uint32_t count = count_.load(std::memory_order_relaxed);
  if (count == kMost) return;
  const std::string_view kept = keep_locked(text);
  if (kept.empty()) return;
  list_[count] = {number, kept};
  count_.store(count + 1, std::memory_order_release);
}

std::string_view NamedList::find(std::uint64_t number) const noexcept {
  for (std::uint32_t i = count_.load(std::memory_order_acquire); i > 0; --i) {
    if (list_[i - 1].number == number) return list_[i - 1].text;
  }
  return {};
}

}  // namespace dft::hooks
