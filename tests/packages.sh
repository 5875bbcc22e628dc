#!/bin/sh
# Checks how other projects use opdispatch: as the archive of a release (src/archive.py), with add_subdirectory,
# FetchContent and find_package of CMake, and with pkg-config.  find_package and pkg-config find the library that is
# installed from the archive.  Also checks that src/verify.py finds what is wrong with an archive, and the recipes for
# package managers.  Builds and runs the lines of examples/guide/01-install.md, with the first program of README.md, and
# the lines of examples/guide/releases.md.
#   sh tests/packages.sh           runs the checks, except for those that build packages of distributions
#   sh tests/packages.sh --whole   runs all of them; --rest: only those that build packages of distributions
#   sh tests/packages.sh NAME      runs the checks whose names contain NAME
#   sh tests/packages.sh --list    prints the names of the checks
# The compiler is clang if it is installed, because clang takes a third of gcc's time.  The implementation is compiled
# four times, without optimisation.  This takes 70 s of processor time, and --rest takes 170 s.  Prints "ok NAME",
# "FAIL NAME: why" or "skip NAME: why" for each check.  The last line is "N passed, N failed, N skipped".
set -u
names='guide archive signature verify list add_subdirectory fetch_content find_package find_package_cxx pkg_config shared lean plugin
versions optimisation cuda recipes'
slow='debian vcpkg conan meson'
only=
case ${1:-} in
    --list) printf '%s\n' $names $slow; exit 0 ;;
    --whole) names="$names $slow" ;;
    --rest) names="list $slow" ;;
    -*) echo "packages.sh has no option $1: it has --whole, --rest and --list, or takes the name of a check" >&2; exit 2 ;;
    ?*) names="$names $slow" only=$1 ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
