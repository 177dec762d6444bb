//===- Fields.cpp - reading untrusted JSON --------------------------------===//
#include "Fields.h"
#include <cerrno>
#include <cstring>
#include <fstream>
#include <unistd.h>

using namespace optiml;
using nlohmann::json;

void Field::fail(const std::string &expected) const {
  if (error->empty())
    *error = (name.empty() ? "the file" : "'" + name + "'") + ": expected " + expected;
}

Field Field::at(const char *key) const {
  std::string full = name.empty() ? key : name + "." + key;
  if (!has(key)) {
    Field(nullptr, full, *error).fail("it to be there");
    return Field(nullptr, full, *error);
  }
  return Field(&(*value)[key], full, *error);
}

std::vector<Field> Field::elements(size_t most) const {
  std::vector<Field> result;
  if (!value || !value->is_array() || value->size() > most) {
    fail("an array of at most " + std::to_string(most) + " elements");
    return result;
  }
  for (size_t i = 0; i < value->size(); ++i)
    result.emplace_back(&(*value)[i], name + "[" + std::to_string(i) + "]", *error);
  return result;
}

std::vector<std::pair<std::string, Field>> Field::members() const {
  std::vector<std::pair<std::string, Field>> result;
  if (!value || !value->is_object()) {
    fail("an object");
    return result;
  }
  for (auto it = value->begin(); it != value->end(); ++it)
    result.emplace_back(it.key(), Field(&it.value(), name + "." + it.key(), *error));
  return result;
}

template <typename T> T Field::ranged(bool fits, const char *kind, T least, T most) const {
  if (fits)
    if (T v = value->get<T>(); v >= least && v <= most)
      return v;
  fail(std::string(kind) + " from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

uint64_t Field::integer(uint64_t least, uint64_t most) const {
  return ranged(value && value->is_number_unsigned(), "an integer", least, most);
}

int64_t Field::signedInteger(int64_t least, int64_t most) const {
  bool fits = value && value->is_number_integer() &&
              !(value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX));
  return ranged(fits, "an integer", least, most);
}

double Field::number(double least, double most) const {
  return ranged(value && value->is_number(), "a number", least, most);
}

bool Field::boolean() const {
  if (value && value->is_boolean())
    return value->get<bool>();
  fail("true or false");
  return false;
}

std::string Field::text(size_t most) const {
  if (value && value->is_string() && value->get_ref<const std::string &>().size() <= most)
    return value->get<std::string>();
  fail("a string of at most " + std::to_string(most) + " bytes");
  return "";
}

uint64_t Field::hexadecimal() const {
  std::string s = value && value->is_string() ? value->get<std::string>() : "";
  if (s.size() > 2 && s.size() <= 18 && s[0] == '0' && s[1] == 'x' &&
      s.find_first_not_of("0123456789abcdef", 2) == std::string::npos)
    return strtoull(s.c_str() + 2, nullptr, 16);
  fail("a hexadecimal number in a string, like \"0x2000\"");
  return 0;
}

std::array<uint32_t, 3> Field::triple(uint32_t most) const {
  std::vector<Field> e = elements(3);
  if (e.size() != 3) {
    fail("three integers");
    return {1, 1, 1};
  }
  return {uint32_t(e[0].integer(1, most)), uint32_t(e[1].integer(1, most)), uint32_t(e[2].integer(1, most))};
}

bool optiml::readDocument(const std::string &path, const char *format, const std::function<void(const Field &)> &read,
                          std::string &error) {
  error.clear();
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    error = "cannot read '" + path + "': " + strerror(errno);
    return false;
  }
  json value = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    error = "'" + path + "' is not valid JSON";
    return false;
  }
  Field root(&value, "", error);
  if (root.at("format").text() != format && root.good())
    root.at("format").fail(std::string("\"") + format + "\"");
  root.at("version").integer(1, 1);
  read(root);
  if (!root.good())
    error = path + ": " + error;
  return error.empty();
}

bool optiml::writeJson(const json &value, const std::string &path, std::string &error) {
  std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  bool ok;
  {
    std::ofstream out(temporary, std::ios::binary);
    // Invalid UTF-8 (a kernel's argument in programArguments, say) is replaced rather than refused.
    out << value.dump(1, ' ', false, json::error_handler_t::replace) << "\n";
    out.close();
    ok = bool(out);
  }
  if (!ok || rename(temporary.c_str(), path.c_str()) != 0) {
    error = "cannot write '" + path + "': " + strerror(errno);
    unlink(temporary.c_str());
    return false;
  }
  return true;
}
