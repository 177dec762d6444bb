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
#include <vector>

namespace optiml {

/// In what a rewrite was found right.
struct Proof {
  unsigned launches = 0, runs = 0; ///< in which it was compared
  std::string leftOut;             ///< why it was not, where nothing was wrong either
};

/// Nothing was wrong with a rewrite, but code of it ran in no comparison, nor would in another one.
struct Unreached {
  std::string why;
  std::vector<std::string> kernels;
};

/// Safe to use from several threads.
class Proofs {
public:
  /// Nothing: the rewrite was not compared, or was wrong.
  std::optional<Proof> find(const std::string &key) const;
  void add(const std::string &key, Proof proof);
  std::optional<Unreached> unreached(const std::string &key) const;
  void addUnreached(const std::string &key, Unreached unreached);
  /// Takes one of the rewrites that is neither proven nor taken, for the caller to compare and to put back. Where all
  /// that are not proven are taken, waits. Nothing: all are proven.
  std::optional<std::string> take(const std::set<std::string> &keys);
  void putBack(const std::string &key);

private:
  std::map<std::string, Proof> proven;
  std::map<std::string, Unreached> unproven;
  std::set<std::string> taken;
  std::condition_variable changed;
  mutable std::mutex mutex;
};

} // namespace optiml

#endif
