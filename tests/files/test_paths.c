/* Paths with blanks and with letters outside ASCII (UTF-8, also on Windows); replacing a file that is in use. */
#include "../check.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(_WIN32)
#include <wchar.h>
extern void *__stdcall CreateFileA(const char *path, unsigned long access, unsigned long share, void *security,
                                   unsigned long how, unsigned long flags, void *like);
extern int __stdcall CloseHandle(void *handle);
#endif

static const char *in_folder(const char *name) {
    static char folder[300], path[2][600];
    static int k;
    const char *tmp = getenv("TMPDIR");
    if (!folder[0]) {
        (void)snprintf(folder, sizeof folder, "%s/opd_paths_XXXXXX", tmp && *tmp ? tmp : "/tmp");
        CHECK(mkdtemp(folder) != NULL);
    }
    if (!name) {
        CHECK(rmdir(folder) == 0);
        folder[0] = 0;
        return NULL;
    }
    k = !k;
    (void)snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}
static opd_tensor *numbers(float first) {
    return opd_add_Scalar(opd_arange(OPD_V(5), OPD_FLOAT32), OPD_V(first));
}
static bool begins_with(opd_tensor *tensor, double first) {
    return tensor && opd_numel(tensor) == 5 && fabs(opd_item_f64(opd_select(tensor, 0, 0)) - first) < 1e-6;
}

