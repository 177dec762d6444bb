//===- Proofs.h - which rewrites were compared, and which are ---*- C++ -*-===//
//
// Kernels are compared one by one: what was right as part of one variant is so in any other, and what one thread is
// comparing, another need not compare as well. Rewrites go by keys of their own.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_PROOFS_H
#define OPTIML_LIB_EVALUATE_VERIFY_PROOFS_H

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace optiml {

/// Safe to use from several threads.
class Proofs {
public:
  /// The runs in which the rewrite was compared and found right, with others perhaps.
  std::optional<unsigned> find(const std::string &key) const;
  void add(const std::string &key, unsigned runs);
  /// Takes those of the rewrites that are neither proven nor taken, for the caller to compare and to put back. Where
  /// all that are not proven are taken, waits. Empty: all are proven.
  std::set<std::string> take(const std::set<std::string> &keys);
  void putBack(const std::set<std::string> &keys);

private:
  std::map<std::string, unsigned> proven;
  std::set<std::string> taken;
  std::condition_variable changed;
  mutable std::mutex mutex;
};

} // namespace optiml

#endif
