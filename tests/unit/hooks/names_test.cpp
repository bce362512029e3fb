#include <doctest/doctest.h>

#include "hooks/function_names.hpp"
#include "hooks/glob.hpp"
#include "hooks/texts.hpp"

using namespace dft::hooks;

TEST_CASE("hooks: patterns match as in a shell") {
  CHECK(matches("", ""));
  CHECK_FALSE(matches("", "a"));
  CHECK(matches("*", ""));
  CHECK(matches("a*c", "abbbc"));
  CHECK(matches("a*b*c", "axbxbxc"));
  CHECK_FALSE(matches("a*b*c", "axbxbx"));
  CHECK(matches("ns::*::run", "ns::Class<int>::run"));
  CHECK(matches("?.f", "m.f"));
  CHECK_FALSE(matches("?.f", ".f"));
  CHECK_FALSE(matches("f", "F"));
}

TEST_CASE("hooks: a list of patterns takes what one names and none excludes") {
  CHECK(PatternList("").matches("anything"));
  CHECK(PatternList(" , ").matches("anything"));
  const PatternList some("a*, b ,!ab*");
  CHECK(some.matches("aa"));
  CHECK(some.matches("b"));
  CHECK_FALSE(some.matches("abc"));
  CHECK_FALSE(some.matches("c"));
  const PatternList all_but("!std::*");
  CHECK(all_but.matches("main"));
  CHECK_FALSE(all_but.matches("std::sort<int>"));
}

TEST_CASE("hooks: a function's name is shown without its types") {
  CHECK(without_types("main") == "main");
  CHECK(without_types("ns::f(int, std::vector<int>)") == "ns::f");
  CHECK(without_types("ns::C::m(int) const") == "ns::C::m");
  CHECK(without_types("ns::C::m() &&") == "ns::C::m");
  CHECK(without_types("long ns::C::t<long>(long)") == "ns::C::t<long>");
  CHECK(without_types("std::map<int, int> make<int>(int)") == "make<int>");
  CHECK(without_types("(anonymous namespace)::f(int)") == "(anonymous namespace)::f");
  CHECK(without_types("main::{lambda(int)#1}::operator()(int) const") ==
        "main::{lambda(int)#1}::operator()");
  CHECK(without_types("C::operator()") == "C::operator()");
  CHECK(without_types("C::operator bool() const") == "C::operator bool");
  CHECK(without_types("bool operator< <int>(C<int> const&)") == "operator< <int>");
  CHECK(without_types("f(int) [clone .part.0]") == "f");
  CHECK(without_types("f(void (*)(int))") == "f");
  CHECK(without_types("()") == "()");
  CHECK(without_types(")") == ")");
  CHECK(without_types("").empty());
}

TEST_CASE("hooks: wide text becomes UTF-8, and what is no character is replaced") {
  CHECK(WideText(L"h\u00e9\u20ac\U0001F600").view() == "h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(WideText(nullptr).view().empty());
  const wchar_t bad[] = {static_cast<wchar_t>(0xd800), static_cast<wchar_t>(0x7fffffff), 0};
  CHECK(WideText(bad).view() == "\xef\xbf\xbd\xef\xbf\xbd");
  wchar_t many[2000];
  for (wchar_t& c : many) c = L'\u20ac';
  many[1999] = 0;
  CHECK(WideText(many).view().size() == 1023);
}

TEST_CASE("hooks: names by number keep the newest, and a full list stays as it is") {
  static NamedList list;
  list.set(7, "seven");
  list.set(7, "SEVEN");
  CHECK(list.find(7) == "SEVEN");
  CHECK(list.find(8).empty());
  static NamedList domains;
  CHECK(domains.number_of("") == 0);
  CHECK(domains.number_of("a") == 1);
  CHECK(domains.number_of("b") == 2);
  CHECK(domains.number_of("a") == 1);
  for (int i = 0; i < 300; ++i) domains.number_of("domain " + std::to_string(i));
  CHECK(domains.number_of("one more") == 0);
  CHECK(domains.find(1) == "a");
}
