//===- Error.h - how OptiML's libraries report failure ----------*- C++ -*-===//
//
// Every fallible function returns llvm::Error or llvm::Expected. Two kinds matter to callers:
//  - NotApplicable: a transform that does not fit here; an ordinary answer, with its reason and place.
//  - anything else: something went wrong; the message says what, where, and what to do.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_SUPPORT_ERROR_H
#define OPTIML_SUPPORT_ERROR_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <string>
#include <system_error>

namespace optiml {

/// An error with a formatted message (llvm::formatv syntax).
template <typename... Ts> llvm::Error makeError(const char *format, Ts &&...values) {
  return llvm::createStringError(std::errc::invalid_argument,
                                 llvm::formatv(format, std::forward<Ts>(values)...).str().c_str());
}
inline llvm::Error makeError(const std::string &message) {
  return llvm::make_error<llvm::StringError>(message, std::make_error_code(std::errc::invalid_argument));
}

/// "This transform does not apply here": nothing was changed; `reason` says why, `place` where (file:line, may be
/// empty).
class NotApplicable : public llvm::ErrorInfo<NotApplicable> {
public:
  static char ID;
  std::string reason, place;
  explicit NotApplicable(std::string reason, std::string place = "")
      : reason(std::move(reason)), place(std::move(place)) {}
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override { return std::make_error_code(std::errc::not_supported); }
};

/// Shorthand for llvm::make_error<NotApplicable> with a formatted reason.
template <typename... Ts> llvm::Error notApplicable(const char *format, Ts &&...values) {
  return llvm::make_error<NotApplicable>(llvm::formatv(format, std::forward<Ts>(values)...).str());
}

} // namespace optiml

#endif
