//===- DynamicLibrary.h - libraries that a machine may lack -----*- C++ -*-===//
//
// The CUDA driver and CUPTI are looked up when a program runs, so that OptiML starts, and says what is missing, on a
// machine without them. A table of functions is a struct with one member a function: a .def file lists them as
// OPTIML_FUNCTION(cuInit), which is OPTIML_FUNCTION_MEMBER in the struct, and OPTIML_FUNCTION_LOAD in a function with
// `library`, `table` and `why`.
//
// Headers rename some functions to their current version (cuMemAlloc to cuMemAlloc_v2); the macros follow.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GPU_DYNAMICLIBRARY_H
#define OPTIML_GPU_DYNAMICLIBRARY_H

#include <dlfcn.h>
#include <string>

#define OPTIML_STRING_(X) #X
#define OPTIML_STRING(X) OPTIML_STRING_(X)
#define OPTIML_FUNCTION_MEMBER(NAME) decltype(&::NAME) NAME = nullptr;
#define OPTIML_FUNCTION_LOAD(NAME)                                                                                     \
  if (!optiml::gpu::loadFunction(library, OPTIML_STRING(NAME), table.NAME, why))                                       \
    return false;

namespace optiml::gpu {

/// Looks `name` up. False, and `why` says what lacks it, when it is not there.
template <typename F> bool loadFunction(void *library, const char *name, F &into, std::string &why) {
  into = reinterpret_cast<F>(dlsym(library, name));
  if (!into)
    why = std::string("it has no ") + name;
  return into != nullptr;
}

/// The table that `load` fills, once for the whole process; null, and `why`, when it cannot. `what` is too old when a
/// function is missing.
template <typename Table>
const Table *loadOnce(bool (*load)(Table &, std::string &), const char *what, std::string &why) {
  struct Loaded {
    Table table;
    std::string why;
    bool ok;
  };
  static const Loaded *loaded = [&] { // used until the process ends
    auto *made = new Loaded;
    made->ok = load(made->table, made->why);
    if (!made->ok && made->why.rfind("it has", 0) == 0)
      made->why = std::string(what) + " is too old: " + made->why;
    return made;
  }();
  why = loaded->why;
  return loaded->ok ? &loaded->table : nullptr;
}

} // namespace optiml::gpu

#endif