guide=$root/examples/guide/01-install.md releases=$root/examples/guide/releases.md
tmp=$(mktemp -d "${TMPDIR:-/tmp}/opd_packages.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
. "$root/tests/checks.sh"
have() { command -v "$1" >/dev/null 2>&1; }
if have clang && have clang++; then CC=clang CXX=clang++; fi
export CC="${CC:-cc}" CXX="${CXX:-c++}" CFLAGS=-O0 CXXFLAGS=-O0
unset CMAKE_BUILD_TYPE CMAKE_INSTALL_PREFIX CMAKE_PREFIX_PATH DESTDIR PKG_CONFIG_PATH

#-- helpers ------------------------------------------------------------------------------------------------------------

version=$(sed -n 's/^#define OPD_VERSION "\(.*\)"$/\1/p' "$root/opdispatch.h")
said='tensor([ 0.0000,  1.3818,  0.0770, -2.8289])'
# The program that prints $said.  whole.c contains the implementation, and program.c does not.
awk '/^```c$/ { inside = !seen; seen = 1; next } /^```/ { inside = 0 } inside' "$root/README.md" >"$tmp/whole.c"
grep -v 'define OPDISPATCH_IMPLEMENTATION' "$tmp/whole.c" >"$tmp/program.c"

# blocks [TEXT]: prints the first CMake block of the guide that contains TEXT, or the first lines of all CMake blocks.
blocks() {
    awk -v text="${1:-}" '
        /^```cmake$/ { on = 1; block = ""; next }
        /^```/ && on && text == "" { print first }
        /^```/ && on && text != "" && index(block, text) { printf "%s", block; exit }
        /^```/ { on = 0 }
        on { if (block == "") { first = $0 } block = block $0 "\n" }' "$guide"
}
# line TEXT: prints the command of the guide that begins with TEXT.
line() { sed -n "s|^    \\($1.*\\)|\\1|p" "$guide" "$releases" | sed 's/  *#.*//' | head -n 1; }
# well COMMAND...: runs a command.  If the command fails or warns, prints the end of its output.
well() {
    if "$@" >"$tmp/log" 2>&1 && ! grep -q -i 'warning' "$tmp/log"; then return 0; fi
    echo "from: $*"; tail -n 15 "$tmp/log"; return 1
}
# prints COMMAND...: fails if its output differs from the one in the README.
prints() { out=$("$@" 2>&1); [ "$out" = "$said" ] || echo "$1 prints: $out"; }
# project FOLDER LANGUAGE TEXT...: writes a project from the blocks of the guide that contain these texts.
project() {
    folder=$1; language=$2; shift 2
    mkdir -p "$folder"; cp "$tmp/program.c" "$folder"
    lists=$folder/CMakeLists.txt
    printf 'cmake_minimum_required(VERSION 3.15)\nproject(example %s)\n' "$language" >"$lists"
    for text in "$@"; do
        blocks "$text" >"$tmp/block"
        [ -s "$tmp/block" ] || echo "the guide has no block with $text"
        cat "$tmp/block" >>"$lists"
    done
    [ "$language" = C ] && return
    mv "$folder/program.c" "$folder/program.cpp"
    sed -i 's/program\.c\b/program.cpp/' "$lists"
}
build() {               # build FOLDER OPTIONS...
    folder=$1; shift
    well cmake -S "$folder" -B "$folder/build" "$@" && well cmake --build "$folder/build"
}
# repository FOLDER: copies the files of this repository that a project needs.
repository() {
    mkdir -p "$1/examples"
    cp "$root/opdispatch.h" "$root/opdispatch_cuda.cu" "$1"; cp -R "$root/examples/cmake" "$1/examples"
}
# release FOLDER: makes a repository with the files of the working tree, and with the tag of the version.  Of tests/, it
# has only a few files, because packing all of them takes longer.
release() {
    mkdir -p "$1"
    (cd "$root" && git ls-files -z -co --exclude-standard LICENSE README.md .ci .gitignore bench examples src tests/*.sh \
        tests/*.py tests/golden/api.txt opdispatch.h opdispatch_cuda.cu | xargs -0 cp --parents -t "$1")
    (cd "$1" && quiet git -c init.defaultBranch=main init -q && committed && quiet git tag "v$version")
}
committed() {
    quiet git -c core.compression=0 add -A . && quiet git -c user.name=tests -c user.email=tests commit -q -m all
}
# Writes the files of the release of the repository $tmp/release to $tmp/archives, with a site of one page.  If minisign is
# installed, they are signed with a new key.
archives() {
    [ -d "$tmp/archives" ] && return
    mkdir "$tmp/archives"
    have git && have python3 && git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || return
    release "$tmp/release"
    mkdir "$tmp/site"; echo '<p>a page</p>' >"$tmp/site/index.html"
    signed=
    if have minisign; then                                      # -W: a key without a password
        minisign -G -W -f -p "$tmp/key.pub" -s "$tmp/key" >"$tmp/log" 2>&1 && signed="--key '$tmp/key'"
    fi
    archive "$tmp/release" "$tmp/archives" >"$tmp/archives/log" 2>&1 || tail -n 12 "$tmp/archives/log"
}
# archive REPOSITORY FOLDER: runs the guide's command that writes the archives.
archive() {
    command=$(line 'python3 src.archive.py')
    (cd "$1" && eval "${command:-false} --to '$2' --site '$tmp/site' ${signed:-}")
}
# Installs the library from the archive with the commands of the guide, and moves it: no file may contain the name of
# the old folder.  If there is no archive, the check "archive" says why, and other checks use the files of the
# repository.
prefix=$tmp/prefix
install_library() {
    [ -d "$prefix" ] && return
    archives >/dev/null
    if [ -e "$tmp/archives/opdispatch-$version.tar.gz" ]; then
        mkdir "$tmp/to install"; cp "$tmp/archives/opdispatch-$version.tar.gz" "$tmp/to install"
        unpack=$(line 'tar xf')
    else
        repository "$tmp/to install"; unpack=:
    fi
    (cd "$tmp/to install" && eval "${unpack:-false}" && for command in 'cmake -S' 'cmake --build' 'cmake --install'; do
        command=$(line "$command")
        case $command in 'cmake --install'*) command="$command --prefix '$tmp/before'" ;; esac
        well sh -c "${command:-false}"
    done)
    mv "$tmp/before" "$prefix" && rm -rf "$tmp/to install"
}
pkg_config_path() { PKG_CONFIG_PATH=$(echo "$1"/lib*/pkgconfig); export PKG_CONFIG_PATH; }
# with_pkg_config PREFIX: runs the guide's command with pkg-config.
with_pkg_config() {
    have pkg-config || { echo 'SKIP: no pkg-config'; return; }
    pkg_config_path "$1"
    command=$(line 'cc .*pkg-config')
    (cd "$tmp" && rm -f program && quiet sh -c "${command:-false}")
    LD_LIBRARY_PATH=$(echo "$1"/lib*) prints "$tmp/program"
    found=$(pkg-config --modversion opdispatch)
    [ "$found" = "$version" ] || echo "pkg-config says version $found"
}

#-- checks -------------------------------------------------------------------------------------------------------------

# A second run, from a clone, in another time zone and with other permissions for new files, writes the same bytes.
# Both archives have the files of the repository, and the site.  Their pages refer only to files that are there, or in
# tests/.  The script refuses a tag that does not fit, and a header that was edited.  FetchContent takes an archive by
# its address and checksum.
check_archive() {
    have git && have python3 || { echo 'SKIP: no git or no python3'; return; }
    git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || { echo 'SKIP: no repository'; return; }
    archives
    name=opdispatch-$version; one=$tmp/archives; other=$tmp/archives2
    [ -e "$one/$name.zip" ] || return
    quiet git clone -q "$tmp/release" "$tmp/release2"
    (umask 077; TZ=Asia/Tokyo; LC_ALL=C; export TZ LC_ALL; archive "$tmp/release2" "$other" >/dev/null)
    for file in "$name.tar.gz" "$name.zip" "$name.spdx.json" verify.py SHA256SUMS; do
        cmp "$one/$file" "$other/$file" || echo "$file: a second one has other bytes"
    done
    command=$(line sha256sum)
    (cd "$one" && sh -c "${command:-false}") >"$tmp/log" 2>&1 || echo 'the checksums differ'
    [ "$(grep -c ': OK$' "$tmp/log")" = 4 ] || cat "$tmp/log"
    mkdir "$tmp/from_tar" "$tmp/from_zip"
    command=$(line 'tar xf')
    (cp "$one/$name.tar.gz" "$tmp/from_tar" && cd "$tmp/from_tar" && eval "${command:-false}" && rm "../$name.tar.gz")
    python3 -m zipfile -e "$one/$name.zip" "$tmp/from_zip"
    diff -r "$tmp/from_tar" "$tmp/from_zip" | head -n 5
    cmp "$tmp/site/index.html" "$tmp/from_tar/$name/site/index.html"
    (cd "$tmp/release" && diff -r -x .git -x site -x __pycache__ . "$tmp/from_tar/$name" | head -n 5)
    TZ=UTC tar tvf "$one/$name.tar.gz" >"$tmp/listed"
    times=$(TZ=UTC git -C "$tmp/release" log -1 --date=format-local:'%Y-%m-%d %H:%M' --format=%cd)
    LC_ALL=C awk -v times="$times" '
        $2 != "0/0" || $4 " " $5 != times || $6 "" <= last { print "order, time or owner: " $0 } { last = $6 "" }' \
        "$tmp/listed" | head -n 5
    (cd "$tmp/from_tar/$name" && find . -name '*.md' | while read -r page; do
        grep -o '\](\([^)#]*\)' "$page" | sed 's/^](//' | sort -u | while read -r file; do
            case $file in ''|*://*|*tests/*) continue ;; esac
            [ -e "${page%/*}/$file" ] || echo "$page refers to $file, which the archive does not have"
        done
    done) | head -n 5
    refused 'no fitting tag' "OPD_VERSION of the tagged commit is \"$version\"" v0.0.1
    sed -i 's/^#define OPD_VERSION .*/&\n/' "$tmp/release2/opdispatch.h"
    (cd "$tmp/release2" && committed && quiet git tag -f "v$version" >/dev/null)
    refused 'a header that was edited' 'has not what src/join.py writes' "v$version"
    project "$tmp/url" C FetchContent opdispatch::opdispatch
    sum=$(sed -n "s/  $name.tar.gz\$//p" "$one/SHA256SUMS")
    sed -i -e "s|GIT_REPOSITORY .*|URL file://$one/$name.tar.gz|" -e "s|GIT_TAG .*|URL_HASH SHA256=$sum|" \
        "$tmp/url/CMakeLists.txt"
    well cmake -Wno-dev -S "$tmp/url" -B "$tmp/url/build"
}
# refused WHAT MESSAGE TAG: src/archive.py refuses to write archives of $tmp/release2 with this tag, with this message.
refused() {
    [ "$3" = "v$version" ] || git -C "$tmp/release2" tag "$3"
    if python3 "$tmp/release2/src/archive.py" "$3" --to "$tmp/refused" >"$tmp/log" 2>&1; then
        echo "$1: there is an archive"
    elif ! grep -q "$2" "$tmp/log"; then echo "$1: the message is"; head -n 5 "$tmp/log"; fi
    [ ! -e "$tmp/refused" ] || echo "$1: something is written"
}
# src/verify.py accepts a signature by minisign or signify, with the command of the guide, and refuses other ones.
check_signature() {
    archives
    name=opdispatch-$version.tar.gz; mkdir "$tmp/signed"; cd "$tmp/signed" || return
    [ -e "$tmp/archives/SHA256SUMS.minisig" ] || { echo 'SKIP: no minisign, or no archive'; return; }
    cp "$tmp/archives"/* .; cp "$tmp/key.pub" opdispatch.pub
    verified 'the guide' 'ok signature.*ok reproduced' "$(line 'python3 verify.py')"
    minisign -G -W -f -p "$tmp/other.pub" -s "$tmp/other" >/dev/null 2>&1
    verified '! another key' 'was not signed with this key' "python3 verify.py $name --key $tmp/other.pub"
    sed 's/  /  x/' SHA256SUMS >"$tmp/sums"; cp SHA256SUMS.minisig "$tmp/sums.minisig"
    verified '! other checksums' 'was not signed with this key' "python3 verify.py $name --sums $tmp/sums --key opdispatch.pub"
    rm SHA256SUMS.minisig
    verified '! no signature' 'Download the signature' "python3 verify.py $name --key opdispatch.pub"
    have signify-openbsd || return
    signify-openbsd -G -n -p "$tmp/signify.pub" -s "$tmp/signify.sec"
    python3 - "$root/src" "$tmp/signify.sec" SHA256SUMS <<'SIGN' || echo 'signify does not sign'
import subprocess, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import archive
sys.exit(subprocess.run(archive.signing(*sys.argv[2:])).returncode)
SIGN
    verified '! signify, and no release' 'ok signature.*is no release' \
        "python3 verify.py $tmp/site --sums SHA256SUMS --key $tmp/signify.pub"
}
# src/verify.py accepts the release without a key, and says what is wrong with one that was changed.
check_verify() {
    have git && have python3 || { echo 'SKIP: no git or no python3'; return; }
    archives
    name=opdispatch-$version; given=$tmp/given
    [ -e "$tmp/archives/$name.tar.gz" ] || return
    cp -R "$tmp/archives" "$given"; cd "$given" || return
    tar xf "$name.tar.gz"; chmod -R go-rwx "$name"
    verified 'the unpacked archive, without a key' 'skip signature: no public key was given.*ok reproduced' \
        "$(line 'python3 src.verify.py')" "$name"
    echo >>verify.py
    verified '! a changed file' 'another content than was released: verify.py' "python3 src/verify.py" "$name"
    cp "$name/src/verify.py" .
    echo one more >"$name/tests/more.sh"
    verified '! a file more' 'FAIL reproduced.*other bytes' "python3 src/verify.py" "$name"
    rm "$name/tests/more.sh"
    ln -s .. "$name/src/more"; echo '[]' >"$name.spdx.json"
    grep -v spdx "$tmp/archives/SHA256SUMS" >SHA256SUMS
    verified '! a link to a folder, and no list' 'is no list of a release.*src/more is not a file' "python3 src/verify.py" "$name"
    rm "$name/src/more"; cp "$tmp/archives/$name.spdx.json" .
    grep -v tar.gz "$tmp/archives/SHA256SUMS" >SHA256SUMS
    verified '! an archive that is not listed' "SHA256SUMS does not list $name.tar.gz" "python3 src/verify.py" "$name"
    : >SHA256SUMS
    verified '! empty checksums' 'SHA256SUMS is empty' "python3 src/verify.py" "$name"
    mv SHA256SUMS "$tmp"
    verified '! no checksums' 'Download it to the folder of the archive' "python3 verify.py $name.tar.gz"
    echo '/* more */' >>"$name/src/base/log.c"
    verified '! another source' 'FAIL joined.*FAIL identifier' "python3 src/verify.py" "$name"
    sed -i '$d' "$name/src/base/log.c"
    sed -i 's/^\(#define OPD_SOURCE_ID\) .*/\1 "0123456789abcdef"/' "$name/opdispatch.h"
    verified '! another identifier' 'OPD_SOURCE_ID of opdispatch.h is "0123456789abcdef"' "python3 src/verify.py" "$name"
}
# verified WHAT TEXT COMMAND [FOLDER]: runs a command of src/verify.py, in the folder.  It must print the TEXT, a pattern.
# It must succeed, or fail if WHAT begins with "!".
verified() {
    (cd "${4:-.}" && eval "${3:-false}") >"$tmp/log" 2>&1; status=$?
    case $1 in '!'*) [ $status != 0 ] || echo "$1: verify.py finds nothing" ;; *) [ $status = 0 ] || echo "$1: status $status" ;; esac
    tr '\n' ' ' <"$tmp/log" | grep -q -e "$2" || { echo "$1: verify.py does not say \"$2\", but"; head -n 8 "$tmp/log"; }
}
# The .spdx.json of the release is valid SPDX 2.3, says Python's package spdx-tools.
check_list() {
    archives
    list=$tmp/archives/opdispatch-$version.spdx.json
    [ -e "$list" ] || return
    tools=${SPDX_TOOLS:-pyspdxtools}
    have "$tools" || { echo 'SKIP: no pyspdxtools, of the package spdx-tools for pip'; return; }
    quiet "$tools" --infile "$list" --version SPDX-2.3
    sed 's/"MIT OR/"MIT and/; s/"(MIT OR/"(MIT/' "$list" >"$tmp/wrong.spdx.json"
    ! "$tools" --infile "$tmp/wrong.spdx.json" >/dev/null 2>&1 || echo 'the tool accepts a wrong licence, too'
}
# The folder has spaces in its name.  The project sets the macro of the guide, and a macro that must reach only one part
# of the library.  The library is not installed with the project.
check_add_subdirectory() {
    folder="$tmp/a project"
    project "$folder" C add_subdirectory opdispatch::opdispatch
    grep -o 'target_compile_definitions(opdispatch PRIVATE [A-Z_]*)' "$guide" >>"$lists" || echo 'no macro in the guide'
    echo 'target_compile_definitions(opdispatch PRIVATE OPD_AOTI)' >>"$lists"
    repository "$folder/opdispatch"
    build "$folder"; prints "$folder/build/program"
    grep -q 'OPD_NO_COMPLEX was defined' "$folder/build/program" || echo 'the macro of the guide changes nothing'
    well cmake --install "$folder/build" --prefix "$tmp/nothing"
    [ ! -e "$tmp/nothing" ] || echo 'it is installed'
}
# git's insteadOf redirects the guide's address to a local repository, which has the guide's tag.
check_fetch_content() {
    have git || { echo 'SKIP: no git'; return; }
    oldest=$(printf '%s\n' 3.18 "$(cmake --version | sed -n 's/.*version //p')" | sort -V | head -n 1)
    [ "$oldest" = 3.18 ] || { echo 'SKIP: CMake is older than 3.18'; return; }
    repository "$tmp/repository"
    mkdir -p "$tmp/home"; HOME=$tmp/home; export HOME
    address=$(blocks FetchContent | sed -n 's/.*GIT_REPOSITORY \([^ ]*\).*/\1/p')
    git config --global "url.file://$tmp/repository.insteadOf" "$address"
    (cd "$tmp/repository" && quiet git -c init.defaultBranch=main init -q && quiet git add . &&
     quiet git -c user.name=tests -c user.email=tests commit -q -m all && quiet git tag "v$version")
    project "$tmp/fetched" C FetchContent opdispatch::opdispatch
    build "$tmp/fetched"; prints "$tmp/fetched/build/program"
}
check_find_package() {
    install_library
    project "$tmp/found" C find_package opdispatch::opdispatch
    build "$tmp/found" -DCMAKE_PREFIX_PATH="$prefix"; prints "$tmp/found/build/program"
    sed '/^#if defined(OPDISPATCH_IMPLEMENTATION) &&/,/^#endif .*IMPLEMENTATION/d' "$root/opdispatch.h" |
        cmp - "$prefix/include/opdispatch/opdispatch.h" || echo 'the installed declarations differ from the header'
    grep -q opdispatch/opdispatch.h "$tmp/found/build/CMakeFiles/program.dir"/*.d || echo 'another header was included'
}
# A project with only the language C++.
check_find_package_cxx() {
    install_library
    project "$tmp/found_cxx" CXX find_package opdispatch::opdispatch
    build "$tmp/found_cxx" -DCMAKE_PREFIX_PATH="$prefix"; prints "$tmp/found_cxx/build/program"
}
check_pkg_config() { install_library; with_pkg_config "$prefix"; }
# A project with only the language C++ builds and installs a shared library, which exports nothing but opd_ functions.
# Its name for the loader and the version of its symbols change only with the first two numbers of the version, as long
# as the first is 0.
check_shared() {
    folder=$tmp/shared
    project "$folder" CXX add_subdirectory opdispatch::opdispatch
    repository "$folder/opdispatch"
    build "$folder" -DBUILD_SHARED_LIBS=ON -DOPDISPATCH_INSTALL=ON; prints "$folder/build/program"
    well cmake --install "$folder/build" --prefix "$folder/prefix"
    library=$(echo "$folder"/prefix/lib*/libopdispatch.so)
    [ -e "$library" ] || echo 'no shared library is installed'
    compatible=${version%.*}; [ "${version%%.*}" = 0 ] || compatible=${version%%.*}
    nm -D --defined-only "$library" | grep -v " A OPDISPATCH_$compatible\$" >"$tmp/exported"
    awk -v version="@@OPDISPATCH_$compatible\$" '
        $NF !~ /^opdi?_/ || $NF !~ version { print "exported: " $NF }' "$tmp/exported" | head -n 5
    objdump -p "$library" | grep -q "SONAME  *libopdispatch.so.$compatible\$" || objdump -p "$library" | grep SONAME
    [ -e "$library.$compatible" ] || echo "there is no $library.$compatible"
    if have python3; then
        python3 "$root/tests/promises.py" --symbols libopdispatch | sed -n 's/^ \(opdi\{0,1\}_[^@]*\)@.*/\1/p' >"$tmp/recorded"
        sed 's/.* \(opdi\{0,1\}_[^@]*\)@.*/\1/' "$tmp/exported" | LC_ALL=C sort | diff "$tmp/recorded" - |
            sed -n 's/^< /recorded, but not exported: /p' | head -n 5
    fi
    ! have python3 || python3 "$root/tests/sizes.py" exported - "$(grep -c . "$tmp/exported")"
    with_pkg_config "$folder/prefix"
}
# The lean library is compiled only because a program links it, or because it is installed.
check_lean() {
    lean=$tmp/lean
    project "$lean" C add_subdirectory opdispatch::lean
    repository "$lean/opdispatch"
    well cmake -S "$lean" -B "$lean/build" && well cmake --build "$lean/build"
    prints "$lean/build/program"
    ! nm "$lean/build/program" | grep -q conv2d || echo 'the program has operators that it does not call'
    [ -z "$(find "$lean/build" -name 'libopdispatch.*')" ] || echo 'the whole library was compiled, too'
    well cmake -S "$lean" -B "$lean/build" -DOPDISPATCH_INSTALL=ON -DOPDISPATCH_LEAN=ON &&
        well cmake --build "$lean/build" && well cmake --install "$lean/build" --prefix "$lean/prefix"
    project "$lean/found" C find_package opdispatch::lean
    build "$lean/found" -DCMAKE_PREFIX_PATH="$lean/prefix"; prints "$lean/found/build/program"
    have pkg-config || return
    where=$(dirname "$(find "$lean/prefix" -name opdispatch-lean.pc)")
    quiet $CC "$lean/program.c" $(PKG_CONFIG_PATH="$where" pkg-config --cflags --libs opdispatch-lean) -o "$lean/first"
    prints "$lean/first"
    ! nm "$lean/first" | grep -q conv2d || echo 'pkg-config: the program has operators that it does not call'
}
# Builds a plug-in, and the program of tests/linkage.sh that loads it.
check_plugin() {
    install_library
    project "$tmp/plugin" C find_package opdispatch::opdispatch OPDISPATCH_PLUGIN
    cp "$root/tests/linkage/main.c" "$tmp/plugin/program.c"; cp "$root/tests/linkage/ops.c" "$tmp/plugin"
    build "$tmp/plugin" -DCMAKE_PREFIX_PATH="$prefix"
    quiet "$tmp/plugin/build/program" "$tmp/plugin/build/ops.so"
}
# The package has the version of the header, also after the header was changed.  find_package refuses other minor
# versions.
check_versions() {
    install_library
    project "$tmp/versions" C find_package
    for asked in 0.0 99.0 "$version"; do
        sed -i "s/find_package(opdispatch [^ ]*/find_package(opdispatch $asked/" "$tmp/versions/CMakeLists.txt"
        rm -rf "$tmp/versions/build"
        cmake -S "$tmp/versions" -B "$tmp/versions/build" -DCMAKE_PREFIX_PATH="$prefix" >"$tmp/log" 2>&1
        status=$?
        if [ "$asked" = "$version" ]; then [ $status = 0 ] || tail -n 12 "$tmp/log"
        elif [ $status = 0 ] || ! grep -q "version: $version" "$tmp/log"; then echo "no error for version $asked"; fi
    done
    repository "$tmp/newer"
    well cmake -G 'Unix Makefiles' -S "$tmp/newer/examples/cmake" -B "$tmp/newer/build"
    sleep 1                              # make may compare whole seconds
    sed -i 's/^#define OPD_VERSION ".*"/#define OPD_VERSION "0.9.987"/' "$tmp/newer/opdispatch.h"
    well cmake --build "$tmp/newer/build" --target cmake_check_build_system
    grep -q '^Version: 0\.9\.987$' "$tmp/newer/build/opdispatch.pc" || echo 'opdispatch.pc has the version of before'
}
# The default is -O2, unless the project has a build type or its own flag for optimisation.
check_optimisation() {
    repository "$tmp/flags"
    for flags in :=-O2 -O1:=-O1 :Debug=-g :Release='-O3 -DNDEBUG'; do
        rm -rf "$tmp/flags/build"
        given=${flags%%=*}
        CFLAGS=${given%:*} well cmake -S "$tmp/flags/examples/cmake" -B "$tmp/flags/build" \
            -DCMAKE_BUILD_TYPE="${given#*:}" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
        got=$(grep -o -E ' -(O[^ "]*|g|DNDEBUG)\b' "$tmp/flags/build/compile_commands.json" | tr -d '\n')
        [ "$got" = " ${flags#*=} ${flags#*=} ${flags#*=}" ] || echo "$given: compiled with $got"    # three files
    done
}
# Only configures the plug-in for GPUs; tests/cuda.sh compiles it.
check_cuda() {
    nvcc=${NVCC:-nvcc}
    have "$nvcc" || nvcc=/usr/local/cuda/bin/nvcc
    have "$nvcc" || { echo 'SKIP: no nvcc'; return; }
    repository "$tmp/cuda"
    well cmake -S "$tmp/cuda/examples/cmake" -B "$tmp/cuda/build" -DOPDISPATCH_CUDA=ON \
        -DCMAKE_CUDA_COMPILER="$(command -v "$nvcc")" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON || return
    grep 'opdispatch_cuda\.cu' "$tmp/cuda/build/compile_commands.json" >"$tmp/commands"
    for flag in -arch=all-major -DOPDISPATCH_PLUGIN -O3; do
        grep -q -e "$flag" "$tmp/commands" || echo "compiled without $flag"
    done
}
# recipe NAME FOLDER: writes a recipe for the archive, with the command of the guide, to FOLDER/recipes.
recipe() {
    archives
    [ -e "$tmp/archives/opdispatch-$version.tar.gz" ] || { echo 'no archive'; return 1; }
    mkdir -p "$2"; cp "$tmp/archives/opdispatch-$version.tar.gz" "$2"
    (cd "$2" && command=$(line 'python3 examples/packaging/write.py' | sed "s|examples|'$root/examples|; s|write.py|&'|; s|conan|$1|")
        quiet sh -c "${command:-false} --maintainer 'Tests of packages <tests@example.net>' >/dev/null")
}
# Each recipe can be written, has no word to replace any more, and names the version.
check_recipes() {
    have python3 && have git || { echo 'SKIP: no git or no python3'; return; }
    for name in $slow; do recipe "$name" "$tmp/recipes of all"; done
    cd "$tmp/recipes of all/recipes" || return
    grep -r -n '@[A-Z0-9]*@' . | head -n 4
    for file in debian/changelog vcpkg/vcpkg.json conan/conanfile.py meson/opdispatch.wrap; do
        grep -q -F "$version" "$file" || echo "$file does not name version $version"
    done
    python3 -m json.tool vcpkg/vcpkg.json >/dev/null
    for file in conan/conanfile.py conan/test_package/conanfile.py; do quiet python3 -c "compile(open('$file').read(), '$file', 'exec')"; done
    ! python3 "$root/examples/packaging/write.py" debian "../opdispatch-$version.tar.gz" >"$tmp/log" 2>&1 ||
        echo 'a package of Debian is written without a maintainer'
}
# Builds the packages of Debian with the commands of the guide, and compiles a program with what is in them.
check_debian() {
    for tool in dpkg-buildpackage dh lintian; do have $tool || { echo "SKIP: no $tool"; return; }; done
    archives
    deb=$tmp/debian; mkdir "$deb"; cp "$tmp/archives/opdispatch-$version.tar.gz" "$deb"; cd "$deb" || return
    for command in 'tar xf opdispatch-.* ln ' '(cd opdispatch-.* debian ' '(cd opdispatch-.* dpkg-buildpackage '; do
        command=$(line "$command" | sed 's/NAME <ADDRESS>/Tests of packages <tests@example.net>/')
        (unset CC CXX CFLAGS CXXFLAGS; eval "${command:-false}") >"$tmp/log" 2>&1 || { tail -n 12 "$tmp/log"; return; }
    done
    grep 'doesn.t match completely' "$tmp/log"
    lintian --allow-root --fail-on error ./*.changes >"$tmp/log" 2>&1 || grep '^E:' "$tmp/log" || head "$tmp/log"
    for file in ./*.deb; do dpkg-deb -x "$file" installed; done
    quiet $CC "$tmp/program.c" -Iinstalled/usr/include/opdispatch -L"$(echo installed/usr/lib/*-*)" -lopdispatch -o program
    LD_LIBRARY_PATH=$(echo "$PWD"/installed/usr/lib/*-*) prints "$deb/program"
}
# Functions of this file take the place of vcpkg's.  They really unpack, compile and install.
check_vcpkg() {
    recipe vcpkg "$tmp/vcpkg" || return
    cd "$tmp/vcpkg" || return
    cat >run.cmake <<'CMAKE'
set(CURRENT_PACKAGES_DIR "${folder}/packages")
set(PORT opdispatch)
function(vcpkg_download_distfile out)
    cmake_parse_arguments(PARSE_ARGV 1 one "" "FILENAME;SHA512" "URLS")
    file(DOWNLOAD ${one_URLS} "${folder}/downloads/${one_FILENAME}" EXPECTED_HASH SHA512=${one_SHA512})
    set(${out} "${folder}/downloads/${one_FILENAME}" PARENT_SCOPE)
endfunction()
function(vcpkg_extract_source_archive out)
    cmake_parse_arguments(PARSE_ARGV 1 one "" "ARCHIVE" "")
    file(ARCHIVE_EXTRACT INPUT "${one_ARCHIVE}" DESTINATION "${folder}/sources")
    file(GLOB inside "${folder}/sources/*")
    set(${out} "${inside}" PARENT_SCOPE)
endfunction()
function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "${ARGN}: ${status}")
    endif()
endfunction()
function(vcpkg_cmake_configure)
    cmake_parse_arguments(PARSE_ARGV 0 one "" "SOURCE_PATH" "OPTIONS")
    run(${CMAKE_COMMAND} -S "${one_SOURCE_PATH}" -B "${folder}/build" -DCMAKE_BUILD_TYPE=Debug
        -DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR} ${one_OPTIONS})
endfunction()
function(vcpkg_cmake_install)
    run(${CMAKE_COMMAND} --build "${folder}/build" --target install)
endfunction()
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(PARSE_ARGV 0 one "" "CONFIG_PATH" "")
    file(RENAME "${CURRENT_PACKAGES_DIR}/${one_CONFIG_PATH}" "${CURRENT_PACKAGES_DIR}/share/${PORT}")
endfunction()
function(vcpkg_fixup_pkgconfig)
    file(STRINGS "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/opdispatch.pc" lines)
endfunction()
function(vcpkg_install_copyright)
    cmake_parse_arguments(PARSE_ARGV 0 one "" "" "FILE_LIST")
    file(INSTALL ${one_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()
file(MAKE_DIRECTORY "${folder}/packages/share")
include("${folder}/recipes/vcpkg/portfile.cmake")
CMAKE
    well cmake "-Dfolder=$tmp/vcpkg" -P run.cmake || return
    for file in include/opdispatch.h lib/libopdispatch.a share/opdispatch/opdispatch-config.cmake share/opdispatch/copyright \
        share/opdispatch/usage; do
        [ -e "packages/$file" ] || echo "the package has no $file"
    done
    python3 - recipes/vcpkg/vcpkg.json <<'NAMES'
import json, sys
port = json.load(open(sys.argv[1]))
unknown = set(port) - {'name', 'version-semver', 'description', 'homepage', 'license', 'supports', 'dependencies'}
if unknown or port['name'] != 'opdispatch':
    print('vcpkg.json has other fields than vcpkg reads here: %s' % sorted(unknown))
NAMES
}
check_conan() {
    conan=${CONAN:-conan}
    have "$conan" || { echo 'SKIP: no conan, which pip installs'; return; }
    recipe conan "$tmp/conan" || return
    cd "$tmp/conan" || return
    CONAN_HOME=$tmp/conan/home; export CONAN_HOME
    "$conan" profile detect >"$tmp/log" 2>&1 || tail -n 5 "$tmp/log"
    for shared in True False; do
        "$conan" create recipes/conan -s build_type=Debug -o "opdispatch/*:shared=$shared" >"$tmp/log" 2>&1 || tail -n 12 "$tmp/log"
        grep -q '^tensor(\[2., 2.\])' "$tmp/log" || echo "shared=$shared: the program of the test prints something else"
    done
}
check_meson() {
    for tool in meson ninja; do have $tool || { echo "SKIP: no $tool"; return; }; done
    recipe meson "$tmp/meson" || return
    cd "$tmp/meson" || return
    mkdir subprojects; cp -R recipes/meson/* subprojects; cp "$tmp/program.c" .
    printf "project('program', 'c')\nexecutable('program', 'program.c', dependencies: dependency('opdispatch'))\n" >meson.build
    for kind in shared static; do
        { meson setup $kind --wrap-mode=forcefallback -Dopdispatch:default_library=$kind -Dbuildtype=plain && ninja -C $kind; } \
            >"$tmp/log" 2>&1 || tail -n 12 "$tmp/log"
        prints "$kind/program"
    done
    objdump -p shared/subprojects/*/libopdispatch.so | grep -q "SONAME  *libopdispatch.so.${version%.*}\$" || echo 'another SONAME'
}
# Each CMake block of the guide is used by one of the checks above.
check_guide() {
    all=$(blocks | grep -c .)
    [ "$all" = 6 ] || echo "the guide has $all blocks of CMake, the checks here build 6"
}

passed=0; failed=0; skipped=0
report() {
    result "$1" "$2"
    case $2 in '') passed=$((passed + 1)) ;; SKIP:*) skipped=$((skipped + 1)) ;; *) failed=$((failed + 1)) ;; esac
}
for name in $names; do
    case $name in *"$only"*) ;; *) continue ;; esac
    if have cmake; then report "$name" "$(check_"$name" 2>&1)"; else report "$name" 'SKIP: no cmake'; fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
