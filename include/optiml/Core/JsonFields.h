//===- JsonFields.h - reading JSON objects field by field -------*- C++ -*-===//
//
// Files that OptiML reads back (store, workloads, GPU data) may be damaged or written by hand. A JsonFields reads typed
// fields of one object and remembers the first mistake, in words that name the field, so that readers stay short:
//
//     JsonFields in(value, "measurement");
//     in.number("reward", m.reward);
//     if (llvm::Error e = in.take()) return e;
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_JSONFIELDS_H
#define OPTIML_CORE_JSONFIELDS_H

#include "optiml/Support/Error.h"
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace optiml {

class JsonFields {
public:
  /// `what` is what the object is, for messages ("a launch step").
  JsonFields(const nlohmann::json &value, std::string what) : value(value), what(std::move(what)) {
    if (!value.is_object())
      fail(this->what + " must be a JSON object");
  }

  /// A number; null reads as NaN (JSON has no other way to write one). A required field that is absent is a mistake.
  template <typename T> void number(const char *name, T &into, bool required = true) {
    const nlohmann::json *field = find(name, required);
    if (!field)
      return;
    if constexpr (std::is_floating_point_v<T>) {
      if (field->is_null())
        into = std::numeric_limits<T>::quiet_NaN();
      else if (field->is_number())
        into = field->get<T>();
      else
        fail(what + "'s '" + name + "' must be a number");
    } else {
      bool ok = field->is_number_integer();
      if (ok && field->is_number_unsigned())
        ok = field->get<uint64_t>() <= uint64_t(std::numeric_limits<T>::max());
      else if (ok)
        ok = field->get<int64_t>() >= int64_t(std::numeric_limits<T>::min());
      if (ok)
        into = field->get<T>();
      else
        fail(what + "'s '" + name + "' must be an integer" + (std::is_unsigned_v<T> ? " of at least 0" : ""));
    }
  }

  void text(const char *name, std::string &into, bool required = true) {
    const nlohmann::json *field = find(name, required);
    if (field && field->is_string())
      into = field->get<std::string>();
    else if (field)
      fail(what + "'s '" + name + "' must be a string");
  }

  void boolean(const char *name, bool &into, bool required = true) {
    const nlohmann::json *field = find(name, required);
    if (field && field->is_boolean())
      into = field->get<bool>();
    else if (field)
      fail(what + "'s '" + name + "' must be true or false");
  }

  /// The field when it is an array; an empty array (and a mistake remembered) otherwise.
  const nlohmann::json &array(const char *name, bool required = true) {
    static const nlohmann::json none = nlohmann::json::array();
    const nlohmann::json *field = find(name, required);
    if (field && field->is_array())
      return *field;
    if (field)
      fail(what + "'s '" + name + "' must be an array");
    return none;
  }

  /// The field when it is an object; an empty object (and a mistake remembered) otherwise.
  const nlohmann::json &object(const char *name, bool required = true) {
    static const nlohmann::json none = nlohmann::json::object();
    const nlohmann::json *field = find(name, required);
    if (field && field->is_object())
      return *field;
    if (field)
      fail(what + "'s '" + name + "' must be an object");
    return none;
  }

  /// Remembers `message` unless something was wrong before.
  void fail(std::string message) {
    if (mistake.empty())
      mistake = std::move(message);
  }

  bool ok() const { return mistake.empty(); }
  llvm::Error take() const { return mistake.empty() ? llvm::Error::success() : makeError(mistake); }

private:
  const nlohmann::json *find(const char *name, bool required) {
    if (!mistake.empty())
      return nullptr;
    auto it = value.find(name);
    if (it != value.end())
      return &*it;
    if (required)
      fail(what + " lacks '" + name + "'");
    return nullptr;
  }

  const nlohmann::json &value;
  std::string what, mistake;
};

} // namespace optiml

#endif
