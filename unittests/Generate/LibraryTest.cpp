//===- LibraryTest.cpp - operation files and program texts ----------------===//
#include "optiml/Generate/ProgramText.h"
#include "gtest/gtest.h"

using namespace optiml::gen;

namespace {

std::string mistakeIn(const std::string &text) {
  Library library;
  llvm::Error error = library.add("x.op", text);
  if (!error)
    error = library.finish();
  return llvm::toString(std::move(error));
}

TEST(Operations, AMistakeInAFileNamesItsPlace) {
  EXPECT_EQ(mistakeIn("op: x\ntitle: y\nsizes n: 3\n"), "x.op:3: unknown key 'sizes n'");
  EXPECT_EQ(mistakeIn("title: y\n"), "x.op:1: expected 'op: NAME', 'stage: NAME', 'family: NAME' or 'snippet: NAME'");
  EXPECT_EQ(mistakeIn("op: x\nsize n: 3 smal=2\n"), "x.op:2: unknown word 'smal=2' in a size");
  EXPECT_EQ(mistakeIn("op: x\ntitle: y\n"), "operation x (line 1): needs title, about, phrases and types");
  EXPECT_EQ(mistakeIn("op: x\nlike: none\n"), "operation x (line 1): there is no family 'none'");
  std::string whole = "title: t\nabout: a\nphrases: p\ntypes: float\n";
  EXPECT_EQ(mistakeIn("op: x\n" + whole), "operation x (line 1): needs a reference");
  EXPECT_EQ(mistakeIn("op: x\n" + whole + "size n: 1\nreal n: 1\n--- reference\n"),
            "operation x (line 1): two options of one name");
  EXPECT_EQ(mistakeIn("op: x\n" + whole + "required: k\n--- reference\n"),
            "operation x (line 1): there is no option 'k' to be required");
}

/// A value for every option that must be given.
Options requiredOptions(const Operation &op) {
  Options result;
  for (const std::string &name : op.required)
    result[name] = "3";
  return result;
}

TEST(Operations, EveryOneIsAProgramInEveryTypeAndChoice) {
  const Library &library = Library::builtin();
  unsigned count = 0;
  for (const Operation &op : library.operations()) {
    if (!op.isPublic())
      continue;
    ++count;
    for (const std::string &type : op.types)
      for (size_t value = 0; value < 3; ++value) {
        Request request{op.name, "", requiredOptions(op), {}, {}};
        request.options["type"] = type;
        for (const Choice &choice : op.choices)
          request.options[choice.name] = choice.values[std::min(value, choice.values.size() - 1)];
        llvm::Expected<ProgramSpec> spec = resolve(request, library);
        ASSERT_TRUE(bool(spec)) << op.name << ": " << llvm::toString(spec.takeError());
        llvm::Expected<std::string> text = writeProgram(*spec, op.name, library);
        ASSERT_TRUE(bool(text)) << op.name << ": " << llvm::toString(text.takeError());
        for (const char *left : {"${", "@if", "SEED"})
          EXPECT_EQ(text->find(left), std::string::npos) << op.name << " has " << left;
      }
  }
  EXPECT_GE(count, 300u);
}

} // namespace
