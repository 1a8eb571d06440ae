/*
 * Distinguishes runs of tilegemm multiply.
 *
 * SPDX-License-Identifier: MIT
 */
#include "multiply/multiply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Writes the facts of an input. A changed file has another time. */
static int write_file(char *text, size_t text_bytes, const char *name, const cli_matrix_file *file)
{
    const char *slash = strrchr(file->path, '/');
    return snprintf(text, text_bytes,
                    "the file of %s: %.400s\nthe size of %s: %" PRId64
                    " bytes\nthe time of %s: %" PRId64 ".%09" PRId64 "\n",
                    name, slash ? slash + 1 : file->path, name, file->map_bytes, name,
                    file->modified_ns / 1000000000, file->modified_ns % 1000000000);
}

void cli_write_facts(const cli_multiply_options *options, const cli_multiply_files *files,
                     const cli_multiply_result *result, char *text, size_t text_bytes)
{
    const cli_matrix_file *const inputs[] = {&files->a, &files->b, files->has_c ? &files->c : NULL,
                                             files->has_bias ? &files->bias : NULL};
    static const char *const names[] = {"A", "B", "C", "the bias"};
    const char *slash = strrchr(options->output_path, '/');
    size_t length = (size_t)snprintf(text, text_bytes, "the version: %s\nthe output: %.400s\n",
                                     tg_get_version(), slash ? slash + 1 : options->output_path);
    for (int i = 0; i < 4; i++)
        if (inputs[i])
            length += (size_t)write_file(text + length, text_bytes - length, names[i], inputs[i]);
        else
            length += (size_t)snprintf(text + length, text_bytes - length, "the file of %s: none\n",
                                       names[i]);
    snprintf(text + length, text_bytes - length,
             "--transpose-a: %s\n--transpose-b: %s\n--alpha: %.17g\n--beta: %.17g\n--type: "
             "%s\n--output-type: %s\n--precision: %s\n--activation: %s\nthe device: %.100s\nthe "
             "kernel: %.100s\n",
             options->is_a_transposed ? "yes" : "no", options->is_b_transposed ? "yes" : "no",
             options->alpha, options->beta, tg_get_type_name(result->type),
             tg_get_type_name(result->output_type), tg_get_precision_name(options->precision),
             tg_get_activation_name(options->activation), result->device.device, result->kernel);
}
