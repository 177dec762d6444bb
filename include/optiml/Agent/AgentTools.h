//===- AgentTools.h - OptiML for coding agents ------------------*- C++ -*-===//
//
// The tools of optiml-mcp (docs/agents.md): an agent opens a program, looks at its kernels and legal actions, tries
// recipes and kernel texts, lets the tree search tune them, and submits what stands every check.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_AGENT_AGENTTOOLS_H
#define OPTIML_AGENT_AGENTTOOLS_H

#include "optiml/Agent/McpServer.h"
#include "optiml/Driver/Flags.h"
#include "optiml/Frontend/Toolchain.h"

namespace optiml::agent {

struct AgentSettings {
  std::string root;           ///< sources and include folders must lie below it
  std::string workspaces;     ///< the folder of workspaces
  unsigned evaluations = 200; ///< the budget of a new workspace
  double callSeconds = 15;    ///< a call answers after so long, with a handle where it is not done
  BackendChoice backend = BackendChoice::Auto;
};

class AgentTools {
public:
  AgentTools(AgentSettings settings, Toolchain toolchain);
  ~AgentTools(); ///< ends what is under way
  std::vector<Tool> tools();
  std::vector<Resource> resources();
  /// What an agent reads first.
  static std::string instructions();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// optiml-mcp: serves on standard input and output.
int runMcpCommand(int argc, char **argv);

} // namespace optiml::agent

#endif
