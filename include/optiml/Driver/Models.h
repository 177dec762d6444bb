//===- Models.h - the language models that the flags name -------*- C++ -*-===//
#ifndef OPTIML_DRIVER_MODELS_H
#define OPTIML_DRIVER_MODELS_H

#include "optiml/Driver/Flags.h"
#include "optiml/LanguageModels/ModelSession.h"

namespace optiml {

/// Opens them for `program` (its messages begin with this name), whose questions hold `source`. The transcript is in
/// the store's folder where the flags do not say otherwise. Before anything else runs: this takes the models' keys out
/// of the environment that children inherit. With no model in the flags the session has none.
llvm::Expected<std::unique_ptr<ModelSession>> openModels(const OwnFlags &flags, const std::string &program,
                                                         const std::string &source,
                                                         const std::atomic<bool> *cancel = nullptr);

} // namespace optiml

#endif
