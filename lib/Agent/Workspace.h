//===- Workspace.h - what an agent has done with a program ------*- C++ -*-===//
//
// A folder with an id: what was opened, every evaluation, every call, and what was submitted. Opened again, it goes on
// where it ended, with its budget.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_AGENT_WORKSPACE_H
#define OPTIML_LIB_AGENT_WORKSPACE_H

#include "optiml/Driver/Workbench.h"
#include <mutex>

namespace optiml::agent {

/// One evaluation.
struct Attempt {
  std::string recipe, verdict, why;
  double speedup = 0; ///< 0: it did not stand
};

class Workspace {
public:
  /// A new one below `folder`, for a source with this text.
  static llvm::Expected<std::unique_ptr<Workspace>> create(const std::string &folder, WorkbenchRequest request,
                                                           const std::string &source, unsigned evaluations);
  /// One that is there. The source must be what it was.
  static llvm::Expected<std::unique_ptr<Workspace>> resume(const std::string &folder, const std::string &id);

  const std::string &id() const { return name; }
  const WorkbenchRequest &request() const { return opened; }
  /// Texts of kernels, by name.
  nlohmann::json texts() const;
  std::vector<Attempt> attempts() const;
  /// Evaluations that are left of the budget.
  unsigned left() const;

  /// Takes evaluations from the budget, as many as there are at most.
  unsigned take(unsigned wanted);
  void giveBack(unsigned unused);
  void add(const Attempt &attempt);
  void addText(const std::string &textName, const KernelText &text);
  void log(const std::string &tool, const nlohmann::json &arguments, const nlohmann::json &answer, bool isError);
  /// Writes files into a new folder, whose path it returns.
  llvm::Expected<std::string> submit(const std::map<std::string, std::string> &files);

private:
  llvm::Error save() const;
  void append(const std::string &file, const nlohmann::json &line) const;

  std::string name, folder;
  WorkbenchRequest opened;
  std::string sourceHash;
  mutable std::mutex mutex; ///< of what follows, and of the files
  unsigned evaluations = 0, used = 0, submissions = 0;
  nlohmann::json kernelTexts = nlohmann::json::object();
  std::vector<Attempt> done;
};

} // namespace optiml::agent

#endif