/* Writes, replaces and reads each kind of file. */
static void check_name(const char *path) {
    const char *const names[] = {"a"};
    OPD_SCOPE {                                   /* Windows does not remove a file whose bytes a tensor uses */
        CHECK_INT(opd_npy_save(path, numbers(1)), 0);
        CHECK_INT(opd_npy_save(path, numbers(2)), 0);
        CHECK(begins_with(opd_npy_load(path), 2));
        CHECK_INT(opd_file_kind_of(path), OPD_FILE_NPY);
        CHECK_INT(opd_npz_save(path, names, OPD_TENSORS(numbers(1))), 0);
        CHECK_INT(opd_safetensors_save(path, names, OPD_TENSORS(numbers(2)), NULL), 0);
        opd_tensor_file *file = opd_tensor_file_open(path);
        CHECK(begins_with(opd_tensor_file_get(file, "a"), 2));
        opd_tensor_file_close(file);
        CHECK_OK();
    }
}
TEST(paths_have_blanks_and_any_letters) {
    const char *const path = in_folder("two words.bin");
    const char *const other = in_folder("gr\xc3\xb6\xc3\x9f" "e \xe6\x97\xa5.bin");
    check_name(path);
    CHECK(remove(path) == 0);
    check_name(other);
#if defined(_WIN32)
    wchar_t wide[600];
    (void)mbstowcs(wide, other, 600);             /* the folder is ASCII */
    (void)wcscpy(wcsrchr(wide, L'/'), L"/gr\u00f6\u00dfe \u65e5.bin");
    CHECK(_wremove(wide) == 0);
#else
    CHECK(remove(other) == 0);
#endif
    (void)in_folder(NULL);
}
TEST(a_profile_is_written_to_any_path) {
    const char *const path = in_folder("spur\xc3\xa9.json");
    CHECK_INT(opd_profiler_begin(NULL), 0);
    (void)numbers(1);
    opd_profile *profile = opd_profiler_end();
    CHECK_INT(opd_profile_write_trace(profile, path), 0);
    opd_profile_free(profile);
#if defined(_WIN32)
    wchar_t wide[600];
    (void)mbstowcs(wide, path, 600);
    (void)wcscpy(wcsrchr(wide, L'/'), L"/spur\u00e9.json");
    CHECK(_wremove(wide) == 0);
#else
    CHECK(remove(path) == 0);
#endif
    (void)in_folder(NULL);
}
TEST(a_path_that_is_not_utf_8) {
#if defined(_WIN32)
    const char *const path = in_folder("gr\xf6\xdf" "e.npy");
    CHECK_INT(opd_npy_save(path, numbers(1)), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be written: the path is not valid UTF-8");
    CHECK(!opd_npy_load(path));
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be read: the path is not valid UTF-8");
    (void)in_folder(NULL);
#else
    SKIP("a path is any bytes here");
#endif
}
/* A tensor of a file may use the file's own bytes: it keeps its values when the file is replaced, removed or mapped
   again. */
TEST(a_file_in_use_is_replaced) {
    const char *const path = in_folder("in use.safetensors"), *const names[] = {"a"};
    int i;
    for (i = 0; i < 3; i++) {
        OPD_SCOPE {
            CHECK_INT(opd_safetensors_save(path, names, OPD_TENSORS(numbers(1)), NULL), 0);
            opd_tensor_file *const file = opd_tensor_file_open(path);
            opd_tensor *const old = opd_tensor_file_get(file, "a");
            opd_tensor_file_close(file);
            CHECK_INT(opd_safetensors_save(path, names, OPD_TENSORS(numbers(7)), NULL), 0);
            opd_tensor_file *const again = opd_tensor_file_open(path);
            opd_tensor *const replaced = opd_tensor_file_get(again, "a");
            opd_tensor_file_close(again);
            CHECK(begins_with(old, 1));
            CHECK(begins_with(replaced, 7));
            (void)opd_add_Scalar_(old, OPD_V(1));     /* changes this process alone */
            CHECK(begins_with(old, 2));
        }
    }
    CHECK_INT(opd_safetensors_save(path, names, OPD_TENSORS(numbers(3)), NULL), 0);
    CHECK(remove(path) == 0);
    (void)in_folder(NULL);                        /* no other file is left */
}
/* Only files that the library has renamed itself are removed. */
TEST(other_files_remain) {
    const char *const names[] = {"a"};
    const char *const path = in_folder("model");
    OPD_SCOPE {
        CHECK_INT(opd_safetensors_save(path, names, OPD_TENSORS(numbers(1)), NULL), 0);
        opd_tensor_file *const file = opd_tensor_file_open(path);
        CHECK(begins_with(opd_tensor_file_get(file, "a"), 1));
        CHECK_INT(opd_npy_save(in_folder("model.old0"), numbers(5)), 0);
        CHECK_INT(opd_safetensors_save(in_folder("model"), names, OPD_TENSORS(numbers(2)), NULL), 0);
        opd_tensor_file_close(file);
    }
    OPD_SCOPE { CHECK(begins_with(opd_npy_load(in_folder("model.old0")), 5)); }
    CHECK(remove(in_folder("model.old0")) == 0);
    CHECK_INT(opd_safetensors_save(in_folder("model"), names, OPD_TENSORS(numbers(3)), NULL), 0);
    (void)remove(in_folder("model.opd-old0"));
    CHECK(remove(in_folder("model")) == 0);
    (void)in_folder(NULL);
}
TEST(a_read_only_file) {
#if defined(_WIN32)
    const char *const path = in_folder("read only.npy");
    CHECK_INT(opd_npy_save(path, numbers(1)), 0);
    CHECK(_chmod(path, _S_IREAD) == 0);
    CHECK_INT(opd_npy_save(path, numbers(2)), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be written: Permission denied");
    OPD_SCOPE { CHECK(begins_with(opd_npy_load(path), 1)); }
    CHECK(_chmod(path, _S_IREAD | _S_IWRITE) == 0 && remove(path) == 0);
    (void)in_folder(NULL);                        /* no other file is left */
#else
    SKIP("the permissions of the folder decide here");
#endif
}
TEST(a_file_of_another_program) {
#if defined(_WIN32)
    const char *const path = in_folder("taken.npy");
    CHECK_INT(opd_npy_save(path, numbers(1)), 0);
    void *const taken = CreateFileA(path, 0x80000000ul, 0, NULL, 3, 0, NULL);
    CHECK_INT(opd_npy_save(path, numbers(2)), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be written: another program uses the file");
    CHECK(!opd_npy_load(path));
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be read: another program uses the file");
    CHECK(CloseHandle(taken));
    OPD_SCOPE { CHECK(begins_with(opd_npy_load(path), 1)); }
    CHECK(remove(path) == 0);
    (void)in_folder(NULL);
#else
    SKIP("other programs do not lock files here");
#endif
}
/* The C library of Windows counts the bytes of one write in 32 bits. */
TEST(a_tensor_of_more_than_2_gib_is_written) {
    const int64_t bytes = INT64_C(2300000000);
    if (sizeof(void *) < 8) { SKIP("32-bit addresses"); }
    void *const data = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) { SKIP("no memory"); }
    OPD_SCOPE {
        opd_tensor *const tensor = opd_tensor_wrap(data, opd_ints_of(&bytes, 1), NULL, OPD_UINT8, NULL, NULL);
#if defined(_WIN32)
        CHECK_INT(opd_npy_save("NUL", tensor), 0);
#else
        CHECK_INT(opd_npy_save("/dev/null", tensor), 0);
#endif
        CHECK_OK();
    }
    (void)munmap(data, (size_t)bytes);
}
/* If the path is a folder, nothing is written, and the folder remains. */
TEST(a_folder_is_not_replaced) {
    const char *const path = in_folder("folder");
    CHECK(mkdir(path, 0700) == 0);
    CHECK_INT(opd_npy_save(path, numbers(1)), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be written: Is a directory");
    CHECK(!opd_npy_load(path));
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be read: Is a directory");
    CHECK(rmdir(path) == 0);
    (void)in_folder(NULL);
}
CHECK_MAIN()
