//===- BuildBeside.h - programs built during the search ---------*- C++ -*-===//
//
// When a search ends, the program with its winner is built and run beside the original. What is likely to win is built
// before, so that this need not wait for nvcc.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_BUILDBESIDE_H
#define OPTIML_LIB_DRIVER_BUILDBESIDE_H

#include "optiml/Core/Variant.h"
#include "optiml/Support/Deadline.h"
#include "llvm/Support/Error.h"
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace optiml {

class BuildBeside {
public:
  /// Writes the program with the variant and builds it: the executable's path. Raising `cancel` stops nvcc. Calls come
  /// from threads of their own.
  using Make = std::function<llvm::Expected<std::string>(const Variant &variant, const std::atomic<bool> *cancel)>;

  /// At most `most` programs are built at once. `cancel` may be null.
  BuildBeside(Make make, unsigned most, const std::atomic<bool> *cancel)
      : make(std::move(make)), most(most), stop(0, cancel) {}
  ~BuildBeside();
  BuildBeside(const BuildBeside &) = delete;
  BuildBeside &operator=(const BuildBeside &) = delete;

  /// Builds this one next; one that has not begun is forgotten. From any thread.
  void want(const Variant &variant);
  /// The executable with the variant of that key, for which this waits; empty where it is not wanted, or could not be
  /// built. Nothing is built any more.
  std::string take(const std::string &key);

private:
  void buildAll();

  Make make;
  const unsigned most;
  Deadline stop;
  std::mutex mutex; ///< of what follows
  std::condition_variable changed;
  std::optional<Variant> next;
  std::set<std::string> current; ///< the keys of what is being built
  std::map<std::string, std::string> built;
  unsigned builders = 0; ///< at work
  std::vector<std::future<void>> running;
};

} // namespace optiml

#endif
