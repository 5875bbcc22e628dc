/* A plug-in of QEMU's user-mode emulators that counts the instructions a program executes, and prints their number when
   the program ends.  bench/instructions.sh builds and uses it.  It declares the few functions of QEMU's plug-in
   interface (version 1) itself, so neither qemu-plugin.h nor GLib has to be installed.

   cc -shared -fPIC -O2 bench/instructions_counter.c -o counter.so
   qemu-aarch64 -d plugin -plugin ./counter.so PROGRAM */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define API __attribute__((visibility("default")))

struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*translated)(uint64_t id, struct qemu_plugin_tb *block));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation, void *number, uint64_t by);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*ended)(uint64_t id, void *user), void *user);
void qemu_plugin_outs(const char *text);

API int qemu_plugin_version = 1;
static uint64_t executed;

/* QEMU calls this function for each block of instructions that it translates.  When the block runs, QEMU adds the
   number of its instructions to `executed` (operation 0 is an addition). */
static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &executed, qemu_plugin_tb_n_insns(block));
}
static void ended(uint64_t id, void *user) {
    char text[64];
    (void)id;
    (void)user;
    snprintf(text, sizeof text, "instructions: %llu\n", (unsigned long long)executed);
    qemu_plugin_outs(text);
}
API int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
