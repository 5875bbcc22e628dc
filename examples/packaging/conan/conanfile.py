from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get, rmdir
import os

required_conan_version = ">=2.0"


class Opdispatch(ConanFile):
    name = "opdispatch"
    version = "@VERSION@"
    license = "MIT OR Unlicense"
    description = "Tensors, operators, automatic differentiation and PyTorch's dispatcher in plain C"
    topics = ("tensor", "autograd", "pytorch", "c")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}
    implements = ["auto_shared_fpic"]
    languages = "C"

    def layout(self):
        cmake_layout(self, src_folder="src")

    def source(self):
        get(self, "@URL@", filename="@ARCHIVE@", sha256="@SHA256@", strip_root=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["OPDISPATCH_INSTALL"] = True
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder="examples/cmake")
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        for name in ("cmake", "pkgconfig"):              # Conan writes its own files for CMake and pkg-config
            rmdir(self, os.path.join(self.package_folder, "lib", name))

    def package_info(self):
        self.cpp_info.libs = ["opdispatch"]
        self.cpp_info.includedirs = ["include/opdispatch", "include"]
        self.cpp_info.set_property("cmake_target_name", "opdispatch::opdispatch")
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["m", "pthread", "dl"]
        if self.options.shared:
            self.cpp_info.defines = ["OPD_DLL"]
