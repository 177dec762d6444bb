//===- OpenRequest.h - what an agent may open -------------------*- C++ -*-===//
#ifndef OPTIML_LIB_AGENT_OPENREQUEST_H
#define OPTIML_LIB_AGENT_OPENREQUEST_H

#include "optiml/Driver/Workbench.h"

namespace optiml::agent {

/// Of the arguments of open(). The source and include folders must lie below `root`; of nvcc's flags, those that change
/// only how the program is read and compiled.
llvm::Expected<WorkbenchRequest> readRequest(const nlohmann::json &arguments, const std::string &root,
                                             BackendChoice backend);
/// The path without links, if it lies below the root. Relative ones begin there.
llvm::Expected<std::string> pathBelow(const std::string &path, const std::string &root);
llvm::Error checkRequest(const WorkbenchRequest &request, const std::string &root);

} // namespace optiml::agent

#endif
