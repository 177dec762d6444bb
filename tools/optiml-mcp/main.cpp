//===- optiml-mcp - OptiML's tools for coding agents ----------------------===//
//
// docs/agents.md describes it; lib/Agent is the program.
//
//===----------------------------------------------------------------------===//
#include "optiml/Agent/AgentTools.h"

int main(int argc, char **argv) { return optiml::agent::runMcpCommand(argc, argv); }
