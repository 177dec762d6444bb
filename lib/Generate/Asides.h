//===- Asides.h - what a request says beside its point ----------*- C++ -*-===//
#ifndef OPTIML_LIB_GENERATE_ASIDES_H
#define OPTIML_LIB_GENERATE_ASIDES_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace optiml::gen {

class Vocabulary;

/// `text` without examples with their inputs and outputs.
std::string withoutExamples(llvm::StringRef text);

/// Abbreviations that are written in capitals ("LN", "GAP"), in full.
std::string abbreviationsInWords(llvm::StringRef text);

/// Everyday words ("double all prices", "on which day was it the hottest") in those of the library.
std::string everydayInWords(llvm::StringRef request, const Vocabulary &vocabulary);

/// Whether the request has examples with lists of numbers, all of them integers.
bool examplesAreIntegers(llvm::StringRef text);

/// `text` (lower case) without examples with their inputs and outputs, complexities, ranges of indices and versions,
/// and with the names of picture formats as sizes.
/// "300 students with 40 marks each": a matrix, and "each student" is a row; the same text where nothing is said so.
std::string groupsAsRows(llvm::StringRef request);
/// Functions of libraries with short names ("np.linalg.inv") in words.
std::string callsInWords(llvm::StringRef text);
/// `text` with what it says about elements of outputs and inputs, and of bits, in the signs of formulas.
std::string outputsInSigns(std::string text);

/// `text` (lower case) with the number of bins of the ranges that it counts.
std::string binsInWords(llvm::StringRef text);
std::string withoutAsides(llvm::StringRef text);

/// `text` (lower case) with powers, units, amounts of memory and names of picture formats in one notation.
std::string quantitiesInDigits(llvm::StringRef text);

/// `text` (lower case) with "half the sum of an array" as the sum, then half of it.
std::string timesInWords(std::string text);

/// `text` (lower case) with numbers of several words, and ranks ("the sixth power"), in digits.
std::string numeralsInDigits(llvm::StringRef text);

} // namespace optiml::gen

#endif
