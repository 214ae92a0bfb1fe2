#!/usr/bin/env python3
"""Installs runtime/ from the build tree and embeds it, as the author of another service would.

  python3 tests/embedding/embedding_test.py PART --source ROOT --build BUILD --work DIR --compiler C++ [--sanitize LIST]

PART: examples (a host's plain flags, from the build tree's install), lto (the library alone, built by what an embedder has, then
everything with -flto -Wodr), refusals (what must not configure, compile or link says why). DIR is emptied first.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

EXAMPLES = ["echo", "blocking", "beast"]
COMPONENTS = ["runtime", "inspect", "simulation"]
LIMIT_S = 900   # of one command: only a hang takes this long


class Failure(Exception):
    pass


class Test:
    def __init__(self, options):
        self.source, self.build, self.compiler = options.source, options.build, options.compiler
        self.sanitize = options.sanitize
        self.work = os.path.join(options.work, options.part)
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)
        self.environment = {k: v for k, v in os.environ.items() if k not in ("CXXFLAGS", "CFLAGS", "LDFLAGS", "CMAKE_PREFIX_PATH")}

    def run(self, *command, expect=0, cwd=None):
        done = subprocess.run(command, cwd=cwd or self.work, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S)
        text = done.stdout + done.stderr
        if (expect == 0) != (done.returncode == 0):
            raise Failure(f"{' '.join(command)}\nended with {done.returncode}:\n{text[-6000:]}")
        return text

    def install(self, build, prefix, components=COMPONENTS):
        for component in components:
            self.run("cmake", "--install", build, "--component", component, "--prefix", prefix)

    def configure(self, source, build, prefix, *options, compiler=None, flags="", expect=0):
        ccache = shutil.which("ccache")
        launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if ccache else []
        return self.run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler or self.compiler}",
                        f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_FLAGS={flags}", *launcher, *options, expect=expect)

    def example(self, name, prefix, *options, label="", **how):
        build = os.path.join(self.work, name + label)
        self.configure(os.path.join(self.source, "runtime/examples", name), build, prefix, *options, **how)
        text = self.run("cmake", "--build", build, "-j2")
        if "warning:" in text:
            raise Failure(f"{name} compiles with warnings:\n{text[-6000:]}")
        # The path of a Unix socket holds 107 characters.
        with tempfile.TemporaryDirectory(prefix="duet-") as folder:
            program = {"beast": "beast_service"}.get(name, name)
            arguments = [os.path.join(folder, "inspect")] if name == "beast" else []
            self.run(os.path.join(build, program), "--once", *arguments)
        print(f"ok    {name}{label}: built and run")

    def examples(self):
        prefix = os.path.join(self.work, "prefix")
        self.install(self.build, prefix)
        self.headers(prefix)
        self.nothing_of_ours_leaks(prefix)
        flags = f"-Wall -Wextra -fsanitize={self.sanitize}" if self.sanitize else "-Wall -Wextra"
        if "thread" in self.sanitize:
            flags += " -Wno-tsan"   # of Asio's fences; false
        for name in EXAMPLES:
            # The host's compiler flags differ from those of the library: it is not even RelWithDebInfo.
            self.example(name, prefix, "-DCMAKE_BUILD_TYPE=" + ("Debug" if self.sanitize else "Release"), flags=flags)
        self.programs_in_documents(prefix, flags)
        clang = shutil.which("clang++-16")
        if clang and not self.sanitize:
            self.example("blocking", prefix, compiler=clang, flags="-O0 -Wall -Wextra", label="-clang")

    def programs_in_documents(self, prefix, flags):
        """What a document shows as a whole program compiles, links and ends well."""
        count = 0
        for document in ("README.md", "docs/embedding.md"):
            text = open(os.path.join(self.source, document), encoding="utf-8").read()
            for program in re.findall(r"^```cpp\n(#include.*?)^```", text, re.S | re.M):
                count += 1
                folder = os.path.join(self.work, f"document{count}")
                os.makedirs(folder)
                with open(os.path.join(folder, "main.cpp"), "w", encoding="utf-8") as file:
                    file.write(program)
                with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
                    file.write("cmake_minimum_required(VERSION 3.16)\nproject(host CXX)\nfind_package(duet REQUIRED COMPONENTS runtime)\n"
                               "add_executable(host main.cpp)\ntarget_link_libraries(host PRIVATE duet::runtime)\n")
                build = os.path.join(folder, "build")
                self.configure(folder, build, prefix, flags=flags)
                text_of_build = self.run("cmake", "--build", build)
                if "warning:" in text_of_build:
                    raise Failure(f"{document}: its program compiles with warnings:\n{text_of_build}")
                self.run(os.path.join(build, "host"))
        if count < 2:
            raise Failure("a document no longer shows its program")
        print(f"ok    {count} programs in README.md and docs/embedding.md: built and run")

    def headers(self, prefix):
        """Every header of the installed components is there, and includes installed ones only."""
        installed = os.path.join(prefix, "include/duet")
        for folder, _, names in os.walk(os.path.join(self.source, "runtime")):
            relative = os.path.relpath(folder, self.source)
            if relative.startswith("runtime/examples"):
                continue
            for name in names:
                missing = not os.path.exists(os.path.join(installed, relative, name))
                if name.endswith(".hpp") and missing:
                    raise Failure(f"{relative}/{name} is not installed")
        for folder, _, names in os.walk(installed):
            for name in names:
                text = open(os.path.join(folder, name), encoding="utf-8").read()
                for included in re.findall(r'#include "([^"]+)"', text):
                    if not os.path.exists(os.path.join(prefix, "include", included)):
                        raise Failure(f"{name} includes {included}, which is not installed")
        # Again: files that are the same stay untouched, so that a host is not compiled anew.
        header = os.path.join(installed, "runtime/ref.hpp")
        before = os.stat(header).st_mtime_ns
        self.install(self.build, prefix)
        if os.stat(header).st_mtime_ns != before:
            raise Failure("installing again touches headers that have not changed")
        print("ok    headers: complete, closed, untouched by a second install")

    def nothing_of_ours_leaks(self, prefix):
        folder = os.path.join(prefix, "lib/cmake/duet")
        for name in os.listdir(folder):
            text = open(os.path.join(folder, name), encoding="utf-8").read()
            for word in ("-Werror", "-Wall", "pch", "BOOST_TEST", "BOOST_ALL_NO_LIB", "duet_options", self.source, self.build):
                if word in text:
                    raise Failure(f"{name} holds {word}")
        print("ok    exported targets: nothing of our own build in them")

    def lto(self):
        # An embedder's machine has Boost; of the other libraries nothing is to be asked for.
        build, prefix = os.path.join(self.work, "library"), os.path.join(self.work, "prefix")
        flags = "-O1 -flto=auto -Wodr -Werror=odr -Wlto-type-mismatch -Werror=lto-type-mismatch"
        absent = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("OpenSSL", "PkgConfig")]
        self.configure(self.source, build, "", "-DDUET_ONLY_RUNTIME=ON", "-DCMAKE_BUILD_TYPE=None", *absent, flags=flags)
        self.run("cmake", "--build", build, "-j2")
        self.run("cmake", "--install", build, "--prefix", prefix)
        print("ok    library: built alone, with Boost only")
        for name in EXAMPLES:
            self.example(name, prefix, "-DCMAKE_BUILD_TYPE=None", flags=flags, label="-lto")
        self.planted_violation(prefix, flags.split())

    def planted_violation(self, prefix, flags):
        """The check can fail: a host with another type of the same name is found."""
        source = os.path.join(self.work, "planted.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <cstdint>\n"
                       "namespace duet::runtime {\nstruct LaneSnapshot { double depth; };\nenum class ActorState : std::uint8_t;\n"
                       "const char* to_string(ActorState) noexcept;\n}\n"
                       "duet::runtime::LaneSnapshot lane{};\n"
                       "int main() { return duet::runtime::to_string({}) == nullptr || lane.depth > 0; }\n")
        text = self.run(self.compiler, "-std=c++20", *flags, source, os.path.join(prefix, "lib/libduet_runtime.a"), "-pthread",
                        "-o", os.path.join(self.work, "planted"), expect=1)
        if "LaneSnapshot" not in text or "odr" not in text:
            raise Failure(f"the planted violation fails for another reason:\n{text}")
        print("ok    planted violation: found")

    def refusals(self):
        prefix = os.path.join(self.work, "prefix")
        self.install(self.build, prefix)
        self.configure_refusals(prefix)
        self.link_refusals(prefix)
        self.no_header_depends_on_ndebug()

    def refuse(self, name, prefix, body, *options, says):
        source = os.path.join(self.work, name)
        os.makedirs(source)
        with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(f"cmake_minimum_required(VERSION 3.16)\nproject(host CXX)\n{body}\n")
        text = self.configure(source, os.path.join(source, "build"), prefix, *options, expect=1)
        if says not in " ".join(text.split()):
            raise Failure(f"{name}: does not say '{says}':\n{text}")
        print(f"ok    {name}: '{says}'")

    def configure_refusals(self, prefix):
        self.refuse("unknown_component", prefix, "find_package(duet REQUIRED COMPONENTS runtime turbo)",
                    says="duet has no component 'turbo'; its components are runtime, inspect and simulation")
        small = os.path.join(self.work, "runtime_only")
        self.install(self.build, small, ["runtime"])
        self.refuse("component_not_installed", small, "find_package(duet REQUIRED COMPONENTS inspect)",
                    says="the component 'inspect' of duet is not installed in " + small)
        self.refuse("another_duet", prefix, "find_package(duet 0.9 REQUIRED)", says='requested version "0.9"')
        # A Boost of another version, found by the host before us, and the only one that can be found.
        boost = os.path.join(self.work, "boost")
        os.makedirs(boost)
        for name, text in {"BoostConfig.cmake": "set(Boost_VERSION_STRING 1.84.0)\n",
                           "BoostConfigVersion.cmake": "set(PACKAGE_VERSION 1.84.0)\nif(NOT PACKAGE_FIND_VERSION VERSION_GREATER 1.84)\n"
                           "set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\nif(PACKAGE_FIND_VERSION VERSION_EQUAL 1.84.0)\n"
                           "set(PACKAGE_VERSION_EXACT TRUE)\nendif()\n"}.items():
            with open(os.path.join(boost, name), "w", encoding="utf-8") as file:
                file.write(text)
        built = re.search(r"set\(duet_BOOST_VERSION (.*)\)", open(os.path.join(prefix, "lib/cmake/duet/duetConfig.cmake"),
                                                                  encoding="utf-8").read()).group(1)
        self.refuse("boost_found_before", prefix, "find_package(Boost 1.80 REQUIRED CONFIG)\nfind_package(duet REQUIRED)",
                    f"-DBoost_DIR={boost}", says=f"this project has found Boost 1.84.0, but duet is built with Boost {built}")
        self.refuse("boost_missing", prefix, "find_package(duet REQUIRED)", "-DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON",
                    says=f"duet is built with Boost {built}")
        # An optional component that is not there is no error.
        source = os.path.join(self.work, "optional")
        os.makedirs(source)
        with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write("cmake_minimum_required(VERSION 3.16)\nproject(host CXX)\n"
                       "find_package(duet REQUIRED COMPONENTS runtime OPTIONAL_COMPONENTS inspect)\n"
                       "if(NOT TARGET duet::runtime OR TARGET duet::inspect OR duet_inspect_FOUND)\n"
                       "  message(FATAL_ERROR wrong)\nendif()\n")
        self.configure(source, os.path.join(source, "build"), small)
        print("ok    optional_component: no error")

    def link_refusals(self, prefix):
        """A host that differs from the library in something that changes a layout does not link; one that does not, does."""
        source = os.path.join(self.work, "host.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <duet/runtime/address.hpp>\n"
                       "int main() { return duet::runtime::Address().empty() ? 0 : 1; }\n")
        plain = ["-std=c++20", "-I", os.path.join(prefix, "include"), source, os.path.join(prefix, "lib/libduet_runtime.a"),
                 "-pthread", "-o", os.path.join(self.work, "host")]
        own = [f"-fsanitize={self.sanitize}", "-DDUET_SANITIZED=1"] if self.sanitize else []
        for flags in ([], ["-O3", "-DNDEBUG"], ["-std=gnu++23", "-O2"], ["-D_GLIBCXX_ASSERTIONS"], ["-fvisibility=hidden"]):
            self.run(self.compiler, *own, *plain, *flags)
        collected = ["-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
        for flags in (["-DDUET_AWAITABLE=public"], ["-fno-rtti"], ["-D_GLIBCXX_DEBUG"], ["-DBOOST_ASIO_DISABLE_THREADS"],
                      ["-DBOOST_ASIO_SEPARATE_COMPILATION"], ["-DBOOST_ASIO_ENABLE_HANDLER_TRACKING"], ["-DBOOST_ASIO_DISABLE_EPOLL"],
                      ["-DBOOST_ASIO_DISABLE_SMALL_BLOCK_RECYCLING"], ["-DBOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=3"],
                      ["-UDUET_SANITIZED"] if self.sanitize else ["-DDUET_SANITIZED=1"], ["-fno-rtti", *collected]):
            text = self.run(self.compiler, *own, *plain, *flags, expect=1)
            if "library_is_built_with" not in text or "undefined reference" not in text:
                raise Failure(f"a host with {flags} fails for another reason:\n{text}")
            print(f"ok    host with {' '.join(flags)}: does not link")

    def no_header_depends_on_ndebug(self):
        for folder, _, names in os.walk(os.path.join(self.source, "runtime")):
            for name in names:
                path = os.path.join(folder, name)
                if not name.endswith(".hpp") or path.endswith("runtime/assert.hpp"):
                    continue
                text = re.sub(r"//.*", "", open(path, encoding="utf-8").read())
                if re.search(r"\bNDEBUG\b|\bassert\(|BOOST_ASSERT|DUET_DEBUG_ASSERT|__OPTIMIZE__", text):
                    raise Failure(f"{path} differs between debug and release builds")
        print("ok    NDEBUG: no header depends on it")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["examples", "lto", "refusals"])
    for name in ("source", "build", "work", "compiler"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--sanitize", default="")
    options = parser.parse_args()
    try:
        getattr(Test(options), options.part)()
    except (Failure, subprocess.TimeoutExpired) as failure:
        print(f"FAIL  {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
