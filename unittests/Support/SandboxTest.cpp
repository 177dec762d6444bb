//===- SandboxTest.cpp - what a sandboxed program can do ------------------===//
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/TempDir.h"
#include "gtest/gtest.h"
#include <csignal>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace optiml;

namespace {

class SandboxTest : public testing::Test {
protected:
  ProcessResult run(const std::vector<std::string> &arguments, const std::string &input = "") {
    std::vector<std::string> argv = {SANDBOX_PROBE};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    ProcessOptions options;
    options.limits.seconds = 10;
    options.sandbox = Sandbox{{readable.path()}, {writable.path()}, {"OPTIML_TEST_KEPT"}};
    options.env = {{"GIVEN", "given"}};
    options.input = input;
    return llvm::cantFail(runProcess(argv, options));
  }
  TempDir readable = llvm::cantFail(TempDir::create("optiml-read")),
          writable = llvm::cantFail(TempDir::create("optiml-write")),
          other = llvm::cantFail(TempDir::create("optiml-other"));
};

TEST_F(SandboxTest, ComputesWithThreadsAndItsStandardStreams) {
  ProcessResult result = run({"compute"}, "a line\n");
  EXPECT_TRUE(result.ok()) << result.describe() << result.err;
  EXPECT_EQ(result.out, "read a line\n7.484\n");
}

TEST_F(SandboxTest, IsStoppedForWhatNoKernelNeeds) {
  for (const char *what : {"socket", "io_uring", "fork", "exec", "system"}) {
    ProcessResult result = run({what});
    EXPECT_EQ(result.signal, SIGSYS) << what << ": " << result.describe();
    EXPECT_EQ(result.describe(), "stopped, because it made a system call that its sandbox forbids");
  }
}

TEST_F(SandboxTest, MayEndItselfButSignalNobodyElse) {
  EXPECT_EQ(run({"kill"}).exitCode, 1);
  EXPECT_EQ(run({"signal"}).exitCode, 1);
  EXPECT_NE(run({"abort"}).signal, 0);
}

TEST_F(SandboxTest, SeesNothingOfTheUsersEnvironment) {
  setenv("OPTIML_TEST_SECRET", "hidden", 1);
  setenv("OPTIML_TEST_KEPT", "kept", 1);
  std::string out = run({"environment"}).out;
  EXPECT_EQ(out.find("hidden"), std::string::npos) << out;
  EXPECT_EQ(out.find("HOME="), std::string::npos) << out;
  EXPECT_NE(out.find("OPTIML_TEST_KEPT=kept\n"), std::string::npos) << out;
  EXPECT_NE(out.find("GIVEN=given\n"), std::string::npos) << out;
  unsetenv("OPTIML_TEST_SECRET");
  unsetenv("OPTIML_TEST_KEPT");
}

TEST_F(SandboxTest, InheritsNoConnection) {
  int fd = socket(AF_UNIX, SOCK_STREAM, 0); // not closed on exec, as a library may open it
  ASSERT_GE(fd, 0);
  EXPECT_EQ(run({"descriptor", "1"}).exitCode, 0);
  EXPECT_EQ(run({"descriptor", std::to_string(fd)}).exitCode, 1);
  close(fd);
}

TEST_F(SandboxTest, FilesAreThoseItIsGiven) {
  if (!sandboxConfinesFiles())
    GTEST_SKIP() << "this kernel has no Landlock";
  for (TempDir *folder : {&readable, &writable, &other})
    llvm::cantFail(writeFileAtomically(folder->file("a"), "text"));
  EXPECT_EQ(run({"read", readable.file("a")}).exitCode, 0);
  EXPECT_EQ(run({"write", readable.file("a")}).exitCode, 1);
  EXPECT_EQ(run({"write", readable.file("new")}).exitCode, 1);
  EXPECT_EQ(run({"read", writable.file("a")}).exitCode, 0);
  EXPECT_EQ(run({"write", writable.file("a")}).exitCode, 0);
  EXPECT_EQ(run({"write", writable.file("new")}).exitCode, 0);
  EXPECT_EQ(run({"read", other.file("a")}).exitCode, 1);
  EXPECT_EQ(run({"write", other.file("a")}).exitCode, 1);
  EXPECT_EQ(run({"read", writable.path() + "/../" + other.file("a").substr(other.path().rfind('/') + 1)}).exitCode, 1);
  EXPECT_EQ(run({"read", "/proc/" + std::to_string(getpid()) + "/environ"}).exitCode, 1);
  EXPECT_EQ(run({"read", "/etc/passwd"}).exitCode, 1);
}

TEST_F(SandboxTest, AProgramThatCannotStartIsAnError) {
  ProcessOptions options;
  options.sandbox = Sandbox();
  llvm::cantFail(writeFileAtomically(other.file("script"), "no program"));
  ASSERT_EQ(chmod(other.file("script").c_str(), 0700), 0);
  auto result = runProcess({other.file("script")}, options);
  ASSERT_FALSE(bool(result));
  EXPECT_NE(llvm::toString(result.takeError()).find("cannot run"), std::string::npos);
}

TEST(Subprocess, ReadsWhatItIsGiven) {
  ProcessOptions options;
  options.input = std::string(1 << 20, 'x'); // more than a pipe holds
  EXPECT_EQ(llvm::cantFail(runProcess({"wc", "-c"}, options)).out, "1048576\n");
  EXPECT_EQ(llvm::cantFail(runProcess({"wc", "-c"})).out, "0\n");
}

} // namespace
