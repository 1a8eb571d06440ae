# The front door: each target sets the machine up, builds with CMake and runs. CMakeLists.txt and
# CMakePresets.json describe the build itself.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 120
MAKEFLAGS += --no-print-directory
export CUDA

.PHONY: all help setup demo check check-deep check-torch gpu-check wheel fuzz bench report-shots \
	report-bench format install uninstall clean
all: ## library and command, in build/
	@tools/build $(JOBS)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile
	@echo "JOBS=N compiles with N processes, PREFIX=DIR is where install puts the files (/usr/local),"
	@echo "CUDA=AUTO, ON or OFF says whether the kernels of a GPU are compiled."

setup: ## all packages and peers that the other targets need
	@tools/setup/packages check
	@tools/setup/packages bench
	@tools/setup/peers
	@tools/setup/disassembler
	@tools/setup/python

demo: ## a product of files, the ladder and its page; installs what it misses
	@tools/setup/packages demo
	@tools/run_demo $(JOBS)

check: ## all tests, style and layers; device code too if there is a GPU
	@tools/setup/packages check
	@tools/setup/disassembler & id=$$!; tools/setup/python; status=$$?; \
		wait $$id && exit $$status
	@tools/check/configurations --jobs $(JOBS) release

check-deep: ## all device code, the other random cases, sanitizers, fuzzing
	@tools/setup/packages check
	@tools/check/configurations --jobs $(JOBS) deep asan tsan fuzz

gpu-check: ## the tests that need an NVIDIA GPU
	@tools/setup/packages check
	@cmake --preset release -UTG_CUDA_ARCHITECTURES -DTG_CUDA=AUTO >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@tools/check/gpu

wheel: export CUDA = AUTO
wheel: all ## the Python package, in build/wheel
	@tools/setup/packages check
	@tools/setup/python
	@tools/check/wheel build build/wheel

check-torch: wheel ## the tests of tilegemm.torch, with a download of PyTorch
	@tools/setup/pytorch
	@build/torch_tools/bin/pip install --quiet --no-index --no-deps --force-reinstall \
		build/wheel/*.whl
	@tools/check/torch

fuzz: ## each fuzz target for FUZZ_SECONDS
	@tools/setup/packages check
	@tools/check/configurations --jobs $(JOBS) --fuzz-seconds $(FUZZ_SECONDS) fuzz

bench: ## your processor beside OpenBLAS, BLIS, oneDNN and MKL
	@tools/setup/packages bench
	@tools/setup/peers
	@tools/build $(JOBS)
	@env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE -u BLIS_ARCH_TYPE \
		build/tilegemm bench --suite square --peer all

report-shots: all ## pictures of the page
	@tools/setup/packages check
	@/usr/bin/python3 tools/pages/report_shots build/tilegemm build/shots

report-bench: all ## time to the page's first view
	@tools/setup/packages check
	@/usr/bin/python3 tools/pages/report_bench build/tilegemm

format: ## clang-format over the C sources
	@tools/setup/packages check
	@git ls-files -co --exclude-standard -- '*.c' '*.h' | xargs clang-format -i

install: all ## library, command, manuals and completions under PREFIX
	@cmake --install build --prefix $(PREFIX)
	@cp build/install_manifest.txt build/installed.txt

uninstall: ## removes what install put down
	@cmake -DMANIFEST=build/installed.txt -P cmake/uninstall.cmake

clean: ## removes the build folders
	@rm -rf build build-asan build-tsan build-fuzz
