//===- Error.cpp - how OptiML's libraries report failure ------------------===//
#include "optiml/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace optiml;

char NotApplicable::ID = 0;

void NotApplicable::log(llvm::raw_ostream &os) const {
  if (!place.empty())
    os << place << ": ";
  os << reason;
}
