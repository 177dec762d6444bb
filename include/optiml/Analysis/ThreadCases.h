//===- ThreadCases.h - what one thread does, case by case -------*- C++ -*-===//
//
// A short kernel without loops as a list of cases: under these conditions a thread stores these values. Conditions are
// facts p >= 0 on integer polynomials and comparisons of values from memory. Every thread is in exactly one case, so
// that who recognizes each of them has recognized the kernel, however it is written.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_ANALYSIS_THREADCASES_H
#define OPTIML_ANALYSIS_THREADCASES_H

#include "optiml/Analysis/Poly.h"
#include "optiml/Analysis/Tree.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// A value: an integer polynomial, or the canonical text of a term over memory: "in[i]", "+(in[i],in[i - d])".
struct ThreadValue {
  std::optional<Poly> poly;
  std::string term = {};    ///< what it is where `poly` is empty
  std::string pointer = {}; ///< the parameter that it points into, at offset `poly`
  std::string fits = {};    ///< the type of the elements that it is one of, whatever type it has been promoted to
  std::string str() const;
};

struct ThreadCase {
  std::vector<Poly> facts;     ///< each >= 0
  std::set<std::string> tests; ///< "in[i] < in[i + 1]", "a <= b": on values from memory, all true
  struct Store {
    std::string array;
    Poly index;
    std::string value; ///< ThreadValue::str()
  };
  std::vector<Store> stores; ///< at most one for each array and index; what is overwritten is left out
  /// p >= 0 follows from one of the facts.
  bool holds(const Poly &p) const;
};

/// An integer operation that is no polynomial, an atom of facts and indices: x % 2, 1 << step.
struct ThreadAtom {
  std::string op;
  Poly a, b;
};

struct ThreadCases {
  std::vector<ThreadCase> cases;
  std::map<std::string, ThreadAtom> atoms;
  /// Depends on nothing but the kernel's arguments.
  bool uniform(const Poly &p) const;
  /// The cases by what they ask of the kernel's arguments; nothing when two such demands may hold at once.
  std::optional<std::vector<std::pair<std::vector<Poly>, std::vector<const ThreadCase *>>>> byArguments() const;
  /// C++ of a uniform polynomial in long long; the kernel's parameters are members of `launch`.
  std::string cxx(const Poly &p) const;
};

/// One of the facts p >= 0 of the one list is seen to rule out one of the other.
bool contradict(const std::vector<Poly> &a, const std::vector<Poly> &b);

/// The value read from `array` at `index`, as ThreadValue::str() spells it.
std::string elementTerm(const std::string &array, const Poly &index);
/// The same for an operation on two terms that may change places: "+(a,b)".
std::string operationTerm(const std::string &op, std::string a, std::string b);

/// The cases of `kernel`, in which globalIdx.a are the only indices (normalizeGlobalIndex). NotApplicable when it has
/// loops, barriers, calls that are not known, or more than 64 cases. Parameters that are written are assumed to overlap
/// no other: who relies on the cases has to see to that.
llvm::Expected<ThreadCases> threadCases(const Kernel &kernel);

} // namespace optiml

#endif
