//===- Fields.h - reading untrusted JSON ------------------------*- C++ -*-===//
//
// A Field is a JSON value with its name from the root ("launches[3].grid[1]"). Reading one of the wrong type or outside
// its range records the first such mistake and gives a harmless value, so that readers need not check after every step.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_WORKLOAD_FIELDS_H
#define OPTIML_LIB_WORKLOAD_FIELDS_H

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace optiml {

class Field {
public:
  Field(const nlohmann::json *value, std::string name, std::string &error)
      : value(value), name(std::move(name)), error(&error) {}

  bool good() const { return error->empty(); }
  /// A member that must be there.
  Field at(const char *key) const;
  bool has(const char *key) const { return value && value->is_object() && value->contains(key); }
  /// Elements of an array of at most `most`; empty on a mistake.
  std::vector<Field> elements(size_t most) const;
  /// Members of an object: key and value.
  std::vector<std::pair<std::string, Field>> members() const;
  uint64_t integer(uint64_t least, uint64_t most) const;
  int64_t signedInteger(int64_t least, int64_t most) const;
  double number(double least, double most) const;
  bool boolean() const;
  std::string text(size_t most = 65536) const;
  /// "0x…"
  uint64_t hexadecimal() const;
  std::array<uint32_t, 3> triple(uint32_t most) const;
  void fail(const std::string &expected) const;

private:
  /// The value, which is of the right type if it `fits`.
  template <typename T> T ranged(bool fits, const char *kind, T least, T most) const;
  const nlohmann::json *value;
  std::string name;
  std::string *error;
};

/// Reads a file of JSON that says of itself that it is of `format`, version 1. False, and `error` with the file's name
/// and the place, when it is not, or when `read` found a mistake.
bool readDocument(const std::string &path, const char *format, const std::function<void(const Field &)> &read,
                  std::string &error);
/// By way of a temporary file and a rename.
bool writeJson(const nlohmann::json &value, const std::string &path, std::string &error);

} // namespace optiml

#endif
