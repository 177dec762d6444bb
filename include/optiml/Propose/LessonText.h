//===- LessonText.h - lessons for a language model's prompt -----*- C++ -*-===//
#ifndef OPTIML_PROPOSE_LESSONTEXT_H
#define OPTIML_PROPOSE_LESSONTEXT_H

#include "optiml/Propose/Memory.h"

namespace optiml {

/// The `count` lessons that say most about `kernel` under `bottleneck` (similarity, evidence and size of the effect,
/// good or bad), a line each, and the fastest recipes of similar kernels; at most `maxCharacters`, whole lines only.
/// Empty when nothing similar is known. Holds no name of any program, only words that the memory's reader lets pass.
std::string lessonText(const LearntMemory &memory, const std::string &kernel, const std::string &bottleneck,
                       unsigned count, size_t maxCharacters);

} // namespace optiml

#endif
