#include "session/secrets.hpp"

#include <algorithm>
#include <array>

namespace dft::session {
namespace {

constexpr std::string_view kMask = "***";

// In lower case, with `-` for `_` and `.`. A name is secret if it is one of these or ends with `-`
// and one of these. Short options, `pass`, `pwd`, `key` and `auth` mean too many other things.
constexpr std::string_view kNames[] = {
    "password",
    "passwd",
    "passphrase",
    "passin",
    "passout",
    "mysql-pwd",
    "db-pass",
    "db-pwd",
    "secret",
    "secret-key",
    "secretkey",
    "clientsecret",
    "token",
    "accesstoken",
    "authtoken",
    "api-key",
    "apikey",
    "access-key",
    "accesskey",
    "secret-access-key",
    "account-key",
    "accountkey",
    "shared-access-key",
    "sharedaccesskey",
    "encryption-key",
    "wandb-key",
    "bearer",
    "jwt",
};
// Secret only as parameters of a URL, after `?` or `&`.
constexpr std::string_view kQueryNames[] = {"sig", "signature", "credential"};
// A `token` after one of these is a part of text or a count: --eos-token, --max-token.
constexpr std::string_view kOrdinaryBeforeToken[] = {"bos", "cls",     "eos",   "image", "mask",
                                                     "max", "min",     "num",   "pad",   "per",
                                                     "sep", "special", "start", "stop",  "unk"};
constexpr std::string_view kAuthorization[] = {"authorization", "proxy-authorization"};
constexpr std::string_view kSchemes[] = {"apikey", "basic",     "bearer",
                                         "digest", "negotiate", "token"};
constexpr std::string_view kCookies[] = {"cookie", "set-cookie"};

// A word that is a secret wherever it stands; its prefix stays visible.
struct Shape {
  std::string_view prefix;
  std::size_t least;        // characters behind the prefix
  std::size_t most;         // 0: no limit
  bool lower;               // also lower-case letters, besides upper case and digits
  std::string_view others;  // and these
  bool mixed = false;       // needs an upper-case letter and a digit, which ordinary words lack
};
constexpr Shape kShapes[] = {
    {"AKIA", 16, 16, false, ""},       {"ASIA", 16, 16, false, ""},   {"AIza", 35, 35, true, "_-"},
    {"eyJ", 30, 0, true, "_-."},       {"ghp_", 16, 0, true, ""},     {"gho_", 16, 0, true, ""},
    {"ghu_", 16, 0, true, ""},         {"ghs_", 16, 0, true, ""},     {"ghr_", 16, 0, true, ""},
    {"github_pat_", 20, 0, true, "_"}, {"glpat-", 20, 0, true, "_-"}, {"hf_", 30, 0, true, ""},
    {"npm_", 36, 36, true, ""},        {"nvapi-", 40, 0, true, "_-"}, {"pypi-", 50, 0, true, "_-"},
    {"sk-", 20, 0, true, "_-", true},  {"sk_live_", 16, 0, true, ""}, {"sk_test_", 16, 0, true, ""},
    {"rk_live_", 16, 0, true, ""},     {"xoxb-", 10, 0, true, "-"},   {"xoxp-", 10, 0, true, "-"},
};

constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_alphanumeric(char c) { return is_upper(c) || is_lower(c) || is_digit(c); }
constexpr bool is_of_name(char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '-'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
constexpr bool is_quote(char c) { return c == '\'' || c == '"'; }

// As the tables have it.
constexpr char plain(char c) {
  if (is_upper(c)) return static_cast<char>(c + 32);
  return c == '_' || c == '.' ? '-' : c;
}

struct Range {
  std::size_t begin;
  std::size_t end;
};
constexpr Range kNone{0, 0};

// A name in its own spelling, compared with those of the tables.
class Name {
 public:
  explicit Name(std::string_view text) : text_(text) {}
  [[nodiscard]] bool ends_with(std::string_view known) const {
    return text_.size() >= known.size() &&
           std::ranges::equal(text_.substr(text_.size() - known.size()), known, {}, plain);
  }
  [[nodiscard]] bool is(std::string_view known) const {
    return text_.size() == known.size() && ends_with(known);
  }
  template <std::size_t N>
  [[nodiscard]] bool is_one_of(const std::string_view (&known)[N]) const {
    return std::ranges::any_of(known, [this](std::string_view one) { return is(one); });
  }
  [[nodiscard]] bool is_secret(bool query) const {
    for (const std::string_view known : kNames)
      if (const int found = tail(known); found != 0) return found > 0;
    if (!query) return false;
    return std::ranges::any_of(kQueryNames,
                               [this](std::string_view known) { return tail(known) > 0; });
  }

 private:
  // 1: the name is this one, or ends with it as a word. -1: it does, and means something else.
  [[nodiscard]] int tail(std::string_view known) const {
    if (!ends_with(known)) return 0;
    std::string_view before = text_.substr(0, text_.size() - known.size());
    if (before.empty()) return 1;
    if (plain(before.back()) != '-') return 0;
    if (known != "token") return 1;
    before.remove_suffix(1);
    for (std::size_t i = before.size(); i > 0; --i) {
      if (plain(before[i - 1]) != '-') continue;
      before = before.substr(i);
      break;
    }
    return Name(before).is_one_of(kOrdinaryBeforeToken) ? -1 : 1;
  }

  std::string_view text_;
};

// One pass from left to right over the runs of characters that names are made of.
class Scan {
 public:
  explicit Scan(std::string_view text)
      : text_(text), has_nul_(text.find('\0') != std::string_view::npos) {}

  void look() {
    for (std::size_t at = 0; at < text_.size() && !is_full();) {
      if (text_.substr(at).starts_with("://")) {
        if (!is_in_password(at)) find_password(at + 3);
        at = is_in_password(at) ? password_.end : at + 3;
      } else if (!is_of_name(text_[at])) {
        ++at;
      } else if (is_in_password(at)) {
        at = password_.end;
      } else {
        std::size_t end = at;
        while (end < text_.size() && is_of_name(text_[end])) ++end;
        at = look_at_run(at, end);
      }
    }
    std::ranges::sort(hidden_.begin(), hidden_.begin() + static_cast<long>(count_), {},
                      &Range::begin);
  }

  [[nodiscard]] bool write(sink::MmapBuffer& out) const {
    std::size_t done = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const Range range = hidden_[i];
      if (range.begin > done && !out.append(text_.substr(done, range.begin - done))) return false;
      if (!out.append(kMask)) return false;
      done = std::max(done, range.end);
    }
    return done == text_.size() || out.append(text_.substr(done));
  }

 private:
  [[nodiscard]] bool is_full() const { return count_ == hidden_.size(); }
  // More secrets than there is room for: the rest of the text is hidden with the last one.
  void hide(Range range) {
    if (count_ + 1 == hidden_.size()) range.end = text_.size();
    hidden_[count_++] = range;
  }
  [[nodiscard]] bool is_in_password(std::size_t at) const {
    return at >= password_.begin && at < password_.end;
  }

  // Characters of names that stand together; where to go on.
  std::size_t look_at_run(std::size_t begin, std::size_t end) {
    std::size_t word = begin;
    while (word < end && text_[word] == '-') ++word;
    for (const Shape& shape : kShapes) {
      const std::size_t secret = match(shape, word, end);
      if (secret == 0) continue;
      hide({word + shape.prefix.size(), secret});
      return secret;
    }
    const Range value = value_of(Name(text_.substr(word, end - word)), begin, word, end);
    if (value.begin >= value.end) return end;
    // The name of a user may be a name of ours: password:secret@host.
    if (password_.begin < value.end && value.begin < password_.end) return end;
    hide(value);
    return value.end;
  }

  // Where the secret that begins here ends; 0 if there is none.
  [[nodiscard]] std::size_t match(const Shape& shape, std::size_t begin, std::size_t end) const {
    if (!text_.substr(begin, end - begin).starts_with(shape.prefix)) return 0;
    const std::size_t first = begin + shape.prefix.size();
    std::size_t last = first;
    bool upper = false;
    bool digit = false;
    for (; last < end; ++last) {
      const char c = text_[last];
      if (!is_upper(c) && !is_digit(c) && !(shape.lower && is_lower(c)) &&
          shape.others.find(c) == std::string_view::npos) {
        break;
      }
      upper |= is_upper(c);
      digit |= is_digit(c);
    }
    const std::size_t size = last - first;
    if (size < shape.least || (shape.most != 0 && size > shape.most)) return 0;
    if (last < end && is_alphanumeric(text_[last])) return 0;
    return !shape.mixed || (upper && digit) ? last : 0;
  }

  // The range of the secret that a name announces, if it does.
  [[nodiscard]] Range value_of(const Name& name, std::size_t begin, std::size_t word,
                               std::size_t end) const {
    const char before = begin > 0 ? text_[begin - 1] : 'x';
    const bool query = begin > 0 && (before == '?' || before == '&');
    if (end < text_.size() && text_[end] == '=') {
      if (!name.is_secret(query)) return kNone;
      return value(end + 1, query, begin > 0 && separates(begin - 1));
    }
    if (std::size_t at = past_colon(end); at != 0) {
      if (name.is_one_of(kAuthorization)) return authorization(at);
      if (name.is_one_of(kCookies)) return rest(at);
      return name.is_secret(false) ? value(at, false, false) : kNone;
    }
    if (word == begin || !name.is_secret(false)) return kNone;
    const bool whole = end < text_.size() && separates(end);
    std::size_t at = end;
    while (at < text_.size() && (is_blank(text_[at]) || (whole && at == end))) ++at;
    // An option after it, or nothing: the name was a switch.
    if (at == end || at == text_.size() || text_[at] == '-') return kNone;
    return value(at, false, whole);
  }

  // After `name: `, `"name": ` and `"name":"`; 0 if that is not what follows.
  [[nodiscard]] std::size_t past_colon(std::size_t at) const {
    at = past_quote(at);
    if (at >= text_.size() || text_[at] != ':') return 0;
    std::size_t value = at + 1;
    while (value < text_.size() && is_blank(text_[value])) ++value;
    return value > at + 1 || past_quote(value) > value ? value : 0;
  }

  [[nodiscard]] std::size_t past_quote(std::size_t at) const {
    const std::size_t quote = at < text_.size() && text_[at] == '\\' ? at + 1 : at;
    return quote < text_.size() && is_quote(text_[quote]) ? quote + 1 : at;
  }

  // Whether this character ends an argument.
  [[nodiscard]] bool separates(std::size_t at) const {
    if (has_nul_) return text_[at] == '\0';
    return text_[at] == ';' && (at + 1 >= text_.size() || !is_blank(text_[at + 1]));
  }

  // `whole`: the value is all of its argument, blanks included.
  [[nodiscard]] Range value(std::size_t at, bool query, bool whole) const {
    const std::size_t inside = past_quote(at);
    if (inside > at && !whole) {
      const std::size_t close = text_.find(text_.substr(at, inside - at), inside);
      if (close != std::string_view::npos) return {inside, close};
    }
    std::size_t end = at;
    while (end < text_.size() && !ends_value(end, query, whole)) ++end;
    while (end > at && !whole && is_quote(text_[end - 1])) --end;
    return {at, end};
  }

  [[nodiscard]] bool ends_value(std::size_t at, bool query, bool whole) const {
    if (whole) return separates(at);
    const char c = text_[at];
    return is_blank(c) || c == ';' || c == '\0' || (query && (c == '&' || c == '#' || is_quote(c)));
  }

  [[nodiscard]] Range authorization(std::size_t at) const {
    at = past_quote(at);
    std::size_t end = at;
    while (end < text_.size() && is_of_name(text_[end])) ++end;
    std::size_t next = end;
    while (next < text_.size() && is_blank(text_[next])) ++next;
    if (next > end && Name(text_.substr(at, end - at)).is_one_of(kSchemes)) at = next;
    return value(at, false, false);
  }

  [[nodiscard]] Range rest(std::size_t at) const {
    at = past_quote(at);
    std::size_t end = at;
    while (end < text_.size() && !separates(end) && !is_quote(text_[end])) ++end;
    return {at, end};
  }

  // scheme://user:password@host
  void find_password(std::size_t at) {
    std::size_t end = at;
    std::size_t colon = 0;
    std::size_t host = 0;
    for (; end < text_.size(); ++end) {
      const char c = text_[end];
      if (is_blank(c) || is_quote(c) || c == '/' || c == '?' || c == '#' || c == ';' || c == '\0')
        break;
      if (c == ':' && colon == 0) colon = end;
      if (c == '@') host = end;
    }
    if (colon == 0 || colon + 1 >= host) return;
    password_ = {colon + 1, host};
    hide(password_);
  }

  std::string_view text_;
  bool has_nul_;
  std::array<Range, 64> hidden_{};
  std::size_t count_ = 0;
  Range password_{};  // of the last URL
};

}  // namespace

bool mask_secrets(std::string_view text, sink::MmapBuffer& out) noexcept {
  Scan scan(text);
  scan.look();
  return scan.write(out);
}

}  // namespace dft::session
