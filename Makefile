# The front door: each target sets the machine up, builds with CMake and runs. CMakeLists.txt and
# CMakePresets.json describe the build itself.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 120
MAKEFLAGS += --no-print-directory

.PHONY: all setup demo check check-deep check-torch gpu-check wheel fuzz bench report-shots \
	report-bench format install clean
all:
	@cmake --preset demo
	@cmake --build --preset demo -j $(JOBS)

setup:
	@tools/setup/packages check
	@tools/setup/packages bench
	@tools/setup/peers
	@tools/setup/disassembler
	@tools/setup/python

demo:
	@tools/setup/packages demo
	@tools/run_demo $(JOBS)

check:
	@tools/setup/packages check
	@tools/setup/disassembler
	@tools/setup/python
	@tools/check/configurations --jobs $(JOBS) release

check-deep:
	@tools/setup/packages check
	@tools/check/configurations --jobs $(JOBS) deep asan tsan fuzz

gpu-check:
	@tools/setup/packages check
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@tools/check/gpu

wheel: all
	@tools/setup/packages check
	@tools/setup/python
	@tools/check/wheel build build/wheel

check-torch: wheel
	@tools/setup/pytorch
	@build/torch_tools/bin/pip install --quiet --no-index --no-deps --force-reinstall \
		build/wheel/*.whl
	@tools/check/torch

fuzz:
	@tools/setup/packages check
	@tools/check/configurations --jobs $(JOBS) --fuzz-seconds $(FUZZ_SECONDS) fuzz

bench:
	@tools/setup/packages bench
	@tools/setup/peers
	@cmake --preset demo >/dev/null
	@cmake --build --preset demo -j $(JOBS)
	@env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE -u BLIS_ARCH_TYPE \
		build/tilegemm bench --suite square --peer all

report-shots: all
	@tools/setup/packages check
	@/usr/bin/python3 tools/pages/report_shots build/tilegemm build/shots

report-bench: all
	@tools/setup/packages check
	@/usr/bin/python3 tools/pages/report_bench build/tilegemm

format:
	@tools/setup/packages check
	@git ls-files -co --exclude-standard -- '*.c' '*.h' | xargs clang-format -i

install: all
	@cmake --install build --prefix $(PREFIX)

clean:
	@rm -rf build build-asan build-tsan build-fuzz
