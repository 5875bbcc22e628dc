/* Declarations that the pieces of code in README.md and the pages need. */
#include "opdispatch.h"
#include <math.h>
#include <stdio.h>

extern opd_library *lib;
extern opd_op *myadd;
extern int n;
extern int64_t steps;
extern void *net;
extern char text[4096];
extern opd_tensor **params, *inputs[3], *out[3], *x, *y, *v, *w, *b, *weights, *labels, *loss, *boxes, *scores;
extern struct DLManagedTensorVersioned *their_managed_tensor;
extern opd_group *world;
extern opd_parallel *parallel;
extern opd_module *module;
extern opd_optimizer *adam;
extern int count, layers;
extern int64_t size_of_my_part;

opd_tensor *function(opd_tensor *input), *forward(void *net_, opd_tensor *input), *loss_of(), *loss_of_my_part();
opd_tensor *network(opd_tensor *parameters, opd_tensor *input);

/* Parts of operators and devices. */
int myadd_cpu(opd_call *call), myadd_fake(opd_call *call), kernel(opd_call *call), shapes(opd_call *call), npu_mm(opd_call *call);
int myadd_backward(opd_backward_call *bw), backward(opd_backward_call *bw);
int myadd_setup(opd_context *ctx), setup(opd_context *ctx);
int tangent(opd_jvp_call *call);
void *npu_alloc(void *user, int index, size_t bytes);
void npu_free(void *user, int index, void *data, size_t bytes);
int npu_copy(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes);
int npu_count(void *user), npu_get(void *user), npu_set(void *user, int index);
bool supported(void *user, const opd_graph_node *node);
int compile_part(void *user, const opd_graph *part, opd_part_function *function);
extern opd_graph *graph;
extern opd_program *program;
