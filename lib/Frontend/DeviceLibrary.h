//===- DeviceLibrary.h - CUDA text read before the user's file --*- C++ -*-===//
#ifndef OPTIML_LIB_FRONTEND_DEVICELIBRARY_H
#define OPTIML_LIB_FRONTEND_DEVICELIBRARY_H

namespace optiml {

/// What nvcc offers and Clang's headers lack (__stcg and relatives).
const char *missingDeclarations();
/// libdevice's functions (__nv_*) for code that runs on the host.
const char *libdeviceDefinitions();

} // namespace optiml

#endif
