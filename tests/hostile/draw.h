/*
 * Random arguments, most of them near what is legal: each has a fair chance to come far, and a fair
 * chance to be refused. In one build the same seed draws the same arguments.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_HOSTILE_DRAW_H
#define TEST_HOSTILE_DRAW_H

#include "tilegemm_lab.h"

/* Starts the sequence of random numbers. */
void draw_start(uint64_t seed);

/* Returns a number of 0 .. count - 1. */
int64_t draw(int64_t count);

/* Returns 1 in one of `count` cases. */
int draw_chance(int count);

/* Returns any 64 bits, powers of two and their neighbours among them. */
int64_t draw_int64(void);

/* Returns a size: small, near a power of two up to 2^49, or any 64 bits. */
int64_t draw_size(void);

/* Returns a number, NaN, infinity and the ends of the ranges of FP32 and FP64 among them. */
double draw_double(void);

/* Returns a value of an enum of `count` values, or one outside it. */
int draw_enum(int count);

/* Draws a problem of any sizes, strides and pointers. It is for planning alone. */
void draw_problem(tg_problem *problem);

/* Draws a problem whose operands lie in `memory`, of memory_bytes bytes, and may overlap. Returns 0
 * if an operand would reach beyond. */
int draw_problem_in(char *memory, int64_t memory_bytes, tg_problem *problem);

/* Draws a chip, with up to three figures changed to anything. */
void draw_chip(tg_chip *chip);

/* Draws a text that may be that of a problem. */
void draw_text(char *text, size_t text_bytes);

#endif
